"""The dual engine: restricted simplicial decomposition with three settings, and with them the whole family.

    max  sum alpha b - R*(sum alpha a)    over a product of scaled simplexes (orthants when slacks are squared)

They are: which blocks there are (one simplex for all examples, groups, one for each example), which blocks are
visited between two looks at the whole, and how many planes a block keeps. Frank-Wolfe, cutting planes, block-coordinate
Frank-Wolfe, the sequential dual method and restricted simplicial decomposition are settings of them; see
:mod:`maxmargin.solvers.presets`. Yu & Rousu 2007; architecture in ARCHITECTURE.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from maxmargin.certificate import Certificate
from maxmargin.contracts import DualPoint, Fused, State
from maxmargin.formulations.problem import Problem
from maxmargin.kernel import clock
from maxmargin.oracles.batch_kernel import planes_batch
from maxmargin.oracles.counting import CountingOracle
from maxmargin.oracles.oracle import buffers, packed, rows_of, taken
from maxmargin.planes import Planes, aligned_zeros
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.accuracy import Scales, block_accuracy
from maxmargin.solvers.base import Engine, is_doubtful, resolved
from maxmargin.solvers.block_selection import select
from maxmargin.solvers.block_solver import block_solver, block_weights, extra_entries
from maxmargin.solvers.blocks import blocks_of, group_planes, summed, totals
from maxmargin.solvers.masters.extrapolation import LONGER, POINTS, Extrapolation, pays
from maxmargin.solvers.masters.joint import FEW_STEPS, solve_jointly
from maxmargin.solvers.packed import packed_planes
from maxmargin.solvers.proof import Claims, Losses, check_around, check_at
from maxmargin.solvers.saved import FINITE, Saved
from maxmargin.solvers.saved_set import check_sums, saved_set
from maxmargin.solvers.sequential_kernel import sequential_pass
from maxmargin.solvers.settings import Settings
from maxmargin.solvers.state import COUNTS, NUMBERS, DualState
from maxmargin.solvers.strands import FIRST, strands_of
from maxmargin.solvers.visit_kernel import absorb
from maxmargin.solvers.warm_start import retire_examples, retired_losses, warm_set
from maxmargin.solvers.working_set import WorkingSet

__all__ = ["DualEngine", "DualState"]

FOREVER = 1 << 30
REFRESH_EVERY = 20  # certificates between two rebuilds of the weights from the multipliers
COMPILED_BELOW = 16  # batches smaller than this run in one compiled loop
NEWTON_BELOW = 400  # planes that master="auto" solves jointly,
ROUNDING = 1e-13  # of the dual: joint masters are not solved further
IDLE, IDLE_MASTERS = 1e-3, 3  # that many joint masters in a row may gain less than this share of the gap
POLISH_BELOW, POLISH_STEPS, EXACT = 200, 20, 1e-13  # planes, steps and relative gap of a polish
NEWTON_LATE = 1e-2  # once the relative gap is below this, or no longer halves
AVERAGING = {None: wk.NO_MEAN, "uniform": wk.UNIFORM, "weighted": wk.WEIGHTED, "tail": wk.UNIFORM}


@dataclass(eq=False)
class DualEngine(Engine):
    """A solver of the dual family."""

    settings: Settings
    random_state: int | np.random.Generator | None = None

    handles = frozenset({"quadratic", "signs", "squared"})
    minimises = True

    # --- the contract with the driver ---------------------------------------------------------------------------------

    def init(self, problem: Problem, warm: State | None = None) -> DualState:
        """Start at the origin, or from the multipliers of an earlier run on the same examples."""
        s, d, averaging = self.settings, problem.n_columns, AVERAGING[self.settings.averaging]
        blocks = blocks_of(s.blocks, problem.n_examples)
        if warm is not None:
            working_set = warm_set(problem, warm, blocks)
            working_set.limit, working_set.budget = s.limit, s.memory
            working_set.restart_mean(averaging)
        else:
            longest = d if blocks.members is not None else problem.oracle.longest
            working_set = WorkingSet(totals(problem, blocks), d, longest, s.limit, s.memory, averaging)
        u = aligned_zeros(d)
        w = u if problem.identity else aligned_zeros(d)
        rng = np.random.default_rng(self.random_state)
        state = DualState(problem, CountingOracle(problem.oracle), working_set, u, w, blocks, rng)
        state.cursor = self._first_cursor(state)
        if warm is not None or problem.shift is not None or not problem.quadratic:
            self._rebuild(state)
        if warm is not None:
            state.resumed = warm.resumed if isinstance(warm, DualState) else ""
            state.since = self.settings.certificate_every  # it may be good enough already: look first
        return state

    def certificate_due(self, state: DualState) -> bool:
        """Whether the next thing to do is to look at all examples."""
        # shares of a pass are rounded to whole examples
        return state.pending is None and state.since >= self.settings.certificate_every - 0.01

    def certificate(self, state: DualState) -> Certificate:
        """Primal and dual at the present weights. One oracle pass, whose planes the next step uses."""
        begin, oracle_before = clock(), state.oracle.seconds
        state.leave_strands()  # a run that is resumed here knows as little
        if state.certificates % REFRESH_EVERY == REFRESH_EVERY - 1:
            self._rebuild(state)
        point = self.dual_point(state)
        planes, losses = self._ask(state, np.arange(state.n_blocks), point.w)
        check_at(state, point.w, losses)
        certificate = self.judge(state, point, losses, state.working_set.scales(), planes)
        if state.pending is not None:
            planes = Planes.concatenate([state.pending, planes])
        state.pending = planes if self.settings.reuse else None
        state.solver_seconds += clock() - begin - (state.oracle.seconds - oracle_before)
        return certificate

    def judge(
        self, state: DualState, point: DualPoint, losses: np.ndarray, scales: Scales, planes: Planes | None = None
    ) -> Certificate:
        """The certificate of a point whose losses are known; what it says about further steps is noted."""
        problem = state.problem
        certificate = Certificate(
            problem.primal(point.w, losses) + retired_losses(state, point.w),
            problem.dual(point.linear, point.u),
            bool(np.isfinite(losses[problem.weight > 0]).all()) and state.retired == 0,
        )
        state.note_gap(certificate.gap)
        if problem.quadratic and is_doubtful(state, certificate):
            totals, costs = (float(sizes.max(initial=0.0)) for sizes in scales)
            certificate = resolved(state, certificate, totals, costs)
        if np.isfinite(certificate.gap):
            if problem.quadratic or self.settings.master == "smo":
                state.tau = block_accuracy(state, certificate, scales, planes)
            state.gap = max(certificate.gap, 0.0)
            state.slow = certificate.relative_gap > 0.5 * state.relative_gap
            state.reached, state.relative_gap = certificate.dual, certificate.relative_gap
        state.since = 0.0
        state.certificates += 1
        return certificate

    def finished(self, state: DualState) -> str | None:
        """When rounding hides what is left to gain."""
        return "badly scaled" if state.coarse else None

    def step_calls(self, state: DualState) -> int:
        """Oracle calls that the next step and the certificate behind it will make."""
        n, store = state.problem.n_examples, state.working_set.store
        if state.pending is not None:
            return n
        if self.settings.selection == "gap" and np.isinf(store.gap).any():
            return n + int(np.isinf(store.gap).sum())
        return n + round(self.settings.repeats * self._visits(state) * n / max(1, self._choices(state)))

    def _choices(self, state: DualState) -> int:
        """Blocks, or subsets of a stream, that a visit may be of."""
        return state.n_blocks if state.blocks.subsets is None else len(state.blocks.subsets)

    def _first_cursor(self, state: DualState) -> np.ndarray:
        return np.zeros(1 + (self._choices(state) if self.settings.selection == "shuffled" else 0), np.int64)

    def _visits(self, state: DualState) -> int:
        """Blocks (subsets of a stream) visited in a step."""
        visits = self.settings.visits
        return max(1, round(visits * self._choices(state)) if visits <= 1 else int(visits))

    def step(self, state: DualState) -> None:
        """Visit some blocks with new planes, then solve with the planes at hand. Keeps the dual from falling."""
        begin, oracle_before = clock(), state.oracle.seconds
        try:
            self._step(state)
        except KeyboardInterrupt:
            state.team, state.working_set.dense[:] = None, 0.0
            self._rebuild(state)  # it may have come between the multipliers and the weights
            raise
        state.solver_seconds += clock() - begin - (state.oracle.seconds - oracle_before)

    def _step(self, state: DualState) -> None:
        state.joint = self._jointly(state)
        if state.joint:
            state.leave_strands()
        if state.pending is not None:
            planes, state.pending = state.pending, None
            gain = self.take_in(state, planes)
            in_turn = state.joint and not state.problem.quadratic and self.settings.selection != "whole"
            if not (in_turn and state.working_set.n_planes > NEWTON_BELOW):  # else visits must do
                self._inner(state, np.arange(state.working_set.n_blocks), gain)
        else:
            count, store = self._visits(state), state.working_set.store
            if state.retired:  # blocks of examples that are gone cannot be asked
                names = ("held", "gap", "origin", "total")
                store = store._replace(**{name: getattr(store, name)[: state.n_blocks] for name in names})
            visited = select(self.settings.selection, store, state.rng, count, state.cursor, self._choices(state))
            if state.blocks.subsets is not None:
                visited = np.unique(np.concatenate([state.blocks.subsets[t] for t in visited]))
            first = state.certificates == 0 and state.oracle.oracle_calls == 0
            for _ in range(self.settings.repeats):
                self._inner(state, visited, self.visit(state, visited))
            # a first pass by a policy that starts with blocks never visited is not yet a pass of its own
            if not (first and self.settings.selection == "gap"):
                state.since += len(visited) / state.n_blocks
        if self.settings.averaging == "tail":
            self.keep_tail(state)
        if not state.problem.quadratic and not state.joint:
            state.w[:] = state.problem.regulariser.weights(state.u)  # a run that is resumed here begins with these

    def dual_point(self, state: DualState) -> DualPoint:
        """The multipliers that the run would end with: the present ones or their average."""
        ws = state.working_set
        total = ws.store.moment[wk.TOTAL]
        if total == 0.0:
            if state.earlier is None:
                return DualPoint(ws.linear, state.u, state.w)
            _, u, linear = state.earlier
            return DualPoint(linear, u, state.problem.regulariser.weights(u))
        linear, u = ws.linear + ws.store.moment[wk.LINEAR] / total, state.u + ws.store.mean / total
        if state.earlier is not None:
            weight, before, linear_before = state.earlier
            linear = (weight * linear_before + total * linear) / (weight + total)
            u = (weight * before + total * u) / (weight + total)
        return DualPoint(linear, u, state.problem.regulariser.weights(u))

    def keep_tail(self, state: DualState) -> None:
        """Each time the number of visits has doubled, let the average begin anew behind the half before."""
        ws = state.working_set
        total = float(ws.store.moment[wk.TOTAL])
        if total > 0.5 * ws.store.moment[wk.VISITS] and total >= ws.n_blocks:
            state.earlier = None
            linear, u, _ = self.dual_point(state)
            state.earlier = (total, u, linear)
            ws.restart_mean()

    def weights(self, state: DualState) -> np.ndarray:
        """The weights of the model (n_weights,)."""
        return self.dual_point(state).w[: state.problem.n_weights]

    def conclude(self, state: DualState, certificate: Certificate, code: str) -> Certificate:
        """A fit of labels that has converged with few planes is solved as far as rounding allows: Newton makes it free.

        So small problems put in other words, such as weights in place of repeated examples, get equal solutions. The
        looks at the examples that this takes are not counted. Planes of a resumed run are looked at once more.
        """
        few = self.settings.master == "auto" and state.working_set.n_planes <= POLISH_BELOW
        if code == "converged" and few and state.problem.labels is not None:
            certificate = self._polished(state, certificate)
        state.team = None  # whoever keeps the state needs no words
        check_around(state, state.problem, self.dual_point(state).w)
        return certificate

    def _polished(self, state: DualState, certificate: Certificate) -> Certificate:
        calls, argmax_calls, seconds = state.oracle.oracle_calls, state.oracle.argmax_calls, state.oracle.seconds
        for _ in range(POLISH_STEPS):
            if certificate.relative_gap <= EXACT:
                break
            self.step(state)
            certificate = self.certificate(state)
        state.oracle.restore(calls, argmax_calls, seconds)
        return certificate

    def begin_at(self, state: DualState, w: np.ndarray) -> None:
        """Look there first where w is more than u; else weights without multipliers are no point of the dual."""
        if not state.problem.quadratic:
            state.w[: len(w)] = w

    def move(self, state: DualState, problem: Problem) -> None:
        """Go on with a problem that differs in its linear term or its regulariser only: u follows the shift.

        Where R* is not finite everywhere, the planes behind a new shift become part of the working set: with all the
        weight on them u = 0, which is inside.
        """
        before, after = state.problem.term, problem.term
        state.leave_strands()
        if before is not after:
            if before is not None:
                state.u[: problem.n_columns] += before.shift
            if after is not None:
                state.u[: problem.n_columns] -= after.shift
            if after is not None and len(after.planes) and not problem.quadratic:
                more = [] if state.pending is None else [state.pending]
                more.append(summed(after.planes, problem.weight, state.members))
                state.pending = Planes.concatenate(more)
        if state.w is not state.u:
            state.w[:] = problem.regulariser.weights(state.u)
        state.problem = problem
        state.reached, state.relative_gap, state.slow = -np.inf, np.inf, False
        state.least_gap, state.without_gain, state.idle_masters = np.inf, 0, 0
        state.working_set.restart_mean()
        state.earlier = None

    def extend(self, state: DualState, problem: Problem) -> None:
        """Go on with other examples; the planes and multipliers of those before stay, in blocks without examples.

        What the examples that are gone add to the objective is estimated from below by their planes, so certificates
        say that they are not certified. The dual stays a bound, because losses are not negative.
        """
        if state.pending is not None:
            self.take_in(state, state.pending)
        if state.team is not None:
            state.team.settle(state)
        retire_examples(state, problem, blocks_of(self.settings.blocks, problem.n_examples))
        state.cursor, state.team, state.packed = self._first_cursor(state), None, None  # columns have moved
        self._rebuild(state)

    def from_arrays(self, problem: Problem, arrays: Mapping[str, np.ndarray]) -> DualState:
        """Resume where :meth:`DualState.to_arrays` left off."""
        saved, state, d = Saved.of(arrays), self.init(problem), problem.n_columns
        same = saved["u"].shape == (d,) and np.array_equal(saved["set/total"], state.working_set.store.total)
        same = same and str(saved.get("blocks", state.blocks.fingerprint)) == state.blocks.fingerprint
        saved.belongs_to(problem, same=same, needs=", loss, rescaling and blocks")
        state.working_set = saved_set(saved, state.working_set, self.settings.limit, problem.quadratic)
        state.u[:] = saved.reals("u", (d,))
        if state.w is not state.u:
            state.w[:] = problem.regulariser.weights(state.u)
        check_sums(saved, state.working_set, problem, state.u)
        dual = problem.dual(state.working_set.linear, state.u)
        losses = Losses.around(saved, problem, state.blocks, state.w, dual)
        wrong = losses.exceeded(Claims.of_set(state.working_set))
        if wrong >= 0:
            raise saved.refusal("set/entries", f"and set/b hold a plane of block {wrong} that lies above the losses")
        state.cursor[:] = saved.whole("cursor", np.int64, state.cursor.shape, (0, 2.0**62))
        if self.settings.selection == "shuffled" and state.cursor[0]:
            if not np.array_equal(np.sort(state.cursor[1:]), np.arange(len(state.cursor) - 1)):
                raise saved.refusal("cursor", "is no order of the blocks")
        saved.generator("rng", state.rng)
        saved.take_over("counts", state, COUNTS)
        saved.take_over("numbers", state, NUMBERS)
        linear, u, _ = self.dual_point(state)  # each half of a tail by itself: it may be all that is left later
        shift = 0.0 if problem.shift is None else problem.shift
        if losses.sum_exceeded(linear, u + shift):
            raise saved.refusal("set/mean", "makes an average above the losses")
        if "earlier/u" in saved:
            total, linear = map(float, saved.numbers("earlier/numbers", {"weight": (1.0, 2.0**53), "linear": FINITE}))
            state.earlier = (total, saved.reals("earlier/u", (d,)), linear)
            if losses.sum_exceeded(linear, state.earlier[1] + shift):
                raise saved.refusal("earlier/u", "and earlier/numbers make an average above the losses")
        if "pending/b" in saved:
            state.pending = pending = saved.planes("pending", d, state.n_blocks)
            if losses.exceeded(Claims.of_planes(pending)) >= 0:
                raise saved.refusal("pending/b", "holds a plane that lies above the losses")
        state.resumed = saved.place
        return state

    # --- inside -------------------------------------------------------------------------------------------------------

    def _rebuild(self, state: DualState) -> None:
        before = state.u.copy()
        state.leave_strands()
        wk.rebuild(state.working_set.store, state.u)
        if state.problem.shift is not None:
            state.u[: state.problem.n_columns] -= state.problem.shift
        state.drift = max(state.drift, float(np.abs(state.u - before).max(initial=0.0)))
        if state.w is not state.u:
            state.w[:] = state.problem.regulariser.weights(state.u)

    def _visit_rules(self, state: DualState) -> wk.Visit:
        """How blocks are visited now: limits, tolerances, scratch."""
        settings, ws = self.settings, state.working_set
        limit = wk.NO_LIMIT if ws.limit is None else ws.limit
        # a limit that only memory asks for always merges
        rule = wk.ITERATE if settings.rule == "iterate" and settings.limit is not None else wk.MERGE
        tau = state.tau if settings.tau is None else min(state.tau, settings.tau)
        max_steps, patience = settings.max_steps, settings.patience
        if state.joint:  # the master problem comes after: nothing is solved or dropped before it
            max_steps, patience = 0, FOREVER
        keep, bits = int(settings.keep_origin), ws.bits if state.problem.quadratic else 0
        return wk.Visit(limit, rule, keep, tau, max_steps, patience, bits, ws.table, ws.dense, ws.g, ws.change)

    def _jointly(self, state: DualState) -> bool:
        """Whether this step ends with a joint master problem: late, when small, once a look at all examples."""
        if not state.problem.quadratic or self.settings.master != "auto":
            return self.settings.master == "newton"
        late = (state.relative_gap <= NEWTON_LATE or state.slow) and state.pending is not None
        return late and state.working_set.n_planes <= NEWTON_BELOW and state.idle_masters < IDLE_MASTERS

    def take_in(self, state: DualState, planes: Planes) -> float:
        """Bring planes into their blocks (the example of a group's plane) and solve these; the gain of the dual."""
        ws, rows, gain, row = state.working_set, rows_of(planes), np.zeros(1), 0
        solve, point = block_solver(state)
        weight, lift = block_weights(state), extra_entries(state)
        team = strands_of(state, self.settings.strands)
        if team is not None:
            gained = team.take_in(state, planes, self._visit_rules(state), weight, lift)
            if gained is not None:
                return gained
            state.leave_strands()
        while row < len(planes):
            room, visit = wk.keep_all if ws.limit is None else wk.make_room, self._visit_rules(state)
            row = absorb(room, solve, ws.store, planes.example, row, rows, weight, lift, point, visit, gain)
            if row < len(planes):
                self._grow(state, planes, row)
        return float(gain[0])

    def _grow(self, state: DualState, planes: Planes, row: int) -> None:
        """Room for the planes from ``row`` on that belong to the same block."""
        ws, block = state.working_set, int(planes.example[row])
        same = planes.example[row:] == block
        rows = len(same) if same.all() else int(np.argmin(same))
        own = int(ws.store.length[ws.store.slots[block, : ws.store.held[block]]].sum())
        new = int(planes.indptr[row + rows] - planes.indptr[row])
        ws.grow(block, rows, (rows + 1) * (own + new))

    def visit(self, state: DualState, visited: np.ndarray) -> float:
        """New planes for the visited blocks, a batch at a time."""
        if state.members is not None:
            asked = (self._ask(state, np.array([block]), state.w)[0] for block in visited)
            return sum((self.take_in(state, planes) for planes in asked), 0.0)
        batch = len(visited) if self.settings.batch is None else self.settings.batch
        if batch > 1:  # at the same weights a block drawn twice has nothing new to say
            visited = visited[np.sort(np.unique(visited, return_index=True)[1])]
        new = bool(np.isinf(state.working_set.store.gap[visited]).any())
        fused, strands = state.oracle.fused(), self.settings.strands
        if state.retired and state.problem.squared:
            fused = None  # compiled loops count extra columns from the end, where those of examples that are gone are
        if strands == 1 and fused is not None and batch < COMPILED_BELOW and batch < len(visited):
            return self._sequential(state, visited, batch, fused)
        if batch > 1:
            batch = max(batch, state.oracle.batch_hint)
        team = strands_of(state, strands)
        parts = 1 if new and team is not None else self.settings.parts  # early planes are many and soon forgotten
        if team is not None:
            batch = max(batch, FIRST if new else len(visited))
        gain, n_columns = 0.0, state.problem.n_columns
        weight, lift = block_weights(state), extra_entries(state)
        for part in np.array_split(visited, -(-len(visited) // batch)):  # a short last one would leave threads idle
            rules = self._visit_rules(state)
            gained = None if team is None else team.visit(state, part, parts, rules, weight, lift)
            if gained is None:
                gained = self.take_in(state, state.oracle.planes(state.w[:n_columns], part, parts))
            gain += gained
        return gain

    def revisit(self, state: DualState, blocks: np.ndarray, visit: wk.Visit | None = None) -> float:
        """Solve blocks in turn, or in strands, with the planes they have; the gain of the dual."""
        team, visit = strands_of(state, self.settings.strands), visit or self._visit_rules(state)
        if team is not None:
            return team.revisit(state, blocks, visit)
        solve, point = block_solver(state)
        return solve(state.working_set.store, blocks, point, visit, 0)

    def _sequential(self, state: DualState, visited: np.ndarray, batch: int, fused: Fused) -> float:
        kernel, ws = fused.kernel, state.working_set
        parts = 1 if np.isinf(ws.store.gap[visited]).any() else self.settings.parts
        pack = packed(fused, parts)
        rows = buffers(batch * parts + parts + 1, (batch + 1) * pack.room)
        (solve, point), weight = block_solver(state), block_weights(state)
        gain, done, begin = np.zeros(1), 0, clock()
        while done < len(visited):
            room, visit = wk.keep_all if ws.limit is None else wk.make_room, self._visit_rules(state)
            done = sequential_pass(
                planes_batch, kernel.search, kernel.plane, pack, absorb, room, solve, ws.store, point, visit,
                visited + fused.first, fused.first, done, batch, parts, rows, weight, gain,
            )  # fmt: skip
            if done < len(visited):
                block = int(visited[done : done + batch][np.argmax(ws.store.held[visited[done : done + batch]])])
                own = int(ws.store.length[ws.store.slots[block, : ws.store.held[block]]].sum())
                ws.grow(block, batch * parts, (parts + 1) * (own + batch * pack.room))
        state.oracle.count_fused(len(visited), clock() - begin, taken(pack.counts))
        return float(gain[0])

    def _ask(self, state: DualState, blocks: np.ndarray, w: np.ndarray) -> tuple[Planes, np.ndarray]:
        """New planes of some blocks at w, and the losses of their examples (0 for the others)."""
        problem, w = state.problem, w[: state.problem.n_columns]  # behind are those of examples that are gone
        if state.members is not None:
            return group_planes(problem, state.oracle, state.members, blocks, w)
        planes = state.oracle.planes(w, blocks, self.settings.parts)
        return planes, planes.losses(problem.n_examples)

    def _inner(self, state: DualState, visited: np.ndarray, gain: float) -> None:
        """Use the planes at hand: passes over blocks, or one joint master problem."""
        settings, ws = self.settings, state.working_set
        blocks = np.unique(visited) if settings.cached_blocks == "visited" else np.arange(ws.n_blocks)
        if state.joint:
            problem, tol, conjugate = state.problem, None, state.problem.regulariser.conjugate(state.u)
            if settings.accuracy is not None and np.isfinite(state.gap):
                tol = max(settings.accuracy * state.gap, ROUNDING * (abs(ws.linear) + abs(conjugate)))
            most = FEW_STEPS if settings.master == "auto" and problem.quadratic else None
            before = ws.linear - conjugate
            solve_jointly(
                ws, blocks, state.u, state.w, problem.regulariser, problem.n_weights, settings.patience, tol, most
            )
            gained = ws.linear - problem.regulariser.conjugate(state.u) - before
            state.idle_masters = 0 if gained > IDLE * state.gap else state.idle_masters + 1
            return
        visit, team = self._visit_rules(state), strands_of(state, settings.strands)
        words, share, passes, jumps = packed_planes(state, settings), settings.cached_share, 0, None
        if settings.extrapolate and pays(ws):
            jumps = Extrapolation(ws, state.u, state.w, state.problem.regulariser, None if team is None else team.aim)
            visit = visit._replace(patience=max(visit.patience, POINTS))  # planes stay as long as a jump looks back
            share *= LONGER
        others = team or words
        while passes < settings.cached_passes:
            passes += 1
            order = state.rng.permutation(blocks)
            more = self.revisit(state, order, visit) if words is None else words.revisit(ws, order, visit)
            gain += more
            if more <= max(share * gain, 0.0):
                break
            if jumps is not None:
                gain += jumps.after_pass() if others is None else others.after_pass(state, jumps)
        if words is not None:
            words.end(state)
        if team is not None:
            team.end(state, passes, visit.patience)
