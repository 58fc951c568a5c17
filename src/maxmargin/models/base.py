"""What every bound model has: the searches that find its most violating outputs, and the one decoding.

A model is bound to data once (``bind``), and the result answers one question for any example: which output maximises
``w . phi(x, y) + cost_weight * cost(y)``, and what is its plane. Compiled models answer through a kernel of the one
signature in :mod:`maxmargin.models.signature`; models in plain Python through a method.

A *search* turns that question into another one: :data:`SEARCHES` names those that serve every model, and a model may
bring its own, exact ones (``searches``).
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from maxmargin.contracts import Answer, Answers, LabelBlocks, Layout, ModelKernel
from maxmargin.costs.units import unit_of
from maxmargin.door import weight_vector
from maxmargin.needs import refusal

__all__ = [
    "POWERS", "SEARCHES", "BoundModel", "CompiledModel", "by_all_costs", "cut_out", "digest", "laid_out",
    "least_positive", "offsets_of", "unit_where_small",
]  # fmt: skip

POWERS = {"slack": 1.0, "sqrt_slack": 0.5, "best_wrong": 0.0}  # p of ``cost^p (lam - w . psi)``, over wrong outputs
SEARCHES = ("argmax", *POWERS)
MOST_CELLS = 10_000_000  # of a table over all costs of one example: 80 megabytes
FEW = 8  # examples that are decoded from Python: handing a kernel to a compiled loop takes longer than a sentence
REFUSALS = {
    "slack": ('rescaling="slack"', 'use rescaling="margin"'),
    "sqrt_slack": ('rescaling="sqrt_slack"', 'use rescaling="slack" or "margin"'),
    "best_wrong": ('rescaling="unit"', 'use rescaling="margin"'),
}  # who asks for a search that a model does not have, and what would work


@dataclass(frozen=True)
class BoundModel(ABC):
    """A model bound to n examples; see :class:`maxmargin.contracts.BoundModel`.

    Parameters
    ----------
    n_examples : int
    layout : Layout
        What was learned from the training data (labels, widths); binds further data to the same weights.
    capabilities : frozenset of str
        What the model offers beyond the argmax, in the words of :data:`maxmargin.needs.CAPABILITIES`.
    """

    n_examples: int
    layout: Layout
    capabilities: frozenset[str] = frozenset({"exact"})

    @property
    def n_weights(self) -> int:
        return self.layout.n_weights

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Digest of the data and the cost: multipliers of one problem prove nothing about another."""

    @property
    def needs_positive(self) -> np.ndarray | None:
        """Weights that must be >= 0 for the argmax to be exact, bool (n_weights,); None when all are free."""
        return None

    @abstractmethod
    def kernel(self, search: str = "argmax") -> ModelKernel | None:
        """The compiled form with one of its searches; None for a model in plain Python."""

    @abstractmethod
    def answer(self, w: np.ndarray, example: int, cost_weight: float, search: str = "argmax") -> Answer:
        """The most violating output of one example by a search, as ``(psi, cost)`` with its value and bound."""

    @abstractmethod
    def argmax(self, w: np.ndarray, examples: np.ndarray | None = None, cost_weight: float = 0.0) -> Answers:
        """Best outputs of some examples (None: of all)."""

    def content(self, example: int, codes: np.ndarray) -> np.ndarray:
        """What tells outputs apart, part by part: the codes, unless a model says otherwise."""
        return codes

    def no_search(self, search: str) -> ValueError:
        """The error of a search that this model does not have."""
        name = type(self.layout).__name__.removesuffix("Layout").lower()
        asker, remedy = REFUSALS.get(search, (f"search={search!r}", f"searches are {', '.join(SEARCHES)}"))
        return refusal(asker, {search}, f"the {name} model", remedy)


@dataclass(frozen=True, kw_only=True)
class CompiledModel(BoundModel):
    """A bound model with a kernel; most of its fields are those of :class:`~maxmargin.contracts.ModelKernel`."""

    room: int
    iwork_size: int
    fwork_size: int
    plane: Callable[..., int]
    meta: np.ndarray
    ints: np.ndarray
    floats: np.ndarray
    output_at: np.ndarray  # where the decoded output of each example begins in one flat array, (n_examples + 1,)
    # whether the kernel relies on finite weights; those that only compare scores stay within their arrays with any
    needs_finite: bool = True
    # searches of the model's own, which take the place of those for every model
    searches: Mapping[str, Callable[[CompiledModel], ModelKernel]] = field(default_factory=dict, repr=False)
    # the least positive cost of each example's outputs (0: none costs anything); empty when not known
    least_cost: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    labels: LabelBlocks | None = field(default=None, repr=False)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the packed data, which holds features, labels, costs and constraints."""
        return digest(self.meta, self.ints, self.floats)

    def kernel(self, search: str = "argmax") -> ModelKernel:
        """The compiled form with one of its searches; a ValueError when it has no such search."""
        if search in self.searches:
            return self.searches[search](self)
        from maxmargin.models import search_kernel as sk

        if search == "argmax":
            return self.packed(sk.argmax)
        known = len(self.least_cost) > 0
        if search not in SEARCHES or (search == "best_wrong" and not known):
            raise self.no_search(search)
        numbers = self.least_cost if known else np.zeros(self.n_examples)
        return self.packed(sk.best_wrong if search == "best_wrong" else sk.slack, POWERS[search], numbers)

    def packed(
        self, search: Callable[..., int], power: float | None = None, numbers: np.ndarray | None = None
    ) -> ModelKernel:
        """The model's arrays and functions, with what its search reads: a power of the cost, a number per example."""
        meta, floats = self.meta, self.floats
        if power is not None:
            meta = np.append(meta, len(floats))
            floats = np.concatenate([floats, [power], np.zeros(0) if numbers is None else numbers])
        sizes = (self.room, self.iwork_size, self.fwork_size, self._longest)
        return ModelKernel(self.plane, search, meta, self.ints, floats, *sizes, self.labels)

    @property
    def _longest(self) -> int:
        return int(np.diff(self.output_at).max(initial=1))

    def workspace(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Fresh scratch (iwork, fwork, output) for one thread."""
        return np.zeros(self.iwork_size, np.int32), np.empty(self.fwork_size), np.empty(self._longest, np.int32)

    def answer(self, w: np.ndarray, example: int, cost_weight: float, search: str = "argmax") -> Answer:
        """As the loops over examples ask it, for one example and from Python."""
        k = self.kernel(search)
        index, value, result = np.empty(self.room, np.int32), np.empty(self.room), np.ones(5)
        w = np.ascontiguousarray(w, np.float64)
        k.search(k.plane, k.meta, k.ints, k.floats, w, example, cost_weight, 1, *k.workspace(), index, value, result)
        nnz = int(result[3])
        return Answer(index[:nnz], value[:nnz], float(result[2]), float(result[0]), float(result[1]), int(result[4]))

    def argmax(self, w: np.ndarray, examples: np.ndarray | None = None, cost_weight: float = 0.0) -> Answers:
        """Best outputs of some examples as integer codes; a ValueError when one of them allows no output."""
        from maxmargin.models.search_kernel import decode_batch

        examples = np.arange(self.n_examples) if examples is None else np.asarray(examples, np.int64)
        w = weight_vector(w[: self.n_weights], self.n_weights, values=self.needs_finite)
        lengths = (self.output_at[1:] - self.output_at[:-1])[examples]
        at = offsets_of(lengths)
        outputs = np.empty(at[-1], np.int32)
        cost, value, bound = np.empty(len(examples)), np.empty(len(examples)), np.empty(len(examples))
        decode = decode_batch if len(examples) > FEW else decode_batch.py_func
        stuck = decode(
            self.plane, self.meta, self.ints, self.floats, w, examples, cost_weight, *self.workspace(), at, outputs,
            cost, value, bound,
        )  # fmt: skip
        if stuck >= 0:
            i = examples[stuck]
            weight_vector(w, self.n_weights, logarithms=True)
            raise ValueError(f"example {i}: the constraints and fixed labels together allow no output; loosen some.")
        return Answers([outputs[at[e] : at[e + 1]] for e in range(len(examples))], value, bound, cost)


def laid_out(parts: Mapping[int, np.ndarray], meta: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """One flat array of all parts in turn; ``meta`` receives under each part's key where it begins."""
    meta[list(parts)] = offsets_of([part.size for part in parts.values()])[:-1]
    flat = [np.empty(0, dtype), *(part.ravel() for part in parts.values())]
    return np.concatenate(flat, dtype=dtype, casting="same_kind")


def cut_out(
    array: np.ndarray, meta: np.ndarray, keys: Sequence[int], own: Mapping[int, slice | np.ndarray]
) -> np.ndarray:
    """An array of :func:`laid_out` with less in some parts: a slice of them, or another array; ``meta`` follows.

    ``keys`` are those of all its parts, in order.
    """
    ends, parts = [*meta[list(keys[1:])].tolist(), len(array)], {}
    for key, begin, end in zip(keys, meta[list(keys)].tolist(), ends, strict=True):
        kept = own.get(key, slice(None))
        parts[key] = array[begin:end][kept] if isinstance(kept, slice) else kept
    return laid_out(parts, meta, array.dtype)


def by_all_costs(
    search: Callable[[], Callable[..., int]], units: np.ndarray
) -> dict[str, Callable[[CompiledModel], ModelKernel]]:
    """Slack searches of a model that tabulates all costs; ``units`` (n_examples,) are 0 where it cannot."""

    def packed(bound: CompiledModel, power: float) -> ModelKernel:
        return bound.packed(search(), power, np.concatenate([bound.least_cost, units]))

    return {name: partial(packed, power=POWERS[name]) for name in ("slack", "sqrt_slack")}


def unit_where_small(costs: np.ndarray) -> float:
    """The unit of costs (T, K) of T parts, 0 where they have none or the table over all costs would be too large."""
    unit = unit_of(costs)
    if not unit or costs.size * (costs.max(axis=1).sum() / unit + 1.0) > MOST_CELLS:
        return 0.0
    return unit


def least_positive(costs: np.ndarray) -> float:
    """The least number above 0; 0 when there is none."""
    return float(np.min(costs, where=costs > 0, initial=np.inf)) if (costs > 0).any() else 0.0


def offsets_of(lengths: ArrayLike) -> np.ndarray:
    """Where parts of these lengths begin, one behind the other, and where the last ends, int64 (n + 1,)."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def digest(*arrays: np.ndarray) -> str:
    """Hexadecimal digest of the contents of arrays."""
    state = hashlib.sha256()
    for array in arrays:
        state.update(f"{array.dtype.str}{array.shape}".encode())
        state.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
    return state.hexdigest()
