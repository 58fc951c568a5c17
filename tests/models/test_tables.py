"""Tables of log-probabilities and the reference distributions."""

import numpy as np
import pytest

from maxmargin.models.tables import Tables, reference_distribution

TABLES = Tables.of([2, 3, 1], ["coin", "urn", "sure"])


def test_sums_masses_and_shifts():
    theta = np.log([0.5, 0.9, 0.1, 0.2, 0.3, 1.0])
    np.testing.assert_allclose(TABLES.sums(np.exp(theta)), [1.4, 0.6, 1.0])
    np.testing.assert_allclose(np.exp(TABLES.log_mass(theta)), [1.4, 0.6, 1.0])
    shifted = np.exp(TABLES.feasible(theta))
    np.testing.assert_allclose(shifted, [0.5 / 1.4, 0.9 / 1.4, 0.1, 0.2, 0.3, 1.0])  # only what is above 1 moves
    np.testing.assert_allclose(TABLES.sums(np.exp(TABLES.normalised(theta))), 1.0)


def test_masses_survive_zeros_and_large_numbers():
    theta = np.array([-np.inf, 0.0, -np.inf, -np.inf, -np.inf, 800.0])
    assert TABLES.log_mass(theta).tolist() == [0.0, -np.inf, 800.0]


def test_references():
    counts = np.array([3.0, 1.0, 0.0, 0.0, 0.0, 5.0])
    np.testing.assert_allclose(reference_distribution(TABLES, "uniform"), [0.5, 0.5, 1 / 3, 1 / 3, 1 / 3, 1.0])
    np.testing.assert_allclose(reference_distribution(TABLES, "ml", counts)[:2], [0.75, 0.25])
    np.testing.assert_allclose(reference_distribution(TABLES, "ml", counts)[2:5], 1 / 3)  # never seen: uniform
    np.testing.assert_allclose(
        reference_distribution(TABLES, "smoothed", counts, smoothing=1.0)[:2], [4 / 6, 2 / 6], rtol=1e-12
    )
    own = reference_distribution(TABLES, np.array([1.0, 0.0, 2.0, 1.0, 1.0, 1.0]), floor=0.01)
    np.testing.assert_allclose(TABLES.sums(own), 1.0)
    assert own[1] == pytest.approx(0.01 / 1.01) and own[2] == 0.5


def test_a_floor_above_the_uniform_probability_gives_the_uniform_one():
    np.testing.assert_allclose(reference_distribution(TABLES, "ml", np.ones(6), floor=0.9)[:2], 0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("best",), "reference must be"),
        (("ml",), "needs the counts"),
        ((np.ones(5),), "must have 6 entries"),
        ((np.array([1.0, -1.0, 1, 1, 1, 1]),), "in coin"),
        ((np.array([1.0, 1.0, np.nan, 1, 1, 1]),), "in urn"),
    ],
    ids=["name", "counts", "shape", "negative", "nan"],
)
def test_references_that_can_not_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        reference_distribution(TABLES, *arguments)


def test_zeros_need_a_floor():
    with pytest.raises(ValueError, match="zero in coin"):
        reference_distribution(TABLES, "ml", np.array([1.0, 0, 1, 1, 1, 1]), floor=0.0)
    with pytest.raises(ValueError, match="floor must be"):
        reference_distribution(TABLES, "uniform", floor=1.5)


def test_tables_that_can_not_be():
    with pytest.raises(ValueError, match="at least one entry"):
        Tables.of([2, 0, 1])
    with pytest.raises(ValueError, match="2 tables have 1 names"):
        Tables.of([2, 1], ["one"])
    assert Tables.of([2, 1]).name(1) == "table 1"
