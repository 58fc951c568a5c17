"""Bayesian networks trained for their predictions, with real probabilities all the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self, cast, runtime_checkable

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from maxmargin.costs import MatrixCost
from maxmargin.door import numbers, weight_vector
from maxmargin.estimators.base import Resume, SampleWeight, Stopwatch
from maxmargin.estimators.bayes_net_parts import aligned_network, build_network, column_of, hidden_mask
from maxmargin.estimators.confidence import RankedOutputs
from maxmargin.estimators.generative_base import decodable
from maxmargin.estimators.network_base import Hidden, NetworkEstimator, Probabilities, Target
from maxmargin.estimators.parameters import parameters
from maxmargin.estimators.reporting import labels_told, score_section
from maxmargin.estimators.saveable import Fitted
from maxmargin.models.bayes_net import BayesNet, BayesNetBound, BayesNetLayout
from maxmargin.models.bayes_net_scheme import coding_sets
from maxmargin.models.frames import Frame, encode_column, read_frame
from maxmargin.models.labels import plain
from maxmargin.models.layout_state import check_log_probabilities
from maxmargin.models.network import Network
from maxmargin.pages.html import Section

__all__ = ["DiscriminativeBayesNet"]

UNKNOWN = ("error", "missing")

Column = Sequence[object] | np.ndarray | None


@runtime_checkable
class NamedColumn(Protocol):
    """A column of a frame."""

    name: object

    def tolist(self) -> list: ...


@parameters
class DiscriminativeBayesNet(RankedOutputs[object, object], NetworkEstimator):
    """A Bayesian network whose most probable values of the variables you care about are the right ones.

    Minimises, over log-probabilities theta with every conditional distribution summing to at most 1,
    ``sum_j KL(c_j || e^{theta_j}) + C sum_i s_i loss_i(theta)``, where
    ``loss_i = max_y margin cost(y_i, y) + ln P(y, x_i) - ln P(y_i, x_i)`` over the values y of the hidden variables of
    row i: the network stays near the reference c and puts the true values ahead of all others by a margin. Training
    ends with a certificate.

    Parameters
    ----------
    structure : {"naive", "tan", "chow-liu"}, list of edges, mapping of child to parents, networkx.DiGraph, or Network
        The graph: naive Bayes, tree-augmented naive Bayes or a Chow-Liu tree of the data, or a given one.
    cost : str, mapping, array, callable or Cost, or a mapping of variable to such or to a number
        Cost of a value where another is true, added up over hidden variables.
    reference : {"ml", "uniform", "smoothed"}, DiscriminativeBayesNet, or mapping of variable to table
        What the tables are pulled towards: counts of the training data, uniform distributions, counts with
        ``smoothing`` added, another model of the same graph, or probabilities.
    states : mapping of variable to sequence, optional
        All values that may occur; learned from the training data where missing.
    unknown : {"error", "missing"}
        What a value never seen is. None and NaN are always missing.
    inference : {"exact", "bounded"}
        When a junction tree needs more than ``max_cells`` cells: refuse, or train and predict with mini-buckets, whose
        maxima are upper bounds, so that the certificate stays valid.
    max_cells : int
        The most cells of the tables of a junction tree.
    ... and the parameters that all estimators share; see maxmargin.estimators.parameters.

    Attributes
    ----------
    network_ : Network
    target_ : list of str
        Empty when hidden variables differ by row.
    classes_ : list, or dict of name to list
        States of the target, or of each variable that was hidden.
    reference_, counts_, n_seen_, trace_, certificate_, history_, status_, n_iter_, seconds_, rounds_
        See :class:`~maxmargin.estimators.generative_base.GenerativeEstimator` and ``Structured``.

    Notes
    -----
    Missing values with nothing known below them are summed out, which costs nothing; others are maximised along with
    the hidden variables, and in training the truth is completed once by what the reference finds most probable. The
    ramp does not depend on that completion: the score of the truth is in both of its parts and cancels.

    References
    ----------
    Yu, Bertsekas, Rousu. An efficient discriminative training method for generative models.

    Examples
    --------
    >>> from maxmargin import DiscriminativeBayesNet
    >>> frame = {
    ...     "rain": ["no", "no", "yes", "yes"],
    ...     "wet": ["no", "no", "yes", "no"],
    ...     "cat": ["out", "out", "in", "in"],
    ... }
    >>> model = DiscriminativeBayesNet(structure="naive", C=1.0).fit(frame, target="rain")
    >>> model.predict({"wet": ["yes", None], "cat": ["in", "out"]}).tolist()
    ['yes', 'no']
    """

    scored: ClassVar[str] = "share of right values"

    structure: str | Network | Mapping[str, Sequence[str]] | Iterable[tuple[str, str]] = "naive"
    states: Mapping[str, Sequence[Hashable]] | None = None
    inference: str = "exact"
    max_cells: int = 2**24

    def fit(
        self,
        X: object,
        y: Column = None,
        sample_weight: SampleWeight = None,
        *,
        target: Target = None,
        hidden: Hidden = None,
        resume: Resume = None,
    ) -> Self:
        """Learn from rows.

        Parameters
        ----------
        X : pandas.DataFrame, mapping of name to column, list of mappings, or array (n, v)
            None or NaN where a value is missing.
        y : sequence (n,), optional, the values of the target when X does not hold them
        sample_weight : array (n,), optional, of the losses; the counts behind the reference are not weighted
        target : str or list of str
            What is to be predicted, the same for all rows; with y its name ("class", or the name y has).
        hidden : "coding" or list of n lists of names
            In place of a target: what is to be predicted in each row from the rest of it. "coding" gives the rows in
            turn sets that cover the network, none of which holds two variables that matter to each other directly.
        resume : checkpoint (path or mapping) of an interrupted fit on the same rows, optional
        """
        begin = Stopwatch()
        self.__dict__.pop("n_features_in_", None)  # it belongs to an earlier fit
        self._check_width(X, reset=y is not None)
        frame, targets = self._read(X, y, target, hidden)
        if frame.n_rows == 0:
            raise ValueError("X is empty; at least one row is needed.")
        if self.unknown not in UNKNOWN:
            raise ValueError(f"unknown must be one of {', '.join(UNKNOWN)}; got {self.unknown!r}.")
        network = build_network(self.structure, frame, self.states, targets, self.unknown)
        self._take_network(network, targets, hidden)
        mask = self._mask(frame.n_rows, hidden)
        if not mask.any():
            raise ValueError("no row has a hidden variable, so there is nothing to learn to predict; name some.")
        self._take_layout(self.model_.layout(np.flatnonzero(mask.any(axis=0)).tolist()))
        codes = self._codes(frame)
        bound = self._bind_rows(codes, mask, network.counts(codes))
        self._train(bound, sample_weight=sample_weight, resume=resume, begin=begin)
        self._keep_trace(bound.n_examples)
        return self

    def partial_fit(
        self,
        X: object,
        y: Column = None,
        sample_weight: SampleWeight = None,
        *,
        target: Target = None,
        hidden: Hidden = None,
    ) -> Self:
        """Learn from further rows, without those of before.

        What the earlier ones have taught stays in planes and multipliers, and their counts go on counting. The
        objective over all rows can no longer be known, so the certificate afterwards is not certified; its ``dual`` is
        still a lower bound. The first call is a fit; give it ``states`` when not all values occur in it.

        Parameters
        ----------
        X, y, sample_weight, target, hidden : as in fit
        """
        if not self._continues():
            return self.fit(X, y, sample_weight, target=target, hidden=hidden)
        self._check_width(X)
        hidden = hidden if hidden is not None or self.target_ else self.hidden_
        frame, _ = self._read(X, y, self.target_ or None, hidden)
        mask, codes = self._mask(frame.n_rows, hidden, self.n_seen_), self._codes(frame)
        other = [v for v in np.flatnonzero(mask.any(axis=0)) if v not in self.layout_.costs]
        if other:
            raise ValueError(f"{self.network_.names[other[0]]!r} was not hidden in the first rows; hide it there too.")
        bound = self._bind_rows(codes, mask, self.counts_ + self.network_.counts(codes))
        self._learn_further(bound, sample_weight)
        return self

    def _bind_rows(self, codes: np.ndarray, mask: np.ndarray, counts: np.ndarray) -> BayesNetBound:
        """Rows bound for training at the reference that all ``counts`` so far give."""
        self.counts_ = counts
        self._take_reference()
        return self.model_.bind(codes, mask, layout=self.layout_, start=np.log(self.reference_))

    def _read(self, X: object, y: Column, target: Target, hidden: Hidden) -> tuple[Frame, list[str]]:
        """The frame with y in it, and the names of the targets."""
        frame = read_frame(X)
        targets = [target] if isinstance(target, str) else list(target or [])
        if y is not None:
            if len(targets) > 1:
                raise ValueError("y is one column; for several targets leave y out and keep them in X.")
            name = y.name if isinstance(y, NamedColumn) else None
            targets = targets or [name if isinstance(name, str) else "class"]
            frame = frame.with_column(targets[0], plain(y.tolist() if isinstance(y, (np.ndarray, NamedColumn)) else y))
        if bool(targets) == (hidden is not None):
            raise ValueError('say what is to be predicted: target="name" (or a list), or hidden="coding" or lists.')
        return frame, targets

    def _take_network(self, network: Network, targets: list[str], hidden: object) -> None:
        for name in targets:
            if name not in network.code:
                raise ValueError(f"the target {name!r} is not a variable of the network; correct its name.")
        self.network_, self.target_ = network, targets
        self.hidden_ = "coding" if isinstance(hidden, str) and hidden == "coding" else None
        self.model_ = BayesNet(
            network, cost=self.cost, margin=self.margin, inference=self.inference, max_cells=self.max_cells
        )

    def _take_layout(self, layout: BayesNetLayout) -> None:
        self.layout_, net = layout, layout.network
        named = {net.names[v]: net.states[v].classes for v in layout.costs}
        self.classes_ = named[self.target_[0]] if len(self.target_) == 1 else named

    def _fitted(self) -> Fitted:
        layout, net = self.layout_, self.network_
        parents = {name: [net.names[u] for u in above] for name, above in zip(net.names, net.parents, strict=True)}
        stand_ins: dict[str, Callable[[], object]] = {
            "cost": lambda: {
                net.names[v]: MatrixCost(table, labels=net.states[v].classes, normalize=layout.normalize)
                for v, table in layout.costs.items()
            },
            "reference": lambda: {name: table.copy() for name, table in net.groups(self.reference_).items()},
            "structure": lambda: parents,
        }
        facts = self._learned() | {"target": list(self.target_), "hidden": self.hidden_}
        return Fitted(layout, self.weights_, facts, stand_ins=stand_ins)

    def _take_fitted(self, fitted: Fitted) -> None:
        layout = cast(BayesNetLayout, fitted.layout)
        targets = fitted.state.items("target")
        if not all(type(name) is str for name in targets):
            raise ValueError("its 'target' is not a list of names")
        self._take_network(layout.network, [str(name) for name in targets], fitted.state.fact("hidden"))
        self._take_layout(layout)
        self._take_learned(fitted)

    def _codes(self, frame: Frame, without: Sequence[str] = ()) -> np.ndarray:
        """Codes of the columns of the network, -1 for those left out; int32 (n, v)."""
        codes = np.full((frame.n_rows, len(self.network_)), -1, np.int32)
        for v, (name, labels) in enumerate(zip(self.network_.names, self.network_.states, strict=True)):
            if name in without:
                continue
            if name not in frame.columns:
                raise ValueError(f"the frame has no column {name!r}; add it, with None where a value is missing.")
            codes[:, v] = encode_column(frame.columns[name], labels, name, self.unknown)
        return codes

    def _mask(self, n: int, hidden: Hidden = None, first: int = 0) -> np.ndarray:
        """Which variables are hidden in each row, bool (n, v)."""
        mask = np.zeros((n, len(self.network_)), bool)
        if hidden is None:
            mask[:, [self.network_.code[name] for name in self.target_]] = True
        elif isinstance(hidden, str) and hidden == "coding":
            sets = coding_sets(self.network_)
            for k, own in enumerate(sets):
                mask[(k - first) % len(sets) :: len(sets), list(own)] = True
        else:
            mask = hidden_mask(hidden, self.network_, n)
        return mask

    def _aligned(self) -> np.ndarray:
        other = cast(DiscriminativeBayesNet, self.reference)
        return aligned_network(self.network_, other.network_, np.exp(other.weights_))

    def _joined(self, tables: Mapping[str, np.ndarray]) -> np.ndarray:
        shapes = {name: self.network_.shape(v) for name, v in self.network_.code.items()}
        fits = [name for name, table in tables.items() if table.size == np.prod(shapes.get(name, ()))]
        return self.network_.join({**tables, **{name: tables[name].reshape(shapes[name]) for name in fits}})

    def predict(self, X: object, hidden: Hidden = None) -> object:
        """The most probable values of the target, or of what is hidden, given the rest of each row.

        Parameters
        ----------
        X : as in fit
            Columns of targets may be left out, and are not looked at.
        hidden : list of n lists of names, optional
            Predict these instead.

        Returns
        -------
        array (n,), or frame
            Values of one target; a frame (as X is: pandas or a dict of lists) of several. Without a target, or with
            ``hidden``: the whole rows, with what is hidden, or else what is missing, filled in.
        """
        self._check_fitted()
        return self._predict_codes(self.weights_, X, hidden)

    def predict_marginals(self, X: object) -> np.ndarray | dict[str, np.ndarray]:
        """Posterior probabilities of the values seen in training, missing ones summed out.

        They are those of the model that predicts: mass that tables leave belongs to values never seen, so nothing is
        renormalised first. An array (n, K) of the target; of several targets, or without one of all variables, a dict
        of them by name. Known values have probability 1.
        """
        self._check_fitted()
        self._check_width(X)
        check_log_probabilities(self.weights_)
        theta = weight_vector(self.weights_, self.layout_.n_weights, values=False)
        codes = self._codes(read_frame(X), self.target_)
        wanted = [self.network_.code[name] for name in self.target_] or list(range(len(self.network_)))
        mask = np.zeros(codes.shape, bool)
        mask[:, wanted] = codes[:, wanted] < 0
        bound = self.model_.bind(codes, mask, layout=self.layout_, labels=False)
        _, posteriors = bound.sums(theta)
        answers = {v: np.zeros((len(codes), self.network_.cardinalities[v])) for v in wanted}
        for v in wanted:
            known = np.flatnonzero(codes[:, v] >= 0)
            answers[v][known, codes[known, v]] = 1.0
        for p, tables in enumerate(posteriors):
            rows = bound.pattern == p
            for v in set(tables) & set(wanted):
                answers[v][rows] = tables[v]
        named = {self.network_.names[v]: table for v, table in answers.items()}
        return named[self.target_[0]] if len(self.target_) == 1 else named

    def predict_proba(self, X: object) -> np.ndarray:
        """Posterior probabilities (n, K) of the target's values, in the order of ``classes_``.

        ``P(y | x)`` under the model itself, as :meth:`predict_marginals` has it: training asks for a margin, not for
        calibration, so compare them with held-out frequencies before you read them as such. One target only.
        """
        self._check_fitted()
        if len(self.target_) != 1:
            raise ValueError(
                f"predict_proba needs one target, this model has {len(self.target_)}; use predict_marginals."
            )
        return cast(np.ndarray, self.predict_marginals(X))

    def _bound_scores(self, X: object) -> tuple[BayesNetBound, np.ndarray]:
        self._check_fitted()
        codes = self._codes(read_frame(X), self.target_)
        mask = self._mask(len(codes)) if self.target_ else codes < 0
        return self.model_.bind(codes, mask, layout=self.layout_, labels=False), decodable(self.weights_)

    def log_likelihood(self, X: object, y: Column = None) -> np.ndarray:
        """``ln P`` of all that is known in each row, the target too when it is there, under the renormalised model."""
        theta = self._normalised()
        frame = read_frame(X) if y is None else self._read(X, y, self.target_, None)[0]
        codes = self._codes(frame, [name for name in self.target_ if name not in frame.columns])
        nothing = np.zeros(codes.shape, bool)
        bound = self.model_.bind(codes, nothing, layout=self.layout_, labels=False, all_missing=True)
        return bound.sums(theta, marginals=False)[0]

    def score(self, X: object, y: Column = None, sample_weight: SampleWeight = None, *, hidden: Hidden = None) -> float:
        """Share of values that are right: of targets, of what is hidden, or of all variables, each hidden once.

        The truth stands in X, or that of one target in y; ``hidden`` is as in fit. ``sample_weight`` (n,) says how much
        each row counts.
        """
        right = count = 0.0
        for _, rows, truth, found in self._compared(X, y, hidden):
            weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, np.float64)[rows]
            right, count = right + float(weight @ (truth == found)), count + float(weight.sum())
        return right / count if count else 1.0

    def mean_cost(self, X: object, y: Column = None, *, hidden: Hidden = None) -> float:
        """Mean over rows of the cost of what is predicted; ``hidden`` is as in fit."""
        total = np.zeros(read_frame(X).n_rows)
        for v, rows, truth, found in self._compared(X, y, hidden):
            table = self.layout_.costs.get(v, np.zeros((1, 1)))
            worst = table.max(initial=0.0)  # a value never seen in training cannot be predicted
            cost = table[np.minimum(truth, len(table) - 1), np.minimum(found, len(table) - 1)]
            np.add.at(total, rows, np.where(truth >= 0, cost, worst))
        return float(np.mean(total)) / (max(len(self.target_), 1) if self.layout_.normalize else 1)

    @classmethod
    def from_network(
        cls, network: Network, probabilities: Probabilities, target: Target = None, **parameters: Any
    ) -> Self:
        """A network with its probabilities as an estimator that predicts, and may be a ``reference``.

        Parameters
        ----------
        network : Network
        probabilities : array (n_weights,), or mapping of name to table
            Tables may sum to less than 1.
        target : str or list of str, optional
        **parameters
            Parameters of the estimator.
        """
        own = cls(structure=network, **parameters)
        own._take_network(network, [target] if isinstance(target, str) else list(target or []), None)
        own._take_layout(own.model_.layout([network.code[name] for name in own.target_]))
        p = (
            network.join(probabilities)
            if isinstance(probabilities, Mapping)
            else numbers(probabilities, "probabilities")
        )
        own._take_probabilities(p)
        return own

    def _check_width(self, X: object, reset: bool = False) -> None:
        """For scikit-learn, the number of columns of an array beside y."""
        if isinstance(X, np.ndarray) and X.ndim == 2 and (reset or "n_features_in_" in vars(self)):
            if X.shape[1] == 0:
                raise ValueError(f"X has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
            validate_data(self, X, reset=reset, skip_check_array=True)

    def __sklearn_tags__(self) -> Tags:
        """Arrays of categories are fine; scikit-learn's checks then round their numbers."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = tags.input_tags.categorical = True
        tags.input_tags.string = tags.input_tags.dict = tags.input_tags.allow_nan = True
        return tags

    def _predict_codes(self, weights: np.ndarray, X: object, hidden: Hidden = None) -> Any:
        self._check_width(X)
        frame = read_frame(X)
        target = bool(self.target_) and hidden is None
        codes = self._codes(frame, self.target_ if target else ())
        mask = self._mask(frame.n_rows, hidden) if target or hidden is not None else codes < 0
        filled = self._filled(weights, codes, mask)
        names = self.target_ if target else self.network_.names
        # None where a value is still unknown, because nothing is known below and nothing was asked
        values = {name: [*self.network_.states[self.network_.code[name]].classes, None] for name in names}
        lists = {name: [values[name][k] for k in filled[:, self.network_.code[name]].tolist()] for name in names}
        return column_of(lists[names[0]]) if target and len(names) == 1 else frame.like(lists)

    def _filled(self, weights: np.ndarray, codes: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """The codes, with the most probable ones where the mask hides them."""
        bound = self.model_.bind(codes, mask, layout=self.layout_, labels=False)
        return bound.filled(bound.argmax(decodable(weights)).outputs)

    def _compared(self, X: object, y: Column, hidden: Hidden) -> list[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """Variable, rows, true codes (-1: never seen) and predicted codes of all that is hidden."""
        self._check_fitted()
        self._check_width(X)
        frame = read_frame(X) if y is None else self._read(X, y, self.target_, None)[0]
        hidden = self.hidden_ if hidden is None else hidden
        targets = self.target_ if hidden is None else []
        codes = self._codes(frame, targets)
        for name in targets:
            if name not in frame.columns:
                raise ValueError(f"the frame has no column {name!r}, the truth to compare with; add it, or give y.")
            v = self.network_.code[name]
            codes[:, v] = encode_column(frame.columns[name], self.network_.states[v], name, "missing")
        if isinstance(hidden, str) and hidden == "coding":
            masks = [np.isin(np.arange(len(self.network_)), own) & (codes >= 0) for own in coding_sets(self.network_)]
        elif hidden is None and not targets:
            raise ValueError("say what is hidden in each row: hidden=[[names], ...].")
        else:
            masks = [self._mask(frame.n_rows, hidden)]
        answers = []
        for mask in masks:
            filled = self._filled(self.weights_, codes, mask)
            for v in np.flatnonzero(mask.any(axis=0)).tolist():
                rows = np.flatnonzero(mask[:, v])
                answers.append((v, rows, codes[rows, v], filled[rows, v]))
        return answers

    def _example_sections(self, X: object, y: object) -> list[Section]:
        n, column = read_frame(X).n_rows, cast(Column, y)
        sections = [score_section(self.score(X, column), n, self.scored)]
        for v, _, truth, found in self._compared(X, column, None):
            values = [*self.network_.states[v].classes, "never seen in training"]
            true, predicted = ([[values[k]] for k in codes.tolist()] for codes in (truth, found))
            section = labels_told(true, predicted, "values")
            sections.append(Section(f"Values of {self.network_.names[v]}", section.blocks))
        return sections

    def _score_predictions(self, y: Column, predicted: Iterable[object], weights: np.ndarray | None = None) -> float:
        right = [a == b for a, b in zip(plain(cast("Iterable[Hashable]", y)), predicted, strict=True)]
        return float(np.average(right, weights=weights))
