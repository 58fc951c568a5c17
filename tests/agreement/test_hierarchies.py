"""Hierarchical fits reach the optimum of a conic solver over all outputs: every rescaling, shape and kind of output."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.models import hierarchy
from reference.hierarchies import outputs
from reference.label_sets import cost, features
from reference.qp import solve_primal

TREE = [[], [0], [0], [2]]
GRAPH = [[], [], [0, 1], [1]]
CASES = [
    ("margin", "hinge", TREE, {}),
    ("margin", "squared_hinge", TREE, {"leaves_only": True}),
    ("margin", "hinge", GRAPH, {}),
    ("margin", "hinge", GRAPH, {"leaves_only": True}),
    ("slack", "hinge", TREE, {}),
    ("slack", "hinge", TREE, {"leaves_only": True}),
    ("slack", "squared_hinge", TREE, {"paths": "single"}),
    ("slack", "hinge", GRAPH, {}),
    ("sqrt_slack", "squared_hinge", GRAPH, {"leaves_only": True}),
    ("unit", "hinge", TREE, {}),
    ("slack", "hinge", TREE, {"cost": {0: 2.0, 1: 0.5}}),
    ("margin", "hinge", GRAPH, {"cost": "f1", "paths": "single"}),
]


@pytest.mark.parametrize("few", [4096, 0], ids=["listed", "many"])
@pytest.mark.parametrize(("rescaling", "loss", "parents", "options"), CASES)
def test_fit(rescaling, loss, parents, options, few):
    if few == 0 and ((parents is GRAPH and (rescaling != "margin" or options)) or options.get("paths") == "single"):
        pytest.skip("searches with a bound, or outputs that are always listed")
    rng = np.random.default_rng(1)
    sets = outputs(parents, options.get("paths") == "single", options.get("leaves_only", False))
    X, Y = rng.normal(size=(6, 2)), sets[rng.integers(len(sets), size=6)]
    with mock.patch.object(hierarchy, "MOST_LISTED", few):
        model = mm.MultilabelClassifier(
            hierarchy=dict(enumerate(parents)), rescaling=rescaling, loss=loss, C=0.7, tol=1e-8, **options
        ).fit(X, Y)
    given = options.get("cost", "hamming")
    weights = np.array([[given.get(k, 1.0)] * 2 for k in range(4)]) if isinstance(given, dict) else None
    planes = []
    for x, t in zip(np.column_stack([X, np.ones(6)]), Y, strict=True):
        psi = np.array([features(x, t, []) - features(x, y, []) for y in sets])
        c = cost(t, sets, given, weights)
        scale = {"slack": c, "sqrt_slack": np.sqrt(c), "unit": (c > 0) * 1.0, "margin": np.ones(len(c))}[rescaling]
        planes.append((scale[:, None] * psi, c if rescaling == "margin" else scale))
    squared = loss == "squared_hinge"  # there with C / 2, here with C
    expected = solve_primal(planes, 1.4 if squared else 0.7, squared=squared)
    assert model.certificate_.primal == pytest.approx(expected.objective, rel=1e-6)
    assert model.certificate_.dual <= expected.objective * (1 + 1e-9)
    np.testing.assert_allclose(
        np.concatenate([model.coef_.T.ravel(), model.intercept_]), expected.weights, atol=2e-3
    )  # fmt: skip
