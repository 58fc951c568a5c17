"""
Finding wrong labels
====================

No annotation is free of mistakes. Here every tenth sentence gets one wrong tag. :func:`maxmargin.audit` judges each
sentence by models that have not seen it, and ranks all of them by the evidence that a label is wrong.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SequenceTagger, audit
from maxmargin.datasets import load_sentences

sentences = load_sentences()
rng = np.random.default_rng(0)
tags = sorted({tag for one in sentences.target for tag in one})
X, y = sentences.data[:200], [list(one) for one in sentences.target[:200]]
wrong = set(rng.permutation(200)[:20].tolist())
for i in wrong:
    at = int(rng.integers(len(y[i]) - 1))
    y[i][at] = rng.choice([tag for tag in tags if tag != y[i][at]])

table = audit(SequenceTagger(C=0.1), X, y, cv=4, repeats=1, random_state=0)
order = list(table["example"])
hits = np.cumsum([example in wrong for example in order])

figure, ax = plt.subplots(layout="constrained")
ax.plot(np.arange(1, 201), hits, label="audit")
ax.plot([1, 200], [0.1, 20], "--", color="0.6", label="at random")
ax.set(
    xlabel="sentences looked at, most suspicious first", ylabel="wrong ones found", title="20 wrong of 200 sentences"
)
ax.legend()

# %%
# The most suspicious sentence, and what the models suggest:

first = order[0]
for word, given, suggested in zip(X[first], y[first], table["suggested"][0], strict=True):
    print(f"{word:12} {given:6} {'' if given == suggested else '-> ' + suggested}")
