"""Checkpoints: a dict of arrays in one file, written whole or not at all, read without pickle."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.persistence.whole_file import whole_file

__all__ = ["VERSION", "load_checkpoint", "save_checkpoint"]

VERSION = 1
_MARK = "maxmargin_checkpoint"
_DAMAGE = (zipfile.BadZipFile, zlib.error, ValueError, KeyError, AttributeError, TypeError)


def save_checkpoint(path: str | os.PathLike[str], arrays: Mapping[str, ArrayLike]) -> Path:
    """Write arrays, numbers, booleans and strings to one npz file, which appears only when it is complete.

    The folder must exist, and no suffix is added. Python objects that would need pickle are refused.
    """
    path = Path(path)
    ready = {name: np.asarray(value) for name, value in arrays.items()}
    for name, array in ready.items():
        if array.dtype.hasobject:
            advice = "turn it into numbers or a string (for instance json.dumps)"
            raise ValueError(f"entry {name!r} holds Python objects, which a checkpoint does not store; {advice}")
    if _MARK in ready:
        raise ValueError(f"the name {_MARK!r} is reserved; rename this entry")
    ready[_MARK] = np.array(VERSION)
    with whole_file(path) as file, zipfile.ZipFile(file, "w") as archive:  # an npz, but free in the choice of names
        for name, array in ready.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
    return path


def load_checkpoint(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read a file of :func:`save_checkpoint`; numbers and strings come back as arrays of dimension 0.

    A ValueError says that the file is truncated, damaged, not a checkpoint, or of a newer version.
    """
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise
    except (*_DAMAGE, EOFError, OSError) as error:
        what = f"it is truncated, damaged, or another kind of file ({error})"
        advice = "Use an earlier checkpoint or start again without one"
        raise ValueError(f"{path} cannot be read as a checkpoint: {what}. {advice}") from error
    if _MARK not in arrays:
        raise ValueError(f"{path} is a numpy archive but not a checkpoint of this library; check the path")
    version = int(arrays.pop(_MARK))
    if version > VERSION:
        raise ValueError(f"{path} has checkpoint version {version}, this library reads up to {VERSION}; upgrade it")
    return arrays
