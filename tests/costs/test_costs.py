"""Cost tables, their checks, and their life as parameters of an estimator."""

import numpy as np
import pytest
from sklearn.base import clone

from maxmargin.costs import (
    Cost,
    FunctionCost,
    HammingCost,
    MatrixCost,
    WeightedHammingCost,
    as_cost,
    is_integral,
)

MATRIX = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 0.5, 0.0]])


def distance(true, label):
    return abs(true - label)


def test_hamming_counts_wrong_labels():
    table = HammingCost().table(["a", "b", "c"])
    y_true, y = np.array([0, 1, 2, 2]), np.array([0, 2, 2, 1])
    assert table[y_true, y].sum() == np.count_nonzero(y_true != y)
    assert table.dtype == np.float64
    assert HammingCost().table(["only"]).tolist() == [[0.0]]
    assert HammingCost().table([]).shape == (0, 0)


def test_weighted_by_true_label_and_by_label():
    weights = {"a": 3.0, "b": 0.0}
    by_true = WeightedHammingCost(weights).table(["a", "b", "c"])
    assert by_true.tolist() == [[0, 3, 3], [0, 0, 0], [1, 1, 0]]
    assert WeightedHammingCost(weights, by="label").table(["a", "b", "c"]).tolist() == by_true.T.tolist()


def test_weighted_names_the_slip():
    with pytest.raises(ValueError, match=r"'B'.*not a class.*leave out the class 'b'"):
        WeightedHammingCost({"a": 1.0, "B": 2.0}).table(["a", "b"])
    # All classes weighted, one weight to spare: a subset of the data, not a slip.
    assert WeightedHammingCost({"a": 1.0, "b": 2.0, "c": 3.0}).table(["a", "b"]).tolist() == [[0, 1], [2, 0]]
    with pytest.raises(ValueError, match=r"-2\.0 on label 'b' where 'a' is true"):
        WeightedHammingCost({"a": -2.0}).table(["a", "b"])
    with pytest.raises(ValueError, match="by is 'row'"):
        WeightedHammingCost({}, by="row").table(["a"])
    with pytest.raises(TypeError, match="mapping"):
        WeightedHammingCost([1.0]).table(["a"])


def test_matrix_is_reordered_by_its_labels():
    cost = MatrixCost(MATRIX, labels=["z", "x", "y"])
    assert cost.table(["x", "y", "z"]).tolist() == [[0.0, 1.0, 2.0], [0.5, 0.0, 3.0], [1.0, 4.0, 0.0]]
    assert cost.table(["y", "z"]).tolist() == [[0.0, 3.0], [4.0, 0.0]]
    table = MatrixCost(MATRIX).table([0, 1, 2])
    table[0, 1] = 77.0
    assert MATRIX[0, 1] == 1.0


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (MatrixCost(MATRIX[:2]), r"shape \(2, 3\)"),
        (MatrixCost(MATRIX[:2, :2]), "2 rows for 3 classes"),
        (MatrixCost(MATRIX, labels=["a", "b"]), "3 rows and 2 labels"),
        (MatrixCost(MATRIX, labels=["a", "b", "b"]), "3 rows and 2 labels"),
        (MatrixCost(MATRIX, labels=["a", "b", "d"]), "class 'c' is not among"),
        (MatrixCost(np.ones((3, 3))), "1.0 on label 'a' where 'a' is true; .*must be 0"),
        (MatrixCost(MATRIX - 1.5 * (np.arange(9) == 5).reshape(3, 3)), "-0.5 on label 'c' where 'b' is true"),
        (MatrixCost(np.where(MATRIX == 4.0, np.nan, MATRIX)), "nan on label 'c' where 'a' is true"),
        (MatrixCost(np.where(MATRIX == 4.0, np.inf, MATRIX)), "inf on label 'c' where 'a' is true"),
        (FunctionCost(lambda true, label: None), "returned None for label 'a'"),
        (FunctionCost(lambda true, label: 1.0), "must be 0"),
    ],
)
def test_wrong_costs_are_named(cost, message):
    with pytest.raises(ValueError, match=message):
        cost.table(["a", "b", "c"])


def test_classes_must_be_distinct():
    with pytest.raises(ValueError, match="'b' appears twice"):
        HammingCost().table(["a", "b", "b"])


def test_function_is_tabulated():
    assert FunctionCost(distance).table([1, 4, 9]).tolist() == [[0, 3, 8], [3, 0, 5], [8, 5, 0]]
    asymmetric = FunctionCost(lambda true, label: 2.0 * (true > label) + 1.0 * (true < label))
    assert asymmetric.table([0, 1]).tolist() == [[0.0, 1.0], [2.0, 0.0]]


def test_integral():
    assert is_integral([[0.0, 3.0], [2.0, 0.0]])
    assert not is_integral(MATRIX)
    assert not is_integral([np.inf])
    assert not is_integral([np.nan])
    assert is_integral(FunctionCost(distance).table([1, 4]))


@pytest.mark.parametrize(
    "cost",
    [
        HammingCost(normalize=True),
        WeightedHammingCost({"a": 2.0}, by="label"),
        MatrixCost(MATRIX, labels=("a", "b", "c")),
        FunctionCost(distance),
    ],
)
def test_parameter_citizens(cost):
    copy = clone(cost)
    assert type(copy) is type(cost)
    assert copy is not cost
    assert copy.get_params().keys() == cost.get_params().keys()
    assert copy.set_params(normalize=True) is copy
    assert copy.normalize
    with pytest.raises(ValueError, match="no parameter 'weight'"):
        copy.set_params(weight=1)
    assert repr(cost).startswith(type(cost).__name__ + "(")


def test_repr_shows_what_differs_from_the_default():
    assert repr(HammingCost()) == "HammingCost()"
    assert repr(HammingCost(normalize=True)) == "HammingCost(normalize=True)"
    assert repr(WeightedHammingCost({"a": 2.0})) == "WeightedHammingCost(weights={'a': 2.0})"
    assert repr(MatrixCost(MATRIX)) == "MatrixCost(matrix=<array of shape (3, 3)>)"


def test_as_cost():
    assert isinstance(as_cost("hamming"), HammingCost)
    assert as_cost(MATRIX).table([0, 1, 2]).tolist() == MATRIX.tolist()
    assert as_cost(MATRIX.tolist()).table([0, 1, 2]).tolist() == MATRIX.tolist()
    assert as_cost({"a": 5.0}).table(["a", "b"]).tolist() == [[0.0, 5.0], [1.0, 0.0]]
    assert isinstance(as_cost(distance), FunctionCost)
    own = HammingCost(normalize=True)
    assert as_cost(own) is own
    with pytest.raises(ValueError, match="'haming' is not known; use 'hamming'"):
        as_cost("haming")
    with pytest.raises(TypeError, match=r"HammingCost\(\.\.\.\)"):
        as_cost(HammingCost)
    with pytest.raises(TypeError, match="NoneType"):
        as_cost(None)


def test_a_cost_must_say_how_it_fills_its_table():
    with pytest.raises(TypeError, match="abstract"):
        Cost()
