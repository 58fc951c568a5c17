"""What cutting the dual into shards costs and gains, on CoNLL-2000 chunking.

Passes, rounds and processor seconds to a certified gap of 0.1 % by the default solver and by 1, 2, 4 and 8 shards whose
changes are combined by the best shares, added up or averaged, on one worker. Then two shards on one and two threads:
weights must be identical to the last bit, and seconds of both are compared with those of the default on one thread.
If other processes keep the cores busy, compare passes and processor seconds only::

    python benchmarks/shards.py           # needs MAXMARGIN_DATA; --sentences 2000 for a part
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import maxmargin as mm
from machine import Others, cores, machine_line
from maxmargin.execution.executors import Serial, Threads
from maxmargin.execution.sharded import ShardedOracle
from maxmargin.solvers.driver import run
from threads import C, load

TOL, MOST_PASSES = 1e-3, 40


def fit(problem: Any, solver: Any, workers: int = 1) -> dict[str, Any]:
    """A fit by a solver on so many threads: passes, gap, processor and wall seconds, rounds and weights."""
    executor = Threads(workers) if workers > 1 else Serial()
    spread = problem.with_oracles(lambda oracle: ShardedOracle(oracle, executor))
    begin, wall = time.process_time(), time.perf_counter()
    result = run(solver.engine(spread, 0), spread, tol=TOL, max_passes=MOST_PASSES)
    executor.close()
    return {
        "passes": result.state.oracle_calls / problem.n_examples,
        "gap": result.certificate.relative_gap,
        "processor": time.process_time() - begin,
        "wall": time.perf_counter() - wall,
        "rounds": result.state.stamp if isinstance(solver, mm.Sharded) else 0,
        "weights": result.weights.copy(),
    }


def row(name: str, found: dict[str, Any]) -> None:
    figures = f"{found['passes']:7.1f} {found['rounds']:7d} {found['processor']:10.2f} {found['wall']:8.2f}"
    print(f"{name:32} {figures} {100 * found['gap']:9.3f} %", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=None)
    parser.add_argument("--threads", action="store_true", help="only the default and two shards on two threads")
    options = parser.parse_args()
    print(machine_line())
    X, y = load(options.sentences)
    problem = mm.MarginRescaling().problem(mm.Chain().bind(X, y), C=C)
    small = mm.MarginRescaling().problem(mm.Chain().bind(X[:200], y[:200]), C=C)
    for solver in (mm.Auto(), mm.Sharded(shards=2)):  # kernels
        fit(small, solver)
    print(f"{'':32} {'passes':>7} {'rounds':>7} {'processor':>10} {'wall':>8} {'rel. gap':>11}")
    row("auto", fit(problem, mm.Auto()))
    for shards in () if options.threads else (1, 2, 4, 8):
        for combine in ("exact", "average", "add") if shards > 1 else ("exact",):
            row(f"{shards} shards, {combine}", fit(problem, mm.Sharded(shards=shards, combine=combine)))
    with Others() as others:
        whole = fit(problem, mm.Auto())  # again: seconds of another moment cannot be compared
        one, two = (fit(problem, mm.Sharded(shards=2), workers) for workers in (1, 2))
    assert np.array_equal(one["weights"], two["weights"]), "weights depend on the workers"
    row("auto", whole)
    row("2 shards, one thread", one)
    row("2 shards, two threads", two)
    ratios = (
        f"{whole['wall'] / two['wall']:.2f} times as fast as auto, {one['wall'] / two['wall']:.2f} times one thread"
    )
    print(f"two threads: {ratios}; {others.cores:.2f} of {cores()} cores were busy with other processes")


if __name__ == "__main__":
    main()
