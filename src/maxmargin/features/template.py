r"""Feature templates in the language of CRF++, with the tests of Wapiti.

A line is a feature. Its first letter says what it describes: ``U`` a token, ``B`` a token and its predecessor, ``*``
both. Each macro is replaced by a value; other text is kept:

====================  ================================================================================================
``%x[row,col]``       the text of column ``col``, ``row`` tokens to the right; ``_B-1``, ``_B+1``, ... outside
``%t[row,col,"re"]``  ``true`` or ``false``: whether the expression matches somewhere in that text
``%m[row,col,"re"]``  what the expression matches first, or nothing
====================  ================================================================================================

Capitals (``%X``, ``%T``, ``%M``) turn the value to lower case. Expressions know ``.`` for any character, the
classes ``\d`` digit, ``\a`` letter, ``\w`` letter or digit, ``\l`` lower case, ``\u`` upper case, ``\p`` punctuation,
``\s`` space (capital: all others), ``^`` and ``$`` at the ends, ``?``, and ``*``, which takes as little as it can;
other characters match themselves. Matching takes linear time for any expression
(:mod:`maxmargin.features.expression`).

A ``B`` line without macro asks for weights of label pairs, which a chain always has. Lines that begin with ``#``
are comments. Lines that differ only in rows and columns share their features, which gives bags of words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from maxmargin.features.definition import Definition, Source, Transform
from maxmargin.features.expression import Expression

__all__ = ["Template"]

_MACRO = re.compile(r"%(?P<command>.?)(?:\[(?P<row>[+-]?\d+),(?P<column>\d+)(?:,\"(?P<test>(?:\\.|[^\"\\])*)\")?\])?")
_LINE_END = re.compile(r"\r\n|\n|\r")  # str.splitlines also splits at form feeds, which editors do not count


class Template:
    r"""The features of a template.

    Parameters
    ----------
    lines : iterable of str
    name : str
        What messages call it, such as the path of a file.

    Attributes
    ----------
    definitions : tuple of Definition
    transitions : bool
        Whether a ``B`` line without macro asks for weights of label pairs.

    Examples
    --------
    >>> template = Template.parse("U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nB\n")
    >>> len(template.definitions), template.transitions
    (2, True)
    """

    def __init__(self, lines: Iterable[str], name: str = "template") -> None:
        if isinstance(lines, str):
            raise TypeError("Template takes a list of lines; maxmargin.features.Template.parse takes text or a path.")
        self.lines = [line.rstrip("\r\n") for line in lines]
        self.name = name
        self.transitions = False
        definitions: list[Definition] = []
        for number, line in enumerate(self.lines, start=1):
            text = line.strip().removeprefix("\ufeff")
            if text and not text.startswith("#"):
                made = _definitions(text, f"{name}, line {number}")
                self.transitions |= text[0] in "Bb*" and not made[-1].slots
                definitions += [d for d in made if d.slots or not d.edge]
        self.definitions = tuple(definitions)

    @staticmethod
    def parse(source: str | Path) -> Template:
        """A template from its text, or from the path of a file. A string with a newline or ``%`` is text."""
        if isinstance(source, str) and ("\n" in source or "%" in source):
            return Template(_lines(source))
        path = Path(source)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no template file {str(source)!r}.") from None
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            number = len(_LINE_END.split(data[: error.start].decode("utf-8")))
            raise ValueError(f"{source}, line {number}: not UTF-8 text ({error.reason}); convert it.") from None
        return Template(_lines(text), name=str(source))

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    def __repr__(self) -> str:
        return f"<Template {self.name}: {len(self.definitions)} features>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and self.lines == other.lines

    def __hash__(self) -> int:
        return hash(tuple(self.lines))


def _lines(text: str) -> list[str]:
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _definitions(line: str, where: str) -> list[Definition]:
    kind = line[0].upper()
    if kind not in "UB*":
        raise ValueError(f"{where}: a feature begins with U, B or *, a comment with #; got {_short(line)!r}.")
    literals, slots, at = [], [], 0
    for macro in _MACRO.finditer(line):
        literals.append(line[at : macro.start()])
        slots.append(_slot(macro, where))
        at = macro.end()
    literals.append(line[at:])
    edges = {"U": (False,), "B": (True,), "*": (False, True)}[kind]
    return [Definition(tuple(literals), tuple(slots), edge, where) for edge in edges]


def _slot(macro: re.Match, where: str) -> tuple[Source, int]:
    command, test = macro["command"], macro["test"]
    if command.lower() not in ("x", "t", "m"):
        raise ValueError(f"{where}: unknown macro '%{command}'; use %x, %t or %m, as in %x[-1,0].")
    right = "%x[-1,0]" if command in "xX" else f'%{command}[-1,0,"^\\d"]'
    if macro["row"] is None:
        raise ValueError(f"{where}: %{command} needs a row and a column, as in {right}.")
    if (test is None) != (command in "xX"):
        wanted = "no expression" if test is not None else "an expression in quotes"
        raise ValueError(f"{where}: %{command} takes {wanted}, as in {right}.")
    if max(len(macro["row"]), len(macro["column"])) > 9:  # int() refuses thousands of digits
        raise ValueError(f"{where}: the row or the column of {_short(macro[0])!r} is too large; rows go up to 1000.")
    row, column = int(macro["row"]), int(macro["column"])
    if command == "x":
        return Source(column), row
    if test is not None:
        try:
            Expression(test)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    return Source(column, Macro(command, test), "apply"), row


@dataclass(frozen=True)
class Macro(Transform):
    """The value of a macro other than ``%x``."""

    command: str
    test: str | None = None
    _expression: Expression | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_expression", None if self.test is None else Expression(self.test))

    def __call__(self, text: str) -> str:
        if self._expression is not None:
            found = self._expression.search(text)
            if self.command in "tT":
                return "false" if found is None else "true"
            text = found or ""
        return text.lower() if self.command.isupper() else text
