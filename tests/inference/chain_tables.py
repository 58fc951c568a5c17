"""Random score tables of small chains for the tests of the chain kernels."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

MOST = 3000


@st.composite
def chains(draw, scores="any", costs=False):
    """(unary, transition) or (unary, transition, cost) with at most MOST labelings.

    Small whole scores make many ties and are added exactly; real scores are mixed in sign and size.
    """
    n_labels = draw(st.integers(1, 5))
    longest = 7 if n_labels == 1 else int(np.log(MOST) / np.log(n_labels))
    length = draw(st.integers(1, min(longest, 7)))
    steps = draw(st.sampled_from([1, length - 1])) if length > 1 else draw(st.integers(0, 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if scores == "any":
        scores = draw(st.sampled_from(["whole", "real", "negative"]))

    def table(*shape):
        if scores == "whole":
            return rng.integers(-2, 3, shape).astype(float)
        if scores == "negative":
            return -rng.exponential(10.0, shape)
        return rng.normal(0.0, 3.0, shape)

    unary, transition = table(length, n_labels), table(steps, n_labels, n_labels)
    forbidden = draw(st.sampled_from([0.0, 0.0, 0.2, 0.6]))
    unary[rng.random(unary.shape) < forbidden] = -np.inf
    transition[rng.random(transition.shape) < forbidden] = -np.inf
    if not costs:
        return unary, transition
    return unary, transition, rng.integers(0, draw(st.integers(1, 4)), unary.shape)


def assert_same(found, expected):
    """Labelings and their scores, in either order, bit by bit."""
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
