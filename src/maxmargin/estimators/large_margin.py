"""What estimators with linear scores share: the rescaled hinge or ramp, penalties, signs of weights, and streams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Self, cast

import numpy as np

from maxmargin.contracts import BoundModel, Formulation
from maxmargin.estimators.base import Inputs, Outputs, Resume, SampleWeight, Stopwatch, Structured
from maxmargin.estimators.parameters import ALL_AT_ONCE, parameters
from maxmargin.estimators.positive_weights import Positive, positive_weights
from maxmargin.formulations.problem import Problem
from maxmargin.formulations.references import References
from maxmargin.formulations.rescaled_hinge import RescaledHinge
from maxmargin.oracles.references import Closeness, hamming
from maxmargin.planes import aligned_zeros
from maxmargin.solvers.base import BaseSolver
from maxmargin.solvers.presets import SOLVERS

__all__ = ["GoodOutputs", "LargeMargin", "learns_from_streams", "rescaling_of"]


GoodOutputs = Sequence[Iterable[object]]  # of each example


@parameters
class LargeMargin(Structured[Inputs, Outputs]):
    """Base of estimators that minimise ``R(w) + C sum_i s_i loss_i(w)``, R being ``1/2 |w|^2`` or ``|w|_1``.

    Parameters
    ----------
    penalty : {"l2", "l1"}
        R: ``1/2 |w|^2``, or ``|w|_1``, which leaves most weights at 0. "l1" makes a linear program, which
        ``solver="column_generation"`` and, of many examples faster, ``"recentred_dual"`` solve ("auto" chooses between
        them); it takes ``loss="hinge"`` only.
    rescaling : None or {"margin", "slack", "sqrt_slack", "unit"}
        How the cost of an output enters its loss; None is "margin", and "unit" with ``penalty="l1"``. "margin": the
        true output must outscore it by its cost. "slack" and "sqrt_slack": by 1, and the cost or its square root
        multiplies the violation. "unit": by 1, whatever its cost. A model of your own has no "unit", a ramp takes
        "margin" only. See ``slack_search`` for how the most violating output is found.
    slack_search : {"auto", "angular", "bisecting", "binary", "golden", "sarawagi_gupta", "relaxed"}
        How slack rescaling finds the most violating output. "auto": exactly for classes, label sets of up to 18 labels
        or in trees, hierarchies, chains, hidden Markov models and trees (where costs are whole multiples of one number;
        a table over all costs is made where a few argmaxes leave a doubt, and its time grows with the square of the
        length), lattices (while memory for starts of paths lasts), and for models of your own with a ``slack_argmax``
        or ``constrained_argmax``. Other models ask their argmax a few times, which may miss the most violating output:
        the certificate counts what was missed, so its gap may stay open. The names choose a search in plain Python
        (:mod:`maxmargin.models.search`). "angular" is exact, asks an argmax within an angle, and serves label sets and
        graphs through HiGHS (``pip install highspy``) and models of your own that have one. "relaxed", for
        label sets with branch and bound, trains on fractional sets too: a certified optimum of an upper bound of the
        objective.
    positive : None, True, name or names of groups of weights, array of indices, or bool array (n_weights,)
        Weights that must be >= 0: those named, all but intercepts (True), or those that the model asks for (None).
        Names are the keys of ``layout_.groups(weights_)``; indices and masks follow ``weights_``.
    ... and the parameters that all estimators share; see maxmargin.estimators.parameters.
    """

    penalty: str = "l2"
    rescaling: str | None = None
    slack_search: str = "auto"
    positive: Positive = None

    def _formulation(self) -> Formulation:
        ramp = self._ramp()
        if ramp is None:
            return self._hinge()
        if self.penalty == "l1":
            raise ValueError('penalty="l1" makes a linear program, which a ramp loss is not; use loss="hinge".')
        return ramp.with_convex(RescaledHinge("hinge", rescaling_of(self.penalty, self.rescaling)))

    def _hinge(self) -> RescaledHinge:
        """The convex loss that the parameters say."""
        rescaling = rescaling_of(self.penalty, self.rescaling)
        return RescaledHinge(cast(str, self.loss), rescaling, self.penalty, self.slack_search)

    def _references(
        self,
        y: Iterable[object] | None,
        references: GoodOutputs | None,
        pairing: str,
        closeness: Closeness = hamming,
    ) -> tuple[list[object], References | None]:
        """An output for each example, and the formulation of a fit with several good ones; None without references.

        The good outputs are the references of an example and the one in y, where there is y.
        """
        if references is None:
            if pairing != "all":
                what = f"pairing is {pairing!r:.60}, which is for several good outputs of an example"
                raise ValueError(f"{what}; name them in references, or leave it out.")
            if y is None:
                raise ValueError("y is None: give the outputs of the examples, or references.")
            return list(y), None
        if self.loss != "hinge" or self.rescaling not in (None, "unit"):
            raise ValueError('several good outputs have margins of 1: use loss="hinge", and rescaling=None or "unit".')
        good = [list(outputs) for outputs in references]
        if y is not None:
            given = list(y)
            if len(given) != len(good):
                raise ValueError(f"y has {len(given)} entries and references {len(good)}; give one for each example.")
            good = [[output, *others] for output, others in zip(given, good, strict=True)]
        for i, outputs in enumerate(good):
            if not outputs:
                raise ValueError(
                    f"example {i} has no good output; give at least one in references, or its output in y."
                )
        return [outputs[0] for outputs in good], References(good, pairing, self.penalty, closeness)

    def _fit_bound(
        self,
        bound: BoundModel,
        sample_weight: SampleWeight,
        resume: Resume,
        begin: Stopwatch,
        formulation: Formulation | None = None,
    ) -> Self:
        """Train on a bound model, with the signs that its layout and the parameters ask for; see :meth:`_train`."""
        positive = self._positive(bound)
        self._train(
            bound, sample_weight=sample_weight, positive=positive, resume=resume, begin=begin, formulation=formulation
        )
        return self

    def _positive(self, bound: BoundModel) -> np.ndarray | None:
        """Weights that must be >= 0: those asked for, and those without which the model has no exact argmax."""
        mask, needed = positive_weights(self.positive, bound.layout, self._named_weights), bound.needs_positive
        if mask is not None and mask.any():
            return mask if needed is None else needed | mask
        return needed

    def _named_weights(self, groups: Mapping[str, np.ndarray]) -> Mapping[str, Sequence[np.ndarray]]:
        """What ``positive`` may name, as views of the weights."""
        return {name: [block] for name, block in groups.items()}

    def _learn_more(self, bound: BoundModel, sample_weight: SampleWeight = None) -> None:
        """One pass of a primal solver over further examples; certificates need them all, so there is none after it."""
        from maxmargin.solvers.primal import PrimalEngine

        positive = self._positive(bound)
        made = self._formulation().problem(bound, C=self.C, sample_weight=sample_weight, positive=positive)
        if "ramp" in made.traits:
            raise ValueError(ALL_AT_ONCE)
        problem = cast(Problem, made)  # all but ramps are of this class
        solver = self._engine(problem)
        assert isinstance(solver, PrimalEngine)
        seen = bound.n_examples + int(self.__dict__.get("n_seen_", 0))
        if solver.rule.method == "subgradient":  # steps are scaled to the sum over all examples seen so far
            problem = replace(problem, weight=problem.weight * seen / max(1, bound.n_examples))
        state = solver.adopt(problem, self.__dict__.get("stream_"))
        solver.step(state)
        self.stream_, self.n_seen_ = state, seen
        self.weights_ = aligned_zeros(bound.n_weights)
        self.weights_[:] = solver.weights(state)
        self.n_iter_ = state.passes
        for name in ("certificate_", "history_", "status_", "state_", "rounds_", "temperature_"):
            self.__dict__.pop(name, None)


def rescaling_of(penalty: str, rescaling: str | None) -> str:
    """The rescaling that an estimator uses; None is that of the literature on its penalty."""
    if rescaling is not None:
        return rescaling
    return "unit" if penalty == "l1" else "margin"


def incremental(solver: str | BaseSolver) -> bool:
    """Whether a solver is of the primal family, which learns example by example."""
    kind = SOLVERS.get(solver) if isinstance(solver, str) else type(solver)
    return kind is not None and issubclass(kind, BaseSolver) and kind.incremental


def learns_from_streams(estimator: Structured) -> bool:
    """Whether there is ``partial_fit``; an AttributeError, as scikit-learn wants it, says what would have it."""
    if not incremental(estimator.solver):
        needed = "a solver that learns example by example: perceptron, mira, sgd or pegasos"
        raise AttributeError(f"partial_fit needs {needed}; got {estimator.solver!r}.")
    return True
