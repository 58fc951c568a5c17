"""Readers of column files: one token per line, its columns side by side, a blank line after each sentence."""

from __future__ import annotations

import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["ColumnTable", "iter_conllu", "iter_sentences", "read_column_table", "read_columns"]

Sentence = list[tuple[str, ...]]
Lines = Iterable[str | bytes]
Source = str | Path | Lines
Texts = str | Sequence[str]

# not just '#', which begins tokens in tweets and in CoNLL-2000
COMMENTS = ("#begin document", "#end document")
MARKERS = ("-DOCSTART-",)
_BLANK = " \t\r\v\f\x1c\x1d\x1e\x1f"  # what str.split() treats as space in ASCII text, except newlines
_SPACES = re.compile(f"[{_BLANK}\n]+")


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
    comments = prefixes(comments, separator)
    with opened(source) as (lines, name):
        yield from _sentences(lines, name, separator, comments, set(document_markers))


def read_columns(
    source: Source, separator: str | None = None, comments: Texts = COMMENTS, document_markers: Sequence[str] = MARKERS
) -> list[Sentence]:
    """All sentences of a column file; see :func:`iter_sentences`."""
    return list(iter_sentences(source, separator, comments, document_markers))


def read_column_table(
    source: Source, separator: str | None = None, comments: Texts = COMMENTS, document_markers: Sequence[str] = MARKERS
) -> ColumnTable:
    """All columns of a column file at once; parameters and errors as in :func:`iter_sentences`.

    Faster than :func:`read_columns` when columns are separated by spaces.
    """
    comments, markers = prefixes(comments, separator), set(document_markers)
    with opened(source) as (lines, name):
        if separator is not None or not isinstance(lines, (io.TextIOBase, io.BufferedIOBase)):
            return _table(_sentences(lines, name, separator, comments, markers))
        whole = lines.read()
    text = _decoded(whole, name)
    table = _split_all(_without(text.removeprefix("\ufeff"), comments, markers))
    # uneven lines: parse again line by line to find the place
    return table or _table(_sentences(text.split("\n"), name, None, comments, markers))


def iter_conllu(source: Source, fields: Sequence[str] = ("form", "lemma", "upos", "xpos")) -> Iterator[Sentence]:
    """Sentences of a CoNLL-U file one by one: the named fields of each word, ``_`` where there is none.

    Skips ranges of words (``1-2``) and empty nodes (``1.1``). Needs the package conllu (``maxmargin[text]``).
    Source as in :func:`iter_sentences`; fields among form, lemma, upos, xpos, feats, head, deprel, deps, misc.
    """
    try:
        import conllu
    except ImportError:
        raise ImportError("CoNLL-U needs the package conllu; install it with: pip install 'maxmargin[text]'") from None
    known = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
    for name in fields:
        if name not in known:
            raise ValueError(f"CoNLL-U has no field {name!r}; it has {', '.join(known)}.")
    with opened(source) as (lines, name):
        for done, (number, block) in enumerate(_blocks(decoded(lines, name))):
            try:
                parsed = conllu.parse("".join(block) + "\n")
            except Exception as error:
                raise ValueError(f"{name}, line {number} (sentence {done}): not CoNLL-U ({error}).") from None
            for sentence in parsed:
                words = [word for word in sentence if isinstance(word["id"], int)]
                yield [tuple(_conllu_text(word.get(field)) for field in fields) for word in words]


def _sentences(
    lines: Lines, name: str, separator: str | None, comments: tuple[str, ...], markers: set[str]
) -> Iterator[Sentence]:
    sentence: Sentence = []
    width, width_line, done = 0, 0, 0
    for number, line in decoded(lines, name):
        if comments and line.startswith(comments):
            continue
        row = split_line(line, separator)
        if not row or row[0] in markers:
            if sentence:
                yield sentence
                done += 1
                sentence = []
            continue
        if len(row) != width:
            if width:
                raise ValueError(ragged(name, number, done, len(row), width, width_line, line))
            width, width_line = len(row), number
        sentence.append(tuple(row))
    if sentence:
        yield sentence


def _table(sentences: Iterable[Sentence]) -> ColumnTable:
    flat: Sentence = []
    ends = [0]
    for sentence in sentences:
        flat += sentence
        ends.append(len(flat))
    width = len(flat[0]) if flat else 0
    return ColumnTable([list(map(itemgetter(j), flat)) for j in range(width)], np.array(ends, np.int64))


def _without(text: str, comments: tuple[str, ...], markers: set[str]) -> str:
    """Text without its comments, and with blank lines for its document markers."""
    if any(prefix in text for prefix in comments):
        text = re.sub(f"^(?:{'|'.join(map(re.escape, comments))})[^\n]*\n?", "", text, flags=re.MULTILINE)
    if any(marker in text for marker in markers):
        either = "|".join(map(re.escape, markers))
        text = re.sub(f"^[{_BLANK}]*(?:{either})(?![^{_BLANK}\n])[^\n]*$", "", text, flags=re.MULTILINE)
    return text


def _split_all(text: str) -> ColumnTable | None:
    """Split a whole text at spaces and count the fields of each line on its bytes; None when lines differ."""
    codes = np.frombuffer(text.encode("utf-8", "surrogatepass") + b"\n", np.uint8)
    space = np.isin(codes, np.frombuffer(f"{_BLANK}\n".encode(), np.uint8))
    starts = np.flatnonzero(~space & np.concatenate([[True], space[:-1]]))
    counts = np.diff(np.searchsorted(starts, np.flatnonzero(codes == ord("\n"))), prepend=0)
    widths = np.unique(counts[counts > 0])
    if len(widths) == 0:
        return ColumnTable([], np.zeros(1, np.int64))
    if len(widths) > 1:
        return None
    width = int(widths[0])
    flat = text.split() if text.isascii() else _SPACES.split(text.strip(f"{_BLANK}\n"))
    tokens = np.cumsum(counts) // width
    offsets = np.unique(np.concatenate([[0], tokens[counts == 0], tokens[-1:]])).astype(np.int64)
    return ColumnTable([flat[j::width] for j in range(width)], offsets)


def _conllu_text(value: object) -> str:
    if value is None:
        return "_"
    if isinstance(value, dict):
        return "|".join(key if part is None else f"{key}={part}" for key, part in value.items()) or "_"
    if isinstance(value, list):  # enhanced dependencies: (relation, head)
        parts = [(relation, head if isinstance(head, tuple) else (head,)) for relation, head in value]
        return "|".join(f"{''.join(map(str, head))}:{relation}" for relation, head in parts) or "_"
    return str(value)


def _blocks(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """Blocks of lines between blank ones, except pure comments, each with the number of its first line."""
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


def prefixes(comments: Texts, separator: str | None) -> tuple[str, ...]:
    if separator == "":
        raise ValueError('separator must not be empty; use None for runs of spaces and tabs, or "\\t".')
    prefixes = (comments,) if isinstance(comments, str) else tuple(comments or ())
    if "" in prefixes:
        raise ValueError("an empty comment prefix would skip every line; leave it out.")
    return prefixes


@contextmanager
def opened(source: Source) -> Iterator[tuple[Lines, str]]:
    """Lines of a source, and its name for messages."""
    if not isinstance(source, (str, Path)):
        if not isinstance(source, Iterable):
            raise TypeError(f"need a path, '-' or a stream of lines, got {type(source).__name__}.")
        yield source, str(getattr(source, "name", "<stream>"))
    elif str(source) == "-":
        yield getattr(sys.stdin, "buffer", sys.stdin), "<standard input>"
    else:
        openers: dict[str, Callable[[str | Path], gzip.GzipFile | lzma.LZMAFile | io.FileIO]]
        openers = {".gz": gzip.GzipFile, ".xz": lzma.LZMAFile}
        try:
            file = openers.get(Path(source).suffix, io.FileIO)(source)
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no file {str(source)!r}.") from None
        with file:
            try:
                yield io.BufferedReader(file, 1 << 20), str(source)
            except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
                raise ValueError(f"{source} is a damaged archive ({error}); download or compress it again.") from None


def decoded(lines: Lines, name: str) -> Iterator[tuple[int, str]]:
    """Lines of text with their numbers."""
    for number, line in enumerate(lines, start=1):
        text = line if isinstance(line, str) else _decoded(line, name, number)
        yield number, text.removeprefix("\ufeff") if number == 1 else text


def _decoded(data: str | bytes, name: str, number: int = 1) -> str:
    """Text of some lines, of which the first has a number."""
    if isinstance(data, str):
        return data
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        number += data.count(b"\n", 0, error.start)
        raise ValueError(f"{name}, line {number}: not UTF-8 text ({error.reason}); convert the file.") from None


def split_line(line: str, separator: str | None) -> list[str]:
    """Columns of a line, none when it is blank. Only ASCII spaces separate: tokens may contain others."""
    if separator is not None:
        line = line.rstrip("\r\n")
        return line.split(separator) if line.strip() else []
    if line.isascii():
        return line.split()
    line = line.strip(f"{_BLANK}\n")
    return _SPACES.split(line) if line else []


def ragged(name: str, number: int, sentence: int, got: int, width: int, width_line: int, line: str) -> str:
    shown = line.strip()
    return (
        f"{name}, line {number} (sentence {sentence}): {got} columns, but line {width_line} has {width}: "
        f"{shown if len(shown) <= 80 else shown[:77] + '...'!r}. Correct it, or set the separator or the comments."
    )
