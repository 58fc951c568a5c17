"""Reader of tables with a line of names, columns of features, and columns of labels."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterable

import numpy as np

from maxmargin.datasets.label_data import LabelData, chosen_columns, named_indicators, number
from maxmargin.datasets.text_lines import UNPACKED_LIMIT, Source, decoded, opened

__all__ = ["read_label_csv"]


def read_label_csv(
    source: Source,
    labels: int | Iterable[str],
    *,
    separator: str = ",",
    label_separator: str | None = None,
    label_names: list[str] | None = None,
    features: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    max_unpacked: int = UNPACKED_LIMIT,
) -> LabelData:
    """Examples and their labels.

    The first line has the names of the columns. Features are numbers; an empty field, ``?`` and ``NA`` are NaN. Fields
    may be quoted (``"a, b"``). O(size of the file); a ValueError names the line that is wrong.

    Parameters
    ----------
    source : path, "-", or stream
        ``.gz`` and ``.xz`` are decompressed.
    labels : int or names of columns
        The first so many columns (a negative number: the last), or those with these names. They hold 0 and 1; with
        ``label_separator`` there is one such column, and it holds names of labels. ``()`` reads no labels.
    separator : str
        One character between columns, such as "," or a tab.
    label_separator : str, optional
        What stands between the labels in their column, as the ";" of ``sport;news``.
    label_names : list of str, optional
        With ``label_separator``: the labels in order; by default those of the file, sorted.
    features : iterable of str, optional
        Columns of features, in order; by default all that are neither labels nor skipped.
    skip : iterable of str
        Columns to leave out, such as identifiers.
    max_unpacked : int
        Bytes that an archive may unpack to, or 30 times what was read of it where that is more.
    """
    if len(separator) != 1 or label_separator == "":
        raise ValueError("separator must be one character, and label_separator must not be empty.")
    lines, texts, values = list[int](), list[list[str]](), array("d")
    with opened(source, max_unpacked) as (raw, name):
        reader = csv.reader((line for _, line in decoded(raw, name)), delimiter=separator, strict=True)
        try:
            columns = [column.strip() for column in next(reader, [])]
            at = chosen_columns(labels, columns, f"{name}, line 1")
            if len({*columns}) < len(columns) or not columns:
                raise ValueError(f"{name}, line 1: give each column a name of its own.")
            if label_separator is not None and len(at) > 1:
                raise ValueError(f"{name}: there are {len(at)} columns of labels; a separator is for one.")
            apart = {*at, *chosen_columns(skip, columns, f"{name}, line 1")}
            others = [column for j, column in enumerate(columns) if j not in apart]
            kept = chosen_columns(others if features is None else features, columns, f"{name}, line 1")
            for row in reader:
                if not row:
                    continue
                where = f"{name}, line {reader.line_num}"
                if len(row) != len(columns):
                    raise ValueError(f"{where}: {len(row)} columns, but line 1 has {len(columns)}; correct it.")
                values.extend(number(row[j], f"{where}, column {columns[j][:60]!r}") for j in kept)
                texts.append([row[j].strip() for j in at])
                lines.append(reader.line_num)
        except csv.Error as error:
            raise ValueError(f"{name}, line {reader.line_num}: {error}; correct the quotes.") from None
    if not lines:
        raise ValueError(f"{name} has no examples; write one per line, below a line with the names of the columns.")
    X = np.array(values, np.float64).reshape(len(lines), len(kept))
    names = [columns[j] for j in at]
    if label_separator is not None and at:
        sets = [[part.strip() for part in row[0].split(label_separator) if part.strip()] for row in texts]
        Y, names = named_indicators(sets, label_names, lines, name)
    else:
        flags = [[_flag(text, f"{name}, line {line}") for text in row] for row, line in zip(texts, lines, strict=True)]
        Y = np.array(flags, np.uint8).reshape(len(lines), len(at))
    return LabelData(X, Y, [columns[j] for j in kept], names, lines=lines)


def _flag(text: str, where: str) -> int:
    found = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}.get(text.lower())
    if found is None:
        raise ValueError(f"{where}: a column of labels has {text[:40]!r}; write 0 or 1, or name other columns.")
    return found
