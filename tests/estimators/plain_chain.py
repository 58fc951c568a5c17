"""A first-order chain written the way a user would write it: plain Python, no arrays of the library."""

from __future__ import annotations

import numpy as np


class PlainChain:
    """Labels 0..K-1; weights: emission (F, K) row by row, then transition (K, K) [left, right] row by row."""

    def __init__(self, K):
        self.K = K

    def n_weights(self, X, Y):
        return X[0].shape[1] * self.K + self.K**2

    def joint_features(self, x, y):
        emission, transition = np.zeros((x.shape[1], self.K)), np.zeros((self.K, self.K))
        for t, label in enumerate(y):
            emission[:, label] += x[t]
            if t:
                transition[y[t - 1], label] += 1
        return np.concatenate([emission.ravel(), transition.ravel()])

    def cost(self, y_true, y):
        return float(sum(a != b for a, b in zip(y_true, y, strict=True)))

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        F, K = x.shape[1], self.K
        unary, pair = x @ w[: F * K].reshape(F, K), w[F * K :].reshape(K, K)
        if y_true is not None:
            unary = unary + cost_weight * (np.arange(K) != np.asarray(y_true)[:, None])
        best, back = unary[0], []
        for t in range(1, len(x)):
            through = best[:, None] + pair
            back.append(through.argmax(axis=0))
            best = through.max(axis=0) + unary[t]
        labels = [int(best.argmax())]
        for pointer in reversed(back):
            labels.append(int(pointer[labels[-1]]))
        return labels[::-1]
