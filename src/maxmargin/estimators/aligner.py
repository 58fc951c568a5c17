"""Links between the words of two sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import ClassVar, NamedTuple, Self, cast

import numpy as np

from maxmargin.datasets.links import Pair
from maxmargin.estimators.base import Resume, SampleWeight, Stopwatch
from maxmargin.estimators.confidence import RankedOutputs
from maxmargin.estimators.examples import Predictions, listed
from maxmargin.estimators.large_margin import GoodOutputs, LargeMargin
from maxmargin.estimators.parameters import parameters
from maxmargin.estimators.saveable import Fitted
from maxmargin.features.alignment import AlignmentFeatures, sentence_pairs
from maxmargin.metrics.alignments import alignment_report
from maxmargin.models.matching import Matching, MatchingBound, MatchingLayout

__all__ = ["Aligner"]

SentencePairs = Sequence[object]
LinkLists = Sequence[object]


class Linked(NamedTuple):
    """An output: its links, and how many words there are on both sides."""

    links: list[Pair]
    shape: tuple[int, int]


@parameters
class Aligner(RankedOutputs[SentencePairs, list[Pair]], LargeMargin[SentencePairs, LinkLists]):
    """Word alignment, learned with a large margin from a few hundred aligned sentence pairs.

    The score of a set of links is the sum of the scores of its links, less a price for the second, third, ... link of a
    word, plus bonuses for links that touch, on request; without these the best set is found exactly
    (:mod:`maxmargin.models.matching`). Features of word pairs come from three alignment models that are learned,
    without any links, from all sentence pairs at hand, from spelling and position
    (:class:`~maxmargin.features.alignment.AlignmentFeatures`); or give arrays of features of your own, for sentences
    and anything else that has two sides.

    Parameters
    ----------
    max_links : int or (int, int)
        The most links of a word, or of a word on the left and one on the right.
    missed, false : float
        Cost of a sure link that is missed, and of a link that is not even possible.
    neighbours : bool
        Whether links that touch have bonuses of their own: (i, j) with (i + 1, j + 1), and with (i + 1, j - 1). The
        best set then has a proven upper bound, which certificates count, where it is not met; it takes several times as
        long, and there is no ``predict_kbest``.
    features : AlignmentFeatures, optional
        How word pairs become numbers; those of the library by default.
    ... and the parameters that all estimators share; see maxmargin.estimators.parameters.

    Attributes
    ----------
    features_ : AlignmentFeatures or None
        None when arrays of features were given.
    coef_ : array (F,)
        Weights of the features of word pairs, named by ``features_.names()``.
    prices_ : (array, array)
        Prices of the first, second, ... link of a word on the left and on the right.
    bonuses_ : array (2,) or (0,)
        Of links that touch, along the diagonal and across it.

    Examples
    --------
    >>> from maxmargin import Aligner
    >>> pairs = [("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book"), ("ein Haus", "a house")]
    >>> aligner = Aligner().fit(pairs[:3], ["0-0 1-1"] * 3, bitext=pairs)
    >>> aligner.predict(pairs[3:])
    [[(0, 0), (1, 1)]]
    """

    scored: ClassVar[str] = "1 less the alignment error rate"

    max_links: int | tuple[int, int] = 2
    missed: float = 3.0
    false: float = 1.0
    neighbours: bool = False
    features: AlignmentFeatures | None = None

    def fit(
        self,
        X: SentencePairs,
        y: LinkLists,
        sample_weight: SampleWeight = None,
        *,
        bitext: Iterable[object] | None = None,
        resume: Resume = None,
        references: GoodOutputs | None = None,
        pairing: str = "all",
    ) -> Self:
        """Learn from pairs of sentences and their links.

        Parameters
        ----------
        X : list of n pairs (left, right) of sentences
            Each a text, which is split at spaces, or a list of words. Or arrays (words, words, F) of features. With
            ``features=AlignmentFeatures(opinion=True)`` triples (left, right, links of another aligner).
        y : list of n sets of links
            Text such as "0-0 1-2 2?1", where ``?`` marks a possible link, pairs of positions, or
            :class:`~maxmargin.datasets.links.Links`.
        sample_weight : array (n,), optional
        bitext : list of pairs of sentences, optional
            Further pairs without links, for the alignment models: the more, the better. Pairs to be aligned later may
            be among them. They are added to those in X.
        resume : checkpoint (path or mapping) of an interrupted fit on the same examples, optional
        references : list, optional
            Further good sets of links of each pair, which sure links make up.
        pairing : {"all", "nearest"}
            Which sets they must outscore; see :class:`~maxmargin.formulations.references.References`.
        """
        begin = Stopwatch()
        X, y, self.features_ = _examples(X), listed(y), None
        formulation = self._references(y, references, pairing)[1]
        if _are_arrays(X):
            if bitext is not None:
                raise ValueError("bitext is for pairs of sentences; X holds features of your own.")
        else:
            more = [] if bitext is None else list(bitext)
            self.features_ = copy(AlignmentFeatures() if self.features is None else self.features)
            pairs = sentence_pairs(X, self.features_.opinion)
            self.features_.fit([*pairs, *(sentence_pairs(more) if more else [])])
        self.model_ = self._model()
        bound = self.model_.bind(self._arrays(X), y)
        self.layout_ = bound.layout
        return self._fit_bound(bound, sample_weight, resume, begin, formulation)

    @property
    def coef_(self) -> np.ndarray:
        return self._groups()["pair"]

    @property
    def prices_(self) -> tuple[np.ndarray, np.ndarray]:
        self._check_fitted()
        return self.layout_.prices(self.weights_)

    @property
    def bonuses_(self) -> np.ndarray:
        return self._groups()["neighbours"]

    def predict(self, X: SentencePairs) -> Predictions[list[Pair]]:
        """The best links of each pair of sentences, pairs of positions in order."""
        self._check_fitted()
        return Predictions(linked.links for linked in self._predict_codes(self.weights_, X))

    def _model(self) -> Matching:
        return Matching(self.max_links, missed=self.missed, false=self.false, neighbours=self.neighbours)

    def _arrays(self, X: SentencePairs) -> Sequence[np.ndarray]:
        if self.features_ is None and not _are_arrays(X):
            raise ValueError("the aligner was fitted with arrays of features; give such arrays, (words, words, F).")
        return cast(Sequence[np.ndarray], X) if self.features_ is None else self.features_.transform(X)

    def _bind_held_out(self, X: SentencePairs, y: LinkLists | None) -> MatchingBound:
        return self.model_.bind(self._arrays(_examples(X)), None if y is None else listed(y), layout=self.layout_)

    def _predict_codes(self, weights: np.ndarray, X: SentencePairs) -> list[Linked]:
        X = _examples(X)
        if len(X) == 0:
            return []
        bound = self._bind_held_out(X, None)
        found = zip(bound.argmax(weights).outputs, bound.features, strict=True)
        return [Linked(self.layout_.output(codes), x.shape[:2]) for codes, x in found]

    def _score_predictions(self, y: LinkLists, predicted: list[Linked], weights: np.ndarray | None = None) -> float:
        """1 less the alignment error rate."""
        found, shapes = [linked.links for linked in predicted], [linked.shape for linked in predicted]
        return 1.0 - alignment_report(listed(y), found, weights, shapes).error_rate

    def _fitted(self) -> Fitted:
        return Fitted(self.layout_, self.weights_, features=self.features_)

    def _take_fitted(self, fitted: Fitted) -> None:
        layout = cast(MatchingLayout, fitted.layout)
        assert fitted.features is None or isinstance(fitted.features, AlignmentFeatures)
        self.model_, self.layout_, self.weights_ = self._model(), layout, fitted.weights
        self.features_ = fitted.features


def _examples(X: SentencePairs) -> SentencePairs:
    if isinstance(X, (str, bytes)) or not isinstance(X, Iterable):
        raise TypeError(f"X is {X!r:.60}; give a list of pairs of sentences, or of arrays of features.")
    return list(X)


def _are_arrays(X: SentencePairs) -> bool:
    return len(X) > 0 and isinstance(X[0], np.ndarray) and X[0].ndim == 3
