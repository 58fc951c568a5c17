"""Planes and multipliers out of a checkpoint file, by numpy alone: nothing of the library reads them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.callbacks import Callback


class SaveSecond(Callback):
    """Writes the second certificate of a run to a file."""

    def __init__(self, path):
        self.path = path

    def on_certificate(self, run):
        if len(run.history) == 2:
            run.save(self.path)


class Saved(NamedTuple):
    """planes[i] = (A, b) of block i with its multipliers; u as the solver maintained it; the last row of history."""

    planes: list[tuple[np.ndarray, np.ndarray]]
    multipliers: list[np.ndarray]
    origin: np.ndarray
    total: np.ndarray
    u: np.ndarray
    primal: float
    dual: float


def read(path) -> Saved:
    """An npz file: slots[block, :held[block]] names planes, plane p has length[p] non-zeros from start[p] on."""
    with np.load(path, allow_pickle=False) as file:
        a = {name: file[name] for name in file.files}
    part = {name.removeprefix("state/set/"): array for name, array in a.items() if name.startswith("state/set/")}
    d = len(a["state/u"])
    planes, multipliers = [], []
    for block, held in enumerate(part["held"]):
        ids = part["slots"][block, :held]
        rows = np.zeros((held, d))
        for row, plane in zip(rows, ids, strict=True):
            where = slice(part["start"][plane], part["start"][plane] + part["length"][plane])
            np.add.at(row, part["columns"][where], part["entries"][where])
        planes.append((rows, part["b"][ids]))
        multipliers.append(part["alpha"][ids])
    last = {name: float(a[f"history/{name}"][-1]) for name in ("primal", "dual")}
    return Saved(planes, multipliers, part["origin"], part["total"], a["state/u"], **last)
