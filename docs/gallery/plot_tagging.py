"""
Tagging words
=============

A :class:`~maxmargin.SequenceTagger` learns the parts of speech of words from 60 sentences, and tags 340 others.
"""

from sklearn.model_selection import train_test_split

from maxmargin import SequenceTagger
from maxmargin.datasets import load_sentences

sentences = load_sentences()
X, X_test, y, y_test = train_test_split(sentences.data, sentences.target, train_size=60, random_state=0)
tagger = SequenceTagger(C=0.1).fit(X, y)
print(tagger.status_)
print(" ".join(f"{word}/{tag}" for word, tag in zip(X_test[0], tagger.predict(X_test[:1])[0], strict=True)))

# %%
# Which tags are confused? A normalised table of true and found tags.

from itertools import chain

from sklearn.metrics import ConfusionMatrixDisplay

found = tagger.predict(X_test)
display = ConfusionMatrixDisplay.from_predictions(
    list(chain(*y_test)), list(chain(*found)), normalize="true", values_format=".0%", cmap="Greens", colorbar=False
)
display.ax_.set_title("Parts of speech")
display.figure_.set_size_inches(8, 7)
