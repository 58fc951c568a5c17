"""Checkpoints: a dict of arrays in one file, written whole or not at all, read without pickle.

The file is an npz without compression. Its entry ``maxmargin_sha256`` is the digest of all others, so that no damaged
byte goes unnoticed. A digest stops no one who means to change a file: whoever resumes a run checks each array against
the problem at hand (:mod:`maxmargin.solvers.saved`). Files of version 1 have no digest and are read all the same.
"""

from __future__ import annotations

import hashlib
import math
import os
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.persistence.whole_file import whole_file

__all__ = ["VERSION", "load_checkpoint", "save_checkpoint"]

VERSION = 2
_MARK, _DIGEST = "maxmargin_checkpoint", "maxmargin_sha256"
_KINDS = "biufU"
_HEADER_LIMIT = 10_000


def save_checkpoint(path: str | os.PathLike[str], arrays: Mapping[str, ArrayLike]) -> Path:
    """Write arrays, numbers, booleans and strings to one npz file, which appears only when it is complete.

    The folder must exist, and no suffix is added. Python objects that would need pickle are refused.
    """
    path = Path(path)
    ready = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    for name, array in ready.items():
        if array.dtype.kind not in _KINDS:
            advice = "turn it into numbers or a string (for instance json.dumps)"
            raise ValueError(f"entry {name!r} holds {array.dtype}, which a checkpoint does not store; {advice}")
        if name in (_MARK, _DIGEST):
            raise ValueError(f"the name {name!r} is reserved; rename this entry")
    ready[_MARK] = np.array(VERSION)
    ready[_DIGEST] = np.array(_digest(ready))
    with whole_file(path) as file, zipfile.ZipFile(file, "w") as archive:  # an npz, but free in the choice of names
        for name, array in ready.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
    return path


def load_checkpoint(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read a file of :func:`save_checkpoint`; numbers and strings come back as arrays of dimension 0.

    Every size is checked against the size of the file before anything of that size is made. A ValueError says that the
    file is truncated, damaged, not a checkpoint, or of a newer version.
    """
    path = Path(path)
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"{path} is not a file (a folder or a device); give the path of a checkpoint.")
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = _read(archive, path.stat().st_size)
    except Exception as error:  # zipfile and numpy raise errors of many kinds on damaged files
        what = f"it is truncated, damaged, or another kind of file ({error})"
        raise ValueError(f"{path} cannot be read as a checkpoint: {what}. {_ADVICE}.") from error
    if _MARK not in arrays or arrays[_MARK].dtype.kind not in "iu" or arrays[_MARK].ndim:
        raise ValueError(f"{path} is a numpy archive but not a checkpoint of this library; check the path")
    version, digest = int(arrays[_MARK]), arrays.pop(_DIGEST, None)
    if version > VERSION:
        raise ValueError(f"{path} has checkpoint version {version}, this library reads up to {VERSION}; upgrade it")
    if version > 1 and (digest is None or digest.tobytes() != np.array(_digest(arrays)).tobytes()):
        raise ValueError(f"{path} is damaged: its arrays do not match their checksum. {_ADVICE}.")
    del arrays[_MARK]
    return arrays


_ADVICE = "Use an earlier checkpoint or start again without one"


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of all names, kinds, shapes and contents."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b"")
    return digest.hexdigest()


def _read(archive: zipfile.ZipFile, size: int) -> dict[str, np.ndarray]:
    """All arrays; together they are no larger than the file, so nothing in it can claim more memory."""
    members = archive.infolist()
    names = [member.filename.removesuffix(".npy") for member in members]
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("its entries are compressed")
    if sum(member.file_size for member in members) > size or len(set(names)) < len(names):
        raise ValueError("its entries overlap")
    arrays = {}
    for name, member in zip(names, members, strict=True):
        with archive.open(member) as entry:
            arrays[name] = _array(name, entry, member.file_size)
    return arrays


def _array(name: str, entry: IO[bytes], size: int) -> np.ndarray:
    """One array in the npy format, of ``size`` bytes with its header."""
    version = np.lib.format.read_magic(entry)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"entry {name!r} has the npy version {version}")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(entry, max_header_size=_HEADER_LIMIT)
    rest = entry.read(size)
    if dtype.kind not in _KINDS or (fortran and len(shape) > 1) or min(shape, default=0) < 0:
        raise ValueError(f"entry {name!r} has the dtype {dtype} and the shape {shape}")
    if math.prod(shape) * dtype.itemsize != len(rest) or math.prod(n for n in shape if n) >= 2**48:
        raise ValueError(f"entry {name!r} of shape {shape} and dtype {dtype} does not take {len(rest)} bytes")
    if dtype.kind == "b" and rest.translate(None, b"\0\1"):
        raise ValueError(f"entry {name!r} has booleans that are neither 0 nor 1")
    return np.frombuffer(rest, dtype).reshape(shape) if len(rest) else np.empty(shape, dtype)
