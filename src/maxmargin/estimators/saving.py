"""Fitted estimators in model files, and back."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Collection
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.certificate import Certificate
from maxmargin.costs import HammingCost, MatrixCost, WeightedHammingCost, as_cost
from maxmargin.models.chain_file import pack_chain, unpack_chain
from maxmargin.persistence.model_file import read_model, write_model
from maxmargin.persistence.values import pack_value, unpack_value
from maxmargin.solvers.presets import SOLVERS
from maxmargin.solvers.status import Status

__all__ = [
    "COMPONENTS",
    "KINDS",
    "as_mapping",
    "cost_table",
    "header_of",
    "load",
    "load_as",
    "restore",
    "restore_training",
    "save_tagger",
    "storable",
    "unfitted",
]

TAGGER = "SequenceTagger"
_NOT_STORED = ("callbacks", "features")  # the extractor is stored as it is after fit

# What may stand in a model file, by the name of its class: the module of the class, and that of ``restore``, which
# makes a fitted estimator from (class, header, tensors).
KINDS = {
    TAGGER: ("maxmargin.estimators.sequence_tagger", "maxmargin.estimators.saving"),
    "ImageSegmenter": ("maxmargin.estimators.image_segmenter", "maxmargin.estimators.segmenter_file"),
    "GraphLabeler": ("maxmargin.estimators.graph_labeler", "maxmargin.estimators.graph_file"),
    "DiscriminativeHMM": ("maxmargin.estimators.discriminative_hmm", "maxmargin.estimators.generative_file"),
    "DiscriminativeBayesNet": ("maxmargin.estimators.discriminative_bayes_net", "maxmargin.estimators.generative_file"),
}

# Feature extractors that may stand in a model file: a file names one of these and can name nothing else.
EXTRACTORS = {
    "TextFeatures": "maxmargin.features.extractor",
    "DictFeatures": "maxmargin.features.dicts",
}

COMPONENTS: dict[str, type] = {
    kind.__name__: kind for kind in (HammingCost, MatrixCost, WeightedHammingCost, *SOLVERS.values())
}


def load(path: str | os.PathLike[str], *, verify: bool = True) -> Any:
    """The fitted estimator in a model file, of whichever kind it is.

    Parameters
    ----------
    path : path-like
    verify : bool
        Check the data against its checksum; False saves reading a huge file twice.

    Raises
    ------
    OSError
        When there is no such file, or it may not be read.
    ValueError
        When the file is truncated, damaged, of another kind, or of a newer version.
    """
    header, tensors = read_model(path, verify=verify)
    return _rebuilt(path, header, tensors, None)


def load_as(cls: type, path: str | os.PathLike[str], *, verify: bool = True) -> Any:
    """The fitted estimator in a model file that must hold this class, one of ``KINDS`` or a subclass of one."""
    kind = next(base.__name__ for base in cls.__mro__ if base.__name__ in KINDS)
    header, tensors = read_model(path, mmap=kind == TAGGER, verify=verify)  # only chains grow so large that it pays
    if header.get("kind") != kind:
        raise ValueError(
            f"{path} holds a {header.get('kind', 'model of no kind')[:80]}, not a {kind}; check the path, or take "
            "maxmargin.load, which loads every kind."
        )
    return _rebuilt(path, header, tensors, cls)


def _rebuilt(path: Any, header: dict[str, str], tensors: dict[str, np.ndarray], cls: Any) -> Any:
    kind = header.get("kind", "model of no kind")
    if kind not in KINDS:
        raise ValueError(
            f"{path} holds a {kind[:80]}, this version loads {', '.join(KINDS)}. Check the path, or upgrade maxmargin."
        )
    own, maker = KINDS[kind]
    cls = getattr(import_module(own), kind) if cls is None else cls
    try:
        return import_module(maker).restore(cls, header, tensors)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        writer = header.get("library_version", "unknown")[:40]
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) and error.args else str(error)
        raise ValueError(
            f"{path} cannot be loaded: {what[:500]}. It was written by version {writer} of the library; save the "
            "model again, or load it with that version."
        ) from error


def save_tagger(tagger: Any, path: str | os.PathLike[str], *, precision: str = "float64") -> Path:
    """Write a fitted tagger: parameters, labels, weights, certificate and, where it has one, its feature extractor.

    Not stored: callbacks, the history and the state for a warm start. A cost that is a function is stored as its table.

    Parameters
    ----------
    tagger : SequenceTagger
        Its extractor, if any, is ``features_``, with ``to_state()`` and the class method ``from_state(*state)``.
    path : path-like
        Replaced when it exists, and only once the new file is complete.
    precision : {"float64", "float32"}
        Of the weights. float64: the loaded tagger predicts exactly the same.
    """
    tagger._check_fitted()
    facts, tensors = pack_chain(tagger.layout_, tagger.weights_, precision=precision)
    tensors = {f"chain.{name}": array for name, array in tensors.items()}
    labels = facts.pop("labels")
    header = {
        **header_of(TAGGER, tagger, storable(tagger, _NOT_STORED, partial(cost_table, tagger)), tensors),
        "labels": _pack_labels(labels, tensors),
        "layout": pack_value(facts, tensors, "layout"),
    }
    features = getattr(tagger, "features_", None)
    if features is not None:
        header["features"] = _pack_features(features, tagger.features is not None, tensors)
    return write_model(path, header, tensors)


def restore(cls: Any, header: dict[str, str], tensors: dict[str, np.ndarray]) -> Any:
    """The tagger of a header and tensors."""
    tagger = unfitted(cls, header, tensors)
    facts = as_mapping(unpack_value(header["layout"], tensors), "layout")
    labels = unpack_value(header["labels"], tensors)
    chain = {name.removeprefix("chain."): array for name, array in tensors.items() if name.startswith("chain.")}
    tagger.layout_, tagger.weights_ = unpack_chain({**facts, "labels": labels}, chain)
    tagger.classes_ = tagger.layout_.labels.classes
    tagger.model_ = tagger._model()
    restore_training(tagger, header, tensors)
    tagger.features_ = None
    if "features" in header:
        tagger.features_, given = _unpack_features(header["features"], tensors)
        tagger.features = tagger.features_ if given else None  # fit works on a copy
    return tagger


def unfitted(cls: Any, header: dict[str, str], tensors: dict[str, np.ndarray]) -> Any:
    """An estimator with the stored parameters."""
    parameters = as_mapping(unpack_value(header["parameters"], tensors, COMPONENTS), "parameters")
    unknown = set(parameters) - set(cls._get_param_names())
    if unknown:
        raise ValueError(f"{cls.__name__} has no parameter {min(unknown)[:80]!r}; a newer version may have it")
    return cls(**parameters)


def restore_training(estimator: Any, header: dict[str, str], tensors: dict[str, np.ndarray]) -> None:
    """Set the fitted attributes that tell how training went; None stands for one that was not there."""
    training = as_mapping(unpack_value(header["training"], tensors), "training")
    temperature = training.get("temperature")  # the first files have none
    if temperature is not None:
        if type(temperature) is not float or not 0 < temperature < np.inf:
            raise ValueError(f"its temperature is {temperature!r}")
        estimator.temperature_ = temperature
    column = training.get("label_column")  # only the command line knows of columns
    if column is not None:
        if type(column) is not int or column < 0:
            raise ValueError(f"its label column is {column!r}")
        estimator.label_column_ = column
    if training["certificate"] is not None:
        stored = as_mapping(training["certificate"], "certificate")
        if not all(type(stored[name]) is float for name in ("primal", "dual")):
            raise ValueError("the primal and the dual of its certificate are not both numbers")
        estimator.certificate_ = Certificate(stored["primal"], stored["dual"], stored["certified"] is True)
    if training["status"] is not None:
        stored = as_mapping(training["status"], "status")
        if not all(type(stored[name]) is str for name in ("code", "sentence")):
            raise ValueError("the code and the sentence of its status are not both text")
        estimator.status_ = Status(stored["code"], stored["sentence"])
    for name, kind in (("n_iter", float), ("oracle_calls", int), ("seconds", dict)):
        if training[name] is not None:
            if type(training[name]) is not kind:
                raise ValueError(f"its {name} is a {type(training[name]).__name__}")
            setattr(estimator, f"{name}_", training[name])


def as_mapping(value: Any, name: str) -> dict[str, Any]:
    """A stored value, if it is a mapping with text keys."""
    if type(value) is not dict or not all(type(key) is str for key in value):
        raise ValueError(f"its {name} is not a mapping with text keys")
    return value


def storable(estimator: Any, without: Collection[str], stand_in: Callable[[str], Any]) -> dict[str, Any]:
    """Constructor arguments that a file can hold; a warning names those that it cannot.

    Parameters
    ----------
    estimator : estimator
    without : collection of str
        Names of those to be left out.
    stand_in : callable
        From the name of an argument that a file cannot hold to a value that it can, or None.
    """
    found = {}
    for name, value in estimator.get_params(deep=False).items():
        if name in without:
            continue
        value = list(value) if isinstance(value, range) else value
        try:
            pack_value(value, {}, name, COMPONENTS)
        except ValueError:
            other = stand_in(name)
            if other is None:
                warnings.warn(
                    f"the parameter {name}={value!r} cannot be stored in a model file; the loaded "
                    f"{type(estimator).__name__} will have its default.",
                    stacklevel=4,
                )
                continue
            value = other
        found[name] = value
    return found


def header_of(kind: str, estimator: Any, parameters: dict[str, Any], tensors: dict[str, np.ndarray]) -> dict[str, str]:
    """What the file of every estimator begins with: its kind, who wrote it, its parameters and its training."""
    return {
        "kind": kind,
        "library_version": _library_version(),
        "parameters": pack_value(parameters, tensors, "parameters", COMPONENTS),
        "training": pack_value(_training_facts(estimator), tensors, "training"),
    }


def cost_table(estimator: Any, name: str) -> Any:
    """The table of a cost that is a function; there is no stand-in for other parameters."""
    if name != "cost":
        return None
    cost, classes = as_cost(estimator.cost), list(estimator.classes_)
    return MatrixCost(cost.table(classes), labels=classes, normalize=bool(cost.normalize))


def _pack_labels(labels: list, tensors: dict[str, np.ndarray]) -> str:
    try:
        return pack_value(labels, tensors, "labels")
    except ValueError as error:
        raise ValueError(f"the labels cannot be stored: {error}.") from None


def _training_facts(estimator: Any) -> dict[str, Any]:
    """What a file holds about the training of an estimator; the counterpart of :func:`restore_training`."""
    certificate, status = getattr(estimator, "certificate_", None), getattr(estimator, "status_", None)
    seconds, temperature = getattr(estimator, "seconds_", None), getattr(estimator, "temperature_", None)
    passes, calls = getattr(estimator, "n_iter_", None), getattr(estimator, "oracle_calls_", None)
    column = getattr(estimator, "label_column_", None)
    return {
        "certificate": None
        if certificate is None
        else {
            "primal": float(certificate.primal),
            "dual": float(certificate.dual),
            "certified": bool(certificate.certified),
        },
        "status": None if status is None else {"code": status.code, "sentence": status.sentence},
        "n_iter": None if passes is None else float(passes),
        "oracle_calls": None if calls is None else int(calls),
        "seconds": None if seconds is None else {name: float(value) for name, value in seconds.items()},
        "temperature": None if temperature is None else float(temperature),
        "label_column": None if column is None else int(column),
    }


def _pack_features(features: Any, given: bool, tensors: dict[str, np.ndarray]) -> str:
    kind = type(features).__name__
    if kind not in EXTRACTORS or type(features).__module__ != EXTRACTORS[kind]:
        raise ValueError(
            f"the feature extractor {kind} cannot be stored in a model file, only {', '.join(EXTRACTORS)} can. Take "
            "it off (features_ = None), and extract the features before predict."
        )
    return pack_value({"kind": kind, "given": given, "state": features.to_state()}, tensors, "features")


def _unpack_features(text: str, tensors: dict[str, np.ndarray]) -> tuple[Any, bool]:
    """The fitted extractor, and whether it was given as a parameter rather than chosen by the tagger."""
    stored = as_mapping(unpack_value(text, tensors), "feature extractor")
    if type(stored["kind"]) is not str or stored["kind"] not in EXTRACTORS:
        raise ValueError(f"its feature extractor {str(stored['kind'])[:80]!r} is unknown; upgrade maxmargin")
    kind = getattr(import_module(EXTRACTORS[stored["kind"]]), stored["kind"])
    return kind.from_state(*stored["state"]), stored["given"] is True


def _library_version() -> str:
    """Version of the package this module is part of, which is imported before any of its modules."""
    return str(getattr(sys.modules[__name__.partition(".")[0]], "__version__", "unknown"))
