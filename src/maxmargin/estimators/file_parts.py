"""Taggers trained on many files: each is read and packed by a worker of its own, and none is ever read twice.

1. Every part counts its features and labels by itself.
2. Their counts are added up: one vocabulary and one set of labels, as if all sentences were in one file.
3. Every part takes the common numbers and is packed; the packed parts are put one behind the other.

The bound model is that of all sentences in one file, to the last bit, for any number of workers. With a folder, what
the parts make is kept in files in between, and the bound model is mapped into memory; no more than one part for each
worker is in memory at a time.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.contracts import Executor
from maxmargin.datasets.column_format import ColumnFormat
from maxmargin.features.choose import default_words
from maxmargin.features.column_files import Source, located
from maxmargin.features.extractor import TextFeatures, renumbered
from maxmargin.features.interning import Vocabulary
from maxmargin.features.sequences import Sequences
from maxmargin.models.chain import Chain, ChainBound, ChainLayout, check_allowed, observed_pairs, pack
from maxmargin.models.chain_parts import JoinedParts, PackedPart, PartSizes
from maxmargin.models.labels import Labels
from maxmargin.persistence.mapped import create_array, open_array

__all__ = ["BoundFiles", "ClassWeights", "PartReader", "Paths", "bind_files", "found_files"]

ClassWeights = Callable[[Callable[[], Counter[Hashable]]], Mapping[Hashable, float] | None]
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class BoundFiles(NamedTuple):
    """What was learned from files before training: the bound model, and how the files are read."""

    bound: ChainBound
    features: TextFeatures
    columns: ColumnFormat
    label_column: int


class PartCounts(NamedTuple):
    """What a part tells of itself; ``columns`` is None when it has no tokens."""

    vocabulary: Vocabulary | None
    n_tokens: int
    labels: Counter[Hashable]
    columns: ColumnFormat | None
    label_column: int


class CommonNumbers(NamedTuple):
    """What a part is told of all: the new numbers of its features, how many there are, and the labels."""

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
    """Reads and packs parts; a resident of an executor, called with the number of a part.

    Parameters
    ----------
    sources : list of Source
        All parts.
    features : TextFeatures or None
        None for the default ones.
    word_column, label_column : str or None
        As in :meth:`~maxmargin.features.column_files.Source.place`.
    folder : Path or None
        Where to keep what parts make between calls; None for memory.
    """

    sources: Sequence[Source]
    features: TextFeatures | None
    word_column: str | None
    label_column: str | None
    folder: Path | None = None
    _kept: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    _labels: dict[int, list[str]] = field(default_factory=dict)

    def count(self, part: int) -> PartCounts:
        """Read a part, and count its features and labels."""
        source = replace(self.sources[part])
        table = source.table(may_be_empty=True)
        columns, place = None, -1
        if table.columns:
            columns, place = table.format(self.word_column), table.place(self.label_column)
        features = self.features or default_words(0 if columns is None else columns.word_column)
        with located(source.name, table.line):
            vocabulary, X = features.count(table.tokens() if table.columns else [])
            if columns is not None:
                features.check_unread(place, "label_column")
        strings, codes = list[str](), np.empty(0, np.int32)
        if table.columns:
            labels = table.tokens().columns[place]
            strings, codes = labels.strings, labels.codes
        assert X.sparse is not None
        arrays = {"offsets": X.offsets, "labels": codes, "rows": X.sparse.indptr, "columns": X.sparse.indices}
        if X.edge is not None:
            arrays |= {"edge_rows": X.edge.indptr, "edge_columns": X.edge.indices}
        arrays["widths"] = np.array([X.sparse.shape[1], 0 if X.edge is None else X.edge.shape[1]])
        self._keep(part, "counted", arrays)
        self._labels[part] = strings
        counts = Counter[Hashable](dict(zip(strings, np.bincount(codes, minlength=len(strings)).tolist(), strict=True)))
        return PartCounts(vocabulary, X.n_tokens, counts, columns, place)

    def pairs(self, part: int, numbers: CommonNumbers) -> np.ndarray:
        """The pairs of feature and label that a part has."""
        X, codes = self._numbered(part, numbers)
        assert X.sparse is not None
        return observed_pairs(X.sparse, codes, len(numbers.labels))

    def pack(self, part: int, numbers: CommonNumbers, layout: ChainLayout) -> PartSizes:
        """Make the arrays of the kernels for a part."""
        X, codes = self._numbered(part, numbers)
        with located(self.sources[part].name, self.sources[part].line):
            check_allowed(layout, X.offsets, codes)
        made = PackedPart.of(pack(layout, X, codes))
        self._drop(part, "counted")
        self._keep(part, "packed", {"meta": made.meta, "ints": made.ints, "floats": made.floats})
        return made.sizes

    def packed(self, part: int) -> PackedPart:
        """What :meth:`pack` made."""
        made = PackedPart(**self._arrays(part, "packed"))
        self._drop(part, "packed")
        return made

    def place(self, part: int, joined: JoinedParts) -> None:
        """Copy what :meth:`pack` made to its place in the files of all."""
        assert self.folder is not None
        joined.place(part, self.packed(part), *_files(self.folder, joined.lengths, open_array))

    def _numbered(self, part: int, numbers: CommonNumbers) -> tuple[Sequences, np.ndarray]:
        """Features and labels of a part under the numbers that all have in common."""
        kept, (width, edge_width) = (arrays := self._arrays(part, "counted")), arrays["widths"].tolist()
        n = len(kept["labels"])
        sparse, edge = _ones(kept["columns"], kept["rows"], (n, width)), None
        if "edge_rows" in kept:
            edge = _ones(kept["edge_columns"], kept["edge_rows"], (n, edge_width))
        X = Sequences(kept["offsets"], sparse=sparse, edge=edge)
        strings, code = self._labels[part], numbers.labels.code
        unknown = next((k for k, label in enumerate(strings) if label not in code), None)
        if unknown is not None:
            token = int(np.flatnonzero(kept["labels"] == unknown)[0])
            sentence = int(np.searchsorted(kept["offsets"], token, side="right")) - 1
            with located(self.sources[part].name, self.sources[part].line):
                numbers.labels.encode([strings[unknown]], sentence)
        common = np.array([code[label] for label in strings], np.int32)
        codes = common[kept["labels"]] if n else np.empty(0, np.int32)
        return renumbered(X, numbers.features, numbers.n_features, numbers.n_edge_features), codes

    def _keep(self, part: int, name: str, arrays: dict[str, np.ndarray]) -> None:
        if self.folder is None:
            self._kept[f"{name}-{part}"] = arrays
        else:
            np.savez(self.folder / f"{name}-{part}.npz", **arrays)  # type: ignore[arg-type]

    def _arrays(self, part: int, name: str) -> dict[str, np.ndarray]:
        if self.folder is None:
            return self._kept[f"{name}-{part}"]
        with np.load(self.folder / f"{name}-{part}.npz") as kept:
            return dict(kept)

    def _drop(self, part: int, name: str) -> None:
        if self.folder is None:
            del self._kept[f"{name}-{part}"]
        else:
            (self.folder / f"{name}-{part}.npz").unlink()


def _ones(columns: np.ndarray, rows: np.ndarray, shape: tuple[int, int]) -> sp.csr_array:
    return sp.csr_array((np.ones(len(columns), np.int8), columns, rows), shape=shape)


def _files(
    folder: Path, lengths: Sequence[int], make: Callable[[Path, type, int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The arrays of all parts, as files of a folder."""
    return make(folder / "ints", np.int32, lengths[0]), make(folder / "floats", np.float64, lengths[1])


def bind_files(model: Chain, class_weights: ClassWeights, reader: PartReader, executor: Executor) -> BoundFiles:
    """Bind a chain to the sentences of many files.

    Parameters
    ----------
    model : Chain
    class_weights : callable
        The weights of the labels, from a function that counts them.
    reader : PartReader
    executor : Executor
        Its workers read the files. Where the reader has a folder, the bound model is in its files ``ints`` and
        ``floats``.
    """
    n = len(reader.sources)
    homes = executor.start([reader] * min(executor.n_workers, n))

    def ask(verb: str, *arguments: object, each: Sequence[tuple] | None = None) -> list:
        own = [()] * n if each is None else each
        return executor.call(verb, [(homes[p % len(homes)], (p, *own[p], *arguments)) for p in range(n)])

    counts: list[PartCounts] = ask("count")
    columns, label_column = _common_columns(counts, reader.sources)
    features = reader.features or default_words(columns.word_column)
    numbers = features.fit_counts((part.vocabulary, part.n_tokens) for part in counts)
    occurring = sum((part.labels for part in counts), Counter[Hashable]())
    labels = Labels.chosen(model.classes, occurring)
    widths = {"n_sparse": features.n_features_, "n_dense": 0, "n_edge": features.n_edge_features_}
    told = [(CommonNumbers(own, features.n_features_, features.n_edge_features_, labels),) for own in numbers]
    pairs = None
    if model.weights == "observed":
        pairs = np.empty(0, np.int64)
        for own in ask("pairs", each=told):
            pairs = np.union1d(pairs, own)
    layout = model.layout_of(labels, widths, pairs, class_weights(lambda: occurring))
    joined = JoinedParts(layout, ask("pack", layout, each=told))
    if reader.folder is None:
        ints, floats = np.empty(joined.lengths[0], np.int32), np.empty(joined.lengths[1])
        for part, made in enumerate(ask("packed")):
            joined.place(part, made, ints, floats)
    else:
        ints, floats = _files(reader.folder, joined.lengths, create_array)
        ask("place", joined)
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
