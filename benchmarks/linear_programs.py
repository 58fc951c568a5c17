"""Linear programs of L1-regularised large margins: our restarted primal-dual method, HiGHS and OR-tools.

Each method runs in a process of its own (highspy and OR-tools cannot share one), on one thread, on the same program:
seeded and random (5,000 rows, 20,000 columns, 40 entries a row, C = 1), or that of an .npz file. What a method claims
does not count: the relative gap is that of :meth:`maxmargin.solvers.linear_programs.program.Program.bounds` at its
weights and multipliers.
Times are processor seconds::

    python benchmarks/linear_programs.py                      # pip install highspy ortools for the comparison
    python benchmarks/linear_programs.py --program master.npz
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp

from machine import machine_line
from maxmargin.solvers.linear_programs.program import Point, Program

METHODS = {
    "primal-dual to 1e-2": ("ours", 1e-2),
    "primal-dual to 1e-3": ("ours", 1e-3),
    "primal-dual to 1e-4": ("ours", 1e-4),
    "again, 500 rows later": ("again", 1e-4),
    "extragradient to 1e-2": ("extragradient", 1e-2),
    "HiGHS simplex": ("highs", "simplex"),
    "HiGHS interior point": ("highs", "ipm"),
    "HiGHS PDLP 1e-4": ("highs", "pdlp", 1e-4),
    "OR-tools PDLP 1e-4": ("ortools", 1e-4),
    "OR-tools PDLP 1e-5": ("ortools", 1e-5),
}


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


def loaded(path: str | None) -> Program:
    """The program of a file, or the random one."""
    if path is None:
        return random_program()
    with np.load(path) as parts:
        A = sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
        return Program(A, parts["b"], parts["owner"], parts["weight"])


class Runs:
    """The methods, each a function of the program: point and processor seconds."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.zero = Point(np.zeros(program.A.shape[1]), np.zeros(len(program.b)))

    def ours(self, tol: float) -> tuple[Point, float]:
        from maxmargin.solvers.linear_programs.primal_dual import PrimalDual

        PrimalDual().solve(*warm_up(), 1e-1)
        begin = time.process_time()
        return PrimalDual().solve(self.program, self.zero, tol), time.process_time() - begin

    def again(self, tol: float) -> tuple[Point, float]:
        """After 500 random rows have joined a program that is solved."""
        from maxmargin.solvers.linear_programs.primal_dual import PrimalDual

        p = self.program
        known = np.sort(np.random.default_rng(0).permutation(len(p.b))[500:])
        before = Program(sp.csr_array(p.A[known]), p.b[known], p.owner[known], p.weight)
        point = PrimalDual().solve(before, Point(self.zero.w, self.zero.alpha[known]), tol)
        alpha = np.zeros(len(p.b))
        alpha[known] = point.alpha
        begin = time.process_time()
        return PrimalDual().solve(p, Point(point.w, alpha), tol), time.process_time() - begin

    def extragradient(self, tol: float) -> tuple[Point, float]:
        from maxmargin.solvers.linear_programs.extragradient import Extragradient

        begin = time.process_time()
        return Extragradient(step="frobenius").solve(self.program, self.zero, tol), time.process_time() - begin

    def columns(self) -> tuple[sp.csc_array, np.ndarray]:
        """The rows ``A w+ - A w- + xi >= b`` and the costs of all variables."""
        p, (m, d) = self.program, self.program.A.shape
        owners = sp.csr_array((np.ones(m), (np.arange(m), p.owner)), shape=(m, len(p.weight)))
        return sp.csc_array(sp.hstack([p.A, -p.A, owners])), np.concatenate([np.ones(2 * d), p.weight])

    def highs(self, solver: str, tol: float | None = None) -> tuple[Point, float]:
        import highspy

        K, cost = self.columns()
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = K.shape
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, np.zeros(len(cost)), np.full(len(cost), highspy.kHighsInf)
        lp.row_lower_, lp.row_upper_ = self.program.b, np.full(K.shape[0], highspy.kHighsInf)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = K.indptr, K.indices, K.data
        solve = highspy.Highs()
        settings = {"output_flag": False, "threads": 1, "solver": solver, "run_crossover": "off", "time_limit": 300.0}
        if tol is not None:
            settings["pdlp_optimality_tolerance"] = tol
        for name, value in settings.items():
            assert solve.setOptionValue(name, value) == highspy.HighsStatus.kOk, name
        solve.passModel(lp)
        begin = time.process_time()
        solve.run()
        seconds = time.process_time() - begin
        found = solve.getSolution()
        return self.point(np.array(found.col_value), np.array(found.row_dual)), seconds

    def ortools(self, tol: float) -> tuple[Point, float]:
        from ortools.pdlp import solvers_pb2
        from ortools.pdlp.python import pdlp

        K, cost = self.columns()
        program = pdlp.QuadraticProgram()
        program.resize_and_initialize(len(cost), K.shape[0])
        program.constraint_matrix, program.objective_vector = sp.csc_matrix(K), cost
        program.variable_lower_bounds, program.variable_upper_bounds = np.zeros(len(cost)), np.full(len(cost), np.inf)
        program.constraint_lower_bounds = self.program.b
        program.constraint_upper_bounds = np.full(K.shape[0], np.inf)
        settings = solvers_pb2.PrimalDualHybridGradientParams()
        criteria = settings.termination_criteria.simple_optimality_criteria
        criteria.eps_optimal_relative = criteria.eps_optimal_absolute = tol
        begin = time.process_time()
        found = pdlp.primal_dual_hybrid_gradient(program, settings)
        seconds = time.process_time() - begin
        return self.point(found.primal_solution, found.dual_solution), seconds

    def point(self, x: np.ndarray, alpha: np.ndarray) -> Point:
        d = self.program.A.shape[1]
        return Point(x[:d] - x[d : 2 * d], alpha)


def warm_up() -> tuple[Program, Point]:
    """A tiny program that has the kernels compiled."""
    program = random_program(50, 100, 5)
    return program, Point(np.zeros(100), np.zeros(50))


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument(
        "--program", metavar="FILE", help="an .npz file with indptr, indices, data, shape, b, owner, weight"
    )
    words.add_argument("--method", choices=METHODS, action="append", help="only these methods")
    words.add_argument("--run", help=argparse.SUPPRESS)
    given = words.parse_args()
    program = loaded(given.program)
    if given.run:
        method, *arguments = METHODS[given.run]
        point, seconds = getattr(Runs(program), method)(*arguments)
        bounds = program.bounds(point)
        print(json.dumps([seconds, bounds.primal, bounds.dual, bounds.relative_gap]))
        return
    print(machine_line())
    print(f"{program.A.shape[0]} rows, {program.A.shape[1]} columns, {program.A.nnz} entries")
    print(f"{'method':24s} {'seconds':>9s} {'primal':>14s} {'dual':>14s} {'certified gap':>14s}")
    for name in given.method or METHODS:
        command = [sys.executable, __file__, "--run", name, *(["--program", given.program] if given.program else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(
                f"{name:24s} failed: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else done.returncode}"
            )
            continue
        seconds, primal, dual, gap = json.loads(done.stdout.strip().splitlines()[-1])
        print(f"{name:24s} {seconds:9.2f} {primal:14.6g} {dual:14.6g} {gap:14.1e}", flush=True)


if __name__ == "__main__":
    main()
