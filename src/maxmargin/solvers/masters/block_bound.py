"""Lower bounds of generative problems where every example is a block of its own."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from maxmargin.formulations.divergence import TableDivergence
from maxmargin.solvers import working_set_kernel as wk
from maxmargin.solvers.masters.smo_tables_kernel import smo_tables_pass
from maxmargin.solvers.working_set import WorkingSet

__all__ = ["bound_by_blocks"]

SMOOTHING = 0.1  # of the reference
FURTHER = 1.5  # the centre moves by this multiple of what theta has moved
PASSES, STEPS, TAU = 40, 50, 1e-6  # over all blocks, in a block, and the tolerance of a block
WORTH = 0.03  # a pass that closes less than this share of the gap is the last one
ROUNDS, MORE = 20, 1.1  # of giving back; somewhat more than is missing, because other entries lose by it
FOREVER = 1 << 30


def bound_by_blocks(
    ws: WorkingSet, u: np.ndarray, divergence: TableDivergence, offset: float, centre: np.ndarray, primal: float
) -> tuple[float, float, np.ndarray, np.ndarray]:
    """As :func:`~maxmargin.solvers.masters.joint.best_bound`: the bound, ``sum alpha b`` and u behind it, its planes.

    The multipliers of a proximal problem leave ``c + u >= 0`` by what the proximal term pulls. Here they come back:
    passes over the planes at hand, with a proximal term in proportion to the reference and a centre that moves after
    each of them (the method of multipliers for ``c + u >= 0``), leave less and less outside; and planes that need what
    is still outside give weight back to the truth. Planes of single examples need few entries each, so little is lost,
    where sums over many examples would have to shrink altogether. The multipliers of the run stay as they are.
    ``primal`` is the objective that the bound is compared with. O(entries of the planes) per pass and per round.
    """
    own = {name: getattr(ws.store, name).copy() for name in ("alpha", "origin", "idle", "size", "linear")}
    store, u, blocks = ws.store._replace(**own), u.copy(), np.flatnonzero(ws.store.held > 0)
    best, ids = (-np.inf, 0.0, u.copy(), np.empty(0, np.int32)), ws.ids(blocks)
    visit = wk.Visit(wk.NO_LIMIT, wk.MERGE, 1, TAU, STEPS, FOREVER, 0, ws.table, ws.dense, ws.g, ws.change)
    A, before = ws.rows(ids), -np.inf
    for _ in range(PASSES):
        proximal = divergence.proximal(centre, SMOOTHING * divergence.reference)
        point = wk.Point(u, proximal.weights(u), np.empty(0, np.int8), *proximal.arrays)
        smo_tables_pass(store, blocks, point, visit, 0)
        centre = centre + FURTHER * (point.w[: len(centre)] - centre)
        alpha = store.alpha[ids]
        for back in (alpha,) if divergence.pull else (alpha, _given_back(A, alpha, u, divergence.reference)):
            linear, inside = float(store.linear[0] + (back - alpha) @ store.b[ids]) + offset, u + A.T @ (back - alpha)
            value, scale = divergence.lower_bound(linear, inside)
            if value > best[0]:
                best = value, scale * linear - offset, scale * inside, ids[back > 0]
        if best[0] - before <= WORTH * (primal - best[0]):
            break
        before = best[0]
    return best


def _given_back(A: sp.csr_array, alpha: np.ndarray, u: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Multipliers (m,) of the planes A with ``c + u >= 0``, or nearly so: planes that need what is missing give way.

    An entry that misses x of the N that planes take from it leaves each of them ``1 - x/N`` of its weight; a plane
    follows the entry that leaves it least. What it gave to other entries is gone, too, hence several rounds.
    """
    d, alpha = len(reference), alpha.copy()
    takes, rest = sp.csr_array(A[:, :d]).minimum(0.0), u - A.T @ alpha
    taken_by = sp.csc_array(takes)
    for _ in range(ROUNDS):
        missing = -(reference + (rest + A.T @ alpha)[:d])
        outside = np.flatnonzero(missing > 0.0)
        if len(outside) == 0:
            break
        taken = -(takes.T @ alpha)[outside]
        left = np.maximum(1.0 - MORE * missing[outside] / np.maximum(taken, 1e-300), 0.0)
        share = np.ones(len(alpha))
        needed = taken_by[:, outside]
        np.minimum.at(share, needed.indices, np.repeat(left, np.diff(needed.indptr)))
        alpha *= share
    return alpha
