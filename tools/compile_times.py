"""Where the time of a first fit goes: a table of kernels with the processor seconds of their compilation.

Each estimator is fitted to a few random examples in its own process, with an empty kernel cache.

    python tools/compile_times.py [MulticlassClassifier] [SequenceTagger] [--least 0.05]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict

import numpy as np

ESTIMATORS = ("MulticlassClassifier", "SequenceTagger")


def examples(estimator: str) -> tuple[object, object]:
    """A small problem for an estimator."""
    rng = np.random.default_rng(0)
    if estimator == "MulticlassClassifier":
        return rng.normal(size=(30, 2)), rng.integers(0, 3, 30)
    X = [rng.normal(size=(length, 2)) for length in (1, 2, 3, 4)]
    return X, [rng.integers(0, 3, len(x)).tolist() for x in X]


def fit_and_report(estimator: str, least: float) -> None:
    """Fit once in this process and print which kernels were compiled."""
    import numba.core.event as events

    own: dict[str, float] = defaultdict(float)
    running: list[tuple[str, float, float]] = []  # kernel, begin, seconds of kernels compiled inside

    class Clock(events.Listener):
        def on_start(self, event: events.Event) -> None:
            function = event.data["dispatcher"].py_func
            running.append(
                (f"{function.__module__.removeprefix('maxmargin.')}.{function.__name__}", time.process_time(), 0.0)
            )

        def on_end(self, event: events.Event) -> None:
            name, begin, inside = running.pop()
            seconds = time.process_time() - begin
            own[name] += seconds - inside
            if running:
                outer, outer_begin, outer_inside = running.pop()
                running.append((outer, outer_begin, outer_inside + seconds))

    X, Y = examples(estimator)
    start = time.process_time()
    import maxmargin

    with events.install_listener("numba:compile", Clock()):
        getattr(maxmargin, estimator)().fit(X, Y)
    total = time.process_time() - start
    print(
        f"{estimator}: first fit {total:.1f} s of processor time, with {sum(own.values()):.1f} s for {len(own)} kernels"
    )
    for name, seconds in sorted(own.items(), key=lambda item: -item[1]):
        if seconds >= least:
            print(f"{seconds:8.2f}  {name}")
    print(f"{sum(s for s in own.values() if s < least):8.2f}  the rest, each below {least} s\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("estimators", nargs="*", default=ESTIMATORS, help="classes of maxmargin")
    parser.add_argument("--least", type=float, default=0.05, help="do not list kernels below this many seconds")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for estimator in options.estimators:
        if options.here:
            fit_and_report(estimator, options.least)
            continue
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, estimator, "--here", "--least", str(options.least)]
            subprocess.run(command, env=os.environ | {"MAXMARGIN_KERNEL_CACHE": folder}, check=True)


if __name__ == "__main__":
    main()
