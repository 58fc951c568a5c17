"""Large-margin structured prediction: an oracle turns weights into planes, a solver turns planes into weights.

Names load when they are first used, so ``import maxmargin`` is quick.
"""

from __future__ import annotations

from maxmargin.lazy import lazy

__version__ = "0.2.0"

_NAMES = {
    "estimators": "StructuredSVM SequenceTagger MulticlassClassifier MultilabelClassifier CalibratedLabels "
    "ImageSegmenter GraphLabeler Aligner LatticeRanker DiscriminativeHMM DiscriminativeBayesNet "
    "regularisation_path load audit",
    "models": "Chain Multiclass LabelSet with_ancestors HMM Grid Network BayesNet Graph Matching LatticeModel",
    "datasets": "Lattice Links",
    "inference.junction_tree": "JunctionTree",
    "inference.graph": "GraphAnswer graph_argmax",
    "features": "Sequences TextFeatures ImageFeatures superpixels region_graph region_labels DictFeatures "
    "AlignmentFeatures",
    "solvers": "Auto SimplicialDecomposition SequentialDual BCFW FrankWolfe CuttingPlane Pegasos SGD Perceptron MIRA "
    "ProximalPoint ColumnGeneration RecentredDual Sharded",
    "execution": "Ray",
    "formulations": "MarginRescaling SlackRescaling Ramp",
    "costs": "HammingCost WeightedHammingCost MatrixCost FunctionCost",
    "callbacks": "EarlyStopping Checkpoint JsonLog Progress",
}

_names, __getattr__, __dir__ = lazy(__name__, _NAMES)
__all__ = ["__version__", *_names]
