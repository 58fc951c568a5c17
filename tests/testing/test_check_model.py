"""check_model passes good models and names each flaw of broken ones."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.models.user import PythonModel
from maxmargin.testing import ModelError, check_model
from maxmargin.testing.compare import same, same_output

D, T = 2, 3


def outputs(x):
    return list(product((0, 1), repeat=T))


class Bits:
    """Three bits that like to be equal to their neighbours; argmax by enumeration."""

    def n_weights(self, X, Y):
        return D + 1

    def joint_features(self, x, y):
        return np.append(x.T @ np.array(y), sum(a == b for a, b in pairwise(y)))

    def cost(self, y_true, y):
        return sum(a != b for a, b in zip(y_true, y, strict=True))

    def objective(self, x, w, y_true, cost_weight, y):
        cost = self.cost(y_true, y) if y_true is not None and cost_weight else 0.0
        return w @ self.joint_features(x, y) + cost_weight * cost

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        return max(outputs(x), key=lambda y: self.objective(x, w, y_true, cost_weight, y))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(T, D)) for _ in range(4)]
    return X, [tuple(rng.integers(0, 2, T).tolist()) for _ in X]


def test_good_model_passes(data):
    report = check_model(Bits(), *data, outputs=outputs)
    assert report.ok and not report.problems and not report.warnings
    yes, no = ("exact", "picklable", "negative_cost_weight"), ("is_valid", "slack_argmax", "constrained_argmax")
    assert report.capabilities == dict.fromkeys(yes, True) | dict.fromkeys(no, False)
    assert "Bits: no problems" in str(report)
    assert check_model(PythonModel(Bits()), *data).ok


@pytest.mark.parametrize("form", [dict, "pair", sp.csr_matrix, sp.coo_array])
def test_all_forms_of_joint_features_pass(data, form):
    class Form(Bits):
        def joint_features(self, x, y):
            phi = super().joint_features(x, y)
            if form is dict:
                return dict(enumerate(phi))
            return (np.arange(len(phi)), phi) if form == "pair" else form(phi)

        def objective(self, x, w, y_true, cost_weight, y):
            return w @ Bits.joint_features(self, x, y) + cost_weight * (self.cost(y_true, y) if y_true else 0.0)

    report = check_model(Form(), *data, outputs=outputs)
    assert report.ok
    assert not report.capabilities["picklable"]  # a class inside a function
    assert "cannot be pickled" in report.warnings[0]


def test_lists_and_arrays_are_outputs_too(data):
    class Arrays(Bits):
        def argmax(self, x, w, y_true=None, cost_weight=0.0):
            return np.array(super().argmax(x, w, y_true, cost_weight))

    X, Y = data
    assert check_model(Arrays(), X, [np.array(y) for y in Y], outputs=outputs).ok


# Broken models, each with one flaw. What is said of it must contain the words beside it.


class Short(Bits):
    def joint_features(self, x, y):
        return super().joint_features(x, y)[: 2 + y[0]]


class Infinite(Bits):
    def joint_features(self, x, y):
        phi = super().joint_features(x, y)
        phi[0] = np.inf if y == (1, 1, 1) else phi[0]
        return phi

    def objective(self, x, w, y_true, cost_weight, y):
        return -1.0 if y == (1, 1, 1) else super().objective(x, w, y_true, cost_weight, y)


class RandomFeatures(Bits):
    rng = np.random.default_rng(0)

    def joint_features(self, x, y):
        return super().joint_features(x, y) + self.rng.normal()


class FeaturesOfWeights(Bits):
    w = np.zeros(D + 1)

    def joint_features(self, x, y):
        return super().joint_features(x, y) + self.w

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        self.w = w.copy()
        return super().argmax(x, w, y_true, cost_weight)


class SelfCost(Bits):
    def cost(self, y_true, y):
        return super().cost(y_true, y) + 1.0


class SelfCostElsewhere(Bits):
    """Right for the true outputs of the data, wrong for (1, 1, 1) and (0, 0, 0)."""

    def cost(self, y_true, y):
        return 0.5 if y_true == y and len(set(y)) == 1 else super().cost(y_true, y)


class NegativeCost(Bits):
    """Only between different outputs, so that asking for the cost of the truth with itself shows nothing."""

    def cost(self, y_true, y):
        return -super().cost(y_true, y)


class NanCost(Bits):
    def cost(self, y_true, y):
        return np.nan if y_true != y else 0.0

    def objective(self, x, w, y_true, cost_weight, y):
        return w @ self.joint_features(x, y)


class TextCost(Bits):
    def cost(self, y_true, y):
        return "one"

    def objective(self, x, w, y_true, cost_weight, y):
        return w @ self.joint_features(x, y)


class RandomCost(Bits):
    rng = np.random.default_rng(0)

    def cost(self, y_true, y):
        return super().cost(y_true, y) * self.rng.uniform(1, 2)


class Minimises(Bits):
    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        return min(outputs(x), key=lambda y: self.objective(x, w, y_true, cost_weight, y))


class IgnoresCost(Bits):
    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        return super().argmax(x, w)


class SubtractsCost(Bits):
    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        return super().argmax(x, w, y_true, -cost_weight)


class Greedy(Bits):
    """Chooses each bit for itself, so that the pair weight is not seen, then keeps the better of that and the truth."""

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        score = x @ w[:D]
        if y_true is not None:
            score = score + cost_weight * (1 - 2 * np.array(y_true))
        found = tuple((score > 0).astype(int).tolist())
        rivals = [found] if y_true is None or cost_weight == 0 else [found, tuple(y_true)]
        return max(rivals, key=lambda y: self.objective(x, w, y_true, cost_weight, y))


class UsesTruth(Bits):
    """Prefers the truth even at cost_weight=0."""

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        return y_true if y_true is not None and cost_weight == 0.0 else super().argmax(x, w, y_true, cost_weight)


class NeedsTruth(Bits):
    def argmax(self, x, w, y_true, cost_weight=0.0):
        return super().argmax(x, w, y_true, cost_weight)


class ChangesWeights(Bits):
    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        found = super().argmax(x, w, y_true, cost_weight)
        w += 1.0
        return found


class ChangesInput(Bits):
    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        found = super().argmax(x, w, y_true, cost_weight)
        x += 0.01
        return found


class ChangesTruth(Bits):
    def cost(self, y_true, y):
        result = super().cost(y_true, y)
        y_true.reverse()
        return result

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        return list(max(outputs(x), key=lambda y: w @ self.joint_features(x, y)))


class KeepsWeights(Bits):
    """Remembers its answers by the identity of w."""

    def __init__(self):
        self.held, self.answers = None, {}

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        if w is not self.held:
            self.held, self.answers = w, {}
        key = (x.tobytes(), y_true, cost_weight)
        if key not in self.answers:
            self.answers[key] = super().argmax(x, w, y_true, cost_weight)
        return self.answers[key]


class RandomTies(Bits):
    rng = np.random.default_rng(0)

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        values = [self.objective(x, w, y_true, cost_weight, y) for y in outputs(x)]
        return outputs(x)[self.rng.choice(np.flatnonzero(np.array(values) >= max(values) - 1e-12))]

    def cost(self, y_true, y):
        return float(y_true != y)


class Illegal(Bits):
    def is_valid(self, x, y):
        return sum(y) < T


class Nothing(Bits):
    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        pass


class Raises(Bits):
    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        raise KeyError("lost")


class Fraction(Bits):
    def n_weights(self, X, Y):
        return 2.5


class Grows(Bits):
    size = 2

    def n_weights(self, X, Y):
        self.size += 1
        return self.size


class Unlisted(Bits):
    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        return (*super().argmax(x, w, y_true, cost_weight)[:2], 2)

    def cost(self, y_true, y):
        return float(tuple(y_true) != tuple(y))


FLAWS = [
    (Short, r"joint features have length \d and n_weights is 3"),
    (Infinite, "joint features have NaN or infinite values"),
    (RandomFeatures, "joint_features gave two different vectors"),
    (FeaturesOfWeights, r"phi\(x, y\) may not depend on w"),
    (SelfCost, "cost of the true output is 1, not 0"),
    (SelfCostElsewhere, "with itself is 0.5"),
    (NegativeCost, "cost returned -.*must be finite and not negative"),
    (NanCost, "cost returned nan; costs must be finite"),
    (TextCost, "cost returned 'one'; it must return a number"),
    (RandomCost, "cost gave .* for the same outputs"),
    (Minimises, "scores below the true one"),
    (IgnoresCost, "argmax with cost_weight=.* returned .*(below the true one|has)"),
    (SubtractsCost, "argmax with cost_weight=.* returned .*(below the true one|has)"),
    (Greedy, r"argmax with cost_weight=.* returned .* of objective .*, but .* has .* declare exact = False"),
    (UsesTruth, "with cost_weight=0 the score of argmax depends on y_true"),
    (NeedsTruth, "argmax raised TypeError: .*y_true"),
    (ChangesWeights, "argmax changed its argument w; work on a copy"),
    (ChangesInput, "argmax changed its argument x; work on a copy"),
    (KeepsWeights, "it keeps w"),
    (RandomTies, "argmax gave two different outputs"),
    (Illegal, r"the output of argmax, \(1, 1, 1\), is illegal by is_valid"),
    (Nothing, "argmax returned None"),
    (Raises, "argmax raised KeyError: 'lost'"),
    (Fraction, "n_weights returned 2.5"),
    (Grows, "n_weights gives different answers"),
    (Unlisted, "not among outputs"),
]


@pytest.mark.parametrize(("flawed", "message"), FLAWS, ids=[flawed.__name__ for flawed, _ in FLAWS])
def test_each_flaw_is_found_and_named(data, flawed, message):
    X, Y = data
    Y = [(0, 1, 0), (1, 0, 0), (0, 0, 1), (0, 1, 0)] if flawed in (Illegal, SelfCostElsewhere) else Y
    with pytest.raises(ModelError, match=message) as raised:
        check_model(flawed(), X, Y, outputs=outputs)
    assert isinstance(raised.value, AssertionError)
    assert raised.value.report.problems
    silent = check_model(flawed(), X, Y, outputs=outputs, raise_on_error=False)
    assert not silent.ok


@pytest.mark.parametrize("flawed", [SelfCostElsewhere, NegativeCost, Minimises, SubtractsCost, Greedy, UsesTruth])
def test_flaws_are_found_without_a_list_of_outputs(data, flawed):
    assert not check_model(flawed(), *data, raise_on_error=False).ok


def test_a_changed_truth_is_named(data):
    X, Y = data
    with pytest.raises(ModelError, match="cost changed its argument y_true; work on a copy"):
        check_model(ChangesTruth(), X, [list(y) for y in Y])


def test_all_problems_are_listed_at_once(data):
    class Three(NegativeCost, Minimises):
        def argmax(self, x, w, y_true=None, cost_weight=0.0):
            found = Minimises.argmax(self, x, w, y_true, cost_weight)
            w += 1.0
            return found

    with pytest.raises(ModelError) as raised:
        check_model(Three(), *data)
    text = str(raised.value)
    for words in ("costs must be finite and not negative", "scores below the true one", "changed its argument w"):
        assert words in text
    assert "times)" in text  # said once, counted


def test_missing_functions_are_named(data):
    with pytest.raises(ModelError, match="a object without n_weights, joint_features, cost, argmax"):
        check_model(object(), *data)


def test_an_honest_approximation_passes_with_a_warning(data):
    class Honest(Greedy):
        exact = False

    report = check_model(Honest(), *data, outputs=outputs)
    assert report.ok and not report.capabilities["exact"]
    assert any("the model says exact = False" in text for text in report.warnings)


def test_refusing_negative_cost_weights_is_no_error(data):
    class OneSided(Bits):
        def argmax(self, x, w, y_true=None, cost_weight=0.0):
            if cost_weight < 0:
                raise ValueError("not supported")
            return super().argmax(x, w, y_true, cost_weight)

    class Clips(Bits):
        def argmax(self, x, w, y_true=None, cost_weight=0.0):
            return super().argmax(x, w, y_true, max(cost_weight, 0.0))

    for model in (OneSided(), Clips()):
        report = check_model(model, *data)
        assert report.ok and not report.capabilities["negative_cost_weight"]


def test_nothing_to_compare_is_said(data):
    class Constant(Bits):
        def cost(self, y_true, y):
            return 0.0

    assert any("cost is 0 for all outputs" in text for text in check_model(Constant(), *data).warnings)
    few = check_model(Bits(), *data, outputs=lambda x: outputs(x)[:4], raise_on_error=False)
    assert any("leaves out the true output" in text for text in few.warnings)


def test_number_of_trials_is_checked(data):
    with pytest.raises(ValueError, match="n_trials is 0"):
        check_model(Bits(), *data, n_trials=0)


def test_deep_comparison():
    class Plain:
        def __init__(self, value):
            self.value = value

    nan = float("nan")
    assert same({"a": [np.array([1.0, nan]), nan]}, {"a": [np.array([1.0, nan]), float("nan")]})
    assert same(Plain(np.ones(2)), Plain(np.ones(2))) and not same(Plain(1), Plain(2))
    assert same(sp.csr_array(np.eye(2)), sp.csr_array(np.eye(2)))
    assert not same(sp.csr_array(np.eye(2)), sp.csr_array(2 * np.eye(2)))
    assert same(np.array([[1], None], object), np.array([[1], None], object))
    assert not same([1], (1,)) and same_output([1, 2], (1, 2)) and same_output(np.array([1, 2]), [1, 2])
    assert not same_output({1}, [1]) and not same_output([1, 2], [1])
