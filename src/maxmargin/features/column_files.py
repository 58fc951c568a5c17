"""Column files as examples: whole tables and streams of sentences, and errors that name file and line."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from maxmargin.datasets.column_format import ColumnFormat
    from maxmargin.datasets.columns import Block, Rules
    from maxmargin.features.tokens import Tokens

__all__ = ["MAX_UNPACKED", "Source", "Table", "column_place", "located"]

MAX_UNPACKED = 64.0  # MB that an archive may always unpack to
_PLACE = re.compile(r"\b(?:example|sentence|sequence) (\d+)(?:, (?:position|token) (\d+))?")


@dataclass
class Table:
    """A whole file: its columns, and sentence i in tokens ``offsets[i]:offsets[i+1]``."""

    columns: list[list[str]]
    offsets: np.ndarray
    source: Source
    rows: np.ndarray | None = None  # which sentences of the source these are; None for all
    digest: str = ""  # of the text, where all of it was read

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

    def place(self, column: str | None, default: str = "-1") -> int:
        """The index from 0 of a column; by default the one of the labels: the last, or upos in CoNLL-U."""
        return self.source.place(column, len(self.columns), default)

    def labels(self, place: int) -> list[list[str]]:
        """A column, sentence by sentence."""
        flat = self.columns[place]
        return [flat[a:b] for a, b in pairwise(self.offsets.tolist())]

    def format(self, word_column: str | None) -> ColumnFormat:
        """How this file is read, for the model that learns from it."""
        from maxmargin.datasets.column_format import ColumnFormat

        source = self.source
        words = source.word_place(word_column, len(self.columns))
        return ColumnFormat(bool(source.conllu), source.separator, source.comment, words, len(self.columns))


@dataclass
class Source:
    """An input: a path (``.gz`` and ``.xz`` are unpacked) or ``-``."""

    path: str
    separator: str | None = None  # between columns; runs of spaces and tabs by default
    comment: str | None = None  # skip lines that begin with this
    conllu: bool | None = None  # None: see when the whole file is read
    max_unpacked: float = MAX_UNPACKED
    _kept: bytes | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return "<standard input>" if self.path == "-" else self.path

    @property
    def rules(self) -> Rules:
        from maxmargin.datasets.columns import COMMENTS, CONLLU, Rules

        more = () if self.comment is None else (self.comment,)
        if self.conllu:
            return replace(CONLLU, comments=(*CONLLU.comments, *more))
        return Rules.of(self.separator, (*COMMENTS, *more))

    def place(self, column: str | None, width: int, default: str) -> int:
        """The index from 0 of a column that is a number (negative: from the end) or the name of a CoNLL-U field."""
        from maxmargin.datasets.column_format import FIELDS

        if column is None:
            column = "upos" if self.conllu and default == "-1" else default
        if column.lower() in FIELDS:
            if not self.conllu:
                advice = "columns have names in CoNLL-U only; give its number, from 0, or --format conllu"
                raise ValueError(f"{self.name}, line 1: there is no column {column!r}; {advice}.")
            return FIELDS.index(column.lower())
        return column_place(int(column), width, self.name)

    def word_place(self, column: str | None, width: int) -> int:
        """The column of the words: the first one, or form in CoNLL-U, where nobody says another."""
        return self.place(column, width, "form" if self.conllu else "0")

    def table(self, *, may_be_empty: bool = False) -> Table:
        """The whole file; a file without tokens is an error, or a table without columns."""
        from maxmargin.datasets.columns import looks_like_conllu, read_table
        from maxmargin.datasets.text_lines import opened

        if self._kept is None:
            with opened(self.path, self._bytes) as (lines, _):
                assert isinstance(lines, io.BufferedIOBase)
                self._kept = lines.read()
        if self.conllu is None:
            self.conllu = self.separator in (None, "\t") and looks_like_conllu(self._kept)
        columns, offsets = read_table(_Named(self._kept, self.name), self.rules)
        digest = hashlib.sha256(self._kept).hexdigest()
        if os.path.isfile(self.path):  # what can be read only once is kept: an error may ask for its line later
            self._kept = None
        if not columns and not may_be_empty:
            advice = "it needs one token per line, and a blank line after each sentence"
            raise ValueError(f"{self.name} has no tokens; {advice}.")
        return Table(columns, offsets, self, digest=digest)

    @property
    def size(self) -> int | None:
        """Bytes of the file, as it lies on disk; None of what is no file."""
        return os.path.getsize(self.path) if os.path.isfile(self.path) else None

    def blocks(self, told: Callable[[int], None] | None = None) -> Iterator[Block]:
        """The file sentence by sentence, in little memory; ``told`` hears how many bytes are read, each time."""
        from maxmargin.datasets.columns import iter_blocks
        from maxmargin.datasets.text_lines import opened

        source = self.path if self._kept is None else _Named(self._kept, self.name)
        with opened(source, self._bytes, told) as (lines, name):
            yield from iter_blocks(lines, name, self.rules)

    @property
    def _bytes(self) -> int:
        return int(1e6 * self.max_unpacked)

    def line(self, sentence: int, token: int) -> int | None:
        """Number of the line of a token; None when it is unknown."""
        if self._kept is None and not os.path.isfile(self.path):
            return None
        with suppress(ValueError, OSError, IndexError):
            sentences = (block for block in self.blocks() if block.rows)
            for i, block in enumerate(sentences):
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
def located(name: str, line: Callable[[int, int], int | None]) -> Iterator[None]:
    """Put the file name, and the ``line(sentence, token)`` if the error names them, in front of an error message."""
    try:
        yield
    except ValueError as error:
        message = str(error)
        if message.startswith(name):
            raise
        place = _PLACE.search(message)
        number = line(int(place[1]), int(place[2] or 0)) if place else None
        raise ValueError(f"{name}{f', line {number}' if number else ''}: {message}") from error
