"""K best outputs, margins and marginals of every estimator that has them, against looking at every output."""

from itertools import pairwise, product

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import maxmargin as mm
from maxmargin.estimators.graph_labeler import GraphLabeler
from maxmargin.models.chain import Chain
from reference.own_models import Signs

PASSES = {"max_passes": 3, "tol": 1e-2}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def compare(model, x, everything, k=5):
    """``everything`` maps each output (a tuple) to its score."""
    expected = sorted(everything.items(), key=lambda pair: -pair[1])[:k]
    answers = model.predict_kbest([x], k)[0]
    np.testing.assert_allclose([score for _, score in answers], [score for _, score in expected], atol=1e-9)
    for output, score in answers:
        assert everything[tuple(output)] == pytest.approx(score, abs=1e-9)
    assert len({tuple(output) for output, _ in answers}) == len(answers)
    margin = expected[0][1] - expected[1][1] if len(expected) > 1 else np.inf
    assert model.predict_margin([x])[0] == pytest.approx(margin, abs=1e-9)


def shares(everything, classes, temperature=1.0):
    """Marginals (parts, classes) of outputs with these scores."""
    scores = np.array(list(everything.values())) / temperature
    p = np.exp(scores - np.logaddexp.reduce(scores))
    outputs = list(everything)
    return np.array([[p[[y[t] == c for y in outputs]].sum() for c in classes] for t in range(len(outputs[0]))])


def test_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 4, 60)
    model = mm.MulticlassClassifier(**PASSES).fit(X, np.array(list("abcd"))[y])
    scores = model.decision_function(X)
    answers = model.predict_kbest(X, 3)
    assert [[label for label, _ in row] for row in answers] == [
        ["abcd"[c] for c in np.argsort(-row)[:3]] for row in scores
    ]
    np.testing.assert_allclose([[s for _, s in row] for row in answers], -np.sort(-scores)[:, :3])
    assert [row[0][0] for row in answers] == model.predict(X).tolist()
    assert len(model.predict_kbest(X[:1], 10)[0]) == 4
    top = np.sort(scores)
    np.testing.assert_allclose(model.predict_margin(X), top[:, -1] - top[:, -2])
    p = np.exp(scores / 2.0)
    np.testing.assert_allclose(model.predict_marginals(X, temperature=2.0), p / p.sum(axis=1, keepdims=True))


def test_hidden_markov_model():
    rng = np.random.default_rng(1)
    Y = [rng.integers(0, 3, rng.integers(1, 6)).tolist() for _ in range(30)]
    X = [[(s + int(rng.random() < 0.3)) % 4 for s in y] for y in Y]
    model = mm.DiscriminativeHMM(reference="smoothed", classes=3, symbols=4, **PASSES).fit(X, Y)
    initial, transition, emission = (np.log(t) for t in (model.initial_, model.transition_, model.emission_))
    for x in ([0], [3, 1], [0, None, 2, 1]):

        def score(y, x=x):
            value = initial[y[0]] + sum(transition[a, b] for a, b in pairwise(y))
            return value + sum(emission[s, o] for s, o in zip(y, x, strict=True) if o is not None)

        everything = {y: score(y) for y in product(range(3), repeat=len(x))}
        compare(model, x, everything)
        assert model.predict_kbest([x], 1)[0][0][0] == model.predict([x])[0]
        assert len(model.predict_kbest([x], 1000)[0]) == 3 ** len(x)


@pytest.mark.parametrize("shape", ["path", "ring"])
def test_graphs(shape):
    rng = np.random.default_rng(2)
    n, K = 4, 3
    edges = np.array([(p, p + 1) for p in range(n - 1)] + ([(n - 1, 0)] if shape == "ring" else []))
    labels = [rng.integers(0, K, n) for _ in range(12)]
    graphs = [{"node": np.eye(K)[y] + rng.normal(scale=0.5, size=(n, K)), "edges": edges} for y in labels]
    model = GraphLabeler(**PASSES).fit(graphs, labels)
    nodes, pairs = model.node_coef_, model.edge_coef_[0]
    for graph in graphs[:3]:
        unary = graph["node"] @ nodes
        everything = {
            y: unary[np.arange(n), y].sum() + sum(pairs[y[p], y[q]] for p, q in edges)
            for y in product(range(K), repeat=n)
        }
        compare(model, graph, everything, 12)
        assert len(model.predict_kbest([graph], 1000)[0]) == K**n
        np.testing.assert_allclose(model.predict_marginals([graph])[0], shares(everything, range(K)), atol=1e-9)
        np.testing.assert_allclose(
            model.predict_marginals([graph], 3.0)[0], shares(everything, range(K), 3.0), atol=1e-9
        )


def test_any_model_that_offers_it():
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(T, 2)) for T in (1, 2, 4, 3)]
    y = [["a" if row[0] > 0 else "b" for row in x] for x in X]
    machine, tagger = mm.StructuredSVM(Chain(), **PASSES).fit(X, y), mm.SequenceTagger(**PASSES).fit(X, y)
    assert machine.predict_kbest(X, 3) == tagger.predict_kbest(X, 3)
    for one, two in zip(machine.predict_marginals(X), tagger.predict_marginals(X), strict=True):
        np.testing.assert_array_equal(one, two)


def test_refusals_say_what_would_work():
    own = mm.StructuredSVM(Signs(), **PASSES).fit([1.0, -2.0], [1, -1])
    for ask in (lambda: own.predict_kbest([1.0], 2), lambda: own.predict_margin([1.0])):
        with pytest.raises(ValueError, match=r"predict_kbest of StructuredSVM needs.*chains.*Use predict"):
            ask()
    with pytest.raises(ValueError, match=r"predict_marginals of StructuredSVM needs marginal.*chains"):
        own.predict_marginals([1.0])

    frame = {"a": [0, 1, 0, 1] * 5, "b": [0, 1, 1, 1] * 5}
    net = mm.DiscriminativeBayesNet(structure={"a": [], "b": ["a"]}, **PASSES).fit(frame, target="b")
    with pytest.raises(ValueError, match=r"DiscriminativeBayesNet needs.*BayesNetBound.*predict_marginals"):
        net.predict_kbest(frame, 2)

    rng = np.random.default_rng(4)
    n = 12
    edges = np.array([(p, q) for p in range(n) for q in range(p)])
    y = [rng.integers(0, 3, n)]
    dense = GraphLabeler(max_cells=100, **PASSES).fit([{"node": np.eye(3)[y[0]], "edges": edges}], y)
    with pytest.raises(ValueError, match=r"predict_marginals of GraphLabeler.*junction tree"):
        dense.predict_marginals([{"node": np.eye(3)[y[0]], "edges": edges}])


def test_before_fit():
    for model in (mm.MulticlassClassifier(), GraphLabeler(), mm.DiscriminativeHMM(), mm.DiscriminativeBayesNet()):
        with pytest.raises(NotFittedError):
            model.predict_kbest([[0.0]], 2)


@pytest.mark.parametrize("method", ["predict_kbest", "predict_margin", "predict_marginals"])
def test_segmenters_refuse(method):
    mask = np.array([[0, 0, 1], [0, 1, 1]])
    segmenter = mm.ImageSegmenter(max_passes=2).fit([mask + 0.1, mask - 0.1], [mask, mask])
    arguments = ([mask], 2) if method == "predict_kbest" else ([mask],)
    with pytest.raises(
        ValueError, match=r"of ImageSegmenter needs .*, which a GridBound of these examples does not offer"
    ):
        getattr(segmenter, method)(*arguments)
