"""Files of examples with label sets, for the command line: ARFF, LIBSVM and CSV."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from maxmargin.cli import options as o
from maxmargin.features.column_files import MAX_UNPACKED

if TYPE_CHECKING:
    from maxmargin.datasets.label_data import LabelData

__all__ = ["DECLARED", "Known", "LabelFileOptions", "hierarchy_of"]

LabelFormat = StrEnum("LabelFormat", ["auto", "arff", "libsvm", "csv"])
Missing = StrEnum("Missing", ["refuse", "zero"])
DECLARED = "declared"  # in place of a file with a hierarchy
SUFFIXES = {
    ".arff": "arff", ".csv": "csv", ".tsv": "csv", ".svm": "libsvm", ".svmlight": "libsvm", ".libsvm": "libsvm",
    ".txt": "libsvm",
}  # fmt: skip

_ABOUT_FORMAT = "Format of the files; by default by suffix: .arff, .csv, .tsv, .svm, .libsvm, .txt (LIBSVM)."
_ABOUT_LABELS = (
    "Which columns are labels: their number (the first; negative: the last), their names with commas between, or the "
    "XML file of Mulan. By default what an ARFF file says (MEKA's -C, Clus), or as in training; LIBSVM files need none."
)
_ABOUT_SEPARATOR = "What divides the columns of CSV; by default a comma, or a tab in .tsv."
_ABOUT_LABEL_SEPARATOR = "The one column of labels in CSV holds names with this between them, such as ';'."
_ABOUT_SKIP = "Columns to leave out, such as identifiers, with commas between."
_ABOUT_MISSING = "What to do with missing features: refuse them, or take 0 in their place."


@dataclass(frozen=True)
class Known:
    """What a model knows of its training file: names of features, if they had any, and of labels."""

    n_features: int
    features: list[str] | None
    labels: list[str]


@dataclass(frozen=True)
class LabelFileOptions:
    """The options about these files."""

    format: Annotated[LabelFormat, o.of_files("--format", help=_ABOUT_FORMAT)] = LabelFormat.auto
    labels: Annotated[str | None, o.of_files(help=_ABOUT_LABELS, metavar="COLUMNS", callback=o.not_empty)] = None
    separator: Annotated[str | None, o.of_files(help=_ABOUT_SEPARATOR, callback=o.not_empty)] = None
    label_separator: Annotated[str | None, o.of_files(help=_ABOUT_LABEL_SEPARATOR, callback=o.not_empty)] = None
    skip: Annotated[str | None, o.of_files(help=_ABOUT_SKIP, metavar="COLUMNS")] = None
    missing: Annotated[Missing, o.of_files("--missing", help=_ABOUT_MISSING)] = Missing.refuse
    max_unpacked: o.MaxUnpacked = MAX_UNPACKED

    @property
    def xml(self) -> str | None:
        """The label file of Mulan, which is an input too."""
        return self.labels if self.labels is not None and self.labels.endswith(".xml") else None

    def read(self, path: str, known: Known | None = None, labelled: bool = True) -> LabelData:
        """The examples of a file; where there is a model, those features that it was trained on, by name."""
        from maxmargin.datasets.arff import read_arff
        from maxmargin.datasets.label_csv import read_label_csv
        from maxmargin.datasets.libsvm import read_libsvm

        kind, max_unpacked = self._kind(path), int(1e6 * self.max_unpacked)
        features = None if known is None else known.features
        wanted = self._wanted() if labelled else ()
        if wanted is None and known is not None and self.label_separator is None:
            wanted = known.labels
        skip = () if self.skip is None else self.skip.split(",")
        if kind == "libsvm":
            width, zero_based = None, None
            if known is not None:
                width, zero_based = known.n_features, known.features is not None and known.features[:1] == ["x0"]
            data = read_libsvm(path, n_features=width, zero_based=zero_based, max_unpacked=max_unpacked)
        elif kind == "arff":
            data = read_arff(path, wanted, features=features, skip=skip, max_unpacked=max_unpacked)
        else:
            if wanted is None or isinstance(wanted, Path):
                raise ValueError(f"{path}: name the columns of the labels with --labels, or give their number.")
            between = (self.separator or ("\t" if _suffix(path) == ".tsv" else ",")).replace("\\t", "\t")
            data = read_label_csv(
                path, wanted, separator=between, label_separator=self.label_separator, features=features, skip=skip,
                max_unpacked=max_unpacked,
            )  # fmt: skip
        if known is not None and data.X.shape[1] != known.n_features:
            found = f"{path} has {data.X.shape[1]} features, and the model was trained on {known.n_features}"
            raise ValueError(f"{found}, which had no names; give the same ones, in the same order.")
        return self._filled(data, path)

    def _kind(self, path: str) -> str:
        if self.format != "auto":
            return str(self.format)
        if _suffix(path) not in SUFFIXES:
            known = ", ".join(SUFFIXES)
            raise ValueError(f"{path} does not end in {known}; say its format with --format arff, libsvm or csv.")
        return SUFFIXES[_suffix(path)]

    def _wanted(self) -> int | Path | list[str] | None:
        """The labels that the readers are asked for."""
        if self.labels is None:
            return None
        if self.xml is not None:
            return Path(self.xml)
        return int(self.labels) if self.labels.removeprefix("-").isdecimal() else self.labels.split(",")

    def _filled(self, data: LabelData, path: str) -> LabelData:
        """Examples without missing features."""
        from dataclasses import replace

        import numpy as np

        X = data.X
        values: np.ndarray = X if isinstance(X, np.ndarray) else X.data
        if not np.isnan(values).any():
            return data
        if self.missing == "refuse":
            rows, columns = (np.isnan(X) if isinstance(X, np.ndarray) else X != X).nonzero()
            at, name = data.lines[int(rows[0])], data.feature_names[int(columns[0])]
            raise ValueError(f"{path}, line {at}: {name!r} is missing; fill it in, or use --missing zero.")
        filled = X.copy()
        (filled if isinstance(filled, np.ndarray) else filled.data)[np.isnan(values)] = 0.0
        return replace(data, X=filled)


def hierarchy_of(given: str, data: LabelData) -> list[tuple[str, str]]:
    """Pairs (parent, child): those that the training file declares, or those of a file with a line for each."""
    if given == DECLARED:
        if data.hierarchy is None:
            raise ValueError("the training file declares no hierarchy of labels; name a file of pairs parent,child.")
        return data.hierarchy
    import csv

    from maxmargin.datasets.text_lines import decoded, opened

    pairs = []
    with opened(given) as (raw, name):
        for place, line in decoded(raw, name):
            fields = [field.strip() for row in csv.reader([line]) for field in row]
            if len(fields) == 2 and all(fields):
                pairs.append((fields[0], fields[1]))
            elif any(fields):
                raise ValueError(f"{name}, line {place}: {line.strip()[:60]!r} is not a pair parent,child; correct it.")
    if not pairs:
        raise ValueError(f"{given} has no pairs of labels; write a line parent,child for each.")
    return pairs


def _suffix(path: str) -> str:
    return os.path.splitext(path.removesuffix(".gz").removesuffix(".xz"))[1].lower()
