"""Multi-label fits reach the optimum of a conic solver over all label sets: every rescaling, loss, graph and cost."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from reference.label_sets import planes
from reference.qp import solve_primal

GRAPHS = {"none": None, "edges": [(0, 1), (2, 1)], "full": "full"}
CASES = [
    ("margin", "hinge", "none", "hamming"),
    ("margin", "squared_hinge", "full", "jaccard"),
    ("slack", "hinge", "full", "hamming"),
    ("slack", "hinge", "none", "f1"),
    ("slack", "squared_hinge", "edges", "hamming"),
    ("sqrt_slack", "squared_hinge", "full", "hamming"),
    ("unit", "hinge", "edges", "hamming"),
    ("slack", "hinge", "edges", "weighted"),
]


@pytest.mark.parametrize("solver", ["auto", "cutting_plane", "simplicial"])
@pytest.mark.parametrize(("rescaling", "loss", "graph", "kind"), CASES)
def test_fit(rescaling, loss, graph, kind, solver):
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(6, 2)), (rng.random((6, 3)) < 0.5).astype(int)
    weights = np.array([[2.0, 2.0], [1.0, 1.0], [0.5, 0.5]]) if kind == "weighted" else None
    cost = {0: 2.0, 2: 0.5} if kind == "weighted" else kind
    model = mm.MultilabelClassifier(
        graph=GRAPHS[graph], cost=cost, rescaling=rescaling, loss=loss, C=0.7, tol=1e-8, solver=solver
    ).fit(X, Y)
    edges = {"none": [], "edges": [(0, 1), (1, 2)], "full": [(0, 1), (0, 2), (1, 2)]}[graph]
    assert model.edges_ == edges
    all_planes = planes(np.column_stack([X, np.ones(6)]), Y, edges, rescaling, kind, weights)
    squared = loss == "squared_hinge"  # there with C / 2, here with C
    expected = solve_primal(all_planes, 1.4 if squared else 0.7, squared=squared)
    assert model.certificate_.primal == pytest.approx(expected.objective, rel=1e-6)
    assert model.certificate_.dual <= expected.objective * (1 + 1e-9)
    tables = [model.coef_.T.ravel(), model.intercept_, model.edge_coef_]
    np.testing.assert_allclose(np.concatenate(tables), expected.weights, atol=2e-3)
