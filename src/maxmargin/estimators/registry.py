"""All that a model file can name, and the names that parameters had in earlier versions."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["KINDS", "RENAMED", "Kind"]


class Kind(NamedTuple):
    """What a name in a file may stand for: its role, the module of its class, and the layout that goes with it.

    ``inside`` is the kind of the estimator that this one is built round, for those that are.
    """

    role: str
    module: str
    layout: str = ""
    inside: str = ""


_PARTS = {
    "costs.hamming": "HammingCost WeightedHammingCost",
    "costs.matrix": "MatrixCost",
    "formulations.rescaled_hinge": "MarginRescaling RescaledHinge SlackRescaling",
    "formulations.ramp": "Ramp",
    "solvers.presets": "Auto SimplicialDecomposition SequentialDual BCFW FrankWolfe CuttingPlane",
    "solvers.sharded": "Sharded",
    "execution.ray_workers": "Ray",
    "solvers.subgradient": "Pegasos SGD",
    "solvers.perceptron": "Perceptron",
    "solvers.mira": "MIRA",
    "solvers.proximal_point": "ProximalPoint",
    "solvers.column_generation": "ColumnGeneration",
    "solvers.recentred_dual": "RecentredDual",
    "solvers.linear_programs.highs": "Highs",
    "solvers.linear_programs.masters": "AutoMaster",
    "solvers.linear_programs.extragradient": "Extragradient",
    "solvers.linear_programs.primal_dual": "PrimalDual",
}

# All that a file can name. A file names one of these and can name nothing else; classes are imported when needed.
KINDS: dict[str, Kind] = {
    "SequenceTagger": Kind("estimator", "maxmargin.estimators.sequence_tagger", "ChainLayout"),
    "MulticlassClassifier": Kind("estimator", "maxmargin.estimators.multiclass_classifier", "MulticlassLayout"),
    "MultilabelClassifier": Kind("estimator", "maxmargin.estimators.multilabel_classifier", "LabelSetLayout"),
    "CalibratedLabels": Kind(
        "estimator", "maxmargin.estimators.calibrated_labels", "LabelSetLayout", "MultilabelClassifier"
    ),
    "ImageSegmenter": Kind("estimator", "maxmargin.estimators.image_segmenter", "GridLayout"),
    "GraphLabeler": Kind("estimator", "maxmargin.estimators.graph_labeler", "GraphLayout"),
    "Aligner": Kind("estimator", "maxmargin.estimators.aligner", "MatchingLayout"),
    "LatticeRanker": Kind("estimator", "maxmargin.estimators.lattice_ranker", "LatticeLayout"),
    "DiscriminativeHMM": Kind("estimator", "maxmargin.estimators.discriminative_hmm", "HMMLayout"),
    "DiscriminativeBayesNet": Kind("estimator", "maxmargin.estimators.discriminative_bayes_net", "BayesNetLayout"),
    "StructuredSVM": Kind("estimator", "maxmargin.estimators.structured_svm"),  # the layout is that of its model
    "HMMLayout": Kind("layout", "maxmargin.models.hmm"),
    "BayesNetLayout": Kind("layout", "maxmargin.models.bayes_net"),
    "LatticeLayout": Kind("layout", "maxmargin.models.lattice"),
    "PythonLayout": Kind("layout", "maxmargin.models.user"),
    "PythonModel": Kind("wrapper", "maxmargin.models.user", "PythonLayout"),  # round a model of one's own
    "TextFeatures": Kind("features", "maxmargin.features.extractor", "ChainLayout"),
    "DictFeatures": Kind("features", "maxmargin.features.dicts", "ChainLayout"),
    "AlignmentFeatures": Kind("features", "maxmargin.features.alignment", "MatchingLayout"),
    "ImageFeatures": Kind("features", "maxmargin.features.images", "GridLayout"),
}
for _module, _names in _PARTS.items():
    KINDS |= {_name: Kind("component", f"maxmargin.{_module}") for _name in _names.split()}
for _name in ("Chain", "Multiclass", "Grid", "Graph", "LabelSet", "Matching"):
    _file = "label_set" if _name == "LabelSet" else _name.lower()
    KINDS[f"{_name}Layout"] = Kind("layout", f"maxmargin.models.{_file}")
    KINDS[_name] = Kind("component", f"maxmargin.models.{_file}", f"{_name}Layout")

# Parameters that files have under a former name, by class (estimators, models, costs and solvers): the present name, or
# None for one that is gone. "loss__name" is a parameter of the ramp, dropped where the loss is another.
_RAMP = {name: f"loss__{name}" for name in ("ramp", "start", "max_rounds", "passes_per_round")}
RENAMED: dict[str, dict[str, str | None]] = {
    **{
        name: {**_RAMP}
        for name in ("SequenceTagger", "MulticlassClassifier", "StructuredSVM", "DiscriminativeBayesNet")
    },
    "DiscriminativeHMM": {**_RAMP, "states": "classes"},
    "GraphLabeler": {**_RAMP, "passes": "message_passes", "branches": "max_branches"},
    "ImageSegmenter": {**_RAMP, "start": "start", "normalize": "per_pixel"},
    "Graph": {"passes": "message_passes", "branches": "max_branches"},
    "Multiclass": {"intercept": "fit_intercept"},
}
