"""The ring-tracking experiment: its data have the stated frequencies, training at the paper's sizes is certified."""

import numpy as np
import pytest


def test_data_have_the_stated_frequencies(ring):
    data = ring.generate(2000, np.random.default_rng(0), (0.3, 0.4))
    y, x = np.array(data.y), np.array(data.X)
    assert y.shape == x.shape == (2000, 50)
    forward = ((y[:, 1:] - y[:, :-1]) % 10 == 1).mean()
    assert forward == pytest.approx(0.7 + 0.3 / 10, abs=0.01)
    assert (x == y)[y < 7].mean() == pytest.approx(0.6 + 0.4 / 7, abs=0.01)
    np.testing.assert_allclose(np.bincount(x[y >= 7], minlength=7) / (y >= 7).sum(), 1 / 7, atol=0.02)
    np.testing.assert_allclose(np.bincount(y[:, 0], minlength=10) / 2000, 0.1, atol=0.03)


def test_ring_distance_is_the_shorter_way_round(ring):
    assert ring.RING[0].tolist() == [0, 1, 2, 3, 4, 5, 4, 3, 2, 1]
    assert np.array_equal(ring.RING, ring.RING.T)


def test_distances_are_sums_over_positions(ring):
    data = ring.generate(5, np.random.default_rng(1))
    fitted = ring.model(C=0.001, reference="ml", cost=ring.RING).fit(*data)
    found = fitted.predict(data.X)
    by = ring.distances(fitted, data)
    for i in range(5):
        steps = [abs(a - b) for a, b in zip(found[i], data.y[i], strict=True)]
        assert by["ring"][i] == sum(min(s, 10 - s) for s in steps)
        assert by["Hamming"][i] == sum(s > 0 for s in steps)


@pytest.mark.slow
@pytest.mark.parametrize(("C", "margin"), [(0.003, 0.05), (0.1, 1.0)], ids=["small", "large"])
def test_paper_sizes_are_certified_to_a_thousandth(ring, C, margin):
    _, fitted = ring.timed(1, C=C, margin=margin)
    assert fitted.certificate_.certified and fitted.certificate_.relative_gap <= 1e-3
    assert fitted.state_.looks < 1000  # what the paper needed


@pytest.mark.slow
def test_training_beats_maximum_likelihood_in_ring_distance(ring):
    rng = np.random.default_rng(3)
    train, test = ring.generate(100, rng), ring.generate(500, rng)
    likelihood = ring.distances(ring.model(C=0.0).fit(*train), test)["ring"].mean()
    for reference in ("uniform", "ml"):
        trained = ring.model(C=0.003, margin=0.3, reference=reference, cost=ring.RING).fit(*train)
        assert ring.distances(trained, test)["ring"].mean() < likelihood - 2
