"""From files to a tagger's bound model, and from a tagger to the labels of files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from maxmargin.contracts import Executor
from maxmargin.datasets.column_format import ColumnFormat
from maxmargin.estimators.file_parts import BoundFiles, ClassWeights, PartReader, Paths, bind_files, found_files
from maxmargin.estimators.left_parts import Trained, stays
from maxmargin.features.column_files import Source, located
from maxmargin.features.tokens import Tokens
from maxmargin.models.chain import Chain

__all__ = ["as_column", "bound_files", "labels_of_files", "sources_of"]

FORMATS = {"auto": None, "columns": False, "conllu": True}


class FilesTagger(Trained, Protocol):
    """What files need of a tagger."""

    n_jobs: int | None
    model_: Chain

    @property
    def _weights_of_counts(self) -> ClassWeights: ...

    def predict(self, X: Tokens) -> Sequence[list[Hashable]]: ...


def sources_of(
    paths: Paths,
    format: str,
    separator: str | None,
    comment: str | None,
    max_unpacked: float,
    known: ColumnFormat | None = None,
) -> list[Source]:
    """The files behind paths and patterns; what nobody says is as it was in training, or seen when they are read."""
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}.")
    conllu = FORMATS[format]
    if known is not None:
        conllu = known.conllu if conllu is None else conllu
        separator = known.separator if separator is None else separator
        comment = known.comment if comment is None else comment
    sources = [Source(path, separator, comment, conllu, max_unpacked) for path in found_files(paths)]
    _ = sources[0].rules  # refuses separators and comments that mean nothing
    return sources


def as_column(column: int | str | None) -> str | None:
    """A column as text: a number, or the name of a field of CoNLL-U."""
    from maxmargin.datasets.column_format import FIELDS

    if column is None:
        return None
    text = str(column)
    if isinstance(column, bool) or not (text.removeprefix("-").isdecimal() or text.lower() in FIELDS):
        raise ValueError(f"a column must be a number or a field of CoNLL-U ({', '.join(FIELDS)}); got {column!r}.")
    return text


def bound_files(
    tagger: FilesTagger,
    readers: Sequence[PartReader],
    memory_map: str | os.PathLike[str] | None,
    during_fit: ExitStack,
) -> BoundFiles:
    """A tagger's chain bound to all sentences of files, in memory or in a folder that is mapped into it.

    Where the examples stay with the workers, they keep them in a folder as long as the context ``during_fit`` lasts.
    """

    def bind(readers: Sequence[PartReader], place: Callable[[int], Path | None] | None = None) -> BoundFiles:
        with _workers(tagger) as executor:
            return bind_files(tagger.model_, tagger._weights_of_counts, readers, executor, place)

    def folder(n_sentences: int) -> Path | None:
        if not stays(tagger, n_sentences):
            return None
        made = TemporaryDirectory(prefix="maxmargin-", ignore_cleanup_errors=True)
        return Path(during_fit.enter_context(made))

    if memory_map is None:
        return bind(readers, folder)
    from maxmargin.estimators.pack_folder import key_of, packed_in

    first = readers[0]
    settings = {
        "format": [first.source.separator, first.source.comment, first.source.conllu],
        "features": None if first.features is None else first.features.description(),
        "columns": [first.word_column, first.label_column],
        "model": tagger.model_.get_params(deep=False),
        "class_weight": tagger._weights_of_counts(Counter),
    }
    key = key_of([reader.source.path for reader in readers], settings)
    return packed_in(Path(memory_map), key, lambda folder: bind([replace(own, folder=folder) for own in readers]))


@contextmanager
def _workers(tagger: FilesTagger) -> Iterator[Executor]:
    """The workers of a tagger for work in Python: processes, or what its executor says."""
    from maxmargin.execution.executors import make_executor

    executor = make_executor(tagger.n_jobs, compiled=False, executor=tagger.executor)
    try:
        yield executor
    finally:
        executor.close()


@dataclass
class _Labeller:
    """Labels whole files; a resident of an executor."""

    predict: Callable[[Tokens], Sequence[list[Hashable]]]

    def labels(self, source: Source) -> list[list[Hashable]]:
        table = source.table(may_be_empty=True)
        if not table.columns:
            return []
        with located(source.name, table.line):
            return list(self.predict(table.tokens()))


def labels_of_files(tagger: FilesTagger, sources: Sequence[Source]) -> list[list[list[Hashable]]]:
    """The labels of each sentence of each file, by so many workers as the tagger has."""
    with _workers(tagger) as executor:
        homes = executor.start([_Labeller(tagger.predict)] * min(executor.n_workers, len(sources)))
        return executor.call("labels", [(homes[f % len(homes)], (source,)) for f, source in enumerate(sources)])
