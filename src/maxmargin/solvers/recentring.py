"""The proximal point method around the dual engine: for regularisers whose dual is not finite everywhere.

    (P_n)   min_theta  P(theta) + gamma_n/2 |theta - theta^n|^2         solved through its dual

    (D_n)   max_alpha  sum alpha b - R_n*(sum alpha a)                  which is finite everywhere

A step is a step of the engine inside. When that has looked at all examples there are an upper bound P(theta), a
certified lower bound from the multipliers, and the gap of (P_n), which says whether the centre theta^n moves to theta.
Multipliers and planes do not depend on the centre, so the engine runs on when it moves. Yu, Bertsekas, Rousu, An
efficient discriminative training method for generative models. What is added: lambda is eliminated, so that theta is
always feasible; certified lower bounds (:func:`~maxmargin.solvers.masters.joint.best_bound`); and blocks keep
multipliers of their own, so that subsets of the examples may be visited one at a time and still solve (P).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.certificate import Certificate
from maxmargin.contracts import DualPoint, State
from maxmargin.formulations.divergence import Proximal, TableDivergence
from maxmargin.formulations.problem import Problem
from maxmargin.kernel import clock
from maxmargin.planes import Planes, weighted_sum
from maxmargin.solvers.base import OTHER_FAMILY, Engine, one_blas_thread
from maxmargin.solvers.blocks import natural_scale
from maxmargin.solvers.engine import DualEngine
from maxmargin.solvers.masters.block_bound import bound_by_blocks
from maxmargin.solvers.masters.joint import best_bound
from maxmargin.solvers.proof import check_around
from maxmargin.solvers.recentring_state import NUMBERS, RecentringState
from maxmargin.solvers.saved import Saved

if TYPE_CHECKING:
    from maxmargin.solvers.proximal_point import ProximalPoint

__all__ = ["Recentring"]

JOINT_BELOW = 400  # planes that the lower bound is taken from one by one; beyond, from one point for each block
BOUND_EVERY = 3  # looks between two lower bounds where blocks are single examples
REPORT_EVERY = 100  # certificates of the engine without a better bound between two reports; three equal ones end a run
ROUNDING = 1e-13
FLOOR = 0.05  # of the largest C_i: the least gamma where blocks are single examples
NEAR = 5e-3  # of sum alpha b: how far multipliers may be outside the domain of the dual for a bound to be tried


@dataclass(eq=False)
class Recentring(Engine):
    """The outer loop, in the driver's verbs."""

    inner: DualEngine  # solves (D_n)
    options: ProximalPoint

    handles = frozenset({"tables", "squared"})
    minimises, free_certificates = True, True  # a certificate tells what the last step has found

    # --- the contract with the driver ---------------------------------------------------------------------------------

    def init(self, problem: Problem, warm: State | None = None) -> RecentringState:
        """Start at the reference, from the planes of an earlier run on the same examples, or go on with others."""
        if isinstance(warm, RecentringState) and warm.other_examples:
            return self._extend(warm, problem)
        if warm is not None and not isinstance(warm, RecentringState):
            raise ValueError(OTHER_FAMILY)
        theta = _divergence(problem).first() if warm is None else warm.best.copy()
        gamma = np.nan if isinstance(self.options.gamma, str) else float(self.options.gamma)
        around, multipliers = self._around(problem, theta, gamma), None if warm is None else warm.inner
        if multipliers is not None and multipliers.members is None and self.options.blocks == "auto":
            # a ramp that follows a hinge has groups in place of single examples: only theta goes on then
            multipliers = multipliers if self._by_example else None
        inner = self.inner.init(around, multipliers)
        state = RecentringState(problem, inner, theta.copy(), theta, gamma)
        self.inner.begin_at(state.inner, theta)
        return state

    def certificate_due(self, state: RecentringState) -> bool:
        """Whether a bound has improved; from time to time also when none has."""
        return state.improved or (state.unchanged > 0 and state.unchanged % REPORT_EVERY == 0)

    def certificate(self, state: RecentringState) -> Certificate:
        """The best objective and the best lower bound so far. Only the first costs oracle calls."""
        if np.isinf(state.primal):
            self._look(state)
        state.improved = False
        return Certificate(state.primal, state.dual, state.certified)

    def step_calls(self, state: RecentringState) -> int:
        """Oracle calls of the next step."""
        return self.inner.step_calls(state.inner) * (2 if self.options.refind else 1)

    def step(self, state: RecentringState) -> None:
        """A step of the engine; when a look at all examples is due then, bounds, and perhaps another centre."""
        with one_blas_thread():
            self.inner.step(state.inner)
            if self.inner.certificate_due(state.inner):
                self._look(state)

    def weights(self, state: RecentringState) -> np.ndarray:
        """The best feasible log-probabilities so far (n_weights,)."""
        return state.best

    def from_arrays(self, problem: Problem, arrays: Mapping[str, np.ndarray]) -> RecentringState:
        """Resume where :meth:`RecentringState.to_arrays` left off."""
        saved, shape = Saved.of(arrays), (problem.n_weights,)
        if float(saved.array("pull", np.float64, ())) != _divergence(problem).pull:
            raise ValueError("the saved state belongs to another problem: resume with the same pull.")
        centre, best = (saved.weights(name, problem, shape) for name in ("centre", "best"))
        gamma = float(saved.numbers("numbers", NUMBERS, unknown="gamma")[0])
        inner = self.inner.from_arrays(self._around(problem, centre, gamma), saved.part("inner"))
        state = RecentringState(problem, inner, centre, best, gamma)
        state.restore(saved)
        if np.isinf(state.primal):
            self.inner.begin_at(state.inner, best)
        return state

    def conclude(self, state: RecentringState, certificate: Certificate, code: str) -> Certificate:
        """Of a resumed run, the planes behind the lower bound are looked at once more, where they prove it."""
        check_around(state.inner, state.problem, state.bound_weights())
        return certificate

    # --- rounds of CCCP -----------------------------------------------------------------------------------------------

    def dual_point(self, state: RecentringState) -> DualPoint:
        """The multipliers of the better lower bound, and the best theta."""
        linear, u, _ = self.inner.dual_point(state.inner)
        points = [DualPoint(linear, u, state.best)]
        if state.bound is not None:
            shift = state.problem.shift
            points.append(DualPoint(state.bound[0], state.bound[1] - (0.0 if shift is None else shift), state.best))
        return max(points, key=lambda point: state.problem.lower_bound(point.linear, point.u))

    def begin_at(self, state: RecentringState, w: np.ndarray) -> None:
        """Begin at given log-probabilities."""
        theta = w[: state.problem.n_weights].copy()
        state.centre, state.best = theta, theta.copy()
        self._move_inner(state)

    def move(self, state: RecentringState, problem: Problem) -> None:
        """Go on with a problem that differs in its linear term only, from the best theta and the planes at hand.

        What the best theta is worth there needs no look at the examples, and no later theta is worse: the objective of
        a ramp, which is at most that of the round and equal to it where the round begins, does not increase.
        """
        for term, sign in ((state.problem.term, -1.0), (problem.term, 1.0)):
            state.primal += 0.0 if term is None else sign * term.at(state.best)
        state.problem = problem
        state.centre, state.centre_primal = state.best.copy(), state.primal
        self._move_inner(state)
        linear, u, _ = self.dual_point(state)
        state.prove(problem.lower_bound(linear, u), linear, u)
        state.gap = max(state.primal - state.dual, 0.0)
        state.bound_at, state.bound_wait, state.unchanged, state.improved = state.looks, 0, 0, True

    # --- inside -------------------------------------------------------------------------------------------------------

    def _around(self, problem: Problem, centre: np.ndarray, gamma: float) -> Problem:
        """(P_n). Before the first look gamma may not be known; theta is the centre until then whatever it is."""
        divergence, newton = _divergence(problem), self.options.theta == "newton"
        weight = np.full(len(centre), 1.0 if np.isnan(gamma) else gamma)
        if self._by_example:  # rare values are pulled by few examples, and c + u >= 0 leaves them little room
            weight *= np.sqrt(divergence.reference / divergence.reference.mean())
        return replace(problem, regulariser=divergence.proximal(centre, weight, newton))

    def _move_inner(self, state: RecentringState) -> None:
        """Let the engine go on around the present centre."""
        self.inner.move(state.inner, self._around(state.problem, state.centre, state.gamma))
        if np.isinf(state.primal):
            self.inner.begin_at(state.inner, state.best)

    def _extend(self, state: RecentringState, problem: Problem) -> RecentringState:
        """Go on with other examples. The lower bound stays one, unless there is a new reference."""
        if problem.regulariser.fingerprint != state.problem.regulariser.fingerprint:
            state.dual, state.bound = -np.inf, None
        self.inner.extend(state.inner, self._around(problem, state.best, state.gamma))
        state.problem, state.bound = problem, None  # whose columns are others
        state.primal, state.centre_primal, state.certified = np.inf, np.inf, False
        state.centre, state.improved, state.other_examples = state.best.copy(), True, False
        self._move_inner(state)
        return state

    def _look(self, state: RecentringState, again: bool = False) -> None:
        """Ask all examples at theta: upper and lower bounds, and whether the centre moves."""
        problem, inner, options = state.problem, state.inner, self.options
        found = self.inner.certificate(inner)  # of (P_n)
        begin = clock()
        theta, proximal = inner.w[: problem.n_weights], inner.problem.regulariser
        assert isinstance(proximal, Proximal)
        upper = found.primal if np.isfinite(found.primal) else self._estimate(state)
        here = upper - proximal.term(theta)
        point = self.inner.dual_point(inner)
        bound, linear, u = problem.lower_bound(point.linear, point.u), point.linear, point.u
        if state.looks >= state.bound_at and self._near(state):
            bound, linear, u = max((bound, linear, u), self._bound(state, min(here, state.primal)), key=itemgetter(0))
        better = here < state.primal or bound > state.dual
        state.improved, state.unchanged = state.improved or better, 0 if better else state.unchanged + 1
        if here < state.primal:
            state.primal, state.best, state.certified = here, theta.copy(), found.certified
        if bound > state.dual:
            state.prove(bound, linear, u)
        state.gap = max(upper - found.dual, 0.0) if np.isfinite(state.centre_primal) else state.gap
        state.note(here, upper, found.dual, *_divergence(problem).estimate(point.linear + problem.offset, point.u))
        moved = self._recentre(state, here)
        state.looks += 1
        state.bound_seconds += clock() - begin
        if moved and options.refind and not again:
            begin = clock()
            self._look(state, again=True)
            state.centre_seconds += clock() - begin

    def _recentre(self, state: RecentringState, here: float) -> bool:
        """Move the centre to theta when the rule says so."""
        s, floor = self.options, self.options.least * float(_divergence(state.problem).reference.max())
        if self._by_example:  # planes of one example pull with C_i: a smaller gamma only slows down its block
            floor = max(floor, FLOOR * float(state.problem.weight.max(initial=0.0)))
        if np.isinf(state.centre_primal):
            state.centre_primal, state.first = here, max(abs(here), 1e-300)
            state.gap = state.first if np.isinf(state.gap) else state.gap
            if np.isnan(state.gamma):
                planes, scale, _ = self._found(state)
                plane = weighted_sum(planes, scale)[: state.problem.n_weights]
                state.gamma = max(float(np.sqrt(np.mean(plane**2))), floor)
            self._move_inner(state)
            return False
        promised = state.centre_primal - (here - state.gap)
        rules = {
            "gap": state.gap <= s.share * promised,
            "improvement": here <= state.centre_primal - s.improvement * state.first,
            "optimality": state.gap <= s.delta * s.delta_decay**state.centres * state.first,
        }
        moves = rules["improvement"] or rules["optimality"] if s.rule == "paper" else rules[s.rule]
        if not moves:
            return False
        state.centre, state.centre_primal = state.inner.w[: state.problem.n_weights].copy(), here
        state.centres += 1
        state.bound_at = min(state.bound_at, state.looks + 1)  # (P_n) is solved well: its planes may prove much
        state.gamma = max(state.gamma * s.decay, min(state.gamma, floor))
        self._move_inner(state)
        return True

    def _estimate(self, state: RecentringState) -> float:
        """P_n at theta where losses have no proven bounds: from those of the planes that were found."""
        planes, _, values = self._found(state)
        most, problem = np.zeros(state.inner.n_blocks), state.inner.problem
        np.maximum.at(most, planes.example, values)
        return problem.primal(state.inner.w, np.zeros(problem.n_examples)) + float(most.sum())

    def _found(self, state: RecentringState) -> tuple[Planes, np.ndarray, np.ndarray]:
        """The planes of the last look, the scale at which each counts, and what it then adds to the objective."""
        planes, inner = state.inner.pending, state.inner
        assert planes is not None
        total = inner.working_set.store.total[planes.example]
        return planes, *natural_scale(planes.to_csr(), planes.b, total, inner.w, state.problem.n_weights)

    def _near(self, state: RecentringState) -> bool:
        """Whether the multipliers are so near to ``c + u >= 0`` that a bound from all planes is worth its time."""
        if not self._by_example or _divergence(state.problem).pull:
            return True
        reference = _divergence(state.problem).reference
        outside = -np.minimum(reference + state.inner.u[: len(reference)], 0.0).sum()
        return outside <= NEAR * abs(state.inner.working_set.linear)

    @property
    def _by_example(self) -> bool:
        """Whether blocks are single examples that are solved in turn."""
        return self.inner.settings.master == "smo"

    def _bound(self, state: RecentringState, primal: float) -> tuple[float, float, np.ndarray]:
        """The lower bound from all planes, with ``sum alpha b`` and u of its multipliers.

        While it does not close the gap by much, it is asked for less often.
        """
        every, bound, used = self.options.bound_every, -np.inf, np.empty(0, np.int32)
        if self._by_example:
            every = min(every, BOUND_EVERY)  # it takes less than the passes between two looks
        inner, problem, ws = state.inner, state.problem, state.inner.working_set
        linear, u = 0.0, inner.u
        if state.looks:
            tol = max(self.options.accuracy * (primal - state.dual), ROUNDING * abs(primal))
            place = ws, inner.u, _divergence(problem), problem.offset, state.best
            if self._by_example:
                bound, linear, u, used = bound_by_blocks(*place, primal)
            else:
                bound, linear, u, used = best_bound(*place, state.gamma, tol, JOINT_BELOW)
        closed = bound - state.dual >= 0.3 * (primal - state.dual)
        state.bound_wait = every if closed else min(2 * max(state.bound_wait, every // 2), 8 * every)
        state.bound_at = state.looks + state.bound_wait
        ws.keep(used, state.bound_wait)  # what proves most now will be of use the next time
        return bound, linear, u


def _divergence(problem: Problem) -> TableDivergence:
    """The regulariser that proximal terms are added to."""
    assert isinstance(problem.regulariser, TableDivergence)
    return problem.regulariser
