"""The estimator of sklearn-crfsuite, with a large-margin tagger behind it."""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from maxmargin.certificate import Certificate
from maxmargin.compat.sklearn_crfsuite.metrics import flat_accuracy_score
from maxmargin.estimators.sequence_tagger import SequenceTagger
from maxmargin.estimators.typed_sklearn import BaseEstimator
from maxmargin.features.dicts import DictFeatures, Sentences
from maxmargin.metrics.tokens import Labels

__all__ = ["CRF", "TrainingLog"]

# name -> CRFsuite's default of max_iterations; for "unlimited" the default of SequenceTagger
_ALGORITHMS = {
    "lbfgs": 1000, "l2sgd": 1000, "ap": 100, "averaged-perceptron": 100, "pa": 100, "passive-aggressive": 100,
    "arow": 100,
}  # fmt: skip

# options of CRFsuite's optimisers, with their defaults, which raise no warning
_WITHOUT_COUNTERPART: dict[str, object] = {
    "c1": 0, "num_memories": 6, "epsilon": 1e-5, "period": 10, "delta": 1e-5, "linesearch": "MoreThuente",
    "max_linesearch": 20, "calibration_eta": 0.1, "calibration_rate": 2.0, "calibration_samples": 1000,
    "calibration_candidates": 10, "calibration_max_trials": 20, "error_sensitive": True, "averaging": True,
    "variance": 1, "gamma": 1, "trainer_cls": None,
}  # fmt: skip

_told: set[tuple[str, ...]] = set()  # options that this process has warned of; a search fits many times

_SMALLEST_C2 = 1e-4  # replaces c2 = 0, no regularisation: C = 5000 fits most training data exactly


@dataclass(frozen=True)
class TrainingLog:
    """What training went through, an iteration for each certificate.

    An iteration has ``num`` (passes over the data), ``loss`` (the objective), ``time`` (seconds since the last one) and
    ``relative_gap``, which bounds how far the loss is from the least possible.
    """

    iterations: list[dict[str, float]]

    @property
    def last_iteration(self) -> dict[str, float] | None:
        return self.iterations[-1] if self.iterations else None


@dataclass(eq=False, repr=False)
class CRF(BaseEstimator):
    """A sequence tagger with the options, methods and attributes of ``sklearn_crfsuite.CRF``.

    CRFsuite minimises ``c2 |w|^2 + sum_i nll_i(w)``, this class ``1/2 |w|^2 + C sum_i hinge_i(w)`` with
    ``C = 1 / (2 c2)``: the same balance of regulariser and data, another loss. Options:

    ============================  =====================================================================================
    algorithm                     a certified large-margin fit whichever is named; "pa" takes C from ``c``
    c2                            ``C = 1 / (2 c2)``; 1 when missing; less than 1e-4 counts as 1e-4
    c, pa_type ("pa" only)        type 1: ``C = c``; 2: the same with the squared hinge; 0: a hard margin (C = 5000)
    max_iterations                passes over the training data, at most; training ends earlier at a gap of 0.1 %
    all_possible_states           True: a weight for every pair of feature and label; else for pairs seen in training
    all_possible_transitions      always True: every pair of labels has a weight
    min_freq                      least count of a feature (CRFsuite counts pairs of feature and label)
    verbose                       progress of training
    model_filename                where :meth:`fit` writes a maxmargin model file, or one to read
    c1 and the others             no counterpart: left aside, with one warning unless at CRFsuite's default
    ============================  =====================================================================================

    Tokens are dicts or lists of strings, see :class:`~maxmargin.DictFeatures`; a feature ``{"word": "dog"}`` is called
    ``word=dog`` here and ``word:dog`` there.

    Attributes
    ----------
    tagger_ : SequenceTagger or None
        The fitted tagger, with its certificate, status and methods.
    classes_, attributes_, num_attributes_, state_features_, transition_features_, size_
        As in sklearn-crfsuite; None before fit.
    training_log_ : TrainingLog
        With ``iterations`` and ``last_iteration``; None before fit and for a model that was read from a file.

    Examples
    --------
    >>> X = [[{"word": "the"}, {"word": "dog"}], [{"word": "a"}, {"word": "dog"}]]
    >>> CRF(c2=0.1).fit(X, [["D", "N"], ["D", "N"]]).predict_single([{"word": "a"}, {"word": "cat"}])
    ['D', 'N']
    """

    algorithm: str | None = None
    min_freq: float | None = None
    all_possible_states: bool | None = None
    all_possible_transitions: bool | None = None
    c1: float | None = None
    c2: float | None = None
    max_iterations: int | None = None
    num_memories: int | None = None
    epsilon: float | None = None
    period: int | None = None
    delta: float | None = None
    linesearch: str | None = None
    max_linesearch: int | None = None
    calibration_eta: float | None = None
    calibration_rate: float | None = None
    calibration_samples: int | None = None
    calibration_candidates: int | None = None
    calibration_max_trials: int | None = None
    pa_type: int | None = None
    c: float | None = None
    error_sensitive: bool | None = None
    averaging: bool | None = None
    variance: float | None = None
    gamma: float | None = None
    verbose: bool = False
    model_filename: str | None = None
    keep_tempfiles: bool = False
    trainer_cls: type | None = None
    _tagger: SequenceTagger | None = field(default=None, init=False)

    def fit(
        self, X: Sentences, y: Sequence[Labels], X_dev: Sentences | None = None, y_dev: Sequence[Labels] | None = None
    ) -> CRF:
        """Learn from sequences of dicts (or lists of strings) and their labels.

        With ``verbose``, the accuracy on ``X_dev`` and ``y_dev`` is printed at the end.
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("pass both X_dev and y_dev, or neither.")
        tagger = self.to_tagger()
        self._warn_of_options()
        with warnings.catch_warnings():
            if self.max_iterations is not None:  # the user chose where training ends
                warnings.simplefilter("ignore", ConvergenceWarning)
            self._tagger = tagger.fit(X, y)
        if self.verbose and X_dev is not None and y_dev is not None:
            print(f"held-out accuracy: {tagger.score(X_dev, y_dev):.4f}")
        if self.model_filename is not None:
            tagger.save(self.model_filename)
        return self

    def to_tagger(self) -> SequenceTagger:
        """An unfitted tagger with the same settings, for direct use."""
        C, loss = self._strength()
        count = 0.0 if self.min_freq is None else float(self.min_freq)
        if not math.isfinite(count) or count < 0:
            raise ValueError(f"min_freq must be a number >= 0, got {self.min_freq!r}.")
        return SequenceTagger(
            features=DictFeatures(min_count=max(1, math.ceil(count))),
            C=C,
            loss=loss,
            weights="all" if self.all_possible_states else "observed",
            max_passes=_ALGORITHMS[self._algorithm()] if self.max_iterations is None else self.max_iterations,
            verbose=int(bool(self.verbose)),
        )

    def predict(self, X: Sentences) -> list[list]:
        """The best labels of each sequence."""
        return self._fitted().predict(X)

    def predict_single(self, xseq: Iterable[Mapping[str, object] | Iterable[str]]) -> list:
        """The best labels of one sequence. For many sequences, :meth:`predict` is faster."""
        return self.predict([xseq])[0]

    def predict_marginals(self, X: Sentences) -> list[list[dict]]:
        """For each token a dict from label to its share under exp(score), which is not a calibrated probability."""
        classes, tables = self._fitted().classes_, self._fitted().predict_marginals(X)
        return [[dict(zip(classes, row, strict=True)) for row in table.tolist()] for table in tables]

    def predict_marginals_single(self, xseq: Iterable[Mapping[str, object] | Iterable[str]]) -> list[dict]:
        """:meth:`predict_marginals` of one sequence."""
        return self.predict_marginals([xseq])[0]

    def score(self, X: Sentences, y: Sequence[Labels]) -> float:
        """Share of tokens labelled correctly."""
        return float(flat_accuracy_score(y, self.predict(X)))

    @property
    def tagger_(self) -> SequenceTagger | None:
        if self._tagger is None and self.model_filename is not None and Path(self.model_filename).exists():
            self._tagger = SequenceTagger.load(self.model_filename)
        return self._tagger

    @property
    def training_log_(self) -> TrainingLog | None:
        history = None if self.tagger_ is None else vars(self.tagger_).get("history_")
        if history is None:
            return None
        values = zip(map(float, history["primal"]), map(float, history["dual"]), strict=True)
        gaps = [Certificate(primal, dual).relative_gap for primal, dual in values]  # model files have no column for it
        steps = {"num": history["pass"], "loss": history["primal"], "relative_gap": gaps}
        steps["time"] = np.diff(history["seconds"], prepend=0.0)
        rows = zip(*(map(float, column) for column in steps.values()), strict=True)
        return TrainingLog([dict(zip(steps, row, strict=True)) for row in rows])

    @property
    def classes_(self) -> list | None:
        return None if self.tagger_ is None else list(self.tagger_.classes_)

    @property
    def attributes_(self) -> list[str] | None:
        return None if self.tagger_ is None else self.tagger_.features_.names()

    @property
    def num_attributes_(self) -> int | None:
        return None if self.tagger_ is None else self.tagger_.features_.n_features_

    @property
    def state_features_(self) -> dict[tuple[str, Hashable], float] | None:
        """Nonzero weights: (feature, label) -> weight."""
        if self.tagger_ is None:
            return None
        names, classes = self.tagger_.features_.names(), self.tagger_.classes_
        table = sp.coo_array(self.tagger_.coef_)
        cells = zip(*(part.tolist() for part in (*table.coords, table.data)), strict=True)
        return {(names[i], classes[k]): weight for i, k, weight in cells if weight}

    @property
    def transition_features_(self) -> dict[tuple[Hashable, Hashable], float] | None:
        """(left label, right label) -> weight."""
        if self.tagger_ is None:
            return None
        classes, rows = self.tagger_.classes_, self.tagger_.transition_.tolist()
        return {(classes[i], classes[j]): weight for i, row in enumerate(rows) for j, weight in enumerate(row)}

    @property
    def size_(self) -> int | None:
        """Size in bytes of the model file, which is written to a temporary folder."""
        if self.tagger_ is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            return self.tagger_.save(Path(folder) / "model").stat().st_size

    def _fitted(self) -> SequenceTagger:
        if self.tagger_ is None:
            raise NotFittedError("this CRF is not fitted yet; call fit first, or name an existing model_filename.")
        return self.tagger_

    def _algorithm(self) -> str:
        name = "lbfgs" if self.algorithm is None else self.algorithm
        if name not in _ALGORITHMS:
            raise ValueError(f"algorithm must be one of {', '.join(_ALGORITHMS)}; got {name!r}.")
        return name

    def _strength(self) -> tuple[float, str]:
        """C and the loss."""
        kind = 1 if self.pa_type is None else self.pa_type
        values = {"c2": 1.0 if self.c2 is None else self.c2, "c": 1.0 if self.c is None else self.c}
        for name, value in values.items():
            if not value >= 0 or math.isinf(value):
                raise ValueError(f"{name} must be a finite number >= 0, got {value!r}.")
        if self._algorithm() in ("pa", "passive-aggressive"):
            if kind not in (0, 1, 2):
                raise ValueError(f"pa_type must be 0, 1 or 2; got {kind!r}.")
            C = 0.5 / _SMALLEST_C2 if kind == 0 else values["c"]
            return float(C), "squared_hinge" if kind == 2 else "hinge"
        return 0.5 / max(float(values["c2"]), _SMALLEST_C2), "hinge"

    def _warn_of_options(self) -> None:
        options = vars(self)
        aside = [name for name, usual in _WITHOUT_COUNTERPART.items() if options[name] not in (None, usual)]
        if aside and tuple(aside) not in _told:
            _told.add(tuple(aside))
            names = f"ignored, because a large-margin fit has no counterpart: {', '.join(aside)}"
            warnings.warn(f"{names}. c2 sets the strength of the regulariser.", stacklevel=3)
