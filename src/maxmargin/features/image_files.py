"""Images, volumes and masks from files or arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["picture_list", "read_image", "read_images", "read_masks", "read_scribbles"]

Picture = ArrayLike | os.PathLike[str]  # an array, or the path of a file
_ARRAYS = (".npy", ".nii", ".nii.gz")  # files that hold numbers, not colours


def read_image(path: str | os.PathLike[str]) -> np.ndarray:
    """One image as an array: NIfTI volumes (.nii, .nii.gz), numpy files (.npy), and all formats that Pillow reads."""
    path = Path(path)
    if not os.path.isfile(path):  # false for names that no system allows, where Path.is_file raises
        raise FileNotFoundError(f"there is no image file {str(path)!r:.200}; check the path.")
    try:
        if path.name.lower().endswith((".nii", ".nii.gz")):
            try:
                import nibabel
                from nibabel.spatialimages import SpatialImage
            except ImportError:
                raise ImportError(
                    f"reading {str(path)!r} needs nibabel; install it with: pip install nibabel"
                ) from None
            volume = nibabel.load(path)
            assert isinstance(volume, SpatialImage)
            return np.asarray(volume.dataobj)
        if path.suffix.lower() == ".npy":
            return np.load(path, allow_pickle=False)
        try:
            from PIL import Image
        except ImportError:
            raise ImportError(f"reading {str(path)!r} needs Pillow; install it with: pip install pillow") from None
        with Image.open(path) as image:
            # palettes, transparency and CMYK become RGB
            plain = image if image.mode in ("1", "L", "I", "I;16", "F", "RGB") else image.convert("RGB")
            return np.asarray(plain)
    except ImportError:
        raise
    except Exception as error:
        raise ValueError(f"the image file {str(path)!r} cannot be read ({error}); convert or remove it.") from error


def read_images(images: Iterable[Picture]) -> list[np.ndarray]:
    """Images as arrays; paths are read."""
    return [_entry(image, i) for i, image in enumerate(picture_list(images, "images"))]


def read_masks(masks: Iterable[Picture]) -> list[np.ndarray]:
    """Masks as arrays of labels; paths are read.

    Masks are often black and white, 0 and 255. Where none of them has a label 1, white means 1, not ignored.
    """
    entries = picture_list(masks, "masks")
    arrays = [_entry(mask, i) for i, mask in enumerate(entries)]
    for i, entry in enumerate(entries):
        file = isinstance(entry, (str, os.PathLike))
        if file and arrays[i].ndim == 3 and arrays[i].shape[-1] == 3 and (arrays[i] == arrays[i][..., :1]).all():
            arrays[i] = arrays[i][..., 0]  # grey stored as colour
    numbers = [i for i, array in enumerate(arrays) if array.dtype != bool]
    if not any((arrays[i] == 1).any() for i in numbers):
        for i in numbers:
            arrays[i] = np.where(arrays[i] == 255, 1, arrays[i])
    return [array.astype(np.uint8) if array.dtype == bool else array for array in arrays]


def read_scribbles(scribbles: Iterable[Picture]) -> list[np.ndarray]:
    """Known labels as arrays of 0, 1, and -1 for unknown; paths are read.

    In a picture (8 or 16 bits) white is 1, black is 0, and grey, coloured or transparent pixels are unknown. Array
    files, and pictures of other types, hold labels, where 255 also means unknown.
    """
    arrays = []
    for i, entry in enumerate(picture_list(scribbles, "scribbles")):
        labels = _entry(entry, i)
        path = Path(entry) if isinstance(entry, (str, os.PathLike)) else None
        file = path.name.lower() if path is not None else ""
        if file.endswith((".jpg", ".jpeg")):
            raise ValueError(f"the scribbles {str(entry)!r} are a JPEG file, which changes colours; save them as PNG.")
        if path is not None and not file.endswith(_ARRAYS) and labels.dtype in (np.uint8, np.uint16):
            if labels.ndim == 2 and (labels == 1).any():
                found = f"the scribbles {str(entry)!r} have pixels of value 1, as if they were labels"
                raise ValueError(f"{found}; paint white, black and grey, or save labels 0, 1 and -1 as .npy.")
            pixels, white = (labels if labels.ndim == 3 else labels[..., None]), np.iinfo(labels.dtype).max
            labels = np.where((pixels == white).all(-1), 1, np.where((pixels == 0).all(-1), 0, -1))
            labels = np.where(_opaque(path), labels, -1)
        elif file and labels.dtype == np.uint8:
            labels = np.where(labels == 255, -1, labels.astype(np.int16))
        arrays.append(labels)
    return arrays


def _opaque(path: Path) -> np.ndarray | bool:
    """Where a picture is opaque, bool (height, width); True when all of it is."""
    from PIL import Image

    with Image.open(path) as image:
        if not {"A", "a"} & set(image.getbands()) and "transparency" not in image.info:
            return True
        return np.asarray(image.convert("RGBA"))[..., 3] == 255


def picture_list(given: Iterable[Picture], name: str) -> list[Picture]:
    """Arrays or paths in a list, or a TypeError that names what was given instead."""
    if isinstance(given, (str, os.PathLike)):
        raise TypeError(f"{name} must be a list of arrays or paths; for a single one, pass [{str(given)!r}].")
    if not isinstance(given, Iterable) or (isinstance(given, np.ndarray) and given.ndim == 0):
        raise TypeError(f"{name} must be a list of arrays or paths, got {str(given)[:40]!r}.")
    return list(given)


def _entry(entry: Picture, i: int) -> np.ndarray:
    if not isinstance(entry, (str, os.PathLike)):
        try:
            return np.asarray(entry)
        except (TypeError, ValueError) as error:
            raise ValueError(f"image {i} is no array of numbers ({error}); give rows of equal length.") from None
    try:
        return read_image(entry)
    except (FileNotFoundError, ValueError) as error:
        raise type(error)(f"image {i}: {error}") from error
