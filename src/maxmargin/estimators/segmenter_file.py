"""Fitted segmenters in model files, and back."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.estimators.saving import _library_version, _mapping, _restore_training, _training
from maxmargin.features.images import ImageFeatures
from maxmargin.models.grid import Grid, GridLayout
from maxmargin.persistence.model_file import read_model, write_model
from maxmargin.persistence.values import pack_value, unpack_value
from maxmargin.solvers.presets import SOLVERS

__all__ = ["SEGMENTER", "load_segmenter", "save_segmenter"]

SEGMENTER = "ImageSegmenter"
_COMPONENTS: dict[str, type] = {kind.__name__: kind for kind in SOLVERS.values()}
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
        "library_version": _library_version(),
        "parameters": pack_value(parameters, tensors, "parameters", _COMPONENTS),
        "layout": pack_value(asdict(segmenter.layout_), tensors, "layout"),
        "training": pack_value(_training(segmenter), tensors, "training"),
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
    if cls is None:
        from maxmargin.estimators.image_segmenter import ImageSegmenter as cls
    header, tensors = read_model(path, mmap=False, verify=verify)
    if header.get("kind") != SEGMENTER:
        raise ValueError(
            f"{path} holds a {header.get('kind', 'model of no kind')[:80]}, not a {SEGMENTER}; check the path."
        )
    try:
        return _restore(cls, header, tensors)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} can not be understood ({error}); it may be of a newer version, or damaged. Train and save again."
        ) from error


def _restore(cls: Any, header: dict[str, str], tensors: dict[str, np.ndarray]) -> Any:
    parameters = _mapping(unpack_value(header["parameters"], tensors, _COMPONENTS), "parameters")
    segmenter = cls(**parameters)
    layout = GridLayout(**_mapping(unpack_value(header["layout"], tensors), "layout"))
    weights = np.array(tensors["weights"], np.float64)
    if weights.shape != (layout.n_weights,):
        raise ValueError(f"it has {weights.shape} weights for {layout.n_weights} features")
    segmenter.model_ = Grid(
        segmenter.neighbours, cost=segmenter.cost, boundary=segmenter.boundary, width=segmenter.width
    )
    segmenter.layout_, segmenter.weights_, segmenter.features_ = layout, weights, None
    groups = layout.groups(weights)
    segmenter.node_coef_, segmenter.edge_coef_ = groups["node"], groups["edge"]
    _restore_training(segmenter, _mapping(unpack_value(header["training"], tensors), "training"))
    if "features" in header:
        stored = _mapping(unpack_value(header["features"], tensors), "features")
        segmenter.features_ = ImageFeatures.from_state(*stored["state"])
        segmenter.features = segmenter.features_ if stored["given"] is True else None  # fit works on a copy
    return segmenter
