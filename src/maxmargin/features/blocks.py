"""Blocks of features as users give them: matrices of numbers, dense or sparse, checked."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

__all__ = ["dense_block", "first_not_finite", "first_place", "picture_block", "refuse_not_finite", "sparse_block"]


def dense_block(x: object, name: str) -> np.ndarray:
    """A matrix as float64 (rows, F), or a ValueError that begins with ``name``."""
    try:
        array = np.asarray(sp.csr_array(x).toarray() if sp.issparse(x) else x)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: features have rows of different lengths; give rows of equal length.") from None
    _check(array, name)
    return np.ascontiguousarray(array, np.float64)


def sparse_block(x: object, name: str) -> sp.csr_array:
    """A matrix in compressed rows, or a ValueError that begins with ``name``."""
    matrix = sp.csr_array(x if sp.issparse(x) else dense_block(x, name))
    _check(matrix, name)
    return matrix


def _check(matrix: np.ndarray | sp.csr_array, name: str) -> None:
    if matrix.ndim != 2:
        hint = " For a single example pass X[None]." if matrix.ndim == 1 and name == "X" else ""
        wanted = f"a (length, n_features) matrix, not of shape {matrix.shape}; give one row of features each"
        raise ValueError(f"{name}: features must be {wanted}.{hint}")
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{name}: features must be numbers, got dtype {matrix.dtype}; encode them first.")


def first_not_finite(block: np.ndarray | sp.csr_array) -> int:
    """The first row that has NaN or infinite features, -1 when there is none."""
    values = block if isinstance(block, np.ndarray) else block.data
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return -1
    if isinstance(block, np.ndarray):
        return int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
    return int(np.searchsorted(block.indptr, np.flatnonzero(~np.isfinite(values))[0], side="right")) - 1


def first_place(mask: np.ndarray) -> tuple[int, ...]:
    """Where a mask is first true."""
    return tuple(map(int, np.argwhere(mask)[0]))


def refuse_not_finite(array: np.ndarray, what: str) -> None:
    """A ValueError that names the first place of an array with a number that is not finite."""
    bad = ~np.isfinite(array)
    if bad.any():
        raise ValueError(f"{what}, first at {first_place(bad)}; replace them before fitting.")


def picture_block(image: ArrayLike, name: str, ndim: int, whole: float) -> np.ndarray:
    """An image on ``ndim`` axes as float64 (*shape, channels); whole numbers are divided by ``whole``, bytes by 255."""
    image = np.asarray(image)
    if image.ndim not in (ndim, ndim + 1) or image.size == 0 or image.dtype.kind not in "fiub":
        wanted = {2: "of shape (height, width)", 3: "of shape (depth, height, width)"}.get(ndim, f"on {ndim} axes")
        given = f"{name} is {image.dtype} of shape {image.shape}"
        raise ValueError(f"{given}; give numbers {wanted}, optionally with a last axis of channels.")
    divisor = (255.0 if image.dtype == np.uint8 else whole) if image.dtype.kind in "iu" else 1.0
    picture = image.reshape(*image.shape[:ndim], -1).astype(np.float64) / divisor
    refuse_not_finite(picture, f"{name} has NaN or infinite pixels")
    return picture
