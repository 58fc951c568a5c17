"""A user's model in plain Python: forms of joint features, planes, and every slip stopped by name."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.models.multiclass import Multiclass
from maxmargin.models.user import PythonModel, sparse_vector

from .batches import decode, planes

K, F = 3, 4


class Classes:
    """Multiclass by enumeration; ``form`` chooses how joint features are written."""

    def __init__(self, form="dense"):
        self.form = form

    def n_weights(self, X, Y):
        return F * K

    def joint_features(self, x, y):
        indices = np.arange(F) * K + y
        if self.form == "dict":
            return dict(zip(indices.tolist(), x.tolist(), strict=True))
        if self.form == "pair":
            return indices, x
        phi = np.zeros(F * K)
        phi[indices] = x
        return {"dense": phi, "row": sp.csr_matrix(phi), "list": phi.tolist()}.get(self.form, sp.coo_array(phi))

    def cost(self, y_true, y):
        return float(y_true != y)

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        scores = x @ w.reshape(F, K)
        if y_true is not None:
            scores = scores + cost_weight * (np.arange(K) != y_true)
        return int(np.argmax(scores))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(7, F)), rng.integers(0, K, 7)


@pytest.mark.parametrize("form", ["dense", "list", "dict", "pair", "row", "vector"])
@pytest.mark.parametrize("cost_weight", [0.0, 1.0, -0.7, 4.0])
def test_same_planes_as_the_compiled_model(data, form, cost_weight):
    X, Y = data
    bound = PythonModel(Classes(form)).bind(X, Y)
    compiled = Multiclass(classes=range(K)).bind(X, Y)
    w = np.random.default_rng(1).normal(size=F * K)
    rows, _ = planes(compiled, w, range(7), cost_weight)
    for i, row in enumerate(rows):
        longer = np.append(w, [1e9, 1e9])  # what follows is not the model's
        indices, values, cost, value, limit, _ = bound.answer(longer, i, cost_weight)
        a = np.zeros(F * K)
        a[indices] = values
        np.testing.assert_allclose(a, row.a, atol=1e-12)
        assert indices.dtype == np.int32 and (np.diff(indices) > 0).all()
        assert cost_weight * cost == row.b
        assert value == pytest.approx(row.bound, abs=1e-12)
        assert limit >= value and limit == pytest.approx(row.bound, abs=1e-12)
    assert list(replace(bound, Y=None).argmax(longer).outputs) == [
        int(y[0]) for y in decode(compiled, w, range(7), 0.0)[0]
    ]


def test_layout_binds_further_data_without_outputs(data):
    X, Y = data
    layout = PythonModel(Classes()).bind(X, Y).layout
    later = PythonModel(Classes()).bind(sp.csr_array(X), layout=layout)
    assert (later.n_examples, later.n_weights) == (7, F * K)
    with pytest.raises(ValueError, match="bound without outputs"):
        later.answer(np.zeros(F * K), 0, 1.0)


def test_can_be_pickled(data):
    bound = PythonModel(Classes()).bind(*data)
    w = np.linspace(-1, 1, F * K)
    expected = bound.answer(w, 3, 1.0)
    found = pickle.loads(pickle.dumps(bound)).answer(w, 3, 1.0)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_approximate_argmax_has_no_bound(data):
    class Rough(Classes):
        exact = False

    bound = PythonModel(Rough()).bind(*data)
    assert "exact" not in bound.capabilities
    assert bound.answer(np.ones(F * K), 0, 1.0).bound == np.inf
    assert "exact" in PythonModel(Classes()).bind(*data).capabilities


def test_only_a_rough_prediction_may_end_below_the_truth(data):
    class Zero(Classes):
        exact = False

        def argmax(self, x, w, y_true=None, cost_weight=0.0):
            return 0

    X, Y = data
    w = np.zeros((F, K))
    w[:, Y[2]] = 10 * X[2]
    assert Y[2] != 0
    bound = PythonModel(Zero()).bind(X, Y)
    _, _, _, value, limit, _ = bound.answer(w.ravel(), 2, 0.0)
    assert value == pytest.approx(-10 * X[2] @ X[2]) and limit == np.inf
    with pytest.raises(ValueError, match="example 2: argmax returned an output that scores below the true one"):
        bound.answer(w.ravel(), 2, 1.0)


def test_generators_are_kept_as_lists(data):
    X, Y = data
    bound = PythonModel(Classes()).bind((x for x in X), (y for y in Y))
    assert bound.n_examples == 7


def broken(**functions):
    return type("Broken", (Classes,), functions)()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            broken(cost=lambda self, a, b: -1.0 if a != b else 0.0),
            "example 2: cost returned -1.0; costs must be finite",
        ),
        (broken(cost=lambda self, a, b: np.nan), "example 2: cost returned nan"),
        (broken(cost=lambda self, a, b: "far"), "example 2: cost returned 'far'; it must return a number"),
        (broken(cost=lambda self, a, b: 1.0), r"example 2: cost\(y_true, y_true\) is 1.0; the true output must cost 0"),
        (broken(joint_features=lambda self, x, y: np.zeros(5)), "example 2: .* length 5 and n_weights is 12"),
        (broken(joint_features=lambda self, x, y: np.full(12, np.inf)), "example 2: .* NaN or infinite"),
        (broken(joint_features=lambda self, x, y: np.zeros((3, 4))), "example 2: .* a vector of length 12"),
        (broken(joint_features=lambda self, x, y: [[1.0], [1.0, 2.0]]), "example 2: .* a vector of length 12"),
        (broken(joint_features=lambda self, x, y: sp.eye(12, format="csr")), r"example 2: .* shape \(12, 12\)"),
        (broken(joint_features=lambda self, x, y: {12: 1.0}), "example 2: .* index 12; indices go from 0 to 11"),
        (broken(joint_features=lambda self, x, y: {-1: 1.0}), "example 2: .* index -1"),
        (broken(joint_features=lambda self, x, y: {"a": 1.0}), "example 2: indices .* whole numbers"),
        (broken(joint_features=lambda self, x, y: ([0, 1], [1.0])), "example 2: .* 2 indices and 1 values"),
        (broken(joint_features=lambda self, x, y: ["a"] * 12), "example 2: .* must be numbers"),
        (
            broken(argmax=lambda self, x, w, y_true=None, cost_weight=0.0: int(np.argmin(x @ w.reshape(F, K)))),
            "example 2: argmax returned an output that scores below the true one .* must return y_true",
        ),
        (broken(argmax=lambda self, x, w, y_true=None, cost_weight=0.0: None), "example 2: argmax returned None"),
        (broken(is_valid=lambda self, x, y: y == 7), r"example 2: argmax returned an illegal output, \d .*is_valid"),
    ],
)
def test_slips_are_named_while_running(data, model, message):
    X, Y = data
    w = np.zeros((F, K))
    w[:, (Y[2] + 1) % K] = -10 * X[2]  # a class far below the truth, for those who minimise
    with pytest.raises(ValueError, match=message):
        PythonModel(model).bind(X, Y).answer(w.ravel(), 2, 1.0)


def test_illegal_predictions_are_named(data):
    bound = PythonModel(broken(is_valid=lambda self, x, y: False)).bind(*data)
    with pytest.raises(ValueError, match="example 4: argmax returned an illegal output"):
        replace(bound, Y=None).argmax(np.zeros(F * K), np.array([4]))


@pytest.mark.parametrize("count", [0, -1, 2.5, "12", None, True])
def test_number_of_weights_is_checked(data, count):
    with pytest.raises(ValueError, match="n_weights returned"):
        PythonModel(broken(n_weights=lambda self, X, Y: count)).bind(*data)


def test_binding_is_checked(data):
    X, Y = data
    with pytest.raises(TypeError, match="without n_weights, joint_features, cost, argmax"):
        PythonModel(object()).bind(X, Y)
    with pytest.raises(TypeError, match="the class Classes instead of an object of it"):
        PythonModel(Classes).bind(X, Y)
    with pytest.raises(ValueError, match="X has 7 examples and Y has 6"):
        PythonModel(Classes()).bind(X, Y[:6])
    with pytest.raises(ValueError, match="pass Y"):
        PythonModel(Classes()).bind(X)
    with pytest.raises(ValueError, match="X is empty"):
        PythonModel(Classes()).bind([], [])


def test_values_at_the_same_index_are_added():
    indices, values = sparse_vector(([3, 1, 3, 2], [1.0, 5.0, 2.0, 0.0]), 4, 0)
    assert (indices.tolist(), values.tolist()) == ([1, 3], [5.0, 3.0])
    assert sparse_vector({}, 4, 0)[0].size == 0
    assert sparse_vector((1.0, 2.0), 2, 0)[1].tolist() == [1.0, 2.0]  # two numbers are a vector of length two
    assert sparse_vector(sp.csc_matrix(np.array([[0.0], [2.0]])), 2, 0)[0].tolist() == [1]


def test_parameters_can_be_read_and_set():
    adapter = PythonModel(Classes("dict"))
    other = Classes()
    assert adapter.set_params(model=other).get_params(deep=False) == {"model": other}
