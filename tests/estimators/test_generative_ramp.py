"""The ramp of DiscriminativeHMM and DiscriminativeBayesNet: against enumeration, with wrong labels, and odd input."""

from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

import maxmargin as mm
from maxmargin import DiscriminativeBayesNet, DiscriminativeHMM, ProximalPoint, Ramp
from maxmargin.callbacks import Checkpoint
from reference.generative_ramp import next_minimum, ramp_objective
from reference.weather import EDGES, STATES, named, weather_codes

RAMPS = {"cost_diminished": (1.0, -1.0), "best_output": (1.0, 0.0), "cost_diminished_vs_best": (0.0, -1.0)}
K, V = 3, 4


def walk(n=12, length=4, seed=0, wrong=0.25):
    """A walk round a ring seen through noise; the first share of the sequences has states at random."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for i in range(n):
        state, x, y = int(rng.integers(K)), [], []
        for _ in range(length):
            state = int(rng.integers(K)) if rng.random() < 0.3 else (state + 1) % K
            y.append(state)
            x.append(int(rng.integers(V)) if rng.random() < 0.35 else state)
        X.append(x)
        Y.append([int(s) for s in rng.integers(0, K, length)] if i < wrong * n else y)
    return X, Y


X, Y = walk()
WORDS = {"classes": K, "symbols": V, "loss": "ramp", "C": 0.3, "tol": 1e-5}


def counts(x, y):
    """How often a sequence uses each entry of the tables."""
    found = np.zeros(K + K * K + K * V)
    for t, (symbol, state) in enumerate(zip(x, y, strict=True)):
        found[state if t == 0 else K + K * y[t - 1] + state] += 1
        if symbol is not None:
            found[K + K * K + V * state + symbol] += 1
    return found


def planes_of(X, Y, cost=lambda a, b: float(a != b), margin=1.0):
    """All other outputs of every sequence, (counts(truth) - counts(output), cost)."""
    planes = []
    for x, y in zip(X, Y, strict=True):
        others = [s for s in product(range(K), repeat=len(y)) if s != tuple(y)]
        A = np.array([counts(x, y) - counts(x, s) for s in others]).reshape(len(others), -1)
        planes.append((A, margin * np.array([sum(map(cost, y, s)) for s in others])))
    return planes


STARTS = np.concatenate([[0, K], K + K * np.arange(1, K + 1), K + K * K + V * np.arange(1, K + 1)])


def J(model, planes, weight=1.0):
    C = model.C * weight * np.ones(len(planes))
    return ramp_objective(
        planes,
        C,
        model.reference_,
        STARTS,
        model.weights_,
        *RAMPS[getattr(model.loss, "ramp", "cost_diminished")],
        model.pull,
    )


# --- against enumeration ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [ProximalPoint(), ProximalPoint(blocks="product", visits=3)], ids=str)
@pytest.mark.parametrize("ramp", RAMPS)
def test_a_hidden_markov_model_ends_in_a_stationary_point(ramp, solver):
    planes = planes_of(X, Y)
    C = 0.03 if ramp == "cost_diminished_vs_best" else 0.3  # a large C makes all outputs alike, where that one is 0
    model = DiscriminativeHMM(**WORDS | {"C": C, "loss": Ramp(ramp)}, solver=solver).fit(X, Y)
    assert model.status_.converged and model.certificate_.certified
    value = J(model, planes)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-9)
    data = planes, np.full(len(X), C), model.reference_, STARTS
    following, _ = next_minimum(*data, model.weights_, *RAMPS[ramp])
    assert following == pytest.approx(value, rel=2e-5)
    objectives = model.rounds_["objective"].tolist()
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(objectives))
    assert model.rounds_["concave"][0] == 0 and len(model.rounds_) > 1
    assert np.exp(model.layout_.tables.log_mass(model.weights_)).max() <= 1 + 1e-12
    assert {"primal", "dual", "estimate"} <= set(model.trace_.columns)


def test_margins_costs_pulls_missing_observations_and_weights():
    """All that enters the objective does, by enumeration."""
    matrix = np.array([[0.0, 1.0, 2.5], [0.5, 0.0, 1.0], [1.0, 3.0, 0.0]])
    gaps = [[None if (i + t) % 5 == 0 else s for t, s in enumerate(x)] for i, x in enumerate(X)]
    weight = np.linspace(0.0, 2.0, len(X))
    words = WORDS | {"cost": matrix, "margin": 0.7, "pull": 0.05, "reference": "smoothed", "tol": 1e-4}
    model = DiscriminativeHMM(**words).fit(gaps, Y, sample_weight=weight)
    planes = planes_of(gaps, Y, lambda a, b: matrix[a, b], 0.7)
    assert model.status_.converged
    assert model.certificate_.primal == pytest.approx(J(model, planes, weight), rel=1e-9)
    data = planes, model.C * weight, model.reference_, STARTS
    following, _ = next_minimum(
        *data, model.weights_, *RAMPS[getattr(model.loss, "ramp", "cost_diminished")], model.pull
    )
    assert following == pytest.approx(model.certificate_.primal, rel=2e-4)


NET = {"structure": EDGES, "states": STATES, "loss": "ramp", "C": 0.1, "tol": 1e-4}


def weather(n=40, seed=0, missing=0.0, wrong=0.25):
    """Rows of variables that depend on each other; some values are missing, the first targets are at random."""
    rng = np.random.default_rng(seed)
    codes = weather_codes(rng, n)
    codes["class"][: int(wrong * n)] = rng.integers(0, 3, int(wrong * n))
    frame = named(codes)
    for name in ("sky", "wind", "grass", "cat"):
        frame[name] = [None if rng.random() < missing else value for value in frame[name]]
    return frame


def log_joint(model, row):
    """ln P(row) as a sum over entries of the frames; entries of a missing leaf sum to at most 1 and are left out."""
    net, tables, value = model.network_, model.tables(), 0.0
    for v, name in enumerate(net.names):
        if row[name] is None:
            continue
        above = tuple(row[net.names[u]] for u in net.parents[v])
        entry = tables[name][row[name]] if not above else tables[name].loc[above[0] if len(above) == 1 else above]
        value += np.log(entry if not above else entry[row[name]])
    return value


@pytest.mark.parametrize("ramp", RAMPS)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_network_has_the_objective_of_enumeration(missing, ramp):
    """Values that are missing are maximised in both parts of the ramp, so that no completion of the truth matters."""
    frame = weather(missing=missing)
    model = DiscriminativeBayesNet(**NET | {"loss": Ramp(ramp)}).fit(frame, target="class")
    assert model.status_.converged and len(model.rounds_) >= 1
    above, below = RAMPS[ramp]
    total = model.reference_ @ (np.log(model.reference_) - model.weights_)
    names = list(STATES)
    for i in range(len(frame["class"])):
        row = {name: frame[name][i] for name in names}
        unknown = [name for name in names if row[name] is None and not (name == "cat" or _barren(row, name))]
        known = {name: value for name, value in row.items() if name not in unknown}
        scores = {weight: -np.inf for weight in (above, below)}
        for values in product(*(STATES[name] for name in ["class", *unknown])):
            full = {**known, **dict(zip(["class", *unknown], values, strict=True))}
            score, cost = log_joint(model, full), float(values[0] != row["class"])
            for weight in scores:
                scores[weight] = max(scores[weight], weight * cost + score)
        total += model.C * (scores[above] - scores[below])
    assert model.certificate_.primal == pytest.approx(total, rel=1e-9)


def _barren(row, name):
    """Whether nothing below a missing value is known, nor asked for: then it is summed out."""
    below = [child for parent, child in EDGES if parent == name]
    return all(child != "class" and row[child] is None and _barren(row, child) for child in below)


def test_hidden_variables_by_row_and_several_targets():
    frame = weather(wrong=0.0)
    coded = DiscriminativeBayesNet(**NET).fit(frame, hidden="coding")
    several = DiscriminativeBayesNet(**NET).fit(frame, target=["class", "grass"])
    for model in (coded, several):
        assert model.status_.converged
        objectives = model.rounds_["objective"].tolist()
        assert all(after <= before * (1 + 1e-9) for before, after in pairwise(objectives))


def test_a_bounded_argmax_keeps_the_certificate_honest():
    """Too wide for exact trees: the convex part is bounded from above, what is subtracted was reached."""
    n = 5
    name = [[f"x{i}{j}" for j in range(n)] for i in range(n)]
    edges = [(name[i][j], name[i][j + 1]) for i in range(n) for j in range(n - 1)]
    edges += [(name[i][j], name[i + 1][j]) for i in range(n - 1) for j in range(n)]
    rng, every = np.random.default_rng(0), [v for row in name for v in row]
    frame = {v: rng.integers(0, 2, 12).tolist() for v in every}
    words = {"structure": edges, "C": 0.1, "loss": "ramp"}
    exact = DiscriminativeBayesNet(**words).fit(frame, target=every)
    rough = DiscriminativeBayesNet(
        **words | {"loss": Ramp(passes_per_round=5)}, inference="bounded", max_cells=600, max_passes=25
    )
    with pytest.warns(ConvergenceWarning):
        rough.fit(frame, target=every)
    objectives = rough.rounds_["objective"].tolist()
    assert len(objectives) > 1 and all(b <= a * (1 + 1e-9) for a, b in pairwise(objectives))
    there = DiscriminativeBayesNet(**words | {"loss": Ramp(start=rough)}, max_passes=1, tol=1e9).fit(
        frame, target=every
    )
    assert there.certificate_.primal <= rough.certificate_.primal  # J of its weights, by exact trees
    assert exact.certificate_.relative_gap <= 1e-3


# --- what it is for ---------------------------------------------------------------------------------------------------


def test_wrong_labels_hurt_less_than_with_the_hinge():
    """A third of the sequences with states at random: every seed, and little is lost where all labels are right."""
    gains, lost = [], {"hinge": 0.0, "ramp": 0.0}
    for seed in range(4):
        test = walk(300, 8, 100 + seed, wrong=0.0)
        scores = {}
        for loss, wrong in product(["hinge", "ramp"], [0.0, 0.35]):
            words = WORDS | {"loss": loss, "tol": 1e-2, "C": 0.2}
            scores[loss, wrong] = DiscriminativeHMM(**words).fit(*walk(100, 8, seed, wrong)).score(*test)
        for loss in lost:
            lost[loss] += scores[loss, 0.0] - scores[loss, 0.35]
        gains.append(scores["ramp", 0.35] - scores["hinge", 0.35])
        assert scores["ramp", 0.0] > scores["hinge", 0.0] - 0.03
    assert min(gains) > 0 and np.mean(gains) > 0.02
    assert lost["ramp"] < 0.6 * lost["hinge"]


# --- where it begins --------------------------------------------------------------------------------------------------


def test_starts():
    words = WORDS | {"tol": 1e-4}
    hinge = DiscriminativeHMM(**words | {"loss": "hinge"}).fit(X, Y)
    reference = DiscriminativeHMM(**words | {"C": 0.0}).fit(X, Y)
    fits = {
        "zero": DiscriminativeHMM(**words).fit(X, Y),
        "hinge": DiscriminativeHMM(**words | {"loss": Ramp(start="hinge")}).fit(X, Y),
        "model": DiscriminativeHMM(**words | {"loss": Ramp(start=hinge)}).fit(X, Y),
        "array": DiscriminativeHMM(**words | {"loss": Ramp(start=hinge.weights_)}).fit(X, Y),
        "reference": DiscriminativeHMM(**words | {"loss": Ramp(start=reference)}).fit(X, Y),
        "third ramp": DiscriminativeHMM(
            **words | {"C": 0.02, "loss": Ramp("cost_diminished_vs_best", start="hinge")}
        ).fit(X, Y),
    }
    planes = planes_of(X, Y)
    for name, model in fits.items():
        assert model.status_.converged
        assert model.certificate_.primal == pytest.approx(J(model, planes), rel=1e-9)
        if name not in ("zero", "third ramp"):
            assert model.rounds_["concave"][0] > 0
    at_hinge = ramp_objective(planes, np.full(len(X), 0.3), hinge.reference_, STARTS, hinge.weights_, 1.0, -1.0)
    assert fits["model"].certificate_.primal <= at_hinge
    assert np.array_equal(fits["model"].weights_, fits["array"].weights_)
    assert not hasattr(hinge, "rounds_")
    assert fits["hinge"].oracle_calls_ > hinge.oracle_calls_


def test_starts_that_are_refused():
    d = len(DiscriminativeHMM(**WORDS).fit(X, Y).weights_)
    for start, message in (
        ("warm", r'start must be "zero", "hinge", a fitted estimator or an array; got \'warm\''),
        (np.zeros(3), r"weights of shape \(3,\), these examples need \(24,\)"),
        (np.full(d, np.nan), "weights that are not finite numbers"),
        (np.zeros(d), r"no model of log-probabilities: emission of 0 sums to 4, more than 1. Give the logarithms"),
        (None, 'start must be "zero", "hinge", a fitted estimator or an array; got None'),
    ):
        with pytest.raises(ValueError, match=message):
            DiscriminativeHMM(**WORDS | {"loss": Ramp(start=start)}).fit(X, Y)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        DiscriminativeHMM(**WORDS | {"loss": Ramp(start=DiscriminativeHMM())}).fit(X, Y)


def test_start_models_of_other_states_or_symbols_are_refused():
    """The weights would fit in number only."""
    symbols = DiscriminativeHMM().fit([[f"s{s}" for s in x] for x in X], Y)
    states = DiscriminativeHMM().fit(X, [[f"t{s}" for s in y] for y in Y])
    words = {"loss": "ramp", "C": 0.3}
    with pytest.raises(ValueError, match="trained on other features than these examples have"):
        DiscriminativeHMM(**words | {"loss": Ramp(start=symbols)}).fit(X, Y)
    with pytest.raises(ValueError, match=r"the start model has other labels .*'t0'.* than the examples"):
        DiscriminativeHMM(**words | {"loss": Ramp(start=states)}).fit(X, Y)
    frame = weather()
    net = DiscriminativeBayesNet(**NET | {"loss": "hinge", "structure": [(b, a) for a, b in EDGES]})
    net.fit(frame, target="class")
    with pytest.raises(ValueError, match="trained on other features than these examples have"):
        DiscriminativeBayesNet(**NET | {"loss": Ramp(start=net)}).fit(frame, target="class")


def test_a_start_model_stays_fitted_in_copies_and_searches():
    first = DiscriminativeHMM(**WORDS | {"loss": "hinge", "C": 0.05}).fit(X, Y)
    ramp = DiscriminativeHMM(**WORDS | {"tol": 1e-2, "loss": Ramp(start=first)})
    assert clone(ramp).loss.start is first and clone(ramp).loss is not ramp.loss
    search = GridSearchCV(ramp, {"loss__ramp": ["cost_diminished", "best_output"], "loss__max_rounds": [1, 3]}, cv=2)
    with pytest.warns(ConvergenceWarning, match="max_rounds"):
        search.fit(X, Y)
    assert 0.0 < search.best_score_ <= 1.0


# --- runs -------------------------------------------------------------------------------------------------------------


def test_rounds_and_their_passes():
    words = WORDS | {"tol": 1e-9}
    with pytest.warns(ConvergenceWarning, match="max_rounds"):
        model = DiscriminativeHMM(**words | {"loss": Ramp(max_rounds=2, passes_per_round=6)}).fit(X, Y)
    assert model.status_.code == "max_rounds" and len(model.rounds_) == 2
    assert (np.diff(model.rounds_["pass"], prepend=0.0) >= 6).all()


def test_workers_and_resuming_change_nothing(tmp_path):
    Xs, Ys = walk(40, 6, 3)
    one, two = (DiscriminativeHMM(**WORDS, n_jobs=n_jobs).fit(Xs, Ys) for n_jobs in (1, 2))
    assert np.array_equal(one.weights_, two.weights_) and one.rounds_.equals(two.rounds_)
    path = tmp_path / "run.npz"
    with pytest.warns(ConvergenceWarning):
        DiscriminativeHMM(**WORDS, max_passes=30, callbacks=[Checkpoint(path, every=1)]).fit(Xs, Ys)
    resumed = DiscriminativeHMM(**WORDS).fit(Xs, Ys, resume=path)
    assert np.array_equal(one.weights_, resumed.weights_) and one.rounds_.equals(resumed.rounds_)


def test_warm_starts_along_the_weight_of_the_losses_and_between_losses():
    model = DiscriminativeHMM(**WORDS | {"C": 0.2, "tol": 1e-3}, warm_start=True).fit(X, Y)
    before = model.certificate_.primal
    model.fit(X, Y)
    assert model.certificate_.primal <= before * (1 + 1e-9)
    model.set_params(C=0.3).fit(X, Y)
    assert model.certificate_.primal == pytest.approx(J(model, planes_of(X, Y)), rel=1e-9)
    with pytest.raises(ValueError, match="warm start needs the same loss"):
        model.set_params(loss="hinge").fit(X, Y)
    hinge = DiscriminativeHMM(**WORDS | {"loss": "hinge"}, warm_start=True).fit(X, Y)
    hinge.set_params(loss="ramp").fit(X, Y)
    assert hinge.certificate_.primal == pytest.approx(J(hinge, planes_of(X, Y)), rel=1e-9)
    assert hinge.rounds_["concave"][0] > 0


def test_files_keep_all_but_the_start(tmp_path):
    first = DiscriminativeHMM(**WORDS | {"loss": "hinge"}).fit(X, Y)
    model = DiscriminativeHMM(**WORDS | {"loss": Ramp("best_output", start=first, max_rounds=50)}).fit(X, Y)
    loaded = mm.load(model.save(tmp_path / "model"))
    assert np.array_equal(loaded.weights_, model.weights_) and loaded.certificate_ == model.certificate_
    assert (loaded.loss.ramp, loaded.loss.max_rounds, loaded.loss.start) == ("best_output", 50, "zero")


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            {"loss": Ramp("steep")},
            "ramp must be one of cost_diminished, best_output, cost_diminished_vs_best, or a pair",
        ),
        ({"loss": Ramp((0.0, 0.0))}, "ramp must be one of"),
        ({"loss": "log"}, r"loss must be one of hinge, squared_hinge, or \(of an estimator\) ramp; got 'log'"),
        ({"loss": Ramp(max_rounds=0)}, "max_rounds must be a whole number >= 1 or None, got 0"),
        ({"loss": Ramp(passes_per_round=-1)}, "passes_per_round must be a positive number or None, got -1"),
        ({"C": -1.0}, "C must be a finite number >= 0"),
        ({"solver": "auto"}, 'tables.*which solver="auto" does not offer; use solver="proximal"'),
        ({"solver": "pegasos"}, 'use solver="proximal"'),
        ({"solver": mm.Perceptron()}, r'a ramp loss and.*solver=Perceptron\(\) does not offer; use solver="proximal"'),
    ],
    ids=str,
)
def test_bad_options(words, message):
    with pytest.raises(ValueError, match=message):
        DiscriminativeHMM(**WORDS | words).fit(X, Y)


def test_streams_have_no_ramp():
    message = 'partial_fit is for loss="hinge" and "squared_hinge"; the ramp needs all examples at once'
    model = DiscriminativeHMM(**WORDS)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, Y)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y).partial_fit(X, Y)
    with pytest.raises(ValueError, match=message):
        DiscriminativeBayesNet(**NET).partial_fit(pd.DataFrame(weather()), target="class")


def test_states_must_be_given():
    with pytest.raises(ValueError, match="example 1 has a position without a state"):
        DiscriminativeHMM(loss="ramp").fit([["a"], ["b"]], [["s"], [None]])
    frame = weather() | {"class": [None] * 40}
    with pytest.raises(ValueError, match="example 0 has no value for the hidden variable 'class'"):
        DiscriminativeBayesNet(**NET).fit(frame, target="class")


def test_nothing_to_learn():
    model = DiscriminativeHMM(**WORDS | {"C": 0.0}).fit(X, Y)
    np.testing.assert_allclose(np.exp(model.weights_), model.reference_, rtol=1e-9)
    alone = DiscriminativeHMM(loss="ramp").fit([["a"], [], ["a", "a"]], [["s"], [], ["s", "s"]])
    assert alone.certificate_.gap <= 1e-9 and alone.predict([[], ["a"]]) == [[], ["s"]]
