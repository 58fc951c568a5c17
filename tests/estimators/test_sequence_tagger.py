"""Sequence tagging: objective, features, constraints, predictions, warm starts, what is reported."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from reference.problems import chain_features, chain_planes, random_chains
from reference.qp import solve_primal

SOLVERS = ("auto", "simplicial", "sequential_dual", "bcfw", "frank_wolfe", "cutting_plane")
X, Y = random_chains(8, 3, 2, lengths=(1, 4), seed=5)
LISTS = [y.tolist() for y in Y]


def spelled(n=30, seed=0, noise=0.4):
    """Spans in the BIO scheme with noisy indicator features."""
    rng = np.random.default_rng(seed)
    names = ["O", "B-X", "I-X", "B-Y", "I-Y"]
    inputs, outputs = [], []
    for _ in range(n):
        labels = []
        while len(labels) < 6:
            kind = rng.integers(0, 3)
            labels += ["O"] if kind == 0 else [f"B-{'XY'[kind - 1]}"] + [f"I-{'XY'[kind - 1]}"] * rng.integers(0, 3)
        codes = [names.index(label) for label in labels]
        inputs.append(np.eye(5)[codes] + noise * rng.normal(size=(len(codes), 5)))
        outputs.append(labels)
    return inputs, outputs


# --- the objective ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_weights_are_those_of_the_reference_solver(loss, ends):
    squared = loss == "squared_hinge"
    C = 0.4
    best = solve_primal(chain_planes(X, Y, 3, ends=ends).planes, 2 * C if squared else C, squared=squared)
    fitted = mm.SequenceTagger(C=C, loss=loss, ends=ends, tol=1e-9).fit(X, Y)
    assert fitted.certificate_.primal == pytest.approx(best.objective, rel=1e-7)
    ours = np.concatenate([fitted.coef_.ravel(), fitted.transition_.ravel()])
    if ends:
        groups = fitted.layout_.groups(fitted.weights_)
        ours = np.concatenate([ours, groups["start"], groups["end"]])
    np.testing.assert_allclose(ours, best.weights, atol=1e-4)


def test_sample_weights_repeat_sequences():
    times = [1, 3, 2, 1, 2, 1, 4, 1]
    weighted = mm.SequenceTagger(tol=1e-8).fit(X, Y, sample_weight=times)
    again = [i for i, count in enumerate(times) for _ in range(count)]
    repeated = mm.SequenceTagger(tol=1e-8).fit([X[i] for i in again], [Y[i] for i in again])
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-4)


def test_class_weights_scale_the_cost_of_a_true_label():
    cost = 1 - np.eye(3)
    cost[1] *= 4
    by_class = mm.SequenceTagger(class_weight={1: 4.0}, tol=1e-8).fit(X, Y)
    by_matrix = mm.SequenceTagger(cost=cost, tol=1e-8).fit(X, Y)
    assert by_class.certificate_.primal == pytest.approx(by_matrix.certificate_.primal, rel=1e-7)
    tokens = np.concatenate(Y)
    counts = np.bincount(tokens)
    balanced = mm.SequenceTagger(class_weight="balanced", tol=1e-8).fit(X, Y)
    by_hand = mm.SequenceTagger(class_weight={k: len(tokens) / (3 * counts[k]) for k in range(3)}, tol=1e-8).fit(X, Y)
    assert balanced.certificate_.primal == pytest.approx(by_hand.certificate_.primal, rel=1e-7)


def test_normalized_costs():
    best = solve_primal(chain_planes(X, Y, 3, normalize=True).planes, 1.0)
    fitted = mm.SequenceTagger(cost=mm.HammingCost(normalize=True), tol=1e-8).fit(X, Y)
    assert fitted.certificate_.primal == pytest.approx(best.objective, rel=1e-7)


def test_positive_transitions():
    positive = np.r_[np.zeros(6, bool), np.ones(9, bool)]
    best = solve_primal(chain_planes(X, Y, 3).planes, 1.0, positive=positive)
    fitted = mm.SequenceTagger(positive=["transition"], tol=1e-8).fit(X, Y)
    assert (fitted.transition_ >= 0).all() and fitted.coef_.min() < 0
    assert fitted.certificate_.primal == pytest.approx(best.objective, rel=1e-6)


def test_order_of_examples_and_names_of_labels_do_not_matter():
    rng = np.random.default_rng(0)
    order, names = rng.permutation(8), ["z", "m", "a"]
    base = mm.SequenceTagger(tol=1e-8).fit(X, Y)
    other = mm.SequenceTagger(tol=1e-8).fit([X[i] for i in order], [[names[k] for k in Y[i]] for i in order])
    assert base.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-7)
    place = [other.classes_.index(name) for name in names]
    np.testing.assert_allclose(base.transition_, other.transition_[np.ix_(place, place)], atol=1e-4)


# --- features -----------------------------------------------------------------------------------------------------


def test_dense_and_sparse_features_together_are_their_concatenation():
    split = [{"sparse": sp.csr_array(x[:, :1]), "dense": x[:, 1:]} for x in X]
    together, apart = mm.SequenceTagger(tol=1e-8).fit(X, Y), mm.SequenceTagger(tol=1e-8).fit(split, Y)
    assert together.certificate_.primal == pytest.approx(apart.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(together.coef_, apart.coef_, atol=1e-4)
    assert together.predict(X) == apart.predict(split)


def test_edge_features_see_the_pair():
    """The label flips where the edge feature says so; the tokens themselves say nothing but the first label."""
    rng = np.random.default_rng(0)
    inputs, outputs = [], []
    for _ in range(40):
        flips = rng.integers(0, 2, 7)
        labels = np.cumsum(np.r_[rng.integers(0, 2), flips]) % 2
        dense = np.zeros((8, 2))
        dense[0, labels[0]] = 1.0
        inputs.append({"dense": dense, "edge": np.c_[flips, 1 - flips].astype(float)})
        outputs.append(labels.tolist())
    fitted = mm.SequenceTagger(C=10.0).fit(inputs, outputs)
    assert fitted.score(inputs, outputs) == 1.0
    without = mm.SequenceTagger(C=10.0).fit([x["dense"] for x in inputs], outputs)
    assert without.score([x["dense"] for x in inputs], outputs) < 0.9
    assert len(fitted.predict_kbest(inputs[:2], 3)[0]) == 3
    np.testing.assert_allclose(fitted.predict_marginals(inputs)[0].sum(axis=1), 1.0)
    rows = [{"dense": x["dense"], "edge": np.vstack([[7.0, 7.0], x["edge"]])} for x in inputs]  # a first row is ignored
    assert fitted.predict(rows) == outputs


def test_edge_features_against_the_reference_solver():
    rng = np.random.default_rng(1)
    edges = [rng.normal(size=(len(y) - 1, 1)) for y in Y]
    planes = []
    for x, e, y in zip(X, edges, Y, strict=True):
        every = list(product(range(3), repeat=len(y)))

        def features(labels, x=x, e=e):
            table = np.zeros((3, 3))
            for t in range(1, len(labels)):
                table[labels[t - 1], labels[t]] += e[t - 1, 0]
            return np.concatenate([chain_features(x, labels, 3), table.ravel()])

        planes.append(
            (
                np.array([features(y) - features(labels) for labels in every]),
                np.array([float((np.array(labels) != y).sum()) for labels in every]),
            )
        )
    best = solve_primal(planes, 1.0)
    inputs = [{"dense": x, "edge": e} for x, e in zip(X, edges, strict=True)]
    fitted = mm.SequenceTagger(tol=1e-8).fit(inputs, Y)
    assert fitted.certificate_.primal == pytest.approx(best.objective, rel=1e-7)


def test_observed_weights_are_all_weights_with_the_others_held_at_zero():
    rng = np.random.default_rng(2)
    inputs = [sp.csr_array((rng.random((len(y), 6)) < 0.15).astype(float)) for y in Y]
    seen = np.zeros((6, 3), bool)
    for x, y in zip(inputs, Y, strict=True):
        for t, label in enumerate(y):
            seen[x.toarray()[t] > 0, label] = True
    assert not seen.all()
    planes = []
    keep = np.r_[seen.ravel(), np.ones(9, bool)]
    for a, b in chain_planes([x.toarray() for x in inputs], Y, 3).planes:
        planes.append((a[:, keep], b))
    best = solve_primal(planes, 1.0)
    observed = mm.SequenceTagger(weights="observed", tol=1e-8).fit(inputs, Y)
    everything = mm.SequenceTagger(weights="all", tol=1e-8).fit(inputs, Y)
    assert observed.certificate_.primal == pytest.approx(best.objective, rel=1e-7)
    assert observed.certificate_.primal > everything.certificate_.primal
    assert sp.issparse(observed.coef_) and not observed.coef_.toarray()[~seen].any()
    unseen = sp.csr_array(np.ones((2, 6)))
    assert len(observed.predict([unseen])[0]) == 2


# --- prediction -----------------------------------------------------------------------------------------------------


def brute_force(fitted, x):
    """All label sequences with their scores, best first."""
    w = np.concatenate([np.asarray(fitted.coef_).ravel(), fitted.transition_.ravel()])
    every = [list(labels) for labels in product(range(3), repeat=len(x))]
    scores = np.array([w @ chain_features(x, labels, 3) for labels in every])
    order = np.argsort(-scores, kind="stable")
    return [every[i] for i in order], scores[order]


def test_predictions_against_enumeration():
    fitted = mm.SequenceTagger(C=0.3).fit(X, Y)
    best, lists, margins = fitted.predict(X), fitted.predict_kbest(X, 4), fitted.predict_margin(X)
    marginals = fitted.predict_marginals(X)
    for x, labels, answers, margin, table in zip(X, best, lists, margins, marginals, strict=True):
        every, scores = brute_force(fitted, x)
        assert labels == every[0] == answers[0][0]
        assert len(answers) == min(4, 3 ** len(x))
        assert len({tuple(answer) for answer, _ in answers}) == len(answers)
        np.testing.assert_allclose([score for _, score in answers], scores[: len(answers)], atol=1e-9)
        assert margin == pytest.approx(scores[0] - scores[1], abs=1e-9)
        share = np.exp(scores - scores.max())
        share /= share.sum()
        expected = np.zeros((len(x), 3))
        for labeling, p in zip(every, share, strict=True):
            expected[np.arange(len(x)), labeling] += p
        np.testing.assert_allclose(table, expected, atol=1e-9)


def test_fixed_labels_are_kept_and_the_rest_is_the_best_of_what_is_left():
    fitted = mm.SequenceTagger(C=0.3).fit(X, Y)
    rng = np.random.default_rng(0)
    fixed = [[None if rng.random() < 0.5 else int(rng.integers(3)) for _ in x] for x in X]
    for x, known, labels in zip(X, fixed, fitted.predict(X, fixed=fixed), strict=True):
        allowed = [
            every
            for every in brute_force(fitted, x)[0]
            if all(k is None or k == label for k, label in zip(known, every, strict=True))
        ]
        assert labels == allowed[0]
    assert fitted.predict(X, fixed=[None] * len(X)) == fitted.predict(X)
    assert fitted.predict(X, fixed=LISTS) == LISTS


def test_constraints_hold_in_training_and_prediction():
    inputs, outputs = spelled(noise=1.5)
    free = mm.SequenceTagger(C=0.01, tol=0.05).fit(inputs, outputs)
    bound = mm.SequenceTagger(C=0.01, tol=0.05, constraints="bio").fit(inputs, outputs)

    def legal(labels):
        return all(
            not right.startswith("I-") or (left != "O" and left[2:] == right[2:])
            for left, right in zip(["O", *labels], labels, strict=False)
        )

    test, _ = spelled(seed=1, noise=1.5)
    assert not all(legal(labels) for labels in free.predict(test))
    assert all(legal(labels) for labels in bound.predict(test))
    for answers in bound.predict_kbest(test, 5):
        assert all(legal(labels) for labels, _ in answers)
    table = bound.predict_marginals(test)[0]
    inside = [k for k, name in enumerate(bound.classes_) if name.startswith("I-")]
    np.testing.assert_allclose(table[0, inside], 0.0)
    assert bound.certificate_.dual <= free.certificate_.primal  # fewer outputs compete: the optimum can only fall


def test_constraints_against_the_reference_solver():
    """Planes of forbidden outputs are simply not there."""
    labels = [[0, 1, 2], [2, 0], [1, 1, 2], [0, 0, 1]]
    inputs = [np.random.default_rng(i).normal(size=(len(y), 2)) for i, y in enumerate(labels)]
    enumerated = chain_planes(inputs, labels, 3)
    allowed = [
        [all((a, b) != (1, 0) and (a, b) != (2, 1) for a, b in pairwise(out)) for out in outputs]
        for outputs in enumerated.outputs
    ]
    planes = [(a[keep], b[keep]) for (a, b), keep in zip(enumerated.planes, map(np.array, allowed), strict=True)]
    assert sum(map(len, allowed)) > sum(map(sum, allowed))
    best = solve_primal(planes, 1.0)
    fitted = mm.SequenceTagger(constraints=[(1, 0), (2, 1)], tol=1e-8).fit(inputs, labels)
    assert fitted.certificate_.primal == pytest.approx(best.objective, rel=1e-7)


# --- warm starts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", ["auto", "sequential_dual"])
def test_warm_start_at_another_C(loss, solver):
    inputs, outputs = spelled(40, noise=0.8)
    dials = {"loss": loss, "solver": solver, "tol": 1e-4}
    estimator = mm.SequenceTagger(C=0.1, warm_start=True, **dials).fit(inputs, outputs)
    for C in (0.13, 0.1):
        estimator.set_params(C=C).fit(inputs, outputs)
        cold = mm.SequenceTagger(C=C, **dials).fit(inputs, outputs)
        assert estimator.status_.converged
        assert estimator.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-4)
        assert estimator.certificate_.dual <= cold.certificate_.primal * (1 + 1e-9)
        assert estimator.n_iter_ < cold.n_iter_


@pytest.mark.parametrize("solver", SOLVERS)
def test_warm_start_at_the_same_C_is_over_at_once(solver):
    estimator = mm.SequenceTagger(C=0.1, solver=solver, tol=1e-2, warm_start=True).fit(X, Y)
    first, passes = estimator.certificate_, estimator.n_iter_
    estimator.fit(X, Y)
    assert estimator.n_iter_ < passes and estimator.n_iter_ <= 3
    assert estimator.certificate_.dual >= first.dual * (1 - 1e-9)


def test_warm_start_on_other_examples_is_refused():
    estimator = mm.SequenceTagger(warm_start=True).fit(X, Y)
    for inputs, labels in ((X[:-1], Y[:-1]), (X[::-1], Y[::-1]), ([2 * x for x in X], Y), (X, [2 - y for y in Y])):
        with pytest.raises(
            ValueError, match=r"warm start needs the same examples, costs and rescaling.*set warm_start=False"
        ):
            estimator.fit(inputs, labels)
    with pytest.raises(ValueError, match=r"warm start needs the same examples, costs and rescaling"):
        estimator.set_params(cost=2 - 2 * np.eye(3)).fit(X, Y)
    estimator.set_params(cost="hamming")
    with pytest.raises(ValueError, match=r"warm start needs the"):
        estimator.set_params(loss="squared_hinge").fit(X, Y)


# --- what is reported ---------------------------------------------------------------------------------------------


def test_attributes_of_a_fit():
    fitted = mm.SequenceTagger(C=0.3).fit(X, Y)
    columns = ["pass", "oracle_calls", "argmax_calls", "seconds", "primal", "dual", "gap", "relative_gap", "certified"]
    assert list(fitted.history_.columns) == [*columns, "proven"]
    last = fitted.history_.iloc[-1]
    assert last["primal"] == fitted.certificate_.primal and last["dual"] == fitted.certificate_.dual
    assert last["pass"] == fitted.n_iter_ == fitted.oracle_calls_ / len(X)
    assert (
        fitted.history_["oracle_calls"].is_monotonic_increasing and fitted.history_["seconds"].is_monotonic_increasing
    )
    assert set(fitted.seconds_) == {"total", "oracle", "solver", "compile"}
    assert all(value >= 0 for value in fitted.seconds_.values())
    assert fitted.seconds_["oracle"] + fitted.seconds_["solver"] <= fitted.seconds_["total"] + 1e-6
    assert fitted.classes_ == [0, 1, 2]
    assert fitted.coef_.shape == (2, 3) and fitted.transition_.shape == (3, 3)
    assert fitted.status_.converged and str(fitted.status_).startswith("Converged: relative gap")


@pytest.mark.parametrize("budget", [{"max_passes": 3}, {"max_oracle_calls": 24}, {"max_seconds": 1e-9}])
def test_budgets_end_with_a_warning_and_a_usable_model(budget):
    estimator = mm.SequenceTagger(C=10.0, tol=1e-12, **budget)
    with pytest.warns(ConvergenceWarning, match=rf"Stopped at {next(iter(budget))}.*Next: raise {next(iter(budget))}"):
        estimator.fit(X, Y)
    assert estimator.status_.code == next(iter(budget))
    assert len(estimator.predict(X)) == len(X)
    if "max_seconds" not in budget:
        assert estimator.oracle_calls_ <= 24


def test_progress_on_something_that_is_not_a_terminal(capsys):
    mm.SequenceTagger(C=0.3, verbose=1).fit(X, Y)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert lines[0].split() == ["pass", "calls", "seconds", "primal", "dual", "rel.", "gap"]
    assert all(len(line.split()) == 6 and float(line.split()[3]) for line in lines[1:-1])
    assert lines[-1].startswith("Converged: relative gap")
    assert "\x1b" not in err and "\r" not in err
    mm.SequenceTagger(C=0.3).fit(X, Y)
    assert capsys.readouterr() == ("", "")


def test_early_stopping_on_held_out_sequences():
    inputs, outputs = spelled(60, noise=1.0)
    stopping = mm.EarlyStopping((inputs[40:], outputs[40:]), patience=2)
    estimator = mm.SequenceTagger(C=100.0, tol=1e-9, solver=mm.BCFW(certificate_every=1.0), callbacks=[stopping])
    with pytest.warns(ConvergenceWarning, match=r"Stopped by a callback"):
        estimator.fit(inputs[:40], outputs[:40])
    assert estimator.status_.code == "stopped by callback"
    scores = estimator.history_["score"].to_numpy()
    assert scores.tolist() == stopping.scores_
    assert scores[-1] == estimator.score(inputs[40:], outputs[40:])
    assert stopping.best_score_ == max(scores) and (scores[-2:] <= stopping.best_score_).all()
    estimator.weights_ = stopping.best_weights_
    assert estimator.score(inputs[40:], outputs[40:]) == stopping.best_score_


def test_same_seed_same_weights():
    for solver in SOLVERS:
        first, second = (mm.SequenceTagger(solver=solver, tol=0.02, random_state=7).fit(X, Y) for _ in range(2))
        np.testing.assert_array_equal(first.weights_, second.weights_)
        assert first.n_iter_ == second.n_iter_
    a, b = (mm.SequenceTagger(solver="bcfw", tol=0.02, random_state=seed).fit(X, Y).weights_ for seed in (1, 2))
    assert not np.array_equal(a, b)
    state = mm.SequenceTagger(solver="bcfw", tol=0.02, random_state=np.random.RandomState(3)).fit(X, Y)
    assert state.status_.converged


def test_fixed_labels_in_training_ask_for_no_margin():
    """All labels fixed but one: only the two outputs that differ there matter, a problem solved by the reference."""
    from reference.problems import chain_features
    from reference.qp import solve_primal

    rng = np.random.default_rng(8)
    x = [rng.normal(size=(3, 2)) for _ in range(5)]
    y = [rng.integers(0, 2, 3).tolist() for _ in range(5)]
    fixed = [[labels[0], None, labels[2]] for labels in y]
    planes = []
    for features, labels in zip(x, y, strict=True):
        other = [labels[0], 1 - labels[1], labels[2]]
        difference = chain_features(features, labels, 2) - chain_features(features, other, 2)
        planes.append((difference[None, :], np.ones(1)))
    best = solve_primal(planes, 0.7).objective
    fitted = mm.SequenceTagger(C=0.7, tol=1e-8, classes=[0, 1]).fit(x, y, fixed=fixed)
    assert fitted.certificate_.primal == pytest.approx(best, rel=1e-6)
    with pytest.raises(ValueError, match="example 2, position 0"):
        wrong = [list(labels) for labels in fixed]
        wrong[2][0] = 1 - wrong[2][0]
        mm.SequenceTagger(classes=[0, 1]).fit(x, y, fixed=wrong)
