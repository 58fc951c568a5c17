"""What a feature is made of: columns, values derived from them, and text between the values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.features.tokens import Column, Tokens

__all__ = ["Definition", "Source", "Transform"]


class Transform:
    """Makes values from the strings of a column: one (or None: no feature), or several when ``many``."""

    many = False

    def __call__(self, text: str) -> Any:
        raise NotImplementedError

    def derive(self, column: Column, offsets: np.ndarray) -> tuple[list, np.ndarray]:
        """Values, and for each token which of them it has (-1: none). Costs one call a distinct string."""
        return list(map(self.__call__, column.strings)), column.codes


@dataclass(frozen=True)
class Source:
    """What a slot of a definition reads.

    Attributes
    ----------
    column : int
    transform : Transform or None
        None reads the text itself.
    outside : {"mark", "apply", "drop"}
        Beyond the ends of a sentence: the marks ``_B-1``, ``_B+1``, ...; the transform of these marks; or no feature.
    """

    column: int
    transform: Transform | None = None
    outside: str = "mark"

    def derive(self, tokens: Tokens) -> tuple[list, np.ndarray]:
        """Values, and for each token which of them it has (-1: none)."""
        column = tokens.columns[self.column]
        if self.transform is None:
            return column.strings, column.codes
        return self.transform.derive(column, tokens.offsets)

    def values(self, texts: Sequence[str]) -> list:
        """Values of marks."""
        if self.outside == "drop":
            return [[] if self.many else None] * len(texts)
        if self.outside == "apply" and self.transform is not None:
            return list(map(self.transform, texts))
        return [[text] if self.many else text for text in texts]

    @property
    def many(self) -> bool:
        return self.transform is not None and self.transform.many


FARTHEST = 1000


@dataclass(frozen=True)
class Definition:
    """A kind of feature: ``literals[0] value literals[1] value ... literals[-1]``.

    Attributes
    ----------
    literals : tuple of str
        One more than slots. Definitions with equal literals share their features.
    slots : tuple of (Source, int)
        What to read, and how many tokens to the right.
    edge : bool
        Whether the feature describes a token and its predecessor, not a token alone.
    where : str
        Its origin, for messages.
    """

    literals: tuple[str, ...]
    slots: tuple[tuple[Source, int], ...]
    edge: bool = False
    where: str = ""

    def __post_init__(self) -> None:
        far = max((abs(offset) for _, offset in self.slots), default=0)
        if far > FARTHEST:
            raise ValueError(f"{self.where}: a feature may look at most {FARTHEST} tokens away, not {far}.")

    @property
    def many(self) -> bool:
        """Whether a token can have several such features; only definitions with one slot can."""
        return any(source.many for source, _ in self.slots)
