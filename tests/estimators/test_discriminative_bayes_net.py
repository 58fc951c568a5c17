"""DiscriminativeBayesNet: optimum, prediction, posteriors, likelihoods and tables against enumeration; odd input."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from tests.reference.generative import optimum

from maxmargin.estimators.discriminative_bayes_net import DiscriminativeBayesNet
from maxmargin.inference.junction_tree import TooWide
from maxmargin.models.network import Network
from maxmargin.solvers.proximal_point import ProximalPoint
from reference.weather import EDGES, STATES, named, weather_codes


def weather(n=60, seed=0):
    """Rows whose variables depend on each other in a way that the graph above does not quite catch."""
    return pd.DataFrame(named(weather_codes(np.random.default_rng(seed), n)))


@pytest.fixture(scope="module")
def frame():
    return weather()


@pytest.fixture(scope="module")
def model(frame):
    return DiscriminativeBayesNet(structure=EDGES, C=0.05).fit(frame, target="class")


def joint(model, row, renormalised=True):
    """P(row) as a product of entries of the frames."""
    value = 1.0
    net = model.network_
    tables = model.tables(renormalised)
    for v, name in enumerate(net.names):
        above = tuple(row[net.names[u]] for u in net.parents[v])
        table = tables[name]
        value *= table[row[name]] if not above else table.loc[above if len(above) > 1 else above[0], row[name]]
    return float(value)


def completed(model, row):
    """All rows that agree with what is known."""
    free = [name for name in model.network_.names if row[name] is None]
    for values in product(*(STATES[name] for name in free)):
        yield {**row, **dict(zip(free, values, strict=True))}


def test_training_is_certified_and_beats_its_reference(frame, model):
    assert model.status_.converged and model.certificate_.certified
    assert model.certificate_.relative_gap <= 1e-3
    reference = DiscriminativeBayesNet(structure=EDGES, C=0.0).fit(frame, target="class")
    assert model.score(frame) > reference.score(frame)
    assert model.mean_cost(frame) == pytest.approx(1 - model.score(frame))
    np.testing.assert_allclose(np.exp(reference.weights_), reference.reference_, rtol=1e-9)
    share = pd.crosstab([frame["class"], frame["wind"]], frame["grass"], normalize="index")
    found = reference.tables()["grass"].reorder_levels(share.index.names).loc[share.index, share.columns]
    np.testing.assert_allclose(found, share, atol=1e-5)


@pytest.mark.parametrize(
    ("words", "ask"),
    [
        ({}, {"target": "class"}),
        ({"loss": "squared_hinge"}, {"target": "class"}),
        (
            {"cost": {"class": [[0, 1, 2], [1, 0, 1], [2, 1, 0]], "cat": 0.5}, "margin": 0.5},
            {"target": ["class", "cat"]},
        ),
        ({"reference": "uniform"}, {"hidden": "coding"}),
        (
            {},
            {"hidden": [["class"], ["grass", "wind"], [], ["sky", "class", "wind", "grass", "cat"], ["cat"], ["sky"]]},
        ),
    ],
    ids=["class", "squared", "two targets", "coding", "own sets"],
)
def test_optimum_agrees_with_a_conic_solver(words, ask):
    """Planes of all outputs are listed by hand; an exponential-cone solver knows nothing of trees or planes."""
    frame = weather(6, seed=3)
    model = DiscriminativeBayesNet(structure=EDGES, states=STATES, C=0.3, tol=1e-6, max_passes=5000, **words)
    model.fit(frame, **ask)
    net, margin = model.network_, words.get("margin", 1.0)
    codes = np.array([[STATES[name].index(row[name]) for name in net.names] for _, row in frame.iterrows()])
    hidden = model._mask(len(frame), ask.get("hidden"))
    costs = words.get("cost", {})
    planes = []
    for row, own in zip(codes, hidden, strict=True):
        values = [range(len(STATES[name])) if own[v] else [row[v]] for v, name in enumerate(net.names)]
        outputs = np.array(list(product(*values)))
        offsets = np.zeros(len(outputs))
        for v in np.flatnonzero(own):
            cost = costs.get(net.names[v], 1.0)
            table = cost * (1 - np.eye(len(STATES[net.names[v]]))) if np.isscalar(cost) else np.array(cost)
            offsets += margin * table[row[v], outputs[:, v]]
        planes.append((net.counts(row[None]) - np.array([net.counts(y[None]) for y in outputs]), offsets))
    squared = words.get("loss") == "squared_hinge"
    weight = np.full(6, 0.6 if squared else 0.3)
    value, _ = optimum(planes, weight, model.reference_, net.tables.starts, squared=squared)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-5, abs=1e-6)
    assert model.certificate_.dual <= value + 1e-6 * max(abs(value), 1.0)


@pytest.mark.parametrize(
    "solver",
    [
        ProximalPoint(blocks=5),
        ProximalPoint(blocks=6, visits=2),
        ProximalPoint(blocks="product", visits=10, limit=10),
        ProximalPoint(blocks=[list(range(0, 40)), list(range(30, 60))]),
        ProximalPoint(rule="paper", refind=True, delta=1e-4),
    ],
    ids=["groups", "coordinate ascent", "product", "stream", "rules of the paper"],
)
def test_all_variants_agree(frame, model, solver):
    other = DiscriminativeBayesNet(structure=EDGES, C=0.05, solver=solver, max_passes=5000).fit(frame, target="class")
    assert other.status_.converged
    assert other.certificate_.primal == pytest.approx(model.certificate_.primal, rel=2e-3)
    assert max(other.certificate_.dual, model.certificate_.dual) <= other.certificate_.primal + 1e-9


def test_prediction_is_the_most_probable_value(frame, model):
    rows = frame.head(8).to_dict("records")
    rows[2]["sky"] = rows[5]["grass"] = None
    found = model.predict([{name: x for name, x in row.items() if name != "class"} for row in rows])
    for row, value in zip(rows, found, strict=True):
        best = max(joint(model, full, False) for full in completed(model, {**row, "class": None}))
        mine = max(joint(model, full, False) for full in completed(model, {**row, "class": value}))
        assert mine == pytest.approx(best)
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame.drop(columns="class")))
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame.to_dict("list")))


def test_posteriors_and_likelihoods_are_sums(frame, model):
    rows = frame.head(6).to_dict("records")
    rows[1]["sky"] = rows[2]["grass"] = rows[3]["cat"] = rows[3]["wind"] = None
    posterior = model.predict_marginals(rows)
    assert model.classes_ == ["no", "perhaps", "yes"] and posterior.shape == (6, 3)
    without = [{**row, "class": None} for row in rows]
    likelihood, marginal = model.log_likelihood(rows), model.log_likelihood(without)
    for i, row in enumerate(rows):
        assert likelihood[i] == pytest.approx(np.log(sum(joint(model, full) for full in completed(model, row))))
        total = sum(joint(model, full) for full in completed(model, without[i]))
        assert marginal[i] == pytest.approx(np.log(total))
        for k, value in enumerate(model.classes_):
            mass = sum(joint(model, full) for full in completed(model, {**row, "class": value}))
            assert posterior[i, k] == pytest.approx(mass / total)
    only = model.log_likelihood(frame.drop(columns="class"))
    np.testing.assert_allclose(
        model.log_likelihood(frame.drop(columns="class"), frame["class"]), model.log_likelihood(frame)
    )
    assert (only > model.log_likelihood(frame)).all()


def test_missing_leaves_say_nothing(frame, model):
    """Without the leaf the answer is that of a network without it."""
    states = {name: labels.classes for name, labels in zip(model.network_.names, model.network_.states, strict=True)}
    network = Network.of(EDGES[:-1], {name: states[name] for name in states if name != "cat"})
    tables = model.network_.groups(np.exp(model.weights_))
    smaller = DiscriminativeBayesNet.from_network(
        network, {name: tables[name] for name in network.names}, target="class"
    )
    np.testing.assert_array_equal(model.predict(frame.assign(cat=None)), smaller.predict(frame))


def test_rows_are_completed_where_sets_differ(frame):
    model = DiscriminativeBayesNet(structure=EDGES, C=0.01, tol=1e-2).fit(frame, hidden="coding")
    assert set(model.classes_) == set(STATES) and model.target_ == []
    rows = frame.head(3).astype(object)
    rows.loc[0, "cat"], rows.loc[1, "sky"], rows.loc[1, "wind"] = None, None, None
    full = model.predict(rows)
    assert full.shape == (3, 5) and not full.isna().any().any() and (full.loc[2] == rows.loc[2]).all()
    best = max(
        completed(model, {**rows.loc[1].to_dict(), "sky": None, "wind": None}), key=lambda r: joint(model, r, False)
    )
    assert full.loc[1].to_dict() == best
    again = model.predict(frame.head(2), hidden=[["class"], []])
    assert (again.loc[1] == frame.loc[1]).all()
    assert 0.4 < model.score(frame) < 1.0  # every variable hidden once
    one = model.score(frame, hidden=[["class"]] * len(frame))
    assert one == pytest.approx(
        np.mean(
            [
                a == b
                for a, b in zip(
                    model.predict(frame, hidden=[["class"]] * len(frame))["class"], frame["class"], strict=True
                )
            ]
        )
    )
    posteriors = model.predict_marginals(rows)
    assert posteriors["cat"].shape == (3, 2) and posteriors["cat"][1].max() == 1.0


def test_several_targets_come_as_a_frame(frame):
    model = DiscriminativeBayesNet(structure="chow-liu", C=0.02, tol=1e-2).fit(frame, target=["class", "cat"])
    found = model.predict(frame)
    assert list(found.columns) == ["class", "cat"] and found.index.equals(frame.index)
    assert set(model.predict(frame.to_dict("records"))) == {"class", "cat"}
    right = (found == frame[["class", "cat"]]).to_numpy()
    assert model.score(frame) == pytest.approx(right.mean())
    assert model.mean_cost(frame) == pytest.approx((~right).sum(axis=1).mean())
    assert model.predict_marginals(frame)["cat"].shape == (60, 2)


@pytest.mark.parametrize("structure", ["naive", "tan", "chow-liu"])
def test_learned_structures(frame, structure):
    model = DiscriminativeBayesNet(structure=structure, C=0.02, tol=1e-2).fit(frame, target="class")
    assert model.status_.converged and model.score(frame) > 0.5
    parents = dict(zip(model.network_.names, model.network_.parents, strict=True))
    assert len(parents["class"]) == 0
    assert max(map(len, parents.values())) == (2 if structure == "tan" else 1)


def test_samples_follow_the_tables(model):
    sample = model.sample(20000, random_state=0)
    assert sample.equals(model.sample(20000, random_state=0))
    tables = model.tables(renormalised=True)
    np.testing.assert_allclose(sample["sky"].value_counts(normalize=True).sort_index(), tables["sky"], atol=0.02)
    share = pd.crosstab([sample["class"], sample["wind"]], sample["grass"], normalize="index")
    expected = tables["grass"].reorder_levels(share.index.names).loc[share.index]
    np.testing.assert_allclose(share.reindex(columns=expected.columns, fill_value=0.0), expected, atol=0.06)


def test_movement_and_trace(model):
    rows = model.movement()
    at = int(np.flatnonzero(rows["table"].str.startswith("P(class | sky='b'"))[0])
    c, theta = (model.network_.groups(x)["class"][1] for x in (model.reference_, model.weights_))
    assert rows["divergence"][at] == pytest.approx(float((c * (np.log(c) - theta)).sum()))
    assert (rows["mass"] <= 1.0).all() and {"estimate", "outside", "dual"} <= set(model.trace_.columns)


def test_references(frame, model):
    near = DiscriminativeBayesNet(structure=EDGES[::-1], C=0.0, reference=model).fit(frame.tail(40), target="class")
    for name in STATES:
        mine, theirs = near.tables()[name], model.tables(renormalised=True)[name]
        if name == "grass":  # its parents stand in another order
            theirs = theirs.reorder_levels(mine.index.names)
        np.testing.assert_allclose(mine, theirs.loc[mine.index], rtol=1e-3, atol=1e-5)
    same = DiscriminativeBayesNet(structure=EDGES, C=0.0, reference=model.tables()).fit(frame, target="class")
    likely = model._normalised() > np.log(1e-5)  # what is rarer gets the floor of references
    np.testing.assert_allclose(same.weights_[likely], model._normalised()[likely], atol=1e-4)
    with pytest.raises(ValueError, match="another graph: 'sky' has the parents"):
        DiscriminativeBayesNet(structure="naive", reference=model).fit(frame, target="class")
    with pytest.raises(ValueError, match="table of 'sky' is missing"):
        DiscriminativeBayesNet(structure=EDGES, reference={"cat": np.ones((3, 2))}).fit(frame, target="class")
    with pytest.raises(TypeError, match="reference must be"):
        DiscriminativeBayesNet(structure=EDGES, reference=3).fit(frame, target="class")
    zero = {name: np.ones(model.network_.shape(v)) for v, name in enumerate(model.network_.names)}
    zero["sky"] = np.array([0.0, 1.0, 1.0])
    kept = DiscriminativeBayesNet(structure=EDGES, reference=zero, C=0.05).fit(frame, target="class")
    assert kept.status_.converged and np.isfinite(kept.weights_).all()  # the floor
    with pytest.raises(ValueError, match=r"zero in P\(sky\); give a floor"):
        DiscriminativeBayesNet(structure=EDGES, reference=zero, floor=0.0).fit(frame, target="class")


def test_networks_go_to_files_and_other_libraries_and_come_back(frame, tmp_path):
    model = DiscriminativeBayesNet(structure=EDGES, C=0.002).fit(frame, target="class")
    assert np.exp(model.network_.tables.log_mass(model.weights_)).min() > 1 - 1e-6  # no mass is lost by renormalising
    states = dict(zip(model.network_.names, (labels.classes for labels in model.network_.states), strict=True))
    back = DiscriminativeBayesNet.from_bif(model.to_bif(tmp_path / "net.bif"), "class", states)
    np.testing.assert_array_equal(back.predict(frame), model.predict(frame))
    np.testing.assert_allclose(back.log_likelihood(frame), model.log_likelihood(frame))
    pytest.importorskip("networkx")
    again = DiscriminativeBayesNet.from_networkx(model.to_networkx(), target="class")
    np.testing.assert_allclose(again.predict_marginals(frame), model.predict_marginals(frame))
    graph = DiscriminativeBayesNet(structure=model.to_networkx(), C=0.002).fit(frame, target="class")
    np.testing.assert_array_equal(graph.predict(frame), model.predict(frame))


def test_saved_models_predict_the_same(frame, model, tmp_path):
    loaded = DiscriminativeBayesNet.load(model.save(tmp_path / "net"))
    np.testing.assert_array_equal(loaded.predict_marginals(frame), model.predict_marginals(frame))
    near = DiscriminativeBayesNet(structure=EDGES, C=0.0, reference=loaded).fit(frame, target="class")
    likely = model._normalised() > np.log(1e-5)  # what is rarer gets the floor of references
    np.testing.assert_allclose(near.weights_[likely], model._normalised()[likely], atol=1e-4)


def test_pgmpy_finds_the_same_values(frame):
    inference = pytest.importorskip("pgmpy.inference")
    model = DiscriminativeBayesNet(structure=EDGES, C=0.002).fit(frame, target="class")
    elimination = inference.VariableElimination(model.to_pgmpy())
    back = DiscriminativeBayesNet.from_pgmpy(model.to_pgmpy(), target="class")
    np.testing.assert_array_equal(back.predict(frame), model.predict(frame))
    for row, mine in zip(frame.head(5).to_dict("records"), model.predict(frame.head(5)), strict=True):
        evidence = {name: value for name, value in row.items() if name != "class"}
        assert elimination.map_query(["class"], evidence=evidence, show_progress=False)["class"] == mine


def test_pyagrum_there_and_back(frame):
    pytest.importorskip("pyagrum")
    model = DiscriminativeBayesNet(structure=EDGES, C=0.002).fit(frame.astype(str), target="class")
    back = DiscriminativeBayesNet.from_pyagrum(model.to_pyagrum(), target="class")
    np.testing.assert_array_equal(back.predict(frame.astype(str)), model.predict(frame.astype(str)))


def test_further_rows(frame):
    whole = DiscriminativeBayesNet(structure=EDGES, states=STATES, C=0.05).fit(frame, target="class")
    model = DiscriminativeBayesNet(
        structure=EDGES, states=STATES, C=0.05, solver=ProximalPoint(blocks="product", limit=10)
    )
    model.partial_fit(frame.head(30), target="class")
    assert model.certificate_.certified
    model.partial_fit(frame.tail(30))
    assert model.n_seen_ == 60 and not model.certificate_.certified
    np.testing.assert_allclose(model.reference_, whole.reference_)
    assert model.certificate_.dual <= whole.certificate_.primal + 1e-9
    only = DiscriminativeBayesNet(structure=EDGES, states=STATES, C=0.05).fit(frame.tail(30), target="class")
    assert np.abs(model.weights_ - whole.weights_).mean() < np.abs(only.weights_ - whole.weights_).mean()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="goes on where a fit"):
        again.partial_fit(frame)
    coding = DiscriminativeBayesNet(structure=EDGES, states=STATES, C=0.01, tol=0.1)
    coding.partial_fit(frame.head(31), hidden="coding").partial_fit(frame.tail(29))
    assert coding.n_seen_ == 60


def test_missing_values_in_training(frame):
    holes = frame.astype(object).copy()
    rng = np.random.default_rng(1)
    for name in ("sky", "wind", "grass", "cat"):
        holes.loc[rng.random(len(holes)) < 0.2, name] = None
    model = DiscriminativeBayesNet(structure=EDGES, C=0.05).fit(holes, target="class")
    assert model.status_.converged and model.certificate_.certified and model.score(holes) > 0.5
    both = holes.dropna(subset=["sky", "class"])
    expected = pd.crosstab(both["sky"], both["class"], normalize="index")
    found = model.network_.groups(model.reference_)["class"]
    np.testing.assert_allclose(found, expected, atol=1e-5)  # families with a hole are not counted


def test_scikit_learn_can_clone_search_and_print(frame):
    X, y = frame.drop(columns="class"), frame["class"]
    grid = GridSearchCV(DiscriminativeBayesNet(structure=EDGES, states=STATES, tol=1e-2), {"C": [1e-3, 1e-1]}, cv=3)
    assert grid.fit(X, y).best_score_ > 0.5
    assert (
        GridSearchCV(DiscriminativeBayesNet(structure="naive", states=STATES, tol=1e-2), {"C": [1e-3, 1e-1]}, cv=3)
        .fit(frame, target="class")
        .best_score_
        > 0.5
    )
    model = clone(DiscriminativeBayesNet(structure=EDGES, solver=ProximalPoint(limit=7), C=3.0))
    assert model.get_params()["solver__limit"] == 7 and "C=3.0" in repr(model)


def test_workers_and_resuming_change_nothing(frame, tmp_path):
    from maxmargin.callbacks.checkpoint import Checkpoint

    words = {"structure": EDGES, "C": 0.3, "tol": 1e-5}
    one = DiscriminativeBayesNet(**words).fit(frame, hidden="coding")
    two = DiscriminativeBayesNet(**words, n_jobs=2).fit(frame, hidden="coding")
    assert np.array_equal(one.weights_, two.weights_)
    path = tmp_path / "run.npz"
    with pytest.warns(ConvergenceWarning):
        DiscriminativeBayesNet(**words, max_passes=6, callbacks=[Checkpoint(path, every=1)]).fit(frame, hidden="coding")
    resumed = DiscriminativeBayesNet(**words).fit(frame, hidden="coding", resume=path)
    assert np.array_equal(one.weights_, resumed.weights_)


def test_too_wide_is_refused_or_bounded():
    n = 5
    name = [[f"x{i}{j}" for j in range(n)] for i in range(n)]
    edges = [(name[i][j], name[i][j + 1]) for i in range(n) for j in range(n - 1)]
    edges += [(name[i][j], name[i + 1][j]) for i in range(n - 1) for j in range(n)]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({v: rng.integers(0, 2, 12) for row in name for v in row})
    everything = [v for row in name for v in row]
    small = DiscriminativeBayesNet(structure=edges, max_cells=600, C=0.1, tol=0.05)
    with pytest.raises(TooWide, match="example 0, with 25 unknown variables"):
        small.fit(frame, target=everything)
    exact = DiscriminativeBayesNet(structure=edges, C=0.1, tol=1e-3).fit(frame, target=everything)
    with pytest.warns(ConvergenceWarning):
        small.set_params(inference="bounded", max_passes=30).fit(frame, target=everything)
    assert small.certificate_.primal >= exact.certificate_.dual - 1e-9
    assert small.certificate_.dual <= exact.certificate_.primal + 1e-9
    with pytest.raises(ValueError, match="sums need exact trees"):
        small.log_likelihood(frame.assign(**{v: None for v in everything[:-1]}))


def test_unseen_states_and_unknown_values(frame):
    model = DiscriminativeBayesNet(structure=EDGES, states={"cat": [0, 1, 2]}, C=0.05).fit(frame, target="class")
    assert model.tables()["cat"].shape == (3, 3) and (model.tables()["cat"][2] < 1e-5).all()
    with pytest.raises(ValueError, match="example 3 has the value 'green' in column 'sky', which is not among"):
        model.predict(frame.head(5).assign(sky=["a", "a", "a", "green", "a"]))
    easy = DiscriminativeBayesNet(structure=EDGES, C=0.05, unknown="missing").fit(frame, target="class")
    strange, gone = frame.head(3).assign(sky="green"), frame.head(3).assign(sky=None)
    np.testing.assert_array_equal(easy.predict(strange), easy.predict(gone))
    assert model.score(frame.head(2).assign(**{"class": "never"})) == 0.0
    assert model.mean_cost(frame.head(2).assign(**{"class": "never"})) == 1.0
    kinds = frame.assign(sky=pd.Categorical(frame["sky"], categories=["c", "b", "a", "never"]))
    assert DiscriminativeBayesNet(structure=EDGES).fit(kinds, target="class").network_.states[0].classes[-1] == "never"


def cyclic():
    networkx = pytest.importorskip("networkx")
    return networkx.DiGraph([("sky", "class"), ("class", "wind"), ("wind", "sky")])


@pytest.mark.parametrize(
    ("words", "change", "ask", "message"),
    [
        ({}, {}, {}, "say what is to be predicted"),
        ({}, {}, {"target": "class", "hidden": "coding"}, "say what is to be predicted"),
        ({}, {}, {"target": "klass"}, "no column 'klass'"),
        ({"structure": [*EDGES, ("cat", "sky")]}, {}, {"target": "class"}, "the graph has a cycle: "),
        ({"structure": [*EDGES, ("dog", "cat")]}, {}, {"target": "class"}, "no column 'dog'"),
        ({"structure": "forest"}, {}, {"target": "class"}, "structure must be"),
        ({"structure": "naive"}, {}, {"target": ["class", "cat"]}, "has one class"),
        ({}, {"wind": np.linspace(0, 1, 60)}, {"target": "class"}, "'wind' has the value .* looks continuous"),
        ({}, {"wind": [None] * 60}, {"target": "class"}, "'wind' has no value at all"),
        ({}, {"class": [None] + ["a"] * 59}, {"target": "class"}, "example 0 has no value for the hidden variable"),
        ({}, {}, {"hidden": [[]] * 60}, "no row has a hidden variable"),
        ({}, {}, {"hidden": [["class"]] * 3}, "60 rows and 3 hidden lists"),
        ({}, {}, {"hidden": [["class"]] * 59 + [["dog"]]}, "example 59 hides 'dog'"),
        ({"C": -1.0}, {}, {"target": "class"}, "C must be"),
        ({"loss": "log"}, {}, {"target": "class"}, "loss must be"),
        ({"unknown": "guess"}, {}, {"target": "class"}, "unknown must be"),
        ({"inference": "loopy"}, {}, {"target": "class"}, "inference must be"),
        ({"cost": [[0, 1], [1, 0]]}, {}, {"target": "class"}, "cost of 'class' cannot be used: .* has 2 rows"),
        ({"cost": {"class": -1.0}}, {}, {"target": "class"}, "cost of 'class'"),
        ({"states": {"sky": ["a"]}}, {}, {"target": "class"}, "in column 'sky', which is not among"),
    ],
    ids=[
        "nothing", "both", "target", "cycle", "column", "structure", "two classes", "continuous", "empty column",
        "no truth", "no hidden", "lists", "hidden name", "C", "loss", "unknown", "inference", "cost", "negative",
        "state",
    ],
)  # fmt: skip
def test_bad_input_is_refused(frame, words, change, ask, message):
    with pytest.raises(ValueError, match=message):
        DiscriminativeBayesNet(**{"structure": EDGES, **words}).fit(frame.assign(**change), **ask)


def test_bad_frames(frame):
    model = DiscriminativeBayesNet(structure=EDGES)
    for X, message in [
        (3, "X must be a frame"),
        ([{"sky": "a"}, 3], "example 1 is 3"),
        ({"sky": "abc"}, "column 'sky' is 'abc'"),
        (frame.rename(columns={"sky": 0}), "a column is called 0"),
    ]:
        with pytest.raises(TypeError, match=message):
            model.fit(X, target="class")
    for X, message in [
        ({"sky": ["a"], "class": ["no", "no"]}, "'sky' has 1 values and 'class' has 2"),
        (frame.head(0), "X is empty"),
        (pd.concat([frame, frame], axis=1), "two columns are called 'sky'"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X, target="class")
    with pytest.raises(TypeError, match="column 'sky': labels must be hashable"):
        model.fit(frame.assign(sky=[["a"]] * 60), target="class")
    with pytest.raises(ValueError, match="cycle"):
        DiscriminativeBayesNet(structure=cyclic()).fit(frame, target="class")
    array = frame.apply(lambda column: column.map({x: k for k, x in enumerate(STATES[column.name])})).to_numpy()
    found = DiscriminativeBayesNet(structure="naive", tol=0.1).fit(array, target="x1").predict(array)
    assert found.shape == (60,) and found.dtype.kind == "i"


def test_not_fitted():
    for ask in ("predict", "predict_marginals", "log_likelihood", "score", "sample", "tables", "movement"):
        with pytest.raises(NotFittedError):
            getattr(DiscriminativeBayesNet(), ask)(*([] if ask in ("tables", "movement") else [3]))


def test_rows_without_hidden_variables_and_empty_frames(frame, model):
    sets = [["class"]] * 30 + [[]] * 30
    some = DiscriminativeBayesNet(structure=EDGES, C=0.05, reference="uniform").fit(frame, hidden=sets)
    only = DiscriminativeBayesNet(structure=EDGES, C=0.05, reference="uniform", states=STATES)
    only.fit(frame.head(30), target="class")
    assert some.certificate_.primal == pytest.approx(only.certificate_.primal, rel=2e-3)
    assert model.predict(frame.head(0)).shape == (0,) and model.predict_marginals(frame.head(0)).shape == (0, 3)
    assert model.log_likelihood(frame.head(0)).shape == (0,)


def test_one_variable_and_one_state():
    model = DiscriminativeBayesNet(structure="naive").fit({"class": ["a", "a", "b"]}, target="class")
    assert model.predict([{}, {}]).tolist() == ["a", "a"]
    one = DiscriminativeBayesNet(structure="naive").fit({"class": ["a", "a"], "x": [1, 2]}, target="class")
    assert one.predict({"x": [2]}).tolist() == ["a"] and one.certificate_.gap <= 1e-9
