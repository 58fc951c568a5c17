"""A ramp in ``loss``: its parameters in clones, searches and files, and one meaning in estimators and formulations."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import maxmargin as mm
from maxmargin.estimators import model_files, registry
from maxmargin.estimators.registry import RENAMED

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(RNG.integers(2, 6), 3)) for _ in range(24)]
Y = [["abc"[k] for k in x.argmax(axis=1)] for x in X]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_a_name_is_the_default_ramp():
    named, given = (mm.SequenceTagger(loss=loss).fit(X, Y) for loss in ("ramp", mm.Ramp()))
    np.testing.assert_array_equal(named.weights_, given.weights_)


def test_a_formulation_brings_its_rounds_along():
    ramp = mm.Ramp("best_output", max_rounds=2, passes_per_round=1)
    as_loss = mm.StructuredSVM(mm.Chain(), loss=ramp).fit(X, Y)
    as_formulation = mm.StructuredSVM(mm.Chain(), formulation=ramp).fit(X, Y)
    np.testing.assert_array_equal(as_loss.weights_, as_formulation.weights_)
    assert len(as_loss.rounds_) == 2 and as_loss.status_.code == "max_rounds"


def test_clones_and_searches():
    first = mm.SequenceTagger(max_passes=2).fit(X, Y)
    ramp = mm.SequenceTagger(loss=mm.Ramp(start=first))
    twin = clone(ramp).set_params(loss__max_rounds=3)
    assert twin.loss.start is first and "weights_" in vars(twin.loss.start)
    assert (twin.loss.max_rounds, ramp.loss.max_rounds) == (3, None)
    search = GridSearchCV(ramp, {"loss__max_rounds": [1, 2], "loss__ramp": ["best_output", (2.0, -1.0)]}, cv=2).fit(
        X, Y
    )
    assert search.best_estimator_.loss.start is first and ramp.loss.ramp == "cost_diminished"
    for params in search.cv_results_["params"]:
        assert set(params) == {"loss__max_rounds", "loss__ramp"}
    alone = mm.Ramp(convex=mm.MarginRescaling())
    assert clone(alone).convex is not alone.convex and repr(mm.Ramp(max_rounds=2)) == "Ramp(max_rounds=2)"


def test_files(tmp_path):
    first = mm.SequenceTagger(max_passes=2).fit(X, Y)
    for start, kept in (("hinge", "hinge"), (first.weights_, first.weights_), (first, "zero")):
        fitted = mm.SequenceTagger(loss=mm.Ramp("best_output", start, 3, 5.0)).fit(X, Y)
        loaded = mm.load(fitted.save(tmp_path / "ramp.mm"))
        assert (loaded.loss.ramp, loaded.loss.max_rounds, loaded.loss.passes_per_round) == ("best_output", 3, 5.0)
        np.testing.assert_array_equal(loaded.loss.start, kept)
        assert fitted.loss.start is start  # saving changes nothing
        assert loaded.predict(X) == fitted.predict(X)


@pytest.mark.parametrize("kind", sorted(RENAMED))
def test_former_names(kind):
    """Every former name is gone from its class, and what it is called now is there."""
    cls = model_files._known(kind, registry.KINDS[kind].role)
    now = set(cls(mm.Chain()).get_params(deep=False) if kind == "StructuredSVM" else cls().get_params(deep=False))
    for old, new in RENAMED[kind].items():
        assert old == new or old not in now
        assert new is None or new in now or new.removeprefix("loss__") in mm.Ramp().get_params()


def test_former_parameters_of_a_ramp():
    old = {"C": 2.0, "ramp": "best_output", "start": "hinge", "max_rounds": 5, "passes_per_round": None}
    ramp = model_files._renamed("SequenceTagger", old | {"loss": "ramp"})
    assert ramp.pop("loss").get_params() == mm.Ramp("best_output", "hinge", 5).get_params()
    assert ramp == {"C": 2.0}
    assert model_files._renamed("SequenceTagger", old | {"loss": "hinge"}) == {"C": 2.0, "loss": "hinge"}


@pytest.mark.parametrize("name", ["ramp", "start", "max_rounds", "passes_per_round"])
@pytest.mark.parametrize("cls", [mm.SequenceTagger, mm.MulticlassClassifier, mm.DiscriminativeHMM, mm.GraphLabeler])
def test_estimators_have_no_such_parameters(cls, name):
    with pytest.raises(TypeError, match=name):
        cls(**{name: None})
