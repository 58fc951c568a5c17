"""Large label sets: the pruned argmax is exact."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.inference.recursion import chain_argmax as best
from maxmargin.models.chain import Chain


@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("option", ["plain", "constraints", "edge"])
def test_pruning_loses_nothing(scale: float, integer: bool, option: str) -> None:
    rng = np.random.default_rng([int(10 * scale), integer, len(option)])
    K, F, lengths = 50, 4, [1, 2, 3, 7, 12]
    X = [rng.normal(size=(T, F)) for T in lengths]
    Y = [rng.integers(0, K, T).tolist() for T in lengths]
    constraints = None
    if option == "edge":
        X = [{"dense": x, "edge": rng.normal(size=(max(len(x) - 1, 0), 2))} for x in X]
    if option == "constraints":
        constraints = rng.random((K, K)) < 0.3
        for y in Y:
            constraints[y[:-1], y[1:]] = True
    bound = Chain(classes=range(K), constraints=constraints, ends=True).bind(X, Y)
    w = np.zeros(bound.n_weights)
    w[bound.layout.real()] = rng.normal(size=int(bound.layout.real().sum()))
    groups = bound.layout.groups(w)
    groups["transition"] *= scale  # from transitions that decide nothing to transitions that decide all
    if integer:
        w[:] = np.rint(w)
    for cost_weight in (0.0, 1.0, -1.0):
        for i, found in enumerate(bound.argmax(w, cost_weight=cost_weight).outputs):
            unary, transition = bound.tables(w, i, cost_weight)
            _, top = best(unary, transition)
            score = unary[np.arange(len(unary)), found].sum()
            for t in range(1, len(unary)):
                score += transition[0 if len(transition) == 1 else t - 1, found[t - 1], found[t]]
            assert score == pytest.approx(top, abs=1e-9)
