"""Fitted segmenters in model files, and back."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.estimators.saving import as_mapping, header_of, restore_training, storable, unfitted
from maxmargin.features.images import ImageFeatures
from maxmargin.models.grid import GridLayout
from maxmargin.persistence.model_file import write_model
from maxmargin.persistence.values import pack_value, unpack_value

__all__ = ["restore", "save_segmenter"]

_NOT_STORED = ("callbacks", "features", "start")  # the features are stored as they are after fit


def save_segmenter(segmenter: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted segmenter: parameters, weights, certificate and, where it has them, its features.

    Not stored: callbacks, the start of a ramp fit, the history and the state for a warm start.
    """
    segmenter._check_fitted()
    tensors: dict[str, np.ndarray] = {"weights": np.array(segmenter.weights_)}
    parameters = storable(segmenter, _NOT_STORED, lambda name: None)
    header = {
        **header_of("ImageSegmenter", segmenter, parameters, tensors),
        "layout": pack_value(asdict(segmenter.layout_), tensors, "layout"),
    }
    if segmenter.features_ is not None:
        if type(segmenter.features_) is not ImageFeatures:
            raise ValueError(
                f"the features {type(segmenter.features_).__name__} cannot be stored in a model file, only "
                "ImageFeatures can; fit on mappings of feature arrays instead."
            )
        state = {"given": segmenter.features is not None, "state": segmenter.features_.to_state()}
        header["features"] = pack_value(state, tensors, "features")
    return write_model(path, header, tensors)


def restore(cls: Any, header: dict[str, str], tensors: dict[str, np.ndarray]) -> Any:
    """The segmenter of a header and tensors."""
    segmenter = unfitted(cls, header, tensors)
    layout = GridLayout(**as_mapping(unpack_value(header["layout"], tensors), "layout"))
    weights = np.array(tensors["weights"], np.float64)
    if weights.shape != (layout.n_weights,):
        raise ValueError(f"it has {weights.shape} weights for {layout.n_weights} features")
    segmenter.model_, segmenter.features_ = segmenter._model(), None
    segmenter._set_fitted(layout, weights)
    restore_training(segmenter, header, tensors)
    if "features" in header:
        stored = as_mapping(unpack_value(header["features"], tensors), "features")
        segmenter.features_ = ImageFeatures.from_state(*stored["state"])
        segmenter.features = segmenter.features_ if stored["given"] is True else None  # fit works on a copy
    return segmenter
