"""The averaged perceptron."""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.solvers.primal import PrimalSolver, Rule

__all__ = ["Perceptron"]


@dataclass(repr=False, eq=False)
class Perceptron(PrimalSolver):
    """Structured perceptron, by default averaged.

        w <- w + phi(x_i, y_i) - phi(x_i, y)        when the prediction y is not y_i

    It minimises no regularised objective: C and the cost play no part in the steps, and the certificate says how far
    its weights are from the optimum of the estimator's objective. (With ``rescaling="slack"`` planes come multiplied by
    their cost, and so do the steps.) It ends after its passes, or when a pass makes no mistake. One argmax and O(nnz) a
    step.

    Parameters
    ----------
    passes : int
    averaging : {None, "uniform", "weighted", "tail"}
    sampling : {"permutation", "random"}
    shards : int
        Passes run in so many shards of the examples at once, from the same weights, which are mixed after each pass
        (:mod:`maxmargin.solvers.primal_shards`). Weights do not depend on the workers (``n_jobs``) that run them.
    batch : int
        Examples whose planes, found at the same weights, make one step: the sum of theirs.

    References
    ----------
    Collins 2002, Discriminative training methods for hidden Markov models: theory and experiments with perceptron
    algorithms.
    """

    handles = frozenset({"quadratic", "signs", "squared"})  # it lowers no objective that a ramp fit could start from

    passes: int = 10
    averaging: str | None = "uniform"
    sampling: str = "permutation"
    shards: int = 1
    batch: int = 1

    def rule(self) -> Rule:
        return self.setting(Rule, method="perceptron", augmented=False, certificate_every=self.passes or 1.0)
