"""Counts, order, hashing, unseen text, frames, stored state, memory."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features.naive import rows_of, template_features
from maxmargin.features.extractor import TextFeatures
from maxmargin.features.rows import MOST_LOOKED_UP
from maxmargin.features.template import Template
from maxmargin.features.tokens import Tokens
from maxmargin.features.window import CharNGrams, Ends, Gazetteer, Shape, Suffix, Window

LINES = ["U0:%x[0,0]", "U1:%x[-1,0]/%x[0,0]", "U2:%x[0,1]/%x[1,1]/%x[-1,0]", "B1:%x[0,1]", "B"]
TEMPLATE = "\n".join(LINES)
WORD = st.sampled_from(["a", "b", "c", "d"])
SENTENCES = st.lists(st.lists(st.tuples(WORD, WORD), min_size=1, max_size=6), min_size=1, max_size=6)
WINDOWS = [
    Window(0, (-1, 0), bigrams=(-1,), name="w"),
    Window(0, (0,), of=CharNGrams(2)),
    Window(0, (0, 1), of=Suffix(1), edge=True),
    Window(0, (0,), of=Gazetteer("g", ["a b", "c"])),
    Ends(),
]


@given(SENTENCES, st.integers(1, 4))
@settings(deadline=None)
def test_ids_by_falling_count_and_rare_ones_left_out(sentences, min_count):
    rows = [template_features(LINES, s, t) for s in sentences for t in range(len(s))]
    counts = Counter(name for row in rows for name in row)
    kept = {name for name, count in counts.items() if count >= min_count}
    features = TextFeatures(TEMPLATE, min_count=min_count)
    if not kept:
        with pytest.raises(ValueError, match="no feature occurs min_count"):
            features.fit(sentences)
        return
    X = features.fit_transform(sentences)
    names = features.names()
    assert set(names) == kept
    assert len(names) == features.n_features_ == X.sparse.shape[1]
    ordered = [counts[name] for name in names]
    assert ordered == sorted(ordered, reverse=True)
    assert rows_of(X.sparse, names) == [[name for name in row if name in kept] for row in rows]
    Z = features.transform(sentences)
    assert (Z.sparse != X.sparse).nnz == 0
    # what no kept feature needs is forgotten
    used = {part for name in kept | set(features.names(edge=True)) for part in name[3:].split("/")}
    assert set(features.vocabulary_.strings) == used


@given(SENTENCES, st.integers(1, 3))
@settings(deadline=None, max_examples=40)
def test_values_of_lists_count_as_often_as_their_tokens(sentences, min_count):
    features = TextFeatures([Window(0, (0,), name="w"), Window(0, (1,), of=CharNGrams(2), name="c")])
    features.set_params(min_count=min_count)
    counts = Counter()
    for s in sentences:
        for t in range(len(s)):
            counts[f"w[0]={s[t][0]}"] += 1
            if t + 1 < len(s):
                counts[f"c[1]=^{s[t + 1][0]}"] += 1
                counts[f"c[1]={s[t + 1][0]}$"] += 1
            else:
                counts["c[1]=_B+1"] += 1
    kept = {name for name, count in counts.items() if count >= min_count}
    if kept:
        assert set(features.fit(sentences).names()) == kept


def test_unseen_text_is_left_out():
    features = TextFeatures(TEMPLATE).fit([[("a", "x"), ("b", "y")]])
    Z = features.transform([[("a", "x"), ("new", "x")], [("new", "new")]])
    assert rows_of(Z.sparse, features.names()) == [["U0:a", "U1:_B-1/a"], [], []]
    assert Z.sparse.shape == (3, features.n_features_)
    assert Z.edge.nnz == 0


def test_nothing_to_read():
    features = TextFeatures(TEMPLATE).fit([[("a", "x"), ("b", "y")]])
    for empty in ([], [[], []]):
        Z = features.transform(empty)
        assert len(Z) == len(empty)
        assert Z.sparse.shape == (0, features.n_features_)
    with pytest.raises(ValueError, match="these sentences have no tokens"):
        TextFeatures(TEMPLATE).fit([[]])
    Z = features.transform([[("a", "x")], [], [("b", "y")]])
    assert Z.offsets.tolist() == [0, 1, 1, 2]


@given(SENTENCES)
@settings(deadline=None, max_examples=40)
def test_hashes_tell_features_apart_and_need_no_fit_data(sentences):
    exact = TextFeatures([Template(LINES), *WINDOWS])
    hashed = TextFeatures([Template(LINES), *WINDOWS], hashing=2**31 - 1).fit([[("z", "z")]])
    X, Z = exact.fit_transform(sentences), hashed.transform(sentences)
    for a, b in ((X.sparse, Z.sparse), (X.edge, Z.edge)):
        if a is None:
            assert b.nnz == 0
            continue
        assert (a.indptr == b.indptr).all()
        pairs = set(zip(a.indices.tolist(), b.indices.tolist(), strict=True))
        assert len(pairs) == len({i for i, _ in pairs}) == len({h for _, h in pairs})


def test_hashes_are_the_same_in_every_process():
    program = (
        "from maxmargin.features.extractor import TextFeatures as T\n"
        "print(T('U0:%x[0,0]\\nU1:%x[-1,0]/%x[0,0]', hashing=1000).fit_transform([['a', 'b']]).sparse.indices.tolist())"
    )
    seeds = [
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}, text=True,
            capture_output=True, check=True,
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert seeds[0] == seeds[1]
    ids = json.loads(seeds[0])
    assert len(ids) == 4
    assert all(0 <= i < 1000 for i in ids)


def test_few_hashes_stay_in_range():
    X = TextFeatures(TEMPLATE, hashing=3).fit_transform([[(c, c) for c in "abcdefgh"]])
    assert X.sparse.shape == (8, 3)
    assert X.sparse.sum() == 24
    assert X.edge.shape == (8, 3)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_lists_and_tokens_agree(library):
    frames = pytest.importorskip(library)
    sentences = [[("a", "x"), ("b", "y")], [("b", "x")]]
    frame = frames.DataFrame({"w": ["a", "b", "b"], "sentence": [1, 1, 2], "p": ["x", "y", "x"]})
    for given_ in (frame, Tokens.of(sentences)):
        features = TextFeatures(TEMPLATE)
        assert (
            features.fit_transform(given_).sparse != TextFeatures(TEMPLATE).fit_transform(sentences).sparse
        ).nnz == 0
        assert (features.transform(given_).edge != features.transform(sentences).edge).nnz == 0


def stored(features):
    """A state that went through JSON and a file of plain arrays."""
    arrays, facts = features.to_state()
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as loaded:
        return {name: loaded[name] for name in loaded.files}, json.loads(json.dumps(facts))


@given(SENTENCES, SENTENCES, st.integers(1, 2), st.booleans())
@settings(deadline=None, max_examples=30)
def test_state_comes_back(sentences, others, min_count, hashing):
    features = TextFeatures([TEMPLATE, *WINDOWS], min_count, None)
    if hashing:
        features.set_params(min_count=1, hashing=64)
    try:
        X = features.fit_transform([*sentences, [("a", "é\ud800")] * min_count])
    except ValueError:
        return
    again = TextFeatures.from_state(*stored(features))
    assert again.get_params()["min_count"] == features.min_count
    for Y in (sentences, others):
        A, B = features.transform(Y), again.transform(Y)
        assert (A.sparse != B.sparse).nnz == 0
        assert (A.edge is None) == (B.edge is None)
        assert A.edge is None or (A.edge != B.edge).nnz == 0
    if not hashing:
        assert again.names() == features.names()
        assert again.names(edge=True) == features.names(edge=True)
        assert len(features.names()) == X.sparse.shape[1]


def test_damaged_states_are_refused():
    features = TextFeatures([TEMPLATE, *WINDOWS]).fit([[("a", "x"), ("b", "y"), ("a", "y")]])
    random = np.random.default_rng(0)
    for _ in range(400):
        arrays, facts = stored(features)
        name = random.choice(sorted(arrays))
        broken = arrays[name].copy()
        kind = random.integers(4)
        if kind == 0 and len(broken):
            broken[random.integers(len(broken))] = random.integers(-(2**62), 2**62) % 251
        elif kind == 1 and len(broken):
            broken.view(np.uint8)[random.integers(broken.nbytes)] ^= np.uint8(1 << random.integers(8))
        elif kind == 2:
            broken = broken[: random.integers(len(broken) + 1)]
        else:
            broken = broken.astype(np.float64)
        try:
            again = TextFeatures.from_state(arrays | {name: broken}, facts)
        except ValueError:
            continue
        again.transform([[("a", "x"), ("b", "zz")]])  # whatever it means now, it is safe
        again.names()
    arrays, facts = stored(features)
    for broken in ({}, {"version": 2}, facts | {"features": [{"kind": "?"}]}, facts | {"features": 3}):
        with pytest.raises(ValueError, match=r"stored|upgrade"):
            TextFeatures.from_state(arrays, broken)
    with pytest.raises(ValueError, match="damaged"):
        TextFeatures.from_state({}, facts)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"min_count": 0}, "min_count must be"),
        ({"min_count": 1.5}, "min_count must be"),
        ({"hashing": 0}, "hashing must be"),
        ({"hashing": 10, "min_count": 2}, "hashed features are not counted"),
        ({"template": "B01:%x[0,0]"}, "no token features"),
        ({"template": [3]}, "must be text, a path"),
    ],
)
def test_parameters_are_checked(params, message):
    with pytest.raises((TypeError, ValueError), match=message):
        TextFeatures(**({"template": TEMPLATE} | params)).fit([[("a", "b")]])


def test_questions_out_of_turn():
    with pytest.raises(AttributeError, match="not fitted"):
        TextFeatures(TEMPLATE).transform([["a"]])
    features = TextFeatures("U:%x[0,0]").fit([["a"]])
    with pytest.raises(IndexError, match="no feature 1; there are 1"):
        features.names([1])
    with pytest.raises(ValueError, match="no names"):
        TextFeatures("U:%x[0,0]", hashing=5).fit([["a"]]).names()


def test_memory_is_linear_in_tokens():
    random = np.random.default_rng(0)
    words = [f"w{k}" for k in random.zipf(1.3, size=20_000) % 5000]
    sentences = [[(w, w[:2]) for w in words[i : i + 20]] for i in range(0, len(words), 20)]
    features = TextFeatures(
        [Window(0, bigrams=(-1, 0)), Window(1, trigrams=(-1, 0)), Window(0, (0,), of=CharNGrams(3))]
    )
    features.fit(sentences[:10])  # compiled by now
    peaks = []
    for n in (len(sentences) // 4, len(sentences)):
        tokens = Tokens.of(sentences[:n])
        tracemalloc.start()
        X = features.fit_transform(tokens)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert peaks[-1] < 64 * X.sparse.nnz + 2_000_000  # bytes: ids, tables half full at worst, room to grow
    assert peaks[1] < 4 * 2.2 * peaks[0]  # tables grow by doubling


@pytest.mark.parametrize(
    "template",
    [
        "U0:%x[0,0]\nU1:%x[-2,0]/%x[1,1]\nU2:%x[0,0]/%x[1,0]/%x[-1,1]/%x[0,1]\nU3:bias\n",
        'U0:%x[0,0]\nU1:%t[1,0,"^\\u"]/%x[0,0]\nB0:%x[-1,0]/%x[0,0]\nB1:%x[0,1]\n*:%x[2,1]\n',
        "U0:%x[0,0]\nU1:%x[-2,0]/%x[-1,0]/%x[0,0]/%x[1,0]/%x[2,0]\n",  # more values than are joined in one call
        [Window(0, of=Shape()), Window(0, (0,), of=CharNGrams(2)), Ends()],
        [Window(0, bigrams=(-1, 0), outside="drop"), Ends(), Window(0, of=Gazetteer("g", ["a b", "B"]))],
    ],
    ids=["tuples", "edges", "long tuples", "lists", "phrases"],
)
@pytest.mark.parametrize("hashing", [None, 97])
def test_few_sentences_are_numbered_as_many(template, hashing):
    rng = np.random.default_rng(0)
    words = np.array(["a", "b", "B", "Cd", "e7", "", "_B-1"])
    sentences = [[tuple(map(str, rng.choice(words, 2))) for _ in range(n)] for n in rng.integers(0, 9, 300)]
    features = TextFeatures(template, hashing=hashing).fit(sentences[:20])
    many = features.transform(sentences)
    assert many.n_tokens > 5 * MOST_LOOKED_UP
    for i, sentence in enumerate(sentences):
        for kind, few in features.transform([sentence]).__dict__.items():
            if few is not None and kind != "offsets":
                block = getattr(many, kind)[many.offsets[i] : many.offsets[i + 1]]
                for name in ("indptr", "indices", "data", "shape"):
                    assert np.array_equal(getattr(few, name), getattr(block, name))
