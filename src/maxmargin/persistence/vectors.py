"""Vectors of weights without their zeros.

Of a vector with zeros the tensor ``name`` has the other numbers, and one of two tensors says where they stand,
whichever takes fewer bytes:

=================  ==================================================================================================
``name.bits``      one bit for each number, 1 where it is not zero, the first in the highest bit of a byte
``name.gaps``      bytes: how many zeros lie before each number; 255 stands for as many zeros and no number behind
                   them, also at the end, so that a short file cannot claim a long vector
=================  ==================================================================================================

A vector with hardly any zeros is the tensor ``name`` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np

__all__ = ["pack_vector", "unpack_vector", "zeros"]

MOST = 2**31
SKIP = 255


def pack_vector(name: str, vector: np.ndarray, precision: str = "float64") -> dict[str, np.ndarray]:
    """Tensors from which :func:`unpack_vector` makes the vector (n,) again. O(n).

    The precision "float32" of the stored numbers halves the file and changes scores by a relative 6e-8.
    """
    if precision not in ("float64", "float32"):
        raise ValueError(f'precision must be "float64" or "float32", got {precision!r}.')
    finite = np.abs(vector[np.isfinite(vector)])
    if precision == "float32" and finite.max(initial=0.0) > np.finfo(np.float32).max:
        raise ValueError('some weights are too large for precision="float32"; use precision="float64".')
    vector = vector.astype(precision)
    places = np.flatnonzero(vector)
    bits, gaps = np.packbits(vector != 0), _gaps(places, len(vector))
    part, where = ("bits", bits) if bits.nbytes <= gaps.nbytes else ("gaps", gaps)
    if (len(vector) - len(places)) * vector.itemsize <= where.nbytes:
        return {name: vector}
    return {name: vector[places], f"{name}.{part}": where}


def unpack_vector(name: str, tensors: Mapping[str, np.ndarray], n: int) -> np.ndarray:
    """The vector (n,) of :func:`pack_vector`, float64; a ValueError when the tensors do not make one."""
    values = tensors.get(name)
    if values is None:
        raise ValueError(f"its tensor {name!r} is missing")
    if values.dtype.kind != "f" or values.ndim != 1:
        raise ValueError(f"its tensor {name!r} has dtype {values.dtype} and shape {values.shape}; expected numbers")
    bits, gaps = tensors.get(f"{name}.bits"), tensors.get(f"{name}.gaps")
    if bits is not None:
        if bits.dtype != np.uint8 or bits.shape != (-(-n // 8),):
            raise ValueError(f"its tensor '{name}.bits' does not have one bit for each of {n} {name}")
        places = np.flatnonzero(np.unpackbits(bits)).astype(np.int64)
    elif gaps is not None:
        if gaps.dtype != np.uint8 or gaps.ndim != 1:
            raise ValueError(f"its tensor '{name}.gaps' has dtype {gaps.dtype} and shape {gaps.shape}; expected bytes")
        ends = np.cumsum(gaps + (gaps < SKIP).astype(np.int64), dtype=np.int64)
        places = ends[gaps < SKIP] - 1
        if not 0 <= n - (ends[-1] if len(ends) else 0) < SKIP:
            raise ValueError(f"its tensor '{name}.gaps' does not lead to the last of {n} {name}")
    else:
        places = np.arange(n if len(values) == n else 0)
    if len(places) != len(values) or (len(places) and places[-1] >= n):
        raise ValueError(f"it has {len(values)} {name} where its layout needs {n}")
    vector = zeros(n, name)
    vector[places] = values
    return vector


def _gaps(places: np.ndarray, n: int) -> np.ndarray:
    """Zeros before each place and behind the last, in bytes."""
    jumps, rest = np.divmod(np.diff(places, prepend=-1, append=n) - 1, SKIP)
    gaps = np.full(len(places) + int(jumps.sum()), SKIP, np.uint8)
    gaps[np.cumsum(jumps[:-1] + 1) - 1] = rest[:-1]
    return gaps


def zeros(n: int, name: str) -> np.ndarray:
    """Zeros that take memory only where they are written to, on most systems."""
    with suppress(MemoryError):
        if n < MOST:
            return np.zeros(n)
    raise ValueError(f"it has {n} {name} ({n * 8 / 2**30:.1f} GB), more than fit in memory")
