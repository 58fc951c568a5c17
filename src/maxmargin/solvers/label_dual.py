"""The sequential dual method for labels: what "auto" stands for where outputs are labels and features are sparse.

    max  sum alpha b - 1/2 |u|^2      u = sum_i sum_y beta_i(y) phi(x_i, y) - v

over ``beta_i(y) = -alpha_i(y) <= 0`` for wrong labels, ``beta_i`` of the true one their sum, at most C_i. A visit of an
example solves its whole block exactly (:func:`~maxmargin.solvers.label_dual_kernel.solve_block`), so no planes are
kept: the multipliers are one number for each example and label. Where outputs are sets of labels, ``beta_i`` is
``C_i (t_i - mu_i)`` with the true set t_i and a point mu_i of the hull of all outputs
(:func:`~maxmargin.solvers.label_dual_kernel.set_sweep`); planes of sets have the features of every label that differs,
so this pays with dense features too. A sweep visits the examples whose gap, when last seen,
was not far below the mean; the others are looked at again with the next certificate. Memory O(n K), a visit O(nnz K).

Crammer, Singer 2001; Keerthi, Sundararajan, Chang, Hsieh, Lin 2008, A sequential dual method for large scale
multi-class linear SVMs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from maxmargin.certificate import Certificate
from maxmargin.contracts import DualPoint, Fused, LabelBlocks, State
from maxmargin.contracts import Problem as AnyProblem
from maxmargin.formulations.problem import Problem
from maxmargin.kernel import clock
from maxmargin.oracles.counting import CountingOracle
from maxmargin.planes import aligned_zeros
from maxmargin.solvers import label_dual_kernel as lk
from maxmargin.solvers.base import OTHER_FAMILY, BaseSolver, Engine, is_doubtful, resolved
from maxmargin.solvers.saved import COUNT, FINITE, FLAG, NUMBER, SECONDS, SIZE, Saved
from maxmargin.solvers.state import InnerState, numbers_of

__all__ = ["LabelDual", "LabelEngine", "LabelState"]

MEMORY = 4 << 30  # bytes that multipliers may take
CLOSED = 0.05  # share of the mean gap below which an example is not visited until the next certificate
SETTLED = 0.02  # share of the mean gap of a sweep, as last seen, below which a block is looked at and left as it is
LOOK_AT = 0.1  # a certificate is due when the gaps seen in a sweep are this share of the last certificate's
MOST_SWEEPS, FIRST_SWEEPS = 15, 4  # between two certificates, and before the first
REFRESH_EVERY = 20  # certificates between two rebuilds of the weights from the multipliers
DENSE = 0.01  # share of non-zeros from which on blocks pull at the same weights: then jumps over all of them pay
NUMBERS = {
    "since": COUNT, "linear": FINITE, "reached": SIZE, "solver_seconds": SECONDS, "oracle.seconds": SECONDS,
    "certificates": COUNT, "oracle.oracle_calls": COUNT, "oracle.argmax_calls": COUNT, "least_gap": NUMBER,
    "without_gain": COUNT, "coarse": FLAG,
}  # fmt: skip


@dataclass
class LabelState(InnerState):
    """Where a run stands; arrays only, so it can be saved and resumed."""

    problem: Problem
    oracle: CountingOracle
    beta: np.ndarray  # float64 (n, K)
    u: np.ndarray  # float64 (n_columns,): the weights
    gap: np.ndarray  # float64 (n,): gap of each block when last seen
    rng: np.random.Generator
    linear: float = 0.0  # sum alpha b
    since: float = 0.0  # sweeps since the last certificate
    reached: float = np.inf  # gap of the last certificate
    certificates: int = 0
    solver_seconds: float = 0.0
    open: np.ndarray | None = None  # the examples to be visited next, once they are known

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on exactly here."""
        arrays = self.common_arrays() | {"beta": self.beta, "u": self.u, "gap": self.gap}
        return {k: np.array(v) for k, v in (arrays | {"label_numbers": numbers_of(self, NUMBERS)}).items()}


@dataclass(repr=False, eq=False)
class LabelDual(BaseSolver):
    """The solver behind "auto" for problems with :class:`~maxmargin.contracts.LabelBlocks`; it has no parameters."""

    handles = frozenset({"quadratic", "ramp"})

    @staticmethod
    def suits(problem: AnyProblem) -> bool:
        """Whether blocks can be solved label by label, hardly disturb each other, and fit into memory."""
        labels = problem.labels if problem.traits <= LabelDual.handles else None
        if labels is None or (labels.density > DENSE and labels.retreat is None):
            return False
        return 8 * problem.n_examples * labels.n_labels <= MEMORY

    def engine(self, problem: AnyProblem, random_state: int | np.random.Generator | None = None) -> LabelEngine:
        return LabelEngine(random_state)


@dataclass(eq=False)
class LabelEngine(Engine):
    """What the driver runs."""

    random_state: int | np.random.Generator | None = None

    handles = frozenset({"quadratic"})
    minimises = True

    def init(self, problem: Problem, warm: State | None = None) -> LabelState:
        """Start at the origin, or from the multipliers of an earlier run on the same examples, scaled to their C_i."""
        labels, n = _labels(problem), problem.n_examples
        rng = np.random.default_rng(self.random_state)
        beta = np.zeros((n, labels.n_labels))
        state = LabelState(
            problem, CountingOracle(problem.oracle), beta, aligned_zeros(problem.n_columns), np.full(n, np.inf), rng
        )
        if warm is not None:
            if not isinstance(warm, LabelState):
                raise ValueError(OTHER_FAMILY)
            if warm.problem.fingerprint != problem.fingerprint:
                raise ValueError("warm start needs the same examples, costs and rescaling; else set warm_start=False.")
            before = warm.problem.weight
            ratio = np.divide(problem.weight, before, out=np.zeros(n), where=before > 0)
            beta[:] = ratio[:, None] * warm.beta
            state.since = MOST_SWEEPS  # it may be good enough already: look first
        if warm is not None or problem.term is not None:
            self._rebuild(state)
        return state

    def certificate_due(self, state: LabelState) -> bool:
        """After some sweeps, or as soon as the gaps seen on the way have fallen enough."""
        if np.isinf(state.reached):
            return state.since >= FIRST_SWEEPS
        return state.since >= MOST_SWEEPS or (state.since > 0 and state.gap.sum() <= LOOK_AT * state.reached)

    def certificate(self, state: LabelState) -> Certificate:
        """Primal and dual at the present weights: one look at all examples."""
        state.certificates += 1
        if state.certificates % REFRESH_EVERY == 0:
            self._rebuild(state)
        losses = self._sweep(state, np.arange(state.problem.n_examples), solve=False)
        problem, half = state.problem, state.problem.regulariser.conjugate(state.u)
        value = half if problem.n_weights == len(state.u) else None  # else there are columns behind the weights
        certificate = Certificate(problem.primal(state.u, losses, value), problem.dual(state.linear, state.u, half))
        state.reached, state.since = max(certificate.gap, 0.0), 0.0
        state.note_gap(certificate.gap)
        if is_doubtful(state, certificate):
            certificate = resolved(state, certificate, float(state.problem.weight.max(initial=0.0)), 1.0)
        return certificate

    def finished(self, state: LabelState) -> str | None:
        """When rounding hides what is left to gain."""
        return "badly scaled" if state.coarse else None

    def step_calls(self, state: LabelState) -> int:
        """A sweep over the open examples, and a look at all."""
        return len(self._open(state)) + state.problem.n_examples

    def step(self, state: LabelState) -> None:
        """A sweep over the open examples, in random order."""
        examples = self._open(state)
        lk.shuffle(examples, state.rng.random(len(examples)))
        self._sweep(state, examples, solve=True)
        state.since += 1.0

    def dual_point(self, state: LabelState) -> DualPoint:
        """The present multipliers."""
        return DualPoint(state.linear, state.u, state.u)

    def weights(self, state: LabelState) -> np.ndarray:
        """The weights of the model (n_weights,)."""
        return state.u[: state.problem.n_weights]

    def begin_at(self, state: LabelState, w: np.ndarray) -> None:
        """Weights without multipliers are no point of the dual."""

    def move(self, state: LabelState, problem: Problem) -> None:
        """Go on with a problem that differs in its linear term only: u follows the shift."""
        for term, sign in ((state.problem.term, 1.0), (problem.term, -1.0)):
            if term is not None:
                state.u += sign * term.shift
        state.problem, state.reached, state.since = problem, np.inf, 0.0
        state.least_gap, state.without_gain = np.inf, 0
        state.gap[:], state.open = np.inf, None

    def from_arrays(self, problem: Problem, arrays: Mapping[str, np.ndarray]) -> LabelState:
        """Resume where :meth:`LabelState.to_arrays` left off."""
        saved, state = Saved.of(arrays), self.init(problem)
        saved.belongs_to(problem, same=saved["beta"].shape == state.beta.shape)
        state.beta[:] = saved.reals("beta", state.beta.shape)
        self._check_multipliers(state, saved)
        state.gap[:] = saved.reals("gap", state.gap.shape, SIZE)
        saved.generator("rng", state.rng)
        linear = state.linear
        saved.take_over("label_numbers", state, NUMBERS)
        if abs(state.linear - linear) > 1e-6 * (1.0 + abs(linear)):
            raise saved.refusal("label_numbers", "has a sum that is not that of its multipliers")
        return state

    # --- inside -------------------------------------------------------------------------------------------------------

    def _check_multipliers(self, state: LabelState, saved: Saved) -> None:
        """Refuse saved multipliers that are not feasible, or weights that are not theirs; else take the weights."""
        if not self._feasible(state):
            raise saved.refusal("beta", "holds multipliers that are not feasible")
        u = saved.reals("u", state.u.shape)
        self._rebuild(state)
        if np.abs(u - state.u).max(initial=0.0) > 1e-6 * (1.0 + float(np.abs(state.u).max(initial=0.0))):
            raise saved.refusal("u", "is not what the multipliers make")
        state.u[:] = u

    def _feasible(self, state: LabelState) -> bool:
        data, labels = _data(state)
        if labels.retreat is not None:
            return bool(lk.distance_from_hull(labels.retreat, data) <= 1e-9)
        room, beta = 1e-9 * (1.0 + state.problem.weight), state.beta
        rising = np.maximum(beta, 0.0)
        sums = (np.abs(beta.sum(axis=1)) <= room).all() and (rising.sum(axis=1) <= state.problem.weight + room).all()
        return bool(sums and ((beta > 0).sum(axis=1) <= 1).all())

    def _open(self, state: LabelState) -> np.ndarray:
        """Examples whose gap is not far below the mean; while some were never seen, these."""
        if state.open is None:
            mean = state.gap.mean()
            state.open = np.flatnonzero(np.isinf(state.gap) if np.isinf(mean) else state.gap > CLOSED * mean)
        return state.open

    def _sweep(self, state: LabelState, examples: np.ndarray, solve: bool) -> np.ndarray:
        """Visit or look at examples in turn; returns the losses seen on the way, 0 for the others."""
        begin, (data, labels) = clock(), _data(state)
        scratch = lk.scratch_of(labels.stride, labels.n_labels)
        if labels.retreat is None:
            least = np.inf
            if solve:
                mean = float(state.gap[examples].mean()) if len(examples) else 0.0
                least = SETTLED * mean if np.isfinite(mean) else 0.0
            lk.label_sweep(labels.scores, labels.add, labels.fetch, data, examples, least, scratch)
        else:
            hull = (labels.excess, labels.retreat)
            lk.set_sweep(labels.scores, labels.add, *hull, data, examples, int(solve), scratch)
        state.linear, state.open = float(data.linear[0]), None
        spent = clock() - begin
        state.oracle.count(len(examples), 0.0 if solve else spent)
        state.solver_seconds += spent if solve else 0.0
        return data.loss

    def _rebuild(self, state: LabelState) -> None:
        data, labels = _data(state)
        lk.label_rebuild(labels.scores, labels.add, data, labels.stride)
        state.linear = float(data.linear[0])
        if state.problem.shift is not None:
            state.u -= state.problem.shift


def _labels(problem: Problem) -> LabelBlocks:
    labels = problem.labels
    assert labels is not None  # LabelDual.suits
    return labels


def _data(state: LabelState) -> tuple[lk.Labelled, LabelBlocks]:
    """The arrays of the compiled loops."""
    fused, problem = state.oracle.fused(), state.problem
    assert isinstance(fused, Fused) and fused.kernel.labels is not None
    k, labels = fused.kernel, fused.kernel.labels
    losses, linear = np.zeros(problem.n_examples), np.array([state.linear])
    lam = float(fused.cost_weight)
    data = lk.Labelled(
        k.meta, k.ints, k.floats, labels.square, problem.weight, lam, state.beta, state.u, linear, state.gap, losses
    )
    return data, labels
