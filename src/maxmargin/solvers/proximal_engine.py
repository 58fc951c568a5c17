"""Proximal point outside, restricted simplicial decomposition inside: the solver of generative models with a margin.

    (P_n)   min_theta  P(theta) + gamma_n/2 |theta - theta^n|^2         solved through its reduced dual

    (D_n)   max_alpha  sum alpha b - R_n*(sum alpha a)                  over one simplex, or one for each block

A step takes the planes found at the last theta into the working set, solves the master problem over all planes kept by
projected Newton, and asks the oracle at the new theta. Multipliers and planes do not depend on the centre theta^n, so
the decomposition runs on when it moves. Yu, Bertsekas, Rousu, An efficient discriminative training method for
generative models. What is added: lambda is eliminated, so that theta is always feasible and every look at the examples
gives an upper bound; a certified lower bound (:meth:`GenerativeProblem.lower_bound`, and by cells of examples); and
blocks keep their own sums, so that subsets of the examples may be visited one at a time and still solve (P).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maxmargin.formulations.generative import GenerativeProblem
from maxmargin.formulations.proximal import Proximal
from maxmargin.kernel import clock
from maxmargin.oracles.counting import CountingOracle
from maxmargin.planes import Planes
from maxmargin.solvers.certificate import Certificate
from maxmargin.solvers.masters.joint import _blas
from maxmargin.solvers.masters.newton import projected_newton
from maxmargin.solvers.masters.proximal import ProximalMaster, bound_by_cells
from maxmargin.solvers.proximal_planes import Blocks, Found, Pool, collect
from maxmargin.solvers.proximal_state import ProximalState

__all__ = ["ProximalEngine"]

JOINT_BELOW = 400  # planes that are solved together after a look at all examples, also where blocks are visited in turn
REPORT_EVERY = 25  # looks without a better bound between two certificates; three equal ones end a run as stalled
ROUNDING = 1e-13


class ProximalEngine:
    """What the driver runs.

    Parameters
    ----------
    settings : ProximalPoint
    random_state : int, Generator or None
    """

    def __init__(self, settings: Any, random_state: Any = None) -> None:
        self.settings = settings
        self.random_state = random_state

    # --- the contract with the driver ---------------------------------------------------------------------------------

    def init(self, problem: GenerativeProblem, warm: ProximalState | None = None) -> ProximalState:
        """Start at the reference, or from the planes of an earlier run on the same examples."""
        blocks, stream = self._blocks(problem)
        width = blocks.widest if problem.squared else 0
        theta = problem.first()
        state = ProximalState(
            problem,
            CountingOracle(problem.oracle),
            blocks,
            stream,
            Pool(blocks.cells, problem.n_weights, width, self.settings.limit),
            np.random.default_rng(self.random_state),
            theta,
            theta.copy(),
            theta.copy(),
            np.nan if self.settings.gamma == "auto" else float(self.settings.gamma),
        )
        if warm is not None:
            _continue(state, warm)
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
        due = state.since + visit * share / max(1, n) >= self.settings.certificate_every
        return round(visit * share * self.settings.repeats) + (n if due else 0)

    def step(self, state: ProximalState) -> None:
        """One iteration of the decomposition over all blocks, or a visit of some."""
        with _blas().limit(limits=1, user_api="blas"):  # small matrices; and the result must not depend on the cores
            if state.stream:
                self._visit(state)
            else:
                self._absorb(state)
                self._solve(state, None)
                self._look(state)

    def weights(self, state: ProximalState) -> np.ndarray:
        """The best feasible log-probabilities so far (n_weights,)."""
        return state.best

    def finished(self, state: ProximalState) -> str | None:
        """Only the gap, the budgets or a stall end a run."""
        return None

    def conclude(self, state: ProximalState, certificate: Certificate) -> Certificate:
        """The weights are the best all along."""
        return certificate

    def from_arrays(self, problem: GenerativeProblem, arrays: Mapping[str, np.ndarray]) -> ProximalState:
        """Resume where :meth:`ProximalState.to_arrays` left off."""
        state = self.init(problem)
        members = state.blocks.members
        same = np.array_equal(arrays["weight"], problem.weight) and str(arrays["data"]) == problem.fingerprint()
        same = same and np.array_equal(arrays["sizes"], [len(m) for m in members])
        same = same and np.array_equal(arrays["members"], np.concatenate(members))
        if not (
            same and int(arrays["cells"]) == state.blocks.cells and state.problem.n_weights == len(arrays["theta"])
        ):
            raise ValueError(
                "the saved state belongs to another problem: resume with the same examples, cost, C, loss and blocks."
            )
        state.restore(arrays)
        return state

    # --- further examples ---------------------------------------------------------------------------------------------

    def extend(self, state: ProximalState, problem: GenerativeProblem) -> ProximalState:
        """Go on with further examples; those of before are gone, their planes and multipliers stay.

        The lower bound stays one, because losses are not negative. The objective can no longer be known: what the old
        examples add to it is estimated from their planes, so certificates say that they are not certified.
        """
        old = state.blocks
        if problem.squared != state.problem.squared or problem.n_weights != state.problem.n_weights:
            raise ValueError("further examples must have the loss and the tables of the first.")
        fresh, stream = self._blocks(problem)
        gone = [np.zeros(0, np.int64)] * len(old)
        blocks = Blocks.of([*gone, *fresh.members], problem.n_examples, state.pool.parts.shape[1], fresh.product)
        width = (blocks.widest if problem.squared else 0) - state.pool.zeta.shape[1]
        if width > 0:
            state.pool.zeta = np.pad(state.pool.zeta, ((0, 0), (0, width)))
        counted = CountingOracle(problem.oracle)
        counted.oracle_calls, counted.argmax_calls, counted.seconds = (
            state.oracle.oracle_calls,
            state.oracle.argmax_calls,
            state.oracle.seconds,
        )
        self._absorb(state)
        state.problem, state.oracle, state.blocks = problem, counted, blocks
        state.stream = [subset + len(old) for subset in stream]
        state.primal, state.centre_primal, state.certified = np.inf, np.inf, False
        state.centre, state.theta, state.news = state.best.copy(), state.best.copy(), True
        return state

    # --- inside -------------------------------------------------------------------------------------------------------

    def _blocks(self, problem: GenerativeProblem) -> tuple[Blocks, list[np.ndarray]]:
        """The blocks, and the blocks of each visit."""
        wanted, n, s = self.settings.blocks, problem.n_examples, self.settings
        stream: list[np.ndarray] = []
        if isinstance(wanted, str) and wanted == "one":
            members = [np.arange(n)]
        elif isinstance(wanted, str) and wanted == "product":
            members = list(np.arange(n)[:, None])
        elif isinstance(wanted, (int, np.integer)) and not isinstance(wanted, bool) and wanted >= 1:
            members = np.array_split(np.arange(n), min(int(wanted), max(n, 1)))
        elif isinstance(wanted, Sequence) and not isinstance(wanted, str):
            members, stream = _atoms(wanted, n)
        else:
            raise ValueError(
                f'blocks must be "one", "product", a number or a list of lists of examples; got {wanted!r}.'
            )
        if stream or s.visits is not None:
            stream = stream or [np.array([b]) for b in range(len(members))]
        product = isinstance(wanted, str) and wanted == "product"
        planes = len(members) * (2 if s.limit is None else min(s.limit, 2 if product else s.limit) + 1)
        row = 8 * problem.n_weights
        cells = max(1, min(s.cells, int(s.memory / max(1, planes * row)) - 1))
        if planes * row * 2 > s.memory:
            raise ValueError(
                f"{planes} planes of {problem.n_weights} weights take {2 * planes * row / 1e9:.1f} GB, more than "
                f"memory allows ({s.memory / 1e9:.1f} GB); use fewer blocks or a lower limit."
            )
        return Blocks.of(members, n, cells, product), stream

    def _proximal(self, state: ProximalState) -> Proximal:
        return Proximal(state.problem.tables, state.problem.reference, state.gamma, state.centre)

    def _ask(self, state: ProximalState, visited: np.ndarray, examples: np.ndarray) -> tuple[Found, np.ndarray, bool]:
        """New planes of the visited blocks, the losses of the examples, and whether those are proven."""
        problem = state.problem
        planes: Planes = state.oracle.planes(state.theta, examples)
        losses = planes.bound
        proven = bool(np.isfinite(losses[problem.weight[planes.example] > 0]).all())
        if not proven:
            losses = np.where(np.isfinite(losses), losses, planes.violations(state.theta))
        losses = np.maximum(losses, 0.0)
        found = collect(planes, losses, state.blocks, visited, problem.weight, problem.squared)
        by_example = np.zeros(problem.n_examples)
        by_example[planes.example] = losses
        return found, by_example, proven

    def _absorb(self, state: ProximalState) -> None:
        if state.pending is not None:
            state.pool.add(state.pending)
            state.pending = None

    def _look(self, state: ProximalState, again: bool = False) -> None:
        """Ask all examples at theta: upper and lower bounds, and whether the centre moves."""
        problem, pool = state.problem, state.pool
        live = np.flatnonzero([len(m) > 0 for m in state.blocks.members])
        found, losses, proven = self._ask(state, live, np.arange(problem.n_examples))
        begin = clock()
        here = problem.primal(state.theta, losses) + self._retired(state)
        u, linear, quadratic = pool.point()
        bound = problem.lower_bound(linear, u, quadratic)[0]
        if state.looks and state.looks % self.settings.bound_every == 0 and len(state.blocks) * state.blocks.cells > 1:
            bound = max(bound, bound_by_cells(problem, *pool.by_cells(state.blocks), state.best))
        better = here < state.primal or bound > state.dual
        state.news, state.quiet = state.news or better, 0 if better else state.quiet + 1
        if here < state.primal:
            state.primal, state.best = here, state.theta.copy()
            state.certified = proven and all(len(m) for m in state.blocks.members)
        state.dual = max(state.dual, bound)
        state.pending, state.since = found, 0.0
        if np.isnan(state.gamma):
            size = float(np.sqrt(np.mean(found.parts.sum(axis=(0, 1)) ** 2)))
            state.gamma = max(0.1 * size, self.settings.least * problem.reference.max())
        moved = self._recentre(state, here, linear, u, quadratic)
        state.looks += 1
        state.bound_seconds += clock() - begin
        if moved and self.settings.refind and not again:
            begin = clock()
            self._absorb(state)
            state.theta, state.value = self._at_centre(state)
            self._look(state, again=True)
            state.centre_seconds += clock() - begin

    def _at_centre(self, state: ProximalState) -> tuple[np.ndarray, float]:
        """theta and the dual value of (P_n) at the present multipliers."""
        u, linear, quadratic = state.pool.point()
        proximal = self._proximal(state)
        solved = proximal.solve(u)
        return solved.theta, linear - proximal.conjugate(u, solved) - 0.5 * quadratic

    def _recentre(self, state: ProximalState, here: float, linear: float, u: np.ndarray, quadratic: float) -> bool:
        """Record the bounds of (P_n), and move the centre to theta when the rule says so."""
        s, problem = self.settings, state.problem
        begun = np.isfinite(state.centre_primal)
        upper = here + self._proximal(state).term(state.theta)
        if begun:
            state.gap = max(upper - state.value, 0.0)
        estimate, outside = problem.estimate(linear, u, quadratic)
        used = int((state.pool.alpha > 0).sum())
        state.trace.append(
            (
                state.looks, state.centres, state.gamma, used, outside, state.oracle_calls,
                sum(state.seconds[name] for name in ("oracle", "solver")), here, state.primal, state.dual, upper,
                state.value, estimate,
            )
        )  # fmt: skip
        if not begun:
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
        state.gamma = max(state.gamma * s.decay, min(state.gamma, s.least * float(problem.reference.max())))
        return True

    def _solve(self, state: ProximalState, visited: np.ndarray | None) -> None:
        """The master problem over the planes of the visited blocks (None: of all), the others fixed."""
        begin = clock()
        pool, problem, proximal = state.pool, state.problem, self._proximal(state)
        rows = pool.rows(visited)
        if len(rows) == 0:
            state.theta, state.value = self._at_centre(state)
            return
        u, linear, quadratic = pool.point()
        alpha = pool.alpha[rows]
        rest, fixed = u - alpha @ pool.A[rows], linear - float(alpha @ pool.b[rows])
        present, block = np.unique(pool.block[rows], return_inverse=True)
        A, b, gram = pool.A[rows], pool.b[rows], None
        if problem.squared:
            gram = (pool.zeta[rows] @ pool.zeta[rows].T) * (block[:, None] == block[None, :])
            fixed -= 0.5 * (quadratic - float(alpha @ gram @ alpha))
            q0, total = alpha, np.full(len(present), np.inf)
        else:  # the origin of each simplex is a variable with the zero plane
            A = np.vstack([A, np.zeros((len(present), A.shape[1]))])
            b = np.concatenate([b, np.zeros(len(present))])
            q0 = np.concatenate([alpha, np.maximum(1.0 - np.bincount(block, alpha, len(present)), 0.0)])
            block, total = np.concatenate([block, np.arange(len(present))]), np.ones(len(present))
        size = abs(state.primal) if np.isfinite(state.primal) else abs(state.first)
        tol = max(self.settings.accuracy * state.gap, ROUNDING * size)
        tol = tol if not problem.squared else 0.1 * tol  # on orthants it is a decrement, not a bound
        master = ProximalMaster(A, b, proximal, rest, gram)
        result = projected_newton(master, block, total, q0, tol, max_iterations=50)
        pool.set_weights(rows, result.q[: len(rows)], self.settings.patience)
        state.theta, state.value = master.at(result.q)[1].theta, result.value + fixed
        state.master_seconds += clock() - begin

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
        length = len(state.stream)
        if self.settings.selection == "permutation" and state.cursor % length == 0:
            state.order = state.rng.permutation(length)
        at = state.cursor % length
        state.cursor += 1
        return state.stream[int(state.order[at]) if len(state.order) == length else at]

    def _retired(self, state: ProximalState) -> float:
        """What examples that are gone add to the objective, estimated from below by their planes."""
        total, pool = 0.0, state.pool
        for block, members in enumerate(state.blocks.members):
            rows = np.flatnonzero(pool.block == block) if len(members) == 0 else np.zeros(0, np.int64)
            if len(rows) == 0:
                continue
            values = pool.b[rows] - pool.A[rows] @ state.theta
            if not state.problem.squared:
                total += max(float(values.max()), 0.0)
                continue
            lengths = np.einsum("ij,ij->i", pool.zeta[rows], pool.zeta[rows])
            total += float((np.maximum(values, 0.0) ** 2 / (2.0 * np.maximum(lengths, 1e-300))).max())
        return total


def _atoms(subsets: Sequence, n: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Blocks of the examples that belong to the same subsets, and the blocks of each subset.

    Subsets that overlap can not have multipliers of their own: an example would be counted twice.
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
    problem, before = state.problem, warm.problem
    same = before.squared == problem.squared and before.n_weights == problem.n_weights
    same = same and before.n_examples == problem.n_examples and before.fingerprint() == problem.fingerprint()
    same = same and len(state.blocks) == len(warm.blocks) and state.blocks.cells == warm.blocks.cells
    if not (same and all(map(np.array_equal, state.blocks.members, warm.blocks.members))):
        raise ValueError("warm start needs the same examples, costs and blocks as before; else set warm_start=False.")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(before.weight > 0, problem.weight / before.weight, np.nan)
    pool = warm.pool
    state.pool = Pool(*pool.parts.shape[1:], pool.zeta.shape[1], state.pool.limit)
    for name in Pool.ARRAYS:
        setattr(state.pool, name, getattr(pool, name).copy())
    for block, members in enumerate(state.blocks.members):
        own = ratio[members]
        if not np.allclose(own, own[0], rtol=1e-12, atol=0.0):
            raise ValueError("warm start needs weights that change by one factor within a block; set warm_start=False.")
        rows = np.flatnonzero(state.pool.block == block)
        if problem.squared:
            state.pool.zeta[rows] /= np.sqrt(own[0])
        else:
            for array in (state.pool.parts, state.pool.offset, state.pool.A, state.pool.b):
                array[rows] *= own[0]
    state.theta, state.centre, state.best = warm.best.copy(), warm.best.copy(), warm.best.copy()
