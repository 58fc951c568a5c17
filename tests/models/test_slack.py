"""Slack-rescaled models against enumeration: the value, the plane, the prediction at cost weight 0."""

from itertools import pairwise, product

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.oracles.oracle import ModelOracle
from maxmargin.testing import ModelError, check_model
from reference.problems import chain_features, random_chains, random_multiclass, sequence_cost

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SCALES = [0.0, 0.3, 1.0, 3.0]


def best_by_enumeration(w, x, truth, K, cost, lam, normalize, allowed):
    """max_y cost(y) (lam - w . psi(y)) over all allowed label sequences."""
    true = w @ chain_features(x, truth, K)
    values = [0.0]
    for y in product(range(K), repeat=len(truth)):
        if all(allowed[a, b] for a, b in pairwise(y)):
            g = sequence_cost(truth, y, cost, normalize=normalize)
            values.append(g * (lam - (true - w @ chain_features(x, y, K))))
    return max(values)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("cost", ["hamming", "quarters", "normalized", "constrained"])
@pytest.mark.parametrize("seed", range(6))
def test_chains(seed, cost, scale):
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 5))
    X, Y = random_chains(4, K, 2, lengths=(1, 4), seed=seed)
    table = np.ceil(4.0 * rng.random((K, K))) / 4.0 * (1 - np.eye(K))
    normalize, allowed, options = False, np.ones((K, K), bool), {}
    if cost == "quarters":
        options["cost"] = table
    elif cost == "normalized":
        normalize, options["cost"] = True, mm.HammingCost(normalize=True)
    elif cost == "constrained":
        allowed = rng.random((K, K)) < 0.7
        for y in Y:
            for a, b in pairwise(y):
                allowed[a, b] = True
        options["constraints"] = allowed
    bound = mm.Chain(classes=list(range(K)), **options).bind(X, [y.tolist() for y in Y])
    w = scale * rng.standard_normal(bound.n_weights)
    expected_w = np.concatenate([part.ravel() for part in bound.layout.groups(w).values()])
    for lam, parts in ((1.0, 1), (2.5, 4)):
        planes = ModelOracle(bound, "slack", lam).planes(w, np.arange(4), parts)
        first = np.flatnonzero(np.diff(planes.example, prepend=-1))
        violations = planes.violations(w)
        for i in range(4):
            used = table if cost == "quarters" else "hamming"
            best = best_by_enumeration(expected_w, X[i], Y[i], K, used, lam, normalize, allowed)
            assert planes.bound[first[i]] == pytest.approx(best, abs=1e-9)
            assert violations[first[i]] == pytest.approx(best, abs=1e-9)  # the plane is that of the value
        assert (violations <= planes.bound + 1e-9).all()  # planes of parts are outputs too


@pytest.mark.parametrize("scale", SCALES)
def test_long_chains_agree_with_the_table_of_costs(scale):
    """Long enough for every branch of the search; the reference looks at the best score of each cost."""
    from maxmargin.inference.recursion import chain_by_cost as by_cost

    rng = np.random.default_rng(7)
    K, X, Y = 3, *random_chains(30, 3, 4, lengths=(10, 30), seed=1)
    bound = mm.Chain(classes=[0, 1, 2]).bind(X, [y.tolist() for y in Y])
    w = scale * rng.standard_normal(bound.n_weights)
    groups = bound.layout.groups(w)
    planes = ModelOracle(bound, "slack").planes(w, np.arange(30))
    for i in range(30):
        unary = X[i] @ groups["dense"]
        cost = (np.arange(K)[None] != Y[i][:, None]).astype(int)
        scores, _ = by_cost(unary, groups["transition"], cost)
        values = np.arange(len(scores)) * (1.0 + scores - scores[0])
        assert planes.bound[i] == pytest.approx(max(0.0, values.max()), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("seed", range(10))
def test_multiclass(seed, scale):
    rng = np.random.default_rng(seed)
    X, y = random_multiclass(6, 4, 3, seed=seed)
    matrix = rng.random((4, 4)) * (1 - np.eye(4))
    bound = mm.Multiclass(cost=matrix, classes=[0, 1, 2, 3]).bind(X, y.tolist())
    w = scale * rng.standard_normal(bound.n_weights)
    scores = X @ w.reshape(3, -1)[:, :4]
    for lam in (1.0, 0.4):
        planes = ModelOracle(bound, "slack", lam).planes(w, np.arange(6))
        margins = scores[np.arange(6), y][:, None] - scores
        assert planes.bound == pytest.approx((matrix[y] * (lam - margins)).max(axis=1).clip(0), abs=1e-12)
        assert planes.violations(w) == pytest.approx(planes.bound, abs=1e-12)


def test_at_cost_weight_zero_it_predicts():
    X, Y = random_chains(8, 3, 2, lengths=(1, 5), seed=3)
    bound = mm.Chain(classes=[0, 1, 2]).bind(X, [y.tolist() for y in Y])
    w = np.random.default_rng(0).standard_normal(bound.n_weights)
    plain = ModelOracle(bound, cost_weight=0.0).planes(w, np.arange(8))
    slack = ModelOracle(bound, "slack", 0.0).planes(w, np.arange(8))
    a, b = plain.to_csr().toarray(), slack.to_csr().toarray()
    wrong = np.flatnonzero(np.abs(a).sum(1))
    assert len(wrong) > 2
    for i in range(8):
        ratio = b[i][a[i] != 0] / a[i][a[i] != 0]
        assert np.ptp(ratio) <= 1e-12 if len(ratio) else not b[i].any()
        assert np.allclose(ratio, np.rint(ratio))  # the number of wrong labels
        assert (ratio >= 1).all()


class Few:
    """Three outputs, their costs 0, 1 and 3 apart from the truth."""

    def n_weights(self, X, Y):
        return 3 * len(X[0])

    def joint_features(self, x, y):
        phi = np.zeros((3, len(x)))
        phi[y] = x
        return phi.ravel()

    def cost(self, y_true, y):
        return float([0, 1, 3][(y - y_true) % 3])

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        cost = (lambda y: 0.0) if y_true is None else (lambda y: self.cost(y_true, y))
        return max(range(3), key=lambda y: w @ self.joint_features(x, y) + cost_weight * cost(y))


class FewWithSlack(Few):
    def slack_argmax(self, x, w, y_true):
        psi = [self.joint_features(x, y_true) - self.joint_features(x, y) for y in range(3)]
        return max(range(3), key=lambda y: self.cost(y_true, y) * (1.0 - w @ psi[y]))


def test_own_models_reach_the_weights_of_the_compiled_one():
    X, y = random_multiclass(12, 3, 2, seed=2)
    matrix = np.array([[0, 1, 3], [3, 0, 1], [1, 3, 0]], float)
    compiled = mm.MulticlassClassifier(C=0.3, cost=matrix, rescaling="slack", tol=1e-8, fit_intercept=False).fit(X, y)
    own = mm.StructuredSVM(FewWithSlack(), C=0.3, rescaling="slack", tol=1e-8).fit(list(X), y.tolist())
    assert own.certificate_.primal == pytest.approx(compiled.certificate_.primal, rel=1e-6)
    assert own.weights_.reshape(3, 2).T == pytest.approx(compiled.weights_.reshape(2, -1)[:, :3], abs=1e-3)
    for solver in ("pegasos", "sgd", "mira", "perceptron"):
        options = {"C": 0.3, "rescaling": "slack", "solver": solver, "max_passes": 30, "random_state": 0, "tol": 1e-9}
        one = mm.MulticlassClassifier(cost=matrix, fit_intercept=False, **options).fit(X, y)
        two = mm.StructuredSVM(FewWithSlack(), **options).fit(list(X), y.tolist())
        assert two.certificate_.primal == pytest.approx(one.certificate_.primal, rel=1e-9), solver


def test_without_slack_argmax_the_certificate_counts_what_the_queries_missed():
    X, y = random_multiclass(12, 3, 2, seed=2)
    options = {"C": 0.3, "rescaling": "slack", "tol": 1e-8, "max_passes": 200}
    exact = mm.StructuredSVM(FewWithSlack(), **options).fit(list(X), y.tolist()).certificate_
    rough = mm.StructuredSVM(Few(), **options).fit(list(X), y.tolist()).certificate_
    assert rough.dual <= exact.primal * (1 + 1e-12) and rough.primal >= exact.dual * (1 - 1e-12)


def test_what_cannot_be_done_is_said():
    X, y = random_multiclass(6, 3, 2, seed=2)
    with pytest.raises(ValueError, match="rescaling must be one of margin, slack, sqrt_slack, unit, none; got 'slak'"):
        mm.MulticlassClassifier(rescaling="slak").fit(X, y)
    with pytest.raises(ValueError, match=r"rescaling must be one of margin, .*; got \['slack'\]"):
        mm.MulticlassClassifier(rescaling=["slack"]).fit(X, y)
    with pytest.raises(ValueError, match="the ramp has no slack-rescaled form"):
        mm.MulticlassClassifier(rescaling="slack", loss="ramp").fit(X, y)

    class Nothing(FewWithSlack):
        def slack_argmax(self, x, w, y_true):
            return None

    with pytest.raises(ValueError, match="example 0: slack_argmax returned None"):
        mm.models.user.PythonModel(Nothing()).bind([np.ones(2)], [0]).answer(np.zeros(6), 0, 1.0, "slack")

    class Backwards(FewWithSlack):
        def slack_argmax(self, x, w, y_true):
            psi = [self.joint_features(x, y_true) - self.joint_features(x, y) for y in range(3)]
            return min(range(3), key=lambda y: self.cost(y_true, y) * (1.0 - w @ psi[y]))

    with pytest.raises(ValueError, match=r"example .*: slack_argmax returned an output of value -"):
        weights = np.array([9.0, 0, 0, 0, 0, 0])
        mm.models.user.PythonModel(Backwards()).bind([np.ones(2)], [0]).answer(weights, 0, 1.0, "slack")


@pytest.mark.parametrize("seed", range(20))
def test_free_mistakes_beside_costly_ones(seed):
    """The best output may need a mistake that costs nothing."""
    rng = np.random.default_rng(seed)
    X, Y = random_chains(5, 3, 2, lengths=(1, 4), seed=seed)
    free = {0: 0.0, 1: 1.0, 2: float(rng.integers(0, 3))}
    table = np.array([free[k] for k in range(3)])[:, None] * (1 - np.eye(3))
    bound = mm.Chain(classes=[0, 1, 2]).bind(X, [y.tolist() for y in Y], class_weight=free)
    w = 2.0 * rng.standard_normal(bound.n_weights)
    flat = np.concatenate([part.ravel() for part in bound.layout.groups(w).values()])
    planes = ModelOracle(bound, "slack").planes(w, np.arange(5))
    for i in range(5):
        best = best_by_enumeration(flat, X[i], Y[i], 3, table, 1.0, False, np.ones((3, 3), bool))
        assert planes.bound[i] == pytest.approx(best, abs=1e-9)
        assert planes.violations(w)[i] == pytest.approx(best, abs=1e-9)


def test_any_unit_of_cost_will_do():
    """pi for each mistake, and the optimum of costs 1 with pi times C."""
    X, Y = random_chains(8, 3, 2, lengths=(1, 4), seed=1)
    Y = [y.tolist() for y in Y]
    matrix = np.pi * (1 - np.eye(3))
    ours = mm.SequenceTagger(cost=matrix, rescaling="slack", C=0.5, tol=1e-8).fit(X, Y)
    theirs = mm.SequenceTagger(rescaling="slack", C=0.5 * np.pi, tol=1e-8).fit(X, Y)
    assert ours.certificate_.primal == pytest.approx(theirs.certificate_.primal, rel=1e-7)


def test_large_scores_are_no_mistake_of_the_model():
    class Shifted(FewWithSlack):
        def joint_features(self, x, y):
            return np.append(super().joint_features(x, y), 1e10)

        def n_weights(self, X, Y):
            return super().n_weights(X, Y) + 1

    X, y = random_multiclass(6, 3, 2, seed=2)
    bound = mm.models.user.PythonModel(Shifted()).bind(list(1e10 * X), y.tolist())
    w = np.random.default_rng(0).normal(size=bound.n_weights)
    for i in range(6):
        _, _, _, value, top, _ = bound.answer(w, i, 1.0, "slack")
        assert top >= value


def test_check_model_looks_at_slack_argmax():
    X, y = random_multiclass(6, 3, 2, seed=2)

    class Lazy(FewWithSlack):
        def slack_argmax(self, x, w, y_true):
            return y_true

    outputs = lambda x: range(3)  # noqa: E731
    assert check_model(FewWithSlack(), list(X), y.tolist(), outputs=outputs).capabilities["slack_argmax"]
    assert not check_model(Few(), list(X), y.tolist(), outputs=outputs).capabilities["slack_argmax"]
    with pytest.raises(ModelError, match=r"slack_argmax returned \d of value 0, but \d has"):
        check_model(Lazy(), list(X), y.tolist(), outputs=outputs)


def test_classes_without_cost_and_empty_sequences_have_the_zero_plane():
    X = [np.zeros((0, 2)), np.ones((2, 2))]
    bound = mm.Chain(classes=["a", "b"]).bind(X, [[], ["a", "b"]], class_weight={"a": 0.0, "b": 0.0})
    planes = ModelOracle(bound, "slack").planes(np.ones(bound.n_weights), np.arange(2))
    assert planes.to_csr().nnz == 0
    assert not planes.b.any() and not planes.bound.any()
