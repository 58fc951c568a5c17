"""The presets differ where they should: in what they keep, and in how far a step takes them."""

import numpy as np
import pytest

import maxmargin as mm
from agreement.tiny import Tiny, engine_of
from agreement.tiny import walk as tiny_walk
from maxmargin import SimplicialDecomposition as Simplicial

PROBLEMS = [Tiny("chain", cost="matrix", C=1.0, seed=seed, n=5) for seed in range(8)]


def walk(preset, tiny, count, seed=0):
    """(dual, state) after each step."""
    for _, problem, state in tiny_walk(preset, tiny, count, seed):
        yield problem.dual(state.working_set.linear, state.u), state


def test_keeping_more_points_helps():
    """After the same number of looks at the data the dual grows with the limit, on average over problems."""
    limits = [1, 2, 4, 8, None]
    reached = np.array([[list(walk(Simplicial("one", limit=r), t, 12))[-1][0] for r in limits] for t in PROBLEMS])
    share = reached / reached[:, -1:]
    assert (np.diff(share.mean(axis=0)) >= 0).all()
    assert (share <= 1 + 1e-9).all()
    assert share[:, 0].mean() < 0.999


def test_product_of_simplexes_needs_fewer_looks_than_one():
    for tiny in PROBLEMS:
        one, product = (list(walk(Simplicial(blocks), tiny, 6))[-1][0] for blocks in ("one", "product"))
        assert product >= one * (1 - 1e-12)


def test_cutting_plane_and_frank_wolfe_part_after_two_steps():
    """One extreme point beside the origin gives both the same first step; then only one of them remembers."""
    for tiny in PROBLEMS:
        cutting, frank = (
            [(dual, int(state.working_set.n_planes)) for dual, state in walk(preset, tiny, 8)]
            for preset in (mm.CuttingPlane("one"), mm.FrankWolfe())
        )
        assert cutting[0][0] == pytest.approx(frank[0][0], rel=1e-9)
        assert all(c[0] >= f[0] - 1e-9 * abs(f[0]) for c, f in zip(cutting, frank, strict=True))
        assert cutting[-1][0] > frank[-1][0] * (1 + 1e-6)
        assert cutting[-1][1] > 2 >= frank[-1][1]


@pytest.mark.parametrize("blocks", ["one", "product"])
@pytest.mark.parametrize("master", ["newton", "smo"])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_limit_counts_extreme_points(blocks, master, limit):
    """At most r extreme points and one stored iterate in a block, after every step."""
    for loss in ("hinge", "squared_hinge"):
        tiny = Tiny("chain", loss, cost="matrix", C=2.0, seed=1, n=4)
        fullest = 0
        for _, state in walk(Simplicial(blocks, limit=limit, master=master, drop=False), tiny, 30):
            store = state.working_set.store
            for block in range(state.working_set.n_blocks):
                kind = store.iterate[store.slots[block, : store.held[block]]]
                assert kind.sum() <= 1
                assert (kind == 0).sum() <= limit
                fullest = max(fullest, int((kind == 0).sum()))
        assert fullest == limit


def test_origin_leaves_with_the_first_stored_iterate():
    """Frank-Wolfe forgets where it started, cutting planes keep the true outputs available."""
    tiny = PROBLEMS[2]
    store = list(walk(mm.FrankWolfe(), tiny, 3))[-1][1].working_set.store
    assert store.open[0] == 0
    assert store.origin[0] == 0
    store = list(walk(mm.CuttingPlane("one"), tiny, 12))[-1][1].working_set.store
    assert store.open[0] == 1


def test_dropping_or_not():
    """drop=True leaves only points with weight behind; drop=False keeps the others too."""
    tiny = PROBLEMS[0]
    kept = {}
    for drop in (True, False):
        for _, state in walk(Simplicial("one", limit=None, drop=drop), tiny, 15):
            _, _, alpha, _ = state.working_set.planes()
            assert not drop or (alpha > 0).all()
        kept[drop] = state.working_set.n_planes
    assert kept[True] < kept[False]


def test_patience_of_cutting_planes():
    """A plane without weight survives ``patience`` iterations."""
    tiny = PROBLEMS[3]
    count = {
        patience: [s.working_set.n_planes for _, s in walk(mm.CuttingPlane("one", patience=patience), tiny, 14)][-1]
        for patience in (0, 50)
    }
    assert count[0] < count[50]


def test_working_set_leaves_the_other_blocks_alone():
    tiny = PROBLEMS[4]
    problem = tiny.problem()
    engine = engine_of(Simplicial("product", working_set=2, selection="cyclic"), problem)
    state = engine.init(problem)
    for start in (0, 2, 4):
        before = state.working_set.planes()
        engine.step(state)
        after = state.working_set.planes()
        visited = {start % 5, (start + 1) % 5}
        for i in set(range(5)) - visited:
            assert np.array_equal(before[2][before[3] == i], after[2][after[3] == i])
            assert np.array_equal(before[0].toarray()[before[3] == i], after[0].toarray()[after[3] == i])


def test_oracle_calls_of_one_step():
    """Whole-set presets spend a pass a step, working sets as many calls as they hold examples."""
    tiny = PROBLEMS[5]
    for preset, calls in [
        (mm.FrankWolfe(), 5),
        (mm.CuttingPlane("n"), 5),
        (mm.BCFW(certificate_every=1e9), 5),
        (Simplicial("product", working_set=2), 2),
        (Simplicial("product", working_set=1), 1),
    ]:
        for t, (_, state) in enumerate(walk(preset, tiny, 3)):
            assert state.oracle_calls == calls * (t + 1)
