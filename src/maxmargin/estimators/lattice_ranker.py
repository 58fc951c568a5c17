"""The best output of a lattice or of an n-best list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple, Self, cast

import numpy as np

from maxmargin.contracts import Formulation
from maxmargin.datasets.lattice import Lattice, as_lattice
from maxmargin.estimators.base import Resume, SampleWeight, Stopwatch
from maxmargin.estimators.examples import Predictions, listed
from maxmargin.estimators.large_margin import LargeMargin
from maxmargin.estimators.lattice_references import (
    TextCost,
    Words,
    as_references,
    bleu_cost,
    judged,
    n_gram_distance,
)
from maxmargin.estimators.parameters import parameters
from maxmargin.estimators.saveable import Fitted
from maxmargin.formulations.problem import check_sample_weight
from maxmargin.formulations.references import References
from maxmargin.metrics.translation import bleu_of, bleu_statistics
from maxmargin.models.lattice import LatticeBound, LatticeLayout, LatticeModel

__all__ = ["LatticeRanker"]

Lattices = Sequence[Lattice]
Targets = Sequence[object]
COSTS: dict[str, TextCost] = {"bleu": bleu_cost}


class Chosen(NamedTuple):
    """An output by its text and by the arcs of its path."""

    text: str
    arcs: list[int]


@parameters
class LatticeRanker(LargeMargin[Lattices, Targets]):
    """The best path of a word lattice, or the best hypothesis of an n-best list, learned with a large margin.

    The score of a path is the sum of the scores ``w . x_e`` of its arcs. Training asks that the good output of each
    lattice outscores every other one by its cost. Good is a reference sentence where the lattice has it, and else the
    output of least cost. How costs of sentences become costs of arcs is said in
    :mod:`maxmargin.estimators.lattice_references`; for n-best lists they are exact.

    Parameters
    ----------
    cost : "bleu" or callable (words, list of words of each reference) -> float
        Cost of an output: 1 less its smoothed sentence BLEU, or a function of your own. Files do not hold functions.
    pairing : None or {"all", "nearest"}
        None: the one good output of each example must outscore every other one. "all": each of several good outputs
        must outscore every bad one by 1; "nearest": only those to which it is the nearest, by words and pairs of words
        in common. See :class:`~maxmargin.formulations.references.References`.
    n_good : int
        With ``pairing``: how many outputs of least cost are good.
    ... and the parameters that all estimators share; see maxmargin.estimators.parameters.

    Attributes
    ----------
    coef_ : array (n_features,)
        Weights of the features, named by ``layout_.names()``.

    Examples
    --------
    >>> from maxmargin import LatticeRanker
    >>> from maxmargin.datasets import Lattice
    >>> first = Lattice.from_nbest(["a house", "a the house"], [[-1.0, 2.0], [-2.0, 3.0]])
    >>> second = Lattice.from_nbest(["is small", "small"], [[-1.5, 2.0], [-1.0, 1.0]])
    >>> ranker = LatticeRanker(C=10.0).fit([first, second], ["a house", "is small"])
    >>> ranker.predict([first, second])
    ['a house', 'is small']
    """

    scored: ClassVar[str] = "BLEU, from 0 to 100"

    cost: str | TextCost = "bleu"
    pairing: str | None = None
    n_good: int = 1
    C: float = 1.0
    tol: float = 1e-3

    def fit(self, X: Lattices, y: Targets, sample_weight: SampleWeight = None, *, resume: Resume = None) -> Self:
        """Learn from lattices and reference sentences.

        Parameters
        ----------
        X : list of n :class:`~maxmargin.datasets.lattice.Lattice`
        y : list of n targets
            A reference sentence, or a list of several, as text or as lists of words. Or costs of arcs (an array of
            floats), a set of good arcs, or good paths: see :func:`~maxmargin.models.lattice_targets.as_target`.
        sample_weight : array (n,), optional
        resume : checkpoint (path or mapping) of an interrupted fit on the same examples, optional
        """
        begin, formulation = Stopwatch(), None
        lattices = _lattices(X)
        targets, good = self._targets(lattices, y)
        if self.pairing is not None:
            taught = [i for i, paths in enumerate(good) if paths]  # the others have no output that could be bad
            sample_weight = check_sample_weight(sample_weight, len(lattices))[taught]
            lattices, targets = [lattices[i] for i in taught], [targets[i] for i in taught]
            formulation = self._several([good[i] for i in taught])
        self.model_ = LatticeModel()
        bound = self.model_.bind(lattices, targets)
        self.layout_ = bound.layout
        positive = self._positive(bound, self.layout_)
        self._train(
            bound, sample_weight=sample_weight, positive=positive, resume=resume, begin=begin, formulation=formulation
        )
        return self

    @property
    def coef_(self) -> np.ndarray:
        self._check_fitted()
        return self.weights_

    def predict(self, X: Lattices) -> Predictions[str]:
        """What the best path of each lattice says."""
        self._check_fitted()
        return Predictions(chosen.text for chosen in self._predict_codes(self.weights_, X))

    def predict_kbest(self, X: Lattices, k: int) -> list[list[tuple[str, float]]]:
        """The ``k`` best distinct outputs of each lattice with their scores, best first; fewer when there are no more.

        An output that several paths say has the score of the best of them.
        """
        if not (isinstance(k, (int, np.integer)) and k >= 1):
            raise ValueError(f"k must be a whole number >= 1, got {k!r}.")
        weights, lattices = self._checked_weights(), _lattices(X)
        if not lattices:
            return []
        bound = self._bind_held_out(lattices, None)
        found = []
        for i, lattice in enumerate(lattices):
            codes, scores = bound.k_best(weights, i, int(k))
            texts = [lattice.text(self.layout_.output(row)) for row in codes]
            found.append(list(zip(texts, scores.tolist(), strict=True)))
        return found

    def predict_margin(self, X: Lattices) -> np.ndarray:
        """Score of the best output minus that of the runner-up: confidence, in units of the score. inf: no other."""
        scores = [[score for _, score in outputs] for outputs in self.predict_kbest(X, 2)]
        return np.array([s[0] - s[1] if len(s) > 1 else np.inf for s in scores])

    def _targets(self, lattices: list[Lattice], y: Targets) -> tuple[list[object], list[list[object]]]:
        """What the model learns from, and the good paths of each example."""
        given, cost = _one_each(lattices, y), self._text_cost()
        if isinstance(self.n_good, bool) or not isinstance(self.n_good, (int, np.integer)) or self.n_good < 1:
            raise ValueError(f"n_good is {self.n_good!r:.60}; give a whole number from 1 on.")
        targets: list[object] = []
        good: list[list[object]] = []
        for i, (lattice, target) in enumerate(zip(lattices, given, strict=True)):
            references = as_references(target)
            if references is None:
                if isinstance(target, (list, tuple)) and not len(target):
                    raise ValueError(f"example {i} has no reference; give at least one.")
                targets.append(target)
                good.append(_given_paths(target))
                if self.pairing is not None and not good[-1]:
                    raise ValueError(f"example {i} has no good path; with pairing= give reference sentences or paths.")
                continue
            found = judged(lattice, references, cost, int(self.n_good), i)
            targets.append(found.target)
            good.append([*found.good])
        return targets, good

    def _text_cost(self) -> TextCost:
        if callable(self.cost):
            return self.cost
        if not isinstance(self.cost, str) or self.cost not in COSTS:
            raise ValueError(f"cost is {self.cost!r:.60}; give {', '.join(COSTS)} or a function.")
        return COSTS[self.cost]

    def _several(self, good: list[list[object]]) -> Formulation:
        if not good:
            raise ValueError("every lattice has one output only, so there is nothing to learn; give other ones.")
        if self.loss != "hinge" or self.rescaling not in (None, "unit"):
            raise ValueError('pairing= has margins of 1: use loss="hinge", and rescaling=None or "unit".')
        return References(good, cast(str, self.pairing), self.penalty, n_gram_distance)

    def _bind_held_out(self, X: Lattices, y: Targets | None) -> LatticeBound:
        lattices = _lattices(X)
        return self.model_.bind(lattices, None if y is None else self._targets(lattices, y)[0], layout=self.layout_)

    def _predict_codes(self, weights: np.ndarray, X: Lattices) -> list[Chosen]:
        lattices = _lattices(X)
        if not lattices:
            return []
        found = self._bind_held_out(lattices, None).argmax(weights).outputs
        arcs = [self.layout_.output(codes) for codes in found]
        return [Chosen(lattice.text(path), path) for lattice, path in zip(lattices, arcs, strict=True)]

    def _score_predictions(self, y: Targets, predicted: list[Chosen], weights: np.ndarray | None = None) -> float:
        """BLEU of the corpus, from 0 to 100; where targets are no sentences, the mean cost, negative."""
        given = _one_each(predicted, y)
        references = [as_references(target) for target in given]
        if not predicted:
            return 0.0
        if None in references:
            costs = [self.layout_.cost(target, found.arcs) for target, found in zip(given, predicted, strict=True)]
            return -float(np.average(costs, weights=weights))
        counts = bleu_statistics([found.text.split() for found in predicted], cast(list[list[Words]], references))
        return bleu_of(counts.sum(axis=0) if weights is None else weights @ counts).score

    def _fitted(self) -> Fitted:
        return Fitted(self.layout_, self.weights_, stand_ins={"cost": lambda: "bleu"})

    def _take_fitted(self, fitted: Fitted) -> None:
        self.model_, self.layout_, self.weights_ = LatticeModel(), fitted.layout_as(LatticeLayout), fitted.weights


def _lattices(X: object) -> list[Lattice]:
    if isinstance(X, (str, bytes, Lattice)) or not isinstance(X, Iterable):
        raise TypeError(f"X is {X!r:.60}; give a list of lattices.")
    return [as_lattice(x, i) for i, x in enumerate(X)]


def _one_each(X: Sequence[object], y: Targets) -> list[object]:
    if isinstance(y, str) or not isinstance(y, Iterable):
        raise TypeError(f"y is {y!r:.60}; give the references of each lattice.")
    given = list(listed(y))
    if len(given) != len(X):
        raise ValueError(f"X has {len(X)} lattices and y has {len(given)} targets; they must agree.")
    return given


def _given_paths(target: object) -> list[object]:
    """The good paths among what a model learns from; none in costs of arcs and sets of arcs."""
    if not isinstance(target, (list, tuple)) or not len(target):
        return []
    return list(target) if isinstance(target[0], (list, tuple)) else [target]
