"""What training on many cores costs: constants measured here, and what they make of 10^9 tokens on 1,000 cores.

Measures, on an artificial corpus in files, processor seconds and bytes per token of reading and packing, those of the
argmax and of a whole pass, and for the dual in shards the passes, rounds and bytes of changes; then prints a model of
larger runs. Everything that is assumed instead of measured is in the table ``assumed``::

    python benchmarks/scale.py                 # --sentences 1600, a minute
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from machine import machine_line
from maxmargin.estimators.file_parts import PartReader, bind_files
from maxmargin.execution.executors import Serial
from maxmargin.execution.sharded import ShardedOracle
from maxmargin.features.column_files import Source
from maxmargin.solvers.driver import run
from memory import LENGTH, PART, write_part

TOL, C = 0.01, 0.01
CORES, TOKENS = 1000, 1e9
ASSUMED = {"cores of a node": 50, "bytes a second between two nodes": 1.25e9, "weights of the large corpus": 1e8}


class Meter(Serial):
    """Shards here and now; counts rounds, and the bytes of their changes."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds, self.bytes = 0, 0

    def call(self, verb: str, calls: Any) -> list:
        found = super().call(verb, calls)
        if verb == "round":
            self.rounds += 1
            self.bytes += sum(
                array.nbytes for change in found for array in (change.columns, change.before, change.values)
            )
        return found


def bound_corpus(folder: Path, sentences: int) -> tuple[Any, dict[str, float]]:
    """The bound corpus, and what reading and packing it cost per token."""
    parts = max(2, -(-sentences // PART))
    text = [write_part(folder / f"part-{k}.gz", k) for k in range(parts)]
    readers = [PartReader(k, Source(str(folder / f"part-{k}.gz")), None, None, None) for k in range(parts)]
    bind_files(mm.Chain(), lambda count: None, readers[:1], Serial())  # kernels
    begin = time.process_time()
    found = bind_files(mm.Chain(), lambda count: None, readers, Serial())
    tokens = parts * PART * LENGTH
    seconds = (time.process_time() - begin) / tokens
    packed = (found.bound.ints.nbytes + found.bound.floats.nbytes) / tokens
    return found.bound, {
        "bytes of text per token": sum(text) / tokens,
        "bytes of the pack per token": packed,
        "features per token": found.bound.ints.size / tokens - 2,
        "seconds to read and pack, per token": seconds,
    }


def fit(problem: Any, solver: Any) -> tuple[Any, Meter, float]:
    """A fit on one worker: its result, its rounds and its processor seconds."""
    meter = Meter()
    spread = problem.with_oracles(lambda oracle: ShardedOracle(oracle, meter))
    begin = time.process_time()
    result = run(solver.engine(spread, 0), spread, tol=TOL, max_passes=60)
    return result, meter, time.process_time() - begin


def measured(sentences: int) -> tuple[dict[str, float], list[tuple[int, int, float, float, float]]]:
    """Constants; and by shards and visits of a round: passes, rounds for one with new planes, bytes of a change."""
    with tempfile.TemporaryDirectory() as folder:
        bound, constants = bound_corpus(Path(folder), sentences)
    problem = mm.MarginRescaling().problem(bound, C=C)
    tokens, n, d = int(bound.output_at[-1]), bound.n_examples, bound.n_weights
    oracle, examples = problem.oracle, np.arange(n)
    fit(mm.MarginRescaling().problem(bound, C=C), mm.Sharded(shards=2))  # kernels
    result, _, processor = fit(problem, mm.Auto())
    passes = result.state.oracle_calls / n
    oracle.planes(result.weights, examples[:100])
    begin = time.process_time()
    oracle.planes(np.append(result.weights, np.zeros(oracle.n_columns - d)), examples)
    constants |= {
        "weights": d,
        "seconds of an argmax, per token": (time.process_time() - begin) / tokens,
        "passes of the default": passes,
        "seconds of a pass of the default, per token": processor / passes / tokens,
    }
    mixed, _, processor = fit(problem, mm.Pegasos(shards=8, averaging="weighted", certificate_every=5.0))
    visited = mixed.state.oracle_calls / n
    constants |= {
        "seconds of a pass of Pegasos in shards, per token": processor / visited / tokens,
        "gap of Pegasos in 8 shards after 20 passes": _gap_after(mixed, 20),
    }
    rows = []
    for shards, visits in ((1, 32), (2, 32), (4, 32), (16, 32), (4, 128), (4, 512)):
        result, meter, _ = fit(problem, mm.Sharded(shards=shards, visits_per_round=visits))
        passes = result.state.oracle_calls / n
        again = meter.rounds * visits * shards / (passes * n)  # rounds for one that brings new planes
        rows.append((shards, visits, passes, again, meter.bytes / max(1, meter.rounds * shards)))
    return constants, rows


def _gap_after(result: Any, passes: float) -> float:
    """The relative gap at the certificate nearest to so many passes."""
    rows = result.history.rows
    row = min(rows, key=lambda row: abs(row["pass"] - passes))
    return (row["primal"] - row["dual"]) / abs(row["primal"])


def report(constants: dict[str, float], rows: list[tuple[int, int, float, float, float]]) -> None:
    """Constants, shards, and the model of the large run."""
    for name, value in constants.items():
        print(f"  {name:52} {value:.4g}")
    print("shards  visits in a round  passes  rounds for one with new planes  bytes of a change")
    for shards, visits, passes, again, size in rows:
        print(f"{shards:6} {visits:18} {passes:7.1f} {again:31.1f} {size:18.0f}")
    print("assumed")
    for name, value in ASSUMED.items():
        print(f"  {name:52} {value:.4g}")
    wire, d = ASSUMED["bytes a second between two nodes"], ASSUMED["weights of the large corpus"]
    nodes = int(CORES / ASSUMED["cores of a node"])
    share, per_shard = TOKENS / CORES, TOKENS / CORES / LENGTH
    print(f"{TOKENS:.0e} tokens on {CORES} cores ({nodes} nodes), {share:.0e} tokens for each")
    reading = share * constants["seconds to read and pack, per token"]
    disk = TOKENS * constants["bytes of the pack per token"] / 1e9
    print(f"  read and pack                   {reading:9.1f} s: {disk:.0f} GB of packs, {disk / nodes:.1f} GB a node")
    work = share * constants["seconds of a pass of Pegasos in shards, per token"]
    sync = 2 * 8 * d * np.log2(nodes) / wire
    parts = f"{work:.1f} s of steps, {sync:.1f} s to mix {8 * d / 1e9:.1f} GB of weights in a tree"
    print(f"  a pass of mixed weights         {work + sync:9.1f} s: {parts}")
    few, many = (row for row in rows if row[0] == 4 and row[1] in (32, 512))
    growth = np.log(many[4] / few[4]) / np.log(many[1] / few[1])  # of a change with its visits
    work = share * constants["seconds of a pass of the default, per token"]
    for visits in (32, 512, 8192):
        rounds, change = few[3] * per_shard / visits, min(few[4] * (visits / few[1]) ** growth, 20 * d)
        sent = rounds * change * CORES / wire
        said = f"{work:.1f} s of visits, {rounds:.0f} rounds of {change * CORES / 1e6:.0f} MB to every node"
        print(f"  a pass of the dual, {visits:5} visits {work + sent:8.1f} s: {said}")
    limit = 2**31 / constants["features per token"]
    print(f"one pack holds at most 2^31 entries: {limit:.1e} tokens with so many features")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=1600)
    options = parser.parse_args()
    print(machine_line())
    report(*measured(options.sentences))


if __name__ == "__main__":
    main()
