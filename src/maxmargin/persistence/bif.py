"""Bayesian networks as text in the interchange format BIF, which most libraries read and write.

::

    network unknown { }
    variable rain { type discrete [ 2 ] { no, yes }; }
    variable wet { type discrete [ 2 ] { no, yes }; }
    probability ( rain ) { table 0.8, 0.2; }
    probability ( wet | rain ) { (no) 0.9, 0.1; (yes) 0.2, 0.8; }

Names are written as words that every reader takes; what a word cannot hold goes in as its code, ``sea_x0020_level``,
and comes back as it was.

Cozman 1998, The interchange format for Bayesian networks, version 0.15.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import NoReturn

import numpy as np

from maxmargin.persistence.whole_file import whole_file

__all__ = ["Bif", "bif_text", "parse_bif", "read_bif", "write_bif"]

FILE_LIMIT = 64_000_000  # bytes
CELL_LIMIT = 2**25  # numbers in all tables: a few lines of text can ask for any number of them
PARENT_LIMIT = 30
SLACK = 0.01  # files hold rounded numbers

_SKIP = re.compile(r"(?:\s+|//[^\n]*|/\*(?s:.*?)\*/)*+")
_TOKEN = re.compile(r'"[^"\n]*"|[{}()\[\]|,;]|(?:(?!//|/\*)[^\s{}()\[\]|,;"])+')
_SIGNS = tuple("{}()[]|,;")
_CHARACTER, _INTEGER = re.compile("[A-Za-z0-9_.-]"), re.compile("-?[0-9]+")
_CODE = re.compile("_x((?:10|[0-9a-f])?[0-9a-f]{4})?_")  # up to the last character there is
_LIKE_CODE = re.compile(f"_(?={_CODE.pattern[1:]})")
_LIKE_START = re.compile("_(?=x)")
_KEPT = {"network", "variable", "probability", "property", "type", "discrete", "table", "default"}
_ROW = re.compile(r"[0-9eE+\-.,\s]*+;")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)


@dataclass(frozen=True)
class Bif:
    """The content of a file; tables have one axis for each parent, in their order, and the last for the variable."""

    name: str
    states: dict[str, list[str]]
    parents: dict[str, list[str]]
    tables: dict[str, np.ndarray]


def read_bif(path: str | os.PathLike[str]) -> Bif:
    """Read a file; a ValueError names the file and the line of what is wrong."""
    path = Path(path)
    size = path.stat().st_size
    if size > FILE_LIMIT:
        raise ValueError(f"{path} has {size} bytes, more than {FILE_LIMIT}; it is no network that could be used here.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no UTF-8 text (byte {error.start}); save it in that encoding.") from None
    return parse_bif(text, str(path))


def write_bif(path: str | os.PathLike[str], bif: Bif) -> Path:
    """Write a file, which appears only when it is complete."""
    path, text = Path(path), bif_text(bif)
    with whole_file(path) as file:
        file.write(text.encode())
    return path


def bif_text(bif: Bif) -> str:
    """The text of a network; numbers are written such that they are read back exactly."""
    lines = [f"network {_written(bif.name)} {{", "}"]
    for name, states in bif.states.items():
        values = ", ".join(map(_state, states))
        lines += [f"variable {_written(name)} {{", f"  type discrete [ {len(states)} ] {{ {values} }};", "}"]
    for name in bif.states:
        above, table = bif.parents[name], np.asarray(bif.tables[name], np.float64)
        given = " | " + ", ".join(map(_written, above)) if above else ""
        lines.append(f"probability ( {_written(name)}{given} ) {{")
        rows = table.reshape(-1, table.shape[-1]).tolist()
        for values, row in zip(product(*(bif.states[u] for u in above)), rows, strict=True):
            head = f"({', '.join(map(_state, values))})" if above else "table"
            lines.append(f"  {head} {', '.join(map(repr, row))};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def parse_bif(text: str, source: str = "the text") -> Bif:
    """The network of a text; ``source`` is what errors call it."""
    reader, name = _Reader(text, source), "unknown"
    states: dict[str, list[str]] = {}
    blocks: dict[str, _Block] = {}
    while not reader.at_end():
        at, word = reader.at, reader.take()
        if word == "network":
            name = reader.name("the name of the network") if reader.peek() != "{" else name
            reader.expect("{")
            while not reader.skip("}"):
                reader.skip_statement()
        elif word == "variable":
            key, values = _variable(reader)
            if key in states:
                reader.fail(at, f"the variable {key!r} is declared twice")
            states[key] = values
        elif word == "probability":
            block = _probability(reader, at)
            if block.name in blocks:
                reader.fail(at, f"the probabilities of {block.name!r} are given twice")
            blocks[block.name] = block
        else:
            reader.fail(at, f"expected network, variable or probability, found {word[:40]!r}")
    if not states:
        raise ValueError(f"{source} declares no variable; is it a BIF file?")
    for key in states:
        if key not in blocks:
            raise ValueError(f"{source} has no probability block for the variable {key!r}; add one.")
    _check_sizes(reader, states, blocks)
    tables = {key: _table(reader, blocks[key], states) for key in states}
    return Bif(name, states, {key: blocks[key].parents for key in states}, tables)


class _Reader:
    """Tokens of a text, one at a time; errors know their line."""

    def __init__(self, text: str, source: str) -> None:
        self.text, self.source, self.at = text, source, 0
        self._go(0)

    def _go(self, at: int) -> None:
        """To the token at a place or behind it."""
        match = _SKIP.match(self.text, at)
        self.at = match.end() if match else at

    def fail(self, at: int, what: str) -> NoReturn:
        raise ValueError(f"{self.source}, line {self.text.count(chr(10), 0, at) + 1}: {what}.")

    def at_end(self) -> bool:
        return self.at >= len(self.text)

    def peek(self) -> str:
        if self.at_end():
            self.fail(self.at, "the text ends in the middle of a block; is the file complete?")
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            what = "quotation mark" if self.text[self.at] == '"' else "comment"
            self.fail(self.at, f"a {what} is opened and not closed")
        return match.group()

    def take(self) -> str:
        token = self.peek()
        self._go(self.at + len(token))
        return token

    def skip(self, token: str) -> bool:
        """Take a token if it is the next one."""
        return self.peek() == token and bool(self.take())

    def expect(self, token: str) -> None:
        if not self.skip(token):
            self.fail(self.at, f"expected {token!r}, found {self.peek()[:40]!r}")

    def name(self, what: str) -> str:
        at, token = self.at, self.take()
        if token in _SIGNS:
            self.fail(at, f"expected {what}, found {token!r}")
        return token.strip('"') if token.startswith('"') else _read(token)

    def names(self, what: str, end: str) -> list[str]:
        """Up to the sign that ends them, with commas or spaces between."""
        found = []
        while not self.skip(end):
            found.append(self.name(what))
            self.skip(",")
        return found

    def skip_statement(self) -> None:
        """Past the next semicolon: a property."""
        at = self.at
        while (token := self.take()) != ";":
            if token in ("{", "}"):
                self.fail(at, "a property does not end with a semicolon")

    def numbers(self) -> list[float]:
        """Up to the semicolon, with commas or spaces between."""
        plain = _ROW.match(self.text, self.at)
        if plain is not None:  # the usual case, all at once; what is odd is read one by one, for its place
            try:
                values = [float(word) for word in plain.group()[:-1].replace(",", " ").split()]
            except ValueError:
                values = [-1.0]
            if all(0 <= value <= 1 + SLACK for value in values):
                self._go(plain.end())
                return values
        values = []
        while not self.skip(";"):
            at, token = self.at, self.take()
            if not _NUMBER.fullmatch(token):
                self.fail(at, f"expected a probability, found {token[:40]!r}")
            values.append(float(token))
            if not 0 <= values[-1] <= 1 + SLACK:
                self.fail(at, f"{token[:40]} is no probability")
            self.skip(",")
        return values


@dataclass
class _Block:
    """One probability block: ``default`` and ``table`` are stored under the configurations None and ()."""

    name: str
    parents: list[str]
    at: int
    entries: dict[tuple[str, ...] | None, tuple[list[float], int]] = field(default_factory=dict)


def _variable(reader: _Reader) -> tuple[str, list[str]]:
    name = reader.name("the name of a variable")
    states: list[str] = []
    reader.expect("{")
    while not reader.skip("}"):
        at = reader.at
        if not reader.skip("type"):
            reader.skip_statement()
            continue
        kind = reader.take()
        if states or kind != "discrete":
            reader.fail(at, f"the variable {name!r} is {kind[:40]!r}; only discrete variables of one type can be read")
        reader.expect("[")
        size = reader.take()
        reader.expect("]")
        reader.expect("{")
        states = reader.names("a state", "}")
        reader.skip(";")
        if size != str(len(states)):
            reader.fail(at, f"the variable {name!r} has {size[:20]} states by its type, and {len(states)} are listed")
        if len(set(states)) < len(states):
            reader.fail(at, f"the variable {name!r} has a state twice")
    if not states:
        reader.fail(reader.at, f"the variable {name!r} before has no states")
    return name, states


def _probability(reader: _Reader, at: int) -> _Block:
    reader.expect("(")
    block = _Block(reader.name("the name of a variable"), [], at)
    if not reader.skip("|"):  # early files have neither; the first name is the variable all the same
        reader.skip(",")
    block.parents = reader.names("the name of a parent", ")")
    if len({block.name, *block.parents}) <= len(block.parents):
        reader.fail(at, f"a name occurs twice in the probabilities of {block.name!r}")
    reader.expect("{")
    while not reader.skip("}"):
        here, key = reader.at, None
        if reader.skip("("):
            key = tuple(reader.names("the state of a parent", ")"))
            if not key:
                reader.fail(here, "a configuration without states; roots have a table")
        elif reader.skip("table"):
            key = ()
        elif not reader.skip("default"):
            reader.skip_statement()
            continue
        if key in block.entries:
            reader.fail(here, f"the probabilities of {block.name!r} have the same entry twice")
        block.entries[key] = (reader.numbers(), here)
    return block


def _check_sizes(reader: _Reader, states: Mapping[str, Sequence[str]], blocks: Mapping[str, _Block]) -> None:
    """Names are known and tables are small, before any is made."""
    cells = 0
    for block in blocks.values():
        for name in (block.name, *block.parents):
            if name not in states:
                reader.fail(block.at, f"the variable {name!r} is not declared")
        if len(block.parents) > PARENT_LIMIT:
            reader.fail(block.at, f"{block.name!r} has {len(block.parents)} parents, more than {PARENT_LIMIT}")
        cells += math.prod(len(states[name]) for name in (block.name, *block.parents))
        if cells > CELL_LIMIT:
            reader.fail(block.at, f"the tables up to here have more than {CELL_LIMIT} entries")


def _table(reader: _Reader, block: _Block, states: Mapping[str, Sequence[str]]) -> np.ndarray:
    """The table of a block: what is given for each configuration, else the whole table, else the default."""
    own = len(states[block.name])
    shape = tuple(len(states[name]) for name in block.parents)
    table = np.full((*shape, own), np.nan)
    codes = [{state: k for k, state in enumerate(states[name])} for name in block.parents]
    for key in sorted(block.entries, key=lambda key: (key is not None, bool(key))):  # default, table, configurations
        row, at = block.entries[key]
        size = table.size if key == () else own
        if len(row) != size:
            reader.fail(at, f"{len(row)} probabilities of {block.name!r} where {size} are needed")
        if key is None:
            table[...] = row
        elif key == ():
            table[...] = np.moveaxis(np.reshape(row, (own, *shape)), 0, -1)  # the format has the variable first
        else:
            if len(key) != len(codes):
                reader.fail(at, f"a configuration of {len(key)} states for {len(codes)} parents of {block.name!r}")
            for name, state, code in zip(block.parents, key, codes, strict=True):
                if state not in code:
                    reader.fail(at, f"the parent {name!r} has no state {state[:40]!r}")
            table[tuple(code[state] for state, code in zip(key, codes, strict=True))] = row
    for place in np.argwhere(np.isnan(table).any(axis=-1)).tolist():
        words = ", ".join(states[name][k] for name, k in zip(block.parents, place, strict=True))
        reader.fail(block.at, f"there are no probabilities of {block.name!r} for ({words[:80]}), and no default")
    if table.sum(axis=-1).max() > 1 + SLACK:
        reader.fail(block.at, f"probabilities of {block.name!r} sum to {table.sum(axis=-1).max():.6g}, more than 1")
    return table


def _written(name: str) -> str:
    """A name as one word that every reader takes: a letter or ``_``, then letters, digits, ``_``, ``-`` and ``.``.

    Other characters become ``_xHHHH_``, their code in hexadecimal digits, and the empty name becomes ``_x_``; so do the
    first characters of words that the format keeps for itself, and of what looks like such a code.
    """
    if name.lower() in _KEPT or not name:
        return _code(name[:1]) + name[1:]
    word = _coded(name, _LIKE_CODE)
    return word if _read(word) == name else _coded(name, _LIKE_START)  # "_x" and a code behind it look like one


def _coded(name: str, strange: re.Pattern[str]) -> str:
    """A name with codes for ``_`` in strange places, for a first character that no word has, and for all others."""
    coded = [_code(x) if i == 0 and x in "0123456789-." else x for i, x in enumerate(strange.sub(_code("_"), name))]
    return "".join(x if len(x) > 1 or _CHARACTER.fullmatch(x) else _code(x) for x in coded)


def _state(name: str) -> str:
    """A state as one word; whole numbers are words, too."""
    return name if _INTEGER.fullmatch(name) else _written(name)


def _code(character: str) -> str:
    return f"_x{ord(character):04x}_" if character else "_x_"


def _read(word: str) -> str:
    """The name behind a word of :func:`_written`."""
    return _CODE.sub(lambda match: chr(int(match[1], 16)) if match[1] else "", word)
