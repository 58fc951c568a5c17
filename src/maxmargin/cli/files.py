"""Column files of the command line: the options about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from maxmargin.cli import options as o
from maxmargin.features.column_files import MAX_UNPACKED, Source, Table

if TYPE_CHECKING:
    from maxmargin.datasets.column_format import ColumnFormat

__all__ = ["FileOptions", "warn_of_shape"]

MUCH = 1000  # tokens of a file that is a single sentence


@dataclass(frozen=True)
class FileOptions:
    """The options about column files."""

    format: o.FormatOption = o.Format.auto
    separator: o.Separator = None
    comment: o.Comment = None
    max_unpacked: o.MaxUnpacked = MAX_UNPACKED

    def source(self, path: str, known: ColumnFormat | None = None) -> Source:
        """An input; what nobody says is as a model knows it from its training, or seen when the file is read."""
        separator, comment = self.separator, self.comment
        separator = None if separator is None else separator.replace("\\t", "\t")
        conllu: bool | None = None if self.format == "auto" else self.format == "conllu"
        if known is not None:
            conllu = known.conllu if conllu is None else conllu
            separator = known.separator if separator is None else separator
            comment = known.comment if comment is None else comment
        return Source(path, separator, comment, conllu, self.max_unpacked)


def warn_of_shape(table: Table) -> None:
    """Say so when a file does not look like one token per line with a blank line after each sentence."""
    if len(table) > 1 and len(table) == table.n_tokens:
        found = f"each of the {len(table)} sentences of {table.source.name} has one token"
        typer.echo(f"maxmargin: {found}; lines hold one token each, not a whole sentence.", err=True)
    elif len(table) == 1 and table.n_tokens > MUCH:
        found = f"{table.source.name} is one sentence of {table.n_tokens} tokens"
        typer.echo(f"maxmargin: {found}; put a blank line after each sentence.", err=True)
