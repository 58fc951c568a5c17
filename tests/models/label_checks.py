"""Argmaxes, costs, bounds and planes of label sets, against all sets that are outputs."""

from __future__ import annotations

import numpy as np
import pytest

from reference.label_sets import features

from .batches import decode, plane, planes


def phi(bound, x, y):
    """Joint features in the layout of the model."""
    M, E = len(y), len(bound.layout.edges)
    flat = features(x, y, bound.layout.edges)
    rows = np.zeros((len(x), bound.layout.stride))
    rows[:, :M] = flat[: len(flat) - E].reshape(len(x), M)
    return np.concatenate([rows.ravel(), flat[len(flat) - E :]])


def check_argmaxes(bound, X, Y, costs, sets, w, scores, lam, exact=True):
    """``sets`` are all outputs, ``scores`` and ``costs`` (n, sets) what they score and cost."""
    examples = np.arange(len(Y))
    outputs, found_costs, bounds, status = decode(bound, w, examples, lam)
    rows, _ = planes(bound, w, examples, lam)
    assert status == -1
    for i, row in enumerate(rows):
        true = int((sets == Y[i]).all(axis=1).argmax())
        objective = scores[i] + lam * costs[i] - scores[i, true]
        same = (sets == outputs[i]).all(axis=1)
        assert same.any(), "no output"
        at = int(same.argmax())
        if exact:
            assert objective[at] == pytest.approx(objective.max(), abs=1e-9)
            assert bounds[i] == row.bound == pytest.approx(objective.max(), abs=1e-9)
        else:
            assert objective[at] <= objective.max() + 1e-9 <= bounds[i] + 2e-9
        assert found_costs[i] == pytest.approx(costs[i, at], abs=1e-12)
        assert row.b == pytest.approx(lam * costs[i, at], abs=1e-12)
        np.testing.assert_allclose(row.a, phi(bound, X[i], Y[i]) - phi(bound, X[i], outputs[i]), atol=1e-12)
        for emit in (0, 1, 3):
            made, output, result = plane(bound, w, i, lam, emit)
            assert (made, output.tolist()) == (min(emit, 1), outputs[i].tolist())
            assert not exact or result[1] == max(result[0], 0.0)
