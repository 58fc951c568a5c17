"""Warm starts and checkpoints where something has changed in between: either right, or refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.callbacks.checkpoint import Checkpoint

RAMPS = ["cost_diminished", "best_output", "cost_diminished_vs_best", (2.0, -0.5)]


@pytest.fixture(scope="module")
def sequences():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(3, 4)) for _ in range(12)]
    return X, [[int(label) for label in rng.integers(0, 3, 3)] for _ in X]


@pytest.fixture(scope="module")
def symbols():
    rng = np.random.default_rng(1)
    X = [[int(symbol) for symbol in rng.integers(0, 4, 3)] for _ in range(12)]
    return X, [[(s if rng.random() < 0.6 else int(rng.integers(3))) % 3 for s in x] for x in X]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("after", RAMPS, ids=str)
@pytest.mark.parametrize("before", ["hinge", *RAMPS], ids=str)
def test_another_ramp(sequences, before, after):
    X, y = sequences
    first = {"loss": "hinge"} if before == "hinge" else {"loss": mm.Ramp(before)}
    tagger = mm.SequenceTagger(warm_start=True, **first).fit(X, y)
    try:
        tagger.set_params(loss=mm.Ramp(after)).fit(X, y)
    except ValueError as error:
        assert before != after and "set warm_start=False" in str(error)
        return
    # the objective at these weights, by a fit that only looks
    look = mm.SequenceTagger(loss=mm.Ramp(after, start=tagger.weights_), max_passes=1).fit(X, y)
    assert tagger.certificate_.primal == pytest.approx(look.certificate_.primal, rel=1e-6)


@pytest.mark.parametrize("after", [mm.Ramp("best_output"), mm.Ramp((2.0, -1.0)), "hinge"], ids=str)
def test_a_checkpoint_of_another_loss(sequences, tmp_path, after):
    X, y = sequences
    path = tmp_path / "run.npz"
    mm.SequenceTagger(loss="ramp", callbacks=[Checkpoint(path)]).fit(X, y)
    with pytest.raises(ValueError, match="resume"):
        mm.SequenceTagger(loss=after).fit(X, y, resume=path)


@pytest.mark.parametrize("after", [{"loss": "squared_hinge", "C": 0.5}, {"pull": 5.0}], ids=str)
def test_a_checkpoint_of_another_generative_objective(symbols, tmp_path, after):
    X, y = symbols
    path = tmp_path / "run.npz"
    mm.DiscriminativeHMM(C=1.0, callbacks=[Checkpoint(path)]).fit(X, y)
    with pytest.raises(ValueError, match="resume with"):
        mm.DiscriminativeHMM(**{"C": 1.0, **after}).fit(X, y, resume=path)


def test_examples_without_weight(symbols):
    X, y = symbols
    weight = np.array([0.0] + [1.0] * 11)
    model = mm.DiscriminativeHMM(C=0.5, loss=mm.Ramp(start="hinge"), tol=1e-4, warm_start=True)
    primal = model.fit(X, y, weight).certificate_.primal
    assert model.fit(X, y, weight).certificate_.primal <= primal * (1 + 1e-9)  # warm, from where it ended


def test_new_signs_in_a_warm_ramp(sequences):
    X, y = sequences
    tagger = mm.SequenceTagger(loss="ramp", warm_start=True, tol=1e-6).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        tagger.set_params(positive=["transition"], max_passes=2).fit(X, y)
    assert tagger.layout_.groups(tagger.weights_)["transition"].min() >= 0.0
    assert tagger.certificate_.primal >= tagger.certificate_.dual


def test_other_groups_are_refused(sequences):
    X, y = sequences
    tagger = mm.SequenceTagger(solver=mm.FrankWolfe(), warm_start=True, max_passes=12)
    with pytest.warns(ConvergenceWarning):
        tagger.fit(X, y)
    tagger.set_params(solver=mm.SimplicialDecomposition("one", working_set=6))
    with pytest.raises(ValueError, match="same blocks"):
        tagger.fit(X, y)


def test_a_warm_start_keeps_what_its_own_solver_keeps(sequences):
    X, y = sequences
    tagger = mm.SequenceTagger(solver=mm.BCFW(), warm_start=True, max_passes=50, tol=1e-7)
    with pytest.warns(ConvergenceWarning):
        tagger.fit(X, y)
    tagger.set_params(solver=mm.BCFW(steps="pairwise"), max_passes=2000).fit(X, y)
    assert tagger.status_.code == "converged"


def test_the_path_is_not_for_log_probabilities(symbols):
    with pytest.raises(
        ValueError,
        match=r"needs the regulariser .*, which DiscriminativeHMM does not offer; fit with warm_start=True at each C",
    ):
        mm.regularisation_path(mm.DiscriminativeHMM(), *symbols, C_min=0.1, C_max=1.0)


class Interrupted:
    """A sign for each vector; Ctrl-C arrives with the 100th question."""

    def __init__(self):
        self.calls = 0

    def n_weights(self, X, Y):
        return 3

    def joint_features(self, x, y):
        return 0.5 * y * x

    def cost(self, y_true, y):
        return float(y_true != y)

    def argmax(self, x, w, y_true=None, cost_weight=0.0):
        self.calls += 1
        if self.calls == 100:
            raise KeyboardInterrupt
        return max((-1, 1), key=lambda y: 0.5 * y * (w @ x) + cost_weight * (y != y_true))


def test_an_interrupt_in_the_hinge_fit_that_a_ramp_starts_from_ends_both():
    model = Interrupted()
    rng = np.random.default_rng(0)
    X, y = list(rng.normal(size=(30, 3))), list(rng.choice([-1, 1], 30))
    svm = mm.StructuredSVM(model, loss=mm.Ramp(start="hinge"), tol=1e-12, n_jobs=1)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        svm.fit(X, y)
    assert svm.status_.code == "interrupted" and np.isfinite(svm.certificate_.gap)
    assert model.calls <= 100 + 6 * len(X)  # certificates only
