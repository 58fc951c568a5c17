"""Hostile arrays in every argument of every verb of every estimator, in the functions of inference, and as weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy, deepcopy
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from tools.attack import Foreign, attacks_in_turn
from tools.attack.edits import REALS, places
from tools.attack.targets import Target, finite, targets

import maxmargin as mm
from maxmargin import inference
from maxmargin.estimators import net_exchange
from maxmargin.features.sequences import Sequences
from maxmargin.features.tokens import Tokens
from maxmargin.inference import recursion
from maxmargin.inference.junction_tree import JunctionTree
from maxmargin.models.network import Network

NUMBER = 2600
WHOLE = [-1, -2, 10**6, 2**31 - 1, 2**31, 2**32, 2**62, -(2**31), -(2**62), 7]
SCALARS: list[Any] = [
    None,
    "",
    "\0",
    b"x",
    -1,
    2**70,
    1e400,
    float("nan"),
    True,
    [],
    {},
    (),
    object(),
    [[]],
    "x" * 10_000,
]
Call = Callable[..., object]


def cases(rng: np.random.Generator, number: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Doors in turn, each with one to three places of its arguments spoilt."""
    yield from attacks_in_turn(attack, list(all_doors()), rng, number)


def attack(door: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    call, arguments = all_doors()[door]
    spoilt = list(_opened(deepcopy(arguments)))
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        with suppress(ValueError, TypeError, IndexError, AttributeError):  # not everything can be spoilt twice
            spoil(spoilt, rng)
    call(*_closed(spoilt))


# --- the doors --------------------------------------------------------------------------------------------------------


@cache
def all_doors() -> dict[str, tuple[Call, tuple]]:
    """Functions by name, with good arguments."""
    made: dict[str, tuple[Call, tuple]] = {}
    for name, target in targets().items():
        for verb, function in target.verbs.items():
            made[f"{name}.{verb}"] = (partial(function, target.estimator), (target.X, target.y))
            if verb not in ("fit", "partial_fit"):
                made[f"{name}.weights_ then {verb}"] = (
                    partial(_with_weights, target, verb),
                    (target.estimator.weights_,),
                )
        made[f"{name}.fit with sample_weight"] = (partial(_weighted, target), (np.ones(len(target.y)),))
    made |= _options() | _inference() | _others()
    return made


def _with_weights(target: Target, verb: str, weights: Any) -> object:
    estimator = copy(target.estimator)
    estimator.weights_ = weights
    return target.verbs[verb](estimator, target.X, target.y)


def _weighted(target: Target, weights: Any) -> None:
    from sklearn.base import clone

    fitted = clone(target.estimator).set_params(max_passes=2).fit(target.X, target.y, sample_weight=weights)
    finite(fitted.weights_, "weights")


def _options() -> dict[str, tuple[Call, tuple]]:
    """Verbs with further arguments."""
    known = targets()
    tagger, images, graphs = known["tagger dense"], known["images"], known["graphs junction"]

    def predict(target: Target, option: str, value: Any) -> object:
        found = target.estimator.predict(target.X, **{option: value})
        target.check(target.estimator, target.X, found)
        return found

    def fit(target: Target, option: str, value: Any) -> object:
        from sklearn.base import clone

        fitted = clone(target.estimator).set_params(max_passes=2).fit(target.X, target.y, **{option: value})
        finite(fitted.weights_, "weights")
        return fitted

    def stroke(value: Any) -> object:
        session = images.estimator.interactive(images.X[0])
        session.update(value)
        images.check(images.estimator, images.X, [session.mask])
        return session

    def made(build: Call, *given: Any) -> object:
        found = build(*given)
        target.check(target.estimator, [found], target.estimator.predict([found]))
        return found

    def shards(count: Any, visits: Any, memory: Any) -> object:
        solver = mm.Sharded(shards=count, visits_per_round=visits, memory=memory)
        return finite(mm.SequenceTagger(solver=solver, max_passes=2).fit(tagger.X, tagger.y).weights_, "weights")

    def searched(search: Any) -> object:
        own = mm.GraphLabeler(rescaling="slack", slack_search=search, max_passes=2)
        return finite(own.fit(graphs.X, graphs.y).weights_, "weights")

    aligner, target, ranked = known["aligner"], known["ranker"], known["ranker"].X[0]
    scribbles = [np.where(mask == 1, 1, -1) for mask in images.y]
    return {
        "tagger.predict fixed": (partial(predict, tagger, "fixed"), ([[None] * len(y) for y in tagger.y],)),
        "tagger.fit fixed": (partial(fit, tagger, "fixed"), ([[None] * len(y) for y in tagger.y],)),
        "images.predict scribbles": (partial(predict, images, "scribbles"), (scribbles,)),
        "images.fit pixel_cost": (partial(fit, images, "pixel_cost"), ([np.ones(mask.shape) for mask in images.y],)),
        "images.interactive update": (stroke, (scribbles[0],)),
        "tagger.fit in shards": (shards, (2, 8, 1 << 20)),
        "graphs.fit slack_search": (searched, ("bisecting",)),
        "aligner.fit bitext": (partial(fit, aligner, "bitext"), ([("a b", "x y"), (["c"], ["z"])],)),
        "aligner.fit references": (partial(fit, aligner, "references"), ([[y] for y in aligner.y],)),
        "Lattice": (partial(made, mm.Lattice), tuple(ranked.values())),
        "Lattice.from_nbest": (partial(made, mm.Lattice.from_nbest), (["a", "b c", "a d"], np.eye(3, 2))),
        "graphs.fit node_cost": (partial(fit, graphs, "node_cost"), ([np.ones(len(y)) for y in graphs.y],)),
    }


def _inference() -> dict[str, tuple[Call, tuple]]:
    """Functions of arrays."""
    rng = np.random.default_rng(0)
    unary, tables = rng.normal(size=(5, 3)), rng.normal(size=(3, 3))
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]])
    costs, capacities = rng.random((4, 5, 2)), rng.random((2, 4, 5))
    dag = recursion.Graph(rng.normal(size=4), np.array([0, 0, 1, 3, 5]), np.array([0, 0, 1, 1, 2]), rng.normal(size=5))

    def labels(found: Any, below: int) -> object:
        y = np.asarray(found[0])
        if y.size and (y.min() < -1 or y.max() >= below):
            raise Foreign(f"labels {y!r} where {below} exist"[:300])
        return found

    def argmax(method: str, *given: Any) -> object:
        answer = inference.graph_argmax(*given, method=method, message_passes=20, max_branches=5)
        finite([answer.value, answer.bound], "value and bound")
        return labels(answer, np.shape(given[0])[1])

    def junction(states: Any, scopes: Any, numbers: Any) -> object:
        tree = JunctionTree.build(states, scopes)
        for table in tree.marginals(numbers)[1]:
            finite(table, "marginals")
        return tree.argmax(numbers)

    def repeated(first: Any, around: Any, second: Any) -> object:
        cut = inference.GridCut((4, 5))
        cut.solve(first, around)
        return labels(cut.solve(second), 2)

    def matched(score: Any, left: Any, right: Any) -> object:
        found = inference.k_best_matchings(score, 3, left, right)
        for one in found:
            finite(one.value, "values of links")
            if one.links.size and (one.links.min() < 0 or (one.links >= np.shape(score)).any()):
                raise Foreign(f"links that do not exist: {one.links!r}"[:300])
        return found

    def paths(*given: Any) -> object:
        found = inference.k_best_paths(*given, 3, labels=["a", "b", "", "a b", "b"])
        for one in [inference.best_path(*given), *found]:
            finite(one.score, "scores of paths")
            if one.arcs.size and not 0 <= one.arcs.min() <= one.arcs.max() < len(given[0]):
                raise Foreign(f"arcs that do not exist: {one.arcs!r}"[:300])
        return found

    marginal = {
        "chain marginals": (recursion.chain_marginals, (unary, tables)),
        "graph marginals": (lambda *given: recursion.graph_marginals(recursion.Graph(*given)), tuple(dag)),
        "graph k best": (lambda *given: recursion.graph_k_best(recursion.Graph(*given), 3), tuple(dag)),
    }
    return {
        **marginal,
        "grid_cut": (lambda *given: labels(inference.grid_cut(*given), 2), (costs, capacities)),
        "best paths": (paths, (np.array([0, 0, 1, 1, 2]), np.array([1, 2, 2, 3, 3]), rng.normal(size=5))),
        "best_matching": (matched, (tables, [0.0, 0.5], [0.0])),
        "GridCut twice": (repeated, (costs, capacities, costs[::-1].copy())),
        "graph_cut": (lambda *given: labels(inference.graph_cut(*given), 2), (unary[:, :2], edges, rng.random(5))),
        "submodular_terms": (inference.submodular_terms, (5, edges, np.tile(1.0 - np.eye(2), (5, 1, 1)))),
        **{
            f"graph_argmax {m}": (partial(argmax, m), (unary, edges, tables))
            for m in ("auto", "trws", "branch_and_bound")
        },
        "graph_argmax roof": (partial(argmax, "roof_duality"), (unary[:, :2], edges, tables[:2, :2])),
        "junction tree": (junction, ([2, 3, 2], [(0, 1), (1, 2)], rng.normal(size=12))),
        "chain best": (lambda *given: labels(recursion.chain_argmax(*given), np.shape(given[0])[1]), (unary, tables)),
        "chain k best": (lambda *given: recursion.chain_k_best(*given), (unary, tables, 3)),
        "chain by cost": (
            lambda *given: recursion.chain_by_cost(*given),
            (unary, tables, rng.integers(3, size=(5, 3))),
        ),
    }


def _others() -> dict[str, tuple[Call, tuple]]:
    """Containers of features, and what other libraries hand over."""
    tagger, words = targets()["tagger sparse"], targets()["tagger words"]
    offsets = np.cumsum([0, *(x.shape[0] for x in tagger.X)])
    stacked = sp.csr_array(sp.vstack(tagger.X))

    def sequences(places: Any, sparse: Any, dense: Any) -> object:
        made = Sequences(places, sparse=sparse, dense=dense)
        return made[1:3], made[0]

    def predicted(places: Any, sparse: Any) -> object:
        found = tagger.estimator.predict(made := Sequences(places, sparse=sparse))
        tagger.check(tagger.estimator, made, found)
        return found

    def edited(places: Any, columns: Any, data: Any) -> object:
        """Arrays that change after they were checked."""
        made = Sequences(offsets, sparse=stacked.copy())
        made.sparse.indptr, made.sparse.indices, made.sparse.data = places, columns, data
        return tagger.check(tagger.estimator, made, tagger.estimator.predict(made))

    def tokens(columns: Any, places: Any) -> object:
        made = Tokens.from_columns(columns, places)
        return words.check(words.estimator, made, words.estimator.predict(made))

    def network(labels: Any, tables: Any) -> object:
        import networkx

        if not all(isinstance(given, dict) and {*given} >= {"a", "b"} for given in (labels, tables)):
            return None  # these two are only a way to say it here

        graph = networkx.DiGraph([("a", "b")])
        for name in "ab":
            graph.nodes[name].update(states=labels[name], table=tables[name])
        net, p = net_exchange.from_networkx(graph)
        own = mm.DiscriminativeBayesNet.from_network(net, p, target="b")
        return own.predict({"a": ["0", "1"]})

    def from_array(p: Any) -> object:
        net = Network.of([("a", "b")], {"a": ["0", "1"], "b": ["0", "1"]})
        return mm.DiscriminativeBayesNet.from_network(net, p, target="b").predict({"a": ["0", "1"]})

    def hmm(initial: Any, transition: Any, emission: Any) -> object:
        class Other:
            def __init__(self) -> None:
                self.startprob_, self.transmat_, self.emissionprob_ = initial, transition, emission

        model = mm.DiscriminativeHMM.from_hmmlearn(Other())
        return model.predict([[0, 1, 2]]), model.predict_marginals([[0, 1, 2]])

    half = np.full((2, 2), 0.5)
    columns = [[word for sentence in words.X for word in sentence]]
    places = np.cumsum([0, *map(len, words.X)])
    return {
        "Sequences": (sequences, (offsets, stacked, np.ones((offsets[-1], 2)))),
        "tagger.predict of Sequences": (predicted, (offsets, stacked)),
        "tagger.predict of edited Sequences": (edited, (stacked.indptr, stacked.indices, stacked.data)),
        "Tokens": (tokens, (columns, places)),
        "from_networkx": (network, ({"a": ["0", "1"], "b": ["0", "1"]}, {"a": np.array([0.5, 0.5]), "b": half})),
        "from_network": (from_array, (np.full(6, 0.5),)),
        "from_hmmlearn": (hmm, (np.full(2, 0.5), half, np.full((2, 3), 1 / 3))),
    }


# --- what is done to them ---------------------------------------------------------------------------------------------


def spoil(root: list, rng: np.random.Generator) -> None:
    """Change one place of nested lists, tuples, mappings, arrays and sparse matrices."""
    known = places(root)
    node, key = known[rng.integers(len(known))]
    value = node[key]
    if isinstance(value, np.ndarray):
        node[key] = spoilt_array(value, rng)
    elif sp.issparse(value):
        node[key] = spoilt_matrix(value, rng)
    elif isinstance(value, list) and len(value) and rng.random() < 0.5:
        at = int(rng.integers(len(value)))
        changed: Any = [value[:at], [*value, value[at]], list(value)[::-1], dict(enumerate(value)), value[at]][
            rng.integers(5)
        ]
        node[key] = type(value)(changed) if isinstance(changed, list) else changed
    elif isinstance(value, dict) and len(value) and rng.random() < 0.5:
        name = list(value)[rng.integers(len(value))]
        node[key] = {k: v for k, v in value.items() if k != name} | (
            {} if rng.random() < 0.5 else {"other": value[name]}
        )
    else:
        node[key] = deepcopy(SCALARS[rng.integers(len(SCALARS))])


class _Listed(list):
    """A tuple while its places are changed."""


def _opened(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return (_Listed if isinstance(value, tuple) else list)(map(_opened, value))
    return {key: _opened(part) for key, part in value.items()} if isinstance(value, dict) else value


def _closed(value: Any) -> Any:
    if isinstance(value, list):
        return (tuple if isinstance(value, _Listed) else list)(map(_closed, value))
    return {key: _closed(part) for key, part in value.items()} if isinstance(value, dict) else value


def spoilt_array(array: np.ndarray, rng: np.random.Generator) -> Any:
    """Other numbers, dtypes, shapes or memory of an array."""
    array = array.copy()
    action = rng.integers(6)
    if action <= 2 and array.size:
        for at in rng.integers(array.size, size=int(rng.choice([1, 1, 3, array.size]))):
            if array.dtype.kind == "f":
                array.flat[at] = rng.choice(REALS)
            elif array.dtype.kind in "iu":
                array = array.astype(np.int64)
                array.flat[at] = WHOLE[rng.integers(len(WHOLE))]
            elif array.dtype.kind in "UO":
                array = array.astype(object)
                array.flat[at] = deepcopy(SCALARS[rng.integers(len(SCALARS))])
        return array
    if action == 3:
        dtypes = [
            object,
            str,
            complex,
            np.float16,
            np.float32,
            ">f8",
            np.int8,
            np.uint64,
            np.uint8,
            bool,
            "datetime64[s]",
            "S3",
        ]
        try:
            return array.astype(dtypes[rng.integers(len(dtypes))])
        except (TypeError, ValueError, RuntimeError):  # times do not fit into short texts
            return array.astype(object)
    if action == 4:
        shapes = [
            array[..., None], array[None], array.ravel(), array[:0], array[:-1],
            array[..., :-1] if array.ndim else array,
            np.repeat(array, 2, axis=-1) if array.ndim else array, array.T, np.empty((0, 0)), np.empty(0),
            np.broadcast_to(array[:1], (2**12, *array.shape[1:])) if array.ndim else array,
        ]  # fmt: skip
        return shapes[rng.integers(len(shapes))]
    memory = [np.asfortranarray(array), array[::-1], np.ma.masked_array(array, mask=True), array.tolist(), array.view()]
    memory[-1].flags.writeable = False
    return memory[rng.integers(len(memory))]


def spoilt_matrix(matrix: Any, rng: np.random.Generator) -> Any:
    """A sparse matrix whose own arrays are wrong, in any format."""
    form = ["csr", "csr", "csr", "csc", "coo", "bsr", "lil", "dok", "dia"][rng.integers(9)]
    if "spoilt" in vars(matrix):  # to convert it would be SciPy's undoing, not ours
        form = matrix.format
    matrix = matrix.copy().asformat(form)
    matrix.spoilt = True
    if form in ("csr", "csc", "bsr"):
        action = rng.integers(5)
        if action == 0 and len(matrix.indices):
            matrix.indices[rng.integers(len(matrix.indices))] = rng.choice(
                [-1, 10**6, 2**31 - 1, max(matrix.shape), -(2**31)]
            )
        elif action == 1:
            matrix.indptr[rng.integers(len(matrix.indptr))] = rng.choice([-1, 10**6, 2**31 - 1, 0, 1])
        elif action == 2:
            name = ["indices", "indptr", "data"][rng.integers(3)]
            setattr(matrix, name, spoilt_array(getattr(matrix, name), rng))
        elif action == 3:
            matrix.indptr = matrix.indptr[:-1]
        else:
            matrix._shape = tuple(int(rng.choice([side, 0, 1, side + 1, 10**6])) for side in matrix.shape)
    elif form == "coo" and matrix.nnz:
        matrix.coords[rng.integers(2)][rng.integers(matrix.nnz)] = rng.choice([-1, 10**6, 2**31 - 1])
    elif form == "lil":
        matrix.rows[0] = [10**6]
        matrix.data[0] = [1.0]
    elif form == "dok":
        matrix._dict[(10**6, 10**6)] = 1.0
    elif len(matrix.data):
        matrix.data = spoilt_array(matrix.data, rng)
    return matrix
