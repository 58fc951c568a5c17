"""The joint master problem: all planes of some blocks at once, for any regulariser, by projected Newton."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.contracts import Regulariser
from maxmargin.formulations.divergence import TableDivergence
from maxmargin.formulations.regularisers import DENSE_ABOVE
from maxmargin.solvers.base import one_blas_thread
from maxmargin.solvers.masters.newton import Curvature, DenseCurvature, projected_newton

if TYPE_CHECKING:
    from maxmargin.solvers.working_set import WorkingSet

__all__ = ["JointMaster", "solve_jointly"]

SMOOTHING = (1e-3, 1e-5)  # of the reference: the second alone is too steep to start with, and both at a large C
DENSE_BELOW = 1 << 23  # entries of the planes with their columns of squared slacks, which are sparse beyond
FEW_STEPS = 50  # of masters that are not solved to the end


class MasterPoint(NamedTuple):
    """Multipliers of the planes and of the origins, and what they add to ``sum alpha b`` and to u."""

    planes: np.ndarray
    origins: np.ndarray
    linear: float
    moved: np.ndarray


class JointMaster:
    """``f(q) = b.q - R*(u + A'(q - q0))`` over the multipliers q of all planes of some blocks, the others fixed.

    The origin of a simplex block is a variable of its own with the zero plane, behind the planes. Columns behind the
    weights of the model (of squared slacks) are quadratic whatever R is, so their part of f'' is computed once; where R
    is quadratic everywhere all of it is: memory O(m^2) for m planes. Where R is not quadratic Newton steps ask for the
    curvature along the variables that move only, and memory is that of the planes, or O(m d) where they are dense.

    All ``blocks`` hold planes; ``u`` (n_columns,) belongs to the present multipliers, the model has ``n_weights`` = d,
    ``used`` leaves out planes without weight, and ``merged`` asks for one plane of each block, its present point, in
    place of all.
    """

    def __init__(
        self, ws: WorkingSet, blocks: np.ndarray, u: np.ndarray, n_weights: int, quadratic: bool, merged: bool = False,
        used: bool = False,
    ) -> None:  # fmt: skip
        store, self.ids = ws.store, ws.ids(blocks)
        total, bounded = store.total[blocks], np.isfinite(store.total[blocks])
        open_ = bounded & ((store.open[blocks] > 0) | (store.origin[blocks] > 0))
        self.origins = blocks[open_]
        owner = np.repeat(np.arange(len(blocks)), store.held[blocks])
        if used:
            kept = store.alpha[self.ids] > 0
            self.ids, owner = self.ids[kept], owner[kept]
        alpha, b = store.alpha[self.ids], store.b[self.ids]
        d = ws.n_columns if quadratic else n_weights
        sparse = quadratic or store.length[self.ids].sum() <= DENSE_ABOVE * len(b) * d
        A: sp.csr_array | np.ndarray = ws.rows(self.ids)[:, :d] if sparse else ws.matrix(self.ids, d)
        tail: sp.csr_array | np.ndarray | None = None
        if d < ws.n_columns:
            few = len(b) * ws.n_columns <= DENSE_BELOW
            tail = ws.matrix(self.ids, ws.n_columns)[:, d:] if few else ws.rows(self.ids)[:, d:]
        origin = store.origin[self.origins]
        if merged:
            share = sp.csr_array((alpha, (owner, np.arange(len(alpha)))), shape=(len(blocks), len(alpha)))
            A = share @ (A if isinstance(A, np.ndarray) else A.toarray())
            b, tail = share @ b, None if tail is None else share @ tail
            owner, alpha, total = np.arange(len(blocks)), np.ones(len(blocks)), np.where(bounded, 1.0, np.inf)
            origin = np.zeros(len(origin))
        self.A, self.m, self.total, self.all_bounded = A, len(b), total, bool(bounded.all())
        self.b = np.concatenate([b, np.zeros(len(self.origins))])
        self.block = np.concatenate([owner, np.flatnonzero(open_)])
        self.q0 = np.concatenate([alpha, origin])
        self.rest, self.tail = u[:d] - A.T @ alpha, tail
        if tail is not None:
            gram = tail @ tail.T
            self.tail_slope, self.tail_gram = tail @ u[d:], gram if isinstance(gram, np.ndarray) else gram.toarray()
        self.at: tuple[np.ndarray, np.ndarray] | None = None
        self.regulariser: Regulariser | None = None
        self.fixed: DenseCurvature | None = None

    def solve(
        self, regulariser: Regulariser, tol: float, q: np.ndarray | None = None, most: int = 500
    ) -> tuple[MasterPoint, np.ndarray]:
        """Maximise f with some R to within ``tol``, from the present multipliers or from q; the point and its q."""
        self.regulariser, self.fixed = regulariser, None
        if "quadratic" in regulariser.traits and regulariser.positive is None:
            self.fixed = self._all(self._u(self.q0))
        result = projected_newton(self, self.block, self.total, self.q0 if q is None else q, tol, most)
        q = np.asarray(result.q)
        change = q[: self.m] - self.q0[: self.m]
        moved = self.A.T @ change
        if self.tail is not None:
            moved = np.concatenate([moved, self.tail.T @ change])
        return MasterPoint(q[: self.m], q[self.m :], float(change @ self.b[: self.m]), moved), q

    def _u(self, q: np.ndarray) -> np.ndarray:
        """u of the columns in A; the last one is kept, because value, gradient and Hessian ask for the same q."""
        if self.at is None or self.at[0] is not q:
            self.at = q, self.rest + self.A.T @ q[: self.m]
        return self.at[1]

    def value(self, q: np.ndarray) -> float:
        assert self.regulariser is not None
        value = float(self.b @ q) - self.regulariser.conjugate(self._u(q))
        if self.tail is not None:
            change = q[: self.m] - self.q0[: self.m]
            value -= float(change @ (self.tail_slope + 0.5 * (self.tail_gram @ change)))
        return value

    def gradient(self, q: np.ndarray) -> np.ndarray:
        assert self.regulariser is not None
        g = self.b.copy()
        g[: self.m] -= self.A @ self.regulariser.weights(self._u(q))
        if self.tail is not None:
            g[: self.m] -= self.tail_slope + self.tail_gram @ (q[: self.m] - self.q0[: self.m])
        return g

    def hessian(self, q: np.ndarray) -> Curvature:
        assert self.regulariser is not None
        if self.fixed is not None:
            return self.fixed
        return self._all(self._u(q)) if "quadratic" in self.regulariser.traits else _Rows(self, self._u(q))

    def _all(self, u: np.ndarray) -> DenseCurvature:
        """Between all variables, where R is quadratic."""
        assert self.regulariser is not None
        return self._padded(self.regulariser.curvature(self.A, u))

    def _padded(self, H: np.ndarray) -> DenseCurvature:
        """That of the planes, with zeros for the origins."""
        full = np.zeros((len(self.b), len(self.b)))
        full[: self.m, : self.m] = H
        return DenseCurvature(full)

    @cached_property
    def padded(self) -> np.ndarray | sp.csr_array:
        """A with a row of zeros behind it, (m + 1, d)."""
        if isinstance(self.A, np.ndarray):
            return np.pad(self.A, ((0, 1), (0, 0)))
        rows = np.append(self.A.indptr, self.A.indptr[-1])
        return sp.csr_array((self.A.data, self.A.indices, rows), shape=(self.m + 1, self.A.shape[1]))

    @cached_property
    def behind(self) -> DenseCurvature | None:
        """The curvature of the columns behind the weights of the model, where there are any."""
        return None if self.tail is None else self._padded(self.tail_gram)


class _Rows:
    """The curvature of a master whose R is not quadratic, at some u: from the planes that are asked for alone."""

    def __init__(self, master: JointMaster, u: np.ndarray) -> None:
        assert master.regulariser is not None
        self.master, self.regulariser, self.u = master, master.regulariser, u

    def _apart(self, i: np.ndarray, j: np.ndarray) -> np.ndarray | sp.csr_array:
        """``a_i - a_j`` (k, d); the planes of origins, and of j = -1, are 0."""
        A, m = self.master.padded, self.master.m
        return A[np.minimum(i, m)] - A[np.where(j < 0, m, np.minimum(j, m))]

    def widths(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        widths = self.regulariser.widths(self._apart(i, j), self.u)
        return widths if self.master.behind is None else widths + self.master.behind.widths(i, j)

    def matrix(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        H = self.regulariser.curvature(self._apart(i, j), self.u)
        return H if self.master.behind is None else H + self.master.behind.matrix(i, j)

    def along(self, x: np.ndarray) -> float:
        row = (self.master.A.T @ x[: self.master.m])[None]
        behind = 0.0 if self.master.behind is None else self.master.behind.along(x)
        return float(self.regulariser.widths(row, self.u)[0]) + behind


def solve_jointly(
    ws: WorkingSet, blocks: np.ndarray, u: np.ndarray, w: np.ndarray, regulariser: Regulariser, n_weights: int,
    patience: int, tol: float | None = None, most: int | None = None,
) -> None:  # fmt: skip
    """Solve the master problem over all planes of ``blocks`` at once, the other blocks fixed, by projected Newton.

    To within ``tol`` in units of the dual; None for as exactly as rounding allows; after ``most`` steps in any case. u
    and w follow; planes that have had no weight for more than ``patience`` masters leave.
    """
    from maxmargin.solvers.working_set_kernel import forget

    store = ws.store
    blocks = blocks[store.held[blocks] > 0]
    if len(blocks) == 0:
        return
    with one_blas_thread():
        master = JointMaster(ws, blocks, u, n_weights, "quadratic" in regulariser.traits)
        # on orthants the master measures its distance by a decrement, which is of second order in the gradients
        if tol is None:
            most = 500 if most is None else most
            tol = max(abs(ws.linear), regulariser.conjugate(u), 1e-300) * (1e-12 if master.all_bounded else 1e-20)
        else:
            tol, most = tol if master.all_bounded else 1e-9 * tol, FEW_STEPS
        point, _ = master.solve(regulariser, tol, most=most)
    store.alpha[master.ids] = point.planes
    store.origin[master.origins] = point.origins
    ws.follow(u, w, point.moved, point.linear, regulariser)
    for i in blocks:
        forget(store, i, patience)


def best_bound(
    ws: WorkingSet, u: np.ndarray, divergence: TableDivergence, offset: float, centre: np.ndarray, gamma: float,
    tol: float, most: int,
) -> tuple[float, float, np.ndarray, np.ndarray]:  # fmt: skip
    """The best certified lower bound that the planes at hand can give, ``sum alpha b`` and u behind it, and its planes.

    That is the largest value of the dual of (P) itself over their multipliers; each block may give weight to its
    origin, so that blocks shrink apart from each other. The dual is finite for ``c + u >= 0`` only, hence a proximal
    term that is small against the reference, entry by entry; what is left outside is shrunk away with one t for all.
    Its weight falls in steps, each solved from the one before, from about the ``gamma`` that the planes come from.

    ``offset`` is that of the problem's linear term, ``centre`` (d,) any feasible theta close to the optimum, ``tol``
    is in units of the dual. Of more than ``most`` planes those with weight are taken, or, where these are more, too,
    one point for each block.
    """
    blocks = np.flatnonzero(ws.store.held > 0)
    best, q = (-np.inf, 0.0, u, np.empty(0, np.int32)), None
    if len(blocks) == 0:
        return best
    weighted = int((ws.store.alpha[ws.ids(blocks)] > 0).sum())
    merged, used = weighted > most, ws.n_planes > most >= weighted
    master = JointMaster(ws, blocks, u, len(centre), False, merged, used)
    weights = [share * divergence.reference for share in SMOOTHING]
    between = np.linspace(0.0, 1.0, 1 + max(0, round(np.log10(gamma / weights[0].max()))), endpoint=False)[1:]
    for weight in [gamma ** (1.0 - part) * weights[0] ** part for part in between] + weights:
        proximal = divergence.proximal(centre, weight)
        point, q = master.solve(proximal, tol if master.all_bounded else 1e-9 * tol, q, FEW_STEPS)
        linear = ws.linear + point.linear + offset
        value, scale = divergence.lower_bound(linear, u + point.moved)
        if value > best[0]:
            used = master.ids if merged else master.ids[point.planes > 0]
            best = value, scale * linear - offset, scale * (u + point.moved), used
    return best
