"""Model files: one file in the safetensors layout, written whole or not at all, checked before it is believed.

==============  ====================================================================================================
8 bytes         length of the header, little-endian
header          JSON: ``__metadata__`` (text by name) and for each tensor its dtype, shape and place in the data
data            the tensors, widest numbers first, without gaps
==============  ====================================================================================================

Any reader of safetensors opens these files. Two checksums stand in the metadata: ``data_sha256`` of the data, and
``header_sha256`` of the length and the header (with zeros in its own place), so that no damaged byte goes unnoticed.
Equal contents give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap as memory_map
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from maxmargin.persistence.json_text import parse_json
from maxmargin.persistence.whole_file import whole_file

__all__ = ["FORMAT", "HEADER_LIMIT", "VERSION", "read_model", "write_model"]

FORMAT = "maxmargin-model"
VERSION = 1
HEADER_LIMIT = 100_000_000

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}
_OWN = ("header_sha256", "data_sha256", "format", "format_version")
_BEFORE_DIGEST = b'{"__metadata__":{"header_sha256":"'
_NO_DIGEST = "0" * 64
_DIMENSIONS = 8
_AGAIN = "copy the file again from its source, or save the model again"


def write_model(path: str | os.PathLike[str], header: Mapping[str, str], tensors: Mapping[str, np.ndarray]) -> Path:
    """Write texts and arrays to one model file, which appears only when it is complete.

    Parameters
    ----------
    path : path-like
        The file; its folder must exist. No suffix is added.
    header : mapping of str to str
        Texts of any content; the names format, format_version, header_sha256 and data_sha256 are reserved.
    tensors : mapping of str to array
        Floating-point numbers of 32 or 64 bits, whole numbers or booleans, of any shape.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} of the model file does not exist; create it first")
    for name, text in header.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(f"header entry {name!r} must be text by name, got {type(text).__name__}; use json.dumps")
        if name in _OWN:
            raise ValueError(f"the header name {name!r} is reserved; rename this entry")
    arrays = _storable(tensors)
    places: dict[str, object] = {}
    digest, at = hashlib.sha256(), 0
    for name, array in arrays.items():
        offsets = [at, at + array.nbytes]
        places[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": offsets}
        digest.update(_bytes(array))
        at += array.nbytes
    metadata = {"header_sha256": _NO_DIGEST, "format": FORMAT, "format_version": str(VERSION), **header}
    metadata["data_sha256"] = digest.hexdigest()
    text = json.dumps({"__metadata__": metadata, **places}, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)  # the data begins aligned
    if len(text) > HEADER_LIMIT:
        raise ValueError(f"the header takes {len(text)} bytes, more than {HEADER_LIMIT}; store large parts as tensors")
    length = len(text).to_bytes(8, "little")
    begin = len(_BEFORE_DIGEST)
    text = text[:begin] + _header_digest(length, text).encode("ascii") + text[begin + len(_NO_DIGEST) :]

    with whole_file(path) as file:
        file.write(length + text)
        for array in arrays.values():
            file.write(_bytes(array))
    return path


def read_model(
    path: str | os.PathLike[str], *, mmap: bool = True, verify: bool = True
) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Read a file of :func:`write_model`: its texts and its arrays, which are read-only.

    Every size is checked against the size of the file before anything of that size is made. A ValueError says that the
    file is truncated, damaged, of another kind, or of a newer version.

    Parameters
    ----------
    path : path-like
    mmap : bool
        Map the file into memory instead of reading it; it must then not be cut short by others while it is in use
        (replacing it by a new file is fine).
    verify : bool
        Check the data against its checksum, which reads all of it. The header is always checked.
    """
    path = Path(path)
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"{path} is not a file (a folder or a device); give the path of a model file.")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        prefix = file.read(8)
        length = int.from_bytes(prefix, "little")
        if len(prefix) < 8 or length < 2:
            raise ValueError(f"{path} is no model file: it is empty or does not begin with a header. Check the path.")
        if length > HEADER_LIMIT:
            raise ValueError(f"{path} is no model file: its header has {length} bytes, more than {HEADER_LIMIT}.")
        if length > size - 8:
            what = f"its header should take {length} bytes and only {size - 8} follow"
            raise _damaged(path, what, "truncated or no model file")
        header, entries = _parse(path, prefix, file.read(length))
        begin = 8 + length
        places = _checked_places(path, entries, begin, size - begin)
        buffer: bytes | memory_map.mmap
        if mmap:
            buffer = memory_map.mmap(file.fileno(), 0, access=memory_map.ACCESS_READ)
        else:
            file.seek(0)
            buffer = file.read(size)
        if len(buffer) != size:
            raise ValueError(f"{path} changed while it was read; load it again when it is complete.")
    if verify:
        with memoryview(buffer) as view, view[begin:] as data:
            digest = hashlib.sha256(data).hexdigest()
        if digest != header["data_sha256"]:
            raise _damaged(path, "the data does not match its checksum")
    tensors = {}
    for name, (dtype, shape, start, _) in places.items():
        count = math.prod(shape)
        array = np.frombuffer(buffer, dtype, count, begin + start) if count else np.empty(0, dtype)
        if dtype.kind == "b" and count and array.view(np.uint8).max() > 1:
            raise _damaged(path, f"tensor {name!r} has booleans that are neither 0 nor 1")
        array = array.reshape(shape)
        array.flags.writeable = False
        tensors[name] = array
    return {name: text for name, text in header.items() if name != "header_sha256"}, tensors


def _storable(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays as they lie in the file: little-endian, contiguous, widest numbers first, so that all are aligned."""
    arrays = {}
    for name, value in tensors.items():
        array = np.asarray(value, order="C")
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        if not isinstance(name, str) or not name or name == "__metadata__":
            raise ValueError(f"{name!r} cannot be the name of a tensor; use a text other than '__metadata__'")
        if array.dtype not in _NAMES or array.ndim > _DIMENSIONS:
            fine = f"numbers of the kinds {', '.join(_DTYPES)} in at most {_DIMENSIONS} dimensions"
            has = f"dtype {array.dtype} and {array.ndim} dimensions"
            raise ValueError(f"tensor {name!r} has {has}; a model file stores {fine}")
        arrays[name] = array
    return dict(sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])))


def _damaged(path: Path, what: str, kind: str = "damaged") -> ValueError:
    return ValueError(f"{path} is {kind}: {what}. {_AGAIN.capitalize()}.")


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _header_digest(length: bytes, text: bytes) -> str:
    begin = len(_BEFORE_DIGEST)
    digest = hashlib.sha256(length + text[:begin] + _NO_DIGEST.encode("ascii"))
    digest.update(memoryview(text)[begin + len(_NO_DIGEST) :])
    return digest.hexdigest()


def _parse(path: Path, prefix: bytes, raw: bytes) -> tuple[dict[str, str], dict[str, object]]:
    """Metadata and tensor places of a header that is of this format and version, and undamaged."""
    try:
        if raw[:1] != b"{":
            raise ValueError("it does not begin with '{'")
        places = parse_json(raw.decode("utf-8"))
        if type(places) is not dict:
            raise ValueError("it is not a mapping")
    except (ValueError, RecursionError) as error:
        what = f"its header is not the JSON it should be ({error})"
        raise ValueError(f"{path} is damaged or no model file: {what}. Check the path; {_AGAIN}.") from None
    header = places.pop("__metadata__", None)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{path} is a safetensors file, but its format is not {FORMAT!r}. Check the path.")
    version = header.get("format_version")
    if not isinstance(version, str) or not version.isdecimal() or not version.isascii() or len(version) > 9:
        raise _damaged(path, f"its format version is {str(version)[:40]!r}")
    if int(version) > VERSION:
        raise ValueError(f"{path} has format version {int(version)}, above {VERSION}. Upgrade maxmargin to load it.")
    begin = len(_BEFORE_DIGEST)
    claimed = raw[begin : begin + len(_NO_DIGEST)]
    intact = raw.startswith(_BEFORE_DIGEST) and _header_digest(prefix, raw).encode("ascii") == claimed
    if not intact or int(version) < 1:
        raise _damaged(path, "the header does not match its checksum")
    if not all(isinstance(text, str) for text in header.values()) or "data_sha256" not in header:
        raise _damaged(path, "its metadata is not text with a checksum of the data")
    return header, places


class _Place(NamedTuple):
    """Where a tensor lies in the data."""

    dtype: np.dtype
    shape: list[int]
    start: int
    end: int


def _checked_places(path: Path, entries: dict[str, object], begin: int, size: int) -> dict[str, _Place]:
    """Tensors of known kinds that fill the data exactly: inside the file, no overlap, no gap, aligned."""
    places = {}
    for name, entry in entries.items():
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
            raise _damaged(path, f"the entry of tensor {name[:80]!r} is incomplete")
        kind, shape, offsets = entry["dtype"], _whole_numbers(entry["shape"]), _whole_numbers(entry["data_offsets"])
        if shape is None or offsets is None or len(offsets) != 2:
            raise _damaged(path, f"the entry of tensor {name[:80]!r} is incomplete")
        if not isinstance(kind, str) or kind not in _DTYPES:
            raise _damaged(path, f"tensor {name[:80]!r} has the dtype {str(kind)[:40]!r}")
        dtype = np.dtype(_DTYPES[kind])
        extent = math.prod(n for n in shape if n)  # an empty tensor must not carry absurd lengths either
        if len(shape) > _DIMENSIONS or math.prod(shape) * dtype.itemsize != offsets[1] - offsets[0] or extent >= 2**48:
            what = f"tensor {name[:80]!r} of shape {str(shape)[:80]} and dtype {kind}"
            raise _damaged(path, f"{what} does not take the bytes {str(offsets)[:80]}")
        if (begin + offsets[0]) % dtype.itemsize:
            raise _damaged(path, f"tensor {name[:80]!r} is not aligned")
        places[name] = _Place(dtype, shape, *offsets)
    at = 0
    for name, place in sorted(places.items(), key=lambda item: item[1][2:]):
        if place.end > size:
            raise _damaged(path, f"tensor {name[:80]!r} does not end in its {size} bytes", "truncated")
        if place.start != at:
            what = f"tensor {name[:80]!r} begins at byte {place.start} of the data where {at} is expected"
            raise _damaged(path, f"{what}; tensors must neither overlap nor leave gaps")
        at = place.end
    if at != size:
        raise _damaged(path, f"{size - at} bytes follow the last tensor")
    return places


def _whole_numbers(values: object) -> list[int] | None:
    """A list of whole numbers that fit in 63 bits, or None."""
    fine = isinstance(values, list) and all(type(value) is int and 0 <= value < 2**63 for value in values)
    return values if fine and isinstance(values, list) else None
