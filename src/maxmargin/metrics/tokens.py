"""Accuracy of label sequences, by token and by sequence."""

from __future__ import annotations

from collections.abc import Sequence, Sized

import numpy as np

__all__ = ["check_lengths", "sequence_accuracy", "token_accuracy", "token_error"]

Labels = Sequence[object] | np.ndarray


def check_lengths(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> None:
    """Raise a ValueError that names the first sequence whose two lengths differ."""
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences and y_pred has {len(y_pred)}: they must agree")
    for i, (true, predicted) in enumerate(zip(y_true, y_pred, strict=True)):
        for name, labels in (("y_true", true), ("y_pred", predicted)):
            if isinstance(labels, str) or not isinstance(labels, Sized):
                raise ValueError(f"sequence {i} of {name} is {labels!r}, not a sequence of labels: pass one list each")
        if len(true) != len(predicted):
            raise ValueError(f"sequence {i} has {len(true)} true labels and {len(predicted)} predicted ones")


def _right_tokens(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> list[tuple[int, int]]:
    """Number of right tokens and of all tokens, per sequence."""
    check_lengths(y_true, y_pred)
    pairs = zip(y_true, y_pred, strict=True)
    return [(sum(bool(a == b) for a, b in zip(*pair, strict=True)), len(pair[0])) for pair in pairs]


def token_accuracy(
    y_true: Sequence[Labels], y_pred: Sequence[Labels], sample_weight: Sequence[float] | np.ndarray | None = None
) -> float:
    """Share of tokens with the right label, over all sequences; those of sequence i count ``sample_weight[i]``."""
    counts = np.array(_right_tokens(y_true, y_pred)).reshape(-1, 2)
    right, total = (counts.sum(axis=0) if sample_weight is None else np.asarray(sample_weight) @ counts).tolist()
    if total == 0:
        raise ValueError("there are no tokens to score: pass at least one sequence with a label")
    return right / total


def token_error(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> float:
    """Share of tokens with a wrong label: ``1 - token_accuracy``."""
    return 1.0 - token_accuracy(y_true, y_pred)


def sequence_accuracy(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> float:
    """Share of sequences in which every label is right."""
    counts = _right_tokens(y_true, y_pred)
    if not counts:
        raise ValueError("there are no sequences to score: pass at least one")
    return sum(right == length for right, length in counts) / len(counts)
