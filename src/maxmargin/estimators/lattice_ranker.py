"""The best output of a lattice or of an n-best list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple, Self, cast

import numpy as np

from maxmargin.contracts import BoundModel, Formulation
from maxmargin.datasets.lattice import Lattice, as_lattice
from maxmargin.estimators.base import Resume, SampleWeight, Stopwatch
from maxmargin.estimators.confidence import RankedOutputs
from maxmargin.estimators.examples import Predictions, listed
from maxmargin.estimators.large_margin import GoodOutputs, LargeMargin
from maxmargin.estimators.lattice_sentences import (
    OWN,
    Judged,
    TextCost,
    as_sentences,
    cheapest,
    judged,
    n_gram_distance,
    text_cost,
)  # fmt: skip
from maxmargin.estimators.parameters import parameters
from maxmargin.estimators.saveable import Fitted
from maxmargin.formulations.problem import check_sample_weight
from maxmargin.metrics.translation import bleu_of, bleu_statistics
from maxmargin.models.lattice import LatticeBound, LatticeLayout, LatticeModel
from maxmargin.models.lattice_targets import as_target, cost_of

__all__ = ["LatticeRanker"]

Lattices = Sequence[Lattice]
Targets = Sequence[object]


class Chosen(NamedTuple):
    """An output: a lattice and the arcs of a path through it."""

    lattice: Lattice
    arcs: list[int]

    @property
    def text(self) -> str:
        return self.lattice.text(self.arcs)


@parameters
class LatticeRanker(RankedOutputs[Lattices, str], LargeMargin[Lattices, Targets]):
    """The best path of a word lattice, or the best hypothesis of an n-best list, learned with a large margin.

    The score of a path is the sum of the scores ``w . x_e`` of its arcs. Training asks that the good output of each
    lattice outscores every other one by its cost. Good is a right sentence where the lattice has it, and else the
    output of least cost. How costs of sentences become costs of arcs is said in
    :mod:`maxmargin.estimators.lattice_sentences`; for n-best lists they are exact.

    Parameters
    ----------
    cost : "bleu" or callable (words, list of words of each right sentence) -> float
        Cost of an output: 1 less its smoothed sentence BLEU, or a function of your own, for n-best lists; with
        ``n_good`` for lattices too. Model files do not hold functions: give yours again before you fit a loaded model.
    n_good : int, optional
        So many outputs of least cost are good, and each must outscore every bad one by 1, or those that ``pairing`` of
        ``fit`` says. When missing, the one good output must outscore every other one by its cost.
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
    n_good: int | None = None

    def fit(
        self,
        X: Lattices,
        y: Targets,
        sample_weight: SampleWeight = None,
        *,
        resume: Resume = None,
        references: GoodOutputs | None = None,
        pairing: str = "all",
    ) -> Self:
        """Learn from lattices and right sentences.

        Parameters
        ----------
        X : list of n :class:`~maxmargin.datasets.lattice.Lattice`
        y : list of n targets
            A right sentence, or a list of several, as text or as lists of words. Or costs of arcs (floats), a set of
            good arcs, or good paths: see :func:`~maxmargin.models.lattice_targets.as_target`.
        sample_weight : array (n,), optional
        resume : checkpoint (path or mapping) of an interrupted fit on the same examples, optional
        references : list, optional
            Further good outputs of each lattice, which its paths say: texts, or paths by their arcs.
        pairing : {"all", "nearest"}
            With ``references`` or ``n_good``: which outputs the good ones must outscore; the nearest have most words
            and pairs of words in common. See :class:`~maxmargin.formulations.references.References`.
        """
        begin, lattices = Stopwatch(), _lattices(X)
        found, formulation = self._judged(lattices, y, references), None
        if self.n_good is not None or references is not None:
            taught, formulation = self._several(found, references, pairing)
            sample_weight = check_sample_weight(sample_weight, len(lattices))[taught]
            lattices, found = [lattices[i] for i in taught], [found[i] for i in taught]
        else:
            self._references(y, None, pairing)
        self.model_ = LatticeModel()
        bound = self.model_.bind(lattices, [one.target for one in found])
        self.layout_ = bound.layout
        return self._fit_bound(bound, sample_weight, resume, begin, formulation)

    @property
    def coef_(self) -> np.ndarray:
        self._check_fitted()
        return self.weights_

    def predict(self, X: Lattices) -> Predictions[str]:
        """What the best path of each lattice says."""
        self._check_fitted()
        return Predictions(chosen.text for chosen in self._predict_codes(self.weights_, X))

    def _judged(self, lattices: list[Lattice], y: Targets, references: GoodOutputs | None = None) -> list[Judged]:
        """What the model learns from: targets, and the good paths of each example."""
        given, cost, n_good = _one_each(lattices, y), text_cost(self.cost), 1 if self.n_good is None else self.n_good
        if isinstance(n_good, bool) or not isinstance(n_good, (int, np.integer)) or n_good < 1:
            raise ValueError(f"n_good is {self.n_good!r:.60}; give a whole number from 1 on, or None.")
        by_cost, found = self.n_good is None and references is None, []
        for i, (lattice, target) in enumerate(zip(lattices, given, strict=True)):
            right = as_sentences(target)
            if right is None:
                if isinstance(target, (list, tuple)) and not len(target):
                    raise ValueError(f"example {i} has no right sentence; give at least one.")
                known = as_target(target, lattice, i)
                found.append(Judged(known, [known.path]) if by_cost else cheapest(lattice, known, int(n_good)))
                continue
            if callable(self.cost) and by_cost and not lattice.flat:
                what = (
                    "example {} is no list, and the cost of its paths must be a sum over arcs, which a function is not"
                )
                raise ValueError(f"{what.format(i)}; give costs of arcs in y, or set n_good for margins of 1.")
            found.append(judged(lattice, right, cost, int(n_good), i))
        return found

    def _several(
        self, found: list[Judged], references: GoodOutputs | None, pairing: str
    ) -> tuple[list[int], Formulation | None]:
        """The examples that teach something, and the formulation of their good outputs."""
        further = [()] * len(found) if references is None else [tuple(outputs) for outputs in references]
        if len(further) != len(found):
            raise ValueError(f"X has {len(found)} lattices and references has {len(further)} entries; they must agree.")
        taught = [i for i, one in enumerate(found) if one.good]  # the others have no output that could be bad
        if not taught:
            raise ValueError("every lattice has one output only, so there is nothing to learn; give other ones.")
        first, more = [found[i].good[0] for i in taught], [[*found[i].good[1:], *further[i]] for i in taught]
        return taught, self._references(first, more, pairing, n_gram_distance)[1]

    def _bind_held_out(self, X: Lattices, y: Targets | None) -> LatticeBound:
        lattices = _lattices(X)
        targets = None if y is None else [one.target for one in self._judged(lattices, y)]
        return self.model_.bind(lattices, targets, layout=self.layout_)

    def _shown(self, bound: BoundModel, example: int, codes: np.ndarray) -> str:
        assert isinstance(bound, LatticeBound)
        return bound.lattices[example].text(self.layout_.output(codes))

    def _predict_codes(self, weights: np.ndarray, X: Lattices) -> list[Chosen]:
        lattices = _lattices(X)
        if not lattices:
            return []
        found = self._bind_held_out(lattices, None).argmax(weights).outputs
        return [Chosen(x, self.layout_.output(codes)) for x, codes in zip(lattices, found, strict=True)]

    def _score_predictions(self, y: Targets, predicted: list[Chosen], weights: np.ndarray | None = None) -> float:
        """BLEU of the corpus, from 0 to 100; where not all targets are sentences, the mean cost, negative."""
        given = _one_each(predicted, y)
        sentences = [right for right in map(as_sentences, given) if right is not None]
        if not predicted:
            return 0.0
        if len(sentences) < len(given):
            targets = [one.target for one in self._judged([chosen.lattice for chosen in predicted], given)]
            costs = [cost_of(target, chosen.arcs) for target, chosen in zip(targets, predicted, strict=True)]
            return -float(np.average(costs, weights=weights))
        counts = bleu_statistics([chosen.text.split() for chosen in predicted], sentences)
        return bleu_of(counts.sum(axis=0) if weights is None else weights @ counts).score

    def _fitted(self) -> Fitted:
        return Fitted(self.layout_, self.weights_, stand_ins={"cost": lambda: OWN})

    def _take_fitted(self, fitted: Fitted) -> None:
        self.model_, self.layout_, self.weights_ = LatticeModel(), cast(LatticeLayout, fitted.layout), fitted.weights


def _lattices(X: object) -> list[Lattice]:
    if isinstance(X, (str, bytes, Lattice)) or not isinstance(X, Iterable):
        raise TypeError(f"X is {X!r:.60}; give a list of lattices.")
    return [as_lattice(x, i) for i, x in enumerate(X)]


def _one_each(X: Sequence[object], y: Targets) -> list[object]:
    if isinstance(y, str) or not isinstance(y, Iterable):
        raise TypeError(f"y is {y!r:.60}; give the target of each lattice.")
    given = list(listed(y))
    if len(given) != len(X):
        raise ValueError(f"X has {len(X)} lattices and y has {len(given)} targets; they must agree.")
    return given
