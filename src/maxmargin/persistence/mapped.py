"""Arrays in files that are mapped into memory: the system reads what is used, and forgets it when memory is short."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

__all__ = ["create_array", "file_digest", "mapped", "open_array"]

AT_ONCE = 1 << 24  # bytes of a file that are read together


def create_array(path: Path, dtype: DTypeLike, length: int) -> np.ndarray:
    """A new array of numbers in a file, for which the disk has room; an OSError where it has not."""
    size = np.dtype(dtype).itemsize * length
    with open(path, "xb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)  # a map into a file with holes would end in a signal
        except AttributeError:  # not on this system
            for begin in range(0, size, AT_ONCE):
                file.write(bytes(min(AT_ONCE, size - begin)))
    return open_array(path, dtype, length)


def open_array(path: Path, dtype: DTypeLike, length: int) -> np.ndarray:
    """An array in a file, shared with all that map it; a ValueError when the file has another size.

    Kernels take arrays that may be written to, so the map may be; nobody writes to it once it is made. A file that may
    only be read is mapped with changes kept in memory.
    """
    size = path.stat().st_size
    if size != np.dtype(dtype).itemsize * length or length == 0:
        raise ValueError(f"{path} has {size} bytes instead of {np.dtype(dtype).itemsize * length}; delete its folder.")
    mode = "r+" if os.access(path, os.W_OK) else "c"
    return np.asarray(np.memmap(path, dtype, mode, shape=(length,)))  # type: ignore[call-overload]


def mapped(array: object) -> tuple[Path, str, int] | None:
    """The arguments of :func:`open_array` that give the same array; None where it is not one of these."""
    base = array.base if isinstance(array, np.ndarray) else None
    if not isinstance(array, np.ndarray) or not isinstance(base, np.memmap) or base.filename is None:
        return None
    whole = base.offset == 0 and array.nbytes == os.path.getsize(base.filename) == base.nbytes
    return (Path(base.filename).resolve(), array.dtype.str, len(array)) if whole else None


def file_digest(path: Path) -> str:
    """Hexadecimal digest of the bytes of a file, read a few at a time."""
    state = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(AT_ONCE):
            state.update(block)
    return state.hexdigest()
