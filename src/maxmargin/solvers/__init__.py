"""Solvers and the loop that runs them; names load when they are first used."""

from maxmargin.lazy import lazy

_NAMES = {
    "presets": "Auto BCFW CuttingPlane FrankWolfe SequentialDual SimplicialDecomposition",
    "subgradient": "Pegasos SGD",
    "perceptron": "Perceptron",
    "mira": "MIRA",
    "proximal_point": "ProximalPoint",
    "base": "BaseSolver",
    "cccp": "CCCP",
    "refits": "Refits",
    "outer": "with_outer_loops",
    "driver": "run",
    "history": "History",
    "status": "Status",
}
_PLACES = {name: f"maxmargin.solvers.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_PLACES]
__getattr__, __dir__ = lazy(__name__, _PLACES)
