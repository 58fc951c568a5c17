"""The largest feature is named by its group and column where a layout has names, and by its weight elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.estimators.largest_feature import largest_feature
from maxmargin.models.user import PythonModel
from reference.own_models import Signs


@pytest.mark.parametrize(
    ("model", "Y", "name"),
    [
        (mm.Multiclass(classes=["a", "b"]), ["a", "b"], "column 2 of coef"),
        (mm.LabelSet(), [["a"], ["b"]], "column 2 of coef"),
    ],
    ids=["classes", "sets"],
)
def test_by_group_and_column(model, Y, name):
    X = np.ones((2, 4))
    X[1, 2] = 1e6
    assert largest_feature(model.bind(X, Y)) == f"1e+06, {name}"


def test_by_group_of_sequences():
    X = [np.ones((3, 4)), np.ones((2, 4))]
    X[1][0, 3] = -5e4
    assert largest_feature(mm.Chain().bind(X, [["a", "b", "a"], ["b", "a"]])) == "5e+04, column 3 of dense"


def test_by_weight_where_there_are_no_names():
    assert largest_feature(PythonModel(Signs()).bind([1.0, -3.0], [1, -1])) == "6, of weight 0"


def test_of_nothing():
    assert largest_feature(mm.Multiclass(classes=["a", "b"]).bind(np.zeros((2, 3)), ["a", "b"])) == "unknown"
