"""
Which C? A certified path
=========================

:func:`maxmargin.regularisation_path` gives certified weights for *every* C of a range, not only for the values of a
grid: between two fits, scaled weights are proven to be within ``tol`` of the optimum.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SequenceTagger, regularisation_path
from maxmargin.datasets import make_chains

data = make_chains(120, n_labels=4, n_features=8, distance=2.0, random_state=0)
tagger = SequenceTagger()
path = regularisation_path(tagger, data.X, data.y, C_min=0.01, C_max=1.0, tol=0.1)
print(f"{len(path.points)} fits, {path.passes:.0f} passes")

some = np.geomspace(0.01, 1.0, 200)
gap, norm = [], []
for C in some:
    weights, certificate = path.at(C)
    gap.append(certificate.relative_gap)
    norm.append(np.linalg.norm(weights))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.plot(some, gap)
left.axhline(0.1, color="0.5", linestyle="--")
left.set(xscale="log", xlabel="C", ylabel="certified relative gap", title="Never above tol = 0.1", ylim=(0, None))
right.plot(some, norm)
right.set(xscale="log", xlabel="C", ylabel="norm of the weights")
