"""One-best MIRA, also known as the passive-aggressive algorithm."""

from __future__ import annotations

from maxmargin.solvers.primal import PrimalSolver, Rule

__all__ = ["MIRA"]


class MIRA(PrimalSolver):
    """The smallest change of the weights that gives one output its margin, bounded by C.

        w <- w + min(C_i, loss / |a|^2) a,      loss = cost - w . a      for the plane a of one output

    It minimises no regularised objective; the certificate says how far its weights are from the optimum of the
    estimator's. It ends after its passes, or when a pass makes no update. One argmax and O(nnz) a step.

    Parameters
    ----------
    passes : int
    augmented : bool
        Which output asks for its margin: the most violating one, or the prediction.
    averaging : {None, "uniform", "weighted", "tail"}
    sampling : {"permutation", "random"}

    References
    ----------
    Crammer, Dekel, Keshet, Shalev-Shwartz, Singer 2006, Online passive-aggressive algorithms (PA-I). McDonald, Crammer,
    Pereira 2005, Online large-margin training of dependency parsers.
    """

    handles = frozenset({"quadratic", "squared"})  # it lowers no objective that a ramp fit could start from

    def __init__(
        self,
        passes: int = 10,
        augmented: bool = True,
        averaging: str | None = "uniform",
        sampling: str = "permutation",
    ) -> None:
        self.passes = passes
        self.augmented = augmented
        self.averaging = averaging
        self.sampling = sampling

    def rule(self) -> Rule:
        return Rule(
            method="mira",
            augmented=self.augmented,
            averaging=self.averaging,
            sampling=self.sampling,
            certificate_every=self.passes if isinstance(self.passes, (int, float)) and self.passes > 0 else 1.0,
            passes=self.passes,
        )
