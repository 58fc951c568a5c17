"""Slack rescaling of generative models: enumerated outputs and a conic solver, and where it is margin rescaling."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

import maxmargin as mm
from reference.generative import objective, optimum

RNG = np.random.default_rng(3)
STATES = [RNG.integers(2, size=T).tolist() for T in (3, 1, 2, 3, 3, 2, 3)]
WORDS = [["uvw"[k if RNG.random() < 0.6 else RNG.integers(3)] for k in states] for states in STATES]
TIGHT = {"tol": 1e-7, "max_passes": 400}


def planes(layout, rescaling):
    """(A, b) of every example, a row for each wrong sequence of states."""
    at = {name: part.astype(int) for name, part in layout.groups(np.arange(layout.n_weights, dtype=float)).items()}
    symbol = {word: v for v, word in enumerate(layout.symbols.classes)}

    def counts(words, states):
        found = np.zeros(layout.n_weights)
        np.add.at(found, at["initial"][states[0]], 1.0)
        for a, b in pairwise(states):
            found[at["transition"][a, b]] += 1.0
        for state, word in zip(states, words, strict=True):
            found[at["emission"][state, symbol[word]]] += 1.0
        return found

    made = []
    for words, true in zip(WORDS, STATES, strict=True):
        A, b = [], []
        for states in product(range(2), repeat=len(words)):
            cost = sum(s != t for s, t in zip(states, true, strict=True))
            scale = {"slack": cost, "sqrt_slack": cost**0.5, "margin": 1.0}[rescaling]
            A.append(scale * (counts(words, true) - counts(words, states)))
            b.append(cost if rescaling == "margin" else scale)
        made.append((np.array(A), np.array(b, float)))
    return made


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("rescaling", ["margin", "slack", "sqrt_slack"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_hidden_markov_models_bracket_the_optimum(rescaling, loss):
    model = mm.DiscriminativeHMM(C=2.0, rescaling=rescaling, loss=loss, reference="smoothed", **TIGHT)
    model.fit(WORDS, STATES)
    squared, rows = loss == "squared_hinge", planes(model.layout_, rescaling)
    weight = np.full(len(WORDS), 4.0 if squared else 2.0)  # of half the square
    c, found = model.reference_, model.certificate_
    value, _ = optimum(rows, weight, c, model.layout_.tables.starts, squared=squared)
    own = objective(rows, weight, c, model.weights_, squared=squared)
    assert value > 0.1 and found.certified
    assert found.dual <= value + 1e-6 <= own + 2e-6 and own <= found.primal + 1e-6  # what a search missed is counted
    if rescaling == "margin":
        assert found.primal == pytest.approx(value, abs=1e-5)
    assert own <= 1.1 * value  # few queries find the worst output nearly always


@pytest.mark.parametrize("rescaling", ["slack", "sqrt_slack"])
def test_networks_with_one_cost_for_all_mistakes(rescaling):
    """Then every rescaling is the same."""
    rng = np.random.default_rng(0)
    target = rng.integers(3, size=40)
    frame = {name: np.where(rng.random(40) < 0.5, target, rng.integers(3, size=40)) for name in "abc"}
    options = {"C": 0.3, "structure": "tan", "tol": 1e-6}
    margin = mm.DiscriminativeBayesNet(**options).fit(frame, target)
    other = mm.DiscriminativeBayesNet(rescaling=rescaling, **options).fit(frame, target)
    assert other.certificate_.primal == pytest.approx(margin.certificate_.primal, rel=1e-4)
    np.testing.assert_allclose(np.exp(other.weights_), np.exp(margin.weights_), atol=1e-2)


def test_a_ramp_of_them_is_refused():
    with pytest.raises(ValueError, match='rescaling="margin"'):
        mm.DiscriminativeHMM(loss="ramp", rescaling="slack").fit(WORDS, STATES)
    with pytest.raises(ValueError, match="rescaling must be one of"):
        mm.DiscriminativeHMM(rescaling="none of them").fit(WORDS, STATES)
