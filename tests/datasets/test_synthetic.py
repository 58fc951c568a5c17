"""The known weights of the synthetic sets are those of the exact posterior, checked against the densities."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from maxmargin.datasets import make_chains, make_multiclass


def test_chain_weights_are_the_log_posterior():
    noise, distance = 0.7, 2.0
    chains = make_chains(6, n_labels=3, n_features=4, lengths=(1, 4), random_state=0, noise=noise, distance=distance)
    means = chains.emission.T * noise**2
    probability = np.exp(chains.transition)
    assert np.allclose(probability.sum(axis=1), 1.0)
    assert np.allclose(np.linalg.norm(means, axis=1), distance)
    for x in chains.X:
        score, density = [], []
        for y in product(range(3), repeat=len(x)):
            labels = np.array(y)
            pairs = (labels[:-1], labels[1:])
            score.append((x * chains.emission[:, labels].T).sum() + chains.transition[pairs].sum())
            likelihood = np.prod(np.exp(-((x - means[labels]) ** 2) / (2 * noise**2)))
            density.append(likelihood * np.prod(probability[pairs]))
        posterior = np.exp(score - np.max(score))
        assert np.allclose(posterior / posterior.sum(), np.array(density) / sum(density))


def test_multiclass_weights_read_the_points():
    far = make_multiclass(200, n_labels=3, n_features=5, random_state=0, distance=20.0)
    assert (np.argmax(far.X @ far.weights, axis=1) == far.y).all()
    assert far.X.shape == (200, 5) and far.weights.shape == (5, 3)


def test_lengths_and_seed():
    assert {len(y) for y in make_chains(50, lengths=(2, 4), random_state=0).y} == {2, 3, 4}
    assert {len(y) for y in make_chains(5, lengths=3, random_state=0).y} == {3}
    first, again = make_chains(4, random_state=9), make_chains(4, random_state=9)
    assert all(np.array_equal(a, b) for a, b in zip(first.X, again.X, strict=True))


def test_one_label_one_feature():
    chains = make_chains(3, n_labels=1, n_features=1, lengths=1, random_state=0)
    assert all(y.tolist() == [0] for y in chains.y)


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n_labels": 0}, {"lengths": (3, 2)}, {"lengths": 0}, {"noise": 0.0}])
def test_errors(wrong):
    with pytest.raises(ValueError, match="must be"):
        make_chains(**wrong)
