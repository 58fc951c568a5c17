"""DiscriminativeHMM: prediction, posteriors, likelihoods and tables against enumeration and hmmlearn; odd input."""

import pickle
from itertools import pairwise, product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

from maxmargin.estimators.discriminative_bayes_net import DiscriminativeBayesNet
from maxmargin.estimators.discriminative_hmm import DiscriminativeHMM
from maxmargin.solvers.proximal_point import ProximalPoint

RING = np.array([[0.0, 1.0, 2.0, 1.0], [1.0, 0.0, 1.0, 2.0], [2.0, 1.0, 0.0, 1.0], [1.0, 2.0, 1.0, 0.0]])


def walk(n=30, length=8, seed=0, noise=0.3):
    """A walk round a ring of four positions, seen through noise; the last position looks like any other."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        state, x, y = int(rng.integers(4)), [], []
        for _ in range(length):
            state = int(rng.integers(4)) if rng.random() < 0.3 else (state + 1) % 4
            y.append(state)
            x.append("abc"[rng.integers(3)] if state == 3 or rng.random() < noise else "abc"[state])
        X.append(x)
        Y.append(y)
    return X, Y


@pytest.fixture(scope="module")
def data():
    return walk()


@pytest.fixture(scope="module")
def model(data):
    return DiscriminativeHMM(C=0.02, cost=RING).fit(*data)


def probability(tables, x, y):
    """P(x, y) by a product over positions; None is a missing observation."""
    value = tables["initial"][y[0]] if y else 1.0
    for t, (symbol, state) in enumerate(zip(x, y, strict=True)):
        value *= tables["transition"].loc[y[t - 1], state] if t else 1.0
        value *= tables["emission"].loc[state, symbol] if symbol is not None else 1.0
    return float(value)


def test_training_is_certified_and_beats_its_reference(data, model):
    assert model.status_.converged and model.certificate_.certified
    assert model.certificate_.relative_gap <= 1e-3
    reference = DiscriminativeHMM(C=0.0, cost=RING).fit(*data)
    assert model.mean_cost(*data) < reference.mean_cost(*data)
    assert 0.5 < model.score(*data) <= 1.0
    np.testing.assert_allclose(np.exp(reference.weights_), reference.reference_, rtol=1e-9)


@pytest.mark.parametrize(
    "solver",
    [
        ProximalPoint(blocks=5),
        ProximalPoint(blocks=5, visits=1),
        ProximalPoint(blocks="product"),
        ProximalPoint(blocks="product", visits=4, repeats=2),
    ],
    ids=str,
)
def test_all_variants_agree(data, model, solver):
    """Groups together and in turn, one simplex per sequence, and a stream of visits end at the same optimum."""
    other = clone(model).set_params(solver=solver, max_passes=5000).fit(*data[:2])
    assert other.status_.converged
    assert other.certificate_.primal == pytest.approx(model.certificate_.primal, rel=2e-3)
    assert max(other.certificate_.dual, model.certificate_.dual) <= other.certificate_.primal + 1e-9


def test_reference_is_the_relative_frequency(data, model):
    follow = np.zeros((4, 4))
    for y in data[1]:
        for a, b in pairwise(y):
            follow[a, b] += 1
    expected = follow / follow.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.layout_.groups(model.reference_)["transition"], expected, atol=1e-5)


def test_prediction_is_the_most_probable_output(data, model):
    tables = model.tables()
    for x in [*data[0][:3], ["a", None, "b", "c"], ["c"], []]:
        x = x[:5]
        best = max(probability(tables, x, y) for y in product(range(4), repeat=len(x)))
        found = model.predict([x])[0]
        assert len(found) == len(x) and probability(tables, x, found) == pytest.approx(best)


def test_posteriors_and_likelihoods_are_sums_over_outputs(data, model):
    tables = model.tables(renormalised=True)
    np.testing.assert_allclose(tables["emission"].sum(axis=1), 1.0)
    for x in (data[0][0][:4], ["a", None, "b"], ["b"]):
        joint = {y: probability(tables, x, y) for y in product(range(4), repeat=len(x))}
        total = sum(joint.values())
        assert model.log_likelihood([x])[0] == pytest.approx(np.log(total))
        posterior = model.predict_marginals([x])[0]
        for t, state in product(range(len(x)), range(4)):
            expected = sum(p for y, p in joint.items() if y[t] == state) / total
            assert posterior[t, state] == pytest.approx(expected)
        y = list(range(len(x)))
        assert model.log_likelihood([x], [y])[0] == pytest.approx(np.log(joint[tuple(y)]))


def test_samples_follow_the_tables(model):
    X, Y = model.sample(4000, 3, random_state=0)
    tables = model.tables(renormalised=True)
    first = np.bincount([y[0] for y in Y], minlength=4) / 4000
    np.testing.assert_allclose(first, tables["initial"], atol=0.03)
    pairs = np.zeros((4, 4))
    seen = {(s, o): 0 for s in range(4) for o in "abc"}
    for x, y in zip(X, Y, strict=True):
        pairs[y[0], y[1]] += 1
        seen[y[2], x[2]] += 1
    joint = np.diag(tables["initial"]) @ tables["transition"].to_numpy()
    np.testing.assert_allclose(pairs / 4000, joint, atol=0.03)
    state = int(np.argmax([sum(seen[s, o] for o in "abc") for s in range(4)]))
    share = np.array([seen[state, o] for o in "abc"])
    np.testing.assert_allclose(share / share.sum(), tables["emission"].loc[state], atol=0.06)
    again = model.sample(5, 4, random_state=3)
    assert again == model.sample(5, 4, random_state=3) and model.sample(2, 0) == ([[], []], [[], []])


def test_movement_is_the_divergence_by_table(model):
    rows = model.movement()
    assert len(rows) == 9 and rows["table"][0] == "initial"
    c, theta = model.layout_.groups(model.reference_), model.layout_.groups(model.weights_)
    expected = float((c["emission"][2] * np.log(c["emission"][2] / np.exp(theta["emission"][2]))).sum())
    assert rows["divergence"][7] == pytest.approx(expected)
    assert rows["mass"].max() <= 1.0 and (rows["mass"] > 0).all()
    assert model.emission_.sum(axis=1) == pytest.approx(rows["mass"][5:])


def test_trace_has_the_estimate_beside_the_bound(model):
    trace = model.trace_
    assert {"estimate", "outside", "dual", "primal"} <= set(trace.columns)
    assert (trace["dual"] <= model.certificate_.primal + 1e-9).all() and (trace["dual"].diff().dropna() >= 0).all()


def test_hmmlearn_predicts_the_same(data, model):
    pytest.importorskip("hmmlearn")
    other = model.to_hmmlearn()
    code = model.layout_.symbols.code
    full = DiscriminativeHMM(C=0.001, cost=RING).fit(*data)
    assert np.exp(full.layout_.tables.log_mass(full.weights_)).min() > 1 - 1e-9  # so that both know the same model
    for mine, theirs in (
        (full, full.to_hmmlearn()),
        (DiscriminativeHMM.from_hmmlearn(other, symbols=list("abc")), other),
    ):
        for x in data[0][:10]:
            codes = np.array([[code[s]] for s in x])
            assert mine.predict([x])[0] == theirs.predict(codes).tolist()
            assert mine.log_likelihood([x])[0] == pytest.approx(theirs.score(codes))
            np.testing.assert_allclose(mine.predict_marginals([x])[0], theirs.predict_proba(codes), atol=1e-9)


def test_impossible_sequences_are_still_decoded():
    hmm = pytest.importorskip("hmmlearn.hmm")
    other = hmm.CategoricalHMM(n_components=2)
    other.startprob_, other.transmat_ = np.array([1.0, 0.0]), np.array([[0.0, 1.0], [1.0, 0.0]])
    other.emissionprob_, other.n_features = np.array([[1.0, 0.0], [0.0, 1.0]]), 2
    model = DiscriminativeHMM.from_hmmlearn(other, classes=["even", "odd"])
    assert model.predict([[0, 1, 0], [0, 0, 0]])[0] == ["even", "odd", "even"]
    assert model.predict([[0, 0, 0]])[0][0] == "even"  # the path with the fewest impossible events
    assert model.log_likelihood([[0, 1, 0], [1, 1]]).tolist() == [0.0, -np.inf]
    with pytest.raises(ValueError, match="fit it first"):
        DiscriminativeHMM.from_hmmlearn(hmm.CategoricalHMM(n_components=2))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("reference", ["ml", "uniform", "smoothed"])
def test_losses_and_references(data, loss, reference):
    model = DiscriminativeHMM(C=0.005, loss=loss, reference=reference, cost=RING).fit(*data)
    assert model.status_.converged
    assert (model.layout_.tables.log_mass(model.weights_) <= 1e-12).all()


def test_another_model_as_reference(data, model):
    """Without losses the answer is the reference, in the order of the new data's states and symbols."""
    X, Y = [["c", "b"], ["d"]], [[2, 1], [3]]
    near = DiscriminativeHMM(C=0.0, reference=model).fit(X, Y)
    assert near.classes_ == [1, 2, 3] and near.symbols_ == ["b", "c", "d"]
    expected = model.transition_[np.ix_([1, 2, 3], [1, 2, 3])]
    np.testing.assert_allclose(near.transition_, expected / expected.sum(axis=1, keepdims=True), rtol=1e-4)
    assert (near.emission_[:, 2] <= 1e-5).all()  # never seen by the reference
    tables = {name: table.to_numpy() for name, table in model.tables().items()}
    same = DiscriminativeHMM(C=0.0, reference=tables).fit(*data)
    np.testing.assert_allclose(same.emission_, model.tables(renormalised=True)["emission"], rtol=1e-4)
    with pytest.raises(ValueError, match="none of the states"):
        DiscriminativeHMM(reference=model).fit([["a"]], [["other"]])
    with pytest.raises(ValueError, match="give initial, transition, emission"):
        DiscriminativeHMM(reference={"initial": [1.0]}).fit(*data)
    with pytest.raises(TypeError, match="reference must be"):
        DiscriminativeHMM(reference=3).fit(*data)
    with pytest.raises(TypeError, match=r"a fitted DiscriminativeHMM or .*; got DiscriminativeBayesNet"):
        DiscriminativeHMM(reference=DiscriminativeBayesNet()).fit(*data)
    with pytest.raises(NotFittedError):
        DiscriminativeHMM(reference=DiscriminativeHMM()).fit(*data)


def test_further_sequences():
    first, second, both = walk(20, seed=1), walk(20, seed=2), walk(20, seed=1)
    both = (both[0] + second[0], both[1] + second[1])
    whole = DiscriminativeHMM(C=0.02, cost=RING).fit(*both)
    model = DiscriminativeHMM(C=0.02, cost=RING, solver=ProximalPoint(blocks="product", limit=10))
    model.partial_fit(*first)
    assert model.certificate_.certified
    model.partial_fit(*second)
    assert model.n_seen_ == 40 and not model.certificate_.certified
    np.testing.assert_allclose(model.reference_, whole.reference_)
    assert model.certificate_.dual <= whole.certificate_.primal + 1e-9
    only = DiscriminativeHMM(C=0.02, cost=RING).fit(*second)
    assert np.abs(model.weights_ - whole.weights_).mean() < np.abs(only.weights_ - whole.weights_).mean()
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(first[0]) == model.predict(first[0])
    with pytest.raises(ValueError, match="goes on where a fit"):
        again.partial_fit(*second)


def test_unseen_states_symbols_and_numbers_of_them():
    model = DiscriminativeHMM(classes=3, symbols=["a", "b"], C=0.1).fit([["a", "b"], ["b"]], [[0, 1], [1]])
    assert model.classes_ == [0, 1, 2] and model.emission_.shape == (3, 2)
    np.testing.assert_allclose(model.emission_[2], 0.5, rtol=1e-3)  # never seen: uniform
    with pytest.raises(ValueError, match="position 0 has the symbol 'z'"):
        model.predict([["z"]])
    easy = DiscriminativeHMM(unknown="missing").fit([["a", "b"]], [[0, 1]])
    assert len(easy.predict([["z", "a"]])[0]) == 2


def test_scikit_learn_can_clone_search_and_print(data):
    grid = GridSearchCV(DiscriminativeHMM(cost=RING, tol=1e-2), {"C": [1e-3, 1e-2], "margin": [0.1, 1.0]}, cv=2)
    grid.fit(*data)
    assert grid.best_score_ > 0.4
    model = clone(DiscriminativeHMM(solver=ProximalPoint(limit=7), C=3.0))
    assert model.get_params()["solver__limit"] == 7 and "C=3.0" in repr(model)


def test_workers_and_resuming_change_nothing(data, tmp_path):
    from maxmargin.callbacks.checkpoint import Checkpoint

    one = DiscriminativeHMM(C=0.05, cost=RING, tol=1e-4).fit(*data)
    two = DiscriminativeHMM(C=0.05, cost=RING, tol=1e-4, n_jobs=2).fit(*data)
    assert np.array_equal(one.weights_, two.weights_)
    path = tmp_path / "run.npz"
    with pytest.warns(ConvergenceWarning):
        DiscriminativeHMM(C=0.05, cost=RING, tol=1e-4, max_passes=8, callbacks=[Checkpoint(path, every=1)]).fit(*data)
    resumed = DiscriminativeHMM(C=0.05, cost=RING, tol=1e-4).fit(*data, resume=path)
    assert np.array_equal(one.weights_, resumed.weights_)


def test_warm_start_along_the_weight_of_the_losses(data):
    model = DiscriminativeHMM(C=0.02, cost=RING, warm_start=True).fit(*data)
    model.set_params(C=0.05).fit(*data)
    cold = DiscriminativeHMM(C=0.05, cost=RING).fit(*data)
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-3)
    assert model.oracle_calls_ < cold.oracle_calls_


def test_sample_weights_weigh_losses(data):
    X, Y = data
    twice = DiscriminativeHMM(C=0.02, cost=RING, tol=1e-5, reference="uniform").fit(X + X[:5], Y + Y[:5])
    weights = np.r_[np.full(5, 2.0), np.ones(len(X) - 5)]
    model = DiscriminativeHMM(C=0.02, cost=RING, tol=1e-5, reference="uniform").fit(X, Y, sample_weight=weights)
    assert model.certificate_.primal == pytest.approx(twice.certificate_.primal, rel=1e-4)


@pytest.mark.parametrize(
    ("words", "X", "y", "message"),
    [
        ({}, [], [], "every sequence is empty"),
        ({"classes": 2, "symbols": 2}, [], [], "X is empty"),
        ({}, [["a"]], None, "y is missing"),
        ({"C": -1.0}, [["a"]], [["s"]], "C must be"),
        ({"loss": "log"}, [["a"]], [["s"]], "loss must be"),
        ({"margin": -1.0}, [["a"]], [["s"]], "margin must be"),
        ({"classes": 0}, [["a"]], [["s"]], "classes must be"),
        ({"tol": -1.0}, [["a"]], [["s"]], "tol must be"),
        ({"floor": 0.0}, [["a", "b"]], [["s", "t"]], "zero in"),
        ({"cost": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}, [["a"]], [["s"]], "cost matrix has 3 rows"),
        ({"classes": ["s"]}, [["a"]], [["t"]], "'t', which is not among"),
    ],
    ids=["empty", "none", "no y", "C", "loss", "margin", "states", "tol", "floor", "cost", "state"],
)
def test_bad_input_is_refused(words, X, y, message):
    with pytest.raises(ValueError, match=message):
        DiscriminativeHMM(**words).fit(X, y)


def test_not_fitted():
    for ask in (lambda m: m.predict([["a"]]), lambda m: m.movement(), lambda m: m.sample(1, 1), lambda m: m.tables()):
        with pytest.raises(NotFittedError):
            ask(DiscriminativeHMM())
    with pytest.raises(AttributeError, match="after fit"):
        _ = DiscriminativeHMM().emission_


def test_one_state_one_symbol_and_lengths_nought_and_one():
    model = DiscriminativeHMM().fit([["a"], [], ["a", "a"]], [["s"], [], ["s", "s"]])
    assert model.predict([[], ["a", "a"]]) == [[], ["s", "s"]]
    assert model.certificate_.gap <= 1e-9 and model.log_likelihood([["a", "a"], []]).tolist() == [0.0, 0.0]


def test_a_pull_keeps_rare_values_near_the_reference(data):
    free, held = (DiscriminativeHMM(C=0.1, cost=RING, pull=pull).fit(*data) for pull in (0.0, 1.0))
    assert held.status_.converged and held.certificate_.relative_gap <= 1e-3
    away = [np.abs(model.weights_ - np.log(model.reference_)).max() for model in (free, held)]
    assert away[1] < 0.5 * away[0]
    with pytest.raises(ValueError, match="pull must be a finite number >= 0"):
        DiscriminativeHMM(pull=-1.0).fit(*data)
