"""Column generation: the linear program of L1-regularised large margins over few rows and few columns at a time.

    min  |w|_1 + sum_i C_i xi_i    over  w . a_i(y) + xi_i >= b_i(y)  for all outputs y,  xi >= 0

A round asks the oracle for the most violated rows, adds them, and solves the linear program over the rows so far (the
master). Weights of early masters fit their few rows and nothing else, so that the oracle is asked on the way from the
best weights so far to those of the master, and at the latter where nothing new comes up. Weights are priced too: one
takes part once ``|sum alpha a|_j`` exceeds 1, so that the master sees a small share of them. The certificate is that of
the whole problem: the primal has the oracle's bounds over all outputs, the dual multipliers that were made feasible
over all weights. A round costs one argmax for each example and at most one master. Wang, Shawe-Taylor 2009, algorithm
1; Dedieu, Mazumder, Wang 2022 (pricing); Ben-Ameur, Neto 2007, Acceleration of cutting-plane and column generation
algorithms (where to ask).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from maxmargin import contracts
from maxmargin.certificate import Certificate
from maxmargin.contracts import DualPoint, State
from maxmargin.formulations.problem import Problem
from maxmargin.kernel import clock
from maxmargin.oracles.counting import CountingOracle
from maxmargin.planes import weighted_sum
from maxmargin.solvers.base import OTHER_FAMILY, BaseSolver, Engine
from maxmargin.solvers.blocks import Blocks
from maxmargin.solvers.linear_programs.masters import master_named
from maxmargin.solvers.linear_programs.program import Basis, Master, Point
from maxmargin.solvers.linear_programs.rows import Known, ProgramState, Rows
from maxmargin.solvers.proof import FALSE_PLANES, Claims, Losses
from maxmargin.solvers.saved import COUNT, FLAG, NUMBER, SECONDS, SIZE, Saved
from maxmargin.solvers.settings import check_whole, check_words
from maxmargin.solvers.state import InnerState, numbers_of, plane_arrays

__all__ = ["ColumnGeneration"]

SHARE = 0.1  # of the relative gap of the whole problem, to which a master is solved
CLOSER = 0.5  # of the relative gap of a master's start, where that is less
LEAST_TOL = 1e-13  # to which masters are solved
OUT = 0.5  # share of the relative gap by which prices must exceed 1 for columns to join
INSIDE = 0.3  # of the way from the best weights to those of the master: where the oracle is asked first,
NEARER = 0.3  # of the way so far where the objective has not fallen,
FARTHER = 0.5  # of the way that is left where it has, once the relative gap is at most
LATE = 0.1  # (the weights of earlier masters lead astray): there it is asked again, at most
NEARER_TIMES = 3  # times before the next master,
LEFT = 1e-3  # without what is left of weights that the master does not have, below this share of its largest
NEAR = 0.95  # price from which columns join with those beyond 1; from 0.9 GENIA takes 1.7 times as long
FEW_COLUMNS = 1000  # columns that may join at a time; when there are more already, as many as there are
NUMBERS = {
    "solver_seconds": SECONDS, "oracle.seconds": SECONDS, "oracle.oracle_calls": COUNT, "oracle.argmax_calls": COUNT,
    "tol": (0.0, 1.0), "best_primal": NUMBER, "relative_gap": SIZE, "masters": COUNT, "inside": FLAG, "barren": FLAG,
    "worse": FLAG, "grown": FLAG, "nearer": (0.0, NEARER_TIMES),
}  # fmt: skip
ROUND = {
    "round": COUNT, "rows": COUNT, "columns": COUNT, "masters": COUNT, "primal": NUMBER, "dual": NUMBER,
    "oracle_seconds": SECONDS, "solver_seconds": SECONDS,
}  # fmt: skip


@dataclass
class ColumnState(InnerState, ProgramState):
    """Where a run stands; arrays only, so it can be saved and resumed."""

    problem: Problem
    oracle: CountingOracle
    rows: Rows
    columns: np.ndarray  # bool (n_columns,): the weights that take part
    w: np.ndarray  # where the oracle is asked
    out: np.ndarray  # the weights of the last master
    best: np.ndarray  # the weights of least primal value so far, which may rise from round to round,
    best_primal: float = np.inf  # and that value
    relative_gap: float = np.inf  # of the last certificate
    tol: float = SHARE  # of the next master
    masters: int = 0  # solved so far,
    grown: bool = False  # and whether rows or columns have joined since the last one
    inside: bool = False  # whether w lies on the way to those of the master,
    barren: bool = False  # and whether it has brought no rows
    worse: bool = False  # whether the objective is no less than the best there
    nearer: int = 0  # how often w has come nearer to the best weights since the last master
    resumed: str = ""  # where the rows were saved, which are then held against every certificate
    # what is basic in the last master, where that was a simplex method; its rows are in ``rows``
    basic_weights: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int8))  # (n_columns,), or none
    basic_slacks: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))  # (n_examples,), or none
    solver_seconds: float = 0.0
    rounds: list[dict[str, float]] = field(default_factory=list)

    @property
    def linear(self) -> float:
        """What the rows prove."""
        return float(self.rows.planes.b @ self.rows.proof)

    @property
    def known(self) -> Known:
        """Rows and columns at hand."""
        return Known(self.rows.planes, self.rows.alpha, self.rows.idle, self.w, self.out, self.columns)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on exactly here."""
        arrays = plane_arrays("rows", self.rows.planes)
        arrays |= {"alpha": self.rows.alpha, "proof": self.rows.proof, "idle": self.rows.idle, "columns": self.columns}
        arrays |= {"basic": self.rows.basic, "basic_weights": self.basic_weights, "basic_slacks": self.basic_slacks}
        arrays |= {"w": self.w, "out": self.out, "best": self.best, "column_numbers": numbers_of(self, NUMBERS)}
        arrays["rounds"] = np.array([[row[name] for name in ROUND] for row in self.rounds]).reshape(-1, len(ROUND))
        arrays |= {"weight": self.problem.weight, "data": np.array(self.problem.fingerprint)}
        return {name: np.array(array) for name, array in arrays.items()}


@dataclass(repr=False, eq=False)
class ColumnGeneration(BaseSolver):
    """Linear programs over the rows and columns that matter, for ``penalty="l1"``.

    With ``warm_start=True`` it goes on from a fit by itself or by ``RecentredDual``, with its rows, multipliers and
    weights; with many examples that spares most of the rounds.

    Parameters
    ----------
    master : {"auto", "highs", "extragradient", "primal_dual"} or an object with ``solve(program, start, tol)``
        What solves the linear programs; see :mod:`maxmargin.solvers.linear_programs`.
    rows : int
        The most rows that an example may add in a round.
    patience : int
        Rounds that a row without a multiplier survives.
    start : {"zero", "ones"} or array (n_weights,)
        The first rows are the most violated ones at weights that are all 0, all 1 as in the paper, or these. Those of
        a fit by MIRA, scaled for the least objective, save most of the first rounds.
    pricing : bool
        Let weights take part once they are priced; else all that occur do.

    References
    ----------
    Wang, Shawe-Taylor 2009, Large-margin structured prediction via linear programming. Dedieu, Mazumder, Wang 2022,
    Solving L1-regularized SVMs and related linear programs: revisiting the effectiveness of column and constraint
    generation.
    """

    master: str | Master = "auto"
    rows: int = 16
    patience: int = 5
    start: str | np.ndarray = "zero"
    pricing: bool = True

    handles = frozenset({"l1", "signs"})

    def engine(self, problem: contracts.Problem, random_state: int | np.random.Generator | None = None) -> ColumnEngine:
        """Column generation draws no random numbers."""
        if not isinstance(self.start, np.ndarray):
            check_words("start", self.start, ("zero", "ones"))
        check_whole(self, {"rows": 1, "patience": 0})
        return ColumnEngine(master_named(self.master), self.rows, self.patience, self.start, self.pricing)


@dataclass(eq=False)
class ColumnEngine(Engine):
    """What the driver runs; the fields are those of :class:`ColumnGeneration`."""

    master: Master
    most_rows: int = 16
    patience: int = 5
    start: str | np.ndarray = "zero"
    pricing: bool = True

    handles = frozenset({"l1", "signs"})
    minimises = True

    # --- the contract with the driver ---------------------------------------------------------------------------------

    def init(self, problem: Problem, warm: State | None = None) -> ColumnState:
        """Start without rows, or from those of an earlier run on the same examples, by this method or another."""
        d = problem.n_columns
        oracle, columns = CountingOracle(problem.oracle), np.zeros(d, bool)
        if warm is None:
            w = self._first(problem)
            return ColumnState(problem, oracle, Rows.none(problem), columns, w, w, w)
        if not isinstance(warm, ProgramState):
            raise ValueError(OTHER_FAMILY)
        if warm.problem.fingerprint != problem.fingerprint:
            raise ValueError("warm start needs the same examples, costs and rescaling; else set warm_start=False.")
        before, after, known = warm.problem.weight, problem.weight, warm.known
        ratio = np.divide(after, before, out=np.zeros(len(after)), where=before > 0)[known.planes.example]
        rows = Rows.of(problem, known.planes, ratio * known.alpha, np.zeros(len(ratio)), known.idle)
        w, out = problem.feasible(known.w), problem.feasible(known.out)
        return ColumnState(problem, oracle, rows.with_multipliers(rows.alpha), known.columns.copy(), w, out, w)

    def _first(self, problem: Problem) -> np.ndarray:
        """The weights at which the first rows are asked for."""
        d = problem.n_columns
        if isinstance(self.start, str):
            return np.ones(d) if self.start == "ones" else np.zeros(d)
        start = np.asarray(self.start, np.float64)
        if start.shape != (d,) or not np.isfinite(start).all():
            raise ValueError(f"start must have {d} finite weights, got an array of shape {start.shape}.")
        return problem.feasible(start)

    def certificate_due(self, state: ColumnState) -> bool:
        """Always: rows and columns come with it."""
        return True

    def certificate(self, state: ColumnState) -> Certificate:
        """Primal and dual of the whole problem at the present weights; rows of the oracle pass and columns join."""
        begin, oracle_before, problem = clock(), state.oracle.seconds, state.problem
        found = state.oracle.planes(state.w, np.arange(problem.n_examples), self.most_rows)
        losses = found.losses(problem.n_examples)
        if state.resumed:
            known = Losses(problem, Blocks(None)).add(state.w, losses)
            if known.exceeded(Claims.of_planes(state.rows.planes)) >= 0:
                raise Saved({}, state.resumed).refusal("rows/data", FALSE_PLANES)
        primal, before = problem.primal(state.w, losses), len(state.rows)
        certified = bool(np.isfinite(losses[problem.weight > 0]).all())
        certificate = Certificate(primal, state.linear, certified)
        state.worse = primal >= state.best_primal
        if not state.worse:
            state.best, state.best_primal = state.w, primal
        state.rows = state.rows.with_violated(found, state.w)
        state.relative_gap = certificate.relative_gap
        state.tol = min(state.tol, SHARE * min(state.relative_gap, 1.0))
        state.barren = len(state.rows) == before
        state.grown |= self._join(state) or not state.barren
        if not state.grown and not state.inside:  # nothing but a better master can help
            state.tol *= SHARE
        state.tol = max(state.tol, LEAST_TOL)
        state.note_gap(certificate.gap)
        state.solver_seconds += clock() - begin - (state.oracle.seconds - oracle_before)
        sizes = len(state.rounds), len(state.rows), state.columns.sum(), state.masters
        spent = state.oracle.seconds, state.solver_seconds
        numbers = (*sizes, primal, certificate.dual, *spent)
        state.rounds.append(dict(zip(ROUND, map(float, numbers), strict=True)))
        return certificate

    def step_calls(self, state: ColumnState) -> int:
        """Those of the certificate behind a step, which asks nothing itself."""
        return state.problem.n_examples

    def step(self, state: ColumnState) -> None:
        """Solve the linear program over the rows and columns at hand.

        Where the last certificate has brought rows but no better weights, the next is nearer to the best ones; where it
        has brought both, late in a run, further along; and where it has brought no rows on the way to the weights of
        the master, at these.
        """
        begin = clock()
        again = state.worse or state.relative_gap <= LATE
        if state.inside and again and not state.barren and state.nearer < NEARER_TIMES:
            state.nearer += 1
            state.w = _between(state.best, state.out, INSIDE * NEARER**state.nearer if state.worse else FARTHER)
            return
        if state.inside and state.barren:
            state.w, state.inside = state.out, False
            return
        state.rows = state.rows.without_idle(self.patience)
        columns = np.flatnonzero(state.columns)
        program, w = state.rows.over(columns), np.zeros(len(state.w))
        basis = None
        if len(state.basic_weights):
            basis = Basis(state.basic_weights[columns], state.basic_slacks, state.rows.basic)
        start = Point(state.out[columns], state.rows.alpha, basis)
        known = CLOSER * program.bounds(start).relative_gap  # a start that is good enough would bring nothing new
        point = self.master.solve(program, start, max(min(state.tol, known), LEAST_TOL))
        w[columns] = point.w
        state.basic_weights, state.basic_slacks, basic = np.zeros(0, np.int8), np.zeros(0, bool), None
        if point.basis is not None:
            state.basic_weights = np.zeros(len(w), np.int8)
            state.basic_weights[columns], state.basic_slacks, basic = point.basis
        multipliers = program.feasible(point.alpha)
        state.out, state.rows = state.problem.feasible(w), state.rows.with_multipliers(multipliers, basic)
        state.w, state.inside, state.nearer = _between(state.best, state.out, INSIDE), True, 0
        state.barren = state.worse = state.grown = False  # the next certificate tells
        state.masters += 1
        state.solver_seconds += clock() - begin

    def weights(self, state: ColumnState) -> np.ndarray:
        """The weights of the model (n_weights,)."""
        return state.w[: state.problem.n_weights]

    def conclude(self, state: ColumnState, certificate: Certificate, code: str) -> Certificate:
        """Back to the best weights seen: the primal may rise from one round to the next."""
        if not state.best_primal < certificate.primal:
            return certificate
        state.w = state.best
        return Certificate(state.best_primal, certificate.dual, certificate.certified)

    def dual_point(self, state: ColumnState) -> DualPoint:
        """The multipliers that have proven most, and the present weights."""
        return DualPoint(state.linear, weighted_sum(state.rows.planes, state.rows.proof), state.w)

    def begin_at(self, state: ColumnState, w: np.ndarray) -> None:
        """Ask for rows there first."""
        start = np.zeros(len(state.w))
        start[: len(w)] = w
        state.w = state.out = state.problem.feasible(start)

    def move(self, state: ColumnState, problem: Problem) -> None:
        """Outer loops ask for this; none takes linear programs."""
        raise ValueError('penalty="l1" has no ramp and no latent outputs; use loss="hinge".')

    def from_arrays(self, problem: Problem, arrays: Mapping[str, np.ndarray]) -> ColumnState:
        """Resume where :meth:`ColumnState.to_arrays` left off."""
        saved, state, d = Saved.of(arrays), self.init(problem), problem.n_columns
        saved.belongs_to(problem, same=saved["w"].shape == (d,), needs=", loss and rescaling")
        planes = saved.planes("rows", d, problem.n_examples)
        m = (len(planes),)
        alpha, proof = saved.reals("alpha", m, SIZE), saved.reals("proof", m, SIZE)
        idle = saved.whole("idle", np.int64, m, COUNT)
        state.w, state.out, state.best = (saved.weights(name, problem, (d,)) for name in ("w", "out", "best"))
        state.columns = saved.array("columns", np.bool_, (d,))
        wrong = Losses.around(saved, problem, Blocks(None), state.w).exceeded(Claims.of_planes(planes))
        if wrong >= 0:
            raise saved.refusal("rows/b", f"holds a plane of example {wrong} above what the example can lose")
        rows = Rows.of(problem, planes, alpha, proof, idle, saved.array("basic", np.bool_, m))
        known = saved["basic_weights"].size > 0
        state.basic_weights = saved.array("basic_weights", np.int8, (d if known else 0,))
        state.basic_slacks = saved.array("basic_slacks", np.bool_, (problem.n_examples if known else 0,))
        if (proof > rows.program.feasible(proof) * (1.0 + 1e-9)).any():
            raise saved.refusal("proof", "holds multipliers that are not feasible")
        state.rows, state.resumed = rows, saved.place
        saved.take_over("column_numbers", state, NUMBERS)
        if np.isfinite(state.best_primal):  # believed only if it can be found again
            state.best_primal = problem.primal(state.best, saved.losses(problem, state.best))
        table = saved.reals("rounds", (None, len(ROUND)), NUMBER)
        state.rounds = [dict(zip(ROUND, map(float, row), strict=True)) for row in table]
        return state

    # --- inside -------------------------------------------------------------------------------------------------------

    def _join(self, state: ColumnState) -> bool:
        """Let the columns join that the multipliers price beyond 1, the dearest first; whether there were any."""
        rows = state.rows
        if not self.pricing:
            occur = np.zeros(len(state.columns), bool)
            occur[rows.planes.indices] = True
            more = (occur & ~state.columns).any()
            state.columns = state.columns | occur
            return bool(more)
        if not state.columns.any():  # multipliers of the weights 0: each example has all it may on its dearest row
            rows = rows.with_multipliers(_all_on_one(rows))
        prices = np.where(state.columns, 0.0, rows.prices())
        slack = OUT * min(state.relative_gap, 1.0) if state.columns.any() else 0.0
        out = np.flatnonzero(prices > 1.0 + max(slack, LEAST_TOL))
        if len(out) == 0 and not state.columns.any():
            out = np.array([np.argmax(prices)])  # a program needs a column
        most = max(FEW_COLUMNS, int(state.columns.sum()))
        if len(out):
            out = np.flatnonzero(prices > min(NEAR, prices.max()) * (1.0 - LEAST_TOL))
        chosen = out[np.argsort(-prices[out], kind="stable")[:most]]
        state.columns = state.columns.copy()
        state.columns[chosen] = True
        return len(chosen) > 0


def _between(best: np.ndarray, out: np.ndarray, share: float) -> np.ndarray:
    """Weights on the way from the best to those of the master, as sparse as these after a while."""
    w = best + share * (out - best)
    w[(out == 0.0) & (np.abs(w) < LEFT * np.abs(out).max(initial=0.0))] = 0.0
    return w


def _all_on_one(rows: Rows) -> np.ndarray:
    """Multipliers (m,): for each example C_i on its row of largest b."""
    order = np.lexsort((-rows.planes.b, rows.planes.example))
    first = order[np.flatnonzero(np.diff(rows.planes.example[order], prepend=-1))]
    alpha = np.zeros(len(rows))
    alpha[first] = rows.weight[rows.planes.example[first]]
    return alpha
