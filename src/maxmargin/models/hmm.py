"""The hidden Markov model with categorical observations: weights are log-probabilities.

    w . phi(x, y) = ln initial[y_1] + sum_t ln transition[y_{t-1}, y_t] + sum_t ln emission[y_t, x_t] = ln P(y, x)

Rabiner 1989, A tutorial on hidden Markov models and selected applications in speech recognition.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maxmargin.costs import as_cost
from maxmargin.models.base import by_all_costs, laid_out, least_positive, offsets_of, unit_where_small
from maxmargin.models.labels import Labels, check_count, check_lengths, plain
from maxmargin.models.layout_state import StateReader, StorableLayout, check_log_probabilities, facts_of
from maxmargin.models.sequence_bound import SequenceBound
from maxmargin.models.tables import Tables
from maxmargin.parameters import Parameters

__all__ = ["HMM", "HMMBound", "HMMLayout"]

Lists = list[list[Hashable]]
UNKNOWN = ("error", "missing")


@dataclass(frozen=True)
class HMMLayout(StorableLayout):
    """Where each log-probability lives: initial K, transition K x K, emission K x V."""

    states: Labels
    symbols: Labels
    cost_table: np.ndarray
    normalize: bool
    margin: float
    unknown: str

    @property
    def n_weights(self) -> int:
        K, V = len(self.states), len(self.symbols)
        return K + K * K + K * V

    @cached_property
    def tables(self) -> Tables:
        """One table for the initial state, and two for each state: what follows it, what it emits."""
        K, V, states = len(self.states), len(self.symbols), self.states.classes
        names = ["initial"] + [f"transition from {s!r}" for s in states] + [f"emission of {s!r}" for s in states]
        return Tables.of([K] + [K] * K + [V] * K, names)

    def values(self, j: int) -> list[Hashable]:
        """What the entries of table ``j`` stand for."""
        return (self.states if j <= len(self.states) else self.symbols).classes

    def groups(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """``initial`` (K,), ``transition`` (K, K) and ``emission`` (K, V)."""
        K, V = len(self.states), len(self.symbols)
        tables = {"transition": w[K : K + K * K].reshape(K, K), "emission": w[K + K * K : self.n_weights].reshape(K, V)}
        return {"initial": w[:K]} | tables

    def join(self, initial: np.ndarray, transition: np.ndarray, emission: np.ndarray) -> np.ndarray:
        """The weights of three tables."""
        w, K, V = np.empty(self.n_weights), len(self.states), len(self.symbols)
        for (name, part), given in zip(self.groups(w).items(), (initial, transition, emission), strict=True):
            if np.shape(given) != part.shape:
                raise ValueError(f"{name} has shape {np.shape(given)}; {K} states and {V} symbols need {part.shape}.")
            part[...] = given
        return w

    def names(self) -> list[Hashable]:
        """The symbols, in the order of their weights."""
        return list(self.symbols.classes)

    def output(self, codes: np.ndarray) -> list[Hashable]:
        """States of a decoded sequence."""
        return self.states.decode(codes)

    def cost(self, y_true: Sequence[Hashable], y: Sequence[Hashable]) -> float:
        """Cost of one sequence of states where another is true."""
        return self.states.cost(self.cost_table, y_true, y, self.normalize)

    def to_state(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        return facts_of(self, unknown=self.unknown), {"cost": self.cost_table}

    @classmethod
    def from_state(cls, facts: Mapping[str, object], tensors: Mapping[str, np.ndarray]) -> HMMLayout:
        state = StateReader(facts, tensors)
        table = state.cost_table("cost", len(state.labels("states")))
        return cls(**state.announced(cls, cost_table=table, unknown=state.choice("unknown", UNKNOWN)))

    check_weights = staticmethod(check_log_probabilities)


@dataclass(frozen=True, kw_only=True)
class HMMBound(SequenceBound):
    """The hidden Markov model bound to n sequences."""

    layout: HMMLayout

    def tables(self, w: np.ndarray, example: int, cost_weight: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        from maxmargin.models.hmm_kernel import hmm_table

        K = len(self.layout.states)
        unary = np.empty((self.output_at[example + 1] - self.output_at[example], K))
        hmm_table(self.meta, self.ints, self.floats, w, example, cost_weight, unary.reshape(-1))
        return unary, self.layout.groups(w)["transition"][None]

    @property
    def codes(self) -> tuple[np.ndarray, np.ndarray]:
        """States and symbols of all positions, -1 for missing symbols."""
        from maxmargin.models import hmm_kernel as hk

        states, symbols = (self.ints[at : at + self.output_at[-1]] for at in self.meta[[hk.AT_LABELS, hk.AT_SYMBOLS]])
        return states, symbols

    def truth(self, example: int) -> np.ndarray:
        return self.codes[0][self.output_at[example] : self.output_at[example + 1]]

    def _events(self) -> np.ndarray:
        """Entries of the tables that each position uses, (positions, 2), -1 for none: of its state, of its symbol."""
        K, V, N = len(self.layout.states), len(self.layout.symbols), int(self.output_at[-1])
        states, symbols = (codes.astype(np.int64) for codes in self.codes)
        events = np.empty((N, 2), np.int64)
        events[1:, 0] = K + states[:-1] * K + states[1:]
        first = self.output_at[:-1][np.diff(self.output_at) > 0]
        events[first, 0] = states[first]
        events[:, 1] = np.where(symbols >= 0, K + K * K + states * V + symbols, -1)
        return events

    def counts(self) -> np.ndarray:
        """How often each entry of the tables occurs in the sequences, (n_weights,)."""
        events = self._events().ravel()
        return np.bincount(events[events >= 0], minlength=self.n_weights).astype(np.float64)

    def log_joint(self, w: np.ndarray) -> np.ndarray:
        """``w . phi(x, y)`` of each sequence with its own states: ``ln P(x, y)`` when the weights are normalised."""
        events = self._events()
        scores = np.where(events >= 0, w[events], 0.0).sum(axis=1)
        example = np.repeat(np.arange(self.n_examples), np.diff(self.output_at))
        return np.bincount(example, scores, self.n_examples)


@dataclass(kw_only=True, repr=False, eq=False)
class HMM(Parameters):
    """A hidden state for every position, an observed symbol for each.

    Parameters
    ----------
    cost : str, mapping, array, callable or Cost
        Cost of a state where another is true, added up over positions; see :func:`maxmargin.costs.as_cost`.
    classes, symbols : sequence of hashable, optional
        All states and symbols that may occur; learned from the training data when missing.
    margin : float
        Margin asked for each unit of cost. Log-probabilities have a scale of their own, so this is a choice.
    unknown : {"error", "missing"}
        What a symbol never seen is: an error, or a missing observation. None and NaN are always missing.
    """

    cost: object = "hamming"
    classes: Sequence[Hashable] | None = None
    symbols: Sequence[Hashable] | None = None
    margin: float = 1.0
    unknown: str = "error"

    def bind(self, X: object, Y: object = None, *, layout: HMMLayout | None = None) -> HMMBound:
        """Pack sequences (and their states) for the kernel.

        Parameters
        ----------
        X : list of n sequences of symbols
        Y : list of n sequences of states; missing at prediction time
        layout : HMMLayout of the training data, for further data
        """
        observed = _lists(X, "X", "symbol")
        hidden = None if Y is None else _lists(Y, "y", "state")
        lengths = [len(x) for x in observed]
        if hidden is not None:
            check_lengths(lengths, hidden, "y", "observations", "states")
        if layout is None:
            layout = self._layout(observed, hidden)
        symbols = _symbols(layout, observed)
        states = None if hidden is None else [layout.states.encode(y, i) for i, y in enumerate(hidden)]
        return _pack(layout, lengths, symbols, states)

    def _layout(self, X: Lists, Y: Lists | None) -> HMMLayout:
        if self.unknown not in UNKNOWN:
            raise ValueError(f"unknown must be one of {', '.join(UNKNOWN)}; got {self.unknown!r}.")
        if not (isinstance(self.margin, (int, float, np.number)) and np.isfinite(self.margin) and self.margin >= 0):
            raise ValueError(f"margin must be a finite number >= 0, got {self.margin!r}.")
        if self.classes is None and Y is None:
            raise ValueError("states are needed to learn the layout of a hidden Markov model; pass Y.")
        states = Labels.chosen(self.classes, (state for y in Y or [] for state in y))
        for i, x in enumerate(X if self.symbols is None else []):
            odd = next((o for o in x if isinstance(o, float) and not _missing(o) and not o.is_integer()), None)
            if odd is not None:
                what = f"example {i} has the observation {odd}, which looks continuous; this model is for categories"
                raise ValueError(f"{what}. Bin the values first, or name all that may occur in symbols=.")
        symbols = Labels.chosen(self.symbols, (o for x in X for o in x if not _missing(o)))
        if len(states) == 0:
            raise ValueError("every sequence is empty; at least one position with a state is needed.")
        if any(_missing(state) for state in states.classes):
            i = next(i for i, y in enumerate(Y or []) if any(map(_missing, y)))
            raise ValueError(f"example {i} has a position without a state; give it one, or leave the example out.")
        if len(symbols) == 0:
            raise ValueError("every observation is missing; at least one symbol is needed.")
        cost = as_cost(self.cost)
        table = np.ascontiguousarray(cost.table(states.classes), np.float64)
        layout = HMMLayout(states, symbols, table, cost.normalize, float(self.margin), self.unknown)
        what = f"{len(states)} states and {len(symbols)} symbols make"
        check_count(layout.n_weights, "weights", what, "map rare symbols to one")
        return layout


def _missing(symbol: object) -> bool:
    return symbol is None or symbol != symbol


def _lists(sequences: object, name: str, what: str) -> Lists:
    if isinstance(sequences, (str, bytes)) or not isinstance(sequences, Iterable):
        raise TypeError(f"{name} must be a list of sequences, got {type(sequences).__name__}.")
    lists = []
    for i, sequence in enumerate(sequences):
        if not isinstance(sequence, Iterable):
            wrong = f"example {i} of {name} is {sequence!r}; give a sequence with one {what} for each position"
            raise TypeError(f"{wrong}. For a single sequence pass [{name}].")
        if isinstance(sequence, np.ndarray):
            if sequence.ndim == 2 and sequence.shape[1] == 1:
                sequence = sequence[:, 0]  # a column of symbols, as other libraries write sequences
            if sequence.ndim != 1:
                raise ValueError(f"example {i} of {name} has shape {sequence.shape}; one {what} a position is needed.")
        lists.append(plain(sequence))
    return lists


def _symbols(layout: HMMLayout, X: Lists) -> list[np.ndarray]:
    code, lists = layout.symbols.code, []
    for i, x in enumerate(X):
        codes = np.full(len(x), -1, np.int32)
        for t, symbol in enumerate(x):
            try:
                codes[t] = code.get(symbol, -1)
            except TypeError:
                raise TypeError(f"example {i}, position {t}: {symbol!r} cannot be a symbol: not hashable.") from None
            if codes[t] < 0 and not _missing(symbol) and layout.unknown == "error":
                hint = " Continuous values must be binned first." if isinstance(symbol, float) else ""
                what = f"example {i}, position {t} has the symbol {symbol!r}, which training has not seen"
                raise ValueError(f'{what}. Pass symbols= with all that may occur, or set unknown="missing".{hint}')
        lists.append(codes)
    return lists


def _pack(layout: HMMLayout, lengths: list[int], symbols: list[np.ndarray], states: list | None) -> HMMBound:
    from maxmargin.models import hmm_kernel as hk

    n, K, V = len(lengths), len(layout.states), len(layout.symbols)
    offsets, longest, empty = offsets_of(lengths), max([1, *lengths]), np.empty(0, np.int32)
    scale = layout.margin * (1.0 / np.maximum(lengths, 1) if layout.normalize else np.ones(n))
    ints = {hk.AT_OFFSETS: offsets, hk.AT_SYMBOLS: np.concatenate([empty, *symbols])}
    ints[hk.AT_LABELS] = np.concatenate([empty, *(states or [])])
    meta = np.zeros(hk.META_SIZE, np.int64)
    one = min(4 * longest + 2, layout.n_weights) + 1
    bits = max(6, int(np.ceil(np.log2(2 * one + 1))))
    meta[[hk.N_STATES, hk.N_SYMBOLS, hk.HAS_LABELS, hk.TABLE_BITS]] = K, V, states is not None, bits
    costs = [s * layout.cost_table[y] for s, y in zip(scale, states or (), strict=states is not None)]
    return HMMBound(
        n_examples=n,
        layout=layout,
        output_at=offsets,
        plane=hk.hmm_plane,
        least_cost=np.array([least_positive(each) for each in costs]),
        searches=by_all_costs(_search, np.array([unit_where_small(each) for each in costs])) if states else {},
        needs_finite=False,
        meta=meta,
        ints=laid_out(ints, meta, np.int32),
        floats=laid_out({hk.AT_COST: layout.cost_table, hk.AT_SCALE: scale}, meta, np.float64),
        room=one + 4 * longest + 2 + longest,
        iwork_size=(1 << bits) + longest,
        fwork_size=longest * K + K,
    )


def _search() -> Callable[..., int]:
    from maxmargin.models.hmm_slack_kernel import hmm_slack

    return hmm_slack
