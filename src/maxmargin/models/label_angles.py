"""Label sets within an angle, by HiGHS, and relaxed label sets, by roof duality: what slack searches by name ask.

Neither is what training asks by itself: branching is faster than programs of HiGHS, and has lower bounds than the
relaxation (``experiments/labels/README.md``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from maxmargin.contracts import Answer
from maxmargin.inference.constrained_oracle import ConstrainedOracle, kept_program, pair_rows
from maxmargin.models.base import least_positive

if TYPE_CHECKING:
    from maxmargin.models.label_set import LabelSetBound

__all__ = ["best_between", "best_relaxed"]

NODES = 100  # of the program of one angle; where they end, its bound is open


def best_between(
    bound: LabelSetBound, w: np.ndarray, example: int, lam: float, mu: float, low: float, high: float
) -> Answer | None:
    """The set of an angle; see :class:`maxmargin.contracts.ConstrainedModel`. An integer program with M + E columns."""
    from maxmargin.models import multiclass_kernel as mk

    layout, M = bound.layout, len(bound.layout.labels)
    j, k = layout.edges.T
    at, pairs = bound.meta[mk.AT_LABELS] + example * M, layout.groups(w)["edge"]
    truth = bound.ints[at : at + M]
    gain, sign = bound.scores(w, np.array([example]))[0], 1.0 - 2.0 * truth
    np.add.at(gain, j, pairs * truth[k])
    np.add.at(gain, k, pairs * truth[j])
    cost = np.where(truth != 0, layout.costs[:, 1], layout.costs[:, 0])
    program = kept_program(lambda: _program(M, layout.edges), "labels", layout.edges.tobytes(), M)
    h, g = np.concatenate([sign * gain, sign[j] * sign[k] * pairs]), np.append(cost, np.zeros(len(pairs)))
    program.aim(h, g, lam, least=least_positive(cost))
    found = program(mu, low, high)
    if found is None:
        return None
    if found.output is None:  # the nodes ended before there was a set
        return Answer(np.empty(0, np.int32), np.empty(0), 0.0, -lam, found.bound - lam)
    z = np.rint(found.output[:M])
    return _answer(bound, w, example, mu, np.concatenate([z, z[j] * z[k]]), found.bound - lam)


def _program(n_labels: int, edges: np.ndarray) -> ConstrainedOracle:
    """The program of all sets with these pairs."""
    rows = pair_rows(n_labels, edges)
    whole = np.arange(rows[0].shape[1]) < n_labels
    return ConstrainedOracle(*rows, integer=whole, nodes=NODES)


def best_relaxed(bound: LabelSetBound, w: np.ndarray, example: int, mu: float) -> Answer:
    """The point of the linear relaxation of largest ``mu cost - w . psi``, by one cut; half-integral."""
    from maxmargin.inference.roof_kernel import roof_sizes
    from maxmargin.models.label_point_kernel import relaxed_point

    M, E = len(bound.layout.labels), len(bound.layout.edges)
    ints, floats = roof_sizes(M, E)
    x, fwork = np.empty(M + E), np.empty(bound.layout.stride + 2 * M + E + floats)
    sides = np.zeros((2, M), np.int32)
    upper = relaxed_point(
        bound.meta, bound.ints, bound.floats, w, example, mu, np.zeros(ints, np.int32), fwork, sides, x
    )
    return _answer(bound, w, example, mu, x, upper)


def _answer(bound: LabelSetBound, w: np.ndarray, example: int, mu: float, x: np.ndarray, upper: float) -> Answer:
    """The plane of a point, whose ``mu cost - w . psi`` is at most ``upper``."""
    from maxmargin.models.label_point_kernel import plane_of_point

    index, entries, paid = np.empty(bound.room, np.int32), np.empty(bound.room), np.empty(1)
    nnz = plane_of_point(bound.meta, bound.ints, bound.floats, example, x, index, entries, paid)
    index, psi, cost = index[:nnz].copy(), entries[:nnz].copy(), float(paid[0])
    value = mu * cost - float(w[index] @ psi)
    return Answer(index, psi, cost, value, max(value, upper))
