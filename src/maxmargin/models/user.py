"""A user's own model: four functions in plain Python.

.. code-block:: python

    class Mine:
        exact = True  # argmax finds the true maximum; the default

        def n_weights(self, X, Y) -> int: ...
        def joint_features(self, x, y): ...  # phi(x, y), in any of the forms of `sparse_vector`
        def cost(self, y_true, y) -> float: ...  # >= 0, and 0 for y_true itself
        def argmax(self, x, w, y_true=None, cost_weight=0.0): ...  # max_y w . phi(x, y) + cost_weight * cost(y_true, y)

        def is_valid(self, x, y) -> bool: ...  # optional: whether y is an output at all
        def slack_argmax(self, x, w, y_true): ...  # optional, exact: max_y cost * (1 - w . psi(y))
        def constrained_argmax(self, x, w, y_true, cost_weight, low, high): ...  # optional, exact: as argmax, among y

        # with 0 < low (1 - w . psi(y)) <= cost <= high (1 - w . psi(y)); None where there is none

with ``psi(y) = phi(x, y_true) - phi(x, y)``. ``argmax`` without ``y_true`` is prediction. Slack rescaling asks
``slack_argmax``; without it ``constrained_argmax``, a few times (angular search), and without either ``argmax``, which
may miss the most violating output and leaves a bound. Every answer is checked while
the solver runs, so that a slip in the model stops with the example's name instead of a wrong optimum;
:func:`maxmargin.testing.check_model` looks harder, before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import scipy.sparse as sp

from maxmargin import contracts
from maxmargin.contracts import Answer, Answers, Layout
from maxmargin.features.sequences import Sequences
from maxmargin.models.base import BoundModel, digest
from maxmargin.models.layout_state import StateReader, StorableLayout
from maxmargin.models.search import BY_QUERIES, answer_by_queries
from maxmargin.parameters import Parameters

__all__ = ["Model", "PythonBound", "PythonLayout", "PythonModel", "UserModel", "as_model", "sparse_vector"]

FUNCTIONS = ("n_weights", "joint_features", "cost", "argmax")
Items = Sequence[Any] | np.ndarray | Sequences  # inputs or outputs, by position
ROUNDING = 1e-9  # relative: what rounding may take from an objective


class UserModel(Protocol):
    """The four functions, for any kind of inputs and outputs. Inheriting from this class is not needed."""

    def n_weights(self, X: Any, Y: Any) -> int: ...
    def joint_features(self, x: Any, y: Any) -> object: ...
    def cost(self, y_true: Any, y: Any) -> float: ...
    def argmax(self, x: Any, w: np.ndarray, y_true: Any = None, cost_weight: float = 0.0) -> object: ...


@runtime_checkable
class Model(Protocol):
    """A model that binds examples itself."""

    def bind(
        self, X: Sequence[object], Y: Sequence[object] | None = None, *, layout: Layout | None = None
    ) -> contracts.BoundModel: ...


@dataclass(frozen=True)
class PythonLayout:
    """The user's model and its number of weights: binds further data to the same weights."""

    model: UserModel
    n_weights: int

    def cost(self, y_true: object, y: object) -> float:
        """The user's cost."""
        return self.model.cost(y_true, y)

    def output(self, code: object) -> object:
        """Outputs have no codes."""
        return code

    @property
    def slack_argmax(self) -> Callable[[object, np.ndarray, object], object] | None:
        """The user's search for slack rescaling, where there is one."""
        return self._optional("slack_argmax")

    @property
    def constrained_argmax(self) -> Callable[..., object] | None:
        """The user's argmax within an angle, where there is one."""
        return self._optional("constrained_argmax")

    def _optional(self, name: str) -> Callable[..., object] | None:
        found = getattr(self.model, name, None)
        return found if callable(found) else None

    def to_state(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        """The number of weights, whether it depends on examples, and the class of the model, for people to read."""
        kind, fixed = type(self.model), _weights_without_examples(self.model) == self.n_weights
        return {"n_weights": self.n_weights, "fixed": fixed, "model": f"{kind.__module__}.{kind.__qualname__}"}, {}

    @classmethod
    def from_state(
        cls, facts: Mapping[str, object], tensors: Mapping[str, np.ndarray], model: UserModel | None = None
    ) -> PythonLayout:
        """The layout of a model, which has to be given again: a file does not say what is to be run."""
        state = StateReader(facts, tensors)
        count, fixed = state.whole("n_weights", 1), state.flag("fixed")
        if model is None:
            what = f"it was trained with a model of the user's own, {str(facts.get('model'))[:80]}"
            raise ValueError(f"{what}; give it again: StructuredSVM.load(path, model=...)")
        check_functions(model)
        own = _weights_without_examples(model) if fixed else count
        if own != count:
            raise ValueError(f"it has {count} weights and the model given has {own}; give the one it was trained with")
        return cls(model, count)

    check_weights = StorableLayout.check_weights
    groups = StorableLayout.groups
    names = StorableLayout.names
    real = StorableLayout.real


@dataclass(repr=False, eq=False)
class PythonModel(Parameters):
    """Lets a user's model take the place of a compiled one.

    Parameters
    ----------
    model : object with the functions ``n_weights``, ``joint_features``, ``cost`` and ``argmax``
    """

    model: UserModel

    def bind(self, X: object, Y: object = None, *, layout: PythonLayout | None = None) -> PythonBound:
        """Bind to examples.

        Parameters
        ----------
        X : sequence of n inputs, or a sparse matrix with n rows
        Y : sequence of n outputs; missing at prediction time
        layout : PythonLayout of the training data, for further data
        """
        model = self.model if layout is None else layout.model
        check_functions(model)
        inputs = _items(X)
        outputs = None if Y is None else _items(Y)
        if outputs is not None and len(inputs) != len(outputs):
            raise ValueError(f"X has {len(inputs)} examples and Y has {len(outputs)}; they must agree.")
        if layout is None:
            if outputs is None:
                raise ValueError("outputs are needed to count the weights of a model; pass Y.")
            if len(inputs) == 0:
                raise ValueError("X is empty; at least one example is needed.")
            layout = PythonLayout(model, weight_count(model.n_weights(X, Y)))
        offered = {"exact"} if getattr(model, "exact", True) else set()
        offered |= {"parts"} if all(isinstance(own, (list, tuple, np.ndarray)) for own in (inputs, outputs)) else set()
        offered |= {"constrained"} if layout.constrained_argmax is not None else set()
        return PythonBound(len(inputs), layout, frozenset(offered), X=inputs, Y=outputs)


class _Window:
    """Some of many items, under the numbers that they have among all."""

    def __init__(self, items: Any, first: int, last: int) -> None:
        self.first, self.items = first, items[first:last]

    def __getitem__(self, number: int) -> Any:
        return self.items[number - self.first]


@dataclass(frozen=True)
class PythonBound(BoundModel):
    """A user's model bound to n examples; can be pickled when the user's model, inputs and outputs can."""

    layout: PythonLayout
    X: Items = ()
    Y: Items | None = None
    # phi(x_i, y_i) of the examples asked so far: half of all joint features otherwise
    true_features: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict, repr=False, compare=False)

    def holding(self, first: int, last: int) -> tuple[PythonBound, int]:
        """The same model, numbers included, without the inputs and outputs of others."""
        X, Y = (cast(Items, _Window(items, first, last)) for items in (self.X, self.Y))
        known = {i: self.true_features[i] for i in range(first, last) if i in self.true_features}
        return replace(self, X=X, Y=Y, true_features=known), first

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the joint features of the true outputs; what ``cost`` does is not seen."""
        features = [self._true(i) for i in range(self.n_examples)]
        lengths = np.array([len(index) for index, _ in features] + [self.n_weights])
        return digest(lengths, *(part for pair in features for part in pair))

    def truth(self, i: int) -> Any:
        """The true output of example ``i``."""
        if self.Y is None:
            raise ValueError("this model is bound without outputs, so it has no planes; pass Y to bind.")
        return self.Y[i]

    def _true(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Joint features of the true output of example ``i``, computed once."""
        found = self.true_features.get(i)
        if found is None:
            model, x, y_true = self.layout.model, self.X[i], self.truth(i)
            self_cost = number(model.cost(y_true, y_true), "cost", i)
            if self_cost != 0.0:
                raise ValueError(f"example {i}: cost(y_true, y_true) is {self_cost}; the true output must cost 0.")
            found = self.true_features[i] = sparse_vector(model.joint_features(x, y_true), self.n_weights, i)
        return found

    def kernel(self, search: str = "argmax") -> None:
        """None: this model is in plain Python."""
        if search not in ("argmax", *BY_QUERIES):
            raise self.no_search(search)

    def answer(self, w: np.ndarray, example: int, cost_weight: float, search: str = "argmax") -> Answer:
        """The most violating output of an example; without a cost weight the prediction, whatever the search."""
        slack = search == "slack" and cost_weight > 0.0 and self.layout.slack_argmax is not None
        if search in BY_QUERIES and cost_weight > 0.0 and not slack:
            return answer_by_queries(self, w, example, cost_weight, search)
        w, i, y_true = w[: self.n_weights], example, self.truth(example)
        if slack:
            assert self.layout.slack_argmax is not None
            y, name = self.layout.slack_argmax(self.X[i], w / cost_weight, y_true), "slack_argmax"
        else:
            y, name = self.layout.model.argmax(self.X[i], w, y_true=y_true, cost_weight=cost_weight), "argmax"
        indices, values, cost = self.plane_of(y, i, name)
        terms = w[indices] * values
        size = float(np.abs(terms).sum())
        value = cost * (cost_weight - float(terms.sum())) if slack else cost_weight * cost - float(terms.sum())
        exact = "exact" in self.capabilities
        if slack and value < -ROUNDING * cost * max(cost_weight, size):
            what = f"slack_argmax returned an output of value {value:.6g}; the true output has 0"
            raise ValueError(f"example {i}: {what} and must be returned when there is nothing better.")
        # without cost an output has no reason to look at y_true, so a rough search may end below it
        if not slack and (exact or cost_weight != 0.0) and value < -ROUNDING * max(1.0, size, abs(cost_weight * cost)):
            raise ValueError(
                f"example {i}: argmax returned an output that scores below the true one (by {-value:.6g}, cost_weight "
                f"{cost_weight:g}). argmax must maximise w . phi(x, y) + cost_weight * cost(y_true, y); a search that "
                "may miss the maximum must return y_true when it finds nothing better. maxmargin.testing.check_model "
                "shows which part disagrees."
            )
        return Answer(indices, values, cost, value, max(value, 0.0) if exact else np.inf)

    def answer_between(
        self, w: np.ndarray, example: int, cost_weight: float, mu: float, low: float, high: float
    ) -> Answer | None:
        """The user's ``constrained_argmax``, which speaks of a margin of 1: all is divided by the cost weight.

        Where the model says that it is not exact, plain argmaxes have said so before: their bound is infinite.
        """
        search = self.layout.constrained_argmax
        assert search is not None
        w = w[: self.n_weights]
        ratios = (low * cost_weight, high * cost_weight)
        y = search(self.X[example], w / cost_weight, self.truth(example), mu / cost_weight, *ratios)
        if y is None:
            return None
        indices, values, cost = self.plane_of(y, example, "constrained_argmax")
        h = cost_weight - float(w[indices] @ values)
        if not (low * h * (1.0 - ROUNDING) <= cost <= high * h * (1.0 + ROUNDING)):
            what = f"an output with cost {cost:.9g} and 1 - w . psi = {h / cost_weight:.9g}"
            asked = f"a ratio between {ratios[0]:.9g} and {ratios[1]:.9g}"
            raise ValueError(f"example {example}: constrained_argmax returned {what}; it was asked for {asked}.")
        value = mu * cost + h - cost_weight
        return Answer(indices, values, cost, value, value)

    def argmax(self, w: np.ndarray, examples: np.ndarray | None = None, cost_weight: float = 0.0) -> Answers:
        """Best outputs of some examples; values and costs need the true outputs, and are nan without them."""
        examples = np.arange(self.n_examples) if examples is None else np.asarray(examples)
        w, model = w[: self.n_weights], self.layout.model
        outputs, numbers = [], np.full((3, len(examples)), np.nan)
        for e, i in enumerate(map(int, examples)):
            if self.Y is None:
                outputs.append(self._checked(model.argmax(self.X[i], w), i))
                continue
            y = model.argmax(self.X[i], w, y_true=self.Y[i], cost_weight=cost_weight)
            indices, values, cost = self.plane_of(y, i)
            value = cost_weight * cost - float(w[indices] @ values)
            outputs.append(y)
            numbers[:, e] = value, value if "exact" in self.capabilities else np.inf, cost
        return Answers(outputs, *numbers)

    def plane_of(self, y: object, i: int, name: str = "argmax") -> tuple[np.ndarray, np.ndarray, float]:
        """``phi(x, y_i) - phi(x, y)``, as sorted indices and values, and ``cost(y_i, y)`` of a given output."""
        model, true = self.layout.model, self._true(i)
        y = self._checked(y, i, name)
        cost = number(model.cost(self.truth(i), y), "cost", i)
        found = sparse_vector(model.joint_features(self.X[i], y), self.n_weights, i)
        indices, values = merged(np.concatenate([true[0], found[0]]), np.concatenate([true[1], -found[1]]))
        return indices.astype(np.int32), values, cost

    def _checked(self, y: object, i: int, name: str = "argmax") -> object:
        is_valid = getattr(self.layout.model, "is_valid", None)
        if y is None:
            raise ValueError(f"example {i}: {name} returned None; it must return an output (is a return missing?).")
        if is_valid is not None and not is_valid(self.X[i], y):
            what = f"{name} returned an illegal output, {short(y)} (is_valid says False)"
            raise ValueError(f"example {i}: {what}; search among valid outputs only.")
        return y


def as_model(model: Model | UserModel) -> Model:
    """A model that binds examples: the one given, or one round the functions of a user's."""
    return model if isinstance(model, Model) else cast(Model, PythonModel(model))


def check_functions(model: object) -> None:
    """Refuse what does not have the four functions."""
    missing = [name for name in FUNCTIONS if not callable(getattr(model, name, None))]
    if missing or isinstance(model, type):
        what = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        need = f"without {', '.join(missing)}" if missing else "instead of an object of it"
        raise TypeError(f"the model is {what} {need}; a model is an object with {', '.join(FUNCTIONS)}.")


def _weights_without_examples(model: UserModel) -> int | None:
    """The number of weights of a model that needs no examples to tell it, else None."""
    try:
        return weight_count(model.n_weights([], []))
    except Exception:  # whatever a user's function makes of no examples
        return None


def weight_count(count: object) -> int:
    """The answer of ``n_weights``, checked."""
    if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or not 0 < count < 2**31:
        raise ValueError(f"n_weights returned {count!r}; it must return a whole number from 1 to 2^31 - 1.")
    return int(count)


def number(value: object, what: str, i: int) -> float:
    """A cost as a float: finite and not negative, or a ValueError naming the example."""
    try:
        result = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"example {i}: {what} returned {short(value)}; it must return a number.") from None
    if not (np.isfinite(result) and result >= 0.0):
        raise ValueError(f"example {i}: {what} returned {result}; costs must be finite and not negative.")
    return result


def sparse_vector(phi: object, n_weights: int, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Joint features of example ``i`` as (sorted indices, values), without zeros.

    ``phi`` is an array (n_weights,), a sparse row or vector, a mapping of index to value, or a pair (indices, values);
    values at an index that is given twice are added.
    """
    if sp.issparse(phi):
        given = sp.coo_array(phi)
        if max(given.shape) != np.prod(given.shape):
            raise ValueError(f"example {i}: joint features have shape {given.shape}; give one row or vector.")
        row = given.reshape((1, -1))
        length, indices, values = row.shape[1], row.col, row.data
    elif isinstance(phi, Mapping):
        length, indices, values = n_weights, np.array(list(phi.keys())), np.array(list(phi.values()))
    elif isinstance(phi, tuple) and len(phi) == 2 and all(np.ndim(part) == 1 for part in phi):
        length, indices, values = n_weights, np.asarray(phi[0]), np.asarray(phi[1])
    else:
        try:
            dense = np.asarray(phi)
        except ValueError:  # rows of different lengths
            dense = np.empty((0, 0))
        if dense.ndim != 1:
            forms = f"a vector of length {n_weights}, a sparse row, a dict or a pair (indices, values)"
            raise ValueError(f"example {i}: joint features are {short(phi)}; give {forms}.")
        length, indices, values = len(dense), np.arange(len(dense)), dense
    if length != n_weights:
        what = f"joint features have length {length} and n_weights is {n_weights}"
        raise ValueError(f"example {i}: {what}; they must agree for every output of every example.")
    if len(indices) != len(values):
        raise ValueError(f"example {i}: joint features have {len(indices)} indices and {len(values)} values.")
    if len(indices) == 0:
        return np.empty(0, np.int64), np.empty(0)
    if indices.dtype.kind not in "iu":
        raise ValueError(f"example {i}: indices of joint features must be whole numbers, got dtype {indices.dtype}.")
    if values.dtype.kind not in "fiub":
        raise ValueError(f"example {i}: joint features must be numbers, got dtype {values.dtype}.")
    if indices.min() < 0 or indices.max() >= n_weights:
        wrong = int(indices.min() if indices.min() < 0 else indices.max())
        raise ValueError(f"example {i}: joint features have the index {wrong}; indices go from 0 to {n_weights - 1}.")
    if not np.isfinite(values).all():
        raise ValueError(f"example {i}: joint features have NaN or infinite values; they must be finite.")
    return merged(indices.astype(np.int64), values.astype(np.float64))


def merged(indices: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted, equal indices added, zeros dropped."""
    if len(indices) > 1 and not (indices[1:] > indices[:-1]).all():
        indices, place = np.unique(indices, return_inverse=True)
        values = np.bincount(place.ravel(), weights=values, minlength=len(indices))
    kept = values != 0.0
    return indices[kept], values[kept]


def _items(X: object) -> Items:
    """Something with a length and positions: the rows of a sparse matrix, lists and arrays as they are, else a list."""
    if sp.issparse(X):
        rows = sp.csr_array(X)
        return [rows[[i]] for i in range(rows.shape[0])]
    if isinstance(X, (list, tuple, np.ndarray, Sequences)):
        return X
    if not isinstance(X, Iterable):
        raise TypeError(f"a list with one entry per example is needed, got {type(X).__name__}.")
    return list(X)


def short(value: object) -> str:
    """An input or output in at most 60 characters, for messages."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
