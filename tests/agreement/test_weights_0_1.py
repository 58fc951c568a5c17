"""Presets whose algorithm has not changed since version 0.1 still give its weights, to the tenth digit.

``weights_0_1.npz`` was written by version 0.1 on several processors. With that version installed, ``python
tests/agreement/test_weights_0_1.py FILE`` adds what it finds to a file (``NUMBA_CPU_NAME=znver3`` and an empty
``NUMBA_CPU_FEATURES`` for another processor). Where processors round differently, some fits that end before the
optimum, or at one of several, end elsewhere; so version 0.1 has up to three answers, and a fit must be about as near
to one of them as they are to each other.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from maxmargin import MulticlassClassifier, SequenceTagger

ABOUT = 4  # sums are added in another order than in version 0.1: a further way to round, like a further processor
STORED = Path(__file__).with_name("weights_0_1.npz")
SOLVERS = {
    "auto": "auto",
    "simplicial": "simplicial",
    "sequential_dual": "sequential_dual",
    "bcfw": "bcfw",
    "frank_wolfe": "frank_wolfe",
    "cutting_plane": "cutting_plane",
    "pegasos": "pegasos",
    "sgd": "sgd",
    "perceptron": "perceptron",
    "mira": "mira",
}
PRIMAL = ("pegasos", "sgd", "perceptron", "mira")
TERMS = {
    "hinge": {"loss": "hinge"},
    "squared": {"loss": "squared_hinge"},
    "slack": {"loss": "hinge", "rescaling": "slack"},
    "squared slack": {"loss": "squared_hinge", "rescaling": "slack"},
    "ramp": {"loss": "ramp"},
    "signed": {"loss": "hinge", "positive": True},
}


def cases():
    """(name, estimator class, parameters) of every fit."""
    for kind in (SequenceTagger, MulticlassClassifier):
        for term, words in TERMS.items():
            for name, solver in SOLVERS.items():
                if term == "signed" and (name in PRIMAL or kind is SequenceTagger):
                    continue
                if term == "ramp" and name in ("perceptron", "mira"):
                    continue
                yield f"{kind.__name__} {term} {name}", kind, {**words, "solver": solver}


def fit(kind, parameters):
    rng = np.random.default_rng(7)
    model = kind(C=0.7, tol=1e-6, max_passes=25, random_state=3, **parameters)
    truth = rng.normal(size=(4, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind is MulticlassClassifier:
            X = rng.normal(size=(14, 4))
            return model.fit(X, np.argmax(X @ truth + rng.normal(size=(14, 3)), 1)).weights_
        X = [rng.normal(size=(length, 4)) for length in rng.integers(1, 6, 12)]
        y = [np.argmax(x @ truth + rng.normal(size=(len(x), 3)), 1).tolist() for x in X]
        return model.fit(X, y).weights_


@pytest.mark.parametrize(("name", "kind", "parameters"), list(cases()), ids=[case[0] for case in cases()])
def test_weights_are_those_of_version_0_1(name, kind, parameters):
    stored, found = np.load(STORED)[name], fit(kind, parameters)
    apart = max(np.abs(one - other).max() for one in stored for other in stored)
    nearest = min(stored, key=lambda weights: np.abs(weights - found).max())
    np.testing.assert_allclose(found, nearest, rtol=1e-10, atol=1e-10 + ABOUT * apart)


def test_most_fits_do_not_depend_on_the_processor():
    stored = np.load(STORED)
    assert sum(len(stored[name]) == 1 for name in stored.files) > 0.8 * len(stored.files)


def add_to(path: Path) -> None:
    """Add the weights of this version on this processor, where the file has none that are equal."""
    stored = dict(np.load(path)) if path.exists() else {}
    for name, kind, parameters in cases():
        found, known = fit(kind, parameters), stored.get(name)
        if known is None:
            stored[name] = found[None]
        elif min(np.abs(weights - found).max() for weights in known) > 1e-11:
            stored[name] = np.vstack([known, found])
    np.savez_compressed(path, **stored)


if __name__ == "__main__":
    add_to(Path(sys.argv[1]))
