"""
Plots of a fit and of its predictions
=====================================

``maxmargin.reports`` has displays like those of scikit-learn: ``from_estimator`` computes what is shown and draws it,
on any matplotlib axes. Here are the gap of a fit, the tags that it confuses, and its strongest weights.
"""

import matplotlib.pyplot as plt

from maxmargin import SequenceTagger
from maxmargin.datasets import load_sentences
from maxmargin.reports import ConfusionDisplay, GapDisplay, WeightsDisplay

sentences = load_sentences()
tagger = SequenceTagger(C=0.1).fit(sentences.data[:40], sentences.target[:40])

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
GapDisplay.from_estimator(tagger, ax=left)
ConfusionDisplay.from_estimator(tagger, sentences.data[40:], sentences.target[40:], ax=middle)
WeightsDisplay.from_estimator(tagger, top=14, ax=right)

# %%
# The links that an aligner finds between two sentences; rings are links that a person has drawn:

from maxmargin import Aligner
from maxmargin.datasets import load_bitext
from maxmargin.reports import AlignmentDisplay

text = load_bitext()
aligner = Aligner().fit(text.data[:30], text.target[:30], bitext=text.bitext)
AlignmentDisplay.from_estimator(aligner, text.data[31], text.target[31])

# %%
# And the best path of a word lattice, after training on one reference:

import numpy as np

from maxmargin import Lattice, LatticeRanker
from maxmargin.reports import LatticeDisplay

tails, heads = [0, 0, 1, 1, 2, 1, 3, 3], [1, 1, 2, 2, 3, 3, 4, 4]
words = ["the", "a", "small", "little", "house", "cottage", "burns", "is burning"]
features = np.array([[0.0, 1], [-1, 1], [-1, 1], [-0.9, 1], [0, 1], [-2, 1], [-1, 1], [-1.5, 1]])
lattice = Lattice(5, tails, heads, features, words, names=["log probability", "arcs"])
ranker = LatticeRanker(C=10.0).fit([lattice], ["the little house burns"])
LatticeDisplay.from_estimator(ranker, lattice)
