"""Column files of the command line: whole tables, streams of sentences, and output files."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    import numpy as np

    from maxmargin.features.tokens import Tokens

__all__ = ["Block", "Source", "Table", "column_place", "opened_output"]


@dataclass
class Block:
    """One sentence of a file with all its lines (before it, comments, and the blank line or marker after it)."""

    first: int  # number of the first line in the file
    lines: list[str] = field(default_factory=list)  # without line ends
    rows: list[tuple[str, ...]] = field(default_factory=list)  # columns of the tokens
    places: list[int] = field(default_factory=list)  # positions of the tokens in the lines


@dataclass
class Table:
    """A whole file: its columns, and sentence i in tokens ``offsets[i]:offsets[i+1]``."""

    columns: list[list[str]]
    offsets: np.ndarray
    source: Source
    rows: np.ndarray | None = None  # which sentences of the source these are; None for all

    @property
    def n_tokens(self) -> int:
        return int(self.offsets[-1])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def tokens(self) -> Tokens:
        from maxmargin.features.tokens import Tokens

        return Tokens.from_columns(self.columns, self.offsets)

    def take(self, sentences: np.ndarray) -> Table:
        """Some of the sentences."""
        import numpy as np

        parts = [np.arange(self.offsets[i], self.offsets[i + 1]) for i in sentences]
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        flat = np.concatenate(parts).tolist()
        return Table([[column[t] for t in flat] for column in self.columns], offsets, self.source, sentences)

    def line(self, sentence: int, token: int) -> int | None:
        """Number of the line of a token in the source; None when it is unknown."""
        return self.source.line(sentence if self.rows is None else int(self.rows[sentence]), token)

    def labels(self, column: int) -> list[list[str]]:
        """A column, sentence by sentence."""
        flat = self.columns[column_place(column, len(self.columns), self.source.name)]
        return [flat[a:b] for a, b in pairwise(self.offsets.tolist())]


@dataclass
class Source:
    """An input: a path (``.gz`` and ``.xz`` are unpacked) or ``-``."""

    path: str
    separator: str | None = None  # between columns; runs of spaces and tabs by default, the two characters \t for a tab
    comment: str | None = None  # skip lines that begin with this
    _kept: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.separator is not None:
            self.separator = self.separator.replace("\\t", "\t")

    @property
    def name(self) -> str:
        return "<standard input>" if self.path == "-" else self.path

    @property
    def _comments(self) -> tuple[str, ...]:
        from maxmargin.datasets.columns import COMMENTS, prefixes

        return prefixes(COMMENTS if self.comment is None else (*COMMENTS, self.comment), self.separator)

    def table(self) -> Table:
        """The whole file; a file without tokens is an error."""
        from maxmargin.datasets.columns import read_column_table

        source: str | _Named = self.path
        if self.path == "-":
            # standard input can be read only once, and an error may ask for its line later
            self._kept = sys.stdin.buffer.read()
            source = _Named(self._kept, self.name)
        columns, offsets = read_column_table(source, self.separator, self._comments)
        if not columns:
            advice = "it needs one token per line, and a blank line after each sentence"
            raise ValueError(f"{self.name} has no tokens; {advice}.")
        return Table(columns, offsets, self)

    def blocks(self) -> Iterator[Block]:
        """The file sentence by sentence, in little memory. Lines after the last sentence form a block without rows."""
        from maxmargin.datasets.columns import MARKERS, decoded, opened, ragged, split_line

        comments = self._comments
        source = self.path if self._kept is None else _Named(self._kept, self.name)
        width, width_line, done = 0, 0, 0
        block = Block(1)
        with opened(source) as (lines, name):
            for number, line in decoded(lines, name):
                text = line.rstrip("\r\n")
                is_comment = bool(comments) and text.startswith(comments)
                row = [] if is_comment else split_line(text, self.separator)
                if row and row[0] not in MARKERS:
                    if width and len(row) != width:
                        raise ValueError(ragged(name, number, done, len(row), width, width_line, line))
                    if not width:
                        width, width_line = len(row), number
                    block.places.append(len(block.lines))
                    block.rows.append(tuple(row))
                block.lines.append(text)
                if block.rows and not is_comment and block.places[-1] != len(block.lines) - 1:
                    yield block  # at once: the answer must not wait for the next sentence
                    done += 1
                    block = Block(number + 1)
        if block.lines:
            yield block

    def line(self, sentence: int, token: int) -> int | None:
        """Number of the line of a token; None when it is unknown."""
        if self.path == "-" and self._kept is None:
            return None
        with suppress(ValueError, OSError, IndexError):
            for i, block in enumerate(self.blocks()):
                if i == sentence:
                    return block.first + block.places[token]
        return None


class _Named(io.BytesIO):
    """Bytes with the name that messages use."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


def column_place(column: int, width: int, name: str) -> int:
    """The index from 0 of a column that may count from the end (negative)."""
    if not -width <= column < width:
        known = f"the lines have {width}, counted from 0 (-1 is the last)"
        raise ValueError(f"{name}, line 1: there is no column {column}; {known}.")
    return column % width


@contextmanager
def opened_output(path: str, source: str | None = None) -> Iterator[TextIO]:
    """Open a file for results: UTF-8, compressed by its suffix; ``-`` is standard output."""
    if path == "-":
        wrapped = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="\n", write_through=True)
        try:
            yield wrapped
            wrapped.flush()
        finally:
            wrapped.detach()  # standard output stays open
        return
    if source not in (None, "-") and os.path.exists(path) and os.path.samefile(path, str(source)):
        raise ValueError(f"{path} is the input; writing would destroy it before it is read. Name another file.")
    import gzip
    import lzma

    openers: dict[str, Callable[..., TextIO]] = {".gz": gzip.open, ".xz": lzma.open}
    with openers.get(os.path.splitext(path)[1], open)(path, "wt", encoding="utf-8", newline="\n") as file:
        yield file
