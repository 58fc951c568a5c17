"""The named methods, as settings of the dual engine.

========================  ==========================  =================  ============  =============================
name                      blocks                      visited            planes kept   known from
========================  ==========================  =================  ============  =============================
FrankWolfe                one simplex for all         all                1 (*)         Frank, Wolfe 1956
CuttingPlane("one")       one simplex for all         all                unlimited     Joachims, Finley, Yu 2009
CuttingPlane("n")         product                     all                unlimited     Tsochantaridis et al. 2005
BCFW                      product                     one at a time      1 (*)         Lacoste-Julien et al. 2013
SequentialDual            product                     one at a time      unlimited     Balamurugan et al. 2011
SimplicialDecomposition   one / groups / product      all or some        r             Yu, Rousu 2007
Auto                      product                     by gap, batches    by memory     the accelerated default
Sharded                   product                     by gap, at once    by memory     Auto in shards, for many cores
========================  ==========================  =================  ============  =============================

(*) Those with weight when steps are pairwise (Osokin et al. 2016), which converge linearly instead of at the rate 1/t.

The primal family (Pegasos, SGD, Perceptron, MIRA) and the solvers of linear programs have files of their own;
:data:`SOLVERS` names them all.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.contracts import Problem
from maxmargin.solvers.base import BaseSolver, check_solver
from maxmargin.solvers.column_generation import ColumnGeneration
from maxmargin.solvers.mira import MIRA
from maxmargin.solvers.perceptron import Perceptron
from maxmargin.solvers.proximal_point import ProximalPoint
from maxmargin.solvers.recentred_dual import RecentredDual
from maxmargin.solvers.settings import Settings, check_words
from maxmargin.solvers.sharded import Sharded
from maxmargin.solvers.subgradient import SGD, Pegasos

if TYPE_CHECKING:
    from maxmargin.solvers.engine import DualEngine

__all__ = [
    "BCFW", "SOLVERS", "Auto", "CuttingPlane", "DualSolver", "FrankWolfe", "SequentialDual", "SimplicialDecomposition",
    "solver_for",
]  # fmt: skip

UNLIMITED_PATIENCE = 1 << 30


# What a visit of the Frank-Wolfe family does with its plane. "toward": the best point on the segment from the present
# point to the plane. "pairwise": weight moves to the plane from the plane that gains most by giving.
STEPS: dict[str, dict[str, Any]] = {
    "toward": {"limit": 1, "rule": "iterate", "keep_origin": False, "patience": UNLIMITED_PATIENCE},
    "pairwise": {"max_steps": 1, "patience": 0},
}


def _steps(name: str) -> dict[str, Any]:
    check_words("steps", name, tuple(STEPS))
    return STEPS[name]


class DualSolver(BaseSolver):
    """A named setting of the dual engine."""

    handles = frozenset({"quadratic", "signs", "squared", "ramp", "latent"})

    @abstractmethod
    def settings(self, n_examples: int, n_columns: int) -> Settings:
        """The setting for a problem of this size."""

    def engine(self, problem: Problem, random_state: int | np.random.Generator | None = None) -> DualEngine:
        """The dual engine with this setting."""
        from maxmargin.solvers.engine import DualEngine

        return DualEngine(self.settings(problem.n_examples, problem.n_columns), random_state)


@dataclass(repr=False, eq=False)
class FrankWolfe(DualSolver):
    """Batch Frank-Wolfe with exact line search: one simplex, one extreme point and the current iterate.

    z_t = the sum of the most violating planes of all examples; w_{t+1} = best point on the segment [w_t, z_t].
    One oracle pass per step, O(1/t) convergence, one dense vector of memory.

    Parameters
    ----------
    steps : {"toward", "pairwise"}
        "pairwise" keeps the planes with weight and moves weight from one of them to the new one: linear convergence,
        a dense vector of memory for each plane kept.

    References
    ----------
    Frank, Wolfe 1956. Lacoste-Julien, Jaggi 2015, On the global linear convergence of Frank-Wolfe variants.
    """

    steps: str = "toward"

    def settings(self, n_examples: int, n_columns: int) -> Settings:
        return Settings(
            blocks="one", selection="whole", batch=None, certificate_every=0.0, tau=0.0, **_steps(self.steps)
        )


@dataclass(repr=False, eq=False)
class BCFW(DualSolver):
    """Block-coordinate Frank-Wolfe: one example at a time, exact line search towards its most violating plane.

    Parameters
    ----------
    sampling : {"permutation", "random", "gap", "cyclic"}
        Order of visits. "random" is the sampling with replacement of the convergence proof.
    certificate_every : float
        Passes between certificates, each of which costs a pass of its own (and serves as a visit of all examples).
    averaging : {None, "uniform", "weighted", "tail"}
        Average of the weights over the visits, and of the multipliers, so that the average has its own certificate.
        "weighted" is the average by the number of the visit that Lacoste-Julien et al. recommend.
    steps : {"toward", "pairwise"}
        "toward" keeps one plane per example and converges at the rate 1/t; "pairwise" keeps those with weight and
        converges linearly.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt, Pletscher 2013, Block-coordinate Frank-Wolfe optimization for structural SVMs.
    Osokin et al. 2016, Minding the gaps for block Frank-Wolfe optimization of structured SVMs.
    """

    sampling: str = "permutation"
    certificate_every: float = 5.0
    averaging: str | None = None
    steps: str = "toward"

    def settings(self, n_examples: int, n_columns: int) -> Settings:
        return self.setting(Settings, selection=self.sampling, batch=1, tau=0.0, **_steps(self.steps))


@dataclass(repr=False, eq=False)
class SequentialDual(DualSolver):
    """Sequential dual method: one example at a time, its plane joins the example's set, SMO solves the set.

    A visit asks the oracle once; only that plane may join. Planes without weight leave at the end of the visit, and the
    planes of a certificate are not used, so the path of the weights is the published one.

    Parameters
    ----------
    tau : float
        A visit ends when the gradients of the example's planes differ by at most this share of its largest cost.
    certificate_every : float
        Passes between certificates.
    averaging : {None, "uniform", "weighted", "tail"}
        As that of :class:`BCFW`.

    References
    ----------
    Balamurugan, Shevade, Sundararajan, Keerthi 2011, A sequential dual method for structural SVMs. Mancev 2015.
    """

    tau: float = 1e-6
    certificate_every: float = 5.0
    averaging: str | None = None

    def settings(self, n_examples: int, n_columns: int) -> Settings:
        return self.setting(Settings, selection="permutation", batch=1, patience=0, reuse=False)


@dataclass(repr=False, eq=False)
class SimplicialDecomposition(DualSolver):
    """Restricted simplicial decomposition on the reduced dual.

    Parameters
    ----------
    blocks : {"one", "product"}
        One simplex for the sum over the examples, or a simplex for each example.
    working_set : int or None
        Examples visited in one iteration, the others fixed; None for all. With one simplex the examples are cut into
        groups of this size, and each group has its simplex.
    limit : int, None or "auto"
        Most extreme points kept in a simplex (r). "auto" is the length of a plane + 2 with one simplex,
        enough for finite convergence, and no limit but memory with a product.
    selection : {"cyclic", "random", "gap", "key", "permutation"}
        Which examples form a working set.
    master : {"newton", "smo", "auto"}
        How the master problem is solved: jointly by projected Newton, or block by block. "auto" is Newton for one
        simplex and for small products.
    drop : bool
        Drop points of zero weight.
    memory : int
        Bytes for the stored points; when they do not suffice, blocks are restricted further by merging.

    References
    ----------
    Yu, Rousu 2007, An efficient method for large margin parameter optimization in structured prediction problems.
    """

    blocks: str = "product"
    working_set: int | None = None
    limit: int | str | None = "auto"
    selection: str = "cyclic"
    master: str = "auto"
    drop: bool = True
    memory: int = 4 << 30

    def settings(self, n_examples: int, n_columns: int) -> Settings:
        check_words("blocks", self.blocks, ("one", "product"))
        if self.working_set is not None and self.working_set < 1:
            raise ValueError(f"working_set must be at least 1 example, got {self.working_set}.")
        one = self.blocks == "one"
        limit = (n_columns + 2 if one else None) if self.limit == "auto" else self.limit
        if limit is not None and (isinstance(limit, str) or limit < 1):
            raise ValueError(f'limit must be at least 1, None or "auto"; got {self.limit!r}.')
        size = n_examples if self.working_set is None else min(self.working_set, n_examples)
        groups = max(1, -(-n_examples // size))
        everything = size == n_examples
        best = "newton" if one or size * 10 <= 2000 else "smo"
        return self.setting(
            Settings, blocks=("one" if groups == 1 else groups) if one else "product", batch=None, limit=limit,
            selection="whole" if everything else self.selection, rule="iterate", keep_origin=False,
            visits=1.0 if everything else (1.5 if one else max(size, 1.5)), cached_passes=50, cached_share=0.02,
            cached_blocks="visited", certificate_every=0.0 if everything else 2.0,
            master=best if self.master == "auto" else self.master, patience=0 if self.drop else UNLIMITED_PATIENCE,
        )  # fmt: skip


@dataclass(repr=False, eq=False)
class CuttingPlane(DualSolver):
    """Cutting planes: all planes found so far, the restricted problem solved well before the next oracle pass.

    Parameters
    ----------
    slack : {"one", "n"}
        One slack for the sum of the losses (a dense plane an iteration), or a slack for each example.
    patience : int
        Iterations that a plane without weight survives.

    References
    ----------
    Joachims, Finley, Yu 2009, Cutting-plane training of structural SVMs. Tsochantaridis et al. 2005.
    """

    slack: str = "one"
    patience: int = 50

    def settings(self, n_examples: int, n_columns: int) -> Settings:
        check_words("slack", self.slack, ("one", "n"))
        blocks, master = ("one", "newton") if self.slack == "one" else ("product", "smo")
        return self.setting(
            Settings, blocks=blocks, master=master, selection="whole", batch=None, cached_passes=100,
            cached_share=0.005, certificate_every=0.0,
        )  # fmt: skip


@dataclass(repr=False, eq=False)
class Auto(DualSolver):
    """The accelerated default: a simplex for each example, visited where the gap is.

    A round is one look at all examples (the certificate, whose planes are used) and ``1 / visits`` shorter sweeps over
    examples drawn in proportion to their gap; after each, passes over the planes at hand. Planes of the separate parts
    in which an output differs from the truth come with the argmax. All of it is exact: the dual never falls.

    Parameters
    ----------
    visits : float
        Share of the examples in a sweep.
    batch : int
        Examples decoded at the same weights (in threads when there are several workers).
    cached_passes : int
        Most passes over planes at hand after a sweep; they end when one gains less than 18 % of the step, or 3 % where
        they are extrapolated.
    max_steps : int
        Most pairs of multipliers that move in one visit of an example. A few are nearly all of the gain, and the next
        visit goes on from there.
    parts : int
        The most planes taken from one argmax; 1 for the argmax alone.
    certificate_every : float
        Passes of sweeps between certificates.
    sampling : {"gap", "permutation", "random", "cyclic"}
        Which examples a sweep visits: in proportion to their last known gap, or without regard to it.
    extrapolate : bool
        Let passes over planes at hand be followed by jumps to where they lead, when the weights are few beside the
        planes (images rather than words).
    memory : int
        Bytes for the planes.
    """

    visits: float = 0.2
    batch: int = 8
    cached_passes: int = 30
    max_steps: int = 5
    parts: int = 4
    certificate_every: float = 2.0
    sampling: str = "gap"
    extrapolate: bool = True
    memory: int = 4 << 30

    def settings(self, n_examples: int, n_columns: int) -> Settings:
        return self.setting(Settings, selection=self.sampling, patience=5, master="auto", cached_share=0.18)


SOLVERS: dict[str, type[BaseSolver]] = {
    "auto": Auto, "simplicial": SimplicialDecomposition, "sequential_dual": SequentialDual, "bcfw": BCFW,
    "frank_wolfe": FrankWolfe, "cutting_plane": CuttingPlane, "pegasos": Pegasos, "sgd": SGD,
    "perceptron": Perceptron, "mira": MIRA, "proximal": ProximalPoint, "column_generation": ColumnGeneration,
    "recentred_dual": RecentredDual, "sharded": Sharded,
}  # fmt: skip


def solver_for(solver: object, problem: Problem) -> BaseSolver:
    """A solver object from a name or an object, checked against the problem that it is for."""
    names = [name for name, kind in SOLVERS.items() if problem.traits <= kind.handles]
    wanted = f"solver must be {'one of ' if len(names) > 1 else ''}{', '.join(names)}, or a solver object"
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(f"{wanted}; got {solver!r}.")
        if solver == "auto" and problem.traits <= ColumnGeneration.handles:
            return RecentredDual() if RecentredDual.suits(problem) else ColumnGeneration()
        check_solver(f'solver="{solver}"', SOLVERS[solver].handles, problem)
        if solver == "auto" and problem.labels is not None:
            from maxmargin.solvers.label_dual import LabelDual

            if LabelDual.suits(problem):
                return LabelDual()
        return SOLVERS[solver]()
    if not isinstance(solver, BaseSolver):
        got = f"the class {solver.__name__}: write {solver.__name__}()" if isinstance(solver, type) else f"{solver!r}"
        raise TypeError(f"{wanted}; got {got}.")
    check_solver(f"solver={solver!r}", solver.handles, problem)
    return solver
