"""Readers of column files: one token a line, its columns side by side, a blank line after each sentence."""

from __future__ import annotations

import gzip
import lzma
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["ColumnTable", "iter_conllu", "iter_sentences", "read_column_table", "read_columns"]

Sentence = list[tuple[str, ...]]

# no prefix shorter than that: '#' begins tokens too, in tweets and in CoNLL-2000
COMMENTS = ("#begin document", "#end document")
DOCUMENT_MARKERS = ("-DOCSTART-",)
_SPACES = re.compile("[ \t\r\n\v\f]+")


class ColumnTable(NamedTuple):
    """A whole file: a list of strings for each column, and sentence i in tokens ``offsets[i]:offsets[i+1]``."""

    columns: list[list[str]]
    offsets: np.ndarray


def iter_sentences(
    source: Any,
    separator: str | None = None,
    comments: str | Sequence[str] = COMMENTS,
    document_markers: Sequence[str] = DOCUMENT_MARKERS,
) -> Iterator[Sentence]:
    """Sentences of a column file one by one, as lists of tuples of strings.

    Parameters
    ----------
    source : path, "-", or stream
        Files ending in ``.gz`` or ``.xz`` are unpacked; ``"-"`` is standard input; a stream gives text or bytes.
    separator : str, optional
        What stands between columns; runs of spaces and tabs when missing.
    comments : str or sequence of str
        Lines that begin with one of these are skipped.
    document_markers : sequence of str
        Lines whose first column is one of these are skipped, and end a sentence.

    Raises
    ------
    ValueError
        With file and line: columns missing or too many (all lines have as many as the first), not UTF-8, a damaged
        archive.
    """
    comments, markers = _prefixes(comments, separator), set(document_markers)
    sentence: Sentence = []
    width, width_line, done = 0, 0, 0
    with _opened(source) as (lines, name):
        for number, line in _decoded(lines, name):
            if comments and line.startswith(comments):
                continue
            row = _split(line, separator)
            if not row or row[0] in markers:
                if sentence:
                    yield sentence
                    done += 1
                    sentence = []
                continue
            if len(row) != width:
                if width:
                    raise ValueError(_ragged(name, number, done, len(row), width, width_line, line))
                width, width_line = len(row), number
            sentence.append(tuple(row))
    if sentence:
        yield sentence


def read_columns(
    source: Any,
    separator: str | None = None,
    comments: str | Sequence[str] = COMMENTS,
    document_markers: Sequence[str] = DOCUMENT_MARKERS,
) -> list[Sentence]:
    """All sentences of a column file; see :func:`iter_sentences`."""
    return list(iter_sentences(source, separator, comments, document_markers))


def read_column_table(
    source: Any,
    separator: str | None = None,
    comments: str | Sequence[str] = COMMENTS,
    document_markers: Sequence[str] = DOCUMENT_MARKERS,
) -> ColumnTable:
    """All columns of a column file, in about half the time of :func:`read_columns`; same parameters and errors."""
    comments, markers = _prefixes(comments, separator), set(document_markers)
    with _opened(source) as (lines, name):
        whole = lines.read() if hasattr(lines, "read") else [line for _, line in _decoded(lines, name)]
    if not isinstance(whole, list):
        whole = _text(whole, name).removeprefix("\ufeff").split("\n")
    if comments:
        skipped = [i for i, line in enumerate(whole) if line.startswith(comments)]
    else:
        skipped = []
    if separator is None and all(map(str.isascii, whole)):
        rows = list(map(str.split, whole))
    else:
        rows = [_split(line, separator) for line in whole]
    if markers:
        for i, row in enumerate(rows):
            if row and row[0] in markers:
                rows[i] = []
    widths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    widths[skipped] = -1  # a comment does not end a sentence
    for i in skipped:
        rows[i] = []
    full = np.flatnonzero(widths > 0)
    if len(full) == 0:
        return ColumnTable([], np.zeros(1, np.int64))
    width = int(widths[full[0]])
    ends = np.flatnonzero(widths == 0)
    tokens_before = np.unique(np.searchsorted(full, ends))
    offsets = np.unique(np.concatenate([[0], tokens_before, [len(full)]])).astype(np.int64)
    odd = np.flatnonzero(widths[full] != width)
    if len(odd):
        at = int(full[odd[0]])
        owner = int(np.searchsorted(offsets, odd[0], side="right")) - 1
        raise ValueError(_ragged(name, at + 1, owner, int(widths[at]), width, int(full[0]) + 1, whole[at]))
    flat = list(chain.from_iterable(rows))
    return ColumnTable([flat[j::width] for j in range(width)], offsets)


def iter_conllu(source: Any, fields: Sequence[str] = ("form", "lemma", "upos", "xpos")) -> Iterator[Sentence]:
    """Sentences of a CoNLL-U file one by one: the named fields of each word, ``_`` where there is none.

    Ranges of words (``1-2``) and empty nodes (``1.1``) are left out. Needs the package conllu (``maxmargin[text]``).

    Parameters
    ----------
    source : path, "-", or stream
        As in :func:`iter_sentences`.
    fields : sequence of str
        Among form, lemma, upos, xpos, feats, head, deprel, deps, misc.
    """
    try:
        import conllu
    except ImportError:
        raise ImportError(
            "reading CoNLL-U needs the package conllu; install it with: pip install 'maxmargin[text]'"
        ) from None
    known = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
    for name in fields:
        if name not in known:
            raise ValueError(f"CoNLL-U has no field {name!r}; it has {', '.join(known)}.")
    with _opened(source) as (lines, name):
        for done, (number, block) in enumerate(_blocks(_decoded(lines, name))):
            try:
                parsed = conllu.parse("".join(block) + "\n")
            except Exception as error:
                raise ValueError(
                    f"{name}, line {number} (sentence {done}): not CoNLL-U ({error}). Mend the sentence there."
                ) from None
            for sentence in parsed:
                yield [
                    tuple(_conllu_text(word.get(field)) for field in fields)
                    for word in sentence
                    if isinstance(word["id"], int)
                ]


def _conllu_text(value: Any) -> str:
    if value is None:
        return "_"
    if isinstance(value, dict):
        return "|".join(key if part is None else f"{key}={part}" for key, part in value.items()) or "_"
    if isinstance(value, list):  # enhanced dependencies: (relation, head)
        return "|".join(f"{_conllu_id(head)}:{relation}" for relation, head in value) or "_"
    return str(value)


def _conllu_id(head: Any) -> str:
    return "".join(map(str, head)) if isinstance(head, tuple) else str(head)


def _blocks(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines between blank ones that hold more than comments, each with the number of its first line."""
    block: list[str] = []
    begin = 0
    for number, line in chain(lines, [(0, "")]):
        if line.strip():
            begin = begin if block else number
            block.append(line if line.endswith("\n") else line + "\n")
        else:
            if any(not text.startswith("#") for text in block):
                yield begin, block
            block = []


def _prefixes(comments: str | Sequence[str], separator: str | None) -> tuple[str, ...]:
    if separator == "":
        raise ValueError('separator must not be empty; use None for runs of spaces and tabs, or "\\t".')
    prefixes = (comments,) if isinstance(comments, str) else tuple(comments or ())
    if "" in prefixes:
        raise ValueError("an empty comment prefix would skip every line; leave it out.")
    return prefixes


@contextmanager
def _opened(source: Any) -> Iterator[tuple[Any, str]]:
    """Lines of a source, and what messages call it."""
    if not isinstance(source, (str, Path)):
        if not hasattr(source, "read") and not isinstance(source, Iterable):
            raise TypeError(f"need a path, '-' or a stream of lines, got {type(source).__name__}.")
        yield source, str(getattr(source, "name", "<stream>"))
    elif str(source) == "-":
        yield getattr(sys.stdin, "buffer", sys.stdin), "<standard input>"
    else:
        opener: Any = {".gz": gzip.open, ".xz": lzma.open}.get(Path(source).suffix, open)
        try:
            file = opener(source, "rb")
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no file {str(source)!r}.") from None
        with file:
            try:
                yield file, str(source)
            except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
                raise ValueError(f"{source} is a damaged archive ({error}); fetch or pack it again.") from None


def _decoded(lines: Any, name: str) -> Iterator[tuple[int, str]]:
    """Numbered lines of text."""
    for number, line in enumerate(lines, start=1):
        if not isinstance(line, str):
            try:
                line = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{name}, line {number}: not UTF-8 text ({error.reason}); convert the file.") from None
        yield number, line.removeprefix("\ufeff") if number == 1 else line


def _text(whole: str | bytes, name: str) -> str:
    if isinstance(whole, str):
        return whole
    try:
        return whole.decode("utf-8")
    except UnicodeDecodeError as error:
        number = whole.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{name}, line {number}: not UTF-8 text ({error.reason}); convert the file.") from None


def _split(line: str, separator: str | None) -> list[str]:
    """Columns of a line, none when it is blank. Only ASCII spaces divide: tokens may hold others."""
    if separator is not None:
        line = line.rstrip("\r\n")
        return line.split(separator) if line.strip() else []
    if line.isascii():
        return line.split()
    return _SPACES.split(line.strip(" \t\r\n\v\f"))


def _ragged(name: str, number: int, sentence: int, got: int, width: int, width_line: int, line: str) -> str:
    shown = line.strip()
    return (
        f"{name}, line {number} (sentence {sentence}): {got} columns, but line {width_line} has {width}: "
        f"{shown if len(shown) <= 80 else shown[:77] + '...'!r}. Mend the line, or name the separator or the comments."
    )
