"""Links between the words of two sentences: sure ones, and possible ones that are neither asked for nor wrong.

As text, in the format of Pharaoh: ``0-0 1-2 2?1`` links word 0 to word 0, 1 to 2, and perhaps 2 to 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Links", "as_links"]

Pair = tuple[int, int]
_LINK = re.compile(r"(\d{1,9})(-|\?|p)(\d{1,9})(-P)?")


class Links(NamedTuple):
    """Links of one example, pairs of positions counted from 0.

    Parameters
    ----------
    sure : frozenset of (int, int)
        Links that must be found.
    possible : frozenset of (int, int)
        Links that may be found; those in ``sure`` need not be repeated.
    """

    sure: frozenset[Pair]
    possible: frozenset[Pair] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Links:
        """From a line such as ``0-0 1-2 2?1``; ``2p1`` and ``2-1-P`` are possible links too."""
        sure: set[Pair] = set()
        possible: set[Pair] = set()
        for word in text.split():
            match = _LINK.fullmatch(word)
            if match is None:
                raise ValueError(f"{word!r:.40} is no link; write 3-4 for a sure link, 3?4 for a possible one")
            at_once = match[2] == "-" and match[4] is None
            (sure if at_once else possible).add((int(match[1]), int(match[3])))
        return cls(frozenset(sure), frozenset(possible))

    def __str__(self) -> str:
        marks = [(pair, "-") for pair in self.sure] + [(pair, "?") for pair in self.possible - self.sure]
        return " ".join(f"{i}{mark}{j}" for (i, j), mark in sorted(marks))


def as_links(given: object, example: int, shape: tuple[int, int]) -> Links:
    """Links from what a user gives: text, :class:`Links`, or pairs; checked against the numbers of words."""
    try:
        if isinstance(given, str):
            links = Links.parse(given)
        elif isinstance(given, Links):
            links = Links(_pairs(given.sure), _pairs(given.possible))
        else:
            links = Links(_pairs(given))
    except (TypeError, ValueError) as error:
        raise ValueError(f"example {example}: {error}.") from None
    for i, j in sorted(links.sure | links.possible):
        if not (0 <= i < shape[0] and 0 <= j < shape[1]):
            words = f"{shape[0]} and {shape[1]} words"
            raise ValueError(f"example {example} links {i} to {j}, but it has {words}; count them from 0.")
    return links


def _pairs(given: object) -> frozenset[Pair]:
    if not isinstance(given, Iterable):
        raise TypeError(f"links are {given!r:.60}; give pairs of positions, or text such as '0-0 1-2'")
    found = set()
    for pair in given:
        try:
            i, j = pair
            whole = int(i), int(j)
            fine = whole == (i, j)
        except (TypeError, ValueError, OverflowError):
            fine = False
        if not fine:
            raise ValueError(f"{pair!r:.60} is no link; give pairs of whole numbers")
        found.add(whole)
    return frozenset(found)
