"""The ARFF reader: against SciPy's on dense files, sparse equals dense, labels as MEKA, Mulan and Clus have them."""

from __future__ import annotations

import gzip
import lzma

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.io import arff as scipy_arff

from maxmargin.datasets import read_arff

HEADER = """% two labels in front, as MEKA writes them
@relation 'Toy: -C 2'

@attribute sport {0,1}
@attribute 'good news' {0,1}
@ATTRIBUTE "it's 5%" NUMERIC   % with a comment behind it
@attribute colour {red, 'light blue', "50%"}
@attribute flag {1,0}
@attribute on {0,1}
@data
"""
ROWS = """1,0, 1.5 ,red,1,0
0,1,-2e-3,'light blue',0,1 % here too

% and here
1,1,?,"50%",?,?
"""


def rows_of(text, *more, **options):
    return read_arff(text.splitlines(keepends=True), *more, **options)


def test_dense():
    data = rows_of(HEADER + ROWS)
    assert data.label_names == ["sport", "good news"] and data.hierarchy is None
    np.testing.assert_array_equal(data.Y, [[1, 0], [0, 1], [1, 1]])
    assert data.feature_names == [
        "it's 5%", "colour=red", "colour=light blue", "colour=50%", "flag=1", "flag=0", "on",
    ]  # fmt: skip
    nan = np.nan
    expected = [[1.5, 1, 0, 0, 1, 0, 0], [-0.002, 0, 1, 0, 0, 1, 1], [nan, 0, 0, 1, nan, nan, nan]]
    np.testing.assert_array_equal(data.X, expected)
    assert list(data.lines) == [11, 12, 15] and len(data) == 3
    assert data.sets() == [{"sport"}, {"good news"}, {"sport", "good news"}]


def test_as_scipy_reads_it(tmp_path):
    rng = np.random.default_rng(0)
    kinds = ["a", "b c", "d"]
    numbers, codes = rng.normal(size=(40, 3)), rng.integers(3, size=40)
    labels = rng.integers(2, size=(40, 2))
    lines = ["@relation r", *(f"@attribute n{j} real" for j in range(3)), "@attribute kind {a,'b c',d}"]
    lines += ["@attribute l0 {0,1}", "@attribute l1 {0,1}", "@data"]
    for x, code, y in zip(numbers, codes, labels, strict=True):
        fields = [*map(repr, x.tolist()), repr(kinds[code]), *map(str, y)]
        lines.append(",".join(fields))
    path = tmp_path / "r.arff"
    path.write_text("\n".join(lines))
    theirs, _ = scipy_arff.loadarff(path)
    ours = read_arff(path, -2)
    np.testing.assert_array_equal(ours.X[:, :3], np.column_stack([theirs[f"n{j}"] for j in range(3)]))
    kind = np.array([value.decode().strip("'") for value in theirs["kind"]])
    np.testing.assert_array_equal(ours.X[:, 3:], kind[:, None] == np.array(kinds))
    np.testing.assert_array_equal(ours.Y, np.column_stack([theirs[f"l{k}"] for k in range(2)]).astype(int))


@pytest.mark.parametrize("seed", range(5))
def test_sparse_equals_dense(seed):
    """Attributes that a line does not name are 0 or have their first value."""
    rng = np.random.default_rng(seed)
    header = ["@relation r", "@attribute kind {a,b,'c d'}", "@attribute y {0,1}"]
    header += [f"@attribute x{j} numeric" for j in range(6)] + ["@attribute z {0,1}", "@data"]
    dense, sparse = list(header), list(header)
    for _ in range(20):
        codes = rng.integers(3), rng.integers(2), rng.integers(2)
        x = np.where(rng.random(6) < 0.5, 0.0, np.round(rng.normal(size=6), 3))
        texts = [["a", "b", "'c d'"][codes[0]], str(codes[1]), *map(repr, x.tolist()), str(codes[2])]
        if rng.random() < 0.2:
            texts[3] = "?"
        dense.append(",".join(texts))
        kept = [f"{j} {text}" for j, text in enumerate(texts) if text not in ("a", "0", "0.0", "-0.0")]
        sparse.append("{" + ", ".join(kept) + "}")
    one, two = (rows_of("\n".join(lines), ["y", "z"]) for lines in (dense, sparse))
    assert isinstance(two.X, sp.csr_array) and one.feature_names == two.feature_names
    np.testing.assert_array_equal(one.X, two.X.toarray())
    np.testing.assert_array_equal(one.Y, two.Y)


def test_which_attributes_are_labels(tmp_path):
    text = HEADER.replace(": -C 2", "") + ROWS.replace("?", "1")
    with pytest.raises(ValueError, match="does not say which attributes are labels"):
        rows_of(text)
    assert rows_of(text, 2).label_names == ["sport", "good news"]
    assert rows_of(text, -2).label_names == ["flag", "on"]
    assert rows_of(text, -2).Y.tolist() == [[1, 0], [0, 1], [1, 1]]  # flag has the values {1,0}
    assert rows_of(text, ["on", "sport"]).Y.tolist() == [[0, 1], [1, 0], [1, 1]]
    with pytest.raises(ValueError, match="the label 'colour' must have the values"):
        rows_of(text, ["colour"])
    assert rows_of(text, ()).Y.shape == (3, 0)
    labels = tmp_path / "labels.xml"
    labels.write_text(
        '<?xml version="1.0"?>\n<labels xmlns="http://mulan.sourceforge.net/labels">\n<!-- two -->'
        '<label name="on"><label name="sport"></label></label><label name="good news"/></labels>'
    )
    data = rows_of(text, labels)
    assert data.label_names == ["on", "sport", "good news"] and data.hierarchy == [("on", "sport")]
    assert data.Y.tolist() == [[1, 1, 0], [1, 0, 1], [1, 1, 1]]  # closed upwards


CLUS = """@RELATION clus
@ATTRIBUTE x numeric
@ATTRIBUTE class hierarchical 1,1/2,1/2/9,3/1
@DATA
0.5,1/2/9@3/1 % gene A
1,1
2,
"""


def test_tree_of_clus():
    data = rows_of(CLUS)
    assert data.label_names == ["1", "1/2", "1/2/9", "3", "3/1"]
    assert data.hierarchy == [("1", "1/2"), ("1/2", "1/2/9"), ("3", "3/1")]
    assert data.Y.tolist() == [[1, 1, 1, 1, 1], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    sparse = CLUS.replace("0.5,1/2/9@3/1", "{0 0.5, 1 1/2/9@3/1}").replace("1,1\n2,", "{0 1,1 1}\n{0 2}")
    assert rows_of(sparse).Y.tolist() == data.Y.tolist()


def test_graph_of_clus():
    """Pairs of parent and child, one of them below the root: a directed acyclic graph."""
    declared = "root/a,root/b,a/c,b/c,c/d"
    data = rows_of(CLUS.replace("1,1/2,1/2/9,3/1", declared).replace("1/2/9@3/1", "d").replace("1,1\n", "1,c@b\n"))
    assert data.label_names == ["a", "b", "c", "d"]
    assert data.hierarchy == [("a", "c"), ("b", "c"), ("c", "d")]
    assert data.Y.tolist() == [[1, 1, 1, 1], [1, 1, 1, 0], [0, 0, 0, 0]]


def test_chosen_features():
    text = HEADER + ROWS
    data = rows_of(text, features=["on", "colour=50%", "it's 5%"])
    assert data.feature_names == ["on", "colour=50%", "it's 5%"]
    np.testing.assert_array_equal(data.X, [[0, 0, 1.5], [1, 0, -0.002], [np.nan, 1, np.nan]])
    named = text.replace("@attribute flag {1,0}", "@attribute flag string")
    with pytest.raises(ValueError, match="line 8: 'flag' is of type 'string'"):
        rows_of(named)
    assert "flag=1" not in rows_of(named, skip=["flag"]).feature_names
    assert rows_of(named, (), features=["on"]).X.shape == (3, 1)
    unlabelled = text.replace("1,1,?", "?,?,?")
    assert rows_of(unlabelled, (), features=["on"]).X.shape == (3, 1)
    assert rows_of(CLUS.replace("1/2/9@3/1", "?"), ()).Y.shape == (3, 0)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_archives(pack, tmp_path):
    path = tmp_path / f"toy.arff.{'gz' if pack is gzip.compress else 'xz'}"
    path.write_bytes(pack((HEADER + ROWS).encode()))
    np.testing.assert_array_equal(read_arff(path).Y, rows_of(HEADER + ROWS).Y)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="damaged archive"):
        read_arff(path)


WRONG = {
    "short": (HEADER + "1,0,1\n", "line 11: 3 values for 6 attributes"),
    "long": (HEADER + "1,0,1,red,1,0,7\n", "line 11: 7 values for 6 attributes"),
    "word": (HEADER + "1,0,word,red,1,0\n", "line 11, attribute \"it's 5%\": 'word' is no finite number"),
    "infinite": (HEADER + "1,0,inf,red,1,0\n", "'inf' is no finite number"),
    "underscore": (HEADER + "1,0,1_0,red,1,0\n", "'1_0' is no finite number"),
    "value": (HEADER + "1,0,1,green,1,0\n", "line 11: 'colour' is 'green', and its values are red, light blue, 50%"),
    "quote": (HEADER + "1,0,1,'red,1,0\n", "line 11: a quote in .* is not closed"),
    "label": (HEADER + "1,?,1,red,1,0\n", "line 11: 'good news' is [?]; write 0 or 1"),
    "mixed": (HEADER + "1,0,1,red,1,0\n{1 1}\n", "line 12: .* is not in the form of the lines before"),
    "brace": (HEADER + "{1 1\n", "line 11: .* is not in the form"),
    "index": (HEADER + "{6 1}\n", "line 11: '6 1' is no index from 0 to 5 and a value"),
    "negative": (HEADER + "{-1 1}\n", "no index from 0 to 5"),
    "twice": (HEADER + "{1 1, 1 0}\n", "line 11: an index is there twice"),
    "no value": (HEADER + "{1}\n", "no index from 0 to 5 and a value"),
    "no data": (HEADER.replace("@data", ""), "no line @data"),
    "no rows": (HEADER, "has no examples"),
    "no attributes": ("@relation a\n@data\n1\n", "line 2: there are no attributes before @data"),
    "same name": ("@relation a\n@attribute a real\n@attribute a real\n", "line 3: the attribute 'a' is there twice"),
    "no type": ("@relation a\n@attribute a\n", "line 2: '@attribute a' is no attribute"),
    "same value": ("@relation a\n@attribute a {x,x}\n", "line 2: the attribute 'a' has a value twice"),
    "not ARFF": ("a,b\n1,2\n", "line 1: 'a,b' is no part of the header"),
    "too many": (HEADER.replace("-C 2", "-C 7") + ROWS, "7 columns of labels are wanted, and 6 are there"),
    "numbers": (HEADER.replace("-C 2", "-C 3") + ROWS, "line 11: \"it's 5%\" is 1.5; write 0 or 1"),
    "path": (CLUS.replace("3/1 %", "3/2 %"), "line 5: the label '3/2' is not among those"),
    "bad path": (CLUS.replace("3/1\n", "3//1\n"), "line 3: '3//1' is no path of labels"),
    "missing path": (CLUS.replace("2,\n", "2,?\n"), "line 7: the labels are missing"),
    "zeros": ("@relation a\n\0", "NUL"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_malformed(case):
    text, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        rows_of(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<labels>", "line 1: not XML"),
        ("<labels/>", "has no labels"),
        ('<labels><label name="a"/><label name="a"/></labels>', "that of another one"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><labels/>', "declares entities"),
    ],
)
def test_malformed_label_files(text, message, tmp_path):
    (tmp_path / "l.xml").write_text(text)
    with pytest.raises(ValueError, match=message):
        rows_of(HEADER + ROWS, tmp_path / "l.xml")


@pytest.mark.parametrize("seed", range(30))
def test_damaged_files_are_errors_and_nothing_else(seed):
    """Bytes cut out, doubled or replaced: an answer of the right shapes, or a ValueError that names the place."""
    rng = np.random.default_rng(seed)
    whole = (HEADER + ROWS if seed % 2 else CLUS).encode()
    for _ in range(40):
        a, b = sorted(rng.integers(len(whole), size=2))
        damage = [b"", whole[a : a + 3] * 2, bytes(rng.integers(256, size=3, dtype=np.uint8))][rng.integers(3)]
        text = whole[:a] + damage + whole[min(b, a + 6) :]
        try:
            data = read_arff(text.splitlines(keepends=True))
        except ValueError as error:
            assert str(error).startswith("<stream>")
        else:
            assert data.X.shape == (len(data), len(data.feature_names))
            assert data.Y.shape == (len(data), len(data.label_names))
