"""
A structure of your own
=======================

An output of your own takes four plain functions: how many weights there are, the features of an input with an output,
the cost of an output, and the best output for given weights. Here the output is a *ranking* of items: the score of a
ranking is the sum of ``item score x place``, and sorting finds the best one, with the cost too.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import StructuredSVM
from maxmargin.testing import check_model


class Ranking:
    """Order the rows of x; y[i] is the place of row i, the best one has the highest number."""

    def n_weights(self, X, Y):
        return np.shape(X[0])[1]

    def joint_features(self, x, y):
        return np.asarray(y, float) @ np.asarray(x) / len(y)

    def cost(self, y_true, y):
        return float(np.sum((np.asarray(y_true) - np.asarray(y)) ** 2)) / len(y)

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        gain = np.asarray(x) @ w
        if (
            y_true is not None
        ):  # (a - b)^2 is linear in b, but for a constant: the b are the same numbers in every ranking
            gain = gain - 2 * cost_weight * np.asarray(y_true, float)
        return tuple(np.argsort(np.argsort(gain, kind="stable"), kind="stable").tolist())


rng = np.random.default_rng(0)
wanted = np.array([2.0, -1.0, 0.5, 0.0])
X = [rng.normal(size=(6, 4)) for _ in range(60)]
Y = [tuple(np.argsort(np.argsort(x @ wanted + rng.normal(0, 0.3, 6))).tolist()) for x in X]

check_model(Ranking(), X[:3], Y[:3])  # says what is wrong with a model
svm = StructuredSVM(Ranking(), C=1.0).fit(X[:40], Y[:40])
print(svm.certificate_)

# %%
# Rank correlations of the test lists, learned and with weights of zero:

from scipy.stats import spearmanr

learned = [spearmanr(y, found).statistic for y, found in zip(Y[40:], svm.predict(X[40:]), strict=True)]
figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.5), layout="constrained")
left.hist(learned, bins=np.linspace(-0.05, 1.05, 12), color="tab:green")
left.set(xlabel="rank correlation", ylabel="test lists", title=f"mean {np.mean(learned):.2f}")
place = np.arange(4)
right.bar(place - 0.2, wanted / np.linalg.norm(wanted), width=0.4, label="true")
right.bar(place + 0.2, svm.coef_ / np.linalg.norm(svm.coef_), width=0.4, label="learned")
right.set(title="Directions of the weights")
right.legend()
