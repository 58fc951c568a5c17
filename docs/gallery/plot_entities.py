"""
Names in text, with BIO constraints
===================================

Spans such as people and places are written as labels of words: ``B-PER`` begins a name, ``I-PER`` continues it, ``O``
is outside. With ``constraints="bio"`` a tagger never answers with a span that continues before it has begun. The rule
takes the place of examples, so it helps most when there are few of them.
"""

import matplotlib.pyplot as plt

from maxmargin import SequenceTagger
from maxmargin.datasets import load_sentences
from maxmargin.metrics import span_f1

sentences = load_sentences()
X, y = sentences.data, sentences.entities
X_test, y_test = X[200:], y[200:]

sizes = [10, 20, 40, 80, 160]
scores = {"no constraints": [], "BIO constraints": []}
for size in sizes:
    for name, constraints in (("no constraints", None), ("BIO constraints", "bio")):
        tagger = SequenceTagger(C=0.1, constraints=constraints, classes=sorted({label for one in y for label in one}))
        tagger.fit(X[:size], y[:size])
        scores[name].append(span_f1(y_test, tagger.predict(X_test)))

figure, ax = plt.subplots(layout="constrained")
for name, values in scores.items():
    ax.plot(sizes, values, marker="o", label=name)
ax.set(xscale="log", xlabel="training sentences", ylabel="F1 of whole spans", title="Names in 200 test sentences")
ax.set_xticks(sizes, sizes)
ax.legend()

# %%
# The last tagger and a sentence that it has not seen:

print(list(zip(X_test[3], tagger.predict(X_test[3:4])[0], strict=True)))
