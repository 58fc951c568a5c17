"""Proximal point outside, restricted simplicial decomposition inside: the solver of generative models with a margin.

    (P_n)   min_theta  P(theta) + gamma_n/2 |theta - theta^n|^2         solved through its reduced dual

    (D_n)   max_alpha  sum alpha b - R_n*(sum alpha a)                  over one simplex, or one for each block

A step takes the planes found at the last theta into the working set, solves the master problem over all planes kept by
projected Newton, and asks the oracle at the new theta. Multipliers and planes do not depend on the centre theta^n, so
the decomposition runs on when it moves. Yu, Bertsekas, Rousu, An efficient discriminative training method for
generative models. What is added: lambda is eliminated, so that theta is always feasible and every look at the examples
gives an upper bound; certified lower bounds (:func:`~maxmargin.solvers.masters.proximal.best_bound`); and blocks keep
multipliers of their own, so that subsets of the examples may be visited one at a time and still solve (P). A linear
term, as the rounds of CCCP have it, moves the origin that planes are counted from, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin.certificate import Certificate
from maxmargin.contracts import DualPoint
from maxmargin.formulations.generative import GenerativeProblem
from maxmargin.formulations.proximal import Proximal
from maxmargin.kernel import clock
from maxmargin.oracles.counting import CountingOracle
from maxmargin.planes import Planes
from maxmargin.solvers.masters.joint import blas_threads
from maxmargin.solvers.masters.proximal import best_bound, solve_planes
from maxmargin.solvers.proximal_planes import Blocks, Found, Origin, Pool, collect
from maxmargin.solvers.proximal_state import ProximalState

__all__ = ["Further", "ProximalEngine"]

JOINT_BELOW = 400  # planes that are solved together where blocks are visited in turn, and for the lower bound
MOST_BLOCKS = 2000  # that are solved all at once
REPORT_EVERY = 100  # looks without a better bound between two certificates; three equal ones end a run as stalled
ROUNDING = 1e-13


class Further(NamedTuple):
    """A warm start with further examples in place of those that the state has seen."""

    state: ProximalState


class ProximalEngine:
    """What the driver runs.

    Parameters
    ----------
    settings : ProximalPoint
    random_state : int, Generator or None
    """

    passes_per_round: float | None = None  # of CCCP: the gap decides
    handles = frozenset({"tables", "squared"})
    minimises, free_certificates = True, True  # a certificate tells what the last look has found

    def __init__(self, settings: Any, random_state: Any = None) -> None:
        self.settings = settings
        self.random_state = random_state

    # --- the contract with the driver ---------------------------------------------------------------------------------

    def init(self, problem: GenerativeProblem, warm: ProximalState | Further | None = None) -> ProximalState:
        """Start at the reference, from the planes of an earlier run on the same examples, or go on with others."""
        if isinstance(warm, Further):
            return self.extend(warm.state, problem)
        blocks, stream = self._blocks(problem)
        width = blocks.widest if problem.squared else 0
        theta = problem.first()
        state = ProximalState(
            problem,
            CountingOracle(problem.oracle),
            blocks,
            stream,
            Pool(problem.n_weights, width, self.settings.limit),
            np.random.default_rng(self.random_state),
            theta,
            theta.copy(),
            theta.copy(),
            np.nan if self.settings.gamma == "auto" else float(self.settings.gamma),
        )
        if warm is not None:
            _continue(state, warm)
        state.pool.origin = Origin.of(problem.subtracted, problem.weight, blocks)
        return state

    def certificate_due(self, state: ProximalState) -> bool:
        """Whether a bound has improved; from time to time also when none has."""
        return state.news or (state.quiet > 0 and state.quiet % REPORT_EVERY == 0)

    def certificate(self, state: ProximalState) -> Certificate:
        """The best objective and the best lower bound so far. Only the first costs oracle calls."""
        if np.isinf(state.primal):
            self._look(state)
        state.news = False
        return Certificate(state.primal, state.dual, state.certified)

    def step_calls(self, state: ProximalState) -> int:
        """Oracle calls that the next step will make; certificates make none."""
        n = state.problem.n_examples
        if not state.stream:
            return n * (2 if self.settings.refind else 1)
        visit = self.settings.visits or 1
        share = sum(len(state.blocks.members[b]) for subset in state.stream for b in subset) / len(state.stream)
        due = state.since + visit * share / max(1, n) >= self.settings.certificate_every - 1e-9
        return round(visit * share * self.settings.repeats) + (n if due else 0)

    def step(self, state: ProximalState) -> None:
        """One iteration of the decomposition over all blocks, or a visit of some."""
        with blas_threads().limit(
            limits=1, user_api="blas"
        ):  # small matrices; and the result must not depend on the cores
            if state.stream:
                self._visit(state)
            else:
                self._absorb(state)
                self._solve(state, None)
                self._look(state)

    def weights(self, state: ProximalState) -> np.ndarray:
        """The best feasible log-probabilities so far (n_weights,)."""
        return state.best

    def may_end(self, state: ProximalState) -> bool:
        """Always: there are no rounds."""
        return True

    def finished(self, state: ProximalState) -> str | None:
        """Only the gap, the budgets or a stall end a run."""
        return None

    def conclude(self, state: ProximalState, certificate: Certificate, code: str) -> Certificate:
        """The weights are the best all along."""
        return certificate

    def from_arrays(self, problem: GenerativeProblem, arrays: Mapping[str, np.ndarray]) -> ProximalState:
        """Resume where :meth:`ProximalState.to_arrays` left off."""
        state = self.init(problem)
        members = state.blocks.members
        same = np.array_equal(arrays["weight"], problem.weight) and str(arrays["data"]) == problem.fingerprint
        terms = [problem.squared, problem.pull]
        same = same and np.array_equal(arrays.get("terms", terms), terms)
        same = same and np.array_equal(arrays["sizes"], [len(m) for m in members])
        same = same and np.array_equal(arrays["members"], np.concatenate(members))
        if not (same and problem.n_weights == len(arrays["theta"])):
            raise ValueError(
                "the saved state belongs to another problem: resume with the same examples, cost, C, loss and blocks."
            )
        state.restore(arrays)
        return state

    # --- rounds of CCCP -----------------------------------------------------------------------------------------------

    def dual_point(self, state: ProximalState) -> DualPoint:
        """The multipliers of the better lower bound, and the best theta."""
        points = [state.pool.point(weights)[:2] for weights in (state.pool.alpha, state.pool.beta)]
        u, linear = max(points, key=lambda point: state.problem.bound_along(point[1], point[0])[0])
        return DualPoint(linear, u, state.best)

    def begin_at(self, state: ProximalState, theta: np.ndarray) -> None:
        """Begin at given log-probabilities."""
        state.theta, state.centre, state.best = theta.copy(), theta.copy(), theta.copy()

    def move(self, state: ProximalState, problem: GenerativeProblem) -> None:
        """Go on with a problem that differs in its linear term only, from the best theta and the planes at hand.

        What the best theta is worth there needs no look at the examples, and no later theta is worse: the objective of
        a ramp, which is at most that of the round and equal to it where the round begins, does not increase.
        """
        state.primal += problem.linear(state.best) - state.problem.linear(state.best)
        state.problem = problem
        state.pool.origin = Origin.of(problem.subtracted, problem.weight, state.blocks)
        linear, u, _ = self.dual_point(state)
        state.dual = problem.bound_along(linear, u)[0]
        state.centre, state.centre_primal = state.best.copy(), state.primal
        state.gap = max(state.primal - state.dual, 0.0)
        state.bound_at, state.bound_wait, state.quiet, state.news = state.looks, 0, 0, True

    # --- further examples ---------------------------------------------------------------------------------------------

    def extend(self, state: ProximalState, problem: GenerativeProblem) -> ProximalState:
        """Go on with further examples; those of before are gone, their planes and multipliers stay.

        The lower bound stays one, because losses are not negative (a new reference asks for a new one). The objective
        can no longer be known: what the old examples add to it is estimated from their planes, so certificates say
        that they are not certified.
        """
        old = state.blocks
        if problem.squared != state.problem.squared or problem.n_weights != state.problem.n_weights:
            raise ValueError("further examples must have the loss and the tables of the first.")
        fresh, stream = self._blocks(problem)
        gone = [np.zeros(0, np.int64)] * len(old)
        self._absorb(state)
        blocks = Blocks.of([*gone, *fresh.members], problem.n_examples, fresh.product)
        width = (blocks.widest if problem.squared else 0) - state.pool.zeta.shape[1]
        if width > 0:
            state.pool.zeta = np.pad(state.pool.zeta, ((0, 0), (0, width)))
        if not np.array_equal(problem.reference, state.problem.reference):
            state.dual, state.pool.beta[:] = -np.inf, 0.0
        state.problem, state.oracle, state.blocks = problem, CountingOracle(problem.oracle), blocks
        state.stream = [subset + len(old) for subset in stream]
        state.primal, state.centre_primal, state.certified = np.inf, np.inf, False
        state.centre, state.theta, state.news = state.best.copy(), state.best.copy(), True
        return state

    # --- inside -------------------------------------------------------------------------------------------------------

    def _blocks(self, problem: GenerativeProblem) -> tuple[Blocks, list[np.ndarray]]:
        """The blocks, and the blocks of each visit (none: all at once)."""
        s, n = self.settings, problem.n_examples
        wanted = s.blocks
        product = isinstance(wanted, str) and wanted == "product"
        stream: list[np.ndarray] = []
        if isinstance(wanted, str) and wanted == "one":
            members = [np.arange(n)]
        elif product:
            members = list(np.arange(n)[:, None])
        elif isinstance(wanted, (int, np.integer)) and not isinstance(wanted, bool) and wanted >= 1:
            members = np.array_split(np.arange(n), min(int(wanted), max(n, 1)))
        elif isinstance(wanted, Sequence) and not isinstance(wanted, str):
            members, stream = _atoms(wanted, n)
        else:
            raise ValueError(
                f'blocks must be "one", "product", a number or a list of lists of examples; got {wanted!r}.'
            )
        if s.visits is not None and not stream:
            stream = [np.array([b]) for b in range(len(members))]
        if len(members) > MOST_BLOCKS and not stream:
            raise ValueError(
                f"{len(members)} blocks are too many for one master problem; visit some at a time (visits=), or make "
                f"fewer than {MOST_BLOCKS} groups (blocks=)."
            )
        need = 8.0 * len(members) * problem.n_weights * (1 if product or s.limit is None else s.limit + 1)
        if need > s.memory:
            raise ValueError(
                f"the planes of {len(members)} blocks may take {need / 1e9:.1f} GB, more than memory allows "
                f"({s.memory / 1e9:.1f} GB); use fewer blocks or a lower limit."
            )
        return Blocks.of(members, n, product), stream

    def _proximal(self, state: ProximalState) -> Proximal:
        gamma = np.full(state.problem.n_weights, state.gamma)
        problem, newton = state.problem, self.settings.theta == "newton"
        return Proximal(problem.tables, problem.reference, gamma, state.centre, problem.pull, newton)

    def _ask(self, state: ProximalState, visited: np.ndarray, examples: np.ndarray) -> tuple[Found, np.ndarray, bool]:
        """New planes of the visited blocks, the losses of their examples, and whether those are proven."""
        problem, blocks = state.problem, state.blocks
        losses = np.zeros(problem.n_examples)
        if not (problem.squared or blocks.product):  # the sum over a block is all that is wanted
            k = len(visited)
            found = Found(visited, np.empty((k, problem.n_weights)), np.empty(k), np.empty((k, 0)))
            for i, block in enumerate(visited):
                own = blocks.members[block]
                found.A[i], found.b[i], losses[own] = state.oracle.sum(state.theta, own, problem.weight[own])
            if np.isfinite(losses[problem.weight > 0]).all():
                return found, np.maximum(losses, 0.0), True
        planes: Planes = state.oracle.planes(state.theta, examples)
        bounds = planes.bound
        proven = bool(np.isfinite(bounds[problem.weight[planes.example] > 0]).all())
        if not proven:
            bounds = np.where(np.isfinite(bounds), bounds, planes.violations(state.theta))
        bounds = np.maximum(bounds, 0.0)
        losses[:] = 0.0
        np.maximum.at(losses, planes.example, bounds)
        return collect(planes, bounds, blocks, visited, problem.weight, problem.squared), losses, proven

    def _absorb(self, state: ProximalState) -> None:
        if state.pending is not None:
            state.pool.add(state.pending)
            state.pending = None

    def _look(self, state: ProximalState, again: bool = False) -> None:
        """Ask all examples at theta: upper and lower bounds, and whether the centre moves."""
        problem, pool, s = state.problem, state.pool, self.settings
        found, losses, proven = self._ask(state, state.blocks.live, np.arange(problem.n_examples))
        begin = clock()
        here = problem.primal(state.theta, losses) + self._retired(state)
        u, linear, quadratic = pool.point(pool.alpha)
        bound = problem.bound_along(linear, u, quadratic)[0]
        if state.looks >= state.bound_at:
            bound = max(bound, self._bound(state, min(here, state.primal)))
        better = here < state.primal or bound > state.dual
        state.news, state.quiet = state.news or better, 0 if better else state.quiet + 1
        if here < state.primal:
            state.primal, state.best = here, state.theta.copy()
            state.certified = proven and len(state.blocks.live) == len(state.blocks)
        state.dual = max(state.dual, bound)
        state.pending, state.since = found, 0.0
        if np.isnan(state.gamma):
            size = float(np.sqrt(np.mean(found.A.sum(axis=0) ** 2)))
            state.gamma = max(0.1 * size, s.least * float(problem.reference.max()))
        self._trace(state, here, *problem.estimate(linear, u, quadratic))
        moved = self._recentre(state, here)
        state.looks += 1
        state.bound_seconds += clock() - begin
        if moved and s.refind and not again:
            begin = clock()
            self._absorb(state)
            state.theta, state.value = self._at_centre(state)
            self._look(state, again=True)
            state.centre_seconds += clock() - begin

    def _trace(self, state: ProximalState, here: float, estimate: float, outside: int) -> None:
        upper = here + self._proximal(state).term(state.theta)
        if np.isfinite(state.centre_primal):
            state.gap = max(upper - state.value, 0.0)
        seconds, used = state.seconds, int((state.pool.alpha > 0).sum())
        state.trace.append(
            (
                state.looks, state.centres, state.gamma, used, outside, state.oracle_calls,
                seconds["oracle"] + seconds["solver"], here, state.primal, state.dual, upper, state.value, estimate,
            )
        )  # fmt: skip

    def _recentre(self, state: ProximalState, here: float) -> bool:
        """Move the centre to theta when the rule says so."""
        s = self.settings
        if np.isinf(state.centre_primal):
            state.centre_primal, state.first = here, max(abs(here), 1e-300)
            state.gap = state.first if np.isinf(state.gap) else state.gap
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
        state.centre, state.centre_primal = state.theta.copy(), here
        state.centres += 1
        floor = s.least * float(state.problem.reference.max())
        state.gamma = max(state.gamma * s.decay, min(state.gamma, floor))
        return True

    def _at_centre(self, state: ProximalState) -> tuple[np.ndarray, float]:
        """theta and the dual value of (P_n) at the present multipliers."""
        u, linear, quadratic = state.pool.point(state.pool.alpha)
        proximal = self._proximal(state)
        solved = proximal.solve(u)
        return solved.theta, linear + state.problem.offset - proximal.conjugate(u, solved) - 0.5 * quadratic

    def _solve(self, state: ProximalState, visited: np.ndarray | None) -> None:
        """The master problem over the planes of the visited blocks (None: of all), the others fixed."""
        begin = clock()
        pool, proximal = state.pool, self._proximal(state)
        rows = pool.rows(visited)
        if len(rows) == 0:
            state.theta, state.value = self._at_centre(state)
            return
        u, linear, quadratic = pool.point(pool.alpha)
        (A, b), alpha, gram = pool.planes(rows), pool.alpha[rows], pool.gram(rows)
        fixed = linear + state.problem.offset - float(alpha @ b)
        if gram is not None:
            fixed -= 0.5 * (quadratic - float(alpha @ gram @ alpha))
        size = abs(state.primal) if np.isfinite(state.primal) else abs(state.first)
        tol = max(self.settings.accuracy * state.gap, ROUNDING * size)
        tol = tol if gram is None else 1e-9 * tol  # on orthants it is a decrement, of second order in the gradient
        solution = solve_planes(A, b, pool.block[rows], gram, alpha, proximal, u - alpha @ A, tol)
        pool.set_weights(rows, solution.weights, self.settings.patience)
        state.theta, state.value = solution.theta, solution.value + fixed
        state.master_seconds += clock() - begin

    def _bound(self, state: ProximalState, primal: float) -> float:
        """The lower bound from all planes. While it does not close the gap by much, it is asked for less often."""
        every = self.settings.bound_every
        bound = self._best_bound(state, primal) if state.looks else -np.inf
        closed = bound - state.dual >= 0.3 * (primal - state.dual)
        state.bound_wait = every if closed else min(2 * max(state.bound_wait, every // 2), 8 * every)
        state.bound_at = state.looks + state.bound_wait
        return bound

    def _best_bound(self, state: ProximalState, primal: float) -> float:
        """From all planes together; where they are many, from one point for each block."""
        pool = state.pool
        rows = pool.rows()
        if len(rows) == 0:
            return -np.inf
        tol = max(self.settings.accuracy * (primal - state.dual), ROUNDING * abs(primal))
        if len(rows) <= JOINT_BELOW:
            start = pool.beta[rows] if pool.beta.any() else pool.alpha[rows]
            planes = *pool.planes(rows), pool.block[rows], pool.gram(rows)
            value, pool.beta[rows] = best_bound(state.problem, *planes, start, state.best, tol)
            return value
        A, b = pool.planes(rows)
        blocks, owner = np.unique(pool.block[rows], return_inverse=True)
        share = np.zeros((len(blocks), len(rows)))
        share[owner, np.arange(len(rows))] = pool.alpha[rows]
        zeta = share @ pool.zeta[rows]
        gram = np.diag(np.einsum("ij,ij->i", zeta, zeta)) if zeta.shape[1] else None
        points = share @ A, share @ b, np.arange(len(blocks)), gram
        return best_bound(state.problem, *points, np.ones(len(blocks)), state.best, tol)[0]

    def _visit(self, state: ProximalState) -> None:
        """Visit the next subsets of the stream; look at all examples when a pass of visits is over."""
        s, n = self.settings, state.problem.n_examples
        if state.pending is not None:
            self._absorb(state)
            if len(state.pool.rows()) <= JOINT_BELOW:
                self._solve(state, None)
        visited = np.unique(np.concatenate([self._next(state) for _ in range(s.visits or 1)]))
        examples = np.sort(np.concatenate([state.blocks.members[b] for b in visited]))
        for _ in range(s.repeats):
            state.pool.add(self._ask(state, visited, examples)[0])
            self._solve(state, visited)
        state.since += len(examples) / max(1, n)
        if state.since >= s.certificate_every - 1e-9:
            self._look(state)

    def _next(self, state: ProximalState) -> np.ndarray:
        """The blocks of the next visit."""
        length = len(state.stream)
        at = state.cursor % length
        if self.settings.selection == "permutation":
            if at == 0:
                state.order = state.rng.permutation(length)
            at = int(state.order[at])
        state.cursor += 1
        return state.stream[at]

    def _retired(self, state: ProximalState) -> float:
        """What examples that are gone add to the objective, estimated from below by their planes."""
        total, pool = 0.0, state.pool
        for block in np.setdiff1d(np.arange(len(state.blocks)), state.blocks.live):
            rows = np.flatnonzero(pool.block == block)
            values = np.maximum(pool.b[rows] - pool.A[rows] @ state.theta, 0.0)
            if state.problem.squared:
                values = values**2 / (2.0 * np.maximum(np.einsum("ij,ij->i", pool.zeta[rows], pool.zeta[rows]), 1e-300))
            total += float(values.max(initial=0.0))
        return total


def _atoms(subsets: Sequence, n: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Blocks of the examples that belong to the same subsets, and the blocks of each subset.

    Subsets that overlap cannot have multipliers of their own: an example would be counted twice.
    """
    inside = np.zeros((n, len(subsets)), bool)
    for t, subset in enumerate(subsets):
        examples = np.asarray(subset, np.int64).ravel()
        if len(examples) == 0:
            raise ValueError(f"subset {t} of the stream has no examples; leave it out.")
        if examples.min() < 0 or examples.max() >= n:
            raise ValueError(f"subset {t} of the stream names example {examples.max()}; there are {n} examples.")
        inside[examples, t] = True
    missing = np.flatnonzero(~inside.any(axis=1))
    if len(missing):
        raise ValueError(f"example {missing[0]} is in no subset of the stream; put every example in at least one.")
    kinds, owner = np.unique(inside, axis=0, return_inverse=True)
    owner = owner.ravel()
    members = [np.flatnonzero(owner == kind) for kind in range(len(kinds))]
    return members, [np.flatnonzero(kinds[:, t]) for t in range(len(subsets))]


def _continue(state: ProximalState, warm: ProximalState) -> None:
    """Take over the planes, the multipliers and the weights of an earlier run; C may differ."""
    if not isinstance(warm, ProximalState):
        raise ValueError(
            "warm start needs the same loss and a solver of the same family as before; else set warm_start=False."
        )
    problem, before = state.problem, warm.problem
    same = before.squared == problem.squared and before.n_weights == problem.n_weights
    same = same and before.n_examples == problem.n_examples and before.fingerprint == problem.fingerprint
    same = same and len(state.blocks) == len(warm.blocks)
    if not (same and all(map(np.array_equal, state.blocks.members, warm.blocks.members))):
        raise ValueError("warm start needs the same examples, costs and blocks as before; else set warm_start=False.")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(before.weight > 0, problem.weight / before.weight, np.nan)
    idle = (before.weight == 0) & (problem.weight == 0)  # counts for nothing, then as now
    state.pool = Pool(problem.n_weights, warm.pool.zeta.shape[1], state.pool.limit)
    for name in Pool.ARRAYS:
        setattr(state.pool, name, getattr(warm.pool, name).copy())
    for block, members in enumerate(state.blocks.members):
        own = ratio[members[~idle[members]]]
        own = own if len(own) else np.ones(1)
        if not np.allclose(own, own[0], rtol=1e-12, atol=0.0):
            raise ValueError("warm start needs weights that change by one factor within a block; set warm_start=False.")
        rows = np.flatnonzero(state.pool.block == block)
        if problem.squared:
            state.pool.zeta[rows] /= np.sqrt(own[0])
        else:
            state.pool.A[rows] *= own[0]
            state.pool.b[rows] *= own[0]
    state.theta, state.centre, state.best = warm.best.copy(), warm.best.copy(), warm.best.copy()
