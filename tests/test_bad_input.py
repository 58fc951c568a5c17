"""What a user may hand over by mistake, and what is told to them; and Ctrl-C."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import maxmargin as mm
from maxmargin.callbacks import Callback
from maxmargin.features.sequences import Sequences
from reference.problems import chain_planes
from reference.qp import solve_primal

SOLVERS = ("auto", "simplicial", "sequential_dual", "bcfw", "frank_wolfe", "cutting_plane")


def examples(n=6, F=3, seed=0):
    """n sequences of 2 to 4 tokens with labels a, b, c."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(2, 5), F)) for _ in range(n)]
    return X, [["abc"[k] for k in rng.integers(0, 3, len(x))] for x in X]


X, Y = examples()


def put(items, i, item):
    """The list with one item replaced."""
    return [*items[:i], item, *items[i + 1 :]]


def with_value(i, token, value):
    x = X[i].copy()
    x[token, 0] = value
    return put(X, i, x)


def tagger(**params):
    return mm.SequenceTagger(**params)


# --- refused, with a message that says what to do -------------------------------------------------------------------

DATA = {
    "empty": (ValueError, [], [], r"X is empty; at least one sequence is needed"),
    "all empty": (ValueError, [np.zeros((0, 3))], [[]], r"at least one token with a label is needed"),
    "lengths": (ValueError, X, Y[:-1], r"X has 6 sequences and Y has 5; they must agree"),
    "tokens": (ValueError, X, put(Y, 4, Y[4][:-1]), r"example 4 has \d tokens and \d labels; they must agree"),
    "NaN": (ValueError, with_value(3, 1, np.nan), Y, r"sequence 3 .*dense features \(position 1\); replace or remove"),
    "inf": (ValueError, with_value(2, 0, np.inf), Y, r"sequence 2 .*dense features \(position 0\); replace or remove"),
    "NaN, sparse": (
        ValueError,
        [sp.csr_array(x) for x in with_value(5, 1, np.nan)],
        Y,
        r"sequence 5 .*sparse features \(position 1\); replace or remove",
    ),
    "NaN, edge": (
        ValueError,
        [{"dense": np.ones_like(x), "edge": x[1:]} for x in with_value(1, 1, np.nan)],
        Y,
        r"sequence 1 .*edge features \(position 1\); replace or remove",
    ),
    "NaN, Sequences": (
        ValueError,
        Sequences(np.array([0, 2, 3]), dense=np.array([[1.0], [2.0], [np.nan]])),
        [["a", "b"], ["a"]],
        r"sequence 1 .*dense features \(position 0\)",
    ),
    "text features": (ValueError, put(X, 1, X[1].astype(str)), Y, r"sequence 1: features must be numbers.*encode"),
    "object features": (ValueError, put(X, 1, X[1].astype(object)), Y, r"sequence 1: .*got dtype object; encode"),
    "complex": (ValueError, put(X, 1, X[1] + 1j), Y, r"sequence 1: features must be numbers, got dtype complex"),
    "rows of different lengths": (ValueError, put(X, 1, [[1, 2, 3], [1, 2]]), Y, r"sequence 1: .*rows of equal length"),
    "1-D sequence": (ValueError, put(X, 1, X[1][:, 0]), Y, r"sequence 1: .*\(length, n_features\) matrix"),
    "1-D": (ValueError, np.zeros(6), Y, r"sequence 0: features must be a \(length, n_features\) matrix"),
    "2-D": (ValueError, np.zeros((6, 3)), Y, r"a list of sequences is needed. For a single sequence pass \[X\]"),
    "text": (TypeError, "abc", Y, r"a list of (sequences|sentences), each.*got str"),
    "None": (TypeError, None, Y, r"X must be a list of sequences.*got NoneType"),
    "one matrix": (TypeError, sp.eye_array(3, format="csr"), Y, r"X must be a list of sequences.*got csr_array"),
    "ragged widths": (
        ValueError,
        put(X, 2, np.zeros((len(Y[2]), 5))),
        Y,
        r"sequence 2 has 5 dense features, sequence 0 has 3",
    ),
    "sparse among dense": (ValueError, put(X, 2, sp.csr_array(X[2])), Y, r"features are missing in sequence 0; give"),
    "edge rows": (
        ValueError,
        [{"dense": X[0], "edge": np.ones((7, 1))}],
        Y[:1],
        rf"sequence 0 has {len(X[0])} tokens and 7 rows of edge features; give {len(X[0]) - 1}\.",
    ),
    "unknown part": (ValueError, [{"features": X[0]}], Y[:1], r"sequence 0 has the keys.*use 'sparse' and/or 'dense'"),
    "no labels": (ValueError, X, None, r"y is None: give the outputs of the examples"),
    "flat labels": (TypeError, X, [1] * 6, r"example 0: 1 is not a sequence of labels; give a list"),
    "unhashable label": (TypeError, X, put(Y, 2, [["u"]] * len(X[2])), r"labels must be hashable \(text, numbers, tu"),
    "NaN label": (ValueError, X, put(Y, 2, [np.nan] * len(X[2])), r"example 2 has the label nan; give the token a l"),
}


@pytest.mark.parametrize("case", DATA)
def test_refused_examples(case):
    kind, features, labels, message = DATA[case]
    with pytest.raises(kind, match=message):
        tagger().fit(features, labels)


SD, CP = mm.SimplicialDecomposition, mm.CuttingPlane
PARAMETERS = [
    ({"C": -1}, ValueError, r"C must be a finite number >= 0, got -1"),
    ({"C": np.nan}, ValueError, r"C must be a finite number >= 0, got nan"),
    ({"C": np.inf}, ValueError, r"C must be a finite number >= 0, got inf"),
    ({"C": "1"}, ValueError, r"C must be a finite number >= 0, got '1'"),
    ({"C": None}, ValueError, r"C must be a finite number >= 0, got None"),
    ({"loss": "hinged"}, ValueError, r"loss must be one of hinge, squared_hinge, or .* ramp; got 'hinged'"),
    ({"cost": "hinge"}, ValueError, r"cost 'hinge' is not known; use 'hamming', a matrix, a mapping, a function"),
    ({"cost": np.eye(3) - 1}, ValueError, r"cost -1.0 on label 'b' where 'a' is true;.*not negative. Correct that"),
    ({"cost": np.ones((3, 3))}, ValueError, r"the cost of the true label must be 0. Correct that entry"),
    ({"cost": np.ones((2, 2))}, ValueError, r"has 2 rows for 3 classes; give one row for each class"),
    ({"cost": np.ones((2, 3))}, ValueError, r"shape \(2, 3\); give one row and one column for each label"),
    ({"cost": np.full((3, 3), np.nan)}, ValueError, r"Correct that entry"),
    ({"cost": lambda true, label: "x"}, ValueError, r"cost function returned 'x'.*must return a number"),
    ({"cost": mm.HammingCost}, TypeError, r"cost is the class HammingCost; give an instance of it: HammingCost\("),
    ({"class_weight": "even"}, ValueError, r'class_weight must be a mapping of labels to weights or "balanced"'),
    ({"class_weight": {"a": -1}}, ValueError, r"class_weight of 'a' is -1; weights must be finite and not negative"),
    ({"weights": "some"}, ValueError, r'weights must be "all" or "observed", got \'some\''),
    ({"weights": "observed"}, ValueError, r'needs sparse features; these are dense. Use weights="all"'),
    ({"constraints": "boi"}, ValueError, r"constraint 'boi' is not known; use 'bio', 'iobes', forbidden pairs"),
    ({"constraints": "bio"}, ValueError, r"label 'a' does not fit the tag scheme 'bio'.*rename the label"),
    ({"constraints": [("a", "z")]}, ValueError, r"names 'z', which is not a class; the classes are 'a', 'b', 'c'"),
    ({"constraints": np.ones((2, 2), bool)}, ValueError, r"give booleans of shape \(3, 3\)"),
    ({"classes": ["a", "b"]}, ValueError, r"example 0 has the label 'c', which is not among.*Pass classes="),
    ({"classes": ["a", "a", "b", "c"]}, ValueError, r"classes has the same label twice"),
    ({"cost": 1e200 * (1 - np.eye(3))}, ValueError, r"costs must be at most 1e\+100"),
    ({"classes": ["a", ["b"], "c"]}, ValueError, r"classes has \"\['b'\]\", which is no label"),
    (
        {"positive": "emissions"},
        ValueError,
        r"positive names 'emissions'; the weights are dense, transition, emission\.",
    ),
    ({"positive": np.ones(3, bool)}, ValueError, r"positive has shape \(3,\); the model has 18 weights"),
    ({"solver": "sdm"}, ValueError, r"solver must be one of auto, simplicial.*or a solver object; got 'sdm'"),
    ({"solver": 3}, TypeError, r"solver must be one of auto, .*, or a solver object; got 3"),
    ({"solver": mm.BCFW}, TypeError, r"got the class BCFW: write BCFW\(\)"),
    ({"tol": -1e-3}, ValueError, r"tol must be a relative duality gap >= 0, got -0.001"),
    ({"tol": 10**400}, ValueError, r"tol must be a relative duality gap >= 0, got 1000"),
    ({"tol": np.nan}, ValueError, r"tol must be a relative duality gap >= 0, got nan"),
    ({"tol": "small"}, ValueError, r"tol must be a relative duality gap >= 0, got 'small'"),
    ({"max_passes": 0}, ValueError, r"max_passes must be a positive number or None, got 0"),
    ({"max_passes": np.nan}, ValueError, r"max_passes must be a positive number or None, got nan"),
    ({"max_oracle_calls": -1}, ValueError, r"max_oracle_calls must be a positive number or None, got -1"),
    ({"max_seconds": "1s"}, ValueError, r"max_seconds must be a positive number or None, got '1s'"),
    ({"n_jobs": 0}, ValueError, r"n_jobs must be a whole number, not 0; got 0. Use None or 1 for one worker"),
    ({"n_jobs": 1.5}, ValueError, r"n_jobs must be a whole number, not 0; got 1.5"),
    ({"n_jobs": "all"}, ValueError, r"n_jobs must be a whole number.*got 'all'. .*-1 for all cores"),
    ({"callbacks": 3}, TypeError, r"callbacks must be a list of maxmargin.callbacks.Callback objects, got 3"),
    ({"callbacks": [print]}, TypeError, r"callbacks must be a list of maxmargin.callbacks.Callback objects"),
    ({"solver": SD(blocks="two")}, ValueError, r'blocks must be "one" or "product", got \'two\''),
    ({"solver": SD(limit=0)}, ValueError, r'limit must be at least 1, None or "auto"; got 0'),
    ({"solver": SD(limit="many")}, ValueError, r'limit must be at least 1, None or "auto"; got \'many\''),
    ({"solver": SD(limit=1.5)}, ValueError, r"limit must be a whole number >= 1, got 1.5"),
    ({"solver": SD(working_set=0)}, ValueError, r"working_set must be at least 1 example, got 0"),
    ({"solver": SD(working_set=2, selection="x")}, ValueError, r"selection must be one of cyclic, .*whole.*got 'x'"),
    ({"solver": SD(master="admm")}, ValueError, r'master must be "smo", "newton" or "auto", got \'admm\''),
    ({"solver": SD(memory=-1)}, ValueError, r"memory must be a whole number >= 1, got -1"),
    ({"solver": SD(memory=1000)}, MemoryError, r"more than the budget.*Raise the solver's memory, or use fewer exam"),
    ({"solver": CP("two")}, ValueError, r'slack must be "one" or "n", got \'two\''),
    ({"solver": CP(patience=-1)}, ValueError, r"patience must be a whole number >= 0, got -1"),
    ({"solver": mm.BCFW(sampling="x")}, ValueError, r"selection must be one of cyclic, .*got 'x'"),
    ({"solver": mm.BCFW(steps="x")}, ValueError, r"""steps must be "toward" or "pairwise", got 'x'"""),
    ({"solver": mm.BCFW(certificate_every=-1)}, ValueError, r"certificate_every must be a number >= 0, got -1"),
    ({"solver": mm.SequentialDual(tau=-1)}, ValueError, r"tau must be a number >= 0, got -1"),
    ({"solver": mm.Auto(batch=0)}, ValueError, r"batch must be a whole number >= 1, got 0"),
    ({"solver": mm.Auto(parts=0)}, ValueError, r"parts must be a whole number >= 1, got 0"),
    ({"solver": mm.Auto(visits=-1)}, ValueError, r"visits must be a number >= 0, got -1"),
]


@pytest.mark.parametrize(
    ("params", "kind", "message"), PARAMETERS, ids=lambda p: re.sub(r" at 0x[0-9a-f]+", "", str(p))[:40] if p else None
)
def test_refused_parameters(params, kind, message):
    with pytest.raises(kind, match=message):
        tagger(**params).fit(X, Y)


WEIGHTS = [
    ([1, 1, 1, -1, 1, 1], r"sample_weight of example 3 is -1.0; weights must be finite and not negative"),
    ([1, np.nan, 1, 1, 1, 1], r"sample_weight of example 1 is nan"),
    ([1, 1, np.inf, 1, 1, 1], r"sample_weight of example 2 is inf"),
    ([1, 1], r"one entry per example, \(6,\); got shape \(2,\)"),
    (["heavy"] * 6, r"sample_weight must be numbers, one per example"),
    (np.zeros(6), r"the weights of all examples are zero; give at least one a positive sample"),
]


@pytest.mark.parametrize(("weights", "message"), WEIGHTS, ids=str)
def test_refused_sample_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        tagger().fit(X, Y, sample_weight=weights)


def test_given_labels_that_break_the_constraints_are_named():
    with pytest.raises(ValueError, match=r"example 1, position 2: the given label 'b' breaks.*Correct the labels, or"):
        tagger(constraints=[("a", "b")]).fit([np.eye(3)] * 2, [["b", "a", "c"], ["c", "a", "b"]])
    with pytest.raises(ValueError, match=r"example 0, position 0: the given label 'I-X' breaks"):
        tagger(constraints="bio", classes=["O", "B-X", "I-X"]).fit([np.eye(2)], [["I-X", "O"]])


def test_refused_at_prediction():
    fitted = tagger(constraints=[("a", "b")], classes=["a", "b", "c"]).fit([np.eye(3)], [["b", "a", "c"]])
    with pytest.raises(ValueError, match=r"X has 4 dense features a token; the model was fitted with 3"):
        fitted.predict([np.ones((2, 4))])
    with pytest.raises(ValueError, match=r"sequence 1 has NaN"):
        fitted.predict([np.eye(3), np.full((2, 3), np.nan)])
    with pytest.raises(ValueError, match=r"For a single sequence pass \[X\]"):
        fitted.predict(np.eye(3))
    with pytest.raises(ValueError, match=r"example 1: the constraints and fixed labels together allow no output; loo"):
        fitted.predict([np.eye(3)] * 2, fixed=[[None] * 3, ["a", "b", None]])
    with pytest.raises(ValueError, match=r"example 0 has the label 'z', which is not among the classes"):
        fitted.predict([np.eye(3)], fixed=[["z", None, None]])
    with pytest.raises(ValueError, match=r"X has 1 sequences and fixed has 2; they must agree"):
        fitted.predict([np.eye(3)], fixed=[None, None])
    with pytest.raises(ValueError, match=r"example 0 has 3 tokens and 1 fixed labels"):
        fitted.predict([np.eye(3)], fixed=[["a"]])
    with pytest.raises(ValueError, match=r"k must be a whole number >= 1, got 0"):
        fitted.predict_kbest([np.eye(3)], 0)
    with pytest.raises(ValueError, match=r"2 sequences and y_pred has 1"):
        fitted.score([np.eye(3)], [["a"] * 3] * 2)


@pytest.mark.parametrize("verb", ["predict", "predict_margin", "predict_marginals", "score", "coef_"])
def test_not_fitted(verb):
    estimators = [tagger(), mm.StructuredSVM(mm.Chain()), mm.MulticlassClassifier()]
    for estimator in estimators:
        if verb == "coef_":
            assert not hasattr(estimator, "coef_")
        elif hasattr(estimator, verb):
            with pytest.raises(NotFittedError, match=r"not fitted yet; call fit"):
                getattr(estimator, verb)(*([X, Y] if verb == "score" else [X]))


def test_offsets_that_the_kernels_could_not_trust():
    rows = np.ones((4, 2))
    for offsets, message in [
        ([0, 2, 5], r"one row for each of the 5 tokens; got shape \(4, 2\)"),
        ([1, 4], r"begin with 0"),
        ([0, 3, 2, 4], r"offsets must not fall, but sequence 1 goes from 3 to 2"),
        ([0.0, 4.0], r"offsets must be whole numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            Sequences(np.array(offsets), dense=rows)
    with pytest.raises(TypeError, match=r"sparse features must be a csr_array; make it with Sequences.of"):
        Sequences(np.array([0, 4]), sparse=sp.csc_array(rows))


# --- multiclass -----------------------------------------------------------------------------------------------------

MX, MY = np.random.default_rng(0).normal(size=(9, 3)), np.arange(9) % 3
MULTICLASS = {
    "lengths": (MX, MY[:-1], r"inconsistent numbers of samples: \[9, 8\]"),
    "NaN": (np.where(np.arange(27).reshape(9, 3) == 13, np.nan, MX), MY, r"example 4 has NaN or infinite features"),
    "NaN, sparse": (
        sp.csr_array(np.where(np.arange(27).reshape(9, 3) == 13, np.nan, MX)),
        MY,
        r"example 4 has NaN or infinite features",
    ),
    "1-D": (MX[:, 0], MY, r"Expected 2D array, got 1D array"),
    "empty": (MX[:0], MY[:0], r"0 sample"),
    "real labels": (MX, np.linspace(0, 1, 9), r"Unknown label type"),
    "text features": (MX.astype(str).astype(object) + "x", MY, r"could not convert string to float"),
}


@pytest.mark.parametrize("case", MULTICLASS)
def test_refused_multiclass_examples(case):
    features, labels, message = MULTICLASS[case]
    with pytest.raises(ValueError, match=message):
        mm.MulticlassClassifier().fit(features, labels)


def test_refused_by_the_multiclass_model_itself():
    """The model is used through StructuredSVM too, where scikit-learn does not check for it."""
    bad = MX.copy()
    bad[4, 1] = np.inf
    for features in (bad, sp.csr_array(bad)):
        with pytest.raises(ValueError, match=r"example 4 has NaN or infinite features; replace or remove"):
            mm.StructuredSVM(mm.Multiclass()).fit(features, MY)
    with pytest.raises(ValueError, match=r"X has 9 examples and Y has 8; they must agree"):
        mm.StructuredSVM(mm.Multiclass()).fit(MX, MY[:-1])
    with pytest.raises(ValueError, match=r"For a single example pass X\[None\]"):
        mm.StructuredSVM(mm.Multiclass()).fit(MX[0], MY[:1])


# --- a user's own model ---------------------------------------------------------------------------------------------


class Binary:
    """Two outputs, -1 and 1, with a switch for each kind of mistake."""

    def __init__(self, mistake=None, after=0):
        self.mistake, self.after, self.calls = mistake, after, 0

    def n_weights(self, X, Y):
        return 2

    def joint_features(self, x, y):
        phi = y * np.asarray(x) / 2
        return {"short": phi[:1], "nan": phi * np.nan}.get(self.mistake, phi)

    def cost(self, y_true, y):
        wrong = float(y_true != y)
        return {"negative": -wrong, "self": 1.0, "nan cost": np.nan}.get(self.mistake, wrong)

    def is_valid(self, x, y):
        return y in (-1, 1)

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        self.calls += 1
        if self.mistake == "interrupt" and self.calls > self.after:
            self.mistake = None
            raise KeyboardInterrupt
        if self.mistake == "illegal" and self.calls > 3:
            return 7
        if self.mistake == "none":
            return None
        sign = min if self.mistake == "worse" and self.calls > 3 else max
        return sign((-1, 1), key=lambda y: y * (w @ np.asarray(x)) / 2 + cost_weight * (y != y_true))


PX = [[1.0, 0.2], [-0.8, 0.1], [0.3, -1.0], [0.1, 0.9], [-0.2, -0.4]]
PY = [1, -1, 1, -1, 1]
MISTAKES = {
    "short": r"example \d: joint features have length 1 and n_weights is 2; they must agree",
    "nan": r"example \d: joint features have NaN or infinite values; they must be finite",
    "negative": r"example \d: cost returned -1.0; costs must be finite and not negative",
    "self": r"example \d: cost\(y_true, y_true\) is 1.0; the true output must cost 0",
    "nan cost": r"example \d: cost returned nan; costs must be finite and not negative",
    "illegal": r"example \d: argmax returned an illegal output, 7 \(is_valid says False\); search among valid",
    "none": r"example \d: argmax returned None; it must return an output",
    "worse": r"example \d: argmax returned an output that scores below the true one.*check_model"
    r"|weak duality is violated.*an argmax that misses the best output",
}


@pytest.mark.parametrize("solver", ["auto", "bcfw", "frank_wolfe"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_model_with_a_mistake(mistake, solver):
    with pytest.raises((ValueError, ArithmeticError), match=MISTAKES[mistake]):
        mm.StructuredSVM(Binary(mistake), solver=solver).fit(PX, PY)


def test_a_model_that_is_not_one():
    with pytest.raises(TypeError, match=r"without n_weights, joint_features, cost, argmax; a model is an object with"):
        mm.StructuredSVM(object()).fit(PX, PY)
    with pytest.raises(TypeError, match=r"the class Binary instead of an object of it"):
        mm.StructuredSVM(Binary).fit(PX, PY)
    with pytest.raises(ValueError, match=r"X has 5 examples and Y has 4; they must agree"):
        mm.StructuredSVM(Binary()).fit(PX, PY[:4])
    with pytest.raises(ValueError, match=r"X is empty; at least one example is needed"):
        mm.StructuredSVM(Binary()).fit([], [])


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------


class InterruptAt(Callback):
    def __init__(self, certificate):
        self.certificate = certificate

    def on_certificate(self, run):
        if len(run.history) == self.certificate:
            raise KeyboardInterrupt


@pytest.mark.parametrize("solver", SOLVERS)
def test_interrupted_by_hand_between_steps(solver):
    estimator = tagger(solver=solver, tol=1e-12, callbacks=[InterruptAt(2)])
    with pytest.warns(ConvergenceWarning, match=r"Interrupted.*the weights are consistent"):
        estimator.fit(X, Y)
    assert estimator.status_.code == "interrupted"
    assert len(estimator.history_) >= 2
    assert len(estimator.predict(X)) == len(X)
    codes = [["abc".index(label) for label in y] for y in Y]
    planes = chain_planes(X, codes, 3).planes
    best = solve_primal(planes, 1.0).objective
    assert estimator.certificate_.dual <= best * (1 + 1e-9) <= estimator.certificate_.primal * (1 + 2e-9)


@pytest.mark.parametrize("solver", ["auto", "simplicial", "bcfw", "sequential_dual", "frank_wolfe", "cutting_plane"])
@pytest.mark.parametrize("after", [0, 3, 7, 12])
def test_interrupted_by_hand_inside_a_step(solver, after):
    estimator = mm.StructuredSVM(Binary("interrupt", after), solver=solver, tol=0.0, max_passes=50)
    with pytest.warns(ConvergenceWarning, match=r"Interrupted after"):
        estimator.fit(PX, PY)
    assert estimator.status_.code == "interrupted"
    assert estimator.predict(PX) == [Binary().argmax(x, estimator.weights_) for x in PX]
    w = estimator.weights_
    primal = 0.5 * w @ w + sum(max(0.0, 1 - y * (w @ np.asarray(x))) for x, y in zip(PX, PY, strict=True))
    assert estimator.certificate_.certified and estimator.certificate_.gap >= -1e-12
    assert estimator.certificate_.primal == pytest.approx(primal, rel=1e-9)
