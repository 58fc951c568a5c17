"""The joint master problem: all planes of some blocks at once, for any regulariser, by projected Newton."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

__all__ = ["solve_jointly"]


def solve_jointly(ws: Any, blocks: np.ndarray, u: np.ndarray, w: np.ndarray, regulariser: Any, patience: int) -> None:
    """Solve the master problem over all planes of ``blocks`` at once, the other blocks fixed, by projected Newton.

    The origin of a simplex block is a variable of its own with the zero plane. Memory O(m^2) for m planes.
    """
    from maxmargin.solvers.masters.newton import projected_newton
    from maxmargin.solvers.working_set_kernel import LINEAR, TOTAL, forget

    store = ws.store
    blocks = blocks[store.held[blocks] > 0]
    if len(blocks) == 0:
        return
    A, b, alpha, owner = ws.planes()
    chosen = np.isin(owner, blocks)
    A, b, alpha, owner = sp.csr_array(A[chosen]), b[chosen], alpha[chosen], owner[chosen]
    bounded = blocks[np.isfinite(store.total[blocks])]
    origins = bounded[(store.open[bounded] > 0) | (store.origin[bounded] > 0)]
    m = len(b)
    block = np.searchsorted(blocks, np.concatenate([owner, origins]))
    q0 = np.concatenate([alpha, store.origin[origins]])
    objective = _Master(A, np.concatenate([b, np.zeros(len(origins))]), q0, u, regulariser)
    # on orthants the master measures its distance by a decrement, which is of second order in the gradients
    share = 1e-12 if len(bounded) == len(blocks) else 1e-20
    scale = max(abs(ws.linear), regulariser.conjugate(u), 1e-300)
    with blas_threads().limit(limits=1, user_api="blas"):  # small matrices; and the result must not depend on the cores
        result = projected_newton(objective, block, store.total[blocks], q0, tol=share * scale)
    q = np.asarray(result.q)
    change = q[:m] - alpha
    ids = np.concatenate([store.slots[i, : store.held[i]] for i in blocks])
    store.alpha[ids] = q[:m]
    store.origin[origins] = q[m:]
    store.linear[0] += change @ b
    moved = A.T @ change
    u += moved
    if len(store.mean):
        store.mean[:] -= store.moment[TOTAL] * moved
        store.moment[LINEAR] -= store.moment[TOTAL] * (change @ b)
    if w is not u:
        w[:] = regulariser.weights(u)
    for i in blocks:
        forget(store, i, patience)


@lru_cache(maxsize=1)
def blas_threads() -> ThreadpoolController:
    return ThreadpoolController()


class _Master:
    """f(q) = b.q - R*(u + A'(q - q0)), the objective of the joint master problem; origins are zero rows behind A."""

    def __init__(self, A: sp.csr_array, b: np.ndarray, q0: np.ndarray, u: np.ndarray, regulariser: Any) -> None:
        self.A, self.b, self.regulariser = A, b, regulariser
        self.m = A.shape[0]
        self.rest = u - A.T @ q0[: self.m]
        self.fixed = None if regulariser.positive is not None else self._padded(regulariser.curvature(A, u))

    def _padded(self, H: np.ndarray) -> np.ndarray:
        full = np.zeros((len(self.b), len(self.b)))
        full[: self.m, : self.m] = H
        return full

    def _u(self, q: np.ndarray) -> np.ndarray:
        return self.rest + self.A.T @ q[: self.m]

    def value(self, q: np.ndarray) -> float:
        return float(self.b @ q) - self.regulariser.conjugate(self._u(q))

    def gradient(self, q: np.ndarray) -> np.ndarray:
        g = self.b.copy()
        g[: self.m] -= self.A @ self.regulariser.weights(self._u(q))
        return g

    def hessian(self, q: np.ndarray) -> np.ndarray:
        return self.fixed if self.fixed is not None else self._padded(self.regulariser.curvature(self.A, self._u(q)))
