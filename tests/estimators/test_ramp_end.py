"""The end of ramp fits: ties in the concave part do not keep a fit from ending."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.formulations.ramp import Ramp

LABELS, WORDS = 8, 300


def noisy_sentences(n, seed):
    """Words by Zipf's law, each with its own label; a tenth of the sentences is relabelled at random."""
    rng = np.random.default_rng(seed)
    label = rng.integers(LABELS, size=WORDS)
    share = 1.0 / np.arange(1, WORDS + 1)
    X, Y = [], []
    for _ in range(n):
        words = rng.choice(WORDS, size=rng.integers(4, 12), p=share / share.sum())
        T = len(words)
        y = np.where(rng.random(T) < 0.05, rng.integers(LABELS, size=T), label[words])
        if rng.random() < 0.1:
            y = rng.integers(LABELS, size=T)
        before = [-1, *words[:-1]]
        X.append([[f"w={a}", f"p={a % 17}", f"prev={b}"] for a, b in zip(words, before, strict=True)])
        Y.append(y.tolist())
    return X, Y


@pytest.mark.found("B3")
def test_a_fit_ends_soon_after_its_objective_has_settled():
    X, Y = noisy_sentences(600, 1)
    tagger = mm.SequenceTagger(C=0.05, loss="ramp", random_state=0, max_passes=100).fit(X, Y)
    assert tagger.status_.converged
    objective, passes = np.array(tagger.history_["primal"]), np.array(tagger.history_["pass"])
    close = passes[objective <= (1 + 1e-4) * objective[-1]][0]
    assert passes[-1] <= 2 * close


@pytest.mark.found("B3")
@pytest.mark.parametrize("seed", range(3))
def test_majorants_with_ties(seed):
    """Whatever slack: above J everywhere, and above it by what is told where it was made."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 4)), rng.integers(3, size=30)
    problem = Ramp().problem(mm.Multiclass().bind(X, y), C=0.7, sample_weight=rng.integers(0, 3, 30))
    d = problem.convex.n_weights
    real = np.arange(d) % (d // 4) < 3  # the others are padding

    def at_random(size=1.0):
        return np.where(real, rng.normal(scale=size, size=d), 0.0)

    def J(w):
        scores, unequal = X @ w.reshape(4, -1)[:, :3], 1.0 - np.eye(3)[y]
        ramp = (scores + unequal).max(axis=1) - (scores - unequal).max(axis=1)
        return 0.5 * w @ w + problem.weight @ ramp

    def majorant(linearisation, w):
        scores = X @ w.reshape(4, -1)[:, :3]
        hinge = (scores + 1.0 - np.eye(3)[y]).max(axis=1) - scores[np.arange(30), y]
        return 0.5 * w @ w + linearisation.term.at(w) + problem.weight @ hinge

    w = at_random()
    known, found = problem.linearise(w + at_random(0.3)), problem.linearise(w)
    for slack in (0.0, 0.05, 0.5, 1e9):
        kept, missing = problem.keep_ties(known, found, w, slack)
        assert 0.0 <= missing <= slack
        np.testing.assert_allclose(majorant(kept, w), J(w) + missing, rtol=1e-12)
        for _ in range(50):
            other = w + at_random(rng.choice([0.1, 1.0, 5.0]))
            assert majorant(kept, other) >= J(other) - 1e-9
    assert kept.same(known)
