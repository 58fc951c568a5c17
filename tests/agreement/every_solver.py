"""One of each kind of solver: of problems with |w|^2 / 2, and of linear programs."""

from __future__ import annotations

import maxmargin as mm
from maxmargin.solvers import Extragradient, Highs, PrimalDual

DUAL = {
    "auto": mm.Auto(),
    "sequential": mm.SequentialDual(tau=1e-11),
    "bcfw": mm.BCFW(certificate_every=2.0),
    "bcfw, pairwise": mm.BCFW(steps="pairwise"),
    "frank-wolfe": mm.FrankWolfe(),
    "cutting plane, one": mm.CuttingPlane("one"),
    "cutting plane, n": mm.CuttingPlane("n"),
    "simplicial": mm.SimplicialDecomposition("product", master="newton"),
    "sharded": mm.Sharded(shards=2, visits_per_round=2),
}
ONE_PLANE = ("bcfw", "frank-wolfe")  # is kept; where several violate most their rate is 1/t
PRIMAL = {"pegasos": mm.Pegasos(certificate_every=100.0), "sgd": mm.SGD(t0=0.5, certificate_every=100.0)}
SLOW = (*ONE_PLANE, *PRIMAL)
LINEAR = {
    "column generation, simplex": mm.ColumnGeneration(Highs("simplex")),
    "column generation, interior points": mm.ColumnGeneration(Highs("ipm")),
    "column generation, primal-dual": mm.ColumnGeneration(PrimalDual()),
    "column generation, extragradient": mm.ColumnGeneration(Extragradient()),
    "recentred": mm.RecentredDual(),
    "auto": "auto",
}
