"""The reader of tables with labels: against pandas, columns of 0 and 1 or of names, and errors that name the line."""

from __future__ import annotations

import lzma

import numpy as np
import pytest

from maxmargin.datasets import read_label_csv


def read(text, *more, **options):
    return read_label_csv(text.splitlines(keepends=True), *more, **options)


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_tables_of_pandas(separator, tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, 3)), columns=["a", "b, with comma", 'c "quoted"'])
    frame.iloc[3, 1] = np.nan
    labels = pd.DataFrame(rng.integers(2, size=(20, 2)), columns=["art", "new\nline"])
    path = tmp_path / "table.csv"
    pd.concat([frame, labels], axis=1).to_csv(path, index=False, sep=separator)
    for wanted in (-2, list(labels.columns)):
        data = read_label_csv(path, wanted, separator=separator)
        np.testing.assert_array_equal(data.X, frame.to_numpy())
        np.testing.assert_array_equal(data.Y, labels.to_numpy())
        assert (data.feature_names, data.label_names) == (list(frame.columns), list(labels.columns))
    again = pd.read_csv(path, sep=separator)
    assert data.lines[0] == 3 and len(data) == len(again)  # a name has two lines
    packed = tmp_path / "table.csv.xz"
    packed.write_bytes(lzma.compress(path.read_bytes()))
    np.testing.assert_array_equal(read_label_csv(packed, -2, separator=separator).X, frame.to_numpy())


def test_names_of_labels_in_a_column():
    text = 'id,x,tags\nfirst,1,art; news\nsecond,,\nthird,?,"film"\n'
    data = read(text, "tags", label_separator=";", skip=["id"])
    assert data.label_names == ["art", "film", "news"] and data.feature_names == ["x"]
    assert data.Y.tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    np.testing.assert_array_equal(data.X, [[1], [np.nan], [np.nan]])
    assert read(text, ["tags"], label_separator=";", skip=["id"], label_names=["film", "news", "art"]).Y[0, 2] == 1
    without = read(text, (), features=["x"])  # at prediction: other columns are nobody's business
    assert without.Y.shape == (3, 0) and without.X.shape == (3, 1)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,y\n1,0\n2\n", {}, "line 3: 1 columns, but line 1 has 2"),
        ("a,y\n1,0\nx,1\n", {}, "line 3, column 'a': 'x' is no finite number"),
        ("a,y\n1e999,0\n", {}, "is no finite number"),
        ("a,y\n1,2\n", {}, "line 2: a column of labels has '2'"),
        ("a,y\n1,\n", {}, "line 2: a column of labels has ''"),
        ('a,y\n"1,0\n', {}, "line 2: .*; correct the quotes"),
        ("a,a,y\n1,1,0\n", {}, "line 1: give each column a name of its own"),
        ("a,b\n1,1\n", {}, "line 1: there is no column 'y'"),
        ("a,y\n", {}, "has no examples"),
        ("", {}, "there is no column 'y'"),
        ("a,y\n1,u;v\n2,w\n", {"label_separator": ";", "label_names": ["u", "v"]}, "line 3: the label 'w'"),
        ("a,y\n1,0\n", {"separator": "::"}, "separator must be one character"),
        ("a,y\n1,0\n", {"features": ["b"]}, "there is no column 'b'"),
    ],
)
def test_malformed(text, options, message):
    with pytest.raises(ValueError, match=message):
        read(text, ["y"], **options)


def test_number_of_columns():
    with pytest.raises(ValueError, match="3 columns of labels are wanted, and 2 are there"):
        read("a,y\n1,0\n", 3)
    assert read("y,a\n1,0.5\n", 1).Y.tolist() == [[1]]
