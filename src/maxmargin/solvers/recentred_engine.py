"""L1 penalties by the proximal point method on the dual engine, whose centre moves after every sweep.

    (P_n)   min_w  |w|_1 + |w - w^n|^2 / (2 t) + sum_i C_i loss_i(w)          solved through its dual

    (D_n)   max_alpha  sum alpha b - t/2 |soft(sum alpha a + w^n / t)|^2 + |w^n|^2 / (2 t)

where soft takes 1 off each entry, towards 0. A linear program has a dual of hard walls, ``|sum alpha a|_j <= 1``, along
which multipliers of single examples cannot move; (D_n) is smooth, and coordinate ascent on it is as quick as with
``penalty="l2"``. Multipliers and planes do not depend on the centre, so it need not be found exactly: it moves after
each sweep, which is the method of multipliers for the linear program with one sweep in place of each minimisation.

Bounds are those of the whole problem. Since ``w^{n+1} - w^n = t (u - sign w^{n+1})`` where weights are not 0, the mean
of ``u = sum alpha a`` over k sweeps is outside of the walls by ``|w^{n+k} - w^n| / (k t)`` at most: averaged
multipliers, scaled to be feasible, prove more than the last ones. Rockafellar 1976, Augmented Lagrangians and
applications of the proximal point algorithm in convex programming; Wang, Shawe-Taylor 2009 (the linear program).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from maxmargin.certificate import Certificate
from maxmargin.contracts import DualPoint, State
from maxmargin.formulations.absolute import ElasticNet
from maxmargin.formulations.problem import LinearTerm, Problem
from maxmargin.kernel import clock
from maxmargin.planes import Planes
from maxmargin.solvers.base import OTHER_FAMILY, Engine
from maxmargin.solvers.blocks import Blocks
from maxmargin.solvers.engine import DualEngine
from maxmargin.solvers.linear_programs.rows import Known, ProgramState
from maxmargin.solvers.proof import Losses, agree, check_around
from maxmargin.solvers.saved import COUNT, FLAG, NUMBER, SECONDS, Saved
from maxmargin.solvers.state import DualState, OuterState, Spent, numbers_of

__all__ = ["RecentredEngine", "RecentredState"]

SHARE = 2.0  # of the weight that a plane wants for itself, b |a|_max / |a|^2: the scale t
FIRST = 50  # examples whose planes give the first scale
WINDOW = 0.25  # share of all sweeps after which a new average begins
REPORT_EVERY = 100  # looks without a better bound between two reports
NUMBERS = {
    "scale": (1e-150, 1e150), "best_primal": NUMBER, "bound": NUMBER, "certified": FLAG, "sweeps": COUNT,
    "looks": COUNT, "improved": FLAG, "unchanged": COUNT, "own_seconds": SECONDS,
}  # fmt: skip


@dataclass
class RecentredState(OuterState, ProgramState):
    """Where a run stands; arrays and numbers only, so it can be saved and resumed."""

    problem: Problem  # the linear program; that of ``inner`` has the proximal term
    inner: DualState
    centre: np.ndarray
    best: np.ndarray  # the weights of least primal value so far
    proof: tuple[float, np.ndarray]  # sum alpha b and sum alpha a behind ``bound``
    scale: float
    best_primal: float = np.inf
    bound: float = -np.inf  # the best certified lower bound
    certified: bool = True
    sweeps: int = 0
    looks: int = 0  # at all examples
    improved: bool = False  # whether a bound has improved since the last certificate
    unchanged: int = 0  # looks since one has
    own_seconds: float = 0.0
    touched: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))  # weights that have ever not been 0
    # sums over the sweeps since two moments, the longer average first: sum alpha a (2, d); and how many there were,
    # and sum alpha b (2, 2)
    means: np.ndarray = field(default_factory=lambda: np.zeros((2, 0)))
    counts: np.ndarray = field(default_factory=lambda: np.zeros((2, 2)))

    rounds = None

    def spent(self) -> Spent:
        return super().spent().plus(Spent(solver=self.own_seconds))

    @property
    def present(self) -> tuple[float, np.ndarray]:
        """``sum alpha b`` and ``sum alpha a`` now."""
        assert self.inner.problem.shift is not None
        return self.inner.working_set.linear, self.inner.u + self.inner.problem.shift

    @property
    def known(self) -> Known:
        """The planes with a multiplier, and the weights that are not 0 there or at the best point."""
        A, b, alpha, block = self.inner.working_set.planes()
        held = np.flatnonzero(alpha > 0.0)
        A, b, alpha, block = A[held], b[held], alpha[held], block[held].astype(np.int64)
        indptr, indices = A.indptr.astype(np.int64), A.indices.astype(np.int32)
        planes = Planes(indptr, indices, A.data, b, block, np.full(len(b), np.inf), A.shape[1])
        idle, now = np.zeros(len(b), np.int64), self.inner.w
        return Known(planes, alpha, idle, self.best, now, (now != 0.0) | (self.best != 0.0))

    def average(self) -> None:
        """Let a sweep into the averages; the longer one is replaced when the other is long enough."""
        linear, u = self.present
        self.sweeps += 1
        self.means += u
        self.counts += (1.0, linear)
        if self.counts[1, 0] >= WINDOW * self.sweeps:
            self.means[0], self.counts[0] = self.means[1], self.counts[1]
            self.means[1], self.counts[1] = 0.0, 0.0

    def candidates(self) -> list[tuple[float, np.ndarray]]:
        """Multipliers that may prove much: the present ones and their averages."""
        means = [(sums[1] / sums[0], u / sums[0]) for u, sums in zip(self.means, self.counts, strict=True) if sums[0]]
        return [self.present, *means]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on exactly here."""
        arrays = self.inner_arrays() | {"centre": self.centre, "best": self.best, "touched": self.touched}
        arrays |= {"means": self.means, "counts": self.counts, "recentred_numbers": numbers_of(self, NUMBERS)}
        arrays |= {"proof/linear": np.array(self.proof[0]), "proof/u": self.proof[1]}
        return {name: np.array(array) for name, array in arrays.items()}

    def restore(self, saved: Saved) -> None:
        """Take over what :meth:`to_arrays` wrote beside the state inside and the centre; each number must be true."""
        problem, shape = self.problem, (self.problem.n_columns,)
        self.best, self.touched = saved.weights("best", problem, shape), saved.array("touched", np.bool_, shape)
        self.means, self.counts = saved.reals("means", (2, *shape)), saved.reals("counts", (2, 2))
        self.proof = float(saved.reals("proof/linear", ())), saved.reals("proof/u", shape)
        saved.take_over("recentred_numbers", self, NUMBERS)
        losses = Losses.around(saved, problem, Blocks(None), self.best)
        for name, (linear, u) in zip(("proof/u", "means", "means"), [self.proof, *self.candidates()[1:]], strict=False):
            if losses.sum_exceeded(linear, u):
                raise saved.refusal(name, "claims planes that lie above the losses")
        objective, proven = problem.primal(self.best, losses.points[0][1]), problem.lower_bound(*self.proof)
        if np.isfinite(self.best_primal) and not agree(self.best_primal, objective):
            raise saved.refusal("recentred_numbers", f"has the primal {self.best_primal}, the weights {objective}")
        if np.isfinite(self.bound) and not agree(self.bound, proven, abs(objective)):
            raise saved.refusal("recentred_numbers", f"has the dual {self.bound} where {proven} is proven")


@dataclass(eq=False)
class RecentredEngine(Engine):
    """What the driver runs: the loop around the dual engine."""

    inner: DualEngine  # works on (D_n)
    scale: float | None = None  # t; None: from the planes

    handles = frozenset({"l1", "signs"})
    minimises, free_certificates = True, True  # a certificate tells what the last step has found

    # --- the contract with the driver ---------------------------------------------------------------------------------

    def init(self, problem: Problem, warm: State | None = None) -> RecentredState:
        """Start at zero weights, or from the multipliers and weights of an earlier run on the same examples."""
        d = problem.n_columns
        if warm is not None and not isinstance(warm, RecentredState):
            raise ValueError(OTHER_FAMILY)
        centre = np.zeros(d) if warm is None else problem.feasible(warm.best)
        scale = self.scale or (1.0 if warm is None else warm.scale)
        inner = self.inner.init(_around(problem, centre, scale), None if warm is None else warm.inner)
        state = RecentredState(problem, inner, centre, centre.copy(), (0.0, np.zeros(d)), scale)
        state.touched, state.means, state.improved = centre != 0.0, np.zeros((2, d)), warm is not None
        if warm is not None:
            inner.w[:] = centre  # where the first look is
            before, after = (x[warm.problem.weight > 0.0] for x in (warm.problem.weight, problem.weight))
            ratio = float((after / before).max(initial=0.0))
            if np.allclose(
                after, ratio * before, rtol=1e-12, atol=0.0
            ):  # then the old multipliers times it are feasible
                state.proof = (ratio * warm.proof[0], ratio * warm.proof[1])
                state.bound = problem.lower_bound(*state.proof)
        else:
            first = inner.oracle.planes(centre, np.arange(min(FIRST, problem.n_examples)))
            self._rescale(state, first.to_csr(), first.b)
            self._move_inner(state)
        return state

    def certificate_due(self, state: RecentredState) -> bool:
        """Whether a bound has improved; from time to time also when none has."""
        return state.improved or (state.unchanged > 0 and state.unchanged % REPORT_EVERY == 0)

    def certificate(self, state: RecentredState) -> Certificate:
        """The least objective and the best lower bound so far. Only the first costs oracle calls."""
        if state.looks == 0:
            self._look(state)
            self._move_inner(state)
        state.improved = False
        return Certificate(state.best_primal, state.bound, state.certified)

    def step_calls(self, state: RecentredState) -> int:
        """Oracle calls of the next step and the look behind it."""
        return self.inner.step_calls(state.inner)

    def step(self, state: RecentredState) -> None:
        """A sweep; the centre follows; when a look at all examples is due then, bounds."""
        inner = state.inner
        looked = inner.pending is not None
        self.inner.step(inner)
        begin = clock()
        state.average()
        state.touched |= inner.w != 0.0
        if looked:
            A, b, alpha, _ = inner.working_set.planes()
            self._rescale(state, A[alpha > 0.0], b[alpha > 0.0])
        if state.looks > 0:
            state.centre = inner.w.copy()
            self._move_inner(state)
        state.own_seconds += clock() - begin
        if self.inner.certificate_due(inner):
            self._look(state)

    def weights(self, state: RecentredState) -> np.ndarray:
        """The best weights so far (n_weights,)."""
        return state.best[: state.problem.n_weights]

    def finished(self, state: RecentredState) -> str | None:
        """When rounding hides what is left to gain."""
        return self.inner.finished(state.inner)

    def conclude(self, state: RecentredState, certificate: Certificate, code: str) -> Certificate:
        """Of a resumed run, the planes behind the lower bound are looked at once more."""
        check_around(state.inner, state.problem, state.inner.w)
        return certificate

    def from_arrays(self, problem: Problem, arrays: Mapping[str, np.ndarray]) -> RecentredState:
        """Resume where :meth:`RecentredState.to_arrays` left off."""
        saved, d = Saved.of(arrays), problem.n_columns
        if saved["centre"].shape != (d,):
            saved.belongs_to(problem, same=False, needs=", loss and rescaling")
        centre = saved.weights("centre", problem, (d,))
        scale = float(saved.numbers("recentred_numbers", NUMBERS)[0])
        inner = self.inner.from_arrays(_around(problem, centre, scale), saved.part("inner"))
        state = RecentredState(problem, inner, centre, centre, (0.0, np.zeros(d)), scale)
        state.restore(saved)
        return state

    # --- of outer loops -----------------------------------------------------------------------------------------------

    def dual_point(self, state: RecentredState) -> DualPoint:
        """The multipliers that have proven most, and the best weights."""
        return DualPoint(*state.proof, state.best)

    def begin_at(self, state: RecentredState, w: np.ndarray) -> None:
        """Begin at given weights."""
        state.centre = np.zeros(state.problem.n_columns)
        state.centre[: len(w)] = w
        state.centre = state.problem.feasible(state.centre)
        self._move_inner(state)
        state.inner.w[:] = state.centre

    def move(self, state: RecentredState, problem: Problem) -> None:
        """Outer loops ask for this; none takes linear programs."""
        raise ValueError('penalty="l1" has no ramp and no latent outputs; use loss="hinge".')

    # --- inside -------------------------------------------------------------------------------------------------------

    def _look(self, state: RecentredState) -> None:
        """Ask all examples at the present weights: an upper bound, and lower bounds from the multipliers so far."""
        problem, inner = state.problem, state.inner
        found = self.inner.certificate(inner)  # of (P_n)
        begin = clock()
        away = inner.w - state.centre
        here = found.primal - 0.5 / state.scale * float(away @ away)
        better = here < state.best_primal or state.looks == 0
        if better:
            state.best, state.best_primal, state.certified = inner.w.copy(), here, found.certified
        for linear, u in state.candidates():
            value = problem.lower_bound(linear, u)
            if value > state.bound:
                state.bound, state.proof, better = value, (linear, u), True
        state.looks += 1
        state.improved, state.unchanged = state.improved or better, 0 if better else state.unchanged + 1
        state.own_seconds += clock() - begin

    def _rescale(self, state: RecentredState, A: sp.csr_array, b: np.ndarray) -> None:
        """Find t anew: a plane alone is satisfied by ``w = a b / |a|^2``. Planes grow shorter as a run goes on."""
        rows = np.flatnonzero((np.diff(A.indptr) > 0) & (b > 0.0))
        if self.scale is not None or len(rows) == 0:
            return
        A = A[rows]
        squares, largest = np.add.reduceat(A.data**2, A.indptr[:-1]), np.maximum.reduceat(np.abs(A.data), A.indptr[:-1])
        wanted = b[rows][squares > 0.0] * largest[squares > 0.0] / squares[squares > 0.0]
        if len(wanted):
            state.scale = float(np.clip(SHARE * np.median(wanted), 1e-100, 1e100))

    def _move_inner(self, state: RecentredState) -> None:
        """Let the engine go on around the present centre."""
        self.inner.move(state.inner, _around(state.problem, state.centre, state.scale))


def _around(problem: Problem, centre: np.ndarray, scale: float) -> Problem:
    """(P_n): the elastic net and a linear term."""
    none = Planes.from_rows([], np.empty(0), np.empty(0), np.empty(0), problem.n_columns)
    term = LinearTerm(-centre / scale, 0.5 / scale * float(centre @ centre), none)
    return replace(problem, regulariser=ElasticNet(problem.positive, scale), term=term)
