"""The concave-convex procedure: a ramp problem as a sequence of convex ones, around any solver of those.

A round linearises the concave part at the present weights and minimises the majorant (formulations/ramp.py):

    v <- sum_i C_i a_i over the concave set at w          (one argmax per example)
    w <- argmin  R(w) + w . v + sum_i C_i h_i(w)          (any solver, from where it stands)

For a dual solver ``w = u - v`` with ``u = sum alpha a``, so w follows v when a round begins: ``w + v_old - v_new``. The
old term must be added back; without it the weights run away from the third round on.

The certificate of a ramp fit is one of *stationarity*. Its primal is J(w) itself, its dual the dual value of the next
majorant, the one that touches J at w: no step of the procedure from here can lower J by more than the gap. Both come
from one more argmax per example; for R = 1/2 |w|^2 the gap is that of the round plus 1/2 |v_new - v_old|^2.

A round ends when the gap of its convex problem is small beside what the next round will change, or after a given number
of passes; never before J is at most what it was at the end of the round before. So J never increases.

Yuille, Rangarajan 2003; Collobert, Sinz, Weston, Bottou 2006; Mancev 2015 for structures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np

from maxmargin.certificate import Certificate, WeakDualityError
from maxmargin.contracts import InnerSolver, State
from maxmargin.formulations.ramp import Linearisation, RampProblem
from maxmargin.kernel import clock
from maxmargin.oracles.counting import CountingOracle, all_losses
from maxmargin.solvers.blocks import Blocks
from maxmargin.solvers.proof import Claims, Losses, agree
from maxmargin.solvers.saved import COUNT, FINITE, FLAG, NUMBER, SECONDS, Saved
from maxmargin.solvers.state import SPENT, OuterState, Spent, numbers_of, plane_arrays

__all__ = ["CCCP", "CCCPState"]

ROUND_SHARE = 0.5  # a round ends when its gap is at most this share of what the next one will change
SLACK = 1e-9  # relative rounding error that J is granted when it is said not to increase
ROUND_COLUMNS = ("round", "pass", "objective", "concave", "gap")
NUMBERS = {
    "objective": NUMBER, "due": FLAG, "begun": COUNT, "solver_seconds": SECONDS, "concave.seconds": SECONDS,
    "concave.oracle_calls": COUNT, "concave.argmax_calls": COUNT,
}  # fmt: skip


@dataclass
class CCCPState(OuterState):
    """Where the procedure stands. In ``rounds`` concave is the size of the concave set, gap that of stationarity."""

    problem: RampProblem
    inner: Any  # state of the convex solver
    concave: CountingOracle  # of the concave part; its calls count too
    present: Linearisation  # of the round at hand
    next: Linearisation | None = None  # at the weights of the last certificate
    objective: float = np.inf  # J at the end of the last round
    due: bool = False  # whether the next step begins a round
    begun: float = 0.0  # passes when the round began
    rounds: list[dict[str, float]] = field(default_factory=list)
    hinge: bool = False  # whether the hinge fit that comes first is still running
    best: tuple[Certificate, np.ndarray] | None = None  # the weights of smallest J seen at a certificate
    last: tuple[Certificate, np.ndarray] | None = None  # the weights of ``next``, of solvers that may stay there
    final: np.ndarray | None = None  # the best weights, once a run has ended with them
    solver_seconds: float = 0.0

    def spent(self) -> Spent:
        concave = self.concave
        own = Spent(concave.oracle_calls, concave.argmax_calls, concave.seconds, self.solver_seconds)
        return super().spent().plus(own)

    @property
    def passes(self) -> float:
        return self.oracle_calls / max(1, self.problem.n_examples)

    @property
    def trace(self) -> list[tuple]:
        """That of the solver inside, where it is :class:`~maxmargin.solvers.recentring.Recentring`."""
        return self.inner.trace

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on exactly here."""
        arrays = self.inner_arrays()
        for name, part in (("present", self.present), ("next", self.next)):
            if part is not None:
                arrays |= plane_arrays(name, part.term.planes)
                arrays[f"{name}/numbers"] = np.array([part.term.offset, part.value])
        arrays["below"] = np.array(self.problem.below)
        arrays["hinge"] = np.array([self.hinge, *self.earlier])
        arrays["rounds"] = np.array([[row[key] for key in ROUND_COLUMNS] for row in self.rounds]).reshape(-1, 5)
        arrays["numbers"] = numbers_of(self, NUMBERS)
        for name, pair in (("best", self.best), ("last", self.last)):
            if pair is not None:
                c, arrays[f"{name}/weights"] = pair
                arrays[f"{name}/certificate"] = np.array([c.primal, c.dual, c.certified])
        return {name: np.array(array) for name, array in arrays.items()}


@dataclass(eq=False)
class CCCP:
    """The outer loop, in the driver's verbs: a step is a step of the convex solver, sometimes after a new round.

    Parameters
    ----------
    inner : InnerSolver
        Solves the majorants.
    max_rounds : int or None
    passes_per_round : float or None
        Ends a round after so many passes; None lets the gap decide, or the solver where its gap closes slowly.
    start : array (n_weights,), "hinge" or None
        Linearise there first; "hinge" fits the hinge loss to ``tol`` and goes on from there; None begins at zero
        weights, where nothing is subtracted, so that the first round is the hinge loss too, but ends when the next one
        has more to gain.
    tol : float
        Relative gap of the hinge fit.
    ties : float
        Planes of the round at hand count as touching J while they lack at most this share of it, all together; see
        :meth:`certificate`.
    """

    inner: InnerSolver
    _: KW_ONLY
    max_rounds: int | None = None
    passes_per_round: float | None = None
    start: np.ndarray | str | None = None
    tol: float = 1e-3
    ties: float = 0.0

    def __post_init__(self) -> None:
        if self.passes_per_round is None:
            self.passes_per_round = self.inner.passes_per_round
        self.share = ROUND_SHARE if self.passes_per_round is None else SLACK

    @property
    def handles(self) -> frozenset[str]:
        """What the convex solver handles, and ramps if it minimises what it is given."""
        return self.inner.handles | ({"ramp"} if self.inner.minimises else set())

    def init(self, problem: RampProblem, warm: State | None = None) -> CCCPState:
        """Begin the first round; ``warm`` is a state of the convex solver, for instance of a finished hinge fit."""
        present, concave = problem.none(), CountingOracle(problem.concave)
        if warm is None and isinstance(self.start, str):
            return CCCPState(problem, self.inner.init(problem.hinge), concave, present, hinge=True)
        start = None if self.start is None or isinstance(self.start, str) else problem.convex.feasible(self.start)
        if isinstance(warm, CCCPState):  # its weights include its linear term, at the present C
            if warm.problem.below != problem.below:
                raise ValueError("warm start needs the same ramp as before; else set warm_start=False.")
            present = Linearisation.of(warm.present.term.planes, problem.convex.weight, warm.present.value)
            inner = self.inner.init(problem.majorant(present), warm.inner)
            start = problem.convex.feasible(self.weights(warm))  # it may have had other signs
        else:
            inner = self.inner.init(problem.convex, warm)
        state = CCCPState(problem, inner, concave, present)
        if start is not None or warm is not None:
            self._begin(state, start, begin_at=start is not None and not isinstance(warm, CCCPState))
        return state

    def _begin(self, state: CCCPState, start: np.ndarray | None, begin_at: bool) -> None:
        """Linearise at given weights, or at those of the convex solver, and begin a round there."""
        problem, inner = state.problem, state.inner
        w = np.zeros(problem.convex.n_columns)
        w[: problem.convex.n_weights] = start if start is not None else self.inner.weights(inner)
        if begin_at:
            self.inner.begin_at(inner, w)
        first = self._linearise(state, w)
        state.objective = problem.convex.primal(w, all_losses(inner.oracle, w)) - first.value
        self._move(state, first)
        linear, u, _ = self.inner.dual_point(inner)
        bound = inner.problem.lower_bound(linear, u)
        certificate = Certificate(state.objective, bound)  # the run may end with these weights
        state.best = (certificate, w[: problem.convex.n_weights].copy())
        if self.inner.free_certificates:
            state.next, state.last = first, state.best

    def _end_hinge(self, state: CCCPState) -> None:
        """The hinge fit is done: go on from its weights, and from its multipliers where they have the same planes."""
        state.hinge = False
        if state.problem.hinge is state.problem.convex:
            self._begin(state, None, begin_at=False)
            return
        weights, spent = self.inner.weights(state.inner).copy(), state.spent()
        state.inner, state.earlier = self.inner.init(state.problem.convex), spent
        self._begin(state, state.problem.convex.feasible(weights), begin_at=True)

    def certificate_due(self, state: CCCPState) -> bool:
        """When the convex solver wants one, or when the passes of the round are done."""
        if state.hinge:
            return self.inner.certificate_due(state.inner)
        if self.passes_per_round is not None and state.passes - state.begun >= self.passes_per_round:
            return True
        if not self.inner.certificate_due(state.inner):
            return False
        if not (self.inner.free_certificates and state.inner.improved and self._stands(state)):
            return True
        # only the bound of the round is better: worth a look when it is one of J too, or when it may end the round
        assert state.last is not None and state.next is not None
        gap = self.inner.certificate(state.inner).gap
        return state.next.same(state.present) or gap <= self.share * (state.last[0].gap - gap)

    def certificate(self, state: CCCPState) -> Certificate:
        """J at the present weights, and the dual value of the majorant that touches it there.

        One argmax per example beside those of the convex solver; none where the weights have not changed.

        Late in a fit many outputs of the concave part tie, and which of them the argmax names changes from round to
        round: v jumps and the gap with it, although either plane touches J. So planes of the round at hand stay where
        they lack next to nothing, and what they lack is taken off the dual: the majorant M that they make has
        ``M(w) - J(w) <= ties J(w)``, and the gap is that of w in M.
        """
        inner = self.inner.certificate(state.inner)
        if state.hinge:
            state.due = inner.relative_gap <= self.tol
            return inner
        linear, u, w = self.inner.dual_point(state.inner)
        begin, oracle_before, problem = clock(), state.concave.seconds, state.problem
        known = self._stands(state)
        if state.next is None or not known:
            state.next = self._linearise(state, w)
        before, value = state.present, inner.primal - state.present.term.at(w) - state.next.value
        after, missing = problem.keep_ties(before, state.next, w, self.ties * abs(value))
        touching = problem.majorant(after)
        dual = touching.lower_bound(linear, u + before.term.shift - after.term.shift) - missing
        same = after.same(before)
        if same:
            dual = max(dual, inner.dual - missing)  # whose multipliers the solver may have let go
        certificate = Certificate(value, dual, inner.certified)
        gap = max(inner.gap, 0.0)
        passes = state.passes - state.begun
        over = self.passes_per_round is not None and passes >= self.passes_per_round
        over = over or gap <= self.share * max(certificate.gap - gap, 0.0)
        over = over and not (same and known)  # the next round would be this one, from where it began
        state.due = over and value <= state.objective + SLACK * abs(value)
        if state.due:
            state.objective = value
            self._note_round(state, certificate)
        if self.inner.free_certificates:
            state.last = (certificate, w.copy())
        if state.best is None or value < state.best[0].primal:
            state.best = (certificate, w[: problem.convex.n_weights].copy())
        state.solver_seconds += clock() - begin - (state.concave.seconds - oracle_before)
        return certificate

    def step_calls(self, state: CCCPState) -> int:
        """Oracle calls of the next step and of the certificate behind it."""
        return self.inner.step_calls(state.inner) + state.problem.n_examples

    def step(self, state: CCCPState) -> None:
        """Begin a round if one is due, then one step of the convex solver."""
        if state.hinge and (state.due or self.inner.finished(state.inner) is not None):
            self._end_hinge(state)
        elif state.due and state.next is not None:
            self._move(state, state.next)
        state.due = False
        self.inner.step(state.inner)

    def weights(self, state: CCCPState) -> np.ndarray:
        """The weights of the model (n_weights,): the present ones, at the end of a run the best ones."""
        return self.inner.weights(state.inner) if state.final is None else state.final

    def may_end(self, state: CCCPState) -> bool:
        """Not with the hinge fit."""
        return not state.hinge

    def finished(self, state: CCCPState) -> str | None:
        """After ``max_rounds`` rounds, or when the convex solver cannot go on."""
        if self.max_rounds is not None and len(state.rounds) >= self.max_rounds:
            return "max_rounds"
        return None if state.hinge else self.inner.finished(state.inner)

    def conclude(self, state: CCCPState, certificate: Certificate, code: str) -> Certificate:
        """A run that ends inside a round may stand above the end of the round before: the best weights count."""
        if state.hinge:
            return certificate
        if code != "converged" and state.best is not None and state.best[0].primal < certificate.primal:
            certificate, state.final = state.best
        elif not state.rounds or state.rounds[-1]["pass"] < state.passes:
            self._note_round(state, certificate)
        return certificate

    def from_arrays(self, problem: RampProblem, arrays: Mapping[str, np.ndarray]) -> CCCPState:
        """Resume where :meth:`CCCPState.to_arrays` left off."""
        saved, convex = Saved.of(arrays), problem.convex
        if "below" in saved and float(saved.array("below", np.float64, ())) != problem.below:
            raise ValueError("the saved state belongs to another ramp; resume with the same one.")
        present = self._saved_linearisation(problem, "present", saved)
        hinge, *earlier = saved.numbers("hinge", {"hinge": FLAG, **SPENT}) if "hinge" in saved else np.zeros(5)
        if hinge and len(present):
            raise saved.refusal("hinge", "says that nothing is subtracted yet, and planes to subtract are there")
        inner = self.inner.from_arrays(problem.hinge if hinge else problem.majorant(present), saved.part("inner"))
        state = CCCPState(problem, inner, CountingOracle(problem.concave), present, hinge=bool(hinge))
        state.set_earlier(earlier)
        if "next/b" in saved:
            state.next = self._saved_linearisation(problem, "next", saved)
        saved.take_over("numbers", state, NUMBERS)
        kinds = (int, float, float, int, float)
        state.rounds = [
            {name: kind(x) for name, kind, x in zip(ROUND_COLUMNS, kinds, row, strict=True)}
            for row in saved.reals("rounds", (None, len(ROUND_COLUMNS)))
        ]
        state.best = self._saved_pair(problem, "best", saved, convex.n_weights)
        present_w = self.inner.dual_point(inner).w
        state.last = self._saved_pair(problem, "last", saved, len(present_w))
        w = np.zeros(problem.n_columns)
        w[: len(present_w)] = present_w
        losses = Losses.around(saved, replace(convex, oracle=problem.concave), Blocks(None), w)
        for name, part in (("present", present), ("next", state.next)):
            planes = None if part is None else part.term.planes
            if planes is not None and losses.exceeded(Claims.of_planes(planes)) >= 0:
                raise saved.refusal(f"{name}/b", "holds a plane above what may be subtracted")
        if state.last is not None and state.next is not None:
            value = state.next.term.at(state.last[1])
            if not agree(state.next.value, -value, abs(state.next.term.offset)):
                raise saved.refusal("next/numbers", "is not what the planes to subtract are worth")
        return state

    def _saved_linearisation(self, problem: RampProblem, name: str, saved: Saved) -> Linearisation:
        """Planes that are subtracted, at most one of each example."""
        planes = saved.planes(name, problem.n_columns, problem.n_examples, one_each=True)
        value = saved.numbers(f"{name}/numbers", {"offset": FINITE, "value": FINITE})[-1]
        return Linearisation.of(planes, problem.convex.weight, float(value))

    def _saved_pair(
        self, problem: RampProblem, name: str, saved: Saved, n: int
    ) -> tuple[Certificate, np.ndarray] | None:
        """Weights and their certificate, whose primal must be J there: one argmax per example for each part of it."""
        if f"{name}/weights" not in saved:
            return None
        convex, found = problem.convex, saved.weights(f"{name}/weights", problem, (n,))
        ranges = {"primal": NUMBER, "dual": NUMBER, "certified": FLAG}
        primal, dual, certified = map(float, saved.numbers(f"{name}/certificate", ranges))
        w = np.zeros(convex.n_columns)
        w[:n] = found
        whole = convex.primal(w, saved.losses(convex, w))
        planes = problem.concave.planes(w, np.arange(problem.n_examples))
        least = whole - float(convex.weight @ np.maximum(planes.losses(problem.n_examples), 0.0))
        most = whole - float(convex.weight[planes.example] @ np.maximum(planes.violations(w), 0.0))
        within = agree(primal, least, whole) or agree(primal, most, whole) or least <= primal <= most
        if certified and not within:
            raise saved.refusal(f"{name}/certificate", f"has the primal {primal} where the weights have {most}")
        try:
            return Certificate(primal, dual, bool(certified)).check(), found
        except WeakDualityError:
            raise saved.refusal(f"{name}/certificate", f"has the dual {dual} above the primal {primal}") from None

    def _note_round(self, state: CCCPState, certificate: Certificate) -> None:
        row = (len(state.rounds) + 1, state.passes, certificate.primal, len(state.present), certificate.gap)
        state.rounds.append(dict(zip(ROUND_COLUMNS, row, strict=True)))

    def _stands(self, state: CCCPState) -> bool:
        """Whether the weights are those of the last certificate."""
        return state.last is not None and np.array_equal(self.inner.weights(state.inner), state.last[1])

    def _linearise(self, state: CCCPState, w: np.ndarray) -> Linearisation:
        return replace(state.problem, concave=state.concave).linearise(w, state.present.term.planes)

    def _move(self, state: CCCPState, linearisation: Linearisation) -> None:
        self.inner.move(state.inner, state.problem.majorant(linearisation))
        state.present, state.begun = linearisation, state.passes
