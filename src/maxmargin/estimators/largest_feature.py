"""Which feature is the largest: what a status adds when rounding has ended a fit."""

from __future__ import annotations

import numpy as np

from maxmargin.contracts import BoundModel
from maxmargin.oracles.oracle import ModelOracle

__all__ = ["largest_feature"]


def largest_feature(bound: BoundModel) -> str:
    """The largest feature, summed over an example, and where it is: "1e+18, column 3 of dense".

    One pass at zero weights, where the worst outputs are wrong everywhere, so that all features show.
    """
    oracle = ModelOracle(bound)
    if oracle.elsewhere is not None:
        return "unknown here, since the examples stay with the workers"
    planes = oracle.planes(np.zeros(bound.n_weights), np.arange(bound.n_examples))
    if len(planes.data) == 0:
        return "unknown"
    at = int(np.abs(planes.data).argmax())
    size = f"{abs(planes.data[at]):.2g}"
    unnamed = f"{size}, of weight {planes.indices[at]}"
    mark = np.zeros(bound.n_weights)
    mark[planes.indices[at]] = 1.0
    places = {name: (group != 0).nonzero()[0] for name, group in bound.layout.groups(mark).items()}
    return next((f"{size}, column {rows[0]} of {name}" for name, rows in places.items() if len(rows)), unnamed)
