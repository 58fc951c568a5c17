"""The one door: arrays from outside become arrays that kernels trust, or an error that names what is wrong.

Kernels check nothing, so everything that they index with, or count on, is checked here first:

===================================  ==================================================================================
:func:`dense_block`                  matrices of numbers
:func:`sparse_block`                 sparse matrices of any format, in compressed rows: pointers and columns in range
:func:`picture_block`                images and volumes
:func:`edge_list`                    pairs of nodes
:func:`pointers`, :func:`indices`    where parts begin; whole numbers from 0 to some number
:func:`numbers`                      real numbers of any shape
:func:`weight_vector`                weights of a model, whoever set them
:func:`copied_rows`                  a copy of a sparse matrix, its numbers checked on the way
:func:`copy_numbers`                 numbers of images, checked on the way
:func:`copy_codes`                   the labels of masks, checked on the way
===================================  ==================================================================================

What has more structure is built of these: sequences (:class:`~maxmargin.features.sequences.Sequences`), graphs
(:mod:`maxmargin.models.graph_input`), images (:mod:`maxmargin.models.grid`), score tables
(:mod:`maxmargin.inference.tables`), networks (:mod:`maxmargin.models.network`), and the layouts of model files
(:mod:`maxmargin.models.layout_state`).

Numbers are not only finite but bounded, so that no sum of products overflows in a kernel: a minimum cut of infinite
capacities never ends. ``make bench-door`` shows what the checks cost.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable
from copy import copy
from typing import cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

__all__ = [
    "LARGEST_FEATURE", "LARGEST_WEIGHT", "check_compressed", "copied_rows", "copy_codes", "copy_numbers", "dense_block",
    "edge_list", "first_bad_row", "first_place", "indices", "numbers", "picture_block", "pointers", "refuse_not_finite",
    "sparse_block", "weight_vector",
]  # fmt: skip

WHOLE = (np.dtype(np.int32), np.dtype(np.int64))  # of pointers and columns
LARGEST_FEATURE = 1e100
LARGEST_WEIGHT = 1e150  # times features, and summed over a billion pixels, this stays far below the largest float


def dense_block(x: object, name: str) -> np.ndarray:
    """A matrix as float64 (rows, F), or a ValueError that begins with ``name``."""
    try:
        array = np.asarray(sparse_block(x, name).toarray() if sp.issparse(x) else x)
    except (TypeError, ValueError) as error:
        if sp.issparse(x):
            raise
        what = "features have rows of different lengths; give rows of equal length"
        raise ValueError(f"{name}: {what}.") from error
    _check_kind(array, name)
    return np.ascontiguousarray(array, np.float64)


def sparse_block(x: object, name: str) -> sp.csr_array:
    """A matrix in compressed rows whose pointers and columns are in range, or a ValueError that begins with ``name``.

    SciPy trusts the arrays of a matrix when it converts or slices it, so they are checked before.
    """
    if not sp.issparse(x):
        return sp.csr_array(dense_block(x, name))
    matrix = cast(sp.csr_array, x)
    if matrix.format == "dia":
        data, offsets = _plain_arrays(name, matrix.data, matrix.offsets)
        if data.ndim != 2 or offsets.shape != data.shape[:1] or offsets.dtype.kind != "i":
            raise ValueError(
                f"{name}: data {data.shape} and offsets {offsets.shape} do not fit; build the matrix again."
            )
    try:
        given = matrix if matrix.format in ("csr", "csc", "bsr", "coo") else matrix.tocoo()
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"{name}: the sparse matrix is damaged ({error}); build it again.") from error
    _plain_arrays(name, given.data)
    _check_kind(given, name)
    if given.format == "coo":
        for axis, places in enumerate(_plain_arrays(name, *given.coords)):
            indices(places, given.shape[axis], f"{name}: {('rows', 'columns')[axis]} of the sparse matrix")
        if {np.shape(given.data), *map(np.shape, given.coords)} != {(len(given.data),)}:
            raise ValueError(f"{name}: rows, columns and values of the sparse matrix differ in number; build it again.")
    else:
        check_compressed(given, name)
        used = int(given.indptr[-1])
        if {given.indptr.dtype, given.indices.dtype} - {*WHOLE} or {len(given.indices), len(given.data)} != {used}:
            given = copy(given)  # as SciPy needs it: its sums over other dtypes are floats, and it copies all entries
            given.indptr, given.indices = given.indptr.astype(np.int64), given.indices[:used].astype(np.int64)
            given.data = given.data[:used]
    return given if isinstance(given, sp.csr_array) else sp.csr_array(given)


def _plain_arrays(name: str, *parts: object) -> tuple[np.ndarray, ...]:
    """The arrays of a sparse matrix, which may have been replaced by anything."""
    arrays = tuple(part for part in parts if type(part) in (np.ndarray, np.memmap))
    if len(arrays) < len(parts):
        kinds = ", ".join(type(part).__name__ for part in parts)
        raise TypeError(f"{name}: the sparse matrix holds {kinds} where plain numpy arrays belong; build it again.")
    return cast("tuple[np.ndarray, ...]", arrays)


def check_compressed(matrix: sp.csr_array, name: str) -> None:
    """Rows (columns of "csc", blocks of "bsr") as SciPy and the kernels need them; O(rows + entries)."""
    from maxmargin.door_kernel import FALLS, FINE, START, rows_fault_32, rows_fault_64

    sides = tuple(matrix.shape[::-1] if matrix.format == "csc" else matrix.shape)
    starts, columns, data = _plain_arrays(name, matrix.indptr, matrix.indices, matrix.data)
    flat = columns.ndim == 1 and data.ndim == (3 if matrix.format == "bsr" else 1)
    if matrix.format == "bsr" and flat:
        sides = tuple(side // max(block, 1) for side, block in zip(sides, data.shape[1:], strict=True))
    if starts.shape != (sides[0] + 1,) or not flat or {starts.dtype.kind, columns.dtype.kind} - {"i", "u"}:
        what = f"indptr is {starts.dtype} {starts.shape}, indices {columns.dtype} {columns.shape}, data {data.shape}"
        raise ValueError(f"{name}: {what}; give {sides[0] + 1} whole numbers, and one index and value for each entry.")
    wide = np.int32 if starts.dtype == columns.dtype == np.int32 else np.int64
    starts, columns = _for_kernels(starts, wide), _for_kernels(columns, wide)
    check = rows_fault_32 if wide is np.int32 else rows_fault_64
    fault, at = check(starts, columns, sides[1], min(len(columns), len(data)))
    if fault == FINE:
        return
    if fault == START:
        what = f"indptr begins with {starts[0]} instead of 0"
    elif fault == FALLS:
        what = f"indptr falls from {starts[at]} to {starts[at + 1]} at {at}"
    elif at == len(starts) - 1:
        what = f"indptr ends with {starts[-1]}, but there are {len(columns)} indices and {len(data)} values"
    else:
        what = f"indices[{at}] is {columns[at]}, which is not between 0 and {sides[1] - 1}"
    raise ValueError(f"{name}: {what}; the sparse matrix is damaged, build it again.")


def _check_kind(matrix: np.ndarray | sp.csr_array, name: str) -> None:
    if matrix.ndim != 2:
        hint = " For a single example pass X[None]." if matrix.ndim == 1 and name == "X" else ""
        wanted = f"a (length, n_features) matrix, not of shape {matrix.shape}; give one row of features each"
        raise ValueError(f"{name}: features must be {wanted}.{hint}")
    if matrix.dtype.kind not in "fiub":
        raise ValueError(f"{name}: features must be numbers, got dtype {matrix.dtype}; encode them first.")


def first_bad_row(block: np.ndarray | sp.csr_array) -> int:
    """The first row with features that are NaN, infinite or beyond ``LARGEST_FEATURE``; -1 when there is none."""
    if isinstance(block, np.ndarray):
        at = _first_beyond(block, LARGEST_FEATURE)
        return at // block.shape[1] if at >= 0 else -1
    return _row_of(block, _first_beyond(block.data[: block.indptr[-1]], LARGEST_FEATURE))


def _row_of(block: sp.csr_array, entry: int) -> int:
    return int(np.searchsorted(block.indptr, entry, side="right")) - 1 if entry >= 0 else -1


def copied_rows(block: sp.csr_array) -> tuple[sp.csr_array, int]:
    """A copy in float64 of what :func:`sparse_block` made, and its :func:`first_bad_row`."""
    values = np.empty(len(block.data))
    at = copy_numbers([block.data], values)
    return sp.csr_array((values, block.indices.copy(), block.indptr.copy()), shape=block.shape), _row_of(block, at)


def copy_numbers(arrays: Iterable[np.ndarray], out: np.ndarray, least: float = -LARGEST_FEATURE) -> int:
    """Copy arrays, read in C order, one after the other into ``out``, flat and float64.

    Returns where in ``out`` a number is first NaN, below ``least`` or beyond ``LARGEST_FEATURE``; -1 if nowhere. What
    stands there from then on is undefined.
    """
    from maxmargin.door_kernel import copy_within

    begin = 0
    for array in arrays:
        end = begin + array.size
        at = copy_within(_for_kernels(array.reshape(-1), np.float64), out[begin:end], least, LARGEST_FEATURE)
        if at >= 0:
            return begin + at
        begin = end
    return -1


def copy_codes(arrays: Iterable[np.ndarray], out: np.ndarray, allowed: tuple[int, int, int]) -> int:
    """The same for int32, and for arrays with no other numbers than those ``allowed``."""
    from maxmargin.door_kernel import copy_among

    begin = 0
    for array in arrays:
        end, given = begin + array.size, array.reshape(-1)
        if given.dtype == np.uint64:
            given = np.minimum(given, np.uint64(2**62))  # as a signed number the largest would be -1
        if given.dtype.kind not in "biu":
            strange = np.flatnonzero(~np.isin(given, allowed))
            if len(strange):
                return begin + int(strange[0])
        at = copy_among(_for_kernels(given, np.int64), out[begin:end], *allowed)
        if at >= 0:
            return begin + at
        begin = end
    return -1


def _for_kernels(array: np.ndarray, dtype: type) -> np.ndarray:
    """``np.require`` for an array that mostly needs nothing, in a tenth of the time."""
    usable = array.dtype == dtype and array.flags.c_contiguous and array.flags.writeable and type(array) is np.ndarray
    return array if usable else np.require(array, dtype, ["C", "W"])


def _first_beyond(array: np.ndarray, limit: float) -> int:
    """Where an array, read in C order, first has a number that is NaN or too large; -1 if nowhere."""
    if array.dtype.kind != "f":
        return -1
    if "maxmargin.kernel" not in sys.modules:  # a program that only loads a model does not wait for the compiler
        beyond = np.flatnonzero(~(np.abs(array.reshape(-1)) <= limit))
        return int(beyond[0]) if len(beyond) else -1
    from maxmargin.door_kernel import first_beyond

    return int(first_beyond(_for_kernels(array.reshape(-1), np.float64), limit))


def first_place(mask: np.ndarray) -> tuple[int, ...]:
    """Where a mask is first true."""
    return tuple(map(int, np.argwhere(mask)[0]))


def refuse_not_finite(array: np.ndarray, what: str) -> None:
    """A ValueError that names the first place of an array with a number that is not finite, or beyond all measure."""
    at = _first_beyond(array, LARGEST_FEATURE)
    if at >= 0:
        where = tuple(map(int, np.unravel_index(at, array.shape)))
        if np.isfinite(array[where]):
            what = f"{what.replace('NaN or infinite', 'too large')} (beyond {LARGEST_FEATURE:g})"
        raise ValueError(f"{what}, first at {where}; replace them before fitting.")


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


def _array(array: ArrayLike, name: str) -> np.ndarray:
    """A plain array, whatever it holds."""
    try:
        return np.asarray(array)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} are no array ({error}); give numbers in rows of equal length.") from None


def numbers(array: ArrayLike, name: str) -> np.ndarray:
    """Real numbers of any shape as a plain array of float64, in C order and writable; they need not be finite."""
    given = _array(array, name)
    if given.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be an array of real numbers, not of type {given.dtype}")
    return _for_kernels(given, np.float64)


def indices(array: ArrayLike, below: int, name: str, least: int = 0) -> np.ndarray:
    """Whole numbers from ``least`` to ``below - 1``, of any shape; or a ValueError that names the first that is not.

    Without it a cast to 32 bits would make small numbers of large ones.
    """
    given = _array(array, name)
    if given.dtype.kind == "f" and (np.abs(given) < 2**53).all() and (given == np.rint(given)).all():
        given = given.astype(np.int64)
    if given.dtype.kind not in "iu":
        raise ValueError(f"{name} must be whole numbers, not of type {given.dtype}.")
    if given.size and (given.min() < least or given.max() >= below):
        where = first_place((given < least) | (given >= below))
        raise ValueError(f"{name}{list(where)} is {given[where]}; give numbers from {least} to {below - 1}.")
    return given


def pointers(array: ArrayLike, name: str, part: str = "part", end: int | None = None) -> np.ndarray:
    """Where parts begin, int64 (n + 1,): from 0, never falling, up to ``end`` where that is known."""
    given = _array(array, name)
    if given.ndim != 1 or given.dtype.kind not in "iu" or len(given) == 0 or given[0] != 0:
        raise ValueError(f"{name} must be whole numbers that begin with 0 and end with the number of entries.")
    falls = given[1:] < given[:-1]
    if falls.any():
        i = int(np.flatnonzero(falls)[0])
        raise ValueError(f"{name} must not fall, but {part} {i} goes from {given[i]} to {given[i + 1]}.")
    if (end is not None and given[-1] != end) or given[-1] >= 2**62:
        raise ValueError(f"{name} must rise from 0 to {end}, but end with {given[-1]}.")
    return _for_kernels(given, np.int64)


def edge_list(n_nodes: int, edges: ArrayLike) -> np.ndarray:
    """Pairs of different nodes, int32 (m, 2)."""
    given = _array(edges, "edges")
    if given.size == 0:
        return np.empty((0, 2), np.int32)
    if given.ndim != 2 or given.shape[1] != 2 or not np.issubdtype(given.dtype, np.integer):
        raise ValueError(f"edges are {given.dtype} of shape {given.shape}; give pairs of node numbers, integers (m, 2)")
    if given.min() < 0 or given.max() >= n_nodes:
        e = int(np.argmax(((given < 0) | (given >= n_nodes)).any(axis=1)))
        raise ValueError(f"edges[{e}] is {given[e].tolist()}; nodes are numbered from 0 to {n_nodes - 1}")
    loop = given[:, 0] == given[:, 1]
    if loop.any():
        e = int(np.argmax(loop))
        raise ValueError(f"edges[{e}] joins node {given[e, 0]} with itself; leave it out, it costs nothing")
    return _for_kernels(given, np.int32)


def weight_vector(
    weights: object, n_weights: int, *, values: bool = True, once: bool = False, logarithms: bool = False
) -> np.ndarray:
    """Weights (n_weights,) as kernels take them, float64; a copy when they are a read-only memory map.

    ``once`` looks at the numbers of an array at the first call only: few examples would pay for a look at millions of
    weights at every call. What is written into the same array later is for the search to notice. ``values=False``
    leaves the numbers unchecked altogether. ``logarithms`` may be -inf.
    """
    if not isinstance(weights, np.ndarray) or weights.dtype != np.float64 or isinstance(weights, np.ma.MaskedArray):
        kind = f"an array of {weights.dtype}" if isinstance(weights, np.ndarray) else f"a {type(weights).__name__}"
        raise TypeError(f"the weights are {kind}; give a plain numpy array of float64 and shape ({n_weights},).")
    if weights.shape != (n_weights,):
        raise ValueError(f"the weights have shape {weights.shape}; this model needs ({n_weights},). Fit again.")
    vector = _for_kernels(weights, np.float64)
    if not values or (once and id(weights) in _looked_at):
        return vector
    at = _first_beyond(np.maximum(vector, -LARGEST_WEIGHT) if logarithms else vector, LARGEST_WEIGHT)
    if at >= 0:
        limit = f"weights must be finite and at most {LARGEST_WEIGHT:g}"
        raise ValueError(f"weight {at} is {vector[at]}; {limit}. Set it to such a number, or fit again.")
    if once:
        key = id(weights)  # of no other array as long as this one lives
        _looked_at[key] = weakref.ref(weights, lambda _: _looked_at.pop(key, None))
    return vector


_looked_at: dict[int, weakref.ref[np.ndarray]] = {}  # arrays that live, by their identity
