"""Solvers and the loop that runs them; names load when they are first used."""

from maxmargin.lazy import lazy

_NAMES = {
    "presets": "Auto BCFW CuttingPlane FrankWolfe SequentialDual SimplicialDecomposition",
    "subgradient": "Pegasos SGD",
    "perceptron": "Perceptron",
    "mira": "MIRA",
    "proximal_point": "ProximalPoint",
    "column_generation": "ColumnGeneration",
    "linear_programs.extragradient": "Extragradient",
    "linear_programs.highs": "Highs",
    "linear_programs.masters": "AutoMaster",
    "linear_programs.primal_dual": "PrimalDual",
    "linear_programs.program": "Master Point Program",
    "recentred_dual": "RecentredDual",
    "sharded": "Sharded",
    "base": "BaseSolver",
    "cccp": "CCCP",
    "refits": "Refits",
    "outer": "with_outer_loops",
    "driver": "run",
    "history": "History",
    "status": "Status",
}

__all__, __getattr__, __dir__ = lazy(__name__, _NAMES)
