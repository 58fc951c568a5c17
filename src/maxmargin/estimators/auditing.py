"""Which training examples look mislabelled: a ranking by models that have not seen them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from maxmargin.estimators.audit_evidence import TINY, Evidence, NeighbourCounts, example_scores, judge
from maxmargin.estimators.base import Inputs, Structured
from maxmargin.estimators.parameters import check_tol
from maxmargin.models.chain import Chain
from maxmargin.models.labels import Labels, plain
from maxmargin.models.multiclass import Multiclass
from maxmargin.solvers.history import Table, as_frame

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator

__all__ = ["audit"]

T = TypeVar("T")
Splits: TypeAlias = "int | BaseCrossValidator | Iterable[tuple[ArrayLike, ArrayLike]]"

_EXAMPLE = re.compile(r"\b(example|sequence|sentence) (\d+)")

COLUMNS = [
    "example", "score", "given", "suggested", "positions", "worst", "agreement", "margin", "hinge", "ramp", "violation",
]  # fmt: skip


def audit(
    estimator: Structured[Inputs, list],
    X: Inputs,
    y: Sequence[object] | np.ndarray,
    cv: Splits = 5,
    *,
    repeats: int = 2,
    tol: float | None = 0.1,
    random_state: int | np.random.RandomState | None = 0,
    after_fold: Callable[[], object] | None = None,
) -> Table:
    """Rank training examples by the evidence that what was given as their output is wrong.

    Every example is judged at the weights of fits to the other folds, so that no model has memorised it. See
    :func:`~maxmargin.estimators.audit_evidence.doubts` for the evidence about single labels and
    :func:`~maxmargin.estimators.audit_evidence.example_scores` for the score of an example.

    Parameters
    ----------
    estimator : SequenceTagger, MulticlassClassifier or StructuredSVM
        It is cloned, not fitted; the fits of the folds use its loss, C, features and solver.
    X, y : training examples, as for its ``fit``
    cv : int, scikit-learn splitter, or iterable of (train, held out)
        Number of folds, or the splits themselves; these must hold out every example at least once.
    repeats : int
        How often the examples are dealt anew to ``cv`` folds. More give a steadier ranking, and ``agreement``.
    tol : float or None
        Relative duality gap of the fits of folds, where the estimator asks for less: coarse fits rank as well as exact
        ones, in a fraction of the time. None keeps the estimator's.
    random_state : int, RandomState or None, of the folds
    after_fold : callable without arguments, optional, called after each fold to show progress

    Returns
    -------
    pandas.DataFrame, or dict of columns without pandas (``table["score"]`` is good for both)
        One row per example, most suspicious first:

        example : int, where it is in X
        score : float, by which the rows are ordered; log odds of a mistake, for each label of the example
        given, suggested : the output in y, and a better one; the same when no fold has a better one
        positions : list of int, where given and suggested differ
        worst : int, the position of the most doubtful label; -1 when there is none
        agreement : share of the judging models that suggest the same
        margin, hinge, ramp : score of the prediction over the given output, and losses of the given output
        violation : share of the judging models for which an output is better than the given one by more than its cost;
        as the four before, a mean over the judging models

    Ctrl-C ends it with a warning and with the rows of the examples that complete folds have judged, if there are any.

    Complexity: ``cv * repeats`` fits, and three argmaxes per example and repeat.

    References
    ----------
    Brodley, Friedl. Identifying mislabeled training data. JAIR 1999 (judging by cross-validation). Northcutt, Jiang,
    Chuang. Confident learning. JAIR 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import MulticlassClassifier, audit
    >>> X, y = load_iris(return_X_y=True)
    >>> y[7] = 2  # was 0
    >>> table = audit(MulticlassClassifier(), X, y)
    >>> [int(table[name][0]) for name in ("example", "given", "suggested")]
    [7, 2, 0]
    """
    if not isinstance(estimator, Structured):
        raise TypeError(
            "audit needs a SequenceTagger, a MulticlassClassifier or a StructuredSVM, whose scores it can read; got "
            f"{type(estimator).__name__}."
        )
    if tol is not None:
        check_tol(tol)
    matrix = sp.csr_array(X) if sp.issparse(X) else None
    examples: Inputs = X if matrix is None else matrix
    n = len(cast(Sized, X)) if matrix is None else matrix.shape[0]
    kind = type(estimator._model())
    given = [plain(cast(Iterable[Hashable], labels)) for labels in y] if kind is Chain else plain(y)
    if len(given) != n:
        raise ValueError(f"X has {n} examples and y has {len(given)}; they must agree.")
    labels = _labels(estimator, kind, given)
    codes, neighbours = [np.zeros(1, np.int64)] * n, None
    if labels is not None:
        rows = given if kind is Chain else [[label] for label in given]
        codes = [labels.encode(row, i).astype(np.int64) for i, row in enumerate(rows)]
        neighbours = NeighbourCounts.of(codes, labels)
    seed = check_random_state(random_state).randint(2**31 - 1)
    strata = np.concatenate(codes) if kind is Multiclass and n else None
    work = _worker(estimator, labels, tol)
    record = _Record(given, codes)
    for number, (inside, out) in enumerate(_splits(cv, repeats, n, strata, seed)):
        try:
            with warnings.catch_warnings(), _numbered(inside):
                warnings.simplefilter("ignore", ConvergenceWarning)
                work.fit(_take(examples, inside), _take(given, inside))
            if work.status_.code == "interrupted":
                raise KeyboardInterrupt
            with _numbered(out):
                held, own = _take(examples, out), _take(given, out)
                evidence = judge(work, held, own, _take(codes, out), neighbours, [seed, number])
        except KeyboardInterrupt:
            if number == 0:
                raise
            what = f"Interrupted after {number} folds; the table has the examples that these have judged."
            warnings.warn(what, ConvergenceWarning, stacklevel=2)
            record.forget_unjudged()
            break
        record.add(out, evidence)
        if after_fold is not None:
            after_fold()
    return as_frame(record.rows(2 if labels is None else len(labels)), COLUMNS)


@runtime_checkable
class Framed(Protocol):
    """A frame, of pandas or another."""

    iloc: Mapping[object, object]


class _Record:
    """What the folds said about each example."""

    def __init__(self, given: list, codes: list[np.ndarray]) -> None:
        n = len(given)
        self.given, self.examples = given, np.arange(n)
        self.times = np.zeros(n, np.int64)
        self.hinge, self.margin, self.ramp, self.violation = np.zeros((4, n))
        self.doubt = [np.zeros(len(row)) for row in codes]
        self.votes: list[list[tuple[object, int]]] = [[] for _ in given]

    def add(self, examples: np.ndarray, evidence: Evidence) -> None:
        self.times[examples] += 1
        self.hinge[examples] += evidence.hinge
        self.margin[examples] += evidence.margin
        self.ramp[examples] += evidence.hinge - evidence.concave
        self.violation[examples] += evidence.concave > TINY
        for i, doubt, suggested in zip(examples.tolist(), evidence.doubt, evidence.suggested, strict=True):
            self.doubt[i] = self.doubt[i] + doubt
            votes = self.votes[i]
            place = next((k for k, (output, _) in enumerate(votes) if _same(output, suggested)), len(votes))
            votes[place : place + 1] = [(suggested, votes[place][1] + 1 if place < len(votes) else 1)]

    def forget_unjudged(self) -> None:
        """Leave out the examples that no fold has held out."""
        self.examples = np.flatnonzero(self.times)

    def rows(self, n_labels: int) -> list[dict[str, object]]:
        """The table, most suspicious first; equals in their order in the data."""
        missing = self.examples[self.times[self.examples] == 0]
        if len(missing):
            others = f"(nor are {len(missing) - 1} others); every example must be held out at least once."
            raise ValueError(f"example {missing[0]} is held out by no split of cv {others}")
        doubt = {i: self.doubt[i] / self.times[i] for i in self.examples.tolist()}
        lengths = np.array([len(row) for row in doubt.values()], np.int64)
        flat = np.concatenate(list(doubt.values())) if doubt else np.empty(0)
        scores = example_scores(flat, np.repeat(np.arange(len(lengths)), lengths), lengths, n_labels)
        made = []
        for place in np.argsort(-scores, kind="stable").tolist():
            i = int(self.examples[place])
            given, times = self.given[i], int(self.times[i])
            suggested, votes = max(self.votes[i], key=lambda vote: vote[1])  # the earliest of equals
            worst = int(np.argmax(doubt[i])) if len(doubt[i]) else -1
            means = [float(sums[i]) / times for sums in (self.margin, self.hinge, self.ramp, self.violation)]
            row = (
                i,
                float(scores[place]),
                given,
                suggested,
                _positions(given, suggested),
                worst,
                votes / times,
                *means,
            )
            made.append(dict(zip(COLUMNS, row, strict=True)))
        return made


def _labels(estimator: Structured, kind: type, given: list) -> Labels | None:
    """All labels that occur, or may occur; None when outputs have no parts that are known here."""
    if kind not in (Chain, Multiclass):
        return None
    parameters = estimator.get_params(deep=True)
    classes = parameters.get("classes", parameters.get("model__classes"))
    if classes is not None:
        return Labels(plain(classes))
    return Labels.of(label for row in given for label in row) if kind is Chain else Labels.of(given)


def _worker(estimator: T, labels: Labels | None, tol: float | None) -> T:
    """A clone that fits folds: silent, coarse, and aware of labels that a fold may not have."""
    work = clone(estimator)
    known = work.get_params(deep=True)
    work.set_params(callbacks=None, verbose=0, warm_start=False)
    if tol is not None and isinstance(work.tol, (int, float, np.number)) and work.tol < tol:
        work.set_params(tol=tol)
    for name in ("classes", "model__classes"):
        if labels is not None and name in known:
            work.set_params(**{name: labels.classes})
    return work


def _splits(
    cv: Splits, repeats: int, n: int, strata: np.ndarray | None, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Examples to fit and examples to judge, split after split; classes are dealt evenly."""
    if not (isinstance(repeats, (int, np.integer)) and repeats >= 1):
        raise ValueError(f"repeats must be a whole number >= 1, got {repeats!r}.")
    if isinstance(cv, (int, np.integer)):
        if not 2 <= cv <= n:
            raise ValueError(f"cv is {cv}; with {n} examples it must be from 2 to {n}: each fold judges at least one.")
        for repeat in range(repeats):
            order = np.random.default_rng([seed, repeat]).permutation(n)
            if strata is not None:
                order = order[np.argsort(strata[order], kind="stable")]
            fold = np.empty(n, np.int64)
            fold[order] = np.arange(n) % cv
            for f in range(cv):
                yield np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        return
    from sklearn.model_selection import check_cv

    for number, (inside, out) in enumerate(check_cv(cv).split(np.zeros((n, 1)), strata)):
        both = np.intersect1d(inside, out)
        if len(both):
            raise ValueError(f"split {number} of cv fits and judges example {both[0]}; it may be in one of them only.")
        yield np.asarray(inside), np.asarray(out)


def _take(X: T, chosen: np.ndarray) -> T:
    """Some of the examples."""
    if isinstance(X, (list, tuple)):
        return cast(T, [X[i] for i in chosen.tolist()])
    return cast(T, (X.iloc if isinstance(X, Framed) else cast(np.ndarray, X))[chosen])


@contextmanager
def _numbered(chosen: np.ndarray) -> Iterator[None]:
    """Errors that name an example of a fold name the one in the data instead."""
    try:
        yield
    except ValueError as error:
        place = dict(enumerate(chosen.tolist()))
        message = _EXAMPLE.sub(lambda found: f"{found[1]} {place.get(int(found[2]), found[2])}", str(error))
        raise ValueError(message) from error


def _same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(np.asarray(a), np.asarray(b))
    return bool(a == b)


def _positions(given: object, suggested: object) -> list[int]:
    """Where two outputs differ; 0 for outputs without parts."""
    if _same(given, suggested):
        return []
    kinds = (list, tuple, np.ndarray)
    if isinstance(given, kinds) and isinstance(suggested, kinds) and len(given) == len(suggested):
        return [t for t, (a, b) in enumerate(zip(given, suggested, strict=True)) if not _same(a, b)]
    return [0]
