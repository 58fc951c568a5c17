"""Presets whose algorithm has not changed since version 0.1 still give its weights, to the tenth digit.

``weights_0_1.npz`` was written by version 0.1: ``python tests/agreement/test_weights_0_1.py FILE`` with that version
installed writes it again.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from maxmargin import MulticlassClassifier, SequenceTagger

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
    stored = np.load(STORED)[name]
    np.testing.assert_allclose(fit(kind, parameters), stored, rtol=1e-10, atol=1e-10)


if __name__ == "__main__":
    np.savez_compressed(sys.argv[1], **{name: fit(kind, parameters) for name, kind, parameters in cases()})
