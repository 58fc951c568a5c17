"""n-best lists in the format of Moses, and lattices in that of PLF.

An n-best file has one hypothesis a line, ``id ||| hypothesis ||| features ||| score``, with features such as ``d: 0
-7.6 lm: -41.3 tm: -67.6 -100.4 w: -9`` (groups of numbers, which every line must have) and ``name= 0.5`` (which lines
may lack). A PLF file has one lattice a line, ``((('a',0.5,1),('b',0.3,2),),(('c',1.0,1),),)``: for each node the arcs
that leave it, with their word, their scores, and how many nodes they go ahead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.datasets.lattice import Lattice
from maxmargin.datasets.text_lines import Lines, Source, decoded, opened

__all__ = ["NBestLists", "read_nbest", "read_plf"]

EMPTY_WORDS = ("*EPS*", "EPSILON", "")  # of PLF: an arc that says nothing
_TOKEN = re.compile(r"""\s*(?:([(),])|('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|([-+]?[0-9.][-+.0-9eE]*))""")
_ESCAPED = re.compile(r"\\(.)")


class NBestLists(NamedTuple):
    """The lists of a file, in its order."""

    lattices: list[Lattice]
    scores: list[np.ndarray]  # of each hypothesis, as the decoder had it
    ids: list[int]
    lines: list[int]  # of the file, where each list begins


class _Line(NamedTuple):
    number: int
    id: int
    text: str
    groups: dict[str, tuple[float, ...]]  # name: numbers
    sparse: dict[str, float]
    score: float


def read_nbest(source: Source) -> NBestLists:
    """The n-best lists of a file in the format of Moses (``.gz`` and ``.xz`` too), one flat lattice each.

    The dense features are named by group and position, ``lm0``, ``lm1``; every line must have the same. Sparse ones,
    ``name= 0.5``, count 0 where they are missing; with several numbers they are named ``name0``, ``name1``, ... Fields
    behind the score are ignored.
    """
    found = NBestLists([], [], [], [])
    with opened(source) as (lines, name):
        parsed = _parsed_lines(lines, name)
        first: _Line | None = None
        seen: set[int] = set()
        for key, group in groupby(parsed, key=lambda line: line.id):
            hypotheses = list(group)
            first = first or hypotheses[0]
            if key in seen:
                where = f"{name}, line {hypotheses[0].number}"
                raise ValueError(f"{where}: list {key} goes on after another one; sort the lines by their first field.")
            seen.add(key)
            for line in hypotheses:
                _check_groups(line, first, name)
            try:
                found.lattices.append(_flat(hypotheses))
            except ValueError as error:
                raise ValueError(f"{name}, list {key} from line {hypotheses[0].number}: {error}") from None
            found.scores.append(np.array([line.score for line in hypotheses]))
            found.ids.append(key)
            found.lines.append(hypotheses[0].number)
    if not found.lattices:
        raise ValueError(f"{name} has no hypotheses; lines are id ||| hypothesis ||| features ||| score.")
    return found


def read_plf(source: Source, *, trim: bool = False) -> list[Lattice]:
    """The lattices of a file in PLF, one per line; scores are the features ``score0``, ``score1``, ...

    The text is taken apart, never run as a program. ``trim`` leaves out nodes that are on no path.
    """
    found: list[Lattice] = []
    with opened(source) as (lines, name):
        for number, line in decoded(lines, name):
            try:
                lattice = _plf(line, trim)
            except ValueError as error:
                raise ValueError(f"{name}, line {number}: {error}") from None
            if found and lattice.names != found[0].names:
                what = f"arcs have {len(lattice.names)} scores, those of line 1 {len(found[0].names)}"
                raise ValueError(f"{name}, line {number}: {what}; give every arc the same scores.")
            found.append(lattice)
    if not found:
        raise ValueError(f"{name} has no lattice; a line is one, such as ((('word',1.0,1),),).")
    return found


def _parsed_lines(lines: Lines, name: str) -> Iterator[_Line]:
    for number, line in decoded(lines, name):
        if not line.strip():
            continue
        fields = line.split("|||")
        if len(fields) < 4:
            what = f"{len(fields)} fields between |||"
            raise ValueError(f"{name}, line {number}: {what}; give id ||| hypothesis ||| features ||| score.")
        try:
            key, score = int(_number(fields[0], "the first field")), _number(fields[3], "the score")
            if not 0 <= key == float(fields[0]):
                raise ValueError(f"the first field is {fields[0].strip()!r:.40}; give whole numbers from 0 on")
            groups, sparse = _features(fields[2])
        except ValueError as error:
            raise ValueError(f"{name}, line {number}: {error}.") from None
        yield _Line(number, key, fields[1], groups, sparse, score)


def _features(text: str) -> tuple[dict[str, tuple[float, ...]], dict[str, float]]:
    """Groups of numbers, ``name: 1 2``, and sparse features, ``name= 1``."""
    marks: list[tuple[str, list[float]]] = []
    for token in text.split():
        if token[-1] in ":=" and len(token) > 1:
            marks.append((token, []))
        elif not marks:
            raise ValueError(f"the features begin with {token!r:.40}; a name such as lm: or lm= must come first")
        else:
            marks[-1][1].append(_number(token, f"a number of the feature {marks[-1][0]!r:.40}"))
    groups: dict[str, tuple[float, ...]] = {}
    sparse: dict[str, float] = {}
    labels, taken = set(), set()
    for mark, values in marks:
        label, dense = mark[:-1], mark[-1] == ":"
        if not values:
            raise ValueError(f"the feature {mark!r:.40} has no number")
        names = [label] if not dense and len(values) == 1 else [f"{label}{k}" for k in range(len(values))]
        if label in labels:
            raise ValueError(f"the feature {mark!r:.40} comes twice")
        twice = next((name for name in names if name in taken), None)
        if twice is not None:
            raise ValueError(f"two features are named {twice!r:.40}, one of them by {mark!r:.40}; rename one")
        labels.add(label)
        taken.update(names)
        if dense:
            groups[label] = tuple(values)
        else:
            sparse |= dict(zip(names, values, strict=True))
    return groups, sparse


def _number(text: str, what: str) -> float:
    """A finite number, or a ValueError that says what is none."""
    try:
        found = float(text)
    except ValueError:
        found = np.nan
    if not np.isfinite(found):
        raise ValueError(f"{what} is {text.strip()!r:.40}; give a finite number")
    return found


def _check_groups(line: _Line, first: _Line, name: str) -> None:
    """Refuse a line with other dense features than the first."""
    if {key: len(values) for key, values in line.groups.items()} == {k: len(v) for k, v in first.groups.items()}:
        return
    where, other = f"{name}, line {line.number}", f"line {first.number}"
    for key, values in first.groups.items():
        count = len(line.groups.get(key, ()))
        if count != len(values):
            what = f"the feature {key!r:.40} has {count} numbers, and {len(values)} in {other}"
            raise ValueError(f"{where}: {what}; every line must have the same.")
    extra = next(key for key in line.groups if key not in first.groups)
    raise ValueError(f"{where}: the feature {extra!r:.40} is not in {other}; every line must have the same.")


def _flat(lines: list[_Line]) -> Lattice:
    """The lattice of one list."""
    order = sorted(lines[0].groups)
    dense = np.array([[value for key in order for value in line.groups[key]] for line in lines]).reshape(len(lines), -1)
    names = [f"{key}{k}" for key in order for k in range(len(lines[0].groups[key]))]
    column: dict[str, int] = {}
    at = [(row, column.setdefault(key, len(column))) for row, line in enumerate(lines) for key in line.sparse]
    values = [value for line in lines for value in line.sparse.values()]
    features: np.ndarray | sp.csr_array = dense
    if column:
        places = tuple(np.array(at).T)
        sparse = sp.csr_array((np.array(values), places), shape=(len(lines), len(column)))
        features = sp.csr_array(sp.hstack([sp.csr_array(dense), sparse]))
    return Lattice.from_nbest([line.text for line in lines], features, [*names, *column], len(names))


def _plf(text: str, trim: bool) -> Lattice:
    """The lattice of one line of PLF: a tuple of nodes, each a tuple of arcs (word, score, ..., jump)."""
    nodes: list[list[list[str | float]]] = []
    depth, at, text = 0, 0, text.strip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(
                f"at character {at + 1} stands {text[at : at + 20]!r}; PLF has words in quotes and numbers."
            )
        at, (mark, word, number) = token.end(), token.groups()
        if mark == "(":
            depth += 1
            if depth == 2:
                nodes.append([])
            elif depth == 3:
                nodes[-1].append([])
            elif depth > 3:
                raise ValueError(f"parentheses are {depth} deep at character {at}; an arc is the third level.")
        elif mark == ")":
            depth -= 1
            if depth < 0 or (depth == 0 and text[at:].strip(" ,")):
                raise ValueError(f"text follows after the last parenthesis, at character {at + 1}.")
        elif mark != ",":
            if depth != 3:
                raise ValueError(f"{token[0].strip()!r:.40} stands outside of an arc, at character {at}.")
            nodes[-1][-1].append(_ESCAPED.sub(r"\1", word[1:-1]) if word else float(number))
    if depth or not nodes:
        raise ValueError("a parenthesis is not closed." if depth else "there is no node; write ((('word',1.0,1),),).")
    arcs = [(v, arc) for v, out in enumerate(nodes) for arc in out]
    width = len(arcs[0][1]) if arcs else 3
    for v, arc in arcs:
        fine = len(arc) == width >= 2 and isinstance(arc[0], str) and not any(isinstance(x, str) for x in arc[1:])
        if not fine or arc[-1] not in range(1, len(nodes) + 1):
            raise ValueError(f"an arc of node {v} is {tuple(arc)!r:.60}; write ('word', score, nodes ahead).")
    tails = np.array([v for v, _ in arcs], np.int64)
    heads = tails + np.array([arc[-1] for _, arc in arcs], np.float64).astype(np.int64)
    scores = np.array([arc[1:-1] for _, arc in arcs], np.float64).reshape(len(arcs), width - 2)
    words = ["" if arc[0] in EMPTY_WORDS else str(arc[0]) for _, arc in arcs]
    names = [f"score{k}" for k in range(width - 2)]
    return Lattice(len(nodes) + 1, tails, heads, scores, words, names, trim=trim)
