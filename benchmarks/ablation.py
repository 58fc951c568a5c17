"""What each acceleration of the default solver is worth: passes and seconds to 1 % and 0.1 % certified gap.

    MAXMARGIN_DATA=... make bench-ablation            # CoNLL-2000 and OCR, about fifteen minutes
    python benchmarks/ablation.py --task ocr
    python benchmarks/ablation.py --against v0.1.0    # also the default solver of an earlier commit

Each row of the table switches one thing off (or on) in :class:`maxmargin.Auto`, or names a simpler solver. Passes and
processor seconds at a gap are interpolated between certificates (in the logarithm of the gap); each is the best of a
few interleaved repeats.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tarfile
import tempfile
import time
import warnings
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from machine import last_line_of, machine_line

LEVELS = (1e-2, 1e-3)
REPEATS = 2


def variants() -> dict[str, dict[str, Any]]:
    """Name -> parameters of the estimator's solver and of the estimator."""
    return {
        "default": {},
        "no gap sampling": {"sampling": "permutation"},
        "no planes of parts": {"parts": 1},
        "no cached passes": {"cached_passes": 0},
        "three cached passes at most": {"cached_passes": 3},
        "planes of eight parts": {"parts": 8},
        "each visit solved to the end": {"max_steps": 1000},
        "one example at a time": {"batch": 1},
        "batches of 64": {"batch": 64},
        "batches of 64, two threads": {"batch": 64, "n_jobs": 2},
        "no extrapolation of cached passes": {"extrapolate": False},
        "whole sweeps": {"visits": 1.0},
        "sequential dual method": {"solver": "sequential_dual"},
        "one plane, no pairwise steps (BCFW)": {"solver": "bcfw"},
        "pairwise steps alone (BCFW)": {"solver": "bcfw", "steps": "pairwise"},
    }


def task(name: str) -> tuple[Any, Any, dict[str, Any]]:
    """Training examples of a task, and the parameters of its estimator."""
    if name == "chunking":
        from chunking import sequences
        from chunking_features import ChunkingVocabulary, chunk_labels
        from maxmargin.datasets.conll2000 import load_conll2000

        train = load_conll2000("train")
        return sequences(ChunkingVocabulary().fit_transform(train)), chunk_labels(train), {"C": 0.1}
    from ocr import load_splits

    split = load_splits()["large"]
    return split.X, split.y, {"C": 1.0, "ends": True}


def measure(X: Any, y: Any, common: dict[str, Any], setting: dict[str, Any]) -> dict[str, list[float]]:
    """Passes and processor seconds at which the gap falls below each level."""
    import maxmargin as mm
    from maxmargin.callbacks.base import Callback

    class Watch(Callback):
        def __init__(self) -> None:
            self.rows: list[tuple[float, float, float]] = []

        def on_begin(self, run: Any) -> None:
            self.begin = time.process_time()

        def on_certificate(self, run: Any) -> None:
            self.rows.append((run.passes, time.process_time() - self.begin, run.certificate.relative_gap))

        def on_end(self, run: Any) -> None:
            pass

    own = dict(setting)
    n_jobs = own.pop("n_jobs", 1)
    kinds = {"auto": mm.Auto, "sequential_dual": mm.SequentialDual, "bcfw": mm.BCFW}
    solver = kinds[own.pop("solver", "auto")](**own)
    watch = Watch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mm.SequenceTagger(
            solver=solver, tol=0.7 * LEVELS[-1], max_passes=150, n_jobs=n_jobs, callbacks=[watch], **common
        ).fit(X, y)
    return {str(level): at(watch.rows, level) for level in LEVELS}


def at(rows: list[tuple[float, float, float]], level: float) -> list[float]:
    """(passes, seconds) where the gap crosses a level, interpolated; NaN if it never does."""
    for k, (passes, seconds, gap) in enumerate(rows):
        if gap <= level:
            if k == 0 or gap <= 0:
                return [passes, seconds]
            before = rows[k - 1]
            share = np.log(before[2] / level) / np.log(before[2] / gap)
            return [before[0] + share * (passes - before[0]), before[1] + share * (seconds - before[1])]
    return [float("nan"), float("nan")]


def child(name: str, settings: dict[str, dict[str, Any]], repeats: int) -> dict[str, dict[str, list[float]]]:
    """The best of interleaved repeats of each setting."""
    import maxmargin as mm

    X, y, common = task(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mm.SequenceTagger(max_passes=3, **common).fit(X[:100], y[:100])  # kernels
    best: dict[str, dict[str, list[float]]] = {}
    for _ in range(repeats):
        for title, setting in settings.items():
            found = measure(X, y, common, setting)
            have = best.setdefault(title, found)
            best[title] = {k: [min(a, b) for a, b in zip(have[k], found[k], strict=True)] for k in found}
    return best


def earlier(commit: str, folder: Path) -> dict[str, str]:
    """Environment variables with which Python imports the library of an earlier commit, unpacked into ``folder``."""
    packed = subprocess.run(["git", "archive", commit, "src"], check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return {**os.environ, "PYTHONPATH": str(folder / "src")}


def run_child(
    name: str, settings: dict[str, Any], repeats: int, environment: dict[str, str] | None = None
) -> dict[str, Any]:
    """:func:`child` in a process of its own."""
    asked = json.dumps({"task": name, "settings": settings, "n": repeats})
    return last_line_of([__file__, "--child", asked], environment)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=["chunking", "ocr"], action="append", help="default: both")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--against", metavar="COMMIT", help="also measure the default solver of this earlier commit")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        request = json.loads(options.child)
        print(json.dumps(child(request["task"], request["settings"], request["n"])))
        return
    print(machine_line())
    for name in options.task or ["chunking", "ocr"]:
        results: dict[str, Any] = {}
        if options.against:
            with tempfile.TemporaryDirectory() as folder:
                environment = earlier(options.against, Path(folder))
                for _ in range(options.repeats):  # in turn, each alone in its process, whose first fit is slower
                    then, now = f"default of {options.against}, alone", "default, alone"
                    merge(results, then, run_child(name, {then: {}}, 1, environment)[then])
                    merge(results, now, run_child(name, {now: {}}, 1)[now])
        for title, found in run_child(name, variants(), options.repeats).items():
            merge(results, title, found)
        show(name, results)


def merge(results: dict[str, Any], title: str, found: dict[str, list[float]]) -> None:
    """Keep the better of two measurements."""
    have = results.setdefault(title, found)
    results[title] = {k: [min(a, b) for a, b in zip(have[k], found[k], strict=True)] for k in found}


def show(name: str, results: dict[str, Any]) -> None:
    """The table of a task."""
    print(f"\n{name:38}{'1 %':>20}{'0.1 %':>20}{'seconds / default':>28}")
    reference = results["default"][str(LEVELS[-1])][1]
    for title, found in results.items():
        cells = "".join(f"{found[str(k)][0]:8.1f} {found[str(k)][1]:9.2f} s" for k in LEVELS)
        print(f"{title:38}{cells}{found[str(LEVELS[-1])][1] / reference:26.2f}x", flush=True)


if __name__ == "__main__":
    main()
