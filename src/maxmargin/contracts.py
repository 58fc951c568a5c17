"""The contracts between the rooms: what one part may ask of another, and nothing else.

    data --bind--> BoundModel --kernel, search--> Oracle --planes--> Solver --weights--> estimator

A class need not inherit from a contract, it only has to have its members. What a part *needs* of another beyond these
members is declared (``traits`` of a problem, ``handles`` of a solver, ``capabilities`` of a bound model) and checked by
one function, :func:`maxmargin.needs.require`, before the first pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeGuard, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from maxmargin.planes import Planes

if TYPE_CHECKING:
    from maxmargin.certificate import Certificate

__all__ = [
    "Answer", "Answers", "BoundModel", "ConstrainedModel", "DualPoint", "Executor", "Formulation", "Fused",
    "InnerSolver", "KBestModel", "Layout", "ListingModel", "MarginalsModel", "Mask", "ModelKernel", "Oracle",
    "PartScoresModel", "Problem", "Regulariser", "RelaxedModel", "SampleWeight", "Solver", "State", "Sum",
    "lists_outputs", "offers_constrained", "offers_k_best", "offers_marginals", "offers_part_scores", "offers_relaxed",
]  # fmt: skip

SampleWeight = ArrayLike | None  # s_i of each example, (n_examples,)
Mask = np.ndarray | None  # bool (n_weights,); None for none of them

# --- models -----------------------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """The output that one search has found for one example: ``psi = phi(x, y_i) - phi(x, y)`` and its cost.

    ``value`` is the objective of the search at this output, ``bound`` an upper bound of it over all outputs: the value
    itself when the search is exact, ``inf`` when nothing is known. ``queries`` are the argmaxes that it took.
    """

    indices: np.ndarray  # int32, none twice
    psi: np.ndarray
    cost: float
    value: float
    bound: float
    queries: int = 1


class Answers(NamedTuple):
    """Decoded outputs of some examples, and for each its value, an upper bound of it, and its cost."""

    outputs: list  # integer codes, or the outputs themselves for models in plain Python
    value: np.ndarray
    bound: np.ndarray
    cost: np.ndarray


class LabelBlocks(NamedTuple):
    """What a compiled loop needs to solve the block of an example whose outputs are labels with weights of their own.

    ``phi(x, y)`` is one vector x in the weights of label y: of the same length for all labels, at right angles to the
    others. Where outputs are sets of labels, it is x in the weights of each, and the last two functions are given. The
    functions have the signatures of :mod:`maxmargin.models.signature`.
    """

    scores: Callable[..., int]
    add: Callable[..., None]
    fetch: Callable[..., None]
    n_labels: int
    stride: int  # room for scores
    square: np.ndarray  # float64 (n_examples,): |x|^2
    density: float  # share of the features that an example has, on average
    excess: Callable[..., float] | None = None
    retreat: Callable[..., None] | None = None


@dataclass(frozen=True)
class ModelKernel:
    """What a compiled loop needs of a bound model: two functions and the arrays they read."""

    plane: Callable[..., int]  # the model's own argmax; see :mod:`maxmargin.models.signature`
    # asks ``plane`` for the most violating output, once or several times; see :mod:`maxmargin.models.search_kernel`
    search: Callable[..., int]
    meta: np.ndarray  # this and the next two: the packed data
    ints: np.ndarray
    floats: np.ndarray
    room: int  # the most non-zeros that the planes of one example together can have
    iwork_size: int  # this and the next two: scratch the functions need, and the longest output
    fwork_size: int
    output_size: int
    labels: LabelBlocks | None = None  # where outputs are labels with weights of their own

    def workspace(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Fresh scratch (iwork, fwork, output) for one thread."""
        return np.zeros(self.iwork_size, np.int32), np.empty(self.fwork_size), np.empty(self.output_size, np.int32)


class Layout(Protocol):
    """What was learned from the training data (labels, widths): binds further data to the same weights."""

    @property
    def n_weights(self) -> int: ...
    def output(self, code: np.ndarray) -> object:
        """The user's output behind a decoded one."""

    def groups(self, w: np.ndarray) -> Mapping[str, np.ndarray | sp.csr_array]:
        """Views of the weights by name; empty where they have no names."""
        return {}

    def names(self) -> Sequence[object] | None:
        """What its features are called, in the order of their weights; None where it does not know."""
        return None

    def real(self) -> np.ndarray:
        """Mask of the weights that are not padding."""
        return np.ones(self.n_weights, bool)


class BoundModel(Protocol):
    """A model bound to n examples: which output has the largest sum of its score and a multiple of its cost?"""

    @property
    def n_examples(self) -> int: ...
    @property
    def n_weights(self) -> int: ...
    @property
    def layout(self) -> Layout: ...
    @property
    def capabilities(
        self,
    ) -> frozenset[str]: ...  # what it offers beyond the argmax, words of :mod:`~maxmargin.needs`
    @property
    def fingerprint(self) -> str: ...  # of data and cost: multipliers of one problem prove nothing about another
    @property
    def needs_positive(self) -> np.ndarray | None:
        """Weights that must be >= 0 for the argmax to be exact, bool (n_weights,); None when all are free."""

    def kernel(self, search: str = "argmax") -> ModelKernel | None:
        """The compiled form with one of its searches; None for a model in plain Python."""

    def answer(self, w: np.ndarray, example: int, cost_weight: float, search: str = "argmax") -> Answer:
        """The same for one example, in Python."""

    def argmax(self, w: np.ndarray, examples: np.ndarray | None = None, cost_weight: float = 0.0) -> Answers:
        """The one decoding: best outputs of some examples (None: of all)."""


class KBestModel(BoundModel, Protocol):
    """A bound model with the capability "k_best"."""

    def k_best(self, w: np.ndarray, example: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Codes (m, T) and scores (m,) of the k best outputs, best first; m < k when there are no more."""


class ListingModel(KBestModel, Protocol):
    """A bound model that also gives the plane of any output: the capabilities "k_best" and "outputs"."""

    def difference(self, example: int, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``phi(x, y_i) - phi(x, y)`` of the output with these codes, as indices (none twice) and values."""

    def codes(self, example: int, output: object) -> np.ndarray:
        """The codes of a user's output; a ValueError that names the example when it is none."""

    def content(self, example: int, codes: np.ndarray) -> np.ndarray:
        """What tells outputs apart, part by part: the codes, the words of a path, or which pairs are linked."""


class MarginalsModel(BoundModel, Protocol):
    """A bound model with the capability "marginals"."""

    def marginals(self, w: np.ndarray, example: int) -> np.ndarray:
        """Probabilities (T, K) of the K labels of each of T parts, where outputs have them by exp(score)."""


class PartScoresModel(BoundModel, Protocol):
    """A bound model with the capability "part_scores"."""

    def part_scores(self, w: np.ndarray, codes: Sequence[np.ndarray]) -> np.ndarray:
        """Score (parts, K) of every label for every part of all examples, the other parts as in ``codes``."""


class ConstrainedModel(BoundModel, Protocol):
    """A bound model with the capability "constrained"."""

    def answer_between(
        self, w: np.ndarray, example: int, cost_weight: float, mu: float, low: float, high: float
    ) -> Answer | None:
        """The output of largest ``mu cost - w . psi`` with ``low h <= cost <= high h``, h = cost_weight - w . psi.

        Its bound is for these alone. None without any; those with h or cost below 1e-7 may be left out.
        """


class RelaxedModel(BoundModel, Protocol):
    """A bound model with the capability "relaxed"."""

    def answer_relaxed(self, w: np.ndarray, example: int, cost_weight: float) -> Answer:
        """As ``answer``, over a convex set that holds all outputs: psi and cost may be those of a fractional one."""


# --- oracles ----------------------------------------------------------------------------------------------------------


class Sum(NamedTuple):
    """Planes of some examples added up: dense ``sum_i scale_i a_i``, ``sum_i scale_i b_i``, and all their losses."""

    a: np.ndarray
    b: float
    losses: np.ndarray
    counts: tuple[int, int] | None = None  # as in :class:`~maxmargin.planes.Planes`


@dataclass(frozen=True)
class Fused:
    """What a compiled loop needs to ask an oracle without going through Python."""

    kernel: ModelKernel
    rescaling: int  # row of the table in :mod:`maxmargin.oracles.rescaling`
    cost_weight: float
    lift: np.ndarray  # float64 (n_examples,) or (0,)
    workspace: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray]]  # (iwork, fwork, output) of the calling thread
    first: int = 0  # example of the kernel that is number 0 here
    executor: Executor | None = None  # where several such loops may run at once; None: only here


class Oracle(Protocol):
    """Turns weights into planes. A value: whatever differs makes another oracle."""

    @property
    def n_examples(self) -> int: ...
    @property
    def n_columns(self) -> int: ...  # length of a plane: the weights, and one per example when slacks are squared
    @property
    def longest(self) -> int: ...  # the most non-zeros that one plane can have
    @property
    def batch_hint(self) -> int: ...  # how many examples to ask at once, at least; 1 where a call costs nothing
    @property
    def fingerprint(self) -> str: ...  # digest of all that its planes depend on

    def planes(self, w: np.ndarray, examples: np.ndarray, most: int = 1) -> Planes:
        """Planes of ``examples`` at ``w``, in their order; up to ``most`` per example, the most violating one first."""

    def sum(self, w: np.ndarray, examples: np.ndarray, scale: np.ndarray) -> Sum:
        """The most violating planes, reduced on the spot."""

    def predicting(self) -> Oracle:
        """The oracle whose planes are those of predictions instead of the most violating outputs."""

    def fused(self) -> Fused | None:
        """What a compiled loop needs to skip this object; None when that is not possible or would skip something."""

    def spread(self) -> tuple[Oracle, Executor] | None:
        """The oracle behind this one and the workers over which this one spreads its questions; None without any."""


# --- problems ---------------------------------------------------------------------------------------------------------


class Regulariser(Protocol):
    """A convex function R of the weights; the dual sees it through its conjugate.

    ``R*(u) = max_w u . w - R(w)``

    Its least value is 0: a constant that no training changes would make every relative gap look small.
    """

    @property
    def traits(
        self,
    ) -> frozenset[str]: ...  # what a solver must handle, in the words of :mod:`~maxmargin.needs`

    @property
    def positive(self) -> np.ndarray | None:
        """Which weights must be >= 0, bool (n_columns,); None when all are free."""

    @property
    def fingerprint(self) -> str: ...  # digest of what it depends on besides the weights; empty when nothing

    def value(self, w: np.ndarray) -> float:
        """R at the weights of the model; inf outside its domain."""

    def conjugate(self, u: np.ndarray) -> float:
        """R*(u)."""

    def weights(self, u: np.ndarray) -> np.ndarray:
        """The maximiser, the gradient of R*."""

    def curvature(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> np.ndarray:
        """``A R*''(u) A'``, (m, m)."""

    def widths(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> np.ndarray:
        """Its diagonal alone, (m,)."""

    def feasible(self, w: np.ndarray) -> np.ndarray:
        """Given weights, moved into the domain; a ValueError where they are too far from it."""

    def lower_bound(self, linear: float, u: np.ndarray) -> tuple[float, float]:
        """The largest ``t linear - R*(t u)`` that is proven over t in [0, 1], and its t."""


class Problem(Protocol):
    """``min_w R(w) + sum_i C_i loss_i(w)``: what the driver and all solvers see of a problem."""

    @property
    def n_examples(self) -> int: ...
    @property
    def n_columns(self) -> int: ...  # length of a plane
    @property
    def weight(self) -> np.ndarray: ...  # C_i, (n_examples,)
    @property
    def traits(self) -> frozenset[str]: ...  # what a solver must handle

    def feasible(self, w: np.ndarray) -> np.ndarray:
        """Given weights, moved into the domain of the regulariser; a ValueError where they are too far from it."""

    @property
    def labels(self) -> LabelBlocks | None:
        """Where blocks can be solved label by label: the hinge of margins alone, labels with weights of their own."""

    def with_oracles(self, wrap: Callable[[Oracle], Oracle]) -> Problem:
        """The same problem asked through other oracles, such as sharded ones."""


class Formulation(Protocol):
    """An objective: makes the problem of fitting a bound model."""

    def problem(
        self, model: BoundModel, *, C: float, sample_weight: SampleWeight = None, positive: Mask = None
    ) -> Problem:
        """The problem of fitting a bound model; C multiplies the sum of the losses (of their squares, if squared).

        ``positive``, bool (n_weights,), are weights that must be >= 0.
        """


# --- solvers ----------------------------------------------------------------------------------------------------------


class State(Protocol):
    """What a solver works on. It is consistent between any two block updates, so also after an interrupted step."""

    @property
    def oracle_calls(self) -> int: ...
    @property
    def argmax_calls(self) -> int: ...  # several for one oracle call, where a search asks several
    @property
    def unproven(self) -> int: ...  # oracle calls of this run whose answer is not proven to be the best
    @property
    def seconds(self) -> Mapping[str, float]: ...
    @property
    def rounds(self) -> list[dict[str, float]] | None: ...  # one row per round, of solvers that have rounds

    def to_arrays(self) -> dict[str, np.ndarray]: ...


class DualPoint(NamedTuple):
    """Feasible multipliers by what certificates need of them: ``sum alpha b``, u, and the weights that go with them."""

    linear: float
    u: np.ndarray
    w: np.ndarray


P = TypeVar("P", contravariant=True)
S = TypeVar("S")


class Solver(Protocol[P, S]):
    """What the driver asks of a solver: it owns the steps, the driver owns the loop."""

    @property
    def handles(
        self,
    ) -> frozenset[str]: ...  # traits of the problems that it can solve, in the words of :mod:`~maxmargin.needs`

    def init(self, problem: P, warm: State | None = None) -> S:
        """A state to begin with, cold or from the state of an earlier run."""

    def certificate_due(self, state: S) -> bool:
        """Whether a certificate comes before the next step."""

    def certificate(self, state: S) -> Certificate:
        """Primal and dual at the present weights."""

    def step_calls(self, state: S) -> int:
        """Oracle calls that the next step and the certificate behind it will make."""

    def step(self, state: S) -> None:
        """The next piece of work, short enough to look at budgets in between."""

    def weights(self, state: S) -> np.ndarray:
        """The weights of the model (n_weights,)."""

    def may_end(self, state: S) -> bool:
        """Whether a small gap ends the run; not inside a round that another one follows."""

    def finished(self, state: S) -> str | None:
        """The code of a status when the solver has come to an end by other means than the gap."""

    def conclude(self, state: S, certificate: Certificate, code: str) -> Certificate:
        """The end of a run: a solver may go back to better weights that it has kept, and returns their certificate."""

    def from_arrays(self, problem: P, arrays: Mapping[str, np.ndarray]) -> S:
        """Resume where ``state.to_arrays`` left off."""


class InnerSolver(Solver[P, S], Protocol[P, S]):
    """What an outer solver (CCCP, proximal point, refits) asks of the solver inside, beyond the driver's verbs."""

    @property
    def minimises(self) -> bool: ...  # whether its steps lower the objective of the problem (the perceptron's do not)
    @property
    def passes_per_round(self) -> float | None: ...  # passes after which a round should end; None lets the gap decide

    @property
    def free_certificates(self) -> bool: ...  # whether a certificate asks no oracle but tells what the last step found

    def dual_point(self, state: S) -> DualPoint:
        """The multipliers and weights that the run would end with."""

    def begin_at(self, state: S, w: np.ndarray) -> None:
        """Begin at given weights where that means something; others ignore it."""

    def move(self, state: S, problem: P) -> None:
        """Go on with a problem that differs in its linear term or its regulariser only; planes and multipliers stay."""


# --- execution --------------------------------------------------------------------------------------------------------


class Executor(Protocol):
    """Where work runs. What is started has a home, keeps its state there, and is called by verb."""

    @property
    def n_workers(self) -> int: ...
    @property
    def shares_memory(self) -> bool: ...  # whether residents stay the caller's own objects
    @property
    def replaced(self) -> int: ...  # workers that have died; others took their place

    def start(self, residents: Sequence[object], changing: Collection[str] = ()) -> list[int]:
        """Give each resident a home; returns their addresses.

        ``changing`` are the verbs that change a resident. It then has ``save()``, all that has changed, and
        ``load(saved)``, so that it can be brought to life again where a worker has died.
        """

    def call(self, verb: str, calls: Sequence[tuple[int, tuple]]) -> list:
        """Call a method of residents, ``calls`` holding (address, arguments); results in the order of the calls."""

    def release(self, homes: Sequence[int]) -> None:
        """Let residents go; from any thread, at any moment."""

    def recall(self) -> None:
        """Bring residents that change back to the caller: they answer here from now on, also when all is closed."""

    def close(self) -> None:
        """End all homes elsewhere."""


# --- what bound models offer ------------------------------------------------------------------------------------------


def offers_k_best(bound: BoundModel) -> TypeGuard[KBestModel]:
    """Whether a bound model lists its k best outputs."""
    return "k_best" in bound.capabilities


def lists_outputs(bound: BoundModel) -> TypeGuard[ListingModel]:
    """Whether a bound model lists its k best outputs and has the plane of each."""
    return {"k_best", "outputs"} <= bound.capabilities


def offers_marginals(bound: BoundModel) -> TypeGuard[MarginalsModel]:
    """Whether a bound model has marginals."""
    return "marginals" in bound.capabilities


def offers_constrained(bound: BoundModel) -> TypeGuard[ConstrainedModel]:
    """Whether a bound model has an argmax within an angle, which angular search asks."""
    return "constrained" in bound.capabilities


def offers_part_scores(bound: BoundModel) -> TypeGuard[PartScoresModel]:
    """Whether a bound model scores the labels of single parts."""
    return "part_scores" in bound.capabilities


def offers_relaxed(bound: BoundModel) -> TypeGuard[RelaxedModel]:
    """Whether a bound model has an argmax over relaxed outputs."""
    return "relaxed" in bound.capabilities
