"""Models, and what they bind examples to; names load when they are first used."""

from maxmargin.lazy import lazy

_NAMES = {
    "chain": "Chain",
    "multiclass": "Multiclass",
    "hmm": "HMM",
    "grid": "Grid",
    "graph": "Graph",
    "bayes_net": "BayesNet",
    "network": "Network",
    "structure": "learn_structure",
    "user": "PythonModel UserModel",
    "base": "BoundModel",
    "labels": "Labels",
}
_PLACES = {name: f"maxmargin.models.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_PLACES]
__getattr__, __dir__ = lazy(__name__, _PLACES)
