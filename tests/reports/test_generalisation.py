"""The generalisation bound against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.reports import error_bound, generalisation


def test_the_bound_from_its_numbers():
    # c b / (1/2) = 1: bits = 36 (1 + ln 1) log2(2 * 6 * 2 * 8 + 1) = 36 * 7.592457..., and 2/8 (bits + log2 4)
    found = error_bound(objective=0.25, largest=2.0, n_features=0, n_examples=1, sample=8, confidence=0.5)
    assert found.bits == pytest.approx(273.328453, abs=1e-5)
    assert found.bound == pytest.approx((273.328453 + 2.0) / 4, abs=1e-5)
    # c b / (1/2) = 3, ceil(14) = 14, d + n = 100: 36 * 9 * (1 + 4.605170186) * log2(2 * 14 * 2000 + 1)
    found = error_bound(1.5, 1.0, 60, 40, 1000, 0.95)
    assert found.bits == pytest.approx(324 * 5.605170186 * 15.7731654, rel=1e-6)
    assert found.bound == pytest.approx(0.002 * (found.bits + 5.321928095), rel=1e-6)


def test_huge_samples_as_the_paper_counts_them():
    assert error_bound(100.0, 3.0, 10**6, 5700, 26**300).bound == pytest.approx(0.0, abs=1e-300)
    assert "says nothing" in str(error_bound(100.0, 3.0, 10**6, 5700, 5700))


def test_the_bound_of_a_fit():
    X, y = np.array([[0.0, 1.0], [1.0, 0.0]] * 10), ["a", "b"] * 10
    classifier = mm.MulticlassClassifier(penalty="l1", C=2.0, tol=1e-6).fit(X, y)
    found = generalisation(classifier, X, y, largest=1.0, confidence=0.9)
    objective = np.abs(classifier.weights_).sum()  # the classes are separable and C is large: no losses
    assert found.objective == pytest.approx(objective, rel=1e-5)
    assert found == error_bound(found.objective, 1.0, 2 * len(classifier.weights_), 20, 20, 0.9)
    assert generalisation(classifier, X, y, largest=0.1).largest == 0.5  # 1 / C
    assert generalisation(classifier, X, y, largest=1.0, pairs=10**9).bound < found.bound


@pytest.mark.parametrize("parameters", [{"penalty": "l2"}, {"penalty": "l1", "rescaling": "margin"}])
def test_other_fits_have_no_bound(parameters):
    X, y = np.array([[0.0, 1.0], [1.0, 0.0]]), ["a", "b"]
    classifier = mm.MulticlassClassifier(**parameters).fit(X, y)
    with pytest.raises(ValueError, match="unit margins"):
        generalisation(classifier, X, y, largest=1.0)


@pytest.mark.parametrize(
    ("numbers", "told"),
    [((1.0, 1.0, 5, 5, 5, 1.0), "confidence"), ((1.0, 0.0, 5, 5, 5), "largest"), ((np.inf, 1.0, 5, 5, 5), "finite")],
)
def test_impossible_numbers_are_refused(numbers, told):
    with pytest.raises(ValueError, match=told):
        error_bound(*numbers)
