"""Solvers on one segmentation problem: relative gap against time and against the number of cuts.

Called by ``horses.py --solvers``. All solve the same convex problem with sign-constrained edge weights. A certificate
costs one cut per image, and these cuts count.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from maxmargin.callbacks.base import Callback
from maxmargin.estimators.image_segmenter import ImageSegmenter

SOLVERS = {
    "one simplex": mm.SimplicialDecomposition("one"),
    "one simplex, limit 10": mm.SimplicialDecomposition("one", limit=10),
    "product": mm.SimplicialDecomposition("product"),
    "product, limit 5": mm.SimplicialDecomposition("product", limit=5),
    "bcfw": mm.BCFW(),
    "bcfw, cached planes": mm.Auto(visits=1.0, batch=1, parts=1, sampling="permutation"),
    "auto": mm.Auto(),
}
LEVELS = (0.1, 0.03, 0.01, 0.003)


class Processor(Callback):
    """Records processor seconds since the start at each certificate; other work on the machine does not count."""

    def on_begin(self, run: Any) -> None:
        self.begin = time.process_time()

    def on_certificate(self, run: Any) -> None:
        run.history.annotate(processor=time.process_time() - self.begin)


def compare(X: list[dict], y: list, args: argparse.Namespace, path: Path, cuts_an_image: int = 100) -> None:
    """Print a table of processor seconds and cuts to each gap, and draw the picture."""
    head = "".join(f" {f'{level:g}':>15s}" for level in LEVELS)
    print(
        f"{len(y)} images; processor seconds and cuts until the relative gap is at most\n{'solver':24s}{head}",
        flush=True,
    )
    curves = {}
    for name, solver in SOLVERS.items():
        fit = ImageSegmenter(
            neighbours=args.neighbours, C=args.C, cost=args.cost, tol=LEVELS[-1], solver=solver,
            max_passes=cuts_an_image, callbacks=[Processor()],
        ).fit(X, y)  # fmt: skip
        gaps, cuts, times = (np.asarray(fit.history_[name]) for name in ("relative_gap", "oracle_calls", "processor"))
        curves[name] = (times, cuts, gaps)
        cells = []
        for level in LEVELS:
            there = np.flatnonzero(gaps <= level)
            cells.append(f"{times[there[0]]:6.1f} s {cuts[there[0]]:6d}" if len(there) else "-")
        print(f"{name:24s}" + "".join(f" {cell:>15s}" for cell in cells), flush=True)
    _draw(curves, path)


def _draw(curves: dict, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True)
    for name, (times, cuts, gaps) in curves.items():
        for axis, x in zip(axes, (times, cuts), strict=True):
            axis.loglog(x, np.maximum(gaps, 1e-6), label=name, marker=".", markersize=3)
    for axis, label in zip(axes, ("processor seconds", "cuts"), strict=True):
        axis.set_xlabel(label)
    axes[0].set_ylabel("relative gap")
    axes[1].legend(fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"picture in {path}")
