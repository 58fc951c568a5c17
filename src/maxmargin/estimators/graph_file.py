"""Fitted graph labelers in model files, and back."""

from __future__ import annotations

import os
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.estimators.saving import as_mapping, cost_table, header_of, restore_training, storable, unfitted
from maxmargin.models.graph import GraphLayout
from maxmargin.models.labels import Labels
from maxmargin.persistence.model_file import write_model
from maxmargin.persistence.values import pack_value, unpack_value

__all__ = ["restore", "save_labeler"]

_NOT_STORED = ("callbacks", "start")


def save_labeler(labeler: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted labeler: parameters, labels, weights and certificate.

    Not stored: callbacks, the start of a ramp fit, the history and the state for a warm start. A cost that is a
    function is stored as its table.
    """
    labeler._check_fitted()
    tensors: dict[str, np.ndarray] = {"weights": np.array(labeler.weights_)}
    parameters = storable(labeler, _NOT_STORED, partial(cost_table, labeler))
    facts = {field.name: getattr(labeler.layout_, field.name) for field in fields(GraphLayout)}
    facts["labels"] = list(labeler.classes_)
    header = {
        **header_of("GraphLabeler", labeler, parameters, tensors),
        "layout": pack_value(facts, tensors, "layout"),
        "method": pack_value(labeler.method_, tensors, "method"),
    }
    return write_model(path, header, tensors)


def restore(cls: Any, header: dict[str, str], tensors: dict[str, np.ndarray]) -> Any:
    """The labeler of a header and tensors."""
    labeler = unfitted(cls, header, tensors)
    facts = as_mapping(unpack_value(header["layout"], tensors), "layout")
    layout = GraphLayout(**{**facts, "labels": Labels(facts["labels"])})
    weights = np.array(tensors["weights"], np.float64)
    if weights.shape != (layout.n_weights,):
        raise ValueError(f"it has {weights.shape} weights where its layout needs {layout.n_weights}")
    labeler._set_fitted(layout, weights)
    labeler.method_ = as_mapping(unpack_value(header["method"], tensors), "method")
    restore_training(labeler, header, tensors)
    return labeler
