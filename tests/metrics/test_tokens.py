"""Token and sequence accuracy by hand, and the errors."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.metrics import sequence_accuracy, token_accuracy, token_error

TRUE = [["a", "b", "c"], ["a"], []]
PREDICTED = [["a", "b", "b"], ["a"], []]


def test_by_hand():
    assert token_accuracy(TRUE, PREDICTED) == 0.75
    assert token_error(TRUE, PREDICTED) == 0.25
    assert sequence_accuracy(TRUE, PREDICTED) == pytest.approx(2 / 3)


def test_arrays_agree_with_concatenation():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 9, size=50)
    truth = [rng.integers(3, size=length) for length in lengths]
    guess = [rng.integers(3, size=length) for length in lengths]
    assert token_accuracy(truth, guess) == pytest.approx(np.mean(np.concatenate(truth) == np.concatenate(guess)))
    assert sequence_accuracy(truth, guess) == np.mean([np.array_equal(a, b) for a, b in zip(truth, guess, strict=True)])


@pytest.mark.parametrize("metric", [token_accuracy, token_error, sequence_accuracy])
def test_errors_name_the_sequence(metric):
    with pytest.raises(ValueError, match="sequence 1 has 2 true labels and 1 predicted"):
        metric([["a"], ["a", "b"]], [["a"], ["a"]])
    with pytest.raises(ValueError, match="2 sequences and y_pred has 1"):
        metric([["a"], ["b"]], [["a"]])
    with pytest.raises(ValueError, match="sequence 0 of y_true is 'ab'"):
        metric(["ab"], [["a", "b"]])
    with pytest.raises(ValueError, match="there are no"):
        metric([], [])
