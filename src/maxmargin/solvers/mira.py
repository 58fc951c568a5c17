"""One-best MIRA, also known as the passive-aggressive algorithm."""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.solvers.primal import PrimalSolver, Rule

__all__ = ["MIRA"]


@dataclass(repr=False, eq=False)
class MIRA(PrimalSolver):
    """The smallest change of the weights that gives one output its margin, bounded by C.

    ``w <- w + min(C_i, loss / |a|^2) a`` with ``loss = cost - w . a``, for the plane a of one output.

    It minimises no regularised objective; the certificate says how far its weights are from the optimum of the
    estimator's. It ends after its passes, or when a pass makes no update. One argmax and O(nnz) per step.

    Parameters
    ----------
    passes : int
    augmented : bool
        Which output asks for its margin: the most violating one, or the prediction.
    averaging : {None, "uniform", "weighted", "tail"}
    sampling : {"permutation", "random"}
    shards : int
        Passes run in so many shards of the examples at once, from the same weights, which are mixed after each pass
        (:mod:`maxmargin.solvers.primal_shards`). Weights do not depend on the workers (``n_jobs``) that run them.
    batch : int
        Examples whose planes, found at the same weights, make one step: the mean of theirs.

    References
    ----------
    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer 2006, Online passive-aggressive algorithms (PA-I). McDonald, Crammer,
    Pereira 2005, Online large-margin training of dependency parsers.
    """

    handles = frozenset({"quadratic", "signs", "squared"})  # it lowers no objective that a ramp fit could start from

    passes: int = 10
    augmented: bool = True
    averaging: str | None = "uniform"
    sampling: str = "permutation"
    shards: int = 1
    batch: int = 1

    def rule(self) -> Rule:
        return self.setting(Rule, method="mira", certificate_every=self.passes or 1.0)
