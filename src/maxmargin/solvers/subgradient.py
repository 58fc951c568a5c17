"""Stochastic subgradient methods: Pegasos, and SGD with the usual step sizes.

    w <- (1 - eta_t) w + eta_t n C_i a_i(w)            a_i(w): plane of the most violating output of example i

on ``P(w) = 1/2 |w|^2 + sum_i C_i loss_i(w)``, whose subgradient at example i is ``w - n C_i a_i`` in expectation. One
argmax and O(nnz) per step. For squared hinge the plane comes with the loss as a factor.
"""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.solvers.primal import PrimalSolver, Rule

__all__ = ["SGD", "Pegasos"]


@dataclass(repr=False, eq=False)
class Pegasos(PrimalSolver):
    """Primal estimated subgradient solver: step sizes 1 / t, with or without the projection onto a ball.

    With examples visited by permutations the weights at the end of a pass are a feasible point of the dual, so the
    certificate is exact. (Shalev-Shwartz and coauthors write lambda = 1 / (n C) and eta_t = 1 / (lambda t).)

    Parameters
    ----------
    project : bool
        Keep the weights in a ball that holds the optimum: ``|w|^2 <= sum_i C_i L_i``, where L_i is the largest cost of
        example i. The same ball serves the hinge and the majorants of a ramp loss.
    averaging : {None, "uniform", "weighted", "tail"}
        Average of the iterates; "tail" leaves out the first half of them or less.
    sampling : {"permutation", "random"}
        Every example once per pass, or drawn with replacement.
    certificate_every : float
        Passes between certificates, each of which costs a pass.
    shards : int
        Passes run in so many shards of the examples at once, from the same weights, which are mixed after each pass
        (:mod:`maxmargin.solvers.primal_shards`). Weights do not depend on the workers (``n_jobs``) that run them.
    batch : int
        Examples whose planes, found at the same weights, make one step: the mean of theirs.

    References
    ----------
    Shalev-Shwartz, Singer, Srebro, Cotter 2011, Pegasos: primal estimated sub-gradient solver for SVM.
    """

    project: bool = False
    averaging: str | None = None
    sampling: str = "permutation"
    certificate_every: float = 10.0
    shards: int = 1
    batch: int = 1


@dataclass(repr=False, eq=False)
class SGD(PrimalSolver):
    """Stochastic subgradient descent.

    Parameters
    ----------
    schedule : {"inverse", "constant", "power"}
        Step sizes 1 / (t + t0), eta0, or eta0 / t^power, at most 1.
    eta0, t0, power : float
    averaging : {None, "uniform", "weighted", "tail"}
    sampling : {"permutation", "random"}
    certificate_every : float
    shards, batch : int
        As those of :class:`Pegasos`.

    References
    ----------
    Ratliff, Bagnell, Zinkevich 2007, (Online) subgradient methods for structured prediction. Bottou 2012, Stochastic
    gradient descent tricks. Xu 2011, Towards optimal one pass large scale learning with averaged SGD.
    """

    schedule: str = "inverse"
    eta0: float = 1.0
    t0: float = 1000.0
    power: float = 0.75
    averaging: str | None = "tail"
    sampling: str = "permutation"
    certificate_every: float = 10.0
    shards: int = 1
    batch: int = 1

    def rule(self) -> Rule:
        return self.setting(Rule, schedule=(self.schedule, self.eta0, self.t0, self.power))
