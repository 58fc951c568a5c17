"""Reader of multi-label files in the format of LIBSVM: ``1,3 5:0.2 17:1``, one example per line."""

from __future__ import annotations

from array import array

import numpy as np
import scipy.sparse as sp

from maxmargin.datasets.label_data import LabelData, named_indicators, number
from maxmargin.datasets.text_lines import UNPACKED_LIMIT, Source, decoded, opened

__all__ = ["read_libsvm"]

MOST = 2**22  # features: a slip in a number must not cost all memory


def read_libsvm(
    source: Source,
    *,
    n_features: int | None = None,
    zero_based: bool | None = None,
    label_names: list[str] | None = None,
    max_unpacked: int = UNPACKED_LIMIT,
) -> LabelData:
    """Examples (sparse) and their labels.

    A line without labels begins with a space, or with its first feature. Text after ``#`` is a comment; the number
    ``qid:1`` of a query is left out. O(size of the file); a ValueError names the line that is wrong.

    Parameters
    ----------
    source : path, "-", or stream
        ``.gz`` and ``.xz`` are decompressed.
    n_features : int, optional
        By default as many as the file names.
    zero_based : bool, optional
        Whether the first feature has the number 0; by default so if a line says 0, and else it has the number 1. Say it
        where a test file may lack the feature 0.
    label_names : list of str, optional
        The labels in order; by default those of the file, by number where all are numbers.
    max_unpacked : int
        Bytes that an archive may unpack to, or 30 times what was read of it where that is more.

    References
    ----------
    Chang, Lin. LIBSVM: a library for support vector machines. ACM TIST 2011.
    """
    rows, lines = list[list[str]](), list[int]()
    values, columns, ends = array("d"), array("q"), array("q", [0])
    with opened(source, max_unpacked) as (raw, name):
        for place, line in decoded(raw, name):
            text = line.partition("#")[0]
            fields = text.split()
            if not fields:
                continue
            where = f"{name}, line {place}"
            labels = [] if ":" in fields[0] or text[0].isspace() else fields.pop(0).split(",")
            if "" in labels or len(set(labels)) < len(labels):
                raise ValueError(f"{where}: {','.join(labels)[:40]!r} is no list of labels; write 1,3 without spaces.")
            found = _entries(fields, where)
            if len(found) < sum(not field.startswith("qid:") for field in fields):
                raise ValueError(f"{where}: a feature is there twice; remove one.")
            columns.extend(found)
            values.extend(found.values())
            ends.append(len(columns))
            rows.append(labels)
            lines.append(place)
    if not rows:
        raise ValueError(f"{name} has no examples; write one per line, such as: 1,3 5:0.2 17:1")
    Y, names = named_indicators(rows, label_names, lines, name)
    places = np.array(columns, np.int64)
    least, most = (int(places.min()), int(places.max())) if len(places) else (1, 0)
    first = 0 if zero_based or (zero_based is None and least == 0) else 1
    width = most + 1 - first if n_features is None else n_features
    if least < first or most + 1 - first > width:
        at = int(np.argmax((places < first) | (places + 1 - first > width)))
        line = lines[int(np.searchsorted(np.array(ends), at, side="right")) - 1]
        allowed = f"{first} to {width - 1 + first}"
        raise ValueError(f"{name}, line {line}: there is no feature {places[at]}; their numbers are {allowed}.")
    X = sp.csr_array((np.array(values), places - first, np.array(ends, np.int64)), shape=(len(rows), width))
    X.sort_indices()
    return LabelData(X, Y, [f"x{j + first}" for j in range(width)], names, lines=lines)


def _entries(fields: list[str], where: str) -> dict[int, float]:
    """Values by the number of their feature."""
    found = {}
    for field in fields:
        index, _, value = field.partition(":")
        if index == "qid":
            continue
        if not (index.isdecimal() and value and len(index) < 10 and int(index) <= MOST):
            most = f"with an index of at most {MOST}"
            raise ValueError(f"{where}: {field[:40]!r} is not index:value, such as 5:0.2, {most}; correct it.")
        found[int(index)] = number(value, where)
    return found
