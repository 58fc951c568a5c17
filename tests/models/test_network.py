import itertools
import time

import numpy as np
import pytest

from maxmargin.models.labels import Labels
from maxmargin.models.network import Network

STATES = {"rain": ["no", "yes"], "season": [1, 2, 3], "wet": ["dry", "damp", "soaked"], "slip": [False, True]}
EDGES = [("rain", "wet"), ("season", "rain"), ("wet", "slip"), ("season", "slip")]


@pytest.fixture
def net():
    return Network.of(EDGES, STATES)


def test_weights_of_every_assignment(net):
    """Enumeration: the weight of a variable is the entry of its array at the states of its family."""
    w = np.arange(net.n_weights, dtype=float)
    groups = net.groups(w)
    assert {name: table.shape for name, table in groups.items()} == {
        "rain": (3, 2),
        "season": (3,),
        "wet": (2, 3),
        "slip": (3, 3, 2),
    }
    at, members, strides = net.scopes
    all_codes = np.array(list(itertools.product(*(range(n) for n in net.cardinalities))))
    places = net.index(all_codes)
    for codes, row in zip(all_codes, places, strict=True):
        rain, season, wet, slip = codes
        by_hand = [groups["rain"][season, rain], groups["season"][season]]
        by_hand += [groups["wet"][rain, wet], groups["slip"][wet, season, slip]]
        assert w[row].tolist() == by_hand
        for v in range(4):
            k = slice(at[v], at[v + 1])
            assert net.starts[v] + strides[k] @ codes[members[k]] == row[v]


def test_each_table_is_one_conditional_distribution(net):
    """A product of tables that each sum to 1 sums to 1 over all assignments."""
    w = np.log(np.random.default_rng(0).dirichlet(np.ones(3), 200).ravel()[: net.n_weights])
    theta = net.tables.normalised(w)
    all_codes = np.array(list(itertools.product(*(range(n) for n in net.cardinalities))))
    assert np.exp(theta[net.index(all_codes)].sum(axis=1)).sum() == pytest.approx(1.0)


def test_names_of_tables(net):
    names = [net.tables.name(j) for j in range(len(net.tables))]
    assert len(names) == len(net.tables) == 3 + 1 + 2 + 9
    assert names[0] == "P(rain | season=1)" and names[3] == "P(season)"
    assert names[6:9] == [f"P(slip | wet='dry', season={s})" for s in (1, 2, 3)]
    assert net.tables.name(14) == "P(slip | wet='soaked', season=3)"


def test_counts_of_data_with_gaps(net):
    rng = np.random.default_rng(1)
    codes = np.stack([rng.integers(-1, n, 500) for n in net.cardinalities], axis=1)
    weight = rng.random(500)
    counts = net.groups(net.counts(codes))
    assert counts["slip"][2, 1, 0] == sum(1 for r in codes if (r[2], r[1], r[3]) == (2, 1, 0))
    assert counts["season"].sum() == sum(1 for r in codes if r[1] >= 0)
    weighted = net.groups(net.counts(codes, weight))
    assert weighted["wet"][1, 2] == pytest.approx(weight[(codes[:, 0] == 1) & (codes[:, 2] == 2)].sum())


def test_join_is_the_inverse_of_groups(net):
    w = np.random.default_rng(2).random(net.n_weights)
    assert (net.join(net.groups(w)) == w).all()
    net.groups(w)["wet"][:] = 7.0
    assert (w == 7.0).sum() == 6  # views


def test_order_puts_parents_first():
    rng = np.random.default_rng(3)
    for _ in range(30):
        rank = rng.permutation(9)
        edges = [(f"v{a}", f"v{b}") for a in range(9) for b in range(9) if rank[a] < rank[b] and rng.random() < 0.3]
        net = Network.of(edges, {f"v{v}": [0, 1] for v in range(9)})
        where = np.argsort(net.order)
        assert sorted(net.order.tolist()) == list(range(9))
        assert all(where[u] < where[v] for v, above in enumerate(net.parents) for u in above)
        assert sorted(net.edges) == sorted(edges)


def test_three_ways_to_say_it(net):
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph(EDGES)
    by_parents = {"rain": ["season"], "wet": ["rain"], "slip": ["wet", "season"]}
    assert net == Network.of(graph, STATES) == Network.of(by_parents, STATES)
    assert hash(net) == hash(Network.of(graph, STATES))
    assert net != Network.of([], STATES) and net != Network.of(EDGES, {**STATES, "slip": ["no", "yes"]})
    assert net != "a network"
    with pytest.raises(ValueError, match="undirected"):
        Network.of(networkx.Graph(EDGES), STATES)
    with pytest.raises(ValueError, match="node 'sun'"):
        Network.of(networkx.DiGraph([("sun", "wet")]), STATES)


@pytest.mark.parametrize(
    ("edges", "error", "words"),
    [
        ([("wet", "slip"), ("slip", "rain"), ("rain", "wet")], ValueError, "cycle: (.*wet -> slip -> rain|.*rain)"),
        ([("wet", "wet")], ValueError, "wet -> wet"),
        ([("sun", "wet")], ValueError, "unknown variable 'sun'"),
        ([("wet", "sun")], ValueError, "unknown variable 'sun'"),
        ({"sun": ["wet"]}, ValueError, "unknown variable 'sun'"),
        ({"wet": ["sun"]}, ValueError, "unknown variable 'sun'"),
        ({"wet": "rain"}, TypeError, "are a text"),
        ([("rain", "wet"), ("rain", "wet")], ValueError, "twice"),
        (["rain"], TypeError, "edge 0 is 'rain'"),
        ([("rain", "wet", 3)], TypeError, "edge 0"),
    ],
    ids=lambda value: None,
)
def test_bad_graphs(edges, error, words):
    with pytest.raises(error, match=words):
        Network.of(edges, STATES)


def test_bad_variables():
    with pytest.raises(ValueError, match="'a' has no state"):
        Network.of([], {"a": []})
    with pytest.raises(ValueError, match=r"'a' cannot be used.*twice"):
        Network.of([], {"a": ["x", "x"]})
    with pytest.raises(ValueError, match="'a' cannot be used"):
        Network.of([], {"a": [["x"], ["y"]]})
    with pytest.raises(TypeError, match="variable 1 is called 3"):
        Network.of([], {"a": [0], 3: [0]})
    with pytest.raises(ValueError, match="no variable"):
        Network.of([], {})
    one = Labels([0, 1])
    with pytest.raises(ValueError, match="two variables are called 'a'"):
        Network(("a", "a"), (one, one), ((), ()))
    with pytest.raises(ValueError, match="unknown parent 2"):
        Network(("a", "b"), (one, one), ((2,), ()))
    with pytest.raises(ValueError, match="parent 'a' twice"):
        Network(("a", "b"), (one, one), ((), (0, 0)))
    with pytest.raises(ValueError, match="2 lists of states"):
        Network(("a",), (one, one), ((),))
    names = [f"v{v}" for v in range(25)]
    with pytest.raises(ValueError, match=r"more than 2\^31; most are of 'y'"):
        Network.of([(name, "y") for name in names], {"y": [0, 1]} | {name: [0, 1, 2, 3] for name in names})
    with pytest.raises(ValueError, match="'y' has 40 parents"):
        Network.of({"y": [f"v{v}" for v in range(40)]}, {"y": [0, 1]} | {f"v{v}": [0] for v in range(40)})


def test_bad_tables(net):
    groups = net.groups(np.zeros(net.n_weights))
    with pytest.raises(ValueError, match=r"'wet' has shape \(3, 2\); its axes are \(rain, wet\)"):
        net.join({**groups, "wet": np.zeros((3, 2))})
    with pytest.raises(ValueError, match="table of 'slip' is missing"):
        net.join({name: table for name, table in groups.items() if name != "slip"})
    with pytest.raises(ValueError, match="unknown variable 'sun'"):
        net.join({**groups, "sun": np.zeros(2)})
    with pytest.raises(ValueError, match="one column for each of 4"):
        net.index(np.zeros((3, 3), int))


def test_a_hundred_thousand_tables_are_made_in_no_time():
    begin = time.process_time()
    states = {"class": list(range(50))} | {f"x{i}": list(range(10)) for i in range(400)}
    parents = {f"x{i}": ["class", f"x{i - 1}"] if i else ["class"] for i in range(400)}
    net = Network.of(parents, states)
    assert len(net.tables) > 190_000 and net.tables.name(len(net.tables) - 1) == "P(x399 | class=49, x398=9)"
    assert time.process_time() - begin < 1.0
