"""Fitted segmenters in model files, and back."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.estimators.saving import (
    COMPONENTS,
    as_mapping,
    library_version,
    load_as,
    restore_training,
    training_facts,
    unfitted,
)
from maxmargin.features.images import ImageFeatures
from maxmargin.models.grid import Grid, GridLayout
from maxmargin.persistence.model_file import write_model
from maxmargin.persistence.values import pack_value, unpack_value

__all__ = ["SEGMENTER", "load_segmenter", "restore", "save_segmenter"]

SEGMENTER = "ImageSegmenter"
_NOT_STORED = ("callbacks", "features", "start")  # the features are stored as they are after fit


def save_segmenter(segmenter: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted segmenter: parameters, weights, certificate and, where it has them, its features.

    Not stored: callbacks, the start of a ramp fit, the history and the state for a warm start.
    """
    segmenter._check_fitted()
    tensors: dict[str, np.ndarray] = {"weights": np.array(segmenter.weights_)}
    parameters = {k: v for k, v in segmenter.get_params(deep=False).items() if k not in _NOT_STORED}
    header = {
        "kind": SEGMENTER,
        "library_version": library_version(),
        "parameters": pack_value(parameters, tensors, "parameters", COMPONENTS),
        "layout": pack_value(asdict(segmenter.layout_), tensors, "layout"),
        "training": pack_value(training_facts(segmenter), tensors, "training"),
    }
    if segmenter.features_ is not None:
        if type(segmenter.features_) is not ImageFeatures:
            raise ValueError(
                f"the features {type(segmenter.features_).__name__} can not be stored in a model file, only "
                "ImageFeatures can; fit on mappings of feature arrays instead."
            )
        state = {"given": segmenter.features is not None, "state": segmenter.features_.to_state()}
        header["features"] = pack_value(state, tensors, "features")
    return write_model(path, header, tensors)


def load_segmenter(path: str | os.PathLike[str], cls: type | None = None, *, verify: bool = True) -> Any:
    """The segmenter of :func:`save_segmenter`, ready to predict."""
    return load_as(SEGMENTER, path, cls, verify=verify, mmap=False)


def restore(cls: Any, header: dict[str, str], tensors: dict[str, np.ndarray]) -> Any:
    """The segmenter of a header and tensors."""
    segmenter = unfitted(cls, header, tensors)
    layout = GridLayout(**as_mapping(unpack_value(header["layout"], tensors), "layout"))
    weights = np.array(tensors["weights"], np.float64)
    if weights.shape != (layout.n_weights,):
        raise ValueError(f"it has {weights.shape} weights for {layout.n_weights} features")
    segmenter.model_ = Grid(
        segmenter.neighbours, cost=segmenter.cost, boundary=segmenter.boundary, width=segmenter.width
    )
    segmenter.layout_, segmenter.weights_, segmenter.features_ = layout, weights, None
    groups = layout.groups(weights)
    segmenter.node_coef_, segmenter.edge_coef_ = groups["node"], groups["edge"]
    restore_training(segmenter, as_mapping(unpack_value(header["training"], tensors), "training"))
    if "features" in header:
        stored = as_mapping(unpack_value(header["features"], tensors), "features")
        segmenter.features_ = ImageFeatures.from_state(*stored["state"])
        segmenter.features = segmenter.features_ if stored["given"] is True else None  # fit works on a copy
    return segmenter
