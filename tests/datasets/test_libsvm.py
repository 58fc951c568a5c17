"""The LIBSVM reader: against scikit-learn's on its own files, odd lines, and errors that name the line."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from maxmargin.datasets import read_libsvm


def read(text, **options):
    return read_libsvm(text.splitlines(keepends=True), **options)


@pytest.mark.parametrize("zero_based", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_files_of_scikit_learn(seed, zero_based, tmp_path):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((30, 6)) < 0.5, 0.0, np.round(rng.normal(size=(30, 6)), 3))
    Y = rng.integers(2, size=(30, 4))
    X[0], Y[0] = 1.0, 1  # all features and labels occur
    path = tmp_path / "data.svm"
    dump_svmlight_file(X, Y, str(path), zero_based=zero_based, multilabel=True)
    data = read_libsvm(path)
    theirs, sets = load_svmlight_file(str(path), multilabel=True, zero_based=zero_based)
    np.testing.assert_array_equal(data.X.toarray(), theirs.toarray())
    np.testing.assert_array_equal(data.X.toarray(), X)
    np.testing.assert_array_equal(data.Y, Y)
    assert data.label_names == ["0", "1", "2", "3"]
    assert data.sets() == [{str(int(label)) for label in labels} for labels in sets]
    path.with_suffix(".gz").write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_array_equal(read_libsvm(path.with_suffix(".gz")).X.toarray(), X)


def test_odd_lines():
    data = read("10,2 1:0.5 3:1e-2 # a comment\n\n# only a comment\n 2:1\n3:? qid:7\n2\n")
    assert data.label_names == ["2", "10"] and list(data.lines) == [1, 4, 5, 6]
    np.testing.assert_array_equal(data.X.toarray(), [[0.5, 0, 0.01], [0, 1, 0], [0, 0, np.nan], [0, 0, 0]])
    assert data.Y.tolist() == [[1, 1], [0, 0], [0, 0], [1, 0]]
    assert data.feature_names == ["x1", "x2", "x3"]
    named = read("news,art 0:1\n", n_features=4, label_names=["art", "film", "news"])
    assert named.X.shape == (1, 4) and named.Y.tolist() == [[1, 0, 1]] and named.feature_names[0] == "x0"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("1 1:1\n1 2:x\n", {}, "line 2: 'x' is no finite number"),
        ("1 1:1\n1 2:inf\n", {}, "line 2: 'inf' is no finite number"),
        ("1 1:1\n1 b:1\n", {}, "line 2: 'b:1' is not index:value"),
        ("1 1:\n", {}, "line 1: '1:' is not index:value"),
        ("1 -1:2\n", {}, "line 1: '-1:2' is not index:value"),
        ("1 9999999999:2\n", {}, "is not index:value"),
        ("1 word\n", {}, "line 1: 'word' is not index:value"),
        ("1,,2 1:1\n", {}, "line 1: '1,,2' is no list of labels"),
        ("1,1 1:1\n", {}, "line 1: '1,1' is no list of labels"),
        ("1 1:1 1:2\n", {}, "line 1: a feature is there twice"),
        ("1 1:1\n\n2 7:1\n", {"n_features": 5}, "line 3: there is no feature 7; their numbers are 1 to 5"),
        ("1 1:1\n2 0:1\n", {"zero_based": False}, "line 2: there is no feature 0"),
        ("1 1:1\n3 1:1\n", {"label_names": ["1", "2"]}, "line 2: the label '3' is not among the 2 known ones"),
        ("# nothing\n", {}, "has no examples"),
    ],
)
def test_malformed(text, options, message):
    with pytest.raises(ValueError, match=message):
        read(text, **options)


@pytest.mark.parametrize("seed", range(10))
def test_damaged_files_are_errors_and_nothing_else(seed):
    """Bytes cut out, doubled or replaced: an answer of the right shapes, or a ValueError."""
    rng, whole = np.random.default_rng(seed), b"1,2 1:0.5 3:1e-2 # c\n\n 2:1\n3 1:? qid:7\n2\n" * 2
    for _ in range(60):
        a = int(rng.integers(len(whole)))
        damage = [b"", whole[a : a + 3] * 2, bytes(rng.integers(256, size=2, dtype=np.uint8))][rng.integers(3)]
        try:
            data = read_libsvm((whole[:a] + damage + whole[a + int(rng.integers(5)) :]).splitlines(keepends=True))
        except ValueError as error:
            assert str(error).startswith("<stream>")
        else:
            assert data.X.shape == (len(data), len(data.feature_names))
            assert data.Y.shape == (len(data), len(data.label_names))
