"""Passes of the dual in shards, by their number and by how their changes are combined, on CoNLL-2000 chunking.

Passes to a certified gap of 0.1 % for 1 to 64 shards whose changes are combined by the best shares, added up, averaged,
or added up with the scaled subproblems of CoCoA+, all with 128 visits between two synchronisations (one shard: strands,
which meet by a rule of their own), and a picture of them. Passes do not depend on how busy the machine is, unless a fit
takes longer than ``--seconds``::

    python benchmarks/shard_combinations.py --sentences 1000      # needs MAXMARGIN_DATA
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from machine import machine_line, save_picture
from shards import HEAD, TOL, chunking, fit, row

SHARDS, AT_ONCE = (1, 2, 4, 8, 16, 64), 128  # numbers of shards, and visits of all between two synchronisations
MOST_PASSES = 150
COMBINATIONS = {"exact": "best shares", "add": "added", "average": "averaged", "cocoa+": "CoCoA+"}


def one(sentences: int, seconds: float, shards: int, combine: str) -> dict[str, Any]:
    """A fit, in a process of its own."""
    solver = mm.Sharded(shards=shards, visits_per_round=AT_ONCE // shards, combine=combine)
    return fit(chunking(sentences)[0], solver, max_passes=MOST_PASSES, max_seconds=seconds)


def combinations(sentences: int, jobs: int, seconds: float, path: Path | None) -> None:
    """Passes for every number of shards and combination: a table, and a picture where a path is given."""
    passes: dict[str, list[float]] = {combine: [] for combine in COMBINATIONS}
    with ProcessPoolExecutor(jobs) as pool:
        wanted = [
            (shards, combine) for shards in SHARDS for combine in COMBINATIONS if shards > 1 or combine == "exact"
        ]
        fits = {key: pool.submit(one, sentences, seconds, *key) for key in reversed(wanted)}  # the longest first
        for shards in SHARDS:
            for combine in COMBINATIONS:
                found = fits[shards, combine if shards > 1 else "exact"].result()  # one change needs no combination
                if shards > 1 or combine == "exact":
                    row(f"{shards} shards, {COMBINATIONS[combine]}", found)
                passes[combine].append(found["passes"] if found["gap"] <= TOL else np.nan)
    print(f"passes to {100 * TOL:g} % (-: not in {MOST_PASSES}, or in {seconds:g} s)")
    print(f"{'':14}" + "".join(f"{shards:>8}" for shards in SHARDS))
    for combine, counts in passes.items():
        cells = "".join(f"{'-' if np.isnan(count) else format(count, '.1f'):>8}" for count in counts)
        print(f"{COMBINATIONS[combine]:14}{cells}")
    if path is not None:
        draw(passes, path)


def draw(passes: dict[str, list[float]], path: Path) -> None:
    """A line for each combination; crosses at the top are fits that ran out of passes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    for number, (combine, counts) in enumerate(passes.items()):
        (line,) = axes.plot(SHARDS, counts, "o-", label=COMBINATIONS[combine])
        out = [shards * 1.06**number for shards, count in zip(SHARDS, counts, strict=True) if np.isnan(count)]
        axes.plot(out, [MOST_PASSES] * len(out), "x", color=line.get_color())
    axes.set_xscale("log", base=2)
    axes.set_xticks(SHARDS, list(map(str, SHARDS)))
    axes.set_ylim(0, MOST_PASSES + 2)
    axes.set_xlabel(f"shards, {AT_ONCE} visits between two synchronisations")
    axes.set_ylabel(f"passes to {100 * TOL:g} % (crosses: not in {MOST_PASSES})")
    axes.legend()
    save_picture(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=1000, help="of 8,936")
    parser.add_argument("--jobs", type=int, default=2, help="fits that run side by side")
    parser.add_argument("--seconds", type=float, default=600.0, help="the most that a fit may take")
    parser.add_argument("--picture", type=Path, default=Path("build/shards.png"))
    options = parser.parse_args()
    print(machine_line())
    print(f"{options.sentences} sentences\n{HEAD}")
    combinations(options.sentences, options.jobs, options.seconds, options.picture)


if __name__ == "__main__":
    main()
