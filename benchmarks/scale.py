"""What training on many cores costs: constants measured here, and what they make of 10^9 tokens on 1,000 cores.

Measures, on an artificial corpus in files, processor seconds and bytes per token of reading and packing, those of the
argmax and of a whole pass, and for the dual in shards the passes, the rounds, the bytes of changes, what it costs the
driver to combine those of a round, and a shard to apply them; then prints a model of larger runs. Everything that is
assumed instead of measured is in the table ``assumed``::

    python benchmarks/scale.py                 # --sentences 3200, a minute
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import maxmargin as mm
from machine import machine_line
from maxmargin.estimators.file_parts import PartReader, bind_files
from maxmargin.execution.executors import Serial
from maxmargin.execution.sharded import ShardedOracle
from maxmargin.features.column_files import Source
from maxmargin.kernel import clock
from maxmargin.solvers.driver import run
from maxmargin.solvers.shard import Shard
from memory import LENGTH, PART, write_part

TOL, C = 0.01, 0.01
CORES, TOKENS = 1000, 1e9
ASSUMED = {"cores of a node": 50, "bytes a second between two nodes": 1.25e9, "weights of the large corpus": 1e8}


class Row(NamedTuple):
    """A fit of the dual in shards; seconds are those of a round."""

    shards: int
    visits: int  # of a shard in a round
    passes: float
    again: float  # rounds for one that brings new planes
    size: float  # bytes of a change,
    entries: float  # and columns that it sends
    combining: float  # seconds of the driver: Gram matrix of the changes and best shares
    applying: float  # seconds of a shard: settling its own change and taking over those of all others


class Meter(Serial):
    """Shards here and now; counts rounds, the bytes and entries of their changes, and what these cost afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds, self.bytes, self.entries, self.combining, self.applying = 0, 0, 0, 0.0, 0.0
        self.ended: float | None = None  # when the last round did: whatever comes before the next call combines it

    def start(self, residents: Sequence[Any], changing: Collection[str] = ()) -> list[int]:
        for resident in residents:
            if isinstance(resident, Shard):
                resident.settle = self._timed(resident.settle)
        return super().start(residents, changing)

    def _timed(self, settle: Callable[..., None]) -> Callable[..., None]:
        def timed(*arguments: Any) -> None:
            begin = clock()
            settle(*arguments)
            self.applying += clock() - begin

        return timed

    def call(self, verb: str, calls: Any) -> list:
        if self.ended is not None:
            self.combining += clock() - self.ended
        found = super().call(verb, calls)
        if verb == "round":
            self.rounds += 1
            for change in found:
                self.bytes += sum(array.nbytes for array in (change.columns, change.values) if array is not None)
                self.entries += len(change.values)
        self.ended = clock() if verb == "round" else None
        return found


def bound_corpus(folder: Path, sentences: int) -> tuple[Any, dict[str, float]]:
    """The bound corpus, and what reading and packing it cost per token."""
    parts = max(2, -(-sentences // PART))
    each = -(-sentences // parts)
    text = [write_part(folder / f"part-{k}.gz", k, each) for k in range(parts)]
    readers = [PartReader(k, Source(str(folder / f"part-{k}.gz")), None, None, None) for k in range(parts)]
    bind_files(mm.Chain(), lambda count: None, readers[:1], Serial())  # kernels
    begin = time.process_time()
    found = bind_files(mm.Chain(), lambda count: None, readers, Serial())
    tokens = parts * each * LENGTH
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


def measured(sentences: int) -> tuple[dict[str, float], list[Row]]:
    """Constants, and a row for some numbers of shards and of visits in a round."""
    with tempfile.TemporaryDirectory() as folder:
        bound, constants = bound_corpus(Path(folder), sentences)
    problem = mm.MarginRescaling().problem(bound, C=C)
    tokens, n, d = int(bound.output_at[-1]), bound.n_examples, bound.n_weights
    oracle, examples = problem.oracle, np.arange(n)
    result, _, _ = fit(mm.MarginRescaling().problem(bound, C=C), mm.Sharded(shards=2))  # and kernels
    constants |= visits_again(result.state.shards)
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
    for shards, visits in ((2, 32), (4, 32), (16, 32), (4, 128), (4, 512)):
        result, meter, _ = fit(problem, mm.Sharded(shards=shards, visits_per_round=visits))
        passes = result.state.oracle_calls / n
        again = meter.rounds * visits * shards / (passes * n)
        changes = meter.rounds * shards
        each = meter.bytes / changes, meter.entries / changes, meter.combining / meter.rounds, meter.applying / changes
        rows.append(Row(shards, visits, passes, again, *each))
    most = max(rows, key=lambda row: row.shards)
    pairs = most.shards * (most.shards - 1) / 2
    constants |= {
        "seconds to combine, per pair of shards and entry": most.combining / (pairs * most.entries),
        "seconds to apply a change, per entry": most.applying / (most.shards * most.entries),
    }
    return constants, rows


def visits_again(shards: Sequence[Shard]) -> dict[str, float]:
    """Seconds of a visit to a block with the planes it has, and per entry of these."""
    blocks = sum(shard.state.n_blocks for shard in shards)
    entries = sum(shard.working_set().n_entries for shard in shards)
    begin = time.process_time()
    for shard in shards:
        shard.engine.revisit(shard.state, np.random.default_rng(0).permutation(shard.state.n_blocks))
    spent = time.process_time() - begin
    return {
        "entries of planes, per sentence": entries / blocks,
        "seconds of a visit without new planes": spent / blocks,
        "seconds of a visit without new planes, per entry": spent / entries,
    }


def _gap_after(result: Any, passes: float) -> float:
    """The relative gap at the certificate nearest to so many passes."""
    rows = result.history.rows
    row = min(rows, key=lambda row: abs(row["pass"] - passes))
    return (row["primal"] - row["dual"]) / abs(row["primal"])


def report(constants: dict[str, float], rows: list[Row]) -> None:
    """Constants, shards, and the model of the large run."""
    for name, value in constants.items():
        print(f"  {name:52} {value:.4g}")
    print("milliseconds of a round: of the driver to combine the changes, of a shard to apply them")
    print("shards  visits in a round  passes  rounds for one with new planes  bytes of a change  combine   apply")
    for row in rows:
        sizes = f"{row.shards:6} {row.visits:18} {row.passes:7.1f} {row.again:31.1f} {row.size:18.0f}"
        print(f"{sizes} {1e3 * row.combining:8.3f} {1e3 * row.applying:7.3f}")
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
    few, many = (row for row in rows if row.shards == 4 and row.visits in (32, 512))
    growth = np.log(many.size / few.size) / np.log(many.visits / few.visits)  # of a change with its visits
    work = share * constants["seconds of a pass of the default, per token"]
    pairs = CORES * (CORES - 1) / 2
    for visits in (32, 512, 8192):
        more = (visits / few.visits) ** growth
        rounds, change = few.again * per_shard / visits, min(few.size * more, 8 * d)
        entries = min(few.entries * more, d)
        sent = rounds * change * CORES / wire
        combined = rounds * pairs * entries * constants["seconds to combine, per pair of shards and entry"]
        applied = rounds * CORES * entries * constants["seconds to apply a change, per entry"]
        whole = work + sent + combined + applied
        said = f"{rounds:.0f} rounds of {change * CORES / 1e6:.0f} MB to every node"
        print(f"  a pass of the dual, {visits:5} visits {whole:8.0f} s: {said}:")
        parts = f"{sent:.0f} s to send changes, {combined:.0f} s to combine and {applied:.0f} s to apply them"
        print(f"    {work:.1f} s of visits, {parts}")
    print("with K shards, combining grows with K^2 (a product for each pair); what is sent and applied grows with K")
    limit = 2**31 / constants["features per token"]
    print(f"one pack holds at most 2^31 entries: {limit:.1e} tokens with so many features")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=3200)
    options = parser.parse_args()
    print(machine_line())
    report(*measured(options.sentences))


if __name__ == "__main__":
    main()
