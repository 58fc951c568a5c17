"""Generative models whose tables sum to less than 1: what other libraries and probabilities make of the rest."""

from itertools import pairwise, product

import numpy as np
import pytest

from maxmargin.estimators.discriminative_bayes_net import DiscriminativeBayesNet
from maxmargin.estimators.discriminative_hmm import DiscriminativeHMM
from maxmargin.estimators.net_exchange import from_bif, from_pyagrum, to_bif, to_pyagrum
from maxmargin.models.network import Network


def leaky_hmm(seed, K=3, V=4):
    """A model whose tables leave up to half of their mass, each another share."""
    rng = np.random.default_rng(seed)
    tables = [rng.dirichlet(np.ones(n), shape) for n, shape in ((K, ()), (K, K), (V, K))]
    tables = [table * rng.uniform(0.5, 1.0, table.shape[:-1])[..., None] for table in tables]
    model = DiscriminativeHMM(classes=K, symbols=V)
    model.model_ = model._model()
    model._take_layout(model.model_.bind([], []).layout)
    model._take_probabilities(model.layout_.join(*tables))
    return model, tables, rng


def paths(tables, x):
    """The probability of x with every path, by a product over positions."""
    initial, transition, emission = tables
    for y in product(range(len(initial)), repeat=len(x)):
        steps = np.prod([transition[a, b] for a, b in pairwise(y)])
        yield y, initial[y[0]] * steps * np.prod(emission[list(y), x])


@pytest.mark.found("B2")
@pytest.mark.parametrize("seed", range(5))
def test_an_hmm_predicts_the_same_in_hmmlearn(seed):
    pytest.importorskip("hmmlearn")
    model, tables, rng = leaky_hmm(seed)
    other = model.to_hmmlearn()
    for x in rng.integers(0, 4, (10, 5)).tolist():
        values = dict(paths(tables, x))
        best, total = max(values, key=values.get), sum(values.values())
        expected = [[sum(p for y, p in values.items() if y[t] == k) / total for k in range(3)] for t in range(5)]
        codes = np.array(x)[:, None]
        assert tuple(model.predict([x])[0]) == best == tuple(other.predict(codes).tolist())
        np.testing.assert_allclose(model.predict_marginals([x])[0], expected, atol=1e-12)
        np.testing.assert_allclose(other.predict_proba(codes)[:, :3], expected, atol=1e-9)
        assert other.score(codes) == pytest.approx(np.log(total))
    again = DiscriminativeHMM.from_hmmlearn(other)
    np.testing.assert_allclose(again.emission_[:3, :4], tables[2])


def leaky_net(seed):
    """Class -> a, class and a -> b, a -> c; tables leave up to half of their mass, those of the class nothing."""
    rng = np.random.default_rng(seed)
    states = {"the class": ["yes", "no"], "a": ["1.5", "2 or 3", "é"], "b": ["type", "x"], "c": ["u", "v", ""]}
    parents = {"the class": [], "a": ["the class"], "b": ["the class", "a"], "c": ["a"]}
    net = Network.of(parents, states)
    theta = net.tables.normalised(rng.normal(size=net.n_weights))
    left = np.where(np.arange(len(net.tables)) > 0, rng.uniform(0.5, 1.0, len(net.tables)), 1.0)
    return net, np.exp(theta) * left[net.tables.table], rng


def posterior(net, p, row):
    """P(class | row) by enumeration over what is missing, but for leaves, which belong to no known value."""
    codes = {name: [net.states[v].code[row[name]]] if row.get(name) else None for name, v in net.code.items()}
    tables, totals = net.groups(p), np.zeros(2)
    for k, a in product(range(2), codes["a"] or range(3)):
        value = tables["the class"][k]
        if codes["a"] or codes["b"] or codes["c"]:
            value *= tables["a"][k, a]
        value *= tables["b"][k, a, codes["b"][0]] if codes["b"] else 1.0
        totals[k] += value * (tables["c"][a, codes["c"][0]] if codes["c"] else 1.0)
    return totals / totals.sum()


ROWS = [
    {"a": "1.5", "b": "x", "c": "u"},
    {"a": "é", "b": "type", "c": None},
    {"a": None, "b": "x", "c": "v"},
    {"a": "2 or 3", "b": None, "c": None},
]


@pytest.mark.found("C: predict_proba")
@pytest.mark.parametrize("seed", range(3))
def test_probabilities_of_a_class_are_those_of_enumeration(seed):
    net, p, _ = leaky_net(seed)
    model = DiscriminativeBayesNet.from_network(net, p, target="the class")
    found = model.predict_proba(ROWS)
    np.testing.assert_allclose(found, [posterior(net, p, row) for row in ROWS], atol=1e-12)
    assert found.shape == (4, 2) and model.classes_ == ["yes", "no"]
    assert model.predict(ROWS[:2]).tolist() == [model.classes_[k] for k in found[:2].argmax(axis=1)]
    without = DiscriminativeBayesNet.from_network(net, p)
    with pytest.raises(ValueError, match="predict_proba needs one target, this model has 0; use predict_marginals"):
        without.predict_proba(ROWS)


@pytest.mark.found("B2")
@pytest.mark.found("C: to_bif names")
@pytest.mark.parametrize("way", ["file", "object"])
@pytest.mark.parametrize("seed", range(3))
def test_a_network_answers_the_same_in_pyagrum(way, seed, tmp_path):
    """Names with spaces, and tables that leave mass: in a file that the other library reads, or as its object."""
    gum = pytest.importorskip("pyagrum")
    net, p, _ = leaky_net(seed)
    path = to_bif(net, p, tmp_path / "net.bif")
    other = gum.loadBN(str(path)) if way == "file" else to_pyagrum(net, p)
    words = {"the class": "the_x0020_class", "1.5": "_x0031_.5", "2 or 3": "_x0032__x0020_or_x0020_3", "é": "_x00e9_"}
    words |= {"type": "_x0074_ype", "": "_x_"} if way == "file" else {}
    said = (lambda name: words.get(name, name)) if way == "file" else str
    for row in ROWS:
        inference = gum.LazyPropagation(other)
        inference.setEvidence({name: said(value) for name, value in row.items() if value})
        answer = np.array(inference.posterior(said("the class")).tolist())
        np.testing.assert_allclose(answer / answer.sum(), posterior(net, p, row), atol=1e-9)
    again, q = from_bif(path) if way == "file" else from_pyagrum(other)
    assert again == net
    np.testing.assert_array_equal(q, p) if way == "file" else np.testing.assert_allclose(q, p, atol=1e-15)


def test_a_state_that_has_the_name_of_the_unseen_one_is_refused(tmp_path):
    net = Network.of([], {"a": ["x", "never_seen_"]})
    assert from_bif(to_bif(Network.of([], {"a": ["x", "y"]}), np.array([0.5, 0.5]), tmp_path / "n.bif"))[1].sum() == 1
    with pytest.raises(ValueError, match="'a' has a state 'never_seen_', which stands for values never seen; rename"):
        to_bif(net, np.array([0.5, 0.2]), tmp_path / "n.bif")
