"""Models, and what they bind examples to; names load when they are first used."""

from maxmargin.lazy import lazy

_NAMES = {
    "chain": "Chain",
    "multiclass": "Multiclass",
    "label_set": "LabelSet",
    "hierarchy": "with_ancestors",
    "hmm": "HMM",
    "grid": "Grid",
    "graph": "Graph",
    "matching": "Matching",
    "lattice": "LatticeModel",
    "bayes_net": "BayesNet",
    "network": "Network",
    "structure": "learn_structure",
    "user": "PythonModel UserModel",
    "base": "BoundModel",
    "labels": "Labels",
}

__all__, __getattr__, __dir__ = lazy(__name__, _NAMES)
