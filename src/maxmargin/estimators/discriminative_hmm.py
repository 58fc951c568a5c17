"""Hidden Markov models trained for their predictions, with real probabilities all the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from sklearn.utils import check_random_state

from maxmargin.estimators.base import Resume, SampleWeight, Stopwatch
from maxmargin.estimators.confidence import WithMarginals
from maxmargin.estimators.examples import Predictions
from maxmargin.estimators.generative_base import GenerativeEstimator, decodable
from maxmargin.estimators.parameters import parameters
from maxmargin.estimators.saveable import Fitted, matrix_cost
from maxmargin.metrics import token_accuracy
from maxmargin.models.hmm import HMM, HMMBound, HMMLayout
from maxmargin.models.labels import label_lists, plain

if TYPE_CHECKING:
    import pandas
    from hmmlearn.hmm import CategoricalHMM

__all__ = ["DiscriminativeHMM"]

Series = Sequence[Sequence[object] | np.ndarray]
Values = Sequence[Hashable] | None

TABLES = ("initial", "transition", "emission")
LEFT = 1e-9  # mass that a table may leave by rounding


@parameters
class DiscriminativeHMM(WithMarginals[Series, list[Hashable]], GenerativeEstimator[Series, Series]):
    """A hidden Markov model whose most probable states are the right ones.

    Minimises, over log-probabilities theta with every table summing to at most 1,
    ``sum_j KL(c_j || e^{theta_j}) + C sum_i s_i loss_i(theta)``, where
    ``loss_i = max_y margin cost(y_i, y) + ln P(y, x_i) - ln P(y_i, x_i)``: the model stays near the reference c and
    puts the true states ahead of all others by a margin. Training ends with a certificate.

    Parameters
    ----------
    cost : str, mapping, array, callable or Cost
        Cost of a state where another is true: "hamming", weights, a matrix over the sorted states, or a function.
    reference : {"ml", "uniform", "smoothed"}, DiscriminativeHMM, or mapping
        What the tables are pulled towards: counts of the training data, uniform distributions, counts with
        ``smoothing`` added, another model, or probabilities ``initial``, ``transition`` and ``emission``
        (``model.tables()``; scikit-learn's ``clone``, hence a grid search, forgets what a model has learned).
    classes, symbols : int, sequence of hashable, or None
        All states and symbols that may occur; a number n stands for 0, ..., n - 1; None learns them from the data.
    unknown : {"error", "missing"}
        What a symbol never seen is at prediction. None and NaN are always missing observations.
    ... and the parameters that all estimators share; see maxmargin.estimators.parameters.

    Attributes
    ----------
    classes_, symbols_ : list
    initial_, transition_, emission_ : arrays (K,), (K, K), (K, V)
        Probabilities. Tables may sum to less than 1; what they leave belongs to values never seen.
    trace_ : pandas.DataFrame, or dict of columns without pandas
        One row per iteration: bounds of (P) (``primal``, ``dual``) and of the proximal problem, and ``estimate``, the
        lower estimate of the paper, which is not a bound, with ``outside``, the number of tables that make it so.
    reference_, counts_, n_seen_, certificate_, history_, status_, n_iter_, seconds_, rounds_
        See :class:`~maxmargin.estimators.generative_base.GenerativeEstimator` and ``Structured``.

    References
    ----------
    Yu, Bertsekas, Rousu. An efficient discriminative training method for generative models.

    Examples
    --------
    >>> from maxmargin import DiscriminativeHMM
    >>> X = [["walk", "shop", "clean"], ["clean", "clean", "walk"]]
    >>> y = [["sun", "sun", "rain"], ["rain", "rain", "sun"]]
    >>> model = DiscriminativeHMM(C=1.0).fit(X, y)
    >>> model.predict([["walk", "clean"]])
    [['sun', 'rain']]
    >>> bool(model.certificate_.relative_gap <= 1e-3)
    True
    """

    parts: ClassVar[str] = "states"
    family: ClassVar[str] = "hidden Markov models"

    classes: int | Values = None
    symbols: int | Values = None

    def fit(self, X: Series, y: Series, sample_weight: SampleWeight = None, *, resume: Resume = None) -> Self:
        """Learn from sequences.

        Parameters
        ----------
        X : list of n sequences of symbols
            None or NaN where an observation is missing.
        y : list of n sequences of states
        sample_weight : array (n,), optional
            Weighs the losses; the counts behind the reference are not weighted.
        resume : path or mapping, optional
            A checkpoint of an interrupted fit on the same examples.
        """
        begin = Stopwatch()
        if y is None:
            raise ValueError("y is missing; give the true states of every sequence.")
        self.model_ = self._model()
        bound = self.model_.bind(X, y)
        if bound.n_examples == 0:
            raise ValueError("X is empty; at least one sequence is needed.")
        self._take_layout(bound.layout)
        self.counts_, self.n_seen_ = bound.counts(), bound.n_examples
        self._take_reference()
        self._train(bound, sample_weight=sample_weight, resume=resume, begin=begin)
        self._keep_trace(bound.n_examples)
        return self

    def partial_fit(self, X: Series, y: Series, sample_weight: SampleWeight = None) -> Self:
        """Learn from further sequences, without those of before.

        What the earlier ones have taught stays in planes and multipliers, and their counts go on counting. The
        objective over all sequences can no longer be known, so the certificate afterwards is not certified; its
        ``dual`` is still a lower bound. The first call is a fit; give it all ``classes`` and ``symbols``.

        Parameters
        ----------
        X, y, sample_weight : as in fit
        """
        if not self._continues():
            return self.fit(X, y, sample_weight)
        bound = self.model_.bind(X, y, layout=self.layout_)
        self.counts_ = self.counts_ + bound.counts()
        self._take_reference()
        self._learn_further(bound, sample_weight)
        return self

    def _model(self) -> HMM:
        return HMM(
            cost=self.cost,
            classes=_values(self.classes, "classes"),
            symbols=_values(self.symbols, "symbols"),
            margin=self.margin,
            unknown=self.unknown,
        )

    def _take_layout(self, layout: HMMLayout) -> None:
        self.layout_ = layout
        self.classes_, self.symbols_ = layout.states.classes, layout.symbols.classes

    def _fitted(self) -> Fitted:
        stand_ins: dict[str, Callable[[], object]] = {
            "cost": lambda: matrix_cost(self.cost, self.classes_),
            "reference": lambda: {name: table.copy() for name, table in self.layout_.groups(self.reference_).items()},
        }
        return Fitted(self.layout_, self.weights_, self._learned(), stand_ins=stand_ins)

    def _take_fitted(self, fitted: Fitted) -> None:
        layout = cast(HMMLayout, fitted.layout)
        self.model_ = self._model()
        self._take_layout(layout)
        self._take_learned(fitted)

    def _aligned(self) -> np.ndarray:
        """What the other model does not know gets no probability, and so the floor."""
        layout, other = self.layout_, cast(DiscriminativeHMM, self.reference)
        rows = [other.layout_.states.code.get(state, -1) for state in layout.states.classes]
        columns = [other.layout_.symbols.code.get(symbol, -1) for symbol in layout.symbols.classes]
        if all(row < 0 for row in rows):
            raise ValueError("the reference model has none of the states of the training data; check the names.")
        initial = np.append(other.initial_, 0.0)[rows]
        transition = np.pad(other.transition_, ((0, 1), (0, 1)))[np.ix_(rows, rows)]
        emission = np.pad(other.emission_, ((0, 1), (0, 1)))[np.ix_(rows, columns)]
        return layout.join(initial, transition, emission)

    def _joined(self, tables: Mapping[str, np.ndarray]) -> np.ndarray:
        if set(tables) != set(TABLES):
            raise ValueError(f"reference has {sorted(map(str, tables))}; give {', '.join(TABLES)}.")
        return self.layout_.join(*(tables[name] for name in TABLES))

    def predict(self, X: Series) -> Predictions[list[Hashable]]:
        """The most probable states of each sequence of symbols."""
        self._check_fitted()
        return Predictions(self._predict_codes(self.weights_, X))

    def log_likelihood(self, X: Series, y: Series | None = None) -> np.ndarray:
        """``ln P(x)`` of each sequence under the renormalised model, or ``ln P(x, y)``."""
        if y is None:
            theta, bound = self._normalised(), self.model_.bind(X, layout=self.layout_)
            return np.array([bound.log_partition(theta, i) for i in range(bound.n_examples)])
        theta = self._normalised()
        return self.model_.bind(X, y, layout=self.layout_).log_joint(theta)

    def mean_cost(self, X: Series, y: Series) -> float:
        """Mean over sequences of the cost of the predicted states."""
        return float(np.mean([self.layout_.cost(plain(a), b) for a, b in zip(y, self.predict(X), strict=True)]))

    def sample(
        self, n: int, length: int, random_state: int | np.random.RandomState | None = None
    ) -> tuple[list[list[Hashable]], list[list[Hashable]]]:
        """``n`` sequences of ``length`` symbols and their states, drawn from the renormalised model.

        ``random_state`` is a seed or a generator of numpy, as in scikit-learn.
        """
        theta, rng = self._normalised(), check_random_state(random_state)
        groups = self.layout_.groups(np.exp(theta))
        cumulative = {name: np.cumsum(table, axis=-1) for name, table in groups.items()}

        def drawn(row: np.ndarray, point: float) -> int:
            return min(int(np.searchsorted(row, point * row[-1], side="right")), len(row) - 1)

        X, Y = [], []
        for _ in range(n):
            states: list[int] = []
            symbols: list[int] = []
            for t, (state, symbol) in enumerate(rng.random_sample((length, 2))):
                states.append(drawn(cumulative["transition"][states[-1]] if t else cumulative["initial"], state))
                symbols.append(drawn(cumulative["emission"][states[-1]], symbol))
            X.append([self.symbols_[s] for s in symbols])
            Y.append([self.classes_[s] for s in states])
        return X, Y

    @property
    def initial_(self) -> np.ndarray:
        return np.exp(self._groups()["initial"])

    @property
    def transition_(self) -> np.ndarray:
        return np.exp(self._groups()["transition"])

    @property
    def emission_(self) -> np.ndarray:
        return np.exp(self._groups()["emission"])

    def tables(self, renormalised: bool = False) -> dict[str, pandas.DataFrame | pandas.Series]:
        """``initial``, ``transition`` and ``emission`` as frames with the names of states and symbols; needs pandas.

        ``renormalised`` divides every table by its sum; as trained, they may leave mass for values never seen.
        """
        try:
            import pandas
        except ImportError:
            raise ImportError("tables() needs pandas; pip install pandas") from None
        self._check_fitted()
        groups = self.layout_.groups(np.exp(self._normalised() if renormalised else self.weights_))
        return {
            "initial": pandas.Series(groups["initial"], index=self.classes_, name="initial"),
            "transition": pandas.DataFrame(groups["transition"], index=self.classes_, columns=self.classes_),
            "emission": pandas.DataFrame(groups["emission"], index=self.classes_, columns=self.symbols_),
        }

    def to_hmmlearn(self) -> CategoricalHMM:
        """As hmmlearn's ``CategoricalHMM``; its states and symbols are the codes in ``classes_`` and ``symbols_``.

        Mass that tables leave belongs to values never seen: where there is any, it goes to one more symbol and one more
        state, the last ones, and that state shows nothing but that symbol. As no data have it, the states that hmmlearn
        predicts, and their probabilities, are those of this model.
        """
        try:
            from hmmlearn.hmm import CategoricalHMM
        except ImportError:
            raise ImportError("to_hmmlearn() needs hmmlearn; pip install hmmlearn") from None
        self._check_fitted()
        groups = self.layout_.groups(np.exp(self.weights_))
        if any((table.sum(axis=-1) < 1 - LEFT).any() for table in groups.values()):
            groups = {
                name: np.append(table, 1.0 - table.sum(axis=-1, keepdims=True), -1) for name, table in groups.items()
            }
            last = {name: np.eye(table.shape[-1])[-1:] for name, table in groups.items() if table.ndim == 2}
            groups |= {name: np.concatenate([groups[name], row]) for name, row in last.items()}
        start, move, show = (np.maximum(groups[name], 0.0) for name in TABLES)
        model = CategoricalHMM(n_components=len(start))
        model.startprob_, model.transmat_ = start / start.sum(), move / move.sum(axis=1, keepdims=True)
        model.emissionprob_, model.n_features = show / show.sum(axis=1, keepdims=True), show.shape[1]
        return model

    @classmethod
    def from_hmmlearn(
        cls, model: CategoricalHMM, classes: Values = None, symbols: Values = None, **parameters: Any
    ) -> Self:
        """A fitted hmmlearn ``CategoricalHMM`` as an estimator that predicts, and may be a ``reference``.

        Parameters
        ----------
        model : hmmlearn.hmm.CategoricalHMM
        classes, symbols : sequence, optional
            Names of its states and symbols, in order; numbers when missing.
        **parameters
            Parameters of the estimator.
        """
        for name in ("startprob_", "transmat_", "emissionprob_"):
            if name not in vars(model):
                raise ValueError(f"the hmmlearn model has no {name}; fit it first.")
        K, V = np.asarray(model.emissionprob_).shape
        own = cls(classes=K if classes is None else classes, symbols=V if symbols is None else symbols)
        own.set_params(**parameters)
        own.model_ = own._model()
        own._take_layout(own.model_.bind([], []).layout)
        own._take_probabilities(own.layout_.join(model.startprob_, model.transmat_, model.emissionprob_))
        return own

    def _bound_scores(self, X: Series) -> tuple[HMMBound, np.ndarray]:
        self._check_fitted()
        return self.model_.bind(X, layout=self.layout_), decodable(self.weights_)

    def _predict_codes(self, weights: np.ndarray, X: Series) -> list:
        bound = self.model_.bind(X, layout=self.layout_)
        return [self.layout_.output(codes) for codes in bound.argmax(decodable(weights)).outputs]

    def _labellings(self, y: Series, predicted: list) -> tuple[list, list]:
        return label_lists(y), predicted

    def _score_predictions(self, y: Series, predicted: list, weights: np.ndarray | None = None) -> float:
        return token_accuracy(label_lists(y), predicted, weights)


def _values(given: int | Values, name: str) -> Values:
    """States or symbols as a list; a number n stands for 0, ..., n - 1."""
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        if given < 1:
            raise ValueError(f"{name} must be a number >= 1, a sequence, or None; got {given}.")
        return range(int(given))
    return cast(Values, given)
