"""What all wrappers of an oracle share."""

from __future__ import annotations

from typing import Any

__all__ = ["OracleWrapper", "innermost"]


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
