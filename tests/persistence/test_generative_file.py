"""Generative models in model files: the loaded model is the saved one; damaged and forged files are refused."""

from __future__ import annotations

import json
import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from maxmargin import DiscriminativeHMM, load
from maxmargin.costs import HammingCost
from maxmargin.estimators.discriminative_bayes_net import DiscriminativeBayesNet
from maxmargin.models.network import Network
from maxmargin.solvers.proximal_point import ProximalPoint
from persistence.forging import forge, forge_tensor, plain
from persistence.test_fuzz_model_file import DAMAGE, FORGERY, little_memory, sign, split

X = [["walk", "shop", "clean"], ["clean", "clean", None], [], ["shop"]]
Y = [["sun", "sun", "rain"], ["rain", "rain", "sun"], [], ["sun"]]
AGAIN = [["walk", None, "clean", "shop"], ["clean"], []]


def fitted(x: list = X, y: list = Y, **options: object) -> DiscriminativeHMM:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return DiscriminativeHMM(**{"C": 0.5, **options}).fit(x, y)


def check_same(one: DiscriminativeHMM, two: DiscriminativeHMM, x: list = AGAIN) -> None:
    assert [(type(s), s) for s in one.classes_] == [(type(s), s) for s in two.classes_]
    assert one.symbols_ == two.symbols_ and one.predict(x) == two.predict(x)
    for name in ("weights_", "reference_", "counts_", "initial_", "transition_", "emission_"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert np.array_equal(one.log_likelihood(x), two.log_likelihood(x))
    assert one.certificate_ == two.certificate_ and one.status_ == two.status_ and one.n_seen_ == two.n_seen_
    assert (one.n_iter_, one.seconds_) == (two.n_iter_, two.seconds_)


CASES = {
    "plain": {},
    "squared": {"loss": "squared_hinge", "margin": 0.3, "reference": "uniform", "floor": 1e-4},
    "matrix": {"cost": np.array([[0.0, 2.0], [1.0, 0.0]]), "reference": "smoothed", "smoothing": 0.5},
    "normalized": {"cost": HammingCost(normalize=True), "unknown": "missing"},
    "function": {"cost": lambda a, b: 3.0 * (a != b)},
    "named": {"classes": ["sun", "snow", "rain"], "symbols": np.array(["walk", "shop", "clean", "ski"])},
    "solver": {"solver": ProximalPoint(blocks="product"), "max_passes": 30, "random_state": 4},
}


@pytest.mark.parametrize("case", CASES)
def test_round_trip(tmp_path, case):
    model = fitted(**CASES[case])
    path = model.save(tmp_path / "m")
    loaded = load(path)
    assert type(loaded) is DiscriminativeHMM
    check_same(model, loaded)
    check_same(model, DiscriminativeHMM.load(path))
    assert loaded.save(tmp_path / "again").read_bytes() == path.read_bytes()
    refit = fitted(**clone(loaded).get_params(deep=False))
    np.testing.assert_allclose(refit.weights_, model.weights_, atol=1e-9)
    assert loaded.mean_cost(X, Y) == model.mean_cost(X, Y)


def test_numbers_as_states_and_symbols(tmp_path):
    model = fitted([[0, 2, 1], [1]], [[1, 0, 1], [0]], classes=2, symbols=3)
    loaded = load(model.save(tmp_path / "m"))
    check_same(model, loaded, [[0, 1, 2]])
    odd = fitted([[("a", 1), 2.0], [b"x"]], [[True, False], [True]])
    check_same(odd, load(odd.save(tmp_path / "m")), [[2.0, b"x", ("a", 1)]])


def test_references_that_are_models_or_tables(tmp_path):
    first = fitted(classes=["sun", "rain"], symbols=["walk", "shop", "clean"])
    for reference in (first, first.tables(), {name: np.array(table) for name, table in first.tables().items()}):
        model = fitted(reference=reference, classes=["sun", "rain"], symbols=["walk", "shop", "clean"])
        loaded = load(model.save(tmp_path / "m"))
        check_same(model, loaded)
        assert set(loaded.reference) == {"initial", "transition", "emission"}
        refit = fitted(**clone(loaded).get_params(deep=False))
        np.testing.assert_allclose(refit.weights_, model.weights_, atol=1e-4)


def test_a_loaded_model_is_a_reference_but_does_not_go_on(tmp_path):
    loaded = load(fitted().save(tmp_path / "m"))
    assert fitted(reference=loaded, C=0.0).predict(AGAIN) == loaded.predict(AGAIN)
    with pytest.raises(ValueError, match="give it as the reference of a new one"):
        loaded.partial_fit(X, Y)


def test_probabilities_of_zero_survive(tmp_path):
    model = fitted()
    model.weights_[0] = -np.inf
    assert load(model.save(tmp_path / "m")).weights_[0] == -np.inf


def test_what_can_not_be_stored(tmp_path):
    class Own(str):
        pass

    with pytest.raises(NotFittedError):
        DiscriminativeHMM().save(tmp_path / "m")
    model = fitted([[Own("a")]], [[Own("b")]])
    with pytest.raises(ValueError, match="states or symbols cannot be stored"):
        model.save(tmp_path / "m")
    model = fitted(random_state=np.random.RandomState(0))
    with pytest.warns(UserWarning, match="random_state=.* cannot be stored"):
        model.save(tmp_path / "m")
    assert load(tmp_path / "m").random_state == 0
    model.callbacks = [print]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.save(tmp_path / "m")
    assert load(tmp_path / "m").callbacks is None


def test_kinds_are_told_apart(tmp_path):
    class Own(DiscriminativeHMM):
        pass

    path = fitted().save(tmp_path / "m")
    assert type(Own.load(path)) is Own
    assert DiscriminativeHMM.load(path).classes_ == ["rain", "sun"]
    with pytest.raises(ValueError, match="holds a DiscriminativeHMM, not a SequenceTagger"):
        from maxmargin import SequenceTagger

        SequenceTagger.load(path)
    header, data = split(path.read_bytes())
    for kind in ("SequenceTagger", "ImageSegmenter", "DiscriminativeBayesNet"):
        header["__metadata__"]["kind"] = kind
        path.write_bytes(sign(header, data))
        with pytest.raises(ValueError, match="m cannot be loaded"):
            load(path)


FORGED = {
    "no states": ("layout", lambda f: f.update(states=[]), "its 'states' must be a list with at least one"),
    "state twice": ("layout", lambda f: f.update(states=["sun", "sun"]), "twice"),
    "more states": ("layout", lambda f: f["states"].append("snow"), r"'cost' has dtype float64 and shape \(2, 2\)"),
    "more symbols": ("layout", lambda f: f["symbols"].append("ski"), "has 12 weights where its layout needs 14"),
    "unknown": ("layout", lambda f: f.update(unknown="guess"), "'guess'"),
    "margin": ("layout", lambda f: f.update(margin=-1.0), "its 'margin' must be a finite number"),
    "states": ("layout", lambda f: f.update(states="sun"), "not a list"),
    "deep states": ("layout", lambda f: f.update(states=[{"$tuple": [[1]]}, "a"]), "hashable"),
    "n_seen": ("fitted", lambda f: f.update(n_seen=-1), "its 'n_seen' must be a whole number"),
    "no n_seen": ("fitted", lambda f: f.pop("n_seen"), "its 'n_seen' is missing"),
    "no counts": ("fitted", lambda f: f.pop("counts"), "its tensor 'counts' is missing"),
    "parameter": ("parameters", lambda f: f.update(depth=3), "no parameter 'depth'"),
    "number": ("parameters", lambda f: f.update(C="much"), "its parameter 'C' must be a number, got 'much'"),
    "missing": ("layout", lambda f: f.pop("normalize"), "its 'normalize' is missing"),
}


@pytest.mark.parametrize("value", [np.nan, np.inf, 5.0, -2.0])
@pytest.mark.parametrize("name", ["weights", "reference", "counts"])
def test_forged_numbers_are_refused(tmp_path, name, value):
    path = fitted().save(tmp_path / "m")
    header, _ = plain(path)
    tensor = name if name == "weights" else json.loads(header["fitted"])[name]["$array"]

    def change(array: np.ndarray) -> np.ndarray:
        array[3] = value
        return array

    forge_tensor(path, tensor, change)
    fine = {("weights", -2.0), ("counts", 5.0)}
    if (name, value) in fine:
        assert getattr(load(path), f"{name}_")[3] == value
    else:
        with pytest.raises(ValueError, match=r"m cannot be loaded: (some of )?its "):
            load(path)


def test_weights_that_are_no_logarithms_are_not_saved(tmp_path):
    model = fitted()
    model.weights_[3] = 5.0
    with pytest.raises(ValueError, match="no logarithms of probabilities"):
        model.save(tmp_path / "m")


def fuzz(path, whole: bytes, n_files: int, check) -> None:
    """Damaged and forged files are refused with a ValueError that names them, in little memory; or ``check`` holds."""
    rng = np.random.default_rng(0)
    with little_memory():
        tracemalloc.start()
        for _ in range(n_files):
            forged = rng.random() < 0.6
            mutate = (FORGERY if forged else DAMAGE)[rng.integers(4)]
            path.write_bytes(content := mutate(whole, rng))
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                loaded = load(path)
            except ValueError as error:
                assert path.name in str(error) and len(str(error)) < 2_000
                continue
            assert tracemalloc.get_traced_memory()[1] - before < 10 * len(content) + 500_000
            assert forged or content == whole
            check(loaded)
        tracemalloc.stop()


def test_fuzz(tmp_path):
    whole = fitted(cost=np.array([[0.0, 2.0], [1.0, 0.0]])).save(tmp_path / "m").read_bytes()
    load(tmp_path / "m").predict(AGAIN)

    def check(model: DiscriminativeHMM) -> None:
        try:
            found = model.predict([["walk", None], []])
        except ValueError:  # a forger may have renamed the symbols
            return
        assert [len(states) for states in found] == [2, 0]

    fuzz(tmp_path / "fuzzed", whole, 400, check)


# --- networks ---------------------------------------------------------------------------------------------------------

FRAME = {
    "rain": ["no", "no", "yes", "yes", "no", "yes"],
    "wet": ["no", "no", "yes", None, "yes", "yes"],
    "cat": ["out", "in", "in", "in", "out", "out"],
    "month": [1, 2, 3, 1, 2, 3],
}
GRAPH = {"wet": ["rain", "month"], "cat": ["rain", "wet"]}
STATES = {"rain": ["no", "yes"], "wet": ["no", "yes"], "cat": ["in", "out"], "month": [1, 2, 3]}


def trained_net(target: object = "rain", **options: object) -> DiscriminativeBayesNet:
    words = {"hidden": "coding"} if target == "coding" else {"target": target}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return DiscriminativeBayesNet(**{"structure": GRAPH, "C": 0.3, **options}).fit(FRAME, **words)


NETS = {
    "naive": ("rain", {"structure": "naive", "reference": "smoothed"}),
    "tan": ("cat", {"structure": "tan"}),
    "graph": ("rain", {"cost": {"rain": 3.0}, "margin": 0.5}),
    "network": (["rain", "cat"], {"structure": Network.of(GRAPH, STATES), "loss": "squared_hinge"}),
    "edges": ("wet", {"structure": [("rain", "wet"), ("wet", "cat")], "states": {"rain": ["no", "yes", "maybe"]}}),
    "function": ("rain", {"cost": lambda a, b: 2.0 * (a != b)}),
    "coding": ("coding", {"reference": "uniform"}),
}


@pytest.mark.parametrize("case", NETS)
def test_networks_round_trip(tmp_path, case):
    target, options = NETS[case]
    frame = FRAME if "wet" not in str(target) else {**FRAME, "wet": ["no", "no", "yes", "no", "yes", "yes"]}
    words = {"hidden": "coding"} if target == "coding" else {"target": target}

    def fit(**own: object) -> DiscriminativeBayesNet:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return DiscriminativeBayesNet(**own).fit(frame, **words)

    model = fit(**{"structure": GRAPH, "C": 0.3, **options})
    path = model.save(tmp_path / "n")
    loaded = load(path)
    assert type(loaded) is DiscriminativeBayesNet and loaded.network_ == model.network_
    assert loaded.target_ == model.target_ and loaded.classes_ == model.classes_
    for name in ("weights_", "reference_", "counts_"):
        assert np.array_equal(getattr(loaded, name), getattr(model, name))
    assert loaded.certificate_ == model.certificate_ and loaded.n_seen_ == 6
    assert np.array_equal(loaded.log_likelihood(frame), model.log_likelihood(frame))
    one, two = model.predict(FRAME), loaded.predict(FRAME)
    assert one.tolist() == two.tolist() if hasattr(one, "tolist") else {**one} == {**two}
    assert loaded.score(frame) == model.score(frame) and loaded.mean_cost(frame) == model.mean_cost(frame)
    assert loaded.save(tmp_path / "again").read_bytes() == path.read_bytes()
    refit = fit(**clone(loaded).get_params(deep=False))
    np.testing.assert_allclose(refit.weights_, model.weights_, atol=1e-9)


def test_a_network_of_another_library_survives(tmp_path):
    net = Network.of(GRAPH, STATES)
    p = np.exp(net.tables.normalised(np.random.default_rng(0).normal(size=net.n_weights)))
    p[:2] = [0.0, 1.0]
    model = DiscriminativeBayesNet.from_network(net, p, target="cat")
    loaded = load(model.save(tmp_path / "n"))
    assert loaded.predict(FRAME).tolist() == model.predict(FRAME).tolist() and loaded.weights_[0] == -np.inf
    assert loaded.structure == {"rain": [], "wet": ["rain", "month"], "cat": ["rain", "wet"], "month": []}


FORGED_NETS = {
    "cycle": ("layout", lambda f: f["parents"].__setitem__(0, [1]), "cycle"),
    "parent": ("layout", lambda f: f["parents"].__setitem__(0, [9]), "unknown parent 9"),
    "many parents": ("layout", lambda f: f["parents"].__setitem__(0, [3] * 40), "twice"),
    "no position": ("layout", lambda f: f["parents"].__setitem__(0, ["wet"]), "no positions"),
    "name twice": ("layout", lambda f: f["names"].__setitem__(0, "wet"), "two variables"),
    "another state": ("layout", lambda f: f["states"][3].append(4), "weights where its layout needs"),
    "cost": ("layout", lambda f: f.update(costs=[7]), "unknown variable '7'"),
    "no cost": ("layout", lambda f: f.update(costs=[1]), "its tensor 'cost.1' is missing"),
    "name": ("layout", lambda f: f["names"].__setitem__(0, 3), "names"),
    "target": ("fitted", lambda f: f.update(target=["sun"]), "'sun' is not a variable"),
    "targets": ("fitted", lambda f: f.update(target=3), "'target' is not a list"),
    "cells": ("parameters", lambda f: f.update(max_cells=[]), "its parameter 'max_cells' must be a whole number"),
}


FORGERIES = {name: (fitted, case) for name, case in FORGED.items()}
FORGERIES |= {f"net, {name}": (trained_net, case) for name, case in FORGED_NETS.items()}


@pytest.mark.parametrize(("make", "case"), FORGERIES.values(), ids=FORGERIES)
def test_forged_contents_are_refused(tmp_path, make, case):
    part, change, words = case
    path = forge(make().save(tmp_path / "m"), part, change)
    with pytest.raises(ValueError, match=words):
        load(path)


def test_fuzz_networks(tmp_path):
    whole = trained_net().save(tmp_path / "m").read_bytes()
    load(tmp_path / "m").predict(FRAME)

    def check(model: DiscriminativeBayesNet) -> None:
        try:
            found = model.predict(FRAME)
        except (ValueError, TypeError):  # a forger may have renamed the columns, or made targets of anything
            return
        assert found is not None

    fuzz(tmp_path / "fuzzed", whole, 400, check)
