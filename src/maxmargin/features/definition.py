"""How a feature is built: values derived from columns, with text between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maxmargin.features.tokens import Column, Tokens

__all__ = ["Definition", "Source", "Transform"]


class Transform:
    """Derive values from the strings of a column: one (None for no feature), or several when ``many``."""

    many = False

    def __call__(self, text: str) -> str | list[str] | None:
        raise NotImplementedError

    def derive(self, column: Column, offsets: np.ndarray) -> tuple[list, np.ndarray]:
        """Values, and the index of each token's value (-1 for none); one call per distinct string."""
        return list(map(self.__call__, column.strings)), column.codes


@dataclass(frozen=True)
class Source:
    """The column that a slot reads, and the transform of its text.

    Beyond the ends of a sentence are the marks ``_B-1``, ``_B+1``, ...; the transform of these marks; or no feature.
    """

    column: int
    transform: Transform | None = None  # None: the text itself
    outside: str = "mark"  # or "apply", "drop"

    def derive(self, tokens: Tokens) -> tuple[list, np.ndarray]:
        """Values, and the index of each token's value (-1 for none)."""
        column = tokens.columns[self.column]
        if self.transform is None:
            return column.strings, column.codes
        return self.transform.derive(column, tokens.offsets)

    def values(self, texts: Sequence[str]) -> list:
        """Values of the marks beyond the ends of a sentence."""
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
    """A kind of feature: ``literals[0] value literals[1] value ... literals[-1]``."""

    literals: tuple[str, ...]  # one more than slots; definitions with equal literals share their features
    slots: tuple[tuple[Source, int], ...]  # source, and its offset in tokens to the right
    edge: bool = False  # whether it describes a token and its predecessor, not a token alone
    where: str = ""  # where it comes from, for messages

    def __post_init__(self) -> None:
        far = max((abs(offset) for _, offset in self.slots), default=0)
        if far > FARTHEST:
            raise ValueError(f"{self.where}: a feature may look at most {FARTHEST} tokens away, not {far}.")

    @property
    def many(self) -> bool:
        """Whether a token can have several such features; only definitions with one slot can."""
        return any(source.many for source, _ in self.slots)
