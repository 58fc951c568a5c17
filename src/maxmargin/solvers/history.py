"""What happened, one row per certificate."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from maxmargin.certificate import Certificate, WeakDualityError
from maxmargin.solvers.saved import COUNT, NUMBER, SECONDS, Saved

if TYPE_CHECKING:
    import pandas

__all__ = ["History", "Table", "as_frame"]

_COUNTS = ("oracle_calls", "argmax_calls")
_NUMBERS = ("pass", "seconds", "primal", "dual")
COLUMNS = ("pass", "oracle_calls", "argmax_calls", "seconds", "primal", "dual", "gap", "relative_gap", "certified")
Row = dict[str, object]  # numbers, but for the extras
Table: TypeAlias = "pandas.DataFrame | dict[str, np.ndarray]"


class History:
    """Rows of a run: pass, oracle_calls, argmax_calls, seconds, primal, dual, gap, relative_gap, certified and extras.

    A row is a plain dict; extras are further entries added by :meth:`annotate`, among them ``proven``: the share of the
    oracle calls since the row before whose answer is proven to be the best, as far as the oracle tells. There are more
    argmax_calls than oracle_calls where a search asks several.
    """

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def record(
        self, certificate: Certificate, passes: float, oracle_calls: int, argmax_calls: int, seconds: float
    ) -> Row:
        """Add the row of a certificate and return it."""
        c, work = certificate, (float(passes), int(oracle_calls), int(argmax_calls), float(seconds))
        row: Row = dict(zip(COLUMNS, (*work, c.primal, c.dual, c.gap, c.relative_gap, c.certified), strict=True))
        self.rows.append(row)
        return row

    def annotate(self, **extras: object) -> None:
        """Add extras (JSON-able numbers, strings, ...) to the newest row."""
        taken = [name for name in extras if name in COLUMNS]
        if taken:
            raise ValueError(f"{taken[0]!r} is a column of its own; choose another name for the extra")
        self.rows[-1].update(extras)

    def column(self, name: str) -> np.ndarray:
        """One column as an array; rows without the entry hold NaN."""
        return np.array([row.get(name, np.nan) for row in self.rows])

    def to_frame(self) -> Table:
        """The rows as a table; see :func:`as_frame`."""
        return as_frame(self.rows, COLUMNS)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Plain arrays for a checkpoint; the extras travel as one JSON string."""
        arrays = {name: np.array([row[name] for row in self.rows], np.int64) for name in _COUNTS}
        arrays |= {name: np.array([row[name] for row in self.rows], np.float64) for name in _NUMBERS}
        arrays["certified"] = np.array([row["certified"] for row in self.rows], bool)
        extras = [{name: value for name, value in row.items() if name not in COLUMNS} for row in self.rows]
        arrays["extras"] = np.array(json.dumps(extras, default=float))
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> History:
        """The history that :meth:`to_arrays` was made of, checked."""
        saved, history = Saved.of(arrays), cls()
        extras = saved.json("extras")
        if not isinstance(extras, list) or not all(isinstance(more, dict) for more in extras):
            raise saved.refusal("extras", "is not a list of further entries of each row")
        n = (len(extras),)
        columns = {name: saved.whole(name, np.int64, n, COUNT) for name in _COUNTS}
        columns |= {name: saved.reals(name, n, SECONDS) for name in ("pass", "seconds")}
        columns |= {name: saved.reals(name, n, NUMBER) for name in ("primal", "dual")}
        columns["certified"] = saved.array("certified", np.bool_, n)
        for i, more in enumerate(extras):
            row = {name: column[i] for name, column in columns.items()}
            certificate = Certificate(float(row["primal"]), float(row["dual"]), bool(row["certified"]))
            work = row["pass"], row["oracle_calls"], row["argmax_calls"], row["seconds"]
            try:
                history.record(certificate.check(), *work)
                history.annotate(**more)
            except (WeakDualityError, ValueError) as error:
                raise saved.refusal("primal", f"and history/dual have a row that cannot be: {error}") from None
        return history

    def last_certificate(self) -> Certificate:
        """That of the newest row."""
        primal, dual, certified = (self.column(name)[-1] for name in ("primal", "dual", "certified"))
        return Certificate(float(primal), float(dual), bool(certified))

    def repeats(self) -> int:
        """How many certificates before the newest, one after the other, were the same."""
        count, newest = 0, self.rows[-1:]
        for row in self.rows[-2::-1]:
            if any(row[name] != newest[0][name] for name in ("primal", "dual", "certified")):
                break
            count += 1
        return count

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.rows[index]

    def __repr__(self) -> str:
        head = f"{'pass':>8} {'calls':>10} {'seconds':>9} {'primal':>13} {'dual':>13} {'rel. gap':>9}"
        lines = [
            f"{row['pass']:8.2f} {row['oracle_calls']:10d} {row['seconds']:9.3f} {row['primal']:13.6g} "
            f"{row['dual']:13.6g} {row['relative_gap']:9.2e}"
            for row in self.rows
        ]
        if len(lines) > 12:  # the first rows and the last ones tell the story
            lines[4:-8] = [f"{'...':>8} ({len(lines) - 12} rows)"]
        return "\n".join([head, *lines])


def as_frame(rows: Sequence[Mapping[str, object]], columns: Sequence[str] = ()) -> Table:
    """Rows as a table: a pandas frame, or without pandas a dict of columns, which ``table[name]`` reads alike.

    The columns are those named and those of the rows.
    """
    names = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    try:
        import pandas
    except ImportError:
        return {name: _column([row.get(name, np.nan) for row in rows]) for name in names}
    return pandas.DataFrame(rows, columns=names)


def _column(values: list[object]) -> np.ndarray:
    """An array of numbers, or else of objects."""
    if all(isinstance(value, (int, float, np.number, np.bool_)) for value in values):
        return np.array(values)
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = value
    return array
