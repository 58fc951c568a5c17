"""The segmentation experiments on synthetic pictures: what they compare is what they say."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from maxmargin.inference.min_cut import directions
from maxmargin.metrics.segmentation import mean_iou
from maxmargin.models.grid import Grid

pytest.importorskip("PIL")
FOLDER = Path(__file__).parents[2] / "experiments" / "segmentation"


@pytest.fixture(scope="module")
def module():
    """A loader of the experiments' files, which import one another by name."""
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module
    sys.path.remove(str(FOLDER))


def test_scenes_are_the_same_at_every_resolution(module):
    scaling = module("scaling")
    areas = [scaling.scene(side, 3)[1].mean() for side in (32, 64, 128)]
    np.testing.assert_allclose(areas, areas[-1], atol=0.03)


def test_the_grid_search_finds_the_best_smoothness(module, monkeypatch):
    horses, scaling = module("horses"), module("scaling")
    monkeypatch.setattr(horses, "KINDS", ("constant", "contrast"))
    monkeypatch.setattr(horses, "LAMBDAS", (0.1, 1.0, 10.0))
    X, masks = map(list, zip(*[scaling.scene(24, seed) for seed in range(6)], strict=True))

    class Unary:
        node_coef_ = np.array([1.0, -0.5])

    weights, chosen = horses.smoothness(Unary, X, masks, 4)
    assert chosen.split(" on ")[1] in horses.KINDS
    np.testing.assert_array_equal(weights[:2], Unary.node_coef_)
    assert np.count_nonzero(weights[2:]) == 1 and weights.min() >= -0.5
    layout = Grid(4).bind(X, masks).layout
    bound = Grid(4).bind(X, None, layout=layout)
    found = mean_iou(masks, horses.masks_at(bound, weights))
    alone = mean_iou(masks, [(x["node"] @ Unary.node_coef_ > 0).astype(int) for x in X])
    assert found > alone
    assert len(directions(4)) == X[0]["edge"].shape[0]
