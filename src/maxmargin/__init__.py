"""Large-margin structured prediction: an oracle turns weights into planes, a solver turns planes into weights.

Names load when they are first used, so ``import maxmargin`` is quick.
"""

from __future__ import annotations

from maxmargin.lazy import lazy

__version__ = "0.1.0"

_PLACES = {
    "StructuredSVM": "maxmargin.estimators.structured_svm",
    "SequenceTagger": "maxmargin.estimators.sequence_tagger",
    "MulticlassClassifier": "maxmargin.estimators.multiclass_classifier",
    "ImageSegmenter": "maxmargin.estimators.image_segmenter",
    "GraphLabeler": "maxmargin.estimators.graph_labeler",
    "DiscriminativeHMM": "maxmargin.estimators.discriminative_hmm",
    "DiscriminativeBayesNet": "maxmargin.estimators.discriminative_bayes_net",
    "audit": "maxmargin.estimators.audit",
    "regularisation_path": "maxmargin.estimators.path",
    "Chain": "maxmargin.models.chain",
    "Multiclass": "maxmargin.models.multiclass",
    "HMM": "maxmargin.models.hmm",
    "Grid": "maxmargin.models.grid",
    "Network": "maxmargin.models.network",
    "BayesNet": "maxmargin.models.bayes_net",
    "JunctionTree": "maxmargin.inference.junction_tree",
    "Graph": "maxmargin.models.graph",
    "graph_argmax": "maxmargin.inference.graph",
    "Sequences": "maxmargin.features.sequences",
    "TextFeatures": "maxmargin.features.extractor",
    "ImageFeatures": "maxmargin.features.images",
    "superpixels": "maxmargin.features.regions",
    "region_graph": "maxmargin.features.regions",
    "region_labels": "maxmargin.features.regions",
    "DictFeatures": "maxmargin.features.dicts",
    "load": "maxmargin.estimators.model_files",
    "Auto": "maxmargin.solvers.presets",
    "SimplicialDecomposition": "maxmargin.solvers.presets",
    "SequentialDual": "maxmargin.solvers.presets",
    "BCFW": "maxmargin.solvers.presets",
    "FrankWolfe": "maxmargin.solvers.presets",
    "CuttingPlane": "maxmargin.solvers.presets",
    "Pegasos": "maxmargin.solvers.subgradient",
    "SGD": "maxmargin.solvers.subgradient",
    "Perceptron": "maxmargin.solvers.perceptron",
    "MIRA": "maxmargin.solvers.mira",
    "ProximalPoint": "maxmargin.solvers.proximal_point",
    "MarginRescaling": "maxmargin.formulations.rescaled_hinge",
    "SlackRescaling": "maxmargin.formulations.rescaled_hinge",
    "Ramp": "maxmargin.formulations.ramp",
    "HammingCost": "maxmargin.costs",
    "WeightedHammingCost": "maxmargin.costs",
    "MatrixCost": "maxmargin.costs",
    "FunctionCost": "maxmargin.costs",
    "EarlyStopping": "maxmargin.callbacks.early_stopping",
    "Checkpoint": "maxmargin.callbacks.checkpoint",
    "JsonLog": "maxmargin.callbacks.json_log",
    "Progress": "maxmargin.callbacks.progress",
}

__all__ = ["__version__", *_PLACES]

__getattr__, __dir__ = lazy(__name__, _PLACES)
