"""
The best of several translations
================================

A translation system proposes eight outputs for each sentence, with four features each, and weighs them badly.
:class:`~maxmargin.LatticeRanker` learns the weights from references. The cost of an output is one less its BLEU.
"""

import matplotlib.pyplot as plt

from maxmargin import LatticeRanker
from maxmargin.datasets import load_nbest
from maxmargin.metrics import bleu

lists = load_nbest()
train, test, references = lists.data[:40], lists.data[40:], lists.target[40:]
first = [hypotheses.words[0] for hypotheses in test]

scores = {"system": bleu(first, references).score}
for loss in ("hinge", "squared_hinge", "ramp"):
    ranker = LatticeRanker(C=1.0, loss=loss).fit(train, lists.target[:40])
    scores[loss.replace("_", " ")] = bleu(ranker.predict(test), references).score

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.bar_label(ax.bar(scores.keys(), scores.values(), color=["0.6", *["tab:green"] * 3], width=0.6), fmt="%.1f")
ax.set(ylabel="BLEU", ylim=(0, 110), title="20 test lists")

# %%
# What changed in one of them:

print("source:   ", lists.source[41])
print("system:   ", first[1])
print("learned:  ", ranker.predict(test[1:2])[0])
print("reference:", references[1])
