"""Features and C so large that float64 has no digits left: a status that says so, soon."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import maxmargin as mm

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(4, 3)) for _ in range(6)]
Y = [RNG.integers(0, 2, 4).tolist() for _ in range(6)]


def with_column(scale):
    return [np.column_stack([x, scale + scale * 1e-3 * x[:, 0]]) for x in X]


def fit(features, labels=Y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mm.SequenceTagger(random_state=0, **options).fit(features, labels)


@pytest.mark.found("B4")
@pytest.mark.parametrize("scale", [1e10, 1e18, 1e99])
def test_a_large_column_is_named(scale):
    tagger = fit(with_column(scale))
    assert tagger.status_.code == "badly scaled"
    largest = f"is {4 * scale:.1g}, column 3 of dense"  # four tokens
    assert largest in tagger.status_.sentence
    assert "standard deviation" in tagger.status_.sentence
    assert tagger.n_iter_ <= 200
    assert np.isfinite(tagger.weights_).all()


@pytest.mark.found("B4")
def test_numbers_of_64_bits():
    largest = np.iinfo(np.int64).max
    features = [np.column_stack([RNG.integers(0, 3, 4), largest - RNG.integers(0, 5, 4)]) for _ in range(6)]
    assert fit(features).status_.code == "badly scaled"


@pytest.mark.found("B4")
def test_a_large_C_is_named():
    tagger = fit(X, C=1e15)
    assert tagger.status_.code == "badly scaled"
    assert "C is 1e+15" in tagger.status_.sentence and "lower C" in tagger.status_.sentence


@pytest.mark.found("B4")
@pytest.mark.parametrize("scale", [1e20, 1e60, 1e100])
@pytest.mark.parametrize("seed", range(4))
def test_one_large_value_is_no_fault_of_the_argmax(scale, seed):
    """It may even converge; there is never a certificate that weak duality forbids."""
    rng = np.random.default_rng(seed)
    features = [rng.normal(size=(4, 3)) for _ in range(6)]
    labels = [rng.integers(0, 2, 4).tolist() for _ in range(6)]
    features[seed][seed % 4, seed % 3] = scale
    tagger = fit(features, labels, max_passes=300)
    assert tagger.status_.code in ("converged", "badly scaled", "stalled")
    assert not tagger.certificate_.violates_duality()


@pytest.mark.parametrize("scale", [1e-18, 1e-6, 1e3])
def test_other_scales_are_solved(scale):
    assert fit([scale * x for x in X]).status_.converged


def test_separable_examples_with_a_huge_C_are_solved():
    labels = [(x[:, 0] > 0).astype(int).tolist() for x in X]
    assert fit([np.sign(x) for x in X], labels, C=1e15).status_.converged


@pytest.mark.found("B9")
def test_a_C_that_overflows():
    with pytest.raises(ValueError, match=r"C must be at most 1e\+100, got 1e\+300"):
        fit(X, C=1e300, solver="pegasos")


@pytest.mark.found("B4")
def test_values_beyond_all_measure_are_refused():
    with pytest.raises(ValueError, match=r"sequence 0 has NaN, infinite or huge \(beyond 1e\+100\) dense features"):
        fit(with_column(1e200))
