"""Reader of multi-label ARFF files, dense and sparse, as MEKA, Mulan and Clus write them."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from maxmargin.datasets.label_data import LabelData, chosen_columns, closed_upwards, indicators, number
from maxmargin.datasets.label_paths import LabelPaths, read_label_xml
from maxmargin.datasets.text_lines import UNPACKED_LIMIT, Source, decoded, opened

__all__ = ["read_arff"]

Lines = Iterator[tuple[int, str]]

MOST_ATTRIBUTES = 2**24
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{]+)\s*(.*)", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(rf"((?:{_QUOTED}|[^,'\"])*)(?:,|$)")
_COMMENT = re.compile(rf"^((?:{_QUOTED}|[^%'\"])*)%.*", re.DOTALL)
_MEKA = re.compile(r"(?:^|[\s:'\"])-C\s+(-?\d+)", re.IGNORECASE)
_NUMBERS = ("numeric", "real", "integer")
_ON, _OFF = ("1", "true", "yes"), ("0", "false", "no")


@dataclass(frozen=True)
class Attribute:
    """A column: numbers, one of some ``values``, the ``paths`` of labels of Clus, or what nobody wants to read."""

    name: str
    values: tuple[str, ...] = ()
    paths: LabelPaths | None = None
    skipped: bool = False

    @property
    def plain(self) -> bool:
        """Whether its numbers, or the numbers of its values, are what they say."""
        return not self.values or self.values == ("0", "1")

    @property
    def columns(self) -> list[str]:
        """Names of the features that it makes."""
        return [self.name] if self.plain else [f"{self.name}={value}" for value in self.values]


def read_arff(
    source: Source,
    labels: int | str | Path | Iterable[str] | None = None,
    *,
    features: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    max_unpacked: int = UNPACKED_LIMIT,
) -> LabelData:
    """Examples and their labels.

    Numbers make a feature each, and so do nominal attributes with the values ``{0,1}``; other nominal ones make a
    feature per value, ``name=value``. ``?`` is NaN. In a sparse file, ``{3 1.5, 7 red}``, attributes that a line does
    not name are 0 or have their first value. O(size of the file); a ValueError names the line that is wrong.

    Parameters
    ----------
    source : path, "-", or stream
        ``.gz`` and ``.xz`` are decompressed.
    labels : int, names, or path of an XML file, optional
        Which attributes are labels: the first so many (a negative number: the last), as in MEKA; those with these
        names, or all of ``@attribute class hierarchical`` (Clus) where these are among them; those that a label file of
        Mulan names. By default what the file says: those of Clus, or ``-C 14`` in its ``@relation`` (MEKA). ``()``
        reads no labels, which may be ``?`` then.
    features : iterable of str, optional
        Names of features, in order; by default all that the file has.
    skip : iterable of str
        Attributes to leave out, such as identifiers.
    max_unpacked : int
        Bytes that an archive may unpack to, or 30 times what was read of it where that is more.

    Returns
    -------
    LabelData
        X is sparse where the file is.

    References
    ----------
    Witten, Frank, Hall. Data mining. 2011 (the format). Read, Reutemann, Pfahringer, Holmes. MEKA: a multi-label
    extension to Weka. JMLR 2016. Vens, Struyf, Schietgat, Dzeroski, Blockeel 2008 (Clus).
    """
    chosen = None if features is None else list(features)
    tree, wanted = None, None
    if isinstance(labels, (str, Path)):
        tree = read_label_xml(labels)
        wanted = tree.names
    elif labels is not None:
        wanted = labels if isinstance(labels, int) else list(labels)
    with opened(source, max_unpacked) as (raw, name):
        lines = decoded(raw, name)
        relation, attributes = _header(lines, name, {*skip}, others_skipped=chosen is not None)
        clus = [j for j, attribute in enumerate(attributes) if attribute.paths is not None]
        paths = attributes[clus[0]].paths if clus else None
        if paths is not None and (isinstance(wanted, int) or (wanted is not None and not _among(wanted, paths.names))):
            paths = None  # the labels are attributes, or nobody wants them
        rows = _Rows(attributes, name, labelled=paths is not None)
        for place, line in lines:
            rows.add(line, place)
    if not rows.lines:
        raise ValueError(f"{name} has no examples; write one per line after @data.")
    if paths is not None:
        places, tree = clus, paths
        Y = indicators(rows.paths, len(paths.names), name)
    else:
        if wanted is None:
            found = _MEKA.search(relation)
            if found is None:
                advice = "give their number, their names or an XML file; or write -C and their number in @relation"
                raise ValueError(f"{name}: it does not say which attributes are labels; {advice}.")
            wanted = int(found[1])
        places = chosen_columns(wanted, [attribute.name for attribute in attributes], name)
        Y = rows.labels(places)
    label_names = [attributes[j].name for j in places] if tree is None else tree.names
    edges = None if tree is None or not tree.edges else tree.edges
    apart = {*places, *clus}
    kept = [j for j, attribute in enumerate(attributes) if j not in apart and not attribute.skipped]
    X, names = rows.features(kept), [column for j in kept for column in attributes[j].columns]
    if chosen is not None:
        X, names = X[:, chosen_columns(chosen, names, name)], chosen
    return LabelData(X, closed_upwards(Y, label_names, edges or []), names, label_names, edges, rows.lines)


def _among(wanted: list[str], names: list[str]) -> bool:
    return bool(wanted) and {*wanted} <= {*names}


def _header(lines: Lines, name: str, skip: set[str], others_skipped: bool) -> tuple[str, list[Attribute]]:
    """The text of ``@relation``, and the attributes; the lines stand after ``@data`` then."""
    relation, attributes, seen = "", list[Attribute](), set[str]()
    for place, line in lines:
        text = _COMMENT.sub(r"\1", line).strip() if "%" in line else line.strip()
        word = text.split(None, 1)[0].lower() if text else ""
        where = f"{name}, line {place}"
        if word == "@data":
            if not attributes:
                raise ValueError(f"{where}: there are no attributes before @data; is it an ARFF file?")
            return relation, attributes
        if word == "@relation":
            relation = text
        elif word == "@attribute":
            attribute = _attribute(text, where, skip, others_skipped)
            if attribute.name in seen:
                raise ValueError(f"{where}: the attribute {attribute.name[:60]!r} is there twice; rename one.")
            if attribute.paths is not None and any(other.paths for other in attributes):
                raise ValueError(f"{where}: a second hierarchical attribute; keep one.")
            seen.add(attribute.name)
            attributes.append(attribute)
            if len(attributes) > MOST_ATTRIBUTES:
                raise ValueError(f"{where}: more than {MOST_ATTRIBUTES} attributes; use the libsvm format.")
        elif text:
            advice = "expected @relation, @attribute or @data"
            raise ValueError(f"{where}: {text[:40]!r} is no part of the header of an ARFF file; {advice}.")
    raise ValueError(f"{name} has no line @data, so it is no whole ARFF file; check that it is the right one.")


def _attribute(text: str, where: str, skip: set[str], others_skipped: bool) -> Attribute:
    match = _ATTRIBUTE.fullmatch(text)
    if match is None or not match[2]:
        raise ValueError(f"{where}: {text[:60]!r} is no attribute; write @attribute name numeric, or name {{a,b}}.")
    name, kind = _unquoted(match[1]), match[2].strip()
    word = kind.split(None, 1)[0].lower()
    if kind.startswith("{") and kind.endswith("}") and name not in skip:
        values = tuple(map(_unquoted, _fields(kind[1:-1], where)))
        if len(set(values)) < len(values):
            raise ValueError(f"{where}: the attribute {name[:60]!r} has a value twice; remove one.")
        return Attribute(name, values)
    if word == "hierarchical":
        return Attribute(name, paths=LabelPaths.of(kind[len(word) :], where))
    if word in _NUMBERS or name in skip or others_skipped:
        return Attribute(name, skipped=word not in _NUMBERS or name in skip)
    known = "numeric, real, integer, {values} or hierarchical"
    raise ValueError(f"{where}: {name[:60]!r} is of type {kind[:40]!r}, not {known}; leave it out with skip.")


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _fields(text: str, where: str) -> list[str]:
    """What stands between commas, quotes included."""
    if "'" not in text and '"' not in text:
        return [field.strip() for field in text.split(",")]
    found, at = [], 0
    while True:
        match = _FIELD.match(text, at)
        if match is None:
            raise ValueError(f"{where}: a quote in {text[at : at + 40]!r} is not closed; close it, or write \\'.")
        found.append(match[1].strip())
        at = match.end()
        if match[0][-1:] != ",":
            return found


class _Rows:
    """The lines after ``@data`` as numbers: those of numeric attributes, and the places of values of nominal ones."""

    def __init__(self, attributes: Sequence[Attribute], name: str, labelled: bool) -> None:
        self.lines: list[int] = []
        self.paths: list[list[int]] = []  # numbers of the labels of Clus
        self._attributes, self._name, self._labelled = attributes, name, labelled
        self._sparse: bool | None = None
        self._values, self._columns, self._ends = array("d"), array("q"), array("q", [0])
        self._codes = [{value: float(k) for k, value in enumerate(a.values)} for a in attributes]
        # what most fields need; where it fails, _value looks more closely
        self._quick: list[Callable[[str], float]] = [code.__getitem__ if code else float for code in self._codes]
        self._path_at = next((j for j, attribute in enumerate(attributes) if attribute.paths is not None), -1)
        self._unread = {j for j, attribute in enumerate(attributes) if attribute.skipped or j == self._path_at}

    def add(self, line: str, place: int) -> None:
        """Read a line, unless it is empty or a comment."""
        text = _COMMENT.sub(r"\1", line).strip() if "%" in line else line.strip()
        if not text:
            return
        where = f"{self._name}, line {place}"
        sparse = text[0] == "{"
        if self._sparse is None:
            self._sparse = sparse
        if sparse != self._sparse or (sparse and text[-1] != "}"):
            advice = "all lines are {index value, ...}, or none is"
            raise ValueError(f"{where}: {text[:40]!r} is not in the form of the lines before; {advice}.")
        if sparse:
            self._add_sparse(_fields(text[1:-1], where), where)
        else:
            self._add_dense(_fields(text, where), where)
        self.lines.append(place)

    def _add_dense(self, fields: list[str], where: str) -> None:
        if len(fields) != len(self._attributes):
            found = f"{len(fields)} values for {len(self._attributes)} attributes"
            raise ValueError(f"{where}: {found}; correct it. Values with commas need quotes.")
        for j in self._unread:
            if j == self._path_at:
                self._add_path(_unquoted(fields[j]), where)
            fields[j] = "0"
        try:
            values = [read(field) for read, field in zip(self._quick, fields, strict=True)]
        except (ValueError, KeyError):
            values = [np.nan]
        if not np.isfinite(sum(values)) or any("_" in field for field in fields):  # 1_0 is a number in Python only
            values = [self._value(j, _unquoted(field), where) for j, field in enumerate(fields)]
        self._values.extend(values)

    def _add_sparse(self, fields: list[str], where: str) -> None:
        columns, values, path = list[int](), list[float](), ""
        for field in filter(None, fields):
            index, _, text = field.partition(" ")
            j = int(index) if index.isdecimal() and len(index) < 10 else -1
            if not 0 <= j < len(self._attributes) or not text:
                most = len(self._attributes) - 1
                raise ValueError(f"{where}: {field[:40]!r} is no index from 0 to {most} and a value; correct it.")
            if j == self._path_at:
                path = _unquoted(text.strip())
            elif j not in self._unread:
                columns.append(j)
                values.append(self._value(j, _unquoted(text.strip()), where))
        if len(set(columns)) < len(columns):
            raise ValueError(f"{where}: an index is there twice; remove one.")
        if self._path_at >= 0:
            self._add_path(path, where)
        self._columns.extend(columns)
        self._values.extend(values)
        self._ends.append(len(self._values))

    def _value(self, j: int, field: str, where: str) -> float:
        """A number, the place of a value, or NaN."""
        attribute, codes = self._attributes[j], self._codes[j]
        if not codes:
            return number(field, f"{where}, attribute {attribute.name[:60]!r}")
        if field not in codes and field != "?":
            known = ", ".join(attribute.values[:8])
            raise ValueError(f"{where}: {attribute.name[:60]!r} is {field[:40]!r}, and its values are {known}.")
        return codes.get(field, np.nan)

    def _add_path(self, field: str, where: str) -> None:
        paths = self._attributes[self._path_at].paths
        assert paths is not None
        if field == "?" and self._labelled:
            raise ValueError(f"{where}: the labels are missing; leave the line out, or read without labels.")
        self.paths.append(paths.codes(field, where) if self._labelled else [])

    def _matrix(self) -> np.ndarray | sp.csr_array:
        n, width = len(self.lines), len(self._attributes)
        values, columns = np.array(self._values, np.float64), np.array(self._columns, np.int64)
        if self._sparse:
            return sp.csr_array((values, columns, np.array(self._ends, np.int64)), shape=(n, width))
        return values.reshape(n, width)

    def features(self, places: Sequence[int]) -> np.ndarray | sp.csr_array:
        """A matrix of features, those of nominal attributes one per value."""
        matrix = self._matrix()
        blocks: list[np.ndarray | sp.csr_array] = [matrix[:, :0]]
        for plain, group in groupby(places, lambda j: self._attributes[j].plain):
            if plain:
                blocks.append(matrix[:, list(group)])
                continue
            for j in group:
                codes = _dense(matrix[:, [j]])
                blocks.append(np.where(np.isnan(codes), np.nan, codes == np.arange(len(self._codes[j]))))
        return sp.csr_array(sp.hstack(blocks, format="csr")) if self._sparse else np.hstack(blocks)

    def labels(self, places: Sequence[int]) -> np.ndarray:
        """A matrix of 0 and 1 of the attributes in some places, which must say 0 or 1, or another yes or no."""
        found = _dense(self._matrix()[:, list(places)])
        Y = np.zeros(found.shape, np.uint8)
        for k, j in enumerate(places):
            attribute = self._attributes[j]
            values = [value.lower() for value in attribute.values] or ["0", "1"]
            column = found[:, k]
            bad = ~np.isin(column, np.arange(len(values)))
            if not {*values} <= {*_ON, *_OFF} or attribute.skipped:
                raise ValueError(f"{self._name}: the label {attribute.name[:60]!r} must have the values {{0,1}}.")
            if bad.any():
                at = int(np.argmax(bad))
                says = "?" if np.isnan(column[at]) else f"{column[at]:g}"
                advice = "write 0 or 1, leave the line out, or read without labels"
                raise ValueError(f"{self._name}, line {self.lines[at]}: {attribute.name[:60]!r} is {says}; {advice}.")
            Y[:, k] = np.isin(column, [place for place, value in enumerate(values) if value in _ON])
        return Y


def _dense(block: np.ndarray | sp.csr_array) -> np.ndarray:
    return block if isinstance(block, np.ndarray) else block.toarray()
