"""Files that version 0.1 wrote: every later version must load them, and predict the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.estimators import registry
from persistence.forging import forge, forge_tensor

FILES = Path(__file__).parent / "files_0_1"
CODES = {"a": 0, "b": 1, "c": 2}
MASK = [[0] * 7, *[[0, 1, 1, 1, 1, 0, 0]] * 3, [0] * 7, [0] * 7]


def rows(labels: str) -> np.ndarray:
    return np.eye(4)[[CODES[label] for label in labels]]


def parts(x: np.ndarray) -> dict:
    edge = sp.csr_array(np.ones((len(x) - 1, 2)))
    return {"sparse": sp.csr_array(x), "dense": np.ones((len(x), 1)), "edge": edge}


@pytest.fixture(params=["as it was", "saved again"])
def read(request, tmp_path):
    """Load a file, as it is or after it was saved by this version."""

    def loader(name: str) -> object:
        loaded = mm.load(FILES / f"{name}.mm")
        return loaded if request.param == "as it was" else mm.load(loaded.save(tmp_path / name))

    return loader


def test_taggers(read):
    dense = read("tagger_dense")
    assert dense.predict([rows("cabb"), rows("a")]) == [list("cabb"), ["a"]] and dense.ends and dense.C == 2.0
    np.testing.assert_allclose(dense.predict_margin([rows("cabb"), rows("a")]), [1.0, 2.0], atol=1e-9)
    assert dense.cost.get_params() == mm.WeightedHammingCost({"a": 2.0}).get_params()
    observed = read("tagger_observed")
    assert observed.predict([parts(rows("cabc"))]) == [list("cabc")] and observed.weights == "observed"
    np.testing.assert_allclose(observed.predict_margin([parts(rows("cabc"))]), [1.0], atol=1e-6)
    assert observed.predict([parts(rows("bb"))])[0] != ["b", "b"]  # a pair that is forbidden
    assert np.abs(observed.weights_).sum() == pytest.approx(3.0)
    text = read("tagger_text")
    assert text.predict([["the", "Cat", "runs"], ["dogs", "sleeps"]]) == [["D", "N", "V"], ["N", "V"]]
    assert text.temperature_ == pytest.approx(0.01) and text.status_.converged
    words = [["the", "dog", "runs"], ["a", "Cat", "sleeps"], ["dogs", "run"]]
    dicts = read("tagger_dicts")
    found = dicts.predict([[{"w": w, "n": len(w)} for w in sentence] for sentence in words])
    assert found == [["D", "N", "V"], ["D", "N", "V"], ["N", "V"]]
    loss = dicts.loss
    assert (loss.ramp, loss.max_rounds, loss.start) == ("best_output", 5, "hinge")


def test_segmenters(read):
    mask = np.array(MASK)
    arrays = read("segmenter_arrays")
    x = {"node": np.stack([mask * 2.0 - 1, np.ones((6, 7))], -1), "edge": np.ones((2, 6, 7, 1))}
    np.testing.assert_array_equal(arrays.predict([x])[0], mask)
    np.testing.assert_array_equal(arrays.weights_, [1.2255733467198742, 0.5244266532801258, 0.0])
    assert arrays.C == 5.0 and arrays.cost == "balanced" and arrays.certificate_.relative_gap <= 0.01
    images = read("segmenter_images")
    np.testing.assert_array_equal(images.predict([mask + 0.1 * (np.arange(7) % 2)])[0], mask)
    assert images.weights_[[0, 8, -1]].tolist() == [0.27281689915330304, -0.4283307766591684, 0.04416154572756714]


def test_graphs(read):
    labeler = read("graph")
    ring = np.stack([np.arange(6), (np.arange(6) + 1) % 6], 1)
    labels = [np.roll([0, 0, 1, 1, 2, 2], k) for k in range(4)]
    graphs = [{"node": np.eye(3)[y] * 0.5 + 0.1, "edges": ring, "factors": [((0, 1, 2), np.ones(1))]} for y in labels]
    answers = labeler.predict_bounds(graphs)
    for answer, y in zip(answers, labels, strict=True):
        np.testing.assert_array_equal(answer.labels, y)
    values = [5.33759038269421, 5.339938231787082, 5.341031622982601, 5.337426412211248]
    np.testing.assert_allclose([answer.value for answer in answers], values, rtol=1e-12)
    assert labeler.method_ == {"junction_tree": 4} and labeler.pairwise == "symmetric"
    assert (labeler.message_passes, labeler.max_branches, labeler.positive) == (200, 100, None)
    assert labeler.cost.table([0, 1, 2]).tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]


def test_generative_models(read):
    hmm = read("hmm")
    X = [["walk", None, "clean", "shop"], ["clean"], []]
    assert hmm.predict(X) == [["sun", "sun", "rain", "sun"], ["rain"], []] and hmm.n_seen_ == 4
    np.testing.assert_allclose(hmm.log_likelihood(X), [-3.2091166266542865, -1.0986122886661098, 0.0], atol=1e-12)
    assert hmm.predict([["ski"]]) and hmm.unknown == "missing"
    net = read("bayes_net")
    frame = {
        "rain": ["no", "no", "yes", "yes", "no", "yes"],
        "wet": ["no", "no", "yes", None, "yes", "yes"],
        "cat": ["out", "in", "in", "in", "out", "out"],
        "month": [1, 2, 3, 1, 2, 3],
    }
    assert net.predict(frame).tolist() == ["no", "no", "yes", "no", "no", "no"]
    no = [0.9376190083237529, 0.6694747869971724, 2.185181568e-06, 0.702865805832312, 0.8798936078487767]
    np.testing.assert_allclose(net.predict_marginals(frame)[:5, 0], no, rtol=1e-9)
    assert net.n_seen_ == 6 and net.cost == {"rain": 3.0} and net.target_ == ["rain"]


@pytest.mark.parametrize(
    ("name", "tensor", "change", "words"),
    [
        ("tagger_dense", "chain.transition", lambda a: a[:2], "'transition' has dtype float64 and shape"),
        ("tagger_dense", "chain.transition", lambda a: a * np.nan, "'transition' has numbers that are NaN"),
        ("tagger_dense", "chain.cost", lambda a: a - 1, "negative entries"),
        ("tagger_observed", "chain.sparse.values", lambda a: a[:-1], "sparse.values"),
        ("tagger_observed", "chain.sparse.labels", lambda a: a + np.uint8(9), "more labels"),
        ("tagger_observed", "chain.sparse.counts", lambda a: a[:-1], "rows"),
        ("tagger_dense", "chain.dense.counts", lambda a: a[:-1], "announced|rows"),
        ("tagger_text", "chain.sparse", lambda a: a[:-1], "'sparse' has dtype float64 and shape"),
        ("segmenter_arrays", "weights", lambda a: a[:-1], "2 weights where its layout needs 3"),
        ("segmenter_arrays", "weights", lambda a: a - 1, "weights of edges are negative"),
        ("graph", "weights", lambda a: a + np.inf, "NaN or infinite"),
        ("hmm", "weights", lambda a: a + 9, "no logarithms"),
        ("hmm", "counts", lambda a: a - 9, "numbers that are not counts"),
        ("bayes_net", "reference", lambda a: a[1:], "'reference' has dtype"),
    ],
)
def test_forged_tensors_are_refused(tmp_path, name, tensor, change, words):
    path = tmp_path / name
    path.write_bytes((FILES / f"{name}.mm").read_bytes())
    with pytest.raises(ValueError, match=rf"{name} cannot be loaded: .*({words})"):
        mm.load(forge_tensor(path, tensor, change))


@pytest.mark.parametrize(
    ("name", "part", "change", "words"),
    [
        ("tagger_dense", "layout", lambda f: f.update(n_dense=2**30), "more than fit in memory|shape"),
        ("tagger_dense", "layout", lambda f: f.update(ends=1), "'ends' must be true or false"),
        ("graph", "layout", lambda f: f.update(factors=[[3, 1], [3, 1]]), "arity twice"),
        ("graph", "layout", lambda f: f.update(factors=[[2**20, 1]]), "arity of a factor"),
        ("graph", "layout", lambda f: f.pop("cost_table"), "'cost_table' is missing"),
        ("graph", "layout", lambda f: f.update(cost_table=[[0.0]]), r"shape \(1, 1\)"),
        ("graph", "parameters", lambda f: f.update(max_cells="all"), "'max_cells' must be a whole number"),
        ("graph", "method", lambda f: f.update(tree="many"), "'tree' must be a whole number"),
        ("bayes_net", "layout", lambda f: f.update(costs=3), "costs are not a mapping"),
        ("segmenter_arrays", "layout", lambda f: f.update(class_cost="ab"), "'class_cost' is not a pair"),
    ],
)
def test_forged_headers_are_refused(tmp_path, name, part, change, words):
    path = tmp_path / name
    path.write_bytes((FILES / f"{name}.mm").read_bytes())
    with pytest.raises(ValueError, match=rf"{name} cannot be loaded: .*({words})"):
        mm.load(forge(path, part, change))


def test_parameters_that_were_renamed(tmp_path, monkeypatch):
    """As when a later version calls C otherwise, and has no ``ends`` any more, nor weights of a cost by that name."""
    path = tmp_path / "t"
    path.write_bytes((FILES / "tagger_dense.mm").read_bytes())

    def old(f: dict) -> None:
        f["strength"] = f.pop("C")
        f["depth"] = 3
        arguments = f["cost"]["$object"][1]
        arguments["by_label"] = arguments.pop("weights")

    forge(path, "parameters", old)
    with pytest.raises(ValueError, match="by_label"):
        mm.load(path)
    monkeypatch.setitem(registry.RENAMED, "WeightedHammingCost", {"by_label": "weights"})
    with pytest.raises(ValueError, match="SequenceTagger has no parameter 'strength'"):
        mm.load(path)
    monkeypatch.setitem(
        registry.RENAMED, "SequenceTagger", {**registry.RENAMED["SequenceTagger"], "strength": "C", "depth": None}
    )
    loaded = mm.load(path)
    assert loaded.C == 2.0 and loaded.cost.weights == {"a": 2.0}
    assert loaded.predict([rows("cab")]) == [list("cab")]
