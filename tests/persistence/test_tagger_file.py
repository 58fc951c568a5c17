"""Taggers in model files: the loaded tagger is the saved one, for every kind of chain."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import types
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import load_file
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from maxmargin import BCFW, HammingCost, SequenceTagger, WeightedHammingCost, load
from maxmargin.estimators import registry
from maxmargin.features.dicts import DictFeatures
from maxmargin.features.extractor import TextFeatures
from maxmargin.features.window import Window
from maxmargin.models.chain import ChainLayout
from maxmargin.persistence.model_file import read_model, write_model
from maxmargin.persistence.vectors import pack_vector, unpack_vector
from persistence.forging import forge, forge_tensor

DATA = Path(__file__).parent / "data"
BIO = ["O", "B-x", "I-x", "B-y", "I-y"]


def examples(kind: str = "sparse", labels: list | None = None, n: int = 12, seed: int = 0) -> tuple[list, list]:
    """Random sequences; features 30 and above never occur, and those below 5 tell the label (mod 5)."""
    rng = np.random.default_rng(seed)
    labels = ["a", "b", "c"] if labels is None else labels
    X, Y = [], []
    for length in rng.integers(1, 7, n):
        codes = rng.integers(len(labels), size=length)
        if labels is BIO:  # I-x only after B-x or I-x
            for t, k in enumerate(codes):
                if k in (2, 4) and (t == 0 or codes[t - 1] not in (k - 1, k)):
                    codes[t] = k - 1
        sparse = np.zeros((length, 40))
        sparse[np.arange(length), codes % 5] = 1
        sparse[np.arange(length), rng.integers(5, 30, length)] = 1 if "binary" in kind else rng.normal(size=length)
        parts = {}
        if kind != "dense":
            parts["sparse"] = sp.csr_array(sparse)
        if kind in ("dense", "both"):
            parts["dense"] = np.column_stack([sparse[:, :5], rng.normal(size=(length, 3)), np.zeros(length)])
        if "edge" in kind:
            parts["edge"] = sp.csr_array(rng.integers(0, 2, (length - 1, 4)).astype(float))
        X.append(parts if len(parts) > 1 else next(iter(parts.values())))
        Y.append([labels[k] for k in codes])
    return X, Y


def fitted(X: list, Y: list, **options: object) -> SequenceTagger:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SequenceTagger(**{"max_passes": 15, **options}).fit(X, Y)


def check_same(tagger: SequenceTagger, loaded: SequenceTagger, X: list) -> None:
    """The same answers, to the last bit of every score."""
    assert [(type(label), label) for label in loaded.classes_] == [(type(label), label) for label in tagger.classes_]
    assert loaded.predict(X) == tagger.predict(X)
    for one, two in zip(tagger.predict_kbest(X, 4), loaded.predict_kbest(X, 4), strict=True):
        assert one == two
    dense = [getattr(t.coef_, "toarray", lambda t=t: t.coef_)() for t in (tagger, loaded)]
    assert np.array_equal(*dense) and np.array_equal(tagger.transition_, loaded.transition_)
    for name in ("n_sparse", "n_dense", "n_edge", "ends", "normalize", "stride"):
        assert getattr(loaded.layout_, name) == getattr(tagger.layout_, name)
    for name in ("cost_table", "start_mask", "end_mask", "pair_mask"):
        assert np.array_equal(getattr(loaded.layout_, name), getattr(tagger.layout_, name))


CASES = {
    "dense": ("dense", {}),
    "sparse": ("sparse", {}),
    "binary": ("binary", {}),
    "both": ("both", {"ends": True}),
    "observed": ("binary", {"weights": "observed"}),
    "observed ends": ("sparse", {"weights": "observed", "ends": True, "loss": "squared_hinge"}),
    "observed both edge": ("both edge", {"weights": "observed"}),
    "edge": ("edge", {"ends": True}),
    "normalize": ("binary", {"cost": HammingCost(normalize=True)}),
    "matrix": ("sparse", {"cost": [[0, 1, 2], [3, 0, 1], [1, 1, 0]], "class_weight": {"a": 2.0}}),
    "weighted": ("dense", {"cost": WeightedHammingCost({"a": 3.0}, by="label", normalize=True), "solver": BCFW("gap")}),
    "positive": ("dense", {"positive": ["transition"], "classes": np.array(["a", "b", "c", "d"])}),
}


@pytest.mark.parametrize("case", CASES)
def test_round_trip(tmp_path, case):
    kind, options = CASES[case]
    X, Y = examples(kind)
    tagger = fitted(X, Y, **options)
    before = tagger.weights_.copy()
    path = tagger.save(tmp_path / "tagger")
    loaded = SequenceTagger.load(path)
    check_same(tagger, loaded, [*X, *examples(kind, seed=1)[0]])
    assert np.array_equal(before, tagger.weights_) and os.listdir(tmp_path) == ["tagger"]
    if options.get("weights") != "observed":
        assert np.array_equal(loaded.weights_, tagger.weights_)
    assert repr(loaded) == repr(tagger) and loaded.certificate_ == tagger.certificate_
    assert loaded.status_ == tagger.status_ and loaded.n_iter_ == tagger.n_iter_
    assert loaded.seconds_ == tagger.seconds_ and loaded.oracle_calls_ == tagger.oracle_calls_
    assert loaded.save(tmp_path / "again").read_bytes() == path.read_bytes()
    refit = fitted(X, Y, **clone(loaded).get_params(deep=False))
    assert np.allclose(refit.weights_, tagger.weights_)


@pytest.mark.parametrize("constraints", ["bio", [("O", "B-x"), ("B-y", "O")], np.eye(5) < 1])
def test_constraints(tmp_path, constraints):
    X, Y = examples(labels=BIO, n=30)
    if not isinstance(constraints, str):
        forbidden = constraints if isinstance(constraints, list) else [(label, label) for label in BIO]
        kept = [i for i, y in enumerate(Y) if not set(pairwise(y)) & set(forbidden)]
        X, Y = [X[i] for i in kept], [Y[i] for i in kept]
    tagger = fitted(X, Y, constraints=constraints, classes=BIO)
    assert tagger.layout_.constrained
    loaded = SequenceTagger.load(tagger.save(tmp_path / "t"))
    check_same(tagger, loaded, X)
    assert loaded.predict(X[:1], fixed=[Y[0]]) == [Y[0]]


@pytest.mark.parametrize(
    "labels",
    [
        [1, 2, 3], [0.5, 1.5, -0.0], [True, False], [("a", 1), ("a", 2), ("b", (None, 2.5))], [None, "x", 3, 2.5],
        ["only"], ["\u00e9", "\ud800", "a\0b", ""], [np.int64(4), np.int64(5)], [np.float32(0.1), np.float32(7)],
        [b"x", frozenset({"a", "b"})], [f"label {k}" for k in range(300)], list(range(70)),
    ],
)  # fmt: skip
def test_labels_keep_their_types(tmp_path, labels):
    X, Y = examples(labels=labels)
    tagger = fitted(X, Y, classes=labels, max_passes=3)
    loaded = SequenceTagger.load(tagger.save(tmp_path / "t"))
    check_same(tagger, loaded, X)
    assert repr(loaded.predict(X)) == repr(tagger.predict(X)) and repr(loaded.classes) == repr(labels)


def test_labels_and_parameters_that_can_not_be_stored(tmp_path):
    class Own(str):
        pass

    X, Y = examples(labels=[Own("a"), Own("b")])
    with pytest.raises(ValueError, match="labels, states or symbols cannot be stored"):
        fitted(X, Y).save(tmp_path / "t")
    X, Y = examples()
    tagger = fitted(X, Y, random_state=np.random.default_rng(0), cost=lambda a, b: 2.0 * (a != b))
    with pytest.warns(UserWarning, match="random_state"):
        tagger.save(tmp_path / "t")
    loaded = SequenceTagger.load(tmp_path / "t")
    check_same(tagger, loaded, X)
    assert loaded.random_state == 0 and np.array_equal(loaded.cost.table(["a", "b", "c"]), 2 * (1 - np.eye(3)))
    with pytest.raises(NotFittedError):
        SequenceTagger().save(tmp_path / "u")
    with pytest.raises(ValueError, match="precision"):
        tagger.save(tmp_path / "u", precision="float16")
    tagger.weights_[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        tagger.save(tmp_path / "u")
    tagger.weights_[0] = 1e39
    with pytest.raises(ValueError, match="float64"):
        tagger.save(tmp_path / "u", precision="float32")
    assert os.listdir(tmp_path) == ["t"]


@pytest.mark.parametrize("weights", ["all", "observed"])
def test_the_file_holds_what_it_says(tmp_path, weights):
    """The emission matrix, rebuilt by another reader from the description of the format, row by row."""
    X, Y = examples("binary", n=40)
    tagger = fitted(X, Y, weights=weights)
    tensors = load_file(tagger.save(tmp_path / "t"))
    vector, values = [], iter(tensors["weights"].tolist())
    if "weights.bits" in tensors:
        for byte in tensors["weights.bits"].tolist():
            vector += [next(values) if byte & bit else 0.0 for bit in (128, 64, 32, 16, 8, 4, 2, 1)]
    elif "weights.gaps" in tensors:
        for gap in tensors["weights.gaps"].tolist():
            vector += [0.0] * gap + ([] if gap == 255 else [next(values)])
    else:
        vector = list(values)
    assert next(values, None) is None
    matrix = np.zeros((40, 3))
    if weights == "all":
        matrix[:] = np.reshape(vector[:120], (40, 3))
    else:
        at = 0
        for feature, count in enumerate(tensors["layout.observed.counts"].tolist()):
            for label in tensors["layout.observed.labels"][at : at + count].tolist():
                matrix[feature, label] = vector[at]
                at += 1
    assert np.array_equal(matrix, getattr(tagger.coef_, "toarray", lambda: tagger.coef_)()) and not matrix[30:].any()
    begin = 120 if weights == "all" else at
    assert np.array_equal(np.reshape(vector[begin : begin + 9], (3, 3)), tagger.transition_)


def test_file_size_and_float32(tmp_path):
    X, Y = examples("sparse")
    tagger = fitted(X, Y)
    layout = tagger.layout_
    rng = np.random.default_rng(0)
    weights = np.zeros((200_000, 3))
    chosen = rng.choice(200_000, 5_000, replace=False)
    weights[chosen, rng.integers(3, size=5_000)] = rng.normal(size=5_000)
    tagger.layout_ = replace(layout, n_sparse=200_000)
    tagger.weights_ = np.concatenate([weights.ravel(), tagger.weights_[layout.n_emission :]])
    assert layout.stride == 3
    sizes = {p: tagger.save(tmp_path / p, precision=p).stat().st_size for p in ("float64", "float32")}
    # a byte for each feature; a byte and a number for each weight; little else
    assert sizes["float64"] < 200_000 + 5_000 * 9 + 4_000 and sizes["float32"] < 200_000 + 5_000 * 5 + 4_000
    begin = time.perf_counter()
    exact, rounded = (SequenceTagger.load(tmp_path / p).weights_ for p in ("float64", "float32"))
    assert time.perf_counter() - begin < 2  # a few milliseconds; nothing of it may run feature by feature
    assert np.array_equal(exact, tagger.weights_)
    assert np.allclose(rounded, exact, rtol=6e-8, atol=0) and rounded.dtype == np.float64
    assert np.array_equal(rounded, exact.astype(np.float32))


def test_zero_weights_of_observed_pairs_are_dropped(tmp_path):
    X, Y = examples("binary")
    tagger = fitted(X, Y, weights="observed")
    tagger.weights_[: tagger.layout_.n_emission : 2] = 0.0
    loaded = load(tagger.save(tmp_path / "t"))
    assert loaded.layout_.n_emission == np.count_nonzero(tagger.weights_[: tagger.layout_.n_emission])
    check_same(tagger, loaded, X)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("observed.counts", lambda a: a[:-1], "rows"),
        ("observed.counts", lambda a: a.astype(np.int64), "counts"),
        ("observed.counts", lambda a: a + np.uint8(1), "more labels|announced"),
        ("observed.counts", lambda a: a[None], "counts"),
        ("observed.labels", lambda a: a[::-1].copy(), "twice"),
        ("observed.labels", lambda a: a * 0, "twice"),
        ("observed.labels", lambda a: a + np.uint8(9), "more labels"),
        ("observed.labels", lambda a: a[:-1], "announced"),
        ("cost", lambda a: a - 1, "negative"),
        ("cost", lambda a: a + 1, "costs of the true label"),
        ("cost", lambda a: a * np.nan, "NaN"),
        ("cost", lambda a: a.astype(np.int64), "dtype"),
        ("cost", lambda a: a[0], "cost"),
        ("cost", lambda a: None, "missing"),
        ("allowed.pairs", lambda a: a.astype(np.uint8), "allowed"),
        ("allowed.end", lambda a: a[:1], "allowed"),
        ("labels", lambda a: a[:2], "more labels"),
        ("labels", lambda a: [a, a, a], "labels"),
        ("labels", lambda a: ["a", "a", "b"], "twice"),
        ("labels", lambda a: ["a", ("b", []), "c"], "hashable"),
        ("labels", lambda a: [1.0, float("nan"), 2.0], "labels"),
        ("labels", lambda a: [], "labels"),
        ("labels", lambda a: "abc", "labels"),
        ("ends", lambda a: 1, "ends"),
        ("observed", lambda a: None, "observed"),
        ("n_sparse", lambda a: 2**40, "n_sparse"),
        ("n_sparse", lambda a: a + 1, "fit"),
        ("n_edge", lambda a: -1, "n_edge"),
        ("n_dense", lambda a: True, "n_dense"),
    ],
)
def test_parts_that_do_not_fit_are_refused(name, change, words):
    X, Y = examples("sparse", n=30)
    facts, tensors = fitted(X, Y, ends=True, weights="observed", max_passes=3).layout_.to_state()
    parts = facts if name in facts else tensors
    parts[name] = change(parts[name])
    if parts[name] is None and parts is tensors:
        del tensors[name]
    with pytest.raises(ValueError, match=words):
        ChainLayout.from_state(facts, tensors)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("weights", lambda a: a[:-1], "weights where its layout needs"),
        ("weights", lambda a: a * np.nan, "NaN"),
        ("weights", lambda a: a[None], "shape"),
        ("weights", lambda a: a.astype(np.int64), "dtype"),
        ("weights", lambda a: None, "'weights' is missing"),
        ("weights.bits", lambda a: a[:-1], "one bit for each"),
        ("weights.bits", lambda a: a * 0, "weights where its layout needs"),
        ("weights.bits", lambda a: None, "weights where its layout needs"),
    ],
)
def test_weights_that_do_not_fit_are_refused(tmp_path, name, change, words):
    X, Y = examples("sparse", n=30)
    path = fitted(X, Y, ends=True, max_passes=3).save(tmp_path / "t")
    with pytest.raises(ValueError, match=rf"t cannot be loaded.*{words}"):
        load(forge_tensor(path, name, change))


def test_more_weights_than_can_be_are_refused(tmp_path):
    X, Y = examples("sparse")
    path = fitted(X, Y, max_passes=3).save(tmp_path / "t")
    with pytest.raises(ValueError, match="one bit for each"):
        load(forge(path, "layout", lambda f: f.update(n_sparse=2**30)))
    n = 2**31  # in a file of eight megabytes
    with pytest.raises(ValueError, match="more than fit"):
        unpack_vector("w", {"w": np.zeros(0), "w.gaps": np.full(n // 255, 255, np.uint8)}, n)
    with pytest.raises(ValueError, match="does not lead to the last"):
        unpack_vector("w", {"w": np.zeros(0), "w.gaps": np.full(9, 255, np.uint8)}, n)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 7, 8, 255, 256, 511, 5000])
def test_vectors_without_their_zeros(n, share):
    rng = np.random.default_rng(n)
    vector = np.where(rng.random(n) < share, rng.normal(size=n), 0.0)
    tensors = pack_vector("v", vector)
    assert np.array_equal(unpack_vector("v", tensors, n), vector)
    some = np.count_nonzero(vector)
    where = min(8 * (n - some), -(-n // 8), some + n // 255)
    assert sum(part.nbytes for part in tensors.values()) <= 8 * some + where
    for other in (n + 300, n + 2000):
        with pytest.raises(ValueError, match="v"):
            unpack_vector("v", tensors, other)


class WordFeatures:
    """Stands in for an extractor: its state has arrays, many texts, and plain values."""

    def __init__(self, words: list, counts: np.ndarray, options: dict) -> None:
        self.words, self.counts, self.options = words, counts, options

    def to_state(self) -> tuple[dict, dict]:
        return {"words": self.words, "counts": self.counts}, self.options

    @classmethod
    def from_state(cls, arrays: dict, options: dict) -> WordFeatures:
        return cls(arrays["words"], arrays["counts"], options)


def test_the_feature_extractor_goes_along(tmp_path, monkeypatch):
    X, Y = examples()
    tagger = fitted(X, Y)
    tagger.features_ = WordFeatures(
        [f"w{k}\u00e9" for k in range(500)], np.arange(500, dtype=np.int32), {"window": (-1, 1)}
    )
    with pytest.raises(ValueError, match="WordFeatures cannot be stored"):
        tagger.save(tmp_path / "t")
    room = types.ModuleType("word_features")
    room.WordFeatures = WordFeatures
    monkeypatch.setattr(WordFeatures, "__module__", "word_features")
    monkeypatch.setitem(sys.modules, "word_features", room)
    kind = registry.Kind("features", "word_features", "ChainLayout")
    monkeypatch.setitem(registry.KINDS, "WordFeatures", kind)
    tagger.save(tmp_path / "t")
    loaded = SequenceTagger.load(tmp_path / "t").features_
    assert loaded.words == tagger.features_.words and loaded.options == {"window": (-1, 1)}
    assert np.array_equal(loaded.counts, np.arange(500)) and loaded.counts.dtype == np.int32
    assert loaded.counts.flags.writeable
    monkeypatch.delitem(registry.KINDS, "WordFeatures")
    with pytest.raises(ValueError, match="feature extractor of the unknown kind 'WordFeatures'"):
        SequenceTagger.load(tmp_path / "t")


SENTENCES = [["The", "dog", "barks"], ["A", "caf\u00e9", "dog"], ["Dogs", "bark"]] * 3
TAGS = [["D", "N", "V"], ["D", "N", "N"], ["N", "V"]] * 3
ROWS = [[{"word": word, "upper": word[0].isupper(), "length": len(word)} for word in words] for words in SENTENCES]


@pytest.mark.parametrize(
    ("X", "features"),
    [
        (SENTENCES, None),
        (SENTENCES, TextFeatures([Window(0, (-1, 0))], hashing=256)),
        (ROWS, None),
        (ROWS, DictFeatures(2)),
    ],
)
def test_text_in_labels_out(tmp_path, X, features):
    tagger = fitted(X, TAGS, features=features)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = SequenceTagger.load(tagger.save(tmp_path / "t"))
    further = [X[1][::-1], X[0][:1], [*X[2], *X[0]]]
    check_same(tagger, loaded, [*X, *further])
    assert type(loaded.features_) is type(tagger.features_) and (loaded.features is None) == (features is None)
    again = fitted(X, TAGS, **clone(loaded).get_params(deep=False))
    assert np.allclose(again.weights_, tagger.weights_)


def test_other_kinds_and_newer_parameters(tmp_path):
    X, Y = examples()
    path = fitted(X, Y).save(tmp_path / "t")
    header, tensors = read_model(path, mmap=False)
    plain = {name: text for name, text in header.items() if not name.startswith(("format", "data_"))}
    for change, words in [
        ({"kind": "Parser"}, "holds a Parser"),
        ({"parameters": '{"depth": 3}'}, "no parameter 'depth'"),
        ({"parameters": "[]"}, "t cannot be loaded"),
        ({"parameters": '{"solver": {"$object": ["Popen", {}]}}'}, "unknown kind 'Popen'"),
        ({"training": "{}"}, "'certificate' is missing"),
        ({"training": plain["training"].replace("primal", "Primal")}, "'primal' is missing"),
        ({"layout": "3"}, "its layout is not a mapping"),
        ({"layout": '{"kind": "ChainLayout"}'}, "'facts' is missing"),
        ({"layout": '{"kind": "ChainLayout", "facts": {}}'}, "'labels' is missing"),
        ({"layout": '{"kind": "Popen", "facts": {}}'}, "a layout of the unknown kind 'Popen'"),
        ({"layout": '{"kind": "SequenceTagger", "facts": {}}'}, "a layout of the unknown kind 'SequenceTagger'"),
        ({"layout": '{"kind": "PythonLayout", "facts": {"n_weights": 3, "fixed": true}}'}, "t cannot be loaded"),
        ({"contents": "3"}, "contents have version '3'; upgrade"),
        ({"fitted": "[" * 5000}, "nested more than 64 levels"),
        ({"parameters": '{"C": [1.0]}'}, "its parameter 'C' must be a number"),
    ]:
        write_model(path, {**plain, **change}, tensors)
        with pytest.raises(ValueError, match=words):
            SequenceTagger.load(path)
    del plain["layout"]
    write_model(path, plain, tensors)
    with pytest.raises(ValueError, match="'layout' is missing"):
        load(path)


def test_version_1_is_read():
    """A file written by the first version with model files: every later version must read it alike."""
    path = DATA / "tagger_v1.maxmargin"
    assert path.stat().st_size < 5_000
    tagger = load(path)
    assert tagger.classes_ == [("noun", 1), ("verb", 2), None]
    assert (
        tagger.C == 0.5
        and tagger.ends
        and tagger.weights == "observed"
        and repr(tagger.solver) == "BCFW(sampling='gap')"
    )
    # with these features each token's label is that of its only feature
    X = [{"sparse": sp.csr_array(np.eye(6)[[0, 1, 2, 1]]), "dense": np.zeros((4, 1))}]
    assert tagger.predict(X) == [[("noun", 1), ("verb", 2), None, ("verb", 2)]]
    assert tagger.status_.converged and tagger.certificate_.relative_gap <= 1e-3
    assert tagger.coef_.shape == (7, 3) and np.array_equal(tagger.coef_[3:6], np.zeros((3, 3)))


def test_loading_leaves_no_trace(tmp_path):
    """Another process loads and predicts; the file may be replaced or removed afterwards."""
    X, Y = examples("dense")
    tagger = fitted(X, Y)
    path = tagger.save(tmp_path / "t")
    code = (
        "import sys, os, numpy as np; from maxmargin import SequenceTagger; t = SequenceTagger.load(sys.argv[1]);"
        "os.truncate(sys.argv[1], 0); print(t.predict([np.load(sys.argv[2])])[0])"
    )
    np.save(tmp_path / "x.npy", X[0])
    run = subprocess.run(
        [sys.executable, "-c", code, str(path), str(tmp_path / "x.npy")],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert run.stdout.strip() == str(tagger.predict(X[:1])[0])
