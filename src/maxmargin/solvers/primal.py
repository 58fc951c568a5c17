"""The primal family: one example, or a few, at a time, one sparse step, no working set.

    w <- (1 - eta_t) w + eta_t n C_i a        subgradient (Pegasos, SGD), when the loss of example i is positive
    w <- w + a                                perceptron, when the prediction is wrong
    w <- w + min(C_i, loss / |a|^2) a         MIRA / passive-aggressive

Scaling and averaging are lazy (:mod:`maxmargin.solvers.primal_kernel`): a step costs the non-zeros of its plane. All of
them build w as a combination of planes with weights >= 0, so each run carries a dual point: with the multipliers of
example i adding up to zeta_i, scaling everything by ``s = min(1, min_i C_i / zeta_i)`` makes it feasible, and

    D = max over 0 <= t <= s of   t sum alpha b - R*(t u)

is a lower bound of the objective. So every run ends with a certificate, also that of an average.

Where weights must be >= 0, the steps move that combination u, and the weights are ``w = P(u)``, its negative part cut
off: with steps 1/t that is regularised dual averaging. (Xiao 2010, Dual averaging methods for regularized stochastic
learning and online optimization.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from maxmargin import contracts
from maxmargin.certificate import Certificate
from maxmargin.contracts import DualPoint, State
from maxmargin.formulations.problem import Problem
from maxmargin.kernel import clock
from maxmargin.oracles.counting import CountingOracle, all_losses
from maxmargin.planes import aligned_zeros, weighted_sum
from maxmargin.solvers import primal_kernel as pk
from maxmargin.solvers.base import OTHER_FAMILY, BaseSolver, Engine
from maxmargin.solvers.blocks import Blocks
from maxmargin.solvers.primal_pass import SCHEDULES, Steps, subtracted
from maxmargin.solvers.primal_shards import PrimalShards
from maxmargin.solvers.proof import Losses
from maxmargin.solvers.saved import COUNT, FINITE, FLAG, SECONDS, SIZE, Saved
from maxmargin.solvers.settings import AVERAGES, check_whole, check_words
from maxmargin.solvers.state import InnerState, numbers_of

__all__ = ["PrimalEngine", "PrimalSolver", "PrimalState", "Rule"]

COUNTS = {"oracle.oracle_calls": COUNT, "oracle.argmax_calls": COUNT}
RUN = {
    "since": COUNT, "passes": COUNT, "clean": FLAG, "solver_seconds": SECONDS, "oracle.seconds": SECONDS,
    "radius": SIZE,
}  # fmt: skip
KEPT = {
    "scale": (pk.SMALL**2, pk.SMALL**-2), "total": (0.0, FINITE[1]), "rho": (0.0, FINITE[1]), "steps": COUNT,
    "square": (0.0, FINITE[1]), "updates": COUNT,
}  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """A setting of the primal engine; what is not described here is as in the solvers."""

    method: str = "subgradient"  # or "perceptron", "mira"
    # (kind, eta0, t0, power): step sizes 1 / (t + t0), eta0 or eta0 / t^power, for t = 1, 2, ...
    schedule: tuple[str, float, float, float] = ("inverse", 1.0, 0.0, 0.5)
    project: bool = False  # whether the weights are kept in a ball that is known to hold the optimum
    augmented: bool = True  # whether outputs are found with the cost added, or are plain predictions
    averaging: str | None = None
    sampling: str = "permutation"
    certificate_every: float = 10.0
    passes: float | None = None  # after which the solver ends by itself
    shards: int = 1  # that pass over their examples at once, from the same weights
    batch: int = 1  # examples whose planes make one step

    def __post_init__(self) -> None:
        kind, eta0, t0, power = self.schedule
        check_words("schedule", kind, SCHEDULES)
        for name, value in (("eta0", eta0), ("t0", t0), ("power", power)):
            if not (isinstance(value, (int, float, np.number)) and np.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a finite number >= 0, got {value!r}.")
        if eta0 == 0:
            raise ValueError("eta0 must be positive: steps of size 0 learn nothing.")
        check_words("sampling", self.sampling, ("permutation", "random"))
        check_whole(self, {"shards": 1, "batch": 1}, optional=())
        check_words("averaging", self.averaging, AVERAGES)
        for name in ("passes", "certificate_every"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float, np.number)) and value > 0):
                raise ValueError(f"{name} must be a positive number, got {value!r}.")

    def count(self, n_examples: int) -> int:
        """The number of shards for so many examples: never more than there are."""
        return max(1, min(self.shards, n_examples))


@dataclass
class PrimalState(InnerState):
    """Where a run stands; arrays only, so it can be saved and resumed."""

    problem: Problem
    oracle: CountingOracle
    vector: np.ndarray
    mean: np.ndarray
    numbers: np.ndarray
    rng: np.random.Generator
    largest: np.ndarray  # largest cost of each example, for the radius
    radius: float = np.inf
    rest: np.ndarray | None = None  # what the weights still hold of earlier linear terms, at the last change of them
    earlier: tuple[float, np.ndarray] | None = None  # the half before, of a tail average: weight and sum
    since: float = 0.0
    passes: float = 0.0
    clean: bool = False  # whether the last pass made no update
    solver_seconds: float = 0.0
    shards: PrimalShards | None = None  # once there are any

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on exactly here."""
        arrays = self.common_arrays() | {"vector": self.vector, "mean": self.mean, "numbers": self.numbers}
        arrays |= {"largest": self.largest, "counts": numbers_of(self, COUNTS), "run": numbers_of(self, RUN)}
        if self.rest is not None:
            arrays["rest"] = self.rest
        if self.earlier is not None:
            arrays |= {"earlier/weight": np.array(self.earlier[0]), "earlier/sum": self.earlier[1]}
        return {name: np.array(array) for name, array in arrays.items()}


@dataclass(eq=False)
class PrimalEngine(Engine):
    """A solver of the primal family.

    The vector of a state is longer than the weights; see :mod:`maxmargin.solvers.primal_kernel`.
    """

    rule: Rule
    random_state: int | np.random.Generator | None = None

    passes_per_round = 10.0  # of CCCP: the gap closes too slowly to wait for it
    handles = frozenset({"quadratic", "signs", "squared"})

    @property
    def minimises(self) -> bool:
        """Whether the objective of the problem is what its steps lower."""
        return self.rule.method == "subgradient"

    # --- the contract with the driver ---------------------------------------------------------------------------------

    def init(self, problem: Problem, warm: State | None = None) -> PrimalState:
        """Start at zero, or go on from an earlier run on the same examples."""
        columns = problem.n_weights + 2 * problem.n_examples + 2
        mean, rng = np.zeros(columns if self.rule.averaging else 0), np.random.default_rng(self.random_state)
        oracle, vector, largest = CountingOracle(problem.oracle), aligned_zeros(columns), np.zeros(problem.n_examples)
        state = PrimalState(problem, oracle, vector, mean, np.zeros(pk.NUMBERS), rng, largest)
        state.numbers[pk.SCALE] = 1.0
        if self.rule.project:  # at zero weights the most violating output is the one of largest cost
            state.largest[:] = np.maximum(all_losses(state.oracle, np.zeros(problem.n_columns)), 0.0)
            self._set_radius(state)
        if warm is not None:
            self._continue(state, warm)
        return state

    def certificate_due(self, state: PrimalState) -> bool:
        """Every ``certificate_every`` passes."""
        return state.since >= self.rule.certificate_every

    def certificate(self, state: PrimalState) -> Certificate:
        """Primal and dual at the present weights (or the average). One oracle pass."""
        begin, oracle_before = clock(), state.oracle.seconds
        problem = state.problem
        point = self.dual_point(state)
        if state.shards is None:
            losses = all_losses(state.oracle, point.w)
        else:  # whose workers have the examples
            losses = state.shards.losses(state.oracle, point.w)
        certified = bool(np.isfinite(losses[problem.weight > 0]).all())
        certificate = Certificate(problem.primal(point.w, losses), problem.dual(point.linear, point.u), certified)
        state.since = 0.0
        state.solver_seconds += clock() - begin - (state.oracle.seconds - oracle_before)
        return certificate

    def step_calls(self, state: PrimalState) -> int:
        """Oracle calls of the next pass and of the certificate behind it."""
        return 2 * state.problem.n_examples

    def step(self, state: PrimalState) -> None:
        """One pass."""
        begin, n, rng = clock(), state.problem.n_examples, state.rng
        before, plans = state.numbers[pk.UPDATES], []
        for part in np.array_split(np.arange(n), self.rule.count(n)):
            m = len(part)
            plans.append(part[rng.permutation(m) if self.rule.sampling == "permutation" else rng.integers(0, m, m)])
        if len(plans) == 1:
            steps = Steps(self.rule, state.problem, planes=subtracted(state.problem))
            asked = steps.take(plans[0], state.radius, state.vector, state.mean, state.numbers)
        else:
            if state.shards is None:
                state.shards = PrimalShards(self.rule, state.problem, [len(plan) for plan in plans])
            asked = state.shards.pass_over(state, plans)
        spent = asked.noted(state.oracle)
        state.clean = bool(state.numbers[pk.UPDATES] == before)
        state.since += 1.0
        state.passes += 1.0
        self._refresh(state)
        state.solver_seconds += clock() - begin - spent

    def dual_point(self, state: PrimalState) -> DualPoint:
        """A feasible dual point and the weights that the run would end with."""
        vector = self._present(state)
        problem, d, n = state.problem, state.problem.n_weights, state.problem.n_examples
        u = np.zeros(problem.n_columns)
        u[:d] = vector[:d]
        w = problem.regulariser.weights(u).copy()
        zeta, linear = vector[d : d + n], float(vector[d + n])
        if problem.term is not None:
            planes = problem.term.planes
            u += weighted_sum(planes, vector[d + n + 1 + planes.example])
        if state.rest is not None:
            u[:d] -= vector[-1] * state.rest
        if problem.lift is not None:
            u[d:] = zeta * problem.lift
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(zeta > 0, problem.total / zeta, np.inf)
        most = np.inf if problem.squared else min(1.0, float(room.min(initial=np.inf)))
        v = np.zeros(len(u)) if problem.shift is None else problem.shift
        positive = problem.regulariser.positive
        part = u if positive is None else np.where(positive & (u < v), 0.0, u)  # what R* sees of it
        square = float(part @ part)  # the best feasible multiple of the point: the dual is a parabola along it
        t = float(np.clip((linear + part @ v) / square, 0.0, most)) if square > 0 else min(most, 1.0)
        return DualPoint(t * linear, t * u - v, w)

    def weights(self, state: PrimalState) -> np.ndarray:
        """The weights of the model (n_weights,)."""
        return state.problem.regulariser.feasible(self._present(state)[: state.problem.n_weights]).copy()

    def finished(self, state: PrimalState) -> str | None:
        """Methods without an objective end after their passes, or when a pass makes no update."""
        most = self.rule.passes
        return "finished" if most is not None and (state.passes >= most or state.clean) else None

    def move(self, state: PrimalState, problem: Problem) -> None:
        """Go on with a problem that differs in its linear term only, from the same weights.

        With ``w = u - sum_i m_i a_i + c rest`` over the planes a_i behind the shift (multipliers m_i, c in columns of
        the vector), new planes change the rest and nothing else; it fades like everything that steps shrink.
        """
        d, n = problem.n_weights, problem.n_examples
        vector, numbers = state.vector, state.numbers
        vector *= numbers[pk.SCALE]
        before, after = subtracted(state.problem), subtracted(problem)
        rest = np.zeros(d) if state.rest is None else vector[-1] * state.rest
        if before is not None:
            rest -= weighted_sum(before, vector[d + n + 1 + before.example])[:d]
        vector[d + n + 1 :] = 0.0
        if after is not None:
            rest += weighted_sum(after, problem.weight[after.example])[:d]
            vector[d + n + 1 + after.example] = problem.weight[after.example]
        state.rest, vector[-1] = rest, 1.0
        numbers[pk.SCALE], numbers[pk.TOTAL], numbers[pk.RHO] = 1.0, 0.0, 0.0
        numbers[pk.SQUARE] = _square(problem, vector)
        state.mean[:] = 0.0
        state.earlier = None
        state.problem = problem
        if self.rule.project:
            self._set_radius(state)

    def begin_at(self, state: PrimalState, w: np.ndarray) -> None:
        """Begin at given weights, which count like those of one pass."""
        d = state.problem.n_weights
        state.vector[:d] = w[:d]
        state.rest, state.vector[-1] = w[:d].copy(), 1.0
        state.numbers[pk.STEPS], state.numbers[pk.SQUARE] = state.problem.n_examples, _square(state.problem, w)

    def from_arrays(self, problem: Problem, arrays: Mapping[str, np.ndarray]) -> PrimalState:
        """Resume where :meth:`PrimalState.to_arrays` left off."""
        saved, state = Saved.of(arrays), PrimalEngine(Rule(averaging=self.rule.averaging)).init(problem)
        d, n, columns = problem.n_weights, problem.n_examples, len(state.vector)
        saved.belongs_to(problem, same=saved["vector"].shape == (columns,))
        state.vector[:] = saved.reals("vector", (columns,))
        state.mean = saved.reals("mean", state.mean.shape)
        state.numbers[:] = saved.numbers("numbers", KEPT)
        if 0.0 < state.numbers[pk.RHO] < 1.0:
            raise saved.refusal("numbers", "has an average of less than one step")
        if state.numbers[pk.RHO] and not len(state.mean):
            raise saved.refusal("numbers", "has an average, and this solver makes none")
        state.largest[:] = saved.reals("largest", (n,), (0.0, FINITE[1]))
        saved.generator("rng", state.rng)
        saved.take_over("counts", state, COUNTS)
        saved.take_over("run", state, RUN)
        if "rest" in saved:
            state.rest = saved.reals("rest", (d,))
        if "earlier/sum" in saved:
            weight = float(saved.reals("earlier/weight", (), (1.0, COUNT[1] ** 2)))
            state.earlier = (weight, saved.reals("earlier/sum", (columns,)))
        zeta, (linear, u, w) = self._present(state)[d : d + n], self.dual_point(state)
        if zeta.min(initial=0.0) < 0.0:
            raise saved.refusal("vector", "holds multipliers below 0")
        losses = Losses.around(saved, problem, Blocks(None), w, problem.dual(linear, u))
        if losses.sum_exceeded(linear, u if problem.shift is None else u + problem.shift):
            raise saved.refusal("vector", "claims planes that lie above the losses")
        return state

    def adopt(self, problem: Problem, earlier: PrimalState | None) -> PrimalState:
        """Go on with further examples: weights, averages and step sizes carry on, the dual point does not."""
        state = self.init(problem)
        if earlier is None:
            return state
        d = problem.n_weights
        state.vector[:d] = earlier.vector[:d]
        state.mean[:d] = earlier.mean[:d]
        state.numbers[: pk.NUMBERS] = earlier.numbers
        state.rng, state.passes = earlier.rng, earlier.passes
        if earlier.earlier is not None:
            weight, total = earlier.earlier
            state.earlier = (weight, np.concatenate([total[:d], np.zeros(len(state.vector) - d)]))
        return state

    # --- inside -------------------------------------------------------------------------------------------------------

    def _present(self, state: PrimalState) -> np.ndarray:
        """The extended vector that counts: the present one, or the average."""
        numbers = state.numbers
        if numbers[pk.RHO] == 0.0:
            return numbers[pk.SCALE] * state.vector if state.earlier is None else state.earlier[1] / state.earlier[0]
        total, weight = state.mean + numbers[pk.TOTAL] * state.vector, float(numbers[pk.RHO])
        if state.earlier is not None:
            total, weight = total + state.earlier[1], weight + state.earlier[0]
        return total / weight

    def _refresh(self, state: PrimalState) -> None:
        """Once a pass: shed the rounding errors of the norm, and let a tail average begin anew when it is time."""
        state.numbers[pk.SQUARE] = _square(state.problem, state.vector)
        weight = float(state.numbers[pk.RHO])
        if self.rule.averaging == "tail" and weight > 0.5 * state.numbers[pk.STEPS]:
            state.earlier = (weight, state.mean + state.numbers[pk.TOTAL] * state.vector)
            state.mean[:] = 0.0
            state.numbers[pk.TOTAL] = state.numbers[pk.RHO] = 0.0

    def _set_radius(self, state: PrimalState) -> None:
        """A ball that holds the optimum: |w*|^2 <= sum_i C_i L_i, with L_i the largest cost of example i.

        Equal primal and dual values give ``|w*|^2 + w* . v + sum C_i h_i(w*) = sum alpha b <= sum C_i L_i``; for the
        hinge v = 0, and for a CCCP majorant ``h_i(w*) >= - w* . a_i`` for the plane a_i behind v, so the middle terms
        are not negative together. Squared slacks: |w*|^2 <= sum_i C_i L_i^2, from P(w*) <= P(0).
        """
        power = 2 if state.problem.squared else 1
        state.radius = float(np.sqrt(state.problem.weight @ state.largest**power))

    def _continue(self, state: PrimalState, warm: State) -> None:
        if not isinstance(warm, PrimalState):
            raise ValueError(OTHER_FAMILY)
        same = len(warm.vector) == len(state.vector) and np.array_equal(warm.problem.weight, state.problem.weight)
        if not (same and warm.problem.fingerprint == state.problem.fingerprint):
            raise ValueError("warm start needs the same examples, costs and C as before; else set warm_start=False.")
        state.vector[:] = warm.vector
        state.numbers[:] = warm.numbers
        state.rest = warm.rest
        if len(state.mean) == len(warm.mean):
            state.mean[:] = warm.mean
            state.earlier = warm.earlier
        else:
            state.numbers[pk.TOTAL] = state.numbers[pk.RHO] = 0.0


def _square(problem: Problem, vector: np.ndarray) -> float:
    """|P(u)|^2 of the weights in front of a vector."""
    own = problem.regulariser.feasible(vector[: problem.n_weights])
    return float(own @ own)


class PrimalSolver(BaseSolver):
    """A named setting of the primal engine."""

    handles = frozenset({"quadratic", "signs", "squared", "ramp", "latent"})
    incremental = True

    def rule(self) -> Rule:
        """The setting."""
        return self.setting(Rule)

    def count(self, n_examples: int) -> int:
        return self.rule().count(n_examples)

    def engine(self, problem: contracts.Problem, random_state: int | np.random.Generator | None = None) -> PrimalEngine:
        """The primal engine with this setting."""
        return PrimalEngine(self.rule(), random_state)
