"""
Certificates: how far from the optimum?
=======================================

Every fit of a convex problem ends with a proven bound: the optimum lies between ``dual`` and ``primal``, and ``tol`` is
their relative gap. All dual solvers reach the same optimum; they differ in how many argmaxes it takes. A fit of a few
examples comes first, so that seconds are without compilation.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SequenceTagger
from maxmargin.datasets import make_chains
from maxmargin.reports import plot_convergence

warnings.simplefilter("ignore", ConvergenceWarning)  # some solvers need more than 60 passes
data = make_chains(200, n_labels=5, n_features=12, random_state=0)
histories = {}
for solver in ("auto", "simplicial", "sequential_dual", "bcfw", "cutting_plane"):
    tagger = SequenceTagger(C=0.1, solver=solver, tol=1e-4, max_passes=60)
    tagger.fit(data.X[:20], data.y[:20])
    tagger.fit(data.X, data.y)
    histories[solver] = tagger.history_
    print(f"{solver:16} {tagger.certificate_}")

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plot_convergence(histories, axes, tol=1e-4)
