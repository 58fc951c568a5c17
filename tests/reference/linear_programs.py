"""The linear program of L1-regularised large margins over every output, by a general solver."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from reference.problems import chain_features

K, F = 3, 4  # labels and features of the chains


def lp_optimum(planes, weight, positive=None) -> float:
    """``min |w|_1 + sum_i C_i max(0, max_y b_i(y) - w . a_i(y))`` over all rows; planes[i] = (A_i, b_i)."""
    n, d = len(planes), planes[0][0].shape[1]
    rows = [np.hstack([-A, A, -np.eye(n)[[i] * len(b)]]) for i, (A, b) in enumerate(planes)]
    tops = np.full(d, np.inf) if positive is None else np.where(positive, 0.0, np.inf)
    bounds = [(0.0, np.inf)] * d + [(0.0, top) for top in tops] + [(0.0, np.inf)] * n
    cost = np.concatenate([np.ones(2 * d), np.broadcast_to(np.asarray(weight, float), n)])
    found = linprog(cost, np.vstack(rows), np.concatenate([-b for _, b in planes]), bounds=bounds)
    assert found.status == 0
    return float(found.fun)


def unit(psi, costs):
    """Rows of unit margins: every wrong output must be outscored by 1."""
    wrong = np.asarray(costs) > 0
    return psi[wrong], np.ones(int(wrong.sum()))


def chains_with_references(n=6, seed=0):
    """Chains of 2 or 3 tokens, and for each example one to three good outputs."""
    rng = np.random.default_rng(seed)
    Y = [rng.integers(0, K, rng.integers(2, 4)) for _ in range(n)]
    X = [np.eye(K, F)[y] + 0.4 * rng.normal(size=(len(y), F)) for y in Y]
    good = []
    for y in Y:
        others = [np.where(rng.random(len(y)) < 0.4, rng.integers(0, K, len(y)), y) for _ in range(rng.integers(0, 3))]
        good.append([y.tolist(), *(other.tolist() for other in others)])
    return X, good


def all_rows(X, good, pairing):
    """Every row of (7) (``pairing="nearest"``) or (8) (``"all"``), by enumeration; with one good output, of (6)."""
    planes = []
    for x, outputs in zip(X, good, strict=True):
        outputs = sorted({tuple(y) for y in outputs})
        features = {y: chain_features(x, y, K) for y in product(range(K), repeat=len(x))}
        rows = []
        for bad in features.keys() - set(outputs):
            near = min(outputs, key=lambda y: (sum(a != b for a, b in zip(y, bad, strict=True)), y))
            rows += [features[g] - features[bad] for g in (outputs if pairing == "all" else [near])]
        planes.append((np.array(rows), np.ones(len(rows))))
    return planes


def check_solution(svm, best, zeros=6):
    """A fit with absolute weights has converged to the optimum, its bounds lay around it, and many weights are 0."""
    assert svm.certificate_.primal == pytest.approx(best, rel=1e-6) and svm.status_.converged
    history = svm.history_
    assert (history["dual"] <= best * (1 + 1e-9)).all() and (history["primal"] >= best * (1 - 1e-9)).all()
    assert svm.positive is None or (svm.weights_ >= 0).all()
    assert (svm.weights_ == 0).sum() >= zeros
