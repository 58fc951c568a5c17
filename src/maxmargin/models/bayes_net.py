"""The Bayesian network of discrete variables: weights are log-probabilities, and any variables may be unknown.

    w . phi(x, y) = sum_v ln P(x_v | x_parents(v)) = ln P(x, y)

The unknown variables of an example are its *hidden* ones, which have a cost and are to be predicted, and those whose
value is missing. Missing values without anything known below them say nothing and are left out; the others are
maximised along with the hidden ones, and cost nothing. Tables are reduced by what is known, and one junction tree
serves all examples with the same unknown variables.

Pearl 1988, Probabilistic reasoning in intelligent systems. Lauritzen, Spiegelhalter 1988, Local computations with
probabilities on graphical structures.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from maxmargin.costs import as_cost
from maxmargin.inference.junction_tree import MAX_CELLS, JunctionTree, TooWide
from maxmargin.models.base import CompiledModel, least_positive, offsets_of
from maxmargin.models.bayes_net_scheme import HIDDEN, KNOWN, MISSING, Scheme, Schemes
from maxmargin.models.labels import check_count
from maxmargin.models.layout_state import StateReader, StorableLayout, as_labels, check_log_probabilities, facts_of
from maxmargin.models.network import Network
from maxmargin.models.tables import Tables
from maxmargin.parameters import Parameters

__all__ = ["BayesNet", "BayesNetBound", "BayesNetLayout"]

Hidden = Sequence[Sequence[int]] | np.ndarray
INFERENCE = ("exact", "bounded")


@dataclass(frozen=True)
class BayesNetLayout(StorableLayout):
    """Where each log-probability lives, and what mistakes cost.

    ``costs[v]`` (K, K) is that of a value (column) where another (row) is true; other hidden variables cost nothing.
    """

    network: Network
    costs: dict[int, np.ndarray] = field(default_factory=dict)
    normalize: bool = False  # divide the cost of an example by the number of its hidden variables
    margin: float = 1.0

    @property
    def n_weights(self) -> int:
        return self.network.n_weights

    def values(self, j: int) -> list[Hashable]:
        """What the entries of table ``j`` stand for."""
        net = self.network
        return net.states[int(np.searchsorted(net.starts, self.tables.starts[j], side="right")) - 1].classes

    @property
    def tables(self) -> Tables:
        return self.network.tables

    def output(self, code: np.ndarray) -> np.ndarray:
        """Codes of the hidden variables; :meth:`BayesNetBound.filled` puts them into their rows."""
        return code

    def names(self) -> list[tuple]:
        """Each variable with its parents and its states, in the order of their weights."""
        net = self.network
        return list(zip(net.names, net.parents, (tuple(labels.classes) for labels in net.states), strict=True))

    def to_state(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        net = self.network
        lists = {"names": list(net.names), "parents": [list(above) for above in net.parents], "costs": list(self.costs)}
        facts = facts_of(self, **lists, states=[list(labels.classes) for labels in net.states])
        return facts, {f"cost.{v}": table for v, table in self.costs.items()}

    @classmethod
    def from_state(cls, facts: Mapping[str, object], tensors: Mapping[str, np.ndarray]) -> BayesNetLayout:
        state = StateReader(facts, tensors)
        states = [as_labels(classes, "states") for classes in state.items("states")]
        parents = []
        for above in state.items("parents"):
            if type(above) is not list or not all(type(u) is int for u in above):
                raise ValueError("its 'parents' are no positions of variables")
            parents.append(tuple(above))
        names = state.items("names")
        if not all(type(name) is str for name in names):
            raise ValueError("its 'names' of variables are not all text")
        net = Network(tuple(map(str, names)), tuple(states), tuple(parents))
        costs = {}
        for v in state.items("costs"):
            if type(v) is not int or not 0 <= v < len(net):
                raise ValueError(f"its 'costs' have the unknown variable {str(v)[:40]!r}")
            costs[v] = state.cost_table(f"cost.{v}", len(net.states[v]))
        return cls(net, costs, state.flag("normalize"), state.number("margin"))

    check_weights = staticmethod(check_log_probabilities)


@dataclass(frozen=True, kw_only=True)
class BayesNetBound(CompiledModel):
    """The network bound to n rows."""

    layout: BayesNetLayout
    codes: np.ndarray  # int32 (n, v), -1 where missing
    unknown: list[tuple[int, ...]]  # variables of each pattern
    pattern: np.ndarray  # of each example, int64 (n,)

    def counts(self) -> np.ndarray:
        """How often each entry of the tables occurs, (n_weights,); families with a missing value are not counted."""
        return self.layout.network.counts(self.codes)

    def filled(self, outputs: list[np.ndarray]) -> np.ndarray:
        """The codes, with those of unknown variables from decoded outputs."""
        codes = self.codes.copy()
        for p, unknown in enumerate(self.unknown):
            rows = np.flatnonzero(self.pattern == p)
            if unknown and len(rows):
                codes[rows[:, None], unknown] = np.array([outputs[i] for i in rows])
        return codes

    def sums(self, w: np.ndarray, marginals: bool = True) -> tuple[np.ndarray, list[dict[int, np.ndarray]]]:
        """``ln P(known)`` of each row where ``w`` is normalised, (n,), and by pattern the posteriors, if wanted.

        These are mappings of unknown variable to array (rows of the pattern, K).
        """
        from maxmargin.models import bayes_net_kernel as bk

        if "exact" not in self.capabilities:
            raise ValueError("sums need exact trees; raise max_cells, or ask for predictions only.")
        states = self.layout.network.cardinalities
        width = np.array([int(states[list(u)].sum()) if marginals else 0 for u in self.unknown], np.int64)
        at = offsets_of(width[self.pattern])
        flat, values = np.empty(at[-1]), np.empty(self.n_examples)
        iwork, fwork, _ = self.workspace()
        bk.net_sums(self.meta, self.ints, self.floats, w, at, flat, values, iwork, fwork)
        places = self.layout.network.index(self.codes)
        values += np.where(places >= 0, w[places], 0.0).sum(axis=1)  # families without an unknown member
        posteriors: list[dict[int, np.ndarray]] = []
        for p, unknown in enumerate(self.unknown):
            rows = np.flatnonzero(self.pattern == p)
            block = flat[at[rows][:, None] + np.arange(width[p])]
            parts = np.split(block, np.cumsum(states[list(unknown)])[:-1], axis=1) if marginals and unknown else []
            posteriors.append(dict(zip(unknown, parts, strict=False)))
        return values, posteriors


@dataclass(repr=False, eq=False)
class BayesNet(Parameters):
    """Values of some variables of a row from those of the others.

    Parameters
    ----------
    network : Network
    cost : str, mapping, array, callable, Cost, or mapping of variable name to such or to a number
        Cost of a value where another is true, for all hidden variables alike or by name; a number is the weight of a
        wrong value. Added up over hidden variables. See :func:`maxmargin.costs.as_cost`.
    margin : float
        Margin asked for each unit of cost.
    inference : {"exact", "bounded"}
        What happens when a junction tree needs more than ``max_cells`` cells: TooWide, or mini-buckets, whose maxima
        are upper bounds, so that certificates stay valid.
    max_cells : int
    """

    network: Network
    _: KW_ONLY
    cost: object = "hamming"
    margin: float = 1.0
    inference: str = "exact"
    max_cells: int = MAX_CELLS

    def layout(self, hidden: Sequence[int]) -> BayesNetLayout:
        """The layout with the costs of variables that may be hidden."""
        if not (isinstance(self.margin, (int, float, np.number)) and np.isfinite(self.margin) and self.margin >= 0):
            raise ValueError(f"margin must be a finite number >= 0, got {self.margin!r}.")
        if self.inference not in INFERENCE:
            raise ValueError(f"inference must be one of {', '.join(INFERENCE)}; got {self.inference!r}.")
        net, costs, normalize = self.network, {}, False
        by_name = self.cost if isinstance(self.cost, Mapping) and all(name in net.code for name in self.cost) else None
        for v in hidden:
            given = by_name.get(net.names[v], 1.0) if by_name else self.cost
            weight = float(given) if isinstance(given, (int, float, np.number)) else 1.0
            cost = as_cost("hamming" if isinstance(given, (int, float, np.number)) else given)
            try:
                costs[v] = weight * np.ascontiguousarray(cost.table(net.states[v].classes), np.float64)
            except ValueError as error:
                raise ValueError(f"the cost of {net.names[v]!r} cannot be used: {error}") from None
            if not (np.isfinite(weight) and weight >= 0):
                raise ValueError(f"the cost of {net.names[v]!r} is {weight}; give a finite number >= 0.")
            normalize = normalize or cost.normalize
        return BayesNetLayout(net, costs, normalize, float(self.margin))

    def bind(
        self,
        codes: np.ndarray,
        hidden: Hidden,
        *,
        layout: BayesNetLayout | None = None,
        labels: bool = True,
        all_missing: bool = False,
        start: np.ndarray | None = None,
    ) -> BayesNetBound:
        """Pack rows for the kernel.

        Parameters
        ----------
        codes : int array (n, v)
            Values of all variables, -1 where missing; with ``labels`` also the true ones of hidden variables.
        hidden : sequence of n sequences of variables, or bool array (n, v)
            May be empty for an example, which then has no loss.
        layout : BayesNetLayout, optional
        labels : bool
            Whether the values of hidden variables are known and true.
        all_missing : bool
            Keep missing values that have nothing to do with the hidden ones too: their sums matter to likelihoods.
        start : array (n_weights,), optional
            Log-probabilities that complete the missing values of the truth; uniform when not given. The loss asks the
            true values, with this completion, to beat all others.
        """
        codes = np.ascontiguousarray(codes, np.int32)
        kinds = self._kinds(codes, hidden, labels)
        layout = self.layout(np.flatnonzero((kinds == HIDDEN).any(axis=0)).tolist()) if layout is None else layout
        truth = self._complete(codes, layout, start) if labels and (codes < 0).any() else codes
        return self._pack(layout, codes, truth, kinds, labels, all_missing)

    def _kinds(self, codes: np.ndarray, hidden: Hidden, labels: bool) -> np.ndarray:
        """KNOWN, MISSING or HIDDEN for each value, int8 (n, v)."""
        net, n = self.network, len(codes)
        if codes.ndim != 2 or codes.shape[1] != len(net):
            raise ValueError(f"codes have shape {codes.shape}; one column for each of {len(net)} variables is needed.")
        high = np.argwhere(codes >= net.cardinalities)
        if len(high):
            i, v = high[0]
            raise ValueError(f"example {i} has the code {codes[i, v]} for {net.names[v]!r}, beyond its states.")
        kinds = np.where(codes < 0, MISSING, KNOWN).astype(np.int8)
        if isinstance(hidden, np.ndarray) and hidden.dtype == bool:
            if hidden.shape != codes.shape:
                raise ValueError(f"hidden has shape {hidden.shape}, the rows have {codes.shape}; they must agree.")
            kinds[hidden] = HIDDEN
        else:
            if len(hidden) != n:
                raise ValueError(f"there are {n} rows and {len(hidden)} hidden sets; give one for each row.")
            for i, own in enumerate(hidden):
                kinds[i, list(own)] = HIDDEN
        lacking = np.argwhere((kinds == HIDDEN) & (codes < 0))
        if labels and len(lacking):
            i, v = lacking[0]
            raise ValueError(f"example {i} has no value for the hidden variable {net.names[v]!r}; give it one.")
        return kinds

    def _complete(self, codes: np.ndarray, layout: BayesNetLayout, start: np.ndarray | None) -> np.ndarray:
        """Missing values by their most probable ones given all that is known, the truth of hidden ones too."""
        w = np.zeros(layout.n_weights) if start is None else np.ascontiguousarray(start, np.float64)
        kinds = np.where(codes < 0, MISSING, KNOWN).astype(np.int8)
        bound = self._pack(layout, codes, codes, kinds, labels=False, all_missing=True)
        return bound.filled(bound.argmax(w).outputs)

    def _pack(
        self,
        layout: BayesNetLayout,
        codes: np.ndarray,
        truth: np.ndarray,
        kinds: np.ndarray,
        labels: bool,
        all_missing: bool,
    ) -> BayesNetBound:
        from maxmargin.models import bayes_net_kernel as bk

        n, net = len(codes), layout.network
        if not labels:
            codes = np.where(kinds == HIDDEN, np.int32(-1), codes)
        schemes, pattern, found = _group(net, kinds, all_missing)
        floats = [np.zeros(0), *(table.ravel() for table in layout.costs.values())]
        begin = offsets_of([len(table) for table in floats[1:]]).tolist()
        place, n_floats = dict(zip(layout.costs, begin, strict=False)), begin[-1]
        first = truth.copy()  # with all unknown variables at their first value
        examples = np.zeros((n, 2), np.int64)
        program = [np.array([labels], np.int64), examples.reshape(-1)]
        at, exact, room, digits, cells = 1 + 2 * n, True, 1, 1, 1
        ends = np.cumsum(np.bincount(pattern, minlength=len(found)))
        members = np.split(np.argsort(pattern, kind="stable"), ends)[: len(found)]
        for rows, scheme in zip(members, found, strict=True):
            tree = self._tree(schemes, scheme, int(rows[0]))
            costs = [place.get(v, -1) if h else -1 for v, h in zip(scheme.unknown, scheme.hidden, strict=True)]
            floats.append(np.array([layout.margin / (max(sum(scheme.hidden), 1) if layout.normalize else 1)]))
            numbers = schemes.numbers(scheme, costs, n_floats, tree.exact)
            numbers[bk.TREE] = at + len(numbers)
            program += [numbers, tree.ints]
            examples[rows, 0] = at
            first[rows[:, None], scheme.unknown] = 0
            at, n_floats = at + len(numbers) + len(tree.ints), n_floats + 1
            exact, room = exact and tree.exact, max(room, 2 * len(scheme.factors))
            digits = max(digits, tree.digits, *(len(scope) for scope in schemes.scopes(scheme)), 1)
            cells = max(cells, tree.table_size + tree.cells)
        weights, own_at = net.index(first), 0
        ints: list[np.ndarray] = [np.zeros(0, np.int32)]
        for rows, scheme in zip(members, found, strict=True):
            own = [np.maximum(truth[rows[:, None], scheme.unknown], 0), weights[rows[:, None], scheme.factors]]
            ints.append(np.hstack(own).reshape(-1))
            width = len(scheme.unknown) + len(scheme.factors)
            examples[rows, 1] = own_at + width * np.arange(len(rows))
            own_at += width * len(rows)
        check_count(own_at, "numbers", f"{n} rows need", "bind fewer at a time")
        lengths = np.array([len(scheme.unknown) for scheme in found], np.int64)[pattern]
        return BayesNetBound(
            n_examples=n,
            layout=layout,
            capabilities=frozenset({"exact"} if exact else ()),
            plane=bk.net_plane,
            needs_finite=False,
            least_cost=_least_costs(layout, truth, kinds) if labels else np.zeros(0),
            meta=np.concatenate(program),
            ints=np.concatenate(ints).astype(np.int32),
            floats=np.concatenate(floats),
            room=room,
            iwork_size=digits,
            fwork_size=cells,
            output_at=offsets_of(lengths),
            codes=codes,
            unknown=[scheme.unknown for scheme in found],
            pattern=pattern,
        )

    def _tree(self, schemes: Schemes, scheme: Scheme, example: int) -> JunctionTree:
        net, unknown = self.network, scheme.unknown
        states = net.cardinalities[list(unknown)]
        scopes = [(u,) for u in range(len(states))] + schemes.scopes(scheme)
        try:
            try:
                return JunctionTree.build(states, scopes, self.max_cells)
            except TooWide:
                if self.inference == "exact":
                    raise
            return JunctionTree.build(states, scopes, self.max_cells, bounded=True)
        except TooWide as error:
            shown = ", ".join(net.names[v] for v in unknown[:8]) + (", ..." if len(unknown) > 8 else "")
            error.args = (f"example {example}, with {len(unknown)} unknown variables ({shown}): {error}",)
            raise


def _least_costs(layout: BayesNetLayout, truth: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """The least positive cost of a mistake on one hidden variable, for each example; 0 where none costs anything."""
    hidden, least = kinds == HIDDEN, np.full(len(truth), np.inf)
    for v, table in layout.costs.items():
        rows = np.array([least_positive(row) for row in table])
        found = rows[np.maximum(truth[:, v], 0)]
        least = np.where(hidden[:, v] & (found > 0.0), np.minimum(least, found), least)
    scale = layout.margin / np.maximum(hidden.sum(axis=1), 1) if layout.normalize else layout.margin
    return scale * np.where(np.isfinite(least), least, 0.0)


def _group(net: Network, kinds: np.ndarray, all_missing: bool) -> tuple[Schemes, np.ndarray, list[Scheme]]:
    """The different schemes of rows, in order of appearance by kind, and which one each row has."""
    schemes = Schemes(net)
    distinct, inverse = kinds[:1], np.zeros(len(kinds), np.int64)
    if (kinds != distinct).any():  # mostly all rows lack the same variables, and sorting them takes a while
        distinct, inverse = np.unique(kinds, axis=0, return_inverse=True)
    number: dict[Scheme, int] = {}
    which = [number.setdefault(schemes.of(kind, all_missing), len(number)) for kind in distinct.tolist()]
    return schemes, np.array(which, np.int64)[inverse.reshape(-1)], list(number)
