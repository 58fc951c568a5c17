"""What generative estimators share: the reference, training, further examples, and how far tables have moved."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.contracts import BoundModel, Formulation
from maxmargin.costs import Cost
from maxmargin.estimators.base import Inputs, Outputs, SampleWeight, Structured
from maxmargin.estimators.parameters import ALL_AT_ONCE, parameters
from maxmargin.estimators.saveable import Fitted
from maxmargin.formulations.generative import Generative
from maxmargin.models.layout_state import check_log_probabilities
from maxmargin.models.tables import reference_distribution
from maxmargin.pages.html import Section, paragraph, table
from maxmargin.solvers.base import BaseSolver
from maxmargin.solvers.history import Table, as_frame
from maxmargin.solvers.recentring_state import TRACE, RecentringState

__all__ = ["GenerativeEstimator", "decodable"]

MOVED = 20  # tables in a report
IMPOSSIBLE = -1e6  # stands for ln 0 in decoding: outputs with the fewest impossible events win


def decodable(weights: np.ndarray) -> np.ndarray:
    """Log-probabilities as decoding takes them, without any minus infinity."""
    check_log_probabilities(weights)
    return np.maximum(weights, IMPOSSIBLE)


@parameters
class GenerativeEstimator(Structured[Inputs, Outputs]):
    """Base of estimators whose weights are log-probabilities in tables.

    Subclasses bind their data and count it; ``layout_.tables`` says where each conditional distribution lives.

    Parameters
    ----------
    C : float
        Weight of the losses, against one Kullback-Leibler divergence for each conditional distribution.
    margin : float
        Margin asked for each unit of cost. Log-probabilities have a scale of their own, so this is a choice. With
        another rescaling than "margin" it multiplies the cost, and the margin asked is 1.
    rescaling : {"margin", "slack", "sqrt_slack"}
        "margin": the truth must be more probable than another output by as much as that costs, in logarithms. "slack"
        and "sqrt_slack": by 1, and the cost or its square root multiplies what is lacking. Hidden Markov models find
        the worst output then (where costs are whole multiples of one number); networks ask their argmax a few times,
        which may miss it, and the certificate counts what was missed. A ramp takes "margin" only.
    smoothing : float
        What "smoothed" adds to every count.
    floor : float
        Least probability of the reference.
    pull : float
        Weight of ``1/2 |theta - ln c|^2`` beside the divergence, so that rare values stay near the reference too.
    solver : "proximal" or ProximalPoint
        The only kind of solver for tables of log-probabilities.
    ... and the parameters that all estimators share; see maxmargin.estimators.parameters.

    Attributes
    ----------
    counts_, reference_ : arrays (n_weights,)
        How often each entry occurs in the examples seen, and the distributions that training pulls towards.
    n_seen_ : int
        Examples seen.
    trace_ : pandas.DataFrame, or dict of columns without pandas
        One row per iteration of the solver; bounds in a ramp fit are those of the convex problem of the round.
    """

    traits: ClassVar[frozenset[str]] = frozenset({"tables"})
    family: ClassVar[str]  # of the models: one can be the reference of another of the same family

    C: float = 0.01
    cost: str | Mapping[Hashable, object] | ArrayLike | Callable[[Hashable, Hashable], float] | Cost = "hamming"
    margin: float = 1.0
    reference: str | Structured | Mapping[str, ArrayLike] = "ml"
    smoothing: float = 1.0
    floor: float = 1e-6
    pull: float = 0.0
    rescaling: str = "margin"
    unknown: str = "error"
    solver: str | BaseSolver = "proximal"

    @abstractmethod
    def _aligned(self) -> np.ndarray:
        """The probabilities of the model that is the ``reference``, in ``layout_``."""

    @abstractmethod
    def _joined(self, tables: Mapping[str, np.ndarray]) -> np.ndarray:
        """The probabilities of tables by name, in ``layout_``."""

    def _take_reference(self) -> None:
        """Set ``reference_`` from the parameter and the counts so far."""
        given = self.reference
        if isinstance(given, GenerativeEstimator) and given.family == self.family:
            given._check_fitted()
            given = self._aligned()
        elif isinstance(given, Mapping):
            given = self._joined({name: np.asarray(table, np.float64) for name, table in given.items()})
        elif not isinstance(given, str):
            kinds = f'"ml", "uniform", "smoothed", a fitted {type(self).__name__} or a mapping of tables'
            raise TypeError(f"reference must be {kinds}; got {type(given).__name__}.")
        self.reference_ = reference_distribution(
            self.layout_.tables, given, self.counts_, smoothing=self.smoothing, floor=self.floor
        )

    def _take_probabilities(self, p: np.ndarray) -> None:
        """Set what training would, for probabilities that come from elsewhere."""
        self.reference_ = reference_distribution(self.layout_.tables, p, floor=self.floor)
        with np.errstate(divide="ignore"):
            self.weights_ = np.log(p)
        self.counts_: np.ndarray = np.zeros(len(p))
        self.n_seen_ = 0

    def _formulation(self) -> Formulation:
        """At the current reference."""
        ramp = self._ramp()
        loss = cast(str, self.loss) if ramp is None else "hinge"
        convex = Generative(loss=loss, reference=self.reference_, pull=self.pull, rescaling=self.rescaling)
        return convex if ramp is None else ramp.with_convex(convex)

    def _keep_trace(self, n_seen: int) -> None:
        """After training: what the solver went through, and how many examples it has seen."""
        self.n_seen_ = n_seen
        self.trace_ = as_frame([dict(zip(TRACE, row, strict=True)) for row in self.state_.trace])

    def _continues(self) -> bool:
        """Whether further examples follow earlier ones, whose planes and multipliers they need."""
        if self._ramp() is not None:
            raise ValueError(ALL_AT_ONCE)
        if "weights_" not in self.__dict__:
            return False
        if not isinstance(self.__dict__.get("state_"), RecentringState):
            advice = "to start from this model, give it as the reference of a new one."
            raise ValueError(f"partial_fit goes on where a fit in the same process ended; {advice}")
        return True

    def _learn_further(self, bound: BoundModel, sample_weight: SampleWeight) -> None:
        """Go on with further examples, at the current reference."""
        seen = self.n_seen_ + bound.n_examples
        self._train(bound, sample_weight=sample_weight, warm=replace(self.state_, other_examples=True))
        self._keep_trace(seen)

    def _normalised(self) -> np.ndarray:
        """Log-probabilities with every table divided by its sum."""
        self._check_fitted()
        check_log_probabilities(self.weights_)
        return self.layout_.tables.normalised(self.weights_)

    def movement(self) -> Table:
        """How far each table has moved: its divergence ``KL(c_j || e^{theta_j})`` and the mass it has left.

        A row has ``table``, ``divergence`` (nats; of the renormalised table and the lost mass together) and ``mass``.
        """
        self._check_fitted()
        tables, c, theta = self.layout_.tables, self.reference_, self.weights_
        divergence = tables.sums(c * (np.log(c) - theta))
        mass = np.exp(tables.log_mass(theta))
        values = zip(np.maximum(divergence, 0.0).tolist(), np.minimum(mass, 1.0).tolist(), strict=True)
        return as_frame([{"table": tables.name(j), "divergence": d, "mass": m} for j, (d, m) in enumerate(values)])

    def _own_sections(self) -> list[Section]:
        moved = self.movement()
        order = np.argsort(-np.asarray(moved["divergence"]), kind="stable")[:MOVED].tolist()
        names, far, mass = (list(moved[name]) for name in ("table", "divergence", "mass"))
        told = (
            "How far training has moved the probabilities from the reference. Lost mass belongs to values never seen."
        )
        rows = [(str(names[k]), float(far[k]), float(mass[k])) for k in order]
        headers = ["table", "divergence (nats)", "mass left"]
        return [Section("Tables that moved most", [paragraph(told), table(headers, rows)])]

    def _strongest_weights(self, top: int) -> list[tuple[str, float]]:
        return []  # log-probabilities are the larger, the rarer a value is

    def _learned(self) -> dict[str, object]:
        """What files hold besides the log-probabilities."""
        return {"n_seen": int(self.n_seen_), "reference": self.reference_, "counts": self.counts_}

    def _take_learned(self, fitted: Fitted) -> None:
        """Set what all generative models have from a file."""
        state, shape = fitted.state, fitted.weights.shape
        reference, counts = state.floats("reference", shape), state.floats("counts", shape)
        if not ((reference > 0) & (reference <= 1 + 1e-6)).all():
            raise ValueError("its 'reference' has numbers that are not probabilities")
        if (counts < 0).any():
            raise ValueError("its 'counts' have numbers that are not counts")
        self.weights_, self.reference_, self.counts_ = fitted.weights, reference, counts
        self.n_seen_ = state.whole("n_seen", most=2**62)
