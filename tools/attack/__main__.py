"""The command; see :mod:`tools.attack`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import zlib
from importlib import import_module
from importlib.util import find_spec

SUITES = ("model_files", "checkpoints", "arrays", "data_files", "text_files")
SHOWN = 40  # faults


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.attack", description="Hostile files and arrays.")
    parser.add_argument("--share", type=float, default=1.0, help="share of the cases, 0.1 for a tenth")
    parser.add_argument("--suite", action="append", choices=SUITES, help="only this suite; may be given again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--case", help="run the cases whose names contain this here, and show what they raise")
    given = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # before numpy is imported: pools of threads do not survive a fork
    import numpy as np
    from tools.attack.runner import FINE, OUTCOMES, Tally, run

    wanted = given.suite or SUITES
    missing = [name for name in wanted if find_spec(f"tools.attack.{name}") is None]
    tallies: dict[str, Tally] = {}
    with tempfile.TemporaryDirectory(prefix="attack") as folder:
        os.chdir(folder)  # what cases write is written here
        for name in wanted:
            if name in missing:
                continue
            module = import_module(f"tools.attack.{name}")
            number = max(1, round(module.NUMBER * given.share))
            cases = list(module.cases(np.random.default_rng([given.seed, zlib.crc32(name.encode())]), number))
            if given.case is not None:
                for title, case in cases:
                    if given.case in title:
                        print(title, flush=True)
                        case()
                continue
            tallies[name] = run(cases, given.jobs)
            print(f"{name}: {len(cases)} cases in {tallies[name].seconds:.0f} s", flush=True)
    if given.case is not None:
        return 0
    print("\n" + table(tallies, OUTCOMES))
    for name in missing:
        print(f"{name}: MISSING, the suite is not there and nothing of it was tried")
    faults = [(suite, *fault) for suite, tally in tallies.items() for fault in tally.faults]
    for suite, title, outcome, seen in faults[:SHOWN]:
        print(f"{outcome}: {suite}: {title}: {seen}")
    if len(faults) > SHOWN:
        print(f"... and {len(faults) - SHOWN} more")
    fine = all(sum(tally.counts[o] for o in FINE) == sum(tally.counts.values()) for tally in tallies.values())
    return 0 if fine and not missing else 1


def table(tallies: dict, outcomes: tuple[str, ...]) -> str:
    """Counts of outcomes, a suite a row."""
    head = ["suite", "cases", *outcomes]
    rows = [[name, sum(t.counts.values()), *(t.counts[o] for o in outcomes)] for name, t in tallies.items()]
    rows.append(["all", *(sum(row[k] for row in rows) for k in range(1, len(head)))])
    widths = [max(len(str(row[k])) for row in [head, *rows]) for k in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = [
            str(cell).ljust(w) if k == 0 else str(cell).rjust(w)
            for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
