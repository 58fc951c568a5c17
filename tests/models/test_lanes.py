"""Loops over several labels at once: rows of any length, against numpy; nothing beside them is touched."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.inference.recursion_chain_kernel import viterbi_step
from maxmargin.kernel import kernel
from maxmargin.models.multiclass_kernel import sparse_add, sparse_times


@kernel("void(float64[::1], float64[::1], float64[:, ::1], float64[::1])")
def one_step(before, now, pair, best):
    viterbi_step(before, now, pair, best)


@pytest.mark.found("B6")
@pytest.mark.parametrize("S", [*range(1, 18), 23, 40])
def test_rows_of_any_length(S):
    rng = np.random.default_rng(S)
    F, columns = 9, np.array([8, 0, 3, 3], np.int32)  # the last row, the first, and one twice
    values, w, change = rng.normal(size=4), rng.normal(size=(F, S)), rng.normal(size=S)
    score = rng.normal(size=S + 8)
    expected = score.copy()
    expected[:S] += values @ w[columns]
    sparse_times(values, columns, w.ravel(), S, score)
    np.testing.assert_allclose(score, expected, rtol=1e-13, atol=1e-13)
    after, room = w.copy(), np.full(F * S + 8, 7.0)
    np.add.at(after, columns, values[:, None] * change)
    room[: F * S] = w.ravel()
    sparse_add(values, columns, change, S, room)
    np.testing.assert_allclose(room[: F * S], after.ravel(), rtol=1e-13, atol=1e-13)
    assert (room[F * S :] == 7.0).all()


@pytest.mark.parametrize("S", [*range(1, 18), 23, 40])
def test_steps_of_viterbi_for_any_number_of_labels(S):
    """Right labels may be padded; a score of -inf wins nowhere, and nothing beside a row is touched."""
    rng = np.random.default_rng(S)
    K = max(1, S - 3)
    before, pair, room = rng.normal(size=S), rng.normal(size=(K, S)), rng.normal(size=S + 8)
    before[rng.random(S) < 0.2] = -np.inf
    expected, best = room.copy(), np.full(S + 8, 7.0)
    expected[:S] += (before[:K, None] + pair).max(axis=0)
    one_step(before, room[:S], pair, best[:S])
    assert (room == expected).all() and (best[S:] == 7.0).all()
