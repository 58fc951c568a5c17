"""
Which C? A certified path
=========================

:func:`maxmargin.regularisation_path` gives certified weights for *every* C of a range, not only for the values of a
grid: between two fits, scaled weights are proven to be within ``tol`` of the optimum. So the score on held-out examples
can be drawn as a function of C.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SequenceTagger, regularisation_path
from maxmargin.datasets import load_sentences

sentences = load_sentences()
X, y, X_held_out, y_held_out = sentences.data[:60], sentences.target[:60], sentences.data[100:], sentences.target[100:]
path = regularisation_path(SequenceTagger(), X, y, C_min=1e-4, C_max=1.0, tol=0.2)
print(f"{len(path.points)} fits, {path.passes:.0f} passes")

tagger = SequenceTagger(C=0.1).fit(X, y)  # its weights are replaced by those of the path
some = np.geomspace(1e-4, 1.0, 60)
gap, train, held_out = [], [], []
for C in some:
    tagger.weights_, certificate = path.at(C)
    gap.append(certificate.relative_gap)
    train.append(tagger.score(X, y))
    held_out.append(tagger.score(X_held_out, y_held_out))
print(f"best on held-out sentences: C = {some[np.argmax(held_out)]:.2g}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.plot(some, train, label="training sentences")
left.plot(some, held_out, label="held-out sentences")
left.set(xscale="log", xlabel="C", ylabel="share of right tags", title="Score by C")
left.legend()
right.plot(some, gap, ".-")
right.axhline(0.2, color="0.5", linestyle="--")
right.set(xscale="log", xlabel="C", ylabel="certified relative gap", title="Never above tol = 0.2", ylim=(0, None))
