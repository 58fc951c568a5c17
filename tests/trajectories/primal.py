"""The primal family once more, dense and step by step: every iterate is kept, nothing is lazy.

planes[i] = (A, b) has a row for every output of example i, the true one included; C (n,) are the weights of the
examples, ``P(w) = |w|^2/2 + sum_i C_i loss_i(w)`` or, squared, ``+ sum_i C_i/2 loss_i(w)^2``.
"""

from __future__ import annotations

import numpy as np


class PlainPrimal:
    """The weights are ``u - s``: a combination of planes, and one of the planes that ramps have subtracted.

    Where ``positive``, bool (d,), they are cut off at 0, and so are averages of ``u - s``.
    """

    def __init__(
        self, planes, C, method="subgradient", *, eta=None, augmented=True, squared=False, radius=np.inf, positive=None
    ):
        self.planes, self.C, self.n = planes, np.asarray(C, float), len(planes)
        self.method, self.augmented, self.squared, self.radius = method, augmented, squared, radius
        self.eta = eta if eta is not None else lambda t: 1.0 / t
        d = planes[0][0].shape[1]
        self.u, self.s = np.zeros(d), np.zeros(d)
        self.zeta, self.linear = np.zeros(self.n), 0.0  # multipliers by example, and their sum with b
        self.subtracted = np.zeros((self.n, d))
        self.t, self.updates = 0, 0
        self.positive = np.zeros(d, bool) if positive is None else positive
        self.iterates: list[np.ndarray] = []

    @property
    def w(self) -> np.ndarray:
        return self.cut(self.u - self.s)

    def cut(self, w: np.ndarray) -> np.ndarray:
        return np.where(self.positive & (w < 0), 0.0, w)

    def step(self, i: int) -> None:
        self.t += 1
        A, b = self.planes[i]
        y = int(np.argmax((b if self.augmented else 0.0) - A @ self.w))
        a, loss = A[y], b[y] - A[y] @ self.w
        wrong = bool(a.any()) or b[y] > 0
        shrink, amount, eta = 1.0, 0.0, 1.0
        if self.method == "subgradient":
            eta = min(1.0, self.eta(self.t))
            shrink = 1.0 - eta
            if loss > 0:
                amount = eta * self.n * self.C[i] * (loss if self.squared else 1.0)
        elif self.method == "perceptron":
            amount = float(wrong and self.C[i] > 0)
        elif loss > 0 and wrong:
            amount = min(self.C[i], loss / (a @ a)) if a.any() else self.C[i]
        self._scale(shrink)
        self.u = self.u + amount * a
        self.zeta[i] += amount
        self.linear += amount * b[y]
        self.updates += amount > 0
        self.s = self.s + eta * self.n * self.C[i] * self.subtracted[i]
        length = np.linalg.norm(self.w)
        if length > self.radius:
            self._scale(self.radius / length)
        self.iterates.append(self.u - self.s)

    def _scale(self, factor: float) -> None:
        self.u, self.s = factor * self.u, factor * self.s
        self.zeta, self.linear = factor * self.zeta, factor * self.linear

    def subtract(self, rows: np.ndarray, radius: float = np.inf) -> None:
        """A new round from the same weights: ``rows[i]`` is subtracted from example i. Averages begin anew."""
        self.subtracted, self.radius = rows, radius
        self.iterates = []

    def average(self, rule: str | None) -> np.ndarray:
        if rule is None or not self.iterates:
            return self.w
        first = self.t - len(self.iterates) + 1
        weights = np.ones(len(self.iterates)) if rule == "uniform" else np.arange(first, self.t + 1.0)
        return self.cut(np.average(self.iterates, axis=0, weights=weights))
