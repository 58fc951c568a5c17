"""Chains packed in parts: the arrays of all sequences at once, and damaged ones are refused."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from maxmargin.costs.hamming import HammingCost
from maxmargin.features.extractor import TextFeatures
from maxmargin.models import chain_kernel as ck
from maxmargin.models.chain import Chain
from maxmargin.models.chain_parts import JoinedParts, PackedPart, checked
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
