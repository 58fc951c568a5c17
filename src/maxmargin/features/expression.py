r"""The expressions of template tests, matched in time linear in the text.

A unit is a character, ``.`` or a class, and may be repeated (``?``, ``*``); there are no groups and no alternatives. So
an expression is a list of units, and "units i, i + 1, ... can match from here" is one bit for each i: a whole state is
one integer, and reading a character takes a few operations on it, whatever the expression. Backtracking would take
time exponential in the number of repetitions.

Navarro, Raffinot 2002 (Flexible pattern matching in strings, section 4.2: optional and repeatable characters).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

__all__ = ["Expression"]

LONGEST = 1000  # characters of an expression


class Expression:
    r"""A test of a template, such as ``^\u\l*$``; see :mod:`maxmargin.features.template` for the language.

    A ValueError says when a repetition has nothing to repeat, or the expression is too long.

    Examples
    --------
    >>> Expression("\\d*$").search("route66"), Expression("^\\u").search("route66")
    ('66', None)
    """

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise ValueError(f'the expression "{text[:40]}..." has {len(text)} characters; the limit is {LONGEST}.')
        self.text = text
        self.at_begin, self.at_end, self.units = _units(text)
        # bit b of a state stands for the last b units: bit 0 is the end of the expression, bit `size` all of it
        self.size = len(self.units)
        repeats = [repeat for _, repeat in reversed(self.units)]
        self._stays = sum(2 << b for b, repeat in enumerate(repeats) if repeat == "*")
        self._skips = sum(2 << b for b, repeat in enumerate(repeats) if repeat)
        self._accepts = _Accepts(self.units)

    def search(self, text: str) -> str | None:
        """The leftmost match, where ``?`` takes a character if it can and ``*`` as few as it can.

        O(characters x units / 64).
        """
        states = self._states(text)
        whole = 1 << self.size
        starts = (0,) if self.at_begin else range(len(text) + 1)
        start = next((t for t in starts if states[t] & whole), None)
        if start is None:
            return None
        at, rest = start, self.size  # the states say what can be completed, so there is no backtracking
        while rest:
            repeat, less = self.units[-rest][1], 1 << rest - 1
            if repeat == "*":
                take = not states[at] & less
            else:
                take = at < len(text) and bool(self._accepts[text[at]] & less << 1 and states[at + 1] & less)
            at += take
            rest -= not (take and repeat == "*")
        return text[start:at]

    def _states(self, text: str) -> list[int]:
        """For each position, which tails of the expression match from there (to the end of the text after ``$``)."""
        stays, end = self._stays, int(not self.at_end)
        states = [self._skipped(1)]
        for character in reversed(text):
            fits, state = self._accepts[character], states[-1]
            states.append(self._skipped((fits & state << 1) | (fits & stays & state) | end))
        return states[::-1]

    def _skipped(self, state: int) -> int:
        """Add the tails that begin with optional units; the carry of one sum runs through all of them."""
        skips = self._skips
        first = (state << 1 | state) & skips
        return state | first | ((skips + first) ^ skips) & skips


class _Accepts(dict[str, int]):
    """The units that a character fits, as bits of a state; computed when it is first seen."""

    def __init__(self, units: list[tuple[str, str]]) -> None:
        super().__init__()
        self.units = units

    def __missing__(self, character: str) -> int:
        self[character] = fits = sum(2 << b for b, (one, _) in enumerate(reversed(self.units)) if _fits(one, character))
        return fits


def _units(text: str) -> tuple[bool, bool, list[tuple[str, str]]]:
    """Whether it begins with ``^``, whether it ends with ``$``, and (character, repetition) pairs between."""
    units: list[tuple[str, str]] = []
    at = begins = int(text.startswith("^"))
    while at < len(text):
        if text[at:] == "$":
            return bool(begins), True, units
        if text[at] in "*?":
            raise ValueError(f"'{text[at]}' has nothing to repeat in \"{text[:80]}\"; write \\{text[at]} for itself.")
        one = text[at : at + 2] if text[at] == "\\" else text[at]
        at += len(one)
        repeat = text[at] if text[at : at + 1] in ("*", "?") else ""
        at += len(repeat)
        units.append((one, repeat))
    return bool(begins), False, units


def _fits(one: str, character: str) -> bool:
    """Whether a unit accepts a character: any, one of a class, or one in particular."""
    if one == ".":
        return True
    if one[0] != "\\" or len(one) == 1:
        return one == character
    name = one[1]
    test = _CLASSES.get(name.lower())
    return character == name if test is None else test(character) != name.isupper()


def _is_punctuation(character: str) -> bool:
    kind = unicodedata.category(character)[0]
    return kind == "P" or (kind == "S" and character.isascii())


_CLASSES: dict[str, Callable[[str], bool]] = {
    "a": str.isalpha, "d": str.isdecimal, "l": str.islower, "p": _is_punctuation, "s": str.isspace, "u": str.isupper,
    "w": str.isalnum,
}  # fmt: skip
