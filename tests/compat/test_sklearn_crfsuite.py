"""Scripts for sklearn-crfsuite run after a change of the import, and their options mean what the table says."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from maxmargin.compat.sklearn_crfsuite import CRF, metrics, scorers
from reference.process import run_python

TUTORIAL = """
from collections import Counter

import scipy.stats
from sklearn.metrics import make_scorer
from sklearn.model_selection import RandomizedSearchCV

import maxmargin.compat.sklearn_crfsuite as sklearn_crfsuite
from maxmargin.compat.sklearn_crfsuite import scorers
from maxmargin.compat.sklearn_crfsuite import metrics

names = [("Ada", "B-PER"), ("Noor", "B-PER"), ("Oslo", "B-LOC"), ("Lima", "B-LOC")]
sents = []
for first, kind in names:
    for last, other in names:
        sents.append([(first, "NP", kind), ("saw", "V", "O"), ("old", "A", "O"), (last, "NP", other), (".", "P", "O")])
train_sents, test_sents = sents[::2] + sents[1::4], sents[3::4]


def word2features(sent, i):
    word = sent[i][0]
    features = {
        "bias": 1.0,
        "word.lower()": word.lower(),
        "word[-3:]": word[-3:],
        "word.isupper()": word.isupper(),
        "word.istitle()": word.istitle(),
        "postag": sent[i][1],
    }
    if i > 0:
        features.update({"-1:word.lower()": sent[i - 1][0].lower(), "-1:postag": sent[i - 1][1]})
    else:
        features["BOS"] = True
    if i < len(sent) - 1:
        features.update({"+1:word.lower()": sent[i + 1][0].lower(), "+1:postag": sent[i + 1][1]})
    else:
        features["EOS"] = True
    return features


def sent2features(sent):
    return [word2features(sent, i) for i in range(len(sent))]


def sent2labels(sent):
    return [label for token, postag, label in sent]


X_train, y_train = [sent2features(s) for s in train_sents], [sent2labels(s) for s in train_sents]
X_test, y_test = [sent2features(s) for s in test_sents], [sent2labels(s) for s in test_sents]

crf = sklearn_crfsuite.CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)
crf.fit(X_train, y_train)
labels = list(crf.classes_)
labels.remove("O")
y_pred = crf.predict(X_test)
print("F1", metrics.flat_f1_score(y_test, y_pred, average="weighted", labels=labels))
sorted_labels = sorted(labels, key=lambda name: (name[1:], name[0]))
print(metrics.flat_classification_report(y_test, y_pred, labels=sorted_labels, digits=3))

crf = sklearn_crfsuite.CRF(algorithm="lbfgs", max_iterations=100, all_possible_transitions=True)
params_space = {"c1": scipy.stats.expon(scale=0.5), "c2": scipy.stats.expon(scale=0.05)}
f1_scorer = make_scorer(metrics.flat_f1_score, average="weighted", labels=labels)
rs = RandomizedSearchCV(crf, params_space, cv=3, verbose=1, n_iter=4, scoring=f1_scorer, random_state=0)
rs.fit(X_train, y_train)
print("best params:", rs.best_params_)
print("best CV score:", rs.best_score_)
print("model size: {:0.2f}M".format(rs.best_estimator_.size_ / 1000000))

crf = rs.best_estimator_
for (label_from, label_to), weight in Counter(crf.transition_features_).most_common(3):
    print("%-6s -> %-7s %0.6f" % (label_from, label_to, weight))
for (attr, label), weight in Counter(crf.state_features_).most_common(3):
    print("%0.6f %-8s %s" % (weight, label, attr))
"""

X = [[{"word": "the", "len": 0.5}, {"word": "dog", "len": 0.25}], [{"word": "a"}, ["word=cat", "animal"]], [["word=a"]]]
y = [["D", "N"], ["D", "N"], ["D"]]


def fit_quietly(crf: CRF, *arguments, **named) -> CRF:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return crf.fit(*arguments, **named)


def test_the_tutorial_runs(tmp_path):
    run = run_python("-W", "default", "-c", TUTORIAL, folder=tmp_path)
    lines = run.stdout.splitlines()
    assert lines[0] == "F1 1.0"  # names come back with their kinds
    assert any(line.split()[:1] == ["B-LOC"] for line in lines) and "Fitting 3 folds" in run.stdout
    assert "c1" in run.stderr and "counterpart" in run.stderr
    assert "ConvergenceWarning" not in run.stderr
    assert not list(tmp_path.iterdir())  # no file is left behind


def test_labels_and_marginals_are_those_of_the_weights():
    crf = CRF(c2=0.3, max_iterations=50).fit(X, y)
    labels, states, steps = crf.classes_, crf.state_features_, crf.transition_features_
    found, shares = crf.predict(X), crf.predict_marginals(X)
    for i, tokens in enumerate(X):
        named = []
        for token in tokens:
            pairs = token.items() if isinstance(token, dict) else [(name, 1.0) for name in token]
            named.append({f"{k}={v}" if isinstance(v, str) else k: 1.0 if isinstance(v, str) else v for k, v in pairs})
        score = {
            path: sum(v * states.get((k, path[t]), 0.0) for t, names in enumerate(named) for k, v in names.items())
            + sum(steps[pair] for pair in itertools.pairwise(path))
            for path in itertools.product(labels, repeat=len(tokens))
        }
        assert found[i] == list(max(score, key=score.__getitem__)) == crf.predict_single(tokens)
        total = sum(map(math.exp, score.values()))
        for t, share in enumerate(shares[i]):
            expected = {
                label: sum(math.exp(s) for path, s in score.items() if path[t] == label) / total for label in labels
            }
            assert share == pytest.approx(expected)
        assert crf.predict_marginals_single(tokens) == shares[i]


@pytest.mark.parametrize(
    ("options", "weight"),
    [
        # one token, one feature of its own: min 1/2 w^2 + C max(0, 1 - w) has w = min(C, 1), here C = 1 / (2 c2)
        ({}, 0.5),
        ({"c2": 2.0}, 0.25),
        ({"c2": 0.1}, 1.0),
        ({"c2": 0.0}, 1.0),
        ({"algorithm": "l2sgd", "c2": 1.25}, 0.4),
        ({"algorithm": "ap"}, 0.5),
        ({"algorithm": "pa", "c": 0.3, "c2": 9.0}, 0.3),
        ({"algorithm": "pa", "pa_type": 0, "c": 0.3}, 1.0),
        # min 1/2 w^2 + C (1 - w)^2 has w = 2 C / (1 + 2 C)
        ({"algorithm": "passive-aggressive", "pa_type": 2, "c": 1.0}, 2 / 3),
        # weights w and -w for the two labels: min w^2 + C max(0, 1 - 2 w) has w = min(C, 1/2)
        ({"all_possible_states": True, "c2": 2.0}, 0.25),
        ({"all_possible_states": True, "c2": 0.1}, 0.5),
    ],
)
def test_strength_of_the_regulariser(options, weight):
    crf = fit_quietly(CRF(**options), [[["a"]], [["b"]]], [["A"], ["B"]])
    assert crf.state_features_[("a", "A")] == pytest.approx(weight, rel=5e-3)
    assert (("a", "B") in crf.state_features_) == ("all_possible_states" in options)


def test_rare_features_are_left_out():
    tokens = [[["once"], ["twice"], ["twice"], ["thrice"], ["thrice"], ["thrice"]]]
    labels = [["A", "B", "B", "A", "A", "A"]]
    for min_freq, kept in ((None, 3), (0, 3), (1, 3), (1.5, 2), (2, 2), (3, 1)):
        crf = CRF(min_freq=min_freq).fit(tokens, labels)
        assert crf.num_attributes_ == kept == len(crf.attributes_)
    with pytest.raises(ValueError, match="min_freq"):
        CRF(min_freq=-1).fit(tokens, labels)


def test_options_without_counterpart_warn_by_name():
    with pytest.warns(UserWarning, match=r"counterpart: c1, epsilon, period\. "):
        CRF(c1=0.1, epsilon=1e-3, num_memories=6, averaging=None, period=9).fit(X, y)
    fit_quietly(CRF(c1=0, c2=0.5, num_memories=6, linesearch="MoreThuente"), X, y)


def test_iterations_bound_the_passes():
    rng = np.random.default_rng(0)
    many = [[[f"f{k}" for k in rng.integers(0, 30, 3)] for _ in range(6)] for _ in range(40)]
    labels = [[str(k) for k in rng.integers(0, 4, 6)] for _ in many]
    short = fit_quietly(CRF(c2=0.01, max_iterations=2), many, labels)
    assert not short.tagger_.status_.converged
    assert short.tagger_.n_iter_ < 5
    with pytest.warns(ConvergenceWarning):
        tagger = CRF(c2=0.01).to_tagger()
        tagger.set_params(max_passes=2).fit(many, labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "newton"}, "algorithm must be one of lbfgs"),
        ({"c2": -1.0}, "c2 must be"),
        ({"c2": math.nan}, "c2 must be"),
        ({"algorithm": "pa", "c": math.inf}, "c must be"),
        ({"algorithm": "pa", "pa_type": 3}, "pa_type must be 0, 1 or 2"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        CRF(**options).fit(X, y)


def test_before_fit():
    crf = CRF("lbfgs")
    assert crf.algorithm == "lbfgs"
    assert crf.classes_ is crf.size_ is crf.attributes_ is crf.num_attributes_ is None
    assert crf.state_features_ is crf.transition_features_ is crf.tagger_ is None
    with pytest.raises(NotFittedError, match="call fit"):
        crf.predict(X)


def test_held_out_data(capsys):
    with pytest.raises(ValueError, match="X_dev and y_dev"):
        CRF().fit(X, y, X)
    CRF(verbose=True).fit(X, y, X_dev=X[:2], y_dev=[["D", "N"], ["D", "D"]])
    assert "held-out accuracy: 0.7500" in capsys.readouterr().out


def test_pickle_clone_and_model_file(tmp_path):
    path = tmp_path / "foo.model"
    crf = CRF(c2=0.2, model_filename=str(path)).fit(X, y)
    copies = [pickle.loads(pickle.dumps(crf)), CRF(model_filename=str(path))]
    for copy in copies:
        assert copy.predict(X) == crf.predict(X) == y
        assert copy.state_features_ == crf.state_features_
        assert copy.score(X, y) == 1.0
    fresh = clone(crf)
    assert fresh.get_params() == crf.get_params()
    assert crf.size_ == path.stat().st_size
    assert CRF(model_filename=str(tmp_path / "missing")).tagger_ is None
    path.write_bytes(b"lCRF" + bytes(100))  # how a model of CRFsuite begins
    with pytest.raises(ValueError, match=r"foo\.model"):
        CRF(model_filename=str(path)).predict(X)


def test_searches():
    many, labels = X * 6, y * 6
    search = GridSearchCV(CRF(max_iterations=20), {"c2": [0.1, 1.0], "algorithm": ["lbfgs", "pa"]}, cv=2)
    assert search.fit(many, labels).best_score_ == 1.0
    for scoring in (scorers.flat_accuracy, scorers.sequence_accuracy):
        assert cross_val_score(CRF(), many, labels, scoring=scoring, cv=3).tolist() == [1.0] * 3


def test_metrics_count_tokens_and_sequences():
    true = [["A", "B", "B"], ["A"], ["C", "A"]]
    found = [["A", "B", "A"], ["A"], ["A", "B"]]
    assert metrics.flat_accuracy_score(true, found) == pytest.approx(3 / 6)
    assert metrics.sequence_accuracy_score(true, found) == pytest.approx(1 / 3)
    assert metrics.sequence_accuracy_score([], []) == 0
    # A: 2 right of 4 found and 3 true; B: 1 of 2 and 2
    assert metrics.flat_precision_score(true, found, labels=["A", "B"], average=None).tolist() == [0.5, 0.5]
    assert metrics.flat_recall_score(true, found, labels=["A", "B"], average=None) == pytest.approx([2 / 3, 0.5])
    f1 = metrics.flat_f1_score(true, found, labels=["A", "B"], average=None)
    assert f1 == pytest.approx([4 / 7, 0.5])
    assert metrics.flat_fbeta_score(true, found, 1.0, labels=["A"], average="macro") == pytest.approx(4 / 7)
    report = metrics.flat_classification_report(true, found, labels=["B", "A"], digits=3)
    assert [line.split()[:5] for line in report.splitlines() if line.split()[:1] in (["A"], ["B"])] == [
        ["B", "0.500", "0.500", "0.500", "2"],
        ["A", "0.500", "0.667", "0.571", "3"],
    ]
    with pytest.raises(ValueError, match="sequence 1"):
        metrics.flat_accuracy_score([["A"], ["A", "B"]], [["A"], ["A"]])


@pytest.mark.found("C: the c1 warning")
def test_a_search_warns_once(tmp_path):
    """Also where every warning is shown, and fits change the filters."""
    program = """
import warnings
from sklearn.model_selection import GridSearchCV
from maxmargin.compat.sklearn_crfsuite import CRF
X, y = [[{"w": "a"}, {"w": "b"}]] * 6, [["A", "B"]] * 6
GridSearchCV(CRF(c1=0.1), {"c2": [0.1, 1.0, 10.0]}, cv=3).fit(X, y)
CRF(c1=0.2).fit(X, y)
"""
    run = run_python("-W", "always", "-c", program, folder=tmp_path)
    assert run.stderr.count("has no counterpart: c1") == 1


@pytest.mark.found("C: training_log_")
def test_training_log():
    crf = CRF(c2=0.5)
    assert crf.training_log_ is None
    log, history = crf.fit(X, y).training_log_, crf.tagger_.history_
    assert [step["loss"] for step in log.iterations] == history["primal"].tolist()
    assert sum(step["time"] for step in log.iterations) == pytest.approx(history["seconds"].iloc[-1])
    assert log.last_iteration == log.iterations[-1] and log.last_iteration["relative_gap"] <= 1e-3
    assert [step["num"] for step in log.iterations] == sorted(step["num"] for step in log.iterations)


def test_training_log_of_a_stored_model(tmp_path):
    fitted = CRF(model_filename=str(tmp_path / "model")).fit(X, y)
    stored = CRF(model_filename=str(tmp_path / "model"))
    assert stored.predict(X) == y and stored.training_log_.iterations == fitted.training_log_.iterations
