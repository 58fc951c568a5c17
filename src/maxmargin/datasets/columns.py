"""Readers of column files: one token per line, its columns side by side, a blank line after each sentence."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from maxmargin.datasets.column_format import FIELDS
from maxmargin.datasets.text_lines import (
    LINE_LIMIT,
    UNPACKED_LIMIT,
    Lines,
    Source,
    check_text,
    decoded,
    not_text,
    opened,
)

__all__ = [
    "Block", "ColumnTable", "Rules", "iter_blocks", "iter_conllu", "iter_sentences", "looks_like_conllu",
    "read_column_table", "read_columns", "read_table",
]  # fmt: skip

Sentence = list[tuple[str, ...]]
Texts = str | Sequence[str]

# not just '#', which begins tokens in tweets and in CoNLL-2000
COMMENTS = ("#begin document", "#end document")
MARKERS = ("-DOCSTART-",)
SENTENCE_LIMIT = 2**29  # bytes of memory, roughly
_ONE_LINE = 256  # bytes of memory of a short line, roughly
_FLUSHED = 2**20  # so many bytes without a token are handed on
_BLANK = " \t\r\v\f\x1c\x1d\x1e\x1f"  # what str.split() treats as space in ASCII text, except newlines
_SPACES = re.compile(f"[{_BLANK}\n]+")
_WORD, _OTHER = re.compile(r"[1-9]\d*", re.ASCII), re.compile(r"\d+[-.]\d+", re.ASCII)


@dataclass(frozen=True)
class Rules:
    """What the lines of a file mean; parameters as in :func:`iter_sentences`.

    In CoNLL-U, the lines of ranges of words (``1-2``) and of empty nodes (``1.1``) are no tokens.
    """

    separator: str | None = None
    comments: tuple[str, ...] = COMMENTS
    markers: tuple[str, ...] = MARKERS
    conllu: bool = False

    @staticmethod
    def of(separator: str | None, comments: Texts, markers: Sequence[str] = MARKERS) -> Rules:
        """Rules for given parameters, which are checked."""
        if separator == "":
            raise ValueError('separator must not be empty; use None for runs of spaces and tabs, or "\\t".')
        prefixes = (comments,) if isinstance(comments, str) else tuple(comments or ())
        if "" in prefixes:
            raise ValueError("an empty comment prefix would skip every line; leave it out.")
        return Rules(separator, prefixes, tuple(markers))


CONLLU = Rules("\t", ("#",), (), conllu=True)


@dataclass
class Block:
    """One sentence of a file with all its lines (before it, comments, and the blank line or marker after it)."""

    first: int  # number of the first line in the file
    lines: list[str]  # with their line ends
    rows: Sentence  # columns of the tokens
    places: list[int]  # positions of the tokens in the lines
    size: int  # bytes of memory, roughly


class ColumnTable(NamedTuple):
    """A whole file: a list of strings for each column, and sentence i in tokens ``offsets[i]:offsets[i+1]``."""

    columns: list[list[str]]
    offsets: np.ndarray


def iter_sentences(
    source: Source, separator: str | None = None, comments: Texts = COMMENTS, document_markers: Sequence[str] = MARKERS
) -> Iterator[Sentence]:
    """Sentences of a column file one by one, as lists of tuples of strings.

    A ValueError names the file and the line that is not UTF-8 or has other columns than the first one, or an archive
    that is damaged.

    Parameters
    ----------
    source : path, "-", or stream
        Files ending in ``.gz`` or ``.xz`` are decompressed; ``"-"`` is standard input; a stream yields text or bytes.
    separator : str, optional
        Separator of columns; runs of spaces and tabs by default.
    comments : str or sequence of str
        Skip lines that begin with one of these.
    document_markers : sequence of str
        Skip lines whose first column is one of these; they end a sentence.
    """
    rules = Rules.of(separator, comments, document_markers)
    with opened(source) as (lines, name):
        yield from _sentences(lines, name, rules)


def read_columns(
    source: Source, separator: str | None = None, comments: Texts = COMMENTS, document_markers: Sequence[str] = MARKERS
) -> list[Sentence]:
    """All sentences of a column file; parameters and errors as in :func:`iter_sentences`, but faster."""
    table = read_column_table(source, separator, comments, document_markers)
    rows = list(zip(*table.columns, strict=True))
    return [rows[begin:end] for begin, end in pairwise(table.offsets.tolist())]


def read_column_table(
    source: Source, separator: str | None = None, comments: Texts = COMMENTS, document_markers: Sequence[str] = MARKERS
) -> ColumnTable:
    """All columns of a column file at once; parameters and errors as in :func:`iter_sentences`."""
    return read_table(source, Rules.of(separator, comments, document_markers))


def read_table(source: Source, rules: Rules, max_unpacked: int = UNPACKED_LIMIT) -> ColumnTable:
    """All columns of a file at once; archives may unpack to so many bytes, see :func:`opened`."""
    with opened(source, max_unpacked) as (lines, name):
        if rules.conllu or not isinstance(lines, (io.TextIOBase, io.BufferedIOBase)):
            return _table(_sentences(lines, name, rules))
        whole = lines.read()
    text = check_text(whole, name)
    if "\0" in text:
        raise ValueError(not_text(name, text.count("\n", 0, text.index("\0")) + 1))
    table = (_split_all if rules.separator is None else _split_lines)(text.removeprefix("\ufeff"), rules)
    # uneven or endless lines or sentences: parse again line by line to find the place
    return table or _table(_sentences(text.split("\n"), name, rules))


def iter_conllu(source: Source, fields: Sequence[str] = ("form", "lemma", "upos", "xpos")) -> Iterator[Sentence]:
    """Sentences of a CoNLL-U file one by one: the named fields of each word, ``_`` where there is none.

    Skips ranges of words (``1-2``) and empty nodes (``1.1``). Source as in :func:`iter_sentences`; fields among form,
    lemma, upos, xpos, feats, head, deprel, deps, misc. Nivre et al. 2016, Universal Dependencies v1.
    """
    for name in fields:
        if name not in FIELDS:
            raise ValueError(f"CoNLL-U has no field {name!r}; it has {', '.join(FIELDS)}.")
    places = [FIELDS.index(name) for name in fields]
    with opened(source) as (lines, name):
        for sentence in _sentences(lines, name, CONLLU):
            yield [tuple(row[place] for place in places) for row in sentence]


def looks_like_conllu(text: bytes) -> bool:
    """Whether the first token of a file has the ten columns of CoNLL-U, with a number in front."""
    for line in io.BytesIO(text):
        if line.strip() and not line.startswith(b"#"):
            columns = line.decode("utf-8", "replace").split("\t")
            return len(columns) == len(FIELDS) and bool(_WORD.fullmatch(columns[0]) or _OTHER.fullmatch(columns[0]))
    return False


def iter_blocks(lines: Lines, name: str, rules: Rules) -> Iterator[Block]:
    """A file sentence by sentence, in little memory. Lines without a sentence after them form blocks without rows."""
    separator, comments, markers, conllu = rules.separator, rules.comments, rules.markers, rules.conllu
    width, width_line, done, size, before = 0, 0, 0, 0, ""
    first, kept, rows, places = 1, list[str](), Sentence(), list[int]()
    for number, line in decoded(lines, name):
        if line[-1:] != "\n":  # the last line ends as the one before it
            line += "\r\n" if (kept[-1] if kept else before)[-2:] == "\r\n" else "\n"
        apart = line.startswith(comments)  # neither a token nor the end of a sentence
        row = [] if apart else split_line(line, separator)
        if conllu and row:
            apart = not _is_word(row, name, number, done)
        size += len(line) + _ONE_LINE
        if size > SENTENCE_LIMIT:
            many = f"{len(kept)} lines without a blank line"
            raise ValueError(f"{name}, line {first}: {many}; put a blank line after each sentence.")
        if row and not apart and row[0] not in markers:
            if len(row) != width:
                if width:
                    raise ValueError(ragged(name, number, done, len(row), width, width_line, line))
                width, width_line = len(row), number
            places.append(len(kept))
            rows.append(tuple(row))
            kept.append(line)
            continue
        kept.append(line)
        if not apart if rows else size > _FLUSHED:
            yield Block(first, kept, rows, places, size)  # at once: the answer must not wait for the next sentence
            done += bool(rows)
            first, kept, rows, places, size, before = number + 1, [], [], [], 0, line
    if kept:
        yield Block(first, kept, rows, places, size)


def _sentences(lines: Lines, name: str, rules: Rules) -> Iterator[Sentence]:
    return (block.rows for block in iter_blocks(lines, name, rules) if block.rows)


def _is_word(row: Sequence[str], name: str, number: int, sentence: int) -> bool:
    """Whether a line of CoNLL-U is a word, not a range of words or an empty node."""
    if len(row) < len(FIELDS):
        what = f"{len(FIELDS)} columns between tabs are needed, there are {len(row)}"
    elif _WORD.fullmatch(row[0]):
        return True
    elif _OTHER.fullmatch(row[0]):
        return False
    else:
        what = f"{row[0][:40]!r} is not the number of a word"
    raise ValueError(
        f"{name}, line {number} (sentence {sentence}): not CoNLL-U ({what}); correct it, or read the file as columns."
    )


def _table(sentences: Iterable[Sentence]) -> ColumnTable:
    flat: Sentence = []
    ends = [0]
    for sentence in sentences:
        flat += sentence
        ends.append(len(flat))
    width = len(flat[0]) if flat else 0
    return ColumnTable([list(map(itemgetter(j), flat)) for j in range(width)], np.array(ends, np.int64))


def _without(text: str, rules: Rules) -> str:
    """Text without its comments, and with blank lines for its document markers."""
    comments, markers = rules.comments, rules.markers
    if any(prefix in text for prefix in comments):
        text = re.sub(f"^(?:{'|'.join(map(re.escape, comments))})[^\n]*\n?", "", text, flags=re.MULTILINE)
    if any(marker in text for marker in markers):
        either = "|".join(map(re.escape, markers))
        text = re.sub(f"^[{_BLANK}]*(?:{either})(?![^{_BLANK}\n])[^\n]*$", "", text, flags=re.MULTILINE)
    return text


def _split_all(text: str, rules: Rules) -> ColumnTable | None:
    """Split a whole text at spaces and count the fields of lines on its bytes; None when lines differ or never end."""
    text = _without(text, rules)
    codes = np.frombuffer(text.encode("utf-8", "surrogatepass") + b"\n", np.uint8)
    space = np.isin(codes, np.frombuffer(f"{_BLANK}\n".encode(), np.uint8))
    starts = np.flatnonzero(~space & np.concatenate([[True], space[:-1]]))
    ends = np.flatnonzero(codes == ord("\n"))
    if np.diff(ends, prepend=-1).max() > LINE_LIMIT:
        return None
    counts = np.diff(np.searchsorted(starts, ends), prepend=0)

    def columns(width: int) -> list[list[str]]:
        flat = text.split() if text.isascii() else _SPACES.split(text.strip(f"{_BLANK}\n"))
        return [flat[j::width] for j in range(width)]

    return _even_table(counts, len(text), columns)


def _split_lines(text: str, rules: Rules) -> ColumnTable | None:
    """Split every line of a text at the separator; None when lines differ or never end."""
    lines = text.split("\n")
    if max(map(len, lines)) > LINE_LIMIT:
        return None
    rows = [split_line(line, rules.separator) for line in lines if not line.startswith(rules.comments)]
    if any(marker in text for marker in rules.markers):
        rows = [[] if row and row[0] in rules.markers else row for row in rows]
    counts = np.fromiter(map(len, rows), np.int64, len(rows))
    return _even_table(counts, len(text), lambda width: list(map(list, zip(*filter(None, rows), strict=True))))


def _even_table(counts: np.ndarray, size: int, columns: Callable[[int], list[list[str]]]) -> ColumnTable | None:
    """A table of lines with so many fields; None when they differ, or when a sentence may be beyond the limit."""
    widths = np.unique(counts[counts > 0])
    if len(widths) == 0:
        return ColumnTable([], np.zeros(1, np.int64))
    if len(widths) > 1 or size + _ONE_LINE * len(counts) > SENTENCE_LIMIT:
        return None
    tokens = np.cumsum(counts > 0)
    offsets = np.unique(np.concatenate([[0], tokens[counts == 0], tokens[-1:]])).astype(np.int64)
    return ColumnTable(columns(int(widths[0])), offsets)


def split_line(line: str, separator: str | None) -> list[str]:
    """Columns of a line, none when it is blank. Only ASCII spaces separate: tokens may contain others."""
    if separator is not None:
        line = line.rstrip("\r\n")
        return line.split(separator) if line and not line.isspace() else []
    if line.isascii():
        return line.split()
    line = line.strip(f"{_BLANK}\n")
    return _SPACES.split(line) if line else []


def ragged(name: str, number: int, sentence: int, got: int, width: int, width_line: int, line: str) -> str:
    shown = line.strip()
    return (
        f"{name}, line {number} (sentence {sentence}): {got} columns, but line {width_line} has {width}: "
        f"{shown if len(shown) <= 80 else shown[:77] + '...'!r}. "
        "Correct it, or set the separator or the comments; each line holds one token."
    )
