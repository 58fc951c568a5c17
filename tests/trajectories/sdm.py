"""The sequential dual method written down from its paper: a few lines of numpy over enumerated planes."""

from __future__ import annotations

import numpy as np


class PlainSDM:
    """Mancev 2015, algorithm 1, an example at a time.

    planes[i] = (A, b) has a row for every output of example i, the true one (zeros) included. The working set of an
    example is a dict from output to multiplier; ``w`` is kept by adding what each step changes, as printed.
    """

    def __init__(self, planes, C, tau: float = 1e-13) -> None:
        self.planes, self.C, self.tau = planes, np.asarray(C, float), tau
        self.true = [int(np.flatnonzero((b == 0) & (np.abs(A).max(axis=1) == 0))[0]) for A, b in planes]
        self.sets = [{y: c} for y, c in zip(self.true, self.C, strict=True)]
        self.w = np.zeros(planes[0][0].shape[1])

    def visit(self, i: int) -> None:
        """One oracle call, then pairs of largest violation until none is above tau; multipliers of 0 leave."""
        if self.C[i] == 0:
            return
        (A, b), own = self.planes[i], self.sets[i]
        own.setdefault(int((b - A @ self.w).argmax()), 0.0)
        while True:
            g = {y: b[y] - A[y] @ self.w for y in own}
            up = max(own, key=g.__getitem__)
            down = min((y for y in own if own[y] > 0), key=g.__getitem__)
            if g[up] - g[down] <= self.tau:
                break
            direction = A[up] - A[down]
            square = direction @ direction
            step = own[down] if square == 0 else min(own[down], (g[up] - g[down]) / square)
            own[up] += step
            own[down] = 0.0 if step == own[down] else own[down] - step
            self.w = self.w + step * direction
        self.sets[i] = {y: c for y, c in own.items() if c > 0 or y == self.true[i]}

    @property
    def u(self) -> np.ndarray:
        """``sum alpha a``."""
        return sum(c * A[y] for (A, _), own in zip(self.planes, self.sets, strict=True) for y, c in own.items())


def ramp_rounds(planes, costs, C, below, orders, *, add_back: bool):
    """Algorithm 1 with rounds: weights at the end of each. ``orders[round]`` lists the examples in order of visit.

    ``planes`` are those of the convex part. ``add_back`` says whether the old linear term is added back when the new
    one is subtracted; as printed, it is not.
    """
    solver, v = PlainSDM(planes, C), np.zeros(planes[0][0].shape[1])
    for order in orders:
        new = np.zeros_like(v)
        for (A, _), cost, c in zip(planes, costs, C, strict=True):
            concave = below * cost - A @ solver.w
            if concave.max() > 1e-12:
                new += c * A[int(concave.argmax())]
        solver.w = solver.w + (v if add_back else 0.0) - new
        v = new
        for i in order:
            solver.visit(i)
        yield solver.w.copy()
