"""GraphLabeler: what it learns, which method answers, signs, clones, and errors that name the graph."""

from __future__ import annotations

import doctest
import importlib
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import maxmargin as mm
from maxmargin.estimators.graph_labeler import GraphLabeler
from maxmargin.estimators.positive_weights import positive_weights
from maxmargin.features.regions import region_graph, region_labels, region_sizes, superpixels
from maxmargin.models.graph import Graph


def grid_edges(height, width):
    place = np.arange(height * width).reshape(height, width)
    across = np.stack([place[:, :-1].ravel(), place[:, 1:].ravel()], 1)
    return np.concatenate([across, np.stack([place[:-1].ravel(), place[1:].ravel()], 1)])


def data(n=12, K=3, *, shape=(3, 4), noise=0.7, seed=0, names=None):
    """Stripes of labels under noise: neighbours mostly agree."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        stripes = np.sort(rng.integers(0, K, shape[1]))
        y = np.broadcast_to(stripes, shape).ravel()
        X.append({"node": np.eye(K)[y] + rng.normal(scale=noise, size=(len(y), K)), "edges": grid_edges(*shape)})
        Y.append(y if names is None else [names[k] for k in y])
    return X, Y


def test_edges_help_and_the_certificate_closes():
    X, Y = data(40)
    train, test = slice(0, 20), slice(20, None)
    alone = GraphLabeler().fit([{"node": x["node"]} for x in X[train]], Y[train])
    joint = GraphLabeler(pairwise="potts").fit(X[train], Y[train])
    assert alone.method_ == {"tree": 20} and joint.method_ == {"junction_tree": 20}
    assert joint.certificate_.certified and joint.certificate_.relative_gap <= 0.01
    assert joint.score(X[test], Y[test]) > alone.score([{"node": x["node"]} for x in X[test]], Y[test]) + 0.05
    assert (joint.weights_[joint.layout_.positive()] > 0).all()
    assert joint.node_coef_.shape == (3, 3) and joint.edge_coef_.shape == (1, 3, 3)


@pytest.mark.parametrize("method", ["auto", "trws", "expansion", "relaxation", "junction_tree"])
def test_objectives_of_the_methods(method):
    """Whatever finds the labels, the certificate encloses the optimum that the exact method proves."""
    X, Y = data(6, noise=1.0, seed=1)
    exact = GraphLabeler(pairwise="potts", method="junction_tree", tol=1e-6).fit(X, Y).certificate_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = GraphLabeler(pairwise="potts", method=method, tol=1e-4, max_passes=60).fit(X, Y)
    found = fitted.certificate_
    assert found.certified
    assert found.primal >= exact.dual - 1e-9 and found.dual <= exact.primal + 1e-9
    assert found.relative_gap < 0.02
    assert sum(fitted.method_.values()) == 6


def test_two_labels_are_cut():
    X, Y = data(10, K=2, shape=(12, 14), noise=1.2)
    fitted = GraphLabeler(pairwise="potts", max_cells=1).fit(X, Y)
    assert fitted.method_ == {"cut": 10} and fitted.certificate_.relative_gap <= 0.01
    answers = fitted.predict_bounds(X)
    assert all(answer.exact and answer.method == "cut" for answer in answers)
    forced = GraphLabeler(pairwise="potts", method="cut").fit(X, Y)
    np.testing.assert_allclose(forced.weights_, fitted.weights_, atol=1e-12)


def test_answers_come_with_values_and_bounds():
    X, Y = data(8, noise=1.0)
    fitted = GraphLabeler(method="trws").fit(X, Y)
    bound = Graph(method="integer").bind(X, None, layout=fitted.layout_)
    for i, answer in enumerate(fitted.predict_bounds(X)):
        best = bound.solution(fitted.weights_, i)
        assert answer.value <= best.value + 1e-6 and answer.bound >= best.value - 1e-6
        np.testing.assert_array_equal(answer.labels, fitted.predict([X[i]])[0])


@pytest.mark.parametrize("names", [["sky", "tree", "road"], [(0, "a"), (0, "b"), (1, "a")]], ids=["text", "tuples"])
def test_any_hashable_labels(names):
    X, Y = data(6, noise=0.2, names=names)
    fitted = GraphLabeler().fit(X, Y)
    assert fitted.classes_ == sorted(names)
    assert fitted.predict(X)[0].tolist() == list(Y[0])
    assert fitted.score(X, Y) == 1.0


def test_true_labels_that_are_arrays_are_named():
    X, Y = data(3, noise=0.2)
    odd = [*map(list, Y)]
    odd[1][0] = np.arange(3)
    with pytest.raises(TypeError, match="graph 1: labels must be hashable"):
        GraphLabeler().fit(X, Y).score(X, odd)


def test_one_label_can_be_ignored():
    X, Y = data(6, noise=0.2)
    with pytest.raises(ValueError, match=r"ignore must be one label or None, got '\[0, 1\]'"):
        GraphLabeler(ignore=[0, 1]).fit(X, Y)


def test_ignored_nodes_do_not_count():
    X, Y = data(8, noise=0.6)
    rng = np.random.default_rng(0)
    hidden = [np.where(rng.random(len(y)) < 0.3, 255, y) for y in Y]
    first = GraphLabeler(ignore=255, tol=1e-5).fit(X, hidden)
    changed = [x | {"node": np.where((y == 255)[:, None], 7.0, x["node"])} for x, y in zip(X, hidden, strict=True)]
    second = GraphLabeler(ignore=255, tol=1e-5).fit(changed, hidden)
    np.testing.assert_allclose(first.weights_, second.weights_, atol=1e-10)
    assert first.classes_ == [0, 1, 2] and 0 < first.score(X, hidden) <= 1


def test_signs_by_name_index_and_mask():
    X, Y = data(8, noise=0.8)
    for positive in ("node", ["node", "edge"], [0, 5, 9], np.arange(18) < 4, True, None):
        fitted = GraphLabeler(positive=positive, tol=1e-4).fit(X, Y)
        mask = positive_weights(positive, fitted.layout_)
        assert mask is None or (fitted.weights_[mask] >= 0).all()
        assert mask is not None or (fitted.weights_ < 0).any()
    layout = fitted.layout_
    assert positive_weights("edge", layout).tolist() == [False] * 9 + [True] * 9
    assert positive_weights([0, 5], layout).nonzero()[0].tolist() == [0, 5]
    assert positive_weights(False, layout) is None
    for wrong, message in (
        ("side", "weights are node, edge"),
        ([18], "0 to 17"),
        ([0.5], "give names"),
        (np.ones(3, bool), "18 weights"),
    ):
        with pytest.raises(ValueError, match=message):
            GraphLabeler(positive=wrong).fit(X, Y)


def test_scikit_learn_contract():
    X, Y = data(9, noise=0.8)
    marks = {name: object() for name in GraphLabeler().get_params(deep=False)}
    assert all(getattr(GraphLabeler(**marks), name) is mark for name, mark in marks.items())
    fitted = GraphLabeler(pairwise="symmetric", C=0.5, solver=mm.Auto(parts=1)).fit(X, Y)
    again = clone(fitted)
    assert not hasattr(again, "weights_") and again.pairwise == "symmetric"
    np.testing.assert_array_equal(again.fit(X, Y).weights_, fitted.weights_)
    loaded = pickle.loads(pickle.dumps(fitted))
    assert all((a == b).all() for a, b in zip(loaded.predict(X), fitted.predict(X), strict=True))
    search = GridSearchCV(GraphLabeler(), {"C": [0.01, 1.0]}, cv=3).fit(X, Y)
    assert search.best_score_ > 0.5
    threads = GraphLabeler(pairwise="symmetric", C=0.5, solver=mm.Auto(parts=1), n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(threads.weights_, fitted.weights_)


@pytest.mark.parametrize("loss", ["squared_hinge", "ramp"])
def test_other_losses(loss):
    X, Y = data(8, noise=0.8)
    fitted = GraphLabeler(loss=loss, max_passes=200).fit(X, Y)
    assert fitted.score(X, Y) > 0.8


def test_factors_over_three_nodes():
    """The middle node is the exclusive or of its neighbours, which no pairs of nodes can tell."""
    rng = np.random.default_rng(0)
    X, Y = [], []
    for _ in range(30):
        a, b = rng.integers(0, 2, 2)
        y = np.array([a, a ^ b, b])
        node = np.stack([(y == 1) * 2.0 - 1.0, np.ones(3)], 1) * np.array([1, 0, 1])[:, None]
        X.append({"node": node, "edges": [(0, 1), (1, 2)], "factors": [((0, 1, 2), [1.0])]})
        Y.append(y)
    assert GraphLabeler(C=10).fit(X, Y).score(X, Y) == 1.0
    pairs = [{name: x[name] for name in ("node", "edges")} for x in X]
    assert GraphLabeler(C=10).fit(pairs, Y).score(pairs, Y) < 0.95


def test_regions_of_pictures():
    """Noisy discs on a ground: regions, their graph, their labels, and back to pixels."""
    pytest.importorskip("skimage")
    rng = np.random.default_rng(0)
    y, x = np.indices((40, 50))
    images, masks = [], []
    for _ in range(8):
        mask = ((y - rng.uniform(12, 28)) ** 2 + (x - rng.uniform(15, 35)) ** 2 < 100).astype(int)
        images.append(np.clip(0.35 + 0.3 * mask + rng.normal(scale=0.3, size=mask.shape), 0, 1))
        masks.append(mask)
    segments = [superpixels(image, 80, compactness=0.5) for image in images]
    graphs = [region_graph(s, image) for s, image in zip(segments, images, strict=True)]
    labels = [region_labels(s, mask) for s, mask in zip(segments, masks, strict=True)]
    sizes = [region_sizes(s) for s in segments]
    labeler = GraphLabeler(pairwise="potts", C=10.0).fit(graphs[:5], labels[:5], node_cost=sizes[:5])
    assert labeler.method_ == {"cut": 5}
    painted = [found[s] for found, s in zip(labeler.predict(graphs[5:]), segments[5:], strict=True)]
    assert np.mean([(a == b).mean() for a, b in zip(painted, masks[5:], strict=True)]) > 0.93


def test_structured_svm_takes_the_model():
    X, Y = data(6, noise=0.5)
    svm = mm.StructuredSVM(Graph("potts"), C=1.0).fit(X, Y)
    assert svm.predict(X)[0] == Y[0].tolist()
    assert svm.score(X, Y) == pytest.approx(0.0, abs=1.0)


@pytest.mark.parametrize("cost", ["hamming", lambda true, label: abs(true - label)], ids=["hamming", "function"])
def test_saved_and_loaded(cost, tmp_path):
    X, Y = data(8, noise=0.8)
    fitted = GraphLabeler(pairwise="symmetric", cost=cost, ignore=9).fit(X, Y)
    path = fitted.save(tmp_path / "labels.mm")
    for loaded in (GraphLabeler.load(path), mm.load(path)):
        for a, b in zip(loaded.predict_bounds(X), fitted.predict_bounds(X), strict=True):
            np.testing.assert_array_equal(a.labels, b.labels)
            assert a[1:] == b[1:]
        assert loaded.method_ == fitted.method_ and loaded.certificate_ == fitted.certificate_
        assert loaded.pairwise == "symmetric" and loaded.score(X, Y) == fitted.score(X, Y)
        np.testing.assert_allclose(loaded.fit(X, Y).weights_, fitted.weights_)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"labels\.mm"):
        GraphLabeler.load(path)


def test_errors_name_the_graph():
    X, Y = data(4)
    with pytest.raises(ValueError, match="graph 2 has 12 nodes and 3 labels"):
        GraphLabeler().fit(X, [*Y[:2], Y[2][:3], Y[3]])
    fitted = GraphLabeler().fit(X, Y)
    with pytest.raises(ValueError, match="graph 1 has 2 node and 1 edge features"):
        fitted.predict([X[0], {"node": np.zeros((3, 2)), "edges": [(0, 1)]}])
    with pytest.raises(ValueError, match="not fitted"):
        GraphLabeler().predict(X)
    assert fitted.predict([]) == []


def test_example_of_the_docstring():
    result = doctest.testmod(importlib.import_module("maxmargin.estimators.graph_labeler"))
    assert result.failed == 0 and result.attempted > 0
