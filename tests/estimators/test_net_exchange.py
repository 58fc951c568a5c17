"""Networks in other libraries: the same probabilities, the same most probable values, and back without a change."""

import itertools
import logging
import sys

import numpy as np
import pytest

from maxmargin.estimators.discriminative_bayes_net import DiscriminativeBayesNet
from maxmargin.estimators.net_exchange import (
    from_bif,
    from_networkx,
    from_pgmpy,
    from_pyagrum,
    to_bif,
    to_networkx,
    to_pgmpy,
    to_pyagrum,
)
from maxmargin.models.network import Network


def random_network(seed, text=True, least=1):
    """A DAG over five variables in shuffled order, of 1 to 3 states each, and probabilities."""
    rng = np.random.default_rng(seed)
    rank = rng.permutation(5)
    edges = [(f"v{a}", f"v{b}") for a in range(5) for b in range(5) if rank[a] < rank[b] and rng.random() < 0.5]
    sizes = [*rng.permutation([least, 2, 3]), 2, 3]
    states = {f"v{v}": [f"s{k}" if text else k for k in range(size)] for v, size in enumerate(sizes)}
    net = Network.of(edges, states)
    theta = net.tables.normalised(rng.normal(size=net.n_weights) * 1.5)
    return net, np.exp(theta)


def best_values(net, p, hidden, evidence):
    """Enumeration: the most probable values of the hidden variables with the others summed out, and their share."""
    totals = {}
    for codes in itertools.product(*(range(n) for n in net.cardinalities)):
        row = {name: net.states[v].classes[codes[v]] for v, name in enumerate(net.names)}
        if all(row[name] == value for name, value in evidence.items()):
            key = tuple(row[name] for name in hidden)
            totals[key] = totals.get(key, 0.0) + p[net.index(np.array([codes]))[0]].prod()
    best = max(totals, key=totals.get)
    return best, totals[best] / sum(totals.values())


@pytest.mark.parametrize("seed", range(6))
def test_pyagrum_gives_the_same_answers(seed):
    gum = pytest.importorskip("pyagrum")
    net, p = random_network(seed)
    other = to_pyagrum(net, p)
    assert all("domainSize=1" in line for line in other.check())  # it wonders at variables with one state
    hidden, evidence = ("v0", "v3", "v4"), {"v1": "s0"}
    inference = gum.LazyPropagation(other)
    inference.setEvidence(evidence)
    inference.addJointTarget(set(hidden))
    joint = inference.jointPosterior(set(hidden))
    best, share = best_values(net, p, hidden, evidence)
    found, value = joint.argmax()
    assert [net.states[net.code[name]].classes[found[0][name]] for name in hidden] == list(best)
    assert value == pytest.approx(share, abs=1e-10)
    again, q = from_pyagrum(other)
    assert again == net and np.array_equal(q, p)


@pytest.mark.parametrize("seed", range(4))
def test_pgmpy_gives_the_same_answers(seed):
    pytest.importorskip("pgmpy")
    from pgmpy.inference import VariableElimination

    logging.getLogger("pgmpy").setLevel(logging.ERROR)
    net, p = random_network(seed, text=False)
    other = to_pgmpy(net, p)
    assert other.check_model()
    hidden, evidence = ("v0", "v3", "v4"), {"v1": 0}
    found = VariableElimination(other).map_query(list(hidden), evidence, show_progress=False)
    assert tuple(found[name] for name in hidden) == best_values(net, p, hidden, evidence)[0]
    again, q = from_pgmpy(other)
    assert again == net and np.allclose(q, p, atol=1e-15)


def test_pgmpy_with_states_in_another_order_in_a_child():
    pytest.importorskip("pgmpy")
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    other = DiscreteBayesianNetwork([("a", "b")])
    other.add_cpds(
        TabularCPD("a", 2, [[0.3], [0.7]], state_names={"a": ["x", "y"]}),
        TabularCPD("b", 2, [[0.1, 0.6], [0.9, 0.4]], ["a"], [2], state_names={"b": [0, 1], "a": ["y", "x"]}),
    )
    net, p = from_pgmpy(other)
    assert net.groups(p)["b"].tolist() == [[0.6, 0.4], [0.1, 0.9]]
    other.remove_cpds("b")
    with pytest.raises(ValueError, match="no probabilities for 'b'"):
        from_pgmpy(other)


def test_graphs_of_structure_learners():
    """A graph that another library has learned is a structure here."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 300)
    columns = {"a": a, "b": np.where(rng.random(300) < 0.9, a, 1 - a), "c": rng.integers(0, 2, 300)}
    states = {name: [0, 1] for name in columns}
    pgmpy = pytest.importorskip("pgmpy.base")
    assert Network.of(pgmpy.DAG([("a", "b")]), {"a": [0, 1], "b": [0, 1]}).edges == [("a", "b")]
    gum, pandas = pytest.importorskip("pyagrum"), pytest.importorskip("pandas")
    learner = gum.BNLearner(pandas.DataFrame(columns).astype(str))
    net, p = from_pyagrum(learner.useGreedyHillClimbing().learnBN(), states)
    assert {frozenset(edge) for edge in net.edges} == {frozenset("ab")}
    fitted = DiscriminativeBayesNet(structure=gum.fastBN("a->b;a->c")).fit(columns, target="a")
    assert sorted(fitted.network_.edges) == [("a", "b"), ("a", "c")]
    codes = np.stack(list(columns.values()), axis=1)
    counts = net.counts(codes)
    np.testing.assert_allclose(p, counts / net.tables.sums(counts)[net.tables.table], atol=0.02)  # theirs is smoothed


def test_bif_round_trip_and_the_answers_of_the_other_library(tmp_path):
    net, p = random_network(11, least=2)  # readers of others refuse variables with one state
    path = to_bif(net, 0.9 * p, tmp_path / "net.bif")  # files hold tables that leave mass, too
    again, q = from_bif(path)
    assert again == net and np.array_equal(q, 0.9 * p)
    gum = pytest.importorskip("pyagrum")
    to_bif(net, p, path)
    inference = gum.LazyPropagation(gum.loadBN(str(path)))
    inference.setEvidence({"v1": "s0"})
    inference.addJointTarget({"v0", "v4"})
    found, _ = inference.jointPosterior({"v0", "v4"}).argmax()
    best, _ = best_values(net, p, ("v0", "v4"), {"v1": "s0"})
    assert [f"s{found[0][name]}" for name in ("v0", "v4")] == list(best)


@pytest.mark.parametrize("way", ["bif", "object"])
def test_a_trained_network_predicts_the_same_elsewhere(way, tmp_path):
    """Trained with a margin, exported, and asked there: the same most probable class for every row."""
    gum = pytest.importorskip("pyagrum")
    from maxmargin.estimators.discriminative_bayes_net import DiscriminativeBayesNet

    rng = np.random.default_rng(5)
    rain = rng.integers(0, 3, 60)
    frame = {"rain": [f"r{k}" for k in rain]}
    for name, noise in (("wet", 0.3), ("cat", 0.6), ("dog", 0.5)):
        frame[name] = [f"s{k if rng.random() > noise else rng.integers(0, 3)}" for k in rain]
    model = DiscriminativeBayesNet(structure="tan", C=0.3, reference="smoothed").fit(frame, target="rain")
    other = gum.loadBN(str(model.to_bif(tmp_path / "net.bif"))) if way == "bif" else model.to_pyagrum()
    inference, answers = gum.LazyPropagation(other), []
    for i in range(60):
        inference.setEvidence({name: column[i] for name, column in frame.items() if name != "rain"})
        answers.append(other.variable("rain").label(int(np.argmax(inference.posterior("rain").tolist()))))
    assert answers == model.predict(frame).tolist()
    assert np.mean(np.array(answers) == np.array(frame["rain"])) > 0.6


def test_states_that_are_not_text(tmp_path):
    net, p = random_network(2, text=False)
    path = to_bif(net, p, tmp_path / "net.bif")
    assert from_bif(path)[0].states[3].classes == ["0", "1"]
    states = dict(zip(net.names, (labels.classes for labels in net.states), strict=True))
    assert from_bif(path, states)[0] == net
    with pytest.raises(ValueError, match=r"'sun', which .*net\.bif does not have"):
        from_bif(path, {"sun": [0]})
    with pytest.raises(ValueError, match=r"'v3' has 2 states .* and 3 are given"):
        from_bif(path, {"v3": [0, 1, 2]})
    twins = Network.of([], {"a": [1, "1"]})
    with pytest.raises(ValueError, match="look the same as text"):
        to_bif(twins, np.array([0.5, 0.5]), path)


def test_networkx():
    pytest.importorskip("networkx")
    net, p = random_network(4, text=False)
    graph = to_networkx(net, p)
    assert sorted(graph.edges) == sorted(net.edges)
    again, q = from_networkx(graph)
    assert again == net and np.array_equal(q, p)
    child = next(name for name in net.names if graph.in_degree(name))
    graph.nodes[child]["parents"] = []
    with pytest.raises(ValueError, match=f"node '{child}' has the parents"):
        from_networkx(graph)
    del graph.nodes[child]["table"]
    with pytest.raises(ValueError, match=f"node '{child}' has no 'table'"):
        from_networkx(graph)


def test_a_cycle_in_a_file(tmp_path):
    block = "variable {0} {{ type discrete [1] {{ x }}; }} probability ( {0} | {1} ) {{ (x) 1.0; }}\n"
    (tmp_path / "c.bif").write_text(block.format("a", "b") + block.format("b", "a"))
    with pytest.raises(ValueError, match=r"c\.bif cannot be used: the graph has a cycle: a -> b -> a"):
        from_bif(tmp_path / "c.bif")


def test_what_is_no_distribution_is_refused(tmp_path):
    pytest.importorskip("pyagrum")
    net, p = random_network(1)
    with pytest.raises(ValueError, match=r"P\(.*\) sums to 1.5, more than 1; divide every table"):
        to_pyagrum(net, 1.5 * p)
    with pytest.raises(ValueError, match="not logarithms"):
        to_bif(net, np.log(0.9 * p), tmp_path / "n.bif")
    with pytest.raises(ValueError, match="got an array of shape"):
        to_bif(net, p[:-1], tmp_path / "n.bif")


@pytest.mark.parametrize("export", [to_pyagrum, to_pgmpy, to_networkx], ids=["pyagrum", "pgmpy", "networkx"])
def test_a_missing_library_is_named(export, monkeypatch):
    library = export.__name__.removeprefix("to_")
    for module in [library, *(name for name in sys.modules if name.startswith(f"{library}."))]:
        monkeypatch.setitem(sys.modules, module, None)
    if library == "pgmpy":
        monkeypatch.setitem(sys.modules, "pgmpy.factors.discrete", None)
    with pytest.raises(ImportError, match=f"needs {library}"):
        export(*random_network(0))
