"""Taggers trained on many files: each is read and packed by a worker of its own, once.

1. Every part counts its features and labels by itself.
2. Their counts are added up: one vocabulary and one set of labels, as if all sentences were in one file.
3. Every part takes the common numbers and is packed; the packed parts are put one behind the other.

The bound model is that of all sentences in one file, to the last bit, for any number of workers. With a folder, what
the parts make is kept in files in between, and the bound model is mapped into memory; no more than one part for each
worker is in memory at a time. Where each shard of a fit has its own examples, parts are not put together at all
(:mod:`maxmargin.estimators.left_parts`).
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.contracts import Executor
from maxmargin.datasets.column_format import ColumnFormat
from maxmargin.estimators.left_parts import LeftPart, leave
from maxmargin.features.choose import default_words
from maxmargin.features.column_files import Source, located
from maxmargin.features.extractor import TextFeatures, renumbered
from maxmargin.features.interning import Vocabulary, pack_strings, unpack_strings
from maxmargin.features.sequences import Sequences
from maxmargin.features.tokens import Column, Tokens
from maxmargin.models.chain import Chain, ChainBound, ChainLayout, check_allowed, observed_pairs, pack
from maxmargin.models.chain_elsewhere import ChainElsewhere, PartFacts
from maxmargin.models.chain_parts import JoinedParts, PackedPart, PartSizes
from maxmargin.models.labels import Labels
from maxmargin.persistence.mapped import create_array, open_array
from maxmargin.persistence.whole_file import whole_file

__all__ = ["BoundFiles", "ClassWeights", "PartReader", "Paths", "bind_files", "found_files"]

ClassWeights = Callable[[Callable[[], Counter[Hashable]]], Mapping[Hashable, float] | None]
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class BoundFiles(NamedTuple):
    """What was learned from files before training: the bound model, and how the files are read."""

    bound: ChainBound | ChainElsewhere
    features: TextFeatures
    columns: ColumnFormat
    label_column: int


class PartCounts(NamedTuple):
    """What a part tells of itself; ``columns`` is None when it has no tokens."""

    text: str  # digest of what was read
    vocabulary: Vocabulary | None
    n_sentences: int
    n_tokens: int
    labels: Counter[Hashable]
    columns: ColumnFormat | None
    label_column: int


class CommonNumbers(NamedTuple):
    """What a part is told of all: the new numbers of its features, how many there are, and the labels.

    The numbers are for the text whose digest is ``text``.
    """

    text: str
    features: Mapping[bool, np.ndarray]
    n_features: int
    n_edge_features: int
    labels: Labels


def found_files(paths: Paths) -> list[str]:
    """The files behind paths and patterns (``part-*.gz``), each pattern's in the order of their names."""
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found: list[str] = []
    for path in (os.fspath(each) for each in given):
        matches = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
        if not matches:
            what = "no file matches" if glob.has_magic(path) else "there is no file"
            raise FileNotFoundError(f"{what} {path!r}.")
        found += matches
    if not found:
        raise ValueError("there are no files to learn from; give paths, or patterns such as 'part-*.gz'.")
    for path, times in Counter(map(os.path.realpath, found)).items():
        if times > 1:
            raise ValueError(f"{path} is given {times} times; name each file once.")
    for path in found:
        if os.path.isdir(path):
            raise ValueError(f"{path} is a folder; give the files in it, as {os.path.join(path, '*')!r}.")
    return found


@dataclass
class PartReader:
    """Reads and packs a part; a resident of an executor.

    What it makes is kept until the next call, and made again where it is lost, because a worker has died.

    Parameters
    ----------
    number : int
        The place of the part among all.
    source : Source
    features : TextFeatures or None
        None for the default ones.
    word_column, label_column : str or None
        As in :meth:`~maxmargin.features.column_files.Source.place`.
    folder : Path or None
        Where to keep what it makes; None for memory.
    """

    number: int
    source: Source
    features: TextFeatures | None
    word_column: str | None
    label_column: str | None
    folder: Path | None = None
    _kept: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)

    def count(self) -> PartCounts:
        """Read the part, and count its features and labels."""
        source = replace(self.source)
        table = source.table(may_be_empty=True)
        columns, place = None, -1
        if table.columns:
            columns, place = table.format(self.word_column), table.place(self.label_column)
        features = self.features or default_words(0 if columns is None else columns.word_column)
        tokens = table.tokens() if table.columns else Tokens([], table.offsets)
        with located(source.name, table.line):
            vocabulary, X = features.count(tokens)
        labels = tokens.columns[place] if table.columns else Column([], np.empty(0, np.int32))
        assert X.sparse is not None
        arrays = {"offsets": X.offsets, "labels": labels.codes, "rows": X.sparse.indptr, "columns": X.sparse.indices}
        if X.edge is not None:
            arrays |= {"edge_rows": X.edge.indptr, "edge_columns": X.edge.indices}
        arrays["widths"] = np.array([X.sparse.shape[1], 0 if X.edge is None else X.edge.shape[1]])
        self._keep("counted", arrays | pack_strings(labels.strings))
        found = zip(labels.strings, np.bincount(labels.codes, minlength=len(labels.strings)).tolist(), strict=True)
        labelled = Counter[Hashable](dict(found))
        return PartCounts(table.digest, vocabulary, len(X), X.n_tokens, labelled, columns, place)

    def pairs(self, numbers: CommonNumbers) -> np.ndarray:
        """The pairs of feature and label that the part has."""
        X, codes = self._numbered(numbers)
        assert X.sparse is not None
        return observed_pairs(X.sparse, codes, len(numbers.labels))

    def pack(self, numbers: CommonNumbers, layout: ChainLayout) -> PartSizes:
        """Make the arrays of the kernels for the part."""
        made = PackedPart.of(self._bound(numbers, layout))
        self._keep("packed", {"meta": made.meta, "ints": made.ints, "floats": made.floats})
        return made.sizes

    def leave(self, numbers: CommonNumbers, layout: ChainLayout, folder: Path) -> PartFacts:
        """Make the arrays of the kernels for the part, and leave them in files, where that is possible."""
        return leave(self._bound(numbers, layout), folder, self.number)

    def made(self, numbers: CommonNumbers, layout: ChainLayout) -> PackedPart:
        """The same arrays, not kept."""
        return PackedPart.of(self._bound(numbers, layout))

    def packed(self, numbers: CommonNumbers, layout: ChainLayout) -> PackedPart:
        """What :meth:`pack` made."""
        if not self._has("packed"):
            self.pack(numbers, layout)
        return PackedPart(**self._arrays("packed"))

    def place(self, numbers: CommonNumbers, layout: ChainLayout, joined: JoinedParts) -> None:
        """Copy what :meth:`pack` made to its place in the files of all."""
        assert self.folder is not None
        joined.place(self.number, self.packed(numbers, layout), *_files(self.folder, joined.lengths, open_array))
        self._drop("packed")

    def _bound(self, numbers: CommonNumbers, layout: ChainLayout) -> ChainBound:
        X, codes = self._numbered(numbers)
        with located(self.source.name, self.source.line):
            check_allowed(layout, X.offsets, codes)
            bound = pack(layout, X, codes)
        self._drop("counted")
        return bound

    def _numbered(self, numbers: CommonNumbers) -> tuple[Sequences, np.ndarray]:
        """Features and labels of the part under the numbers that all have in common."""
        if not self._has("counted") and self.count().text != numbers.text:
            advice = "train again, and leave the files as they are until training has ended"
            raise ValueError(f"{self.source.name} has changed since its features were counted; {advice}.")
        kept = self._arrays("counted")
        n, (width, edge_width) = len(kept["labels"]), kept["widths"].tolist()
        sparse, edge = _ones(kept["columns"], kept["rows"], (n, width)), None
        if "edge_rows" in kept:
            edge = _ones(kept["edge_columns"], kept["edge_rows"], (n, edge_width))
        X = Sequences(kept["offsets"], sparse=sparse, edge=edge)
        strings, code = unpack_strings(kept, "a part"), numbers.labels.code
        unknown = next((k for k, label in enumerate(strings) if label not in code), None)
        if unknown is not None:
            token = int(np.flatnonzero(kept["labels"] == unknown)[0])
            sentence = int(np.searchsorted(kept["offsets"], token, side="right")) - 1
            with located(self.source.name, self.source.line):
                numbers.labels.encode([strings[unknown]], sentence)
        common = np.array([code[label] for label in strings], np.int32)
        codes = common[kept["labels"]] if n else np.empty(0, np.int32)
        return renumbered(X, numbers.features, numbers.n_features, numbers.n_edge_features), codes

    def _path(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{name}-{self.number}.npz"

    def _has(self, name: str) -> bool:
        return name in self._kept if self.folder is None else self._path(name).exists()

    def _keep(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        if self.folder is None:
            self._kept[name] = arrays
        else:
            with whole_file(self._path(name)) as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]

    def _arrays(self, name: str) -> dict[str, np.ndarray]:
        if self.folder is None:
            return self._kept[name]
        with np.load(self._path(name)) as kept:
            return dict(kept)

    def _drop(self, name: str) -> None:
        if self.folder is None:
            self._kept.pop(name, None)
        else:
            self._path(name).unlink(missing_ok=True)


def _ones(columns: np.ndarray, rows: np.ndarray, shape: tuple[int, int]) -> sp.csr_array:
    return sp.csr_array((np.ones(len(columns), np.int8), columns, rows), shape=shape)


def _files(
    folder: Path, lengths: Sequence[int], make: Callable[[Path, type, int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The arrays of all parts, as files of a folder."""
    return make(folder / "ints", np.int32, lengths[0]), make(folder / "floats", np.float64, lengths[1])


def bind_files(
    model: Chain,
    class_weights: ClassWeights,
    readers: Sequence[PartReader],
    executor: Executor,
    place: Callable[[int], Path | None] | None = None,
) -> BoundFiles:
    """Bind a chain to the sentences of many files.

    Parameters
    ----------
    model : Chain
    class_weights : callable
        The weights of the labels, from a function that counts them.
    readers : list of PartReader
        One per file. Where they have a folder, the bound model is in its files ``ints`` and ``floats``.
    executor : Executor
        Its workers read the files.
    place : callable, optional
        The folder in which so many sentences stay with the workers, part by part; None to put the parts together.
    """
    homes, first = executor.start(readers), readers[0]

    def ask(verb: str, *arguments: object, each: Sequence[tuple] = ()) -> list:
        own = each or [()] * len(homes)
        return executor.call(verb, [(home, (*mine, *arguments)) for home, mine in zip(homes, own, strict=True)])

    counts: list[PartCounts] = ask("count")
    columns, label_column = _common_columns(counts, [reader.source for reader in readers])
    features = first.features or default_words(columns.word_column)
    numbers = features.fit_counts((part.vocabulary, part.n_tokens) for part in counts)
    features.check_unread(label_column, "label_column", None if first.features else "the default features")
    occurring = sum((part.labels for part in counts), Counter[Hashable]())
    labels = Labels.chosen(model.classes, occurring)
    widths = {"n_sparse": features.n_features_, "n_dense": 0, "n_edge": features.n_edge_features_}
    widths_of_all = features.n_features_, features.n_edge_features_
    told = [(CommonNumbers(part.text, own, *widths_of_all, labels),) for part, own in zip(counts, numbers, strict=True)]
    folder = None if place is None else place(sum(part.n_sentences for part in counts))
    del counts  # vocabularies of all parts
    pairs = None
    if model.weights == "observed":
        pairs = np.empty(0, np.int64)
        for own in ask("pairs", each=told):
            pairs = np.union1d(pairs, own)
    layout = model.layout_of(labels, widths, pairs, class_weights(lambda: occurring))
    if folder is not None:
        facts = ask("leave", layout, folder, each=told)
        again = [partial(reader.made, *mine, layout) for reader, mine in zip(readers, told, strict=True)]
        parts = [LeftPart(*own, folder, number) for number, own in enumerate(zip(facts, again, strict=True))]
        return BoundFiles(ChainElsewhere.of(layout, parts), features, columns, label_column)
    joined = JoinedParts(layout, ask("pack", layout, each=told))
    if first.folder is None:
        ints, floats = np.empty(joined.lengths[0], np.int32), np.empty(joined.lengths[1])
        for number, made in enumerate(ask("packed", layout, each=told)):
            joined.place(number, made, ints, floats)
    else:
        ints, floats = _files(first.folder, joined.lengths, create_array)
        ask("place", layout, joined, each=told)
    return BoundFiles(joined.bound(ints, floats), features, columns, label_column)


def _common_columns(counts: Sequence[PartCounts], sources: Sequence[Source]) -> tuple[ColumnFormat, int]:
    """How all files are read; a ValueError names two that differ."""
    first = None
    for part, source in zip(counts, sources, strict=True):
        if part.columns is None:
            continue
        if first is None:
            first = part, source
        mine, others = part.columns, first[0].columns
        assert others is not None
        if mine.width != others.width:
            raise ValueError(
                f"{source.name} has {mine.width} columns, but {first[1].name} has {others.width}; "
                "all files need the same columns."
            )
        if mine.conllu != others.conllu:
            looks = {True: "CoNLL-U", False: "plain columns"}
            found = f"{source.name} has {looks[mine.conllu]}, but {first[1].name} has {looks[others.conllu]}"
            raise ValueError(f"{found}; name the format of all files.")
    if first is None or first[0].columns is None:
        names = ", ".join(source.name for source in sources[:3]) + (", ..." if len(sources) > 3 else "")
        raise ValueError(f"no file has tokens ({names}); they need one per line, and a blank line after each sentence.")
    return first[0].columns, first[0].label_column
