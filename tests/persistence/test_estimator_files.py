"""Classifiers and StructuredSVM in model files, with models of the library and of the user's own."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from importlib import import_module

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import maxmargin as mm
from maxmargin.costs import HammingCost
from maxmargin.estimators import registry
from maxmargin.models.hmm import HMM
from maxmargin.solvers.presets import SOLVERS
from persistence.forging import forge, forge_tensor, plain

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 5)) + np.repeat(np.eye(3, 5), 20, axis=0) * 3
NAMES = np.repeat(["ant", "bee", "cat"], 20)


CLASSIFIERS = {
    "text": (POINTS, NAMES, {}),
    "numbers": (POINTS, np.repeat([7, -2, 5], 20), {"fit_intercept": False, "C": 0.1}),
    "floats": (POINTS, np.repeat([1.0, -2.0, 5.0], 20), {"loss": "squared_hinge"}),
    "flags": (POINTS[:40], np.repeat([True, False], 20), {"intercept_scaling": 3.0}),
    "objects": (POINTS, NAMES.astype(object), {"cost": {"ant": 2.0}, "class_weight": {"bee": 3.0}}),
    "sparse": (sp.csr_array(np.where(POINTS > 1, POINTS, 0)), NAMES, {"positive": [0, 2]}),
    "function": (POINTS, NAMES, {"cost": lambda a, b: 2.0 * (a != b), "solver": mm.BCFW(sampling="gap")}),
}


@pytest.mark.found("C: saving MulticlassClassifier and StructuredSVM")
@pytest.mark.parametrize("case", CLASSIFIERS)
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_classifiers(tmp_path, case, precision):
    X, y, options = CLASSIFIERS[case]
    model = mm.MulticlassClassifier(**options).fit(X, y)
    path = model.save(tmp_path / "m", precision)
    for loaded in (mm.load(path), mm.MulticlassClassifier.load(path)):
        assert loaded.classes_.dtype == model.classes_.dtype and loaded.classes_.tolist() == model.classes_.tolist()
        assert loaded.predict(X).dtype == model.predict(X).dtype
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        rounding = 0 if precision == "float64" else 1e-6
        for name in ("coef_", "intercept_"):
            np.testing.assert_allclose(getattr(loaded, name), getattr(model, name), rtol=rounding, atol=rounding)
        np.testing.assert_allclose(loaded.decision_function(X), model.decision_function(X), rtol=0, atol=rounding * 9)
        assert loaded.n_features_in_ == 5 and not hasattr(loaded, "feature_names_in_")
        assert loaded.certificate_ == model.certificate_ and loaded.seconds_ == model.seconds_
    assert loaded.save(tmp_path / "again", precision).read_bytes() == path.read_bytes()
    np.testing.assert_allclose(loaded.fit(X, y).weights_, model.weights_)


def test_names_of_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(POINTS, columns=list("vwxyz"))
    model = mm.MulticlassClassifier(positive=["w"]).fit(frame, NAMES)
    loaded = mm.load(model.save(tmp_path / "m"))
    assert loaded.feature_names_in_.tolist() == list("vwxyz") and loaded.feature_names_in_.dtype == object
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"v": "u"}))


@pytest.mark.parametrize(
    ("part", "change", "words"),
    [
        ("layout", lambda f: f.update(labels=["ant", "bee"]), "'cost' has dtype float64"),
        ("layout", lambda f: f.update(labels=["ant", "bee", "dog"]), "classes are not the labels"),
        ("layout", lambda f: f.update(n_dense=2**31), "'n_dense' must be a whole number"),
        ("layout", lambda f: f.update(n_dense=6), "weights where its layout needs|one bit for each"),
        ("layout", lambda f: f.update(intercept_scaling=0.0), "'intercept_scaling' must be a finite number"),
        ("layout", lambda f: f.update(intercept_scaling={"$float": "nan"}), "'intercept_scaling' must be a finite"),
        ("layout", lambda f: f.update(intercept="yes"), "'intercept' must be true or false"),
        ("fitted", lambda f: f.update(feature_names_in=["a"]), "names of features are not 5 texts"),
        ("fitted", lambda f: f.update(feature_names_in=[1] * 5), "names of features are not 5 texts"),
        ("fitted", lambda f: f.pop("classes"), "'classes' is missing"),
        ("parameters", lambda f: f.update(intercept_scaling=True), "'intercept_scaling' must be a number, got 'True'"),
        ("parameters", lambda f: f.update(cost={"$object": ["Chain", {"depth": 1}]}), "depth"),
        ("parameters", lambda f: f.update(solver={"$object": ["SequenceTagger", {}]}), "unknown kind"),
    ],
)
def test_forged_classifiers_are_refused(tmp_path, part, change, words):
    path = mm.MulticlassClassifier().fit(POINTS, NAMES).save(tmp_path / "m")
    with pytest.raises(ValueError, match=rf"m cannot be loaded: .*({words})"):
        mm.load(forge(path, part, change))


def test_forged_weights_are_refused(tmp_path):
    path = mm.MulticlassClassifier().fit(POINTS, NAMES).save(tmp_path / "m")
    for spoil, words in ((lambda a: a * np.nan, "NaN"), (lambda a: a[1:], "weights where its layout")):
        whole = path.read_bytes()
        with pytest.raises(ValueError, match=words):
            mm.load(forge_tensor(path, "weights", spoil))
        path.write_bytes(whole)
    with pytest.raises(ValueError, match="needs no model; leave model= out"):
        mm.load(path, model=mm.Chain())


# --- StructuredSVM with models of the library -------------------------------------------------------------------------

SEQUENCES = [np.eye(4)[[0, 1, 2]], np.eye(4)[[2, 2]], np.eye(4)[[1, 0, 0, 2]]]
LABELS = [["a", "b", "c"], ["c", "c"], ["b", "a", "a", "c"]]
MASKS = [np.pad(np.ones((2, 3), int), 1), np.pad(np.ones((1, 2), int), ((2, 1), (1, 2)))]
PIXELS = [{"node": np.stack([m * 2.0 - 1, np.ones(m.shape)], -1), "edge": np.ones((2, *m.shape, 1))} for m in MASKS]
GRAPHS = [{"node": np.eye(3)[[0, 1, 1]], "edges": [[0, 1], [1, 2]]}, {"node": np.eye(3)[[2, 2]], "edges": [[0, 1]]}]
NODES = [["a", "b", "b"], ["c", "c"]]

MODELS = {
    "chain": (mm.Chain(ends=True), SEQUENCES, LABELS),
    "observed chain": (mm.Chain(weights="observed"), [sp.csr_array(x) for x in SEQUENCES], LABELS),
    "chain, cost": (mm.Chain(cost=lambda a, b: 3.0 * (a != b), constraints=[("c", "a")]), SEQUENCES, LABELS),
    "multiclass": (mm.Multiclass(fit_intercept=True, cost=HammingCost()), POINTS, NAMES.tolist()),
    "chain, numbers of numpy": (mm.Chain(ends=np.bool_(True), cost=HammingCost(normalize=1)), SEQUENCES, LABELS),
    "grid": (mm.Grid(np.int64(4), boundary=np.float32(0.5)), PIXELS, MASKS),
    "graph": (mm.Graph("potts", cost=lambda a, b: 2.0 * (a != b)), GRAPHS, NODES),
}


def test_a_forged_label_to_ignore_is_refused(tmp_path):
    path = mm.GraphLabeler(ignore="x").fit(GRAPHS, NODES).save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"its 'ignore' must be text, a number, None, or a tuple of them"):
        mm.load(forge(path, "layout", lambda f: f.update(ignore=["a", "b"])))


@pytest.mark.found("C: saving MulticlassClassifier and StructuredSVM")
@pytest.mark.parametrize("case", MODELS)
def test_compiled_models(tmp_path, case):
    model, X, Y = MODELS[case]
    svm = mm.StructuredSVM(model, C=2.0, positive=None, formulation=mm.MarginRescaling(loss="squared_hinge")).fit(X, Y)
    path = svm.save(tmp_path / "m")
    for loaded in (mm.load(path), mm.StructuredSVM.load(path), mm.StructuredSVM.load(path, model=model)):
        np.testing.assert_array_equal(loaded.weights_, svm.weights_)
        np.testing.assert_array_equal(loaded.coef_, svm.coef_)
        for ours, theirs in zip(svm.predict(X), loaded.predict(X), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert loaded.score(X, Y) == svm.score(X, Y) and loaded.certificate_ == svm.certificate_
        assert type(loaded.model) is type(model) and repr(loaded.formulation) == repr(svm.formulation)
    again = mm.load(path).fit(X, Y)
    np.testing.assert_allclose(again.weights_, svm.weights_, atol=1e-9)


def test_a_model_and_the_layout_of_another_are_refused(tmp_path):
    paths = {}
    for name in ("chain", "multiclass", "grid", "graph"):
        model, X, Y = MODELS[name]
        paths[name] = mm.StructuredSVM(model).fit(X, Y).save(tmp_path / name)
    with pytest.raises(ValueError, match="its layout is a ChainLayout, which a Grid cannot have"):
        mm.StructuredSVM.load(paths["chain"], model=mm.Grid())
    forge(paths["grid"], "parameters", lambda f: f.update(model={"$object": ["Chain", {}]}))
    with pytest.raises(ValueError, match="its layout is a GridLayout, which a Chain cannot have"):
        mm.load(paths["grid"])
    with pytest.raises(ValueError, match="not the model that it was trained with"):
        mm.StructuredSVM.load(paths["graph"], model=Nearest(3))
    forge(paths["multiclass"], "parameters", lambda f: f.update(model={"$object": ["Popen", {"args": "ls"}]}))
    with pytest.raises(ValueError, match="an object of the unknown kind 'Popen'"):
        mm.load(paths["multiclass"])


# --- and of the user's own --------------------------------------------------------------------------------------------


class Nearest:
    """One weight vector per class; the number of weights does not depend on the examples."""

    def __init__(self, classes: int) -> None:
        self.classes = classes

    def n_weights(self, X: object, Y: object) -> int:
        return 5 * self.classes

    def joint_features(self, x: np.ndarray, y: int) -> np.ndarray:
        phi = np.zeros((self.classes, 5))
        phi[y] = x
        return phi.ravel()

    def cost(self, y_true: int, y: int) -> float:
        return float(y_true != y)

    def argmax(self, x: np.ndarray, w: np.ndarray, y_true: int | None = None, cost_weight: float = 0.0) -> int:
        scores = w.reshape(self.classes, 5) @ x
        if y_true is not None:
            scores = scores + cost_weight * (np.arange(self.classes) != y_true)
        return int(np.argmax(scores))


class Counted(Nearest):
    """The number of weights is that of the data, and without data there is none, or a wrong one."""

    def n_weights(self, X: list, Y: list) -> int:
        return 5 * max(Y, default=0) + 5


class Failing(Nearest):
    def n_weights(self, X: list, Y: list) -> int:
        return len(X[0]) * self.classes


CODES = np.repeat([0, 1, 2], 20).tolist()


class Grid(Nearest):
    """Of the same name as a model of the library."""


@pytest.mark.found("C: saving MulticlassClassifier and StructuredSVM")
@pytest.mark.parametrize("kind", [Nearest, Counted, Failing, Grid])
def test_own_models(tmp_path, kind):
    svm = mm.StructuredSVM(kind(3), C=0.5).fit(list(POINTS), CODES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is missing that is not asked for at loading
        path = svm.save(tmp_path / "m")
    for load in (mm.load, mm.StructuredSVM.load):
        loaded = load(path, model=kind(3))
        assert loaded.predict(list(POINTS)) == svm.predict(list(POINTS)) and loaded.C == 0.5
        np.testing.assert_array_equal(loaded.coef_, svm.coef_)
        words = rf"model of the user's own, .*{kind.__name__}; give it again: StructuredSVM.load\(path, model="
        with pytest.raises(ValueError, match=words):
            load(path)
        with pytest.raises(ValueError, match="instead of an object of it"):
            load(path, model=kind)
        with pytest.raises(ValueError, match="a Chain without n_weights"):
            load(path, model=mm.Chain())
    np.testing.assert_allclose(loaded.fit(list(POINTS), CODES).weights_, svm.weights_)
    if kind is Nearest:
        with pytest.raises(ValueError, match="it has 15 weights and the model given has 20"):
            mm.load(path, model=kind(4))


def test_the_class_of_a_model_is_only_for_people(tmp_path):
    """Nothing is imported or run because of a name in a file."""
    path = mm.StructuredSVM(Nearest(3)).fit(list(POINTS), CODES).save(tmp_path / "m")
    assert "Nearest" in plain(path)[0]["layout"]
    forge(path, "layout", lambda f: f.update(model="antigravity.Popen"))
    code = f"import sys, maxmargin\ntry: maxmargin.load({str(path)!r})\nexcept ValueError as e: print(e)\n"
    code += "print('antigravity' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    shown = run.stdout
    assert "antigravity.Popen; give it again" in shown and shown.endswith("False\n")
    for count, words in ((0, "'n_weights' must be a whole number"), (14, "model given has 15"), ("x", "'n_weights'")):
        forge(path, "layout", lambda f, count=count: f.update(n_weights=count))
        with pytest.raises(ValueError, match=words):
            mm.load(path, model=Nearest(3))


def test_compiled_models_that_files_do_not_know(tmp_path):
    class Own(mm.Chain):
        pass

    svm = mm.StructuredSVM(Own()).fit(SEQUENCES, LABELS)
    path = svm.save(tmp_path / "m")
    with pytest.raises(ValueError, match="does not hold its model; give it again"):
        mm.load(path)
    assert mm.StructuredSVM.load(path, model=Own()).predict(SEQUENCES) == svm.predict(SEQUENCES)

    class Both(Nearest):
        def bind(self, X, Y=None, *, layout=None):
            raise AssertionError("not asked")

    X, Y = [np.eye(5)[k] for k in range(3)], [0, 1, 2]
    path = mm.StructuredSVM(Nearest(3)).fit(X, Y).save(tmp_path / "own")
    assert mm.StructuredSVM.load(path, model=Nearest(3)).predict(X) == Y
    with pytest.raises(ValueError, match="a PythonLayout, which a Both cannot have; it is not the model"):
        mm.StructuredSVM.load(path, model=Both(3))
    assert not hasattr(HMM, "n_weights")  # it has a bind of its own, and log-probabilities for weights


@pytest.mark.parametrize("kind", ["StructuredSVM", "MulticlassClassifier"])
def test_only_fitted_estimators_are_saved(tmp_path, kind):
    with pytest.raises(NotFittedError):
        (mm.StructuredSVM(Nearest(3)) if kind == "StructuredSVM" else mm.MulticlassClassifier()).save(tmp_path / "m")


def test_files_can_name_every_solver():
    """The registry names modules, so that a file loads without them."""
    for kind in SOLVERS.values():
        assert registry.KINDS[kind.__name__].module == kind.__module__
    for name, kind in registry.KINDS.items():
        assert name in vars(import_module(kind.module)), name


@pytest.mark.parametrize(
    "forged", [[], {"pass": [1.0]}, {name: ["x"] for name in ("pass", "seconds", "primal", "dual")}]
)
def test_a_forged_history_is_refused(tmp_path, forged):
    path = mm.MulticlassClassifier().fit(POINTS, NAMES).save(tmp_path / "m")
    forge(path, "training", lambda facts: facts.update(history=forged))
    with pytest.raises(ValueError, match="history"):
        mm.load(path)


def test_a_file_without_history_loads(tmp_path):
    path = mm.MulticlassClassifier().fit(POINTS, NAMES).save(tmp_path / "m")
    forge(path, "training", lambda facts: facts.pop("history"))
    assert "history_" not in vars(mm.load(path))


def test_forged_seconds_without_a_total_are_refused(tmp_path):
    path = mm.MulticlassClassifier().fit(POINTS, NAMES).save(tmp_path / "m")
    forge(path, "training", lambda facts: facts["seconds"].pop("total"))
    with pytest.raises(ValueError, match="its 'total' is missing"):
        mm.load(path)
