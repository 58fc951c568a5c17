"""``report``: one page about a fitted estimator, and about its predictions on examples that are given.

Every estimator tells its strongest weights and its score; those whose outputs are labels tell counts, errors and
confusions too. What else an estimator has to show it adds in ``_own_sections``.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import numpy as np
from sklearn import get_config
from sklearn.exceptions import NotFittedError

from maxmargin.certificate import Certificate
from maxmargin.pages.html import Section, figures, page, paragraph, table
from maxmargin.pages.labels import label_section
from maxmargin.pages.run import CURVES, Run, run_card, run_sections
from maxmargin.pages.svg import bars
from maxmargin.persistence.whole_file import whole_file
from maxmargin.solvers.history import Table
from maxmargin.solvers.status import Status

__all__ = ["Labellings", "Reported", "labels_told", "named_weights", "run_of", "score_section"]

STRONGEST, SUSPICIOUS = 24, 30
Labellings: TypeAlias = Iterable[Iterable[Hashable]]  # the labels of the parts of each example


class Reported(ABC):
    """An estimator that can write a page about itself."""

    def report(
        self, path: str | os.PathLike[str], X: object = None, y: object = None, *, audit: Table | None = None
    ) -> Path:
        """Write one page of HTML about the fit: open it in any browser, without a network.

        It has the certificate in words, gap and objective against passes and seconds, where the time went, and the
        strongest weights. With examples also how good the predictions are, and by label what is missed and confused.

        Parameters
        ----------
        path : path-like
            Replaced when it exists, and only once the new file is complete; at most 300 kB.
        X, y : as in score, optional
            Examples to predict; better not those of training.
        audit : table, optional
            What :func:`maxmargin.audit` returned: the most suspicious labels are shown.

        Returns
        -------
        pathlib.Path
        """
        self._check_fitted()
        sections = run_sections(self._run())
        if X is not None:
            sections += self._example_sections(X, y)
        sections += self._own_sections()
        rows = self._strongest_weights(STRONGEST)
        if rows:
            drawn = bars({name: weight for name, weight in rows}, "strongest weights")
            sections.append(Section("Strongest weights", [figures([(drawn, "")])]))
        if audit is not None:
            sections.append(_suspicious(audit))
        target = Path(path)
        text = page(type(self).__name__, f"A report by maxmargin {version('maxmargin')}.", _ordered(sections))
        with whole_file(target) as file:
            file.write(text.encode())
        return target

    def _repr_html_(self) -> str:
        """What a notebook shows of it: why training ended, the certificate in words, and how the gap fell."""
        try:
            self._check_fitted()
        except NotFittedError:
            return run_card(" ".join(repr(self).split()), None)
        return run_card(" ".join(repr(self).split()), self._run())

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        shown = {"text/plain": repr(self)}
        return shown | {"text/html": self._repr_html_()} if get_config()["display"] == "diagram" else shown

    @abstractmethod
    def _check_fitted(self, values: bool = True) -> None:
        """A NotFittedError before ``fit``."""

    @abstractmethod
    def _example_sections(self, X: object, y: object) -> list[Section]:
        """What there is to say about predictions."""

    def _run(self) -> Run:
        """How the fit went."""
        return run_of(self)

    def _own_sections(self) -> list[Section]:
        """What only this kind of estimator has to show about its weights."""
        return []

    def _strongest_weights(self, top: int) -> list[tuple[str, float]]:
        """The weights of largest absolute value, by name; none where weights say little by themselves."""
        return []


def named_weights(groups: Mapping[str, np.ndarray], names: Sequence[str] | None, top: int) -> list[tuple[str, float]]:
    """The strongest of all groups, named by group and place; ``names`` are those of the first axis of the first."""
    found: list[tuple[float, str]] = []
    for number, (group, block) in enumerate(groups.items()):
        flat = np.asarray(block, np.float64).ravel()
        for k in np.argsort(-np.abs(flat), kind="stable")[:top].tolist():
            if flat[k] != 0:
                place = [int(i) for i in np.unravel_index(k, np.shape(block))]
                first = names[place[0]] if number == 0 and names is not None else f"{group} {place[0]}"
                found.append((float(flat[k]), " ".join([first, *map(str, place[1:])])))
    found.sort(key=lambda pair: -abs(pair[0]))
    return [(name, weight) for weight, name in found[:top]]


def score_section(score: float, n: int, told: str) -> Section:
    """The default score of an estimator on some examples."""
    return Section("Score", [paragraph(f"{score:.4f} on {n} examples ({told}).")])


def labels_told(true: Labellings, found: Labellings, what: str) -> Section:
    """Counts, errors and confusions of the labels of parts; ``what`` they are (tokens, nodes, ...)."""
    counts: Counter[tuple[Hashable, Hashable]] = Counter()
    for i, (left, right) in enumerate(zip(true, found, strict=True)):
        try:
            counts.update(zip(left, right, strict=True))
        except TypeError:
            raise ValueError(f"example {i} has a label that cannot be hashed; labels are text or numbers.") from None
    return label_section(counts, what)


def run_of(estimator: Reported) -> Run:
    """How the fit of an estimator went, as far as it is known."""
    known = vars(estimator)
    certificate, status, seconds = (known.get(name) for name in ("certificate_", "status_", "seconds_"))
    history = known.get("history_")
    curves = None if history is None else {name: np.asarray(history[name], np.float64).tolist() for name in CURVES}
    return Run(
        parameters=dict(_parameters(estimator)),
        certificate=certificate if isinstance(certificate, Certificate) else None,
        status=status.sentence if isinstance(status, Status) else None,
        seconds=seconds if isinstance(seconds, Mapping) else None,
        passes=known.get("n_iter_"),
        history=curves,
    )


def _parameters(estimator: Reported) -> Iterator[tuple[str, str]]:
    for name, value in sorted(vars(estimator).items()):
        if not name.endswith("_") and not name.startswith("_"):
            yield name, repr(value)


def _suspicious(audit: Table) -> Section:
    """The first rows of an audit."""
    names = ("example", "score", "given", "suggested")
    columns = [list(audit[name])[:SUSPICIOUS] for name in names]
    rows = [(int(i), float(score), str(given), str(better)) for i, score, given, better in zip(*columns, strict=True)]
    differing = [row for row in rows if row[2] != row[3]]
    told = (
        f"{len(differing)} of the {len(rows)} most suspicious examples have a better output, by models of other folds."
    )
    return Section("Suspicious labels", [paragraph(told), table(list(names), differing)])


def _ordered(sections: list[Section]) -> list[Section]:
    """Parameters, which are looked up rather than read, come last."""
    return sorted(sections, key=lambda section: section.title == "Parameters")
