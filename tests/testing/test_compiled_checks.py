"""check_model on compiled models: ours pass, spoiled kernels are found."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.costs import HammingCost
from maxmargin.models.chain import Chain
from maxmargin.models.multiclass import Multiclass
from maxmargin.testing import ModelError, check_model


@pytest.mark.parametrize(
    "chain",
    [
        Chain(),
        Chain(ends=True, cost=HammingCost(normalize=True)),
        Chain(weights="observed", constraints=[("b", "a")]),
        Chain(cost={"a": 2.0, "b": 0.5, "c": 1.0}),
    ],
)
def test_chain_passes(chain):
    rng = np.random.default_rng(0)
    X = [
        {"sparse": sp.csr_array(rng.integers(0, 2, (t, 4))), "dense": rng.normal(size=(t, 1)), "edge": np.ones((t, 1))}
        for t in (1, 4, 0, 3)
    ]
    Y = [list("a"), list("abcc"), [], list("cab")]
    report = check_model(chain, X, Y, n_trials=8)
    assert report.ok
    assert report.capabilities["exact"] and report.capabilities["k_best"]


def test_multiclass_passes():
    rng = np.random.default_rng(0)
    assert check_model(Multiclass(fit_intercept=True), rng.normal(size=(5, 3)), list("abcab"), n_trials=8).ok


def test_data_that_does_not_fit_is_a_problem():
    with pytest.raises(ModelError, match="bind refused the data: X has 2 examples and Y has 1"):
        check_model(Multiclass(), np.ones((2, 3)), ["a"])


class Tampered(Multiclass):
    """Lets a function spoil what the kernel wrote."""

    def spoil(self, w, output, index, value, result, iwork, made):
        return made

    def bind(self, X, Y=None, **options):
        bound = super().bind(X, Y, **options)

        def kernel(meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result):
            made = bound.plane(
                meta, ints, floats, w, example, cost_weight, emit, iwork, fwork, output, index, value, result
            )
            return self.spoil(w, output, index, value, result, iwork, made)

        return dataclasses.replace(bound, plane=kernel, iwork_size=4)


def spoiled(statement):
    """A model whose kernel runs one statement more."""

    def spoil(self, w, output, index, value, result, iwork, made):
        names = dict(w=w, output=output, index=index, value=value, result=result, iwork=iwork, made=made, self=self)
        exec(statement, {}, names)
        return names["made"]

    return type("Spoiled", (Tampered,), {"spoil": spoil})()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("result[2] += 1", "the kernel says"),
        ("result[2] = -1", "negative cost"),
        ("value[0] *= -1", "the plane is worth"),
        ("result[0] -= 1; result[1] -= 1", "enumeration finds"),
        ("result[1] -= 1", "the bound .* is below the value"),
        ("result[1] += 1", "but the model is exact"),
        ("output[0] = (output[0] + 1) % 3", "the kernel found the output"),
        ("w += 1", "the kernel changed w"),
        ("iwork[0] = 1", "iwork is not zero after the call"),
        ("index[1] = index[0]", "repeats an index"),
        ("index[0] = 9999", "an index outside"),
        ("made = -1", "the kernel returned -1"),
        ("self.n = getattr(self, 'n', 0) + 1; output[0] = self.n % 3", "two calls gave different outputs"),
    ],
)
def test_spoiled_kernels_are_found(statement, message):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(5, 3)), [0, 1, 2, 0, 1]
    assert check_model(spoiled("pass"), X, Y).ok
    with pytest.raises(ModelError, match=message):
        check_model(spoiled(statement), X, Y, n_trials=4)
