"""The matching model against trying all sets of links, and the checks of its data."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin.datasets import Links
from maxmargin.models import Matching
from maxmargin.testing import check_model
from reference.qp import solve_primal


def link_sets(shape, limits):
    """Every allowed set of links as a table of 0 and 1."""
    for bits in product((0, 1), repeat=int(np.prod(shape))):
        y = np.array(bits).reshape(shape)
        if (y.sum(axis=1) <= limits[0]).all() and (y.sum(axis=0) <= limits[1]).all():
            yield y


def phi(x, y, limits):
    """Features of a set of links, prices included, by their definition."""
    prices = []
    for axis, most in ((1, limits[0]), (0, limits[1])):
        degree = y.sum(axis=axis)
        prices += [-sum(max(0, d - k + 1) for d in degree) for k in range(2, most + 1)]
    return np.concatenate([(x * y[:, :, None]).sum(axis=(0, 1)), prices])


def touching(y):
    """Links with a neighbour below along the diagonal, and across it."""
    found = set(map(tuple, np.argwhere(y).tolist()))
    return np.array([sum((i + 1, j + step) in found for i, j in found) for step in (1, -1)])


def cost(y, links, missed, false):
    found = set(map(tuple, np.argwhere(y).tolist()))
    return missed * len(links.sure - found) + false * len(found - links.sure - links.possible)


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    limits = draw(st.sampled_from([(1, 1), (2, 1), (1, 3), (2, 2)]))
    shapes = draw(st.lists(st.sampled_from([(1, 1), (2, 3), (3, 3), (4, 2), (1, 5)]), min_size=1, max_size=3))
    integral = draw(st.booleans())
    X = [rng.integers(-2, 3, (*s, 2)).astype(float) if integral else rng.normal(size=(*s, 2)) for s in shapes]
    Y = []
    for shape in shapes:
        every = list(link_sets(shape, limits))
        sure = frozenset(map(tuple, np.argwhere(every[rng.integers(len(every))]).tolist()))
        possible = frozenset(map(tuple, np.argwhere(rng.random(shape) < 0.2).tolist()))
        Y.append(Links(sure, possible))
    w = rng.integers(-2, 3, 2 + sum(limits) - 2).astype(float) if integral else rng.normal(size=2 + sum(limits) - 2)
    w[2:] = np.abs(w[2:])
    return X, Y, limits, w, draw(st.sampled_from([(1.0, 1.0), (3.0, 0.5)]))


@settings(max_examples=80, deadline=None)
@given(problems())
def test_the_most_violating_links_are_those_of_brute_force(problem):
    X, Y, limits, w, (missed, false) = problem
    bound = Matching(limits, missed=missed, false=false).bind(X, Y)
    for cost_weight in (0.0, 1.0, 0.4):
        for i, (x, links) in enumerate(zip(X, Y, strict=True)):
            truth = np.zeros(x.shape[:2], int)
            truth[tuple(np.array(sorted(links.sure), int).reshape(-1, 2).T)] = 1
            values = [
                cost_weight * cost(y, links, missed, false) + w @ (phi(x, y, limits) - phi(x, truth, limits))
                for y in link_sets(x.shape[:2], limits)
            ]
            found = bound.answer(w, i, cost_weight)
            assert found.value == pytest.approx(max(values), abs=1e-9)
            assert found.bound >= max(values) - 1e-9
            psi = np.zeros(len(w))
            psi[found.indices] = found.psi
            assert found.value == pytest.approx(cost_weight * found.cost - w @ psi, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from([(1.0, 0.0), (2.5, 1.5), (-1.0, 0.5), (-0.7, -2.0), (0.3, 0.3)]))
def test_links_that_touch_are_weighed_as_by_brute_force(problem, bonuses):
    X, Y, limits, w, (missed, false) = problem
    bound = Matching(limits, missed=missed, false=false, neighbours=True).bind(X, Y)
    w = np.concatenate([w, bonuses])

    def features(x, y):
        return np.concatenate([phi(x, y, limits), touching(y)])

    for cost_weight in (0.0, 1.0):
        for i, (x, links) in enumerate(zip(X, Y, strict=True)):
            truth = np.zeros(x.shape[:2], int)
            truth[tuple(np.array(sorted(links.sure), int).reshape(-1, 2).T)] = 1
            found = bound.answer(w, i, cost_weight)
            best = max(
                cost_weight * cost(y, links, missed, false) + w @ (features(x, y) - features(x, truth))
                for y in link_sets(x.shape[:2], limits)
            )
            assert found.value == pytest.approx(best, abs=1e-7)
            assert best - 1e-9 <= found.bound <= best + 1e-6
            codes = bound.argmax(w, np.array([i]), cost_weight).outputs[0]
            table = np.zeros(x.shape[:2], int)
            for link in bound.layout.output(codes):
                table[link] = 1
            psi = np.zeros(len(w))
            psi[found.indices] = found.psi
            np.testing.assert_allclose(psi, features(x, truth) - features(x, table), atol=1e-9)
            at, values = bound.difference(i, codes)
            np.testing.assert_allclose(values, psi[at], atol=1e-9)


def test_a_bound_that_is_not_met_holds():
    """Bonuses so large that 100 matchings prove little: the value of a known matching stays below the bound."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = rng.normal(size=(9, 9, 1)) - 1.0
        bound = Matching(1, neighbours=True).bind([x])
        w, planted = np.array([1.0, 2.0, 1.5]), np.eye(9, dtype=int)
        found = bound.argmax(w)
        assert found.bound[0] >= found.value[0] >= 0.0
        assert found.bound[0] >= x[planted > 0].sum() + w[1:] @ touching(planted) - 1e-9


def test_certificates_with_neighbours_are_true():
    """The optimum over all sets of links, by a general solver."""
    rng = np.random.default_rng(2)
    X, Y = [], []
    for _ in range(6):
        x, y = rng.normal(size=(3, 3, 2)), np.eye(3, dtype=int)[rng.permutation(3)]
        x[y > 0, 0] += 0.7
        X.append(x)
        Y.append(sorted(map(tuple, np.argwhere(y).tolist())))
    planes = []
    for x, y in zip(X, Y, strict=True):
        truth = np.zeros((3, 3), int)
        truth[tuple(np.array(y).T)] = 1
        every = [np.concatenate([phi(x, z, (1, 1)), touching(z)]) for z in link_sets((3, 3), (1, 1))]
        costs = [cost(z, Links(frozenset(y)), 1.0, 1.0) for z in link_sets((3, 3), (1, 1))]
        right = np.concatenate([phi(x, truth, (1, 1)), touching(truth)])
        planes.append((right - np.array(every), np.array(costs)))
    expected = solve_primal(planes, 0.5).objective
    for solver in ("auto", "cutting_plane", "sequential_dual"):
        fitted = mm.StructuredSVM(Matching(1, neighbours=True), C=0.5, solver=solver, tol=1e-5).fit(X, Y)
        assert fitted.certificate_.primal == pytest.approx(expected, rel=2e-5)
        assert fitted.certificate_.dual <= expected * (1 + 1e-9)
    with pytest.raises(ValueError, match="predict_kbest"):
        fitted.predict_kbest(X, 2)


@settings(max_examples=50, deadline=None)
@given(problems())
def test_the_k_best_links_and_their_planes_are_those_of_brute_force(problem):
    X, Y, limits, w, _ = problem
    bound = Matching(limits).bind(X, Y)
    for i, x in enumerate(X):
        every = sorted((w @ phi(x, y, limits) for y in link_sets(x.shape[:2], limits)), reverse=True)
        codes, scores = bound.k_best(w, i, 12)
        np.testing.assert_allclose(scores, every[:12], atol=1e-9)
        truth = bound.codes(i, bound.layout.output(bound.codes(i, Links(Y[i].sure))))
        at, _ = bound.difference(i, truth)
        assert len(at) == 0
        for code, score in zip(codes, scores, strict=True):
            table = np.zeros(x.shape[:2], int)
            for link in bound.layout.output(code):
                table[link] = 1
            assert w @ phi(x, table, limits) == pytest.approx(score, abs=1e-9)
            assert bound.layout.output(bound.codes(i, bound.layout.output(code))) == bound.layout.output(code)


def example(rng, n_features=3):
    shape = rng.integers(2, 6, 2)
    links = frozenset((int(i), int(j)) for i, j in zip(range(shape[0]), rng.permutation(shape[1]), strict=False))
    x = rng.normal(scale=0.5, size=(*shape, n_features))
    for link in links:
        x[link][0] += 1.5
    return x, links


def fits(solvers, tol, **words):
    """Certificates of fits by several solvers."""
    rng = np.random.default_rng(1)
    X, Y = zip(*(example(rng) for _ in range(8)), strict=True)
    found = []
    for solver in solvers:
        model = Matching(2)
        svm = mm.StructuredSVM(model, C=0.3, solver=solver, tol=tol, max_passes=4000, random_state=0, **words).fit(X, Y)
        assert (svm.weights_[3:] >= 0).all()
        found.append(svm.certificate_)
    return found


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_solvers_agree(loss):
    found = fits(("auto", "bcfw", "cutting_plane"), 1e-5, loss=loss)
    assert max(c.primal for c in found) - max(c.dual for c in found) <= 2e-5 * found[0].primal
    assert max(c.dual for c in found) <= min(c.primal for c in found) + 1e-12


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rescaling", ["slack", "sqrt_slack", "unit"])
def test_other_rescalings_are_bracketed(rescaling):
    found = fits(("auto", "cutting_plane"), 1e-2, rescaling=rescaling)
    assert max(c.dual for c in found) <= min(c.primal for c in found) + 1e-12


def test_the_model_passes_its_own_checks():
    rng = np.random.default_rng(2)
    X, Y = zip(*(example(rng) for _ in range(5)), strict=True)
    report = check_model(Matching((1, 2), missed=2.0), X, Y)
    assert report.ok, report


def test_linear_programs_with_several_good_answers():
    rng = np.random.default_rng(3)
    X, Y = zip(*(example(rng) for _ in range(8)), strict=True)
    references = [[sorted(links), sorted(links)[1:]] for links in Y]
    svm = mm.StructuredSVM(Matching(1), penalty="l1", C=10.0, tol=1e-4).fit(X, None, references=references)
    assert svm.certificate_.relative_gap <= 1e-4


def test_links_beyond_the_limit_become_possible():
    bound = Matching(1).bind([np.ones((2, 2, 1))], ["0-0 0-1"])
    assert len(bound.truth[0]) == 1
    assert bound.answer(np.array([5.0]), 0, 0.0).cost in (0.0, 1.0)  # the other pair of a full matching is wrong


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([], None, "X is empty"),
        ([np.ones((2, 2))], None, "example 0 have shape"),
        ([np.ones((2, 2, 1)), np.ones((1, 1, 2))], None, "example 1 has 2 features"),
        ([np.full((2, 2, 1), np.nan)], None, "example 0"),
        ([np.ones((2, 2, 0))], None, "no features"),
        ([np.ones((2, 2, 1))], ["0-2"], "example 0 links 0 to 2"),
        ([np.ones((2, 2, 1))], [[(-1, 0)]], "example 0 links -1 to 0"),
        ([np.ones((2, 2, 1))], ["0:1"], "example 0: '0:1' is no link"),
        ([np.ones((2, 2, 1))], [[0, 1]], "example 0: 0 is no link"),
        ([np.ones((2, 2, 1))], [[(0.5, 1)]], "is no link"),
        ([np.ones((2, 2, 1))], ["0-0", "1-1"], "must agree"),
        ([np.ones((2, 2, 1))], "0-0", "give the links of each example"),
    ],
)
def test_what_is_wrong_is_named(X, Y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Matching().bind(X, Y)


@pytest.mark.parametrize("words", [{"max_links": 0}, {"max_links": (1, 2, 3)}, {"missed": -1.0}, {"false": "x"}])
def test_parameters_are_checked(words):
    with pytest.raises(ValueError, match=next(iter(words))):
        Matching(**words).bind([np.ones((1, 1, 1))])


def test_links_are_written_and_read():
    links = Links.parse("0-0 2?1 1-3 4p4 5-6-P")
    assert links == Links(frozenset({(0, 0), (1, 3)}), frozenset({(2, 1), (4, 4), (5, 6)}))
    assert Links.parse(str(links)) == links
