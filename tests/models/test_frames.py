"""Frames: the same columns and codes from every form they come in; odd columns."""

import numpy as np
import pandas as pd
import pytest

from maxmargin.models.frames import encode_column, learn_states, missing, read_frame
from maxmargin.models.labels import Labels


def test_all_forms_give_the_same_columns():
    columns = {"a": [1, 2, None], "b": ["x", "y", "x"]}
    rows = [{"a": 1, "b": "x"}, {"b": "y", "a": 2}, {"b": "x"}]
    for X in (columns, rows, {"a": np.array([1, 2, None], object), "b": pd.Series(["x", "y", "x"])}):
        frame = read_frame(X)
        assert frame.columns == columns and frame.n_rows == 3 and frame.index is None
    frame = read_frame(pd.DataFrame(columns, index=[5, 6, 7], dtype=object))
    assert frame.columns["b"] == columns["b"] and list(frame.index) == [5, 6, 7]
    assert read_frame(np.array([[1, 2], [3, 4]])).columns == {"x0": [1, 3], "x1": [2, 4]}
    assert read_frame({}).n_rows == 0 and read_frame([]).columns == {}


def test_answers_come_in_the_form_of_the_question():
    assert read_frame({"a": [1]}).like({"b": [2]}) == {"b": [2]}
    answer = read_frame(pd.DataFrame({"a": [1]}, index=["row"])).like({"b": [2]})
    assert answer.loc["row", "b"] == 2


def test_missing_values_of_all_kinds():
    nothing = [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT]
    assert all(map(missing, nothing)) and not any(map(missing, [0, "", "nan", False, ()]))
    values = ["b", *nothing, "a"]
    labels = learn_states(values, "v")
    assert labels.classes == ["a", "b"]
    assert encode_column(values, labels, "v", "error").tolist() == [1, -1, -1, -1, -1, -1, 0]


def test_numbers_that_are_categories_and_numbers_that_are_not():
    assert learn_states([1.0, 2.0, float("nan")], "v").classes == [1.0, 2.0]
    assert learn_states([True, False], "v").classes == [False, True]
    with pytest.raises(ValueError, match=r"'v' has the value 0.5 in example 1, which looks continuous"):
        learn_states([1.0, 0.5], "v")
    with pytest.raises(ValueError, match="no value at all"):
        learn_states([None, None], "v")


def test_values_that_are_not_known():
    labels = Labels(["a", "b"])
    with pytest.raises(ValueError, match="example 1 has the value 'c' in column 'v', which is not among its states"):
        encode_column(["a", "c"], labels, "v", "error")
    assert encode_column(["a", "c"], labels, "v", "missing").tolist() == [0, -1]
    with pytest.raises(TypeError, match="example 1, column 'v'"):
        encode_column(["a", ["b"]], labels, "v", "error")


def test_columns_put_in():
    frame = read_frame({"a": [1, 2]})
    assert frame.with_column("b", [3, 4]).columns == {"a": [1, 2], "b": [3, 4]} and "b" not in frame.columns
    with pytest.raises(ValueError, match="'b' has 1 values and the frame 2 rows"):
        frame.with_column("b", [3])


def test_categories_keep_values_that_do_not_occur():
    frame = read_frame(pd.DataFrame({"a": pd.Categorical(["x"], categories=["y", "x"])}))
    assert frame.categories == {"a": ["y", "x"]}
    assert frame.with_column("a", ["z"]).categories == {}
