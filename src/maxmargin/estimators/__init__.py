"""Estimators in the manner of scikit-learn; names load when they are first used."""

from maxmargin.lazy import lazy

_NAMES = {
    "structured_svm": "StructuredSVM",
    "sequence_tagger": "SequenceTagger",
    "multiclass_classifier": "MulticlassClassifier",
    "multilabel_classifier": "MultilabelClassifier",
    "calibrated_labels": "CalibratedLabels",
    "image_segmenter": "ImageSegmenter",
    "graph_labeler": "GraphLabeler",
    "aligner": "Aligner",
    "lattice_ranker": "LatticeRanker",
    "discriminative_hmm": "DiscriminativeHMM",
    "discriminative_bayes_net": "DiscriminativeBayesNet",
    "interactive_segmentation": "InteractiveSegmentation",
    "path": "PathPoint RegularisationPath regularisation_path",
    "model_files": "load save",
    "explaining": "coef_table explain",
    "auditing": "audit",
}

__all__, __getattr__, __dir__ = lazy(__name__, _NAMES)
