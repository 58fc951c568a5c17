"""The table of slack formulations for models whose weights are log-probabilities; see ``test_slack_formulations``.

Hidden Markov models and Bayesian networks with two unknown variables, scale = cost or its square root, linear and
quadratic slacks, the proximal method with all kinds of blocks. The reference is uniform and C small, so that no output
is far ahead and the searches, which have bounds, prove their answers: upper and lower bound are compared too. Larger C
and other references are in :mod:`agreement.test_generative_slack`.
The reference has exponential cones and is itself exact to about 1e-8.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.solvers.presets import SOLVERS
from reference.generative import BLOCKS, objective, optimum
from reference.problems import rescaled

FORMS = list(product(("hinge", "squared_hinge"), ("slack", "sqrt_slack")))
RNG = np.random.default_rng(3)
STATES = [RNG.integers(2, size=T).tolist() for T in (3, 1, 2, 3, 3, 2, 3)]
WORDS = [["uvw"[k if RNG.random() < 0.6 else RNG.integers(3)] for k in states] for states in STATES]
ROWS = RNG.integers(2, size=(8, 3))  # of a -> b, (a, b) -> c; a and b are asked for
NETWORK = {"a": [], "b": ["a"], "c": ["a", "b"]}
C = {"hmm": 0.0003, "network": 0.002}


def fitted(kind, form, solver="proximal", **options):
    options = {"C": C[kind], "loss": form[0], "rescaling": form[1], "reference": "uniform", "solver": solver} | options
    if kind == "hmm":
        return mm.DiscriminativeHMM(**options).fit(WORDS, STATES)
    frame = {name: ROWS[:, v] for v, name in enumerate(NETWORK)}
    return mm.DiscriminativeBayesNet(structure=NETWORK, **options).fit(frame, target=["a", "b"])


def places(model):
    """The column of each probability, by table."""
    named = model.layout_ if isinstance(model, mm.DiscriminativeHMM) else model.network_
    return {name: part.astype(int) for name, part in named.groups(np.arange(len(model.weights_), dtype=float)).items()}


def hmm_counts(model):
    at, symbol = places(model), {word: v for v, word in enumerate(model.layout_.symbols.classes)}

    def columns(words, states):
        yield at["initial"][states[0]]
        yield from (at["transition"][a, b] for a, b in pairwise(states))
        yield from (at["emission"][state, symbol[word]] for state, word in zip(states, words, strict=True))

    return columns


def network_counts(model):
    at = places(model)

    def columns(c, ab):
        a, b = ab
        yield from (at["a"][a], at["b"][a, b], at["c"][a, b, c])

    return columns


@cache
def reference(kind, form):
    """(planes, weights of half the square or of the slack, reference distribution, tables' starts, optimum)."""
    model = fitted(kind, form, max_passes=1)
    columns = hmm_counts(model) if kind == "hmm" else network_counts(model)
    data = zip(WORDS, STATES, strict=True) if kind == "hmm" else [(row[2], row[:2]) for row in ROWS.tolist()]

    def counts(x, y):
        return np.bincount(list(columns(x, y)), minlength=len(model.weights_)).astype(float)

    planes = []
    for x, true in data:
        every = list(product(range(2), repeat=len(true)))
        psi = np.array([counts(x, true) - counts(x, y) for y in every])
        cost = np.array([float(sum(s != t for s, t in zip(y, true, strict=True))) for y in every])
        planes.append(rescaled(psi, cost, form[1]))
    squared = form[0] == "squared_hinge"
    starts = (model.layout_ if kind == "hmm" else model.network_).tables.starts
    weight = np.full(len(planes), C[kind] * (2.0 if squared else 1.0))
    value, _ = optimum(planes, weight, model.reference_, starts, squared=squared)
    return planes, weight, model.reference_, value


@pytest.mark.parametrize("form", FORMS, ids="-".join)
@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("kind", C)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_proximal_point(kind, name, form):
    planes, weight, c, value = reference(kind, form)
    model = fitted(kind, form, mm.ProximalPoint(**BLOCKS[name]), tol=1e-7, max_passes=2000)
    found = objective(planes, weight, c, model.weights_, squared=form[0] == "squared_hinge")
    assert found == pytest.approx(value, rel=1e-6)
    assert model.certificate_.dual == pytest.approx(value, rel=1e-6)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)
    assert max(model.history_["dual"]) <= value * (1 + 2e-7) and value <= min(model.history_["primal"]) * (1 + 2e-7)


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "proximal"])
@pytest.mark.parametrize("kind", C)
def test_others_are_refused_by_name(kind, name):
    with pytest.raises(ValueError, match=f'solver="{name}" does not offer'):
        fitted(kind, ("hinge", "slack"), name)
