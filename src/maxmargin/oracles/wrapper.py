"""What all wrappers of an oracle share."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["OracleWrapper", "all_losses", "innermost"]

AT_ONCE = 2048  # examples whose planes are held together when only their losses count


class OracleWrapper:
    """An oracle round another one: same examples, same planes, the same verbs.

    Parameters
    ----------
    oracle : any oracle
    """

    def __init__(self, oracle: Any) -> None:
        self.oracle = oracle

    @property
    def n_examples(self) -> int:
        return self.oracle.n_examples

    @property
    def n_columns(self) -> int:
        return self.oracle.n_columns

    @property
    def longest(self) -> int:
        return self.oracle.longest


def innermost(oracle: Any) -> Any:
    """The oracle inside all wrappers."""
    while isinstance(oracle, OracleWrapper):
        oracle = oracle.oracle
    return oracle


def all_losses(oracle: Any, w: np.ndarray) -> np.ndarray:
    """Losses (or upper bounds of them) of all examples at ``w``; planes are let go as they come."""
    losses = np.zeros(oracle.n_examples)
    for begin in range(0, oracle.n_examples, AT_ONCE):
        planes = oracle.planes(w, np.arange(begin, min(begin + AT_ONCE, oracle.n_examples)))
        losses[planes.example] = planes.bound
    return losses
