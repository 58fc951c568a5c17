"""Linear programs of L1-regularised large margins: our restarted primal-dual method and choice, HiGHS and OR-tools.

Each method runs in a process of its own (highspy and OR-tools cannot share one), on one thread, on the same programs: a
seeded random one (5,000 rows, 20,000 columns, 40 entries a row, C = 1), and the last master of column generation on
1,000 sentences of GENIA (C = 10, to a gap of 2 %, begun where a recentred dual had 10 %). The last 500 rows of each are
those that join when a program is solved again: random ones of the former, those of the last rounds of the latter. What
a method claims does not count: the relative gap is that of
:meth:`maxmargin.solvers.linear_programs.program.Program.bounds` at its weights and multipliers, and times are compared
where that is at most 1e-4. "At first" is the gap at the start, and "moved" how far the weights end from there, as a
share of their sum (OR-tools: from 0). "Automatic" is the master "auto" of column generation. Times are processor
seconds::

    MAXMARGIN_DATA=... make bench-lp                          # pip install highspy ortools for the comparison
    python benchmarks/linear_programs.py --program random --method "primal-dual to 1e-4" --seconds 60
    python benchmarks/linear_programs.py --folder programs     # keep the programs, and take those that are there
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from machine import machine_line
from maxmargin.solvers.linear_programs.masters import AutoMaster
from maxmargin.solvers.linear_programs.program import Master, Point, Program

METHODS = {
    "automatic to 1e-4": ("automatic", 1e-4),
    "automatic, again": ("automatic_again", 1e-4),
    "primal-dual to 1e-2": ("ours", 1e-2),
    "primal-dual to 1e-4": ("ours", 1e-4),
    "primal-dual, again": ("ours_again", 1e-4),
    "extragradient to 1e-2": ("extragradient", 1e-2),
    "HiGHS simplex": ("highs", "simplex"),
    "HiGHS simplex, again": ("highs_again", "simplex"),
    "HiGHS interior point": ("highs", "ipm"),
    "HiGHS PDLP 1e-4": ("highs", "pdlp", 1e-4),
    "OR-tools PDLP 1e-4": ("ortools", 1e-4),
    "OR-tools PDLP 1e-4, again": ("ortools_again", 1e-4),
    "OR-tools PDLP 1e-5": ("ortools", 1e-5),
    "OR-tools PDLP 1e-6": ("ortools", 1e-6),
}
AGAIN = {
    "automatic, again": "automatic to 1e-4",
    "primal-dual, again": "primal-dual to 1e-4",
    "HiGHS simplex, again": "HiGHS simplex",
    "OR-tools PDLP 1e-4, again": "OR-tools PDLP 1e-4",
}
CERTIFIED = 1e-4  # the gap at which times are compared,
UNSOLVED = 1e-2  # and from which on a program is not solved again with more rows
LATER = 500  # rows that join
EXTRAGRADIENT_STEPS = 40_000  # at most
Answer = tuple[Point, float]  # and processor seconds


class Case(NamedTuple):
    """A program, and how many of its rows are there at first."""

    program: Program
    known: int

    @property
    def before(self) -> Program:
        p, k = self.program, self.known
        return Program(sp.csr_array(p.A[:k]), p.b[:k], p.owner[:k], p.weight)

    def save(self, path: Path) -> None:
        p = self.program
        matrix = {"indptr": p.A.indptr, "indices": p.A.indices, "data": p.A.data, "shape": p.A.shape}
        np.savez(path, b=p.b, owner=p.owner, weight=p.weight, known=self.known, **matrix)

    @staticmethod
    def load(path: Path) -> Case:
        with np.load(path) as parts:
            A = sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
            return Case(Program(A, parts["b"], parts["owner"], parts["weight"]), int(parts["known"]))


def random_program(m: int = 5000, d: int = 20_000, entries: int = 40, seed: int = 0) -> Program:
    """Rows of normal numbers in random columns, five for each example; a planted model agrees with nine in ten."""
    rng = np.random.default_rng(seed)
    places, values = rng.integers(0, d, (m, entries)), rng.normal(size=(m, entries))
    A = sp.csr_array((values.ravel(), places.ravel(), np.arange(0, m * entries + 1, entries)), shape=(m, d))
    A.sum_duplicates()
    agreed = np.sign(A @ (rng.normal(size=d) * (rng.random(d) < 0.05)))
    signs = np.where((rng.random(m) < 0.9) & (agreed != 0), agreed, 1.0)
    owner = rng.permutation(np.repeat(np.arange(m // 5), 5))
    return Program(sp.csr_array(sp.diags_array(signs) @ A), np.ones(m), owner, np.ones(m // 5))


def genia_case(n: int) -> Case:
    """The last master of column generation on n sentences of GENIA: words and labels before, unit margins, C = 10."""
    import maxmargin as mm
    from maxmargin.datasets.columns import read_columns
    from maxmargin.datasets.folder import require
    from maxmargin.formulations.rescaled_hinge import RescaledHinge

    path = require("genia_pos/train.tsv.xz", "lines 'word<TAB>tag', a blank line between sentences")
    chosen = list(read_columns(path, separator="\t", comments="#doc "))[:n]
    X = mm.DictFeatures().fit_transform([[[f"w={token[0]}"] for token in sentence] for sentence in chosen])
    bound = mm.Chain().bind(X, [[token[1] for token in sentence] for sentence in chosen])
    problem = RescaledHinge(rescaling="unit", penalty="l1").problem(bound, C=10.0)
    first = mm.RecentredDual().engine(problem, 0)
    begun = first.init(problem)
    while first.certificate(begun).relative_gap > 0.1:
        first.step(begun)
    engine = mm.ColumnGeneration("primal_dual").engine(problem)
    state = engine.init(problem, begun)
    while True:
        known = len(state.rows)
        if engine.certificate(state).relative_gap < 0.02:
            break
        engine.step(state)
    whole = state.rows.program
    rows = slice(0, known + LATER)
    A = sp.csr_array(whole.A[rows])
    A = sp.csr_array(A[:, np.unique(A.indices)])
    return Case(Program(A, whole.b[rows], whole.owner[rows], whole.weight), A.shape[0] - LATER)


def case_named(name: str, sentences: int) -> Case:
    if name == "random":
        program = random_program()
        return Case(program, len(program.b) - LATER)
    return genia_case(sentences)


class Runs:
    """The methods: point and processor seconds of each."""

    def __init__(self, case: Case, limit: float) -> None:
        self.case, self.program, self.limit = case, case.program, limit
        self.begins, self.first = 1.0, self.zero(case.program)  # the gap at the start, and the start

    @staticmethod
    def zero(program: Program) -> Point:
        return Point(np.zeros(program.A.shape[1]), np.zeros(len(program.b)))

    def with_later(self, point: Point) -> Point:
        """A point of the program before; rows that join have no multiplier."""
        more, basis = len(self.program.b) - self.case.known, point.basis
        if basis is not None:
            basis = basis._replace(rows=np.append(basis.rows, np.ones(more, bool)))
        return Point(point.w, np.append(point.alpha, np.zeros(more)), basis)

    def ours(self, tol: float) -> Answer:
        return self.by(primal_dual(), self.zero(self.program), tol)

    def ours_again(self, tol: float) -> Answer:
        return self.by(primal_dual(), self.after(primal_dual(), tol), tol)

    def automatic(self, tol: float) -> Answer:
        return self.by(AutoMaster(), self.zero(self.program), tol)

    def automatic_again(self, tol: float) -> Answer:
        return self.by(AutoMaster(), self.after(AutoMaster(), tol), tol)

    def by(self, master: Master, start: Point, tol: float) -> Answer:
        """A master from a start."""
        primal_dual().solve(*warm_up(), 1e-1)
        self.begins, self.first = self.program.bounds(start).relative_gap, start
        begin = time.process_time()
        return master.solve(self.program, start, tol), time.process_time() - begin

    def after(self, master: Master, tol: float) -> Point:
        """Where a master ends on the program without the last rows."""
        return self.with_later(master.solve(self.case.before, self.zero(self.case.before), tol))

    def extragradient(self, tol: float) -> Answer:
        from maxmargin.solvers.linear_programs.extragradient import Extragradient

        master = Extragradient(step="frobenius", max_steps=EXTRAGRADIENT_STEPS)
        return self.by(master, self.zero(self.program), tol)

    def highs(self, solver: str, tol: float | None = None) -> Answer:
        solve = self.highs_of(self.program, solver, tol)
        return self.timed(solve)

    def highs_again(self, solver: str) -> Answer:
        """The basis stays when rows are added."""
        import highspy

        solve, k = self.highs_of(self.case.before, solver), self.case.known
        solve.run()
        found = solve.getSolution()
        start = self.with_later(self.point(np.array(found.col_value), np.array(found.row_dual)))
        self.begins, self.first = self.program.bounds(start).relative_gap, start
        later = sp.csr_array(columns(self.program)[0][k:])
        none = np.full(later.shape[0], highspy.kHighsInf)
        solve.addRows(later.shape[0], self.program.b[k:], none, later.nnz, later.indptr[:-1], later.indices, later.data)
        return self.timed(solve)

    def timed(self, solve) -> Answer:  # type: ignore[no-untyped-def]
        begin = time.process_time()
        solve.run()
        seconds = time.process_time() - begin
        found = solve.getSolution()
        return self.point(np.array(found.col_value), np.array(found.row_dual)), seconds

    def highs_of(self, program: Program, solver: str, tol: float | None = None):  # type: ignore[no-untyped-def]
        import highspy

        K, cost = columns(program)
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = K.shape
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, np.zeros(len(cost)), np.full(len(cost), highspy.kHighsInf)
        lp.row_lower_, lp.row_upper_ = program.b, np.full(K.shape[0], highspy.kHighsInf)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = K.indptr, K.indices, K.data
        solve = highspy.Highs()
        settings = {"output_flag": False, "threads": 1, "solver": solver, "run_crossover": "off"}
        settings["time_limit"] = self.limit
        if tol is not None:
            settings["pdlp_optimality_tolerance"] = tol
        for name, value in settings.items():
            assert solve.setOptionValue(name, value) == highspy.HighsStatus.kOk, name
        solve.passModel(lp)
        return solve

    def ortools(self, tol: float) -> Answer:
        return self.pdlp(self.program, tol)

    def ortools_again(self, tol: float) -> Answer:
        from ortools.pdlp.python import pdlp

        found = pdlp.PrimalAndDualSolution()
        found.primal_solution, found.dual_solution = self.pdlp_raw(self.case.before, tol)[:2]
        found.dual_solution = np.append(found.dual_solution, np.zeros(len(self.program.b) - self.case.known))
        return self.pdlp(self.program, tol, found)

    def pdlp(self, program: Program, tol: float, start: object = None) -> Answer:
        x, alpha, seconds = self.pdlp_raw(program, tol, start)
        return self.point(x, alpha), seconds

    def pdlp_raw(self, program: Program, tol: float, start: object = None) -> tuple[np.ndarray, np.ndarray, float]:
        from ortools.pdlp import solvers_pb2
        from ortools.pdlp.python import pdlp

        K, cost = columns(program)
        given = pdlp.QuadraticProgram()
        given.resize_and_initialize(len(cost), K.shape[0])
        given.constraint_matrix, given.objective_vector = sp.csc_matrix(K), cost
        given.variable_lower_bounds, given.variable_upper_bounds = np.zeros(len(cost)), np.full(len(cost), np.inf)
        given.constraint_lower_bounds, given.constraint_upper_bounds = program.b, np.full(K.shape[0], np.inf)
        settings = solvers_pb2.PrimalDualHybridGradientParams()
        criteria = settings.termination_criteria
        criteria.simple_optimality_criteria.eps_optimal_relative = tol
        criteria.simple_optimality_criteria.eps_optimal_absolute = tol
        criteria.time_sec_limit = self.limit
        begin = time.process_time()
        found = pdlp.primal_dual_hybrid_gradient(given, settings, *([] if start is None else [start]))
        return found.primal_solution, found.dual_solution, time.process_time() - begin

    def point(self, x: np.ndarray, alpha: np.ndarray) -> Point:
        d = self.program.A.shape[1]
        return Point(x[:d] - x[d : 2 * d], alpha)


def columns(program: Program) -> tuple[sp.csr_array, np.ndarray]:
    """The rows ``A w+ - A w- + xi >= b`` and the costs of all variables."""
    m, d = program.A.shape
    owners = sp.csr_array((np.ones(m), (np.arange(m), program.owner)), shape=(m, len(program.weight)))
    return sp.csr_array(sp.hstack([program.A, -program.A, owners])), np.concatenate([np.ones(2 * d), program.weight])


def primal_dual() -> Master:
    from maxmargin.solvers.linear_programs.primal_dual import PrimalDual

    return PrimalDual()


def warm_up() -> tuple[Program, Point]:
    """A tiny program that has the kernels compiled."""
    program = random_program(50, 100, 5)
    return program, Runs.zero(program)


def run(path: Path, method: str, limit: float) -> None:
    """One method on one program: seconds, primal, dual, certified gap, that of its start, and how far the weights have
    come from there in shares of their sum, as a line of JSON."""
    case = Case.load(path)
    name, *arguments = METHODS[method]
    runs = Runs(case, limit)
    methods: dict[str, Callable[..., Answer]] = {
        "ours": runs.ours, "ours_again": runs.ours_again, "automatic": runs.automatic,
        "automatic_again": runs.automatic_again, "extragradient": runs.extragradient, "highs": runs.highs,
        "highs_again": runs.highs_again, "ortools": runs.ortools, "ortools_again": runs.ortools_again,
    }  # fmt: skip
    point, seconds = methods[name](*arguments)
    bounds = case.program.bounds(point)
    moved = float(np.abs(point.w - runs.first.w).sum() / np.abs(point.w).sum())
    print(json.dumps([seconds, bounds.primal, bounds.dual, bounds.relative_gap, runs.begins, moved]))


def compare(path: Path, methods: list[str], limit: float) -> None:
    """All methods on one program."""
    words = f"{'primal':>14s} {'dual':>14s} {'certified gap':>14s} {'at first':>8s} {'moved':>6s}"
    print(f"{'method':26s} {'seconds':>9s} {words}")
    spent, gaps = dict[str, float](), dict[str, float]()
    for name in methods:
        if name in AGAIN and gaps.get(AGAIN[name], 0.0) > UNSOLVED:
            print(f"{name:26s} not run: {AGAIN[name]} has not ended", flush=True)
            continue
        command = [sys.executable, __file__, "--run", str(path), "--method", name, "--seconds", str(limit)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2.5 * limit + 60.0)
        except subprocess.TimeoutExpired:
            print(f"{name:26s} no answer in {2.5 * limit + 60.0:.0f} s", flush=True)
            continue
        if done.returncode:
            said = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else str(done.returncode)
            print(f"{name:26s} failed: {said}", flush=True)
            continue
        spent[name], primal, dual, gaps[name], begins, moved = json.loads(done.stdout.strip().splitlines()[-1])
        values = f"{primal:14.6g} {dual:14.6g} {gaps[name]:14.1e} {begins:8.1e} {moved:6.2f}"
        print(f"{name:26s} {spent[name]:9.2f} {values}", flush=True)
    for again, cold in AGAIN.items():
        if again in spent and cold in spent:
            print(f"{again}: {spent[again] / spent[cold]:.2f} of the time of {cold}")
    reached = {name: seconds for name, seconds in spent.items() if gaps[name] <= CERTIFIED and "again" not in name}
    ours = reached.get("automatic to 1e-4")
    for name, seconds in reached.items() if ours else ():
        if name != "automatic to 1e-4":
            print(f"automatic to 1e-4: {ours / seconds:.2f} of the time of {name}, both certified")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--program", choices=("random", "genia"), action="append", help="only these programs")
    words.add_argument("--method", choices=METHODS, action="append", help="only these methods")
    words.add_argument("--sentences", type=int, default=1000, help="of GENIA")
    words.add_argument("--seconds", type=float, default=30.0, help="the most that HiGHS or OR-tools may take")
    words.add_argument("--folder", type=Path, help="where programs are kept; by default they are not")
    words.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.run:
        run(given.run, given.method[0], given.seconds)
        return
    print(machine_line())
    with tempfile.TemporaryDirectory() as own:
        folder = given.folder or Path(own)
        folder.mkdir(parents=True, exist_ok=True)
        for name in given.program or ("random", "genia"):
            path = folder / (f"{name}.npz" if name == "random" else f"{name}-{given.sentences}.npz")
            if not path.exists():
                case_named(name, given.sentences).save(path)
            case = Case.load(path)
            (m, d), n = case.program.A.shape, len(case.program.weight)
            print(f"\n{name}: {m} rows, {d} columns, {case.program.A.nnz} entries, {n} examples")
            compare(path, given.method or list(METHODS), given.seconds)


if __name__ == "__main__":
    main()
