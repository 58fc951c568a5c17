"""Chains packed in parts: the arrays of all sequences at once, and damaged ones are refused."""

import pickle
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from maxmargin.costs.hamming import HammingCost
from maxmargin.features.extractor import TextFeatures
from maxmargin.models import chain_kernel as ck
from maxmargin.models.chain import Chain, ChainBound
from maxmargin.models.chain_elsewhere import ChainElsewhere, PartFacts
from maxmargin.models.chain_parts import JoinedParts, PackedPart, checked, cut
from maxmargin.models.search import SearchedModel
from maxmargin.oracles.oracle import ModelOracle
from maxmargin.oracles.part import PartOracle

MODELS = {
    "all": Chain(),
    "observed": Chain(weights="observed", ends=True),
    "constrained": Chain(constraints=[("L0", "L9")], classes=["L0", "L1", "L2", "L9"], cost={"L0": 2.0}),
}


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = [[(f"w{rng.zipf(1.6)}", f"{rng.integers(3)}") for _ in range(rng.integers(0, 9))] for _ in range(70)]
    features = TextFeatures("U1:%x[0,0]\nU2:%x[0,1]/%x[-1,0]\nB:%x[0,1]\n", min_count=2)
    return features.fit_transform(X), [[f"L{tag}" for _, tag in sentence] for sentence in X]


def joined(model, X, Y, cuts):
    whole = model.bind(X, Y)
    parts = [model.bind(X[a:b], Y[a:b], layout=whole.layout) for a, b in pairwise(cuts)]
    packed = [PackedPart.of(part) for part in parts]
    plan = JoinedParts(whole.layout, [part.sizes for part in packed])
    ints, floats = np.empty(plan.lengths[0], np.int32), np.empty(plan.lengths[1])
    for number in reversed(range(len(packed))):  # in any order
        plan.place(number, packed[number], ints, floats)
    return whole, plan.bound(ints, floats)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("cuts", [[0, 70], [0, 0, 20, 21, 70, 70]])
def test_joined_parts_are_the_whole(model, cuts):
    whole, made = joined(model, *data(), cuts)
    for name in ("meta", "ints", "floats", "output_at"):
        np.testing.assert_array_equal(vars(made)[name], vars(whole)[name])
    for name in ("n_examples", "room", "iwork_size", "fwork_size"):
        assert vars(made)[name] == vars(whole)[name]
    w = np.random.default_rng(1).normal(size=whole.n_weights)
    found, wanted = made.argmax(w, cost_weight=1.0), whole.argmax(w, cost_weight=1.0)
    assert all(map(np.array_equal, found.outputs, wanted.outputs))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_arrays_of_unknown_origin_are_checked(model):
    """Any number of any section out of range is refused; what was not touched is believed."""
    bound = model.bind(*data())
    layout = bound.layout
    assert checked(layout, bound.meta.copy(), bound.ints, bound.floats).fingerprint == bound.fingerprint
    sections = PackedPart.of(bound).sizes.sections()
    rng, refused = np.random.default_rng(0), 0
    for key, section in sections.items():
        whole, dtype = (bound.floats, "floats") if key >= ck.AT_VALUES else (bound.ints, "ints")
        if section.stop == section.start:
            continue
        for bad in (2**30, -5):
            arrays = {"ints": bound.ints, "floats": bound.floats}
            arrays[dtype] = whole.copy()
            arrays[dtype][rng.integers(section.start, section.stop)] = bad
            with pytest.raises(ValueError):
                checked(layout, bound.meta.copy(), **arrays)
            refused += 1
    assert refused >= 10
    for key in range(ck.META_SIZE):
        if key in (ck.TABLE_BITS, *(k for k in range(ck.AT_TOKENS, ck.AT_EDGE_VALUES + 1) if k not in sections)):
            continue  # made anew, or never read
        meta = bound.meta.copy()
        meta[key] += 1
        with pytest.raises(ValueError):
            checked(layout, meta, bound.ints, bound.floats)
    with pytest.raises(ValueError):
        checked(layout, bound.meta.copy(), bound.ints[:-1], bound.floats)
    with pytest.raises(ValueError):
        checked(layout, bound.meta.copy(), bound.ints, bound.floats[:-1])


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_parts_elsewhere_are_the_whole(model):
    """Sizes, what identifies the sentences, and the arrays of any range, wherever parts end."""
    X, Y = data()
    whole = model.bind(X, Y)
    for cuts in ([0, 70], [0, 0, 20, 21, 70, 70]):
        bound = [model.bind(X[a:b], Y[a:b], layout=whole.layout) for a, b in pairwise(cuts)]
        made = ChainElsewhere.of(whole.layout, [Held(part, PartFacts.of(part)) for part in bound])
        assert (made.n_examples, made.n_weights) == (70, whole.n_weights)
        assert made.largest == np.abs(whole.floats[np.isfinite(whole.floats)]).max()
        assert made.fingerprint == whole.fingerprint
        for search in ("argmax", "slack", "best_wrong"):
            assert made.kernel(search).room == whole.kernel(search).room
        for first, last in ((0, 70), (0, 20), (20, 21), (5, 33), (21, 22), (69, 70), (7, 7)):
            wanted, (fewer, at) = cut(whole, first, last), made.holding(first, last)
            for own in (made.here(first, last), fewer.here(at, at + last - first)):
                for name in ("meta", "ints", "floats", "output_at"):
                    np.testing.assert_array_equal(vars(own)[name], vars(wanted)[name])
                for name in ("n_examples", "room", "iwork_size", "fwork_size"):
                    assert vars(own)[name] == vars(wanted)[name]
            assert len(fewer.parts) == sum(max(a, first) < min(b, last) for a, b in pairwise(cuts))


def test_the_oracle_of_examples_elsewhere_refuses_to_answer():
    X, Y = data()
    bound = Chain().bind(X, Y)
    oracle = ModelOracle(ChainElsewhere.of(bound.layout, [Held(bound, PartFacts.of(bound))]))
    assert oracle.fused() is None and oracle.longest == ModelOracle(bound).longest
    for question in (oracle.planes, lambda w, examples: oracle.sum(w, examples, np.ones(len(examples)))):
        with pytest.raises(RuntimeError, match="with the workers"):
            question(np.zeros(oracle.n_columns), np.arange(3))


def test_a_search_chosen_by_name_travels_with_all_examples():
    bound = Chain().bind(*data())
    whole = ModelOracle(SearchedModel.of(bound, "bisecting", "slack"), "slack")
    w, part = np.random.default_rng(1).normal(size=whole.n_columns), PartOracle(whole, 3, 9)
    found, wanted = (own.planes(w, np.arange(6)) for own in (pickle.loads(pickle.dumps(part)), part))
    np.testing.assert_array_equal(found.data, wanted.data)
    np.testing.assert_array_equal(found.bound, wanted.bound)


CHANGES = {
    "label": lambda X, Y: Y[3].__setitem__(0, "L2" if Y[3][0] == "L1" else "L1"),
    "order": lambda X, Y: (X.__setitem__(slice(3, 5), X[4:2:-1]), Y.__setitem__(slice(3, 5), Y[4:2:-1])),
    "feature": lambda X, Y: X.__setitem__(3, 1.0 - X[3]),
    "end of a sentence": lambda X, Y: (
        X.__setitem__(slice(3, 5), [np.vstack([X[3], X[4][:1]]), X[4][1:]]),
        Y.__setitem__(slice(3, 5), [[*Y[3], Y[4][0]], Y[4][1:]]),
    ),
    "one more": lambda X, Y: (X.append(X[0]), Y.append(Y[0])),
    "one less": lambda X, Y: (X.pop(), Y.pop()),
}


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("name", CHANGES)
def test_every_change_shows_in_the_fingerprint(name, sparse):
    rng = np.random.default_rng(5)
    X = [np.round(rng.random((n, 3))) for n in (4, 3, 2, 5, 4, 1)]
    Y = [[f"L{k}" for k in rng.integers(0, 3, len(x))] for x in X]
    Y[0][:3] = ["L0", "L1", "L2"]

    def fingerprint():
        return Chain().bind([csr_array(x) for x in X] if sparse else X, Y).fingerprint

    before = fingerprint()
    assert fingerprint() == before
    CHANGES[name](X, Y)
    assert fingerprint() != before


@dataclass
class Held:
    """A part that is here."""

    bound: ChainBound
    facts: PartFacts

    def packed(self):
        return PackedPart.of(self.bound)


RNG = np.random.default_rng(3)
DENSE = [RNG.normal(size=(n, 3)) * (RNG.random((n, 3)) < 0.6) for n in (3, 0, 5, 1, 4, 2, 6)]
CUTTABLE = {
    **{name: (model, *data()) for name, model in MODELS.items()},
    "dense": (Chain(cost=HammingCost(normalize=True)), DENSE, [RNG.integers(0, 3, len(x)).tolist() for x in DENSE]),
    "sparse values": (
        Chain(), [csr_array(x) for x in DENSE if len(x)], [RNG.integers(0, 3, len(x)).tolist() for x in DENSE if len(x)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CUTTABLE)
@pytest.mark.parametrize("share", [(0.0, 1.0), (0.0, 0.4), (0.4, 0.9), (0.6, 0.6)])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_a_part_has_the_planes_of_the_whole(name, share, rescaling):
    """Bit for bit, also behind a pickle."""
    model, X, Y = CUTTABLE[name]
    whole = ModelOracle(model.bind(X, Y), rescaling)
    first, last = (int(end * whole.n_examples) for end in share)
    w = np.random.default_rng(1).normal(size=whole.n_columns)
    part = PartOracle(whole, first, last)
    sent = pickle.loads(pickle.dumps(part))
    assert sent.n_examples == last - first and sent.oracle.model.n_examples == last - first
    for most in (1, 4):
        wanted = whole.planes(w, np.arange(first, last), most)
        for oracle in (part, sent):
            found = oracle.planes(w, np.arange(last - first), most)
            np.testing.assert_array_equal(found.example, wanted.example - first)
            for own in ("indptr", "indices", "data", "b", "bound"):
                np.testing.assert_array_equal(getattr(found, own), getattr(wanted, own))
    size = len(whole.model.ints) + len(whole.model.floats)
    assert len(sent.oracle.model.ints) + len(sent.oracle.model.floats) <= size
