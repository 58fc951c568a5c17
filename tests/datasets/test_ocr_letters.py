"""The reader of the OCR letters on a small file, and on the real set where it is on disk."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.datasets import data_home, load_ocr_letters


def write(folder, **changes):
    rng = np.random.default_rng(0)
    arrays = {
        "pixels_packed": rng.integers(256, size=(5, 16), dtype=np.uint8),
        "labels": np.array([2, 0, 19, 14, 13], dtype=np.uint8),
        "offsets": np.array([0, 3, 5], dtype=np.int32),
        "folds": np.array([0, 7], dtype=np.uint8),
    } | changes
    (folder / "ocr_letters").mkdir()
    np.savez(folder / "ocr_letters" / "letters.npz", **{k: v for k, v in arrays.items() if v is not None})
    return arrays


def test_small_file(monkeypatch, tmp_path):
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    arrays = write(tmp_path)
    X, y, folds = load_ocr_letters()
    assert [x.shape for x in X] == [(3, 128), (2, 128)]
    assert [labels.tolist() for labels in y] == [[2, 0, 19], [14, 13]]
    assert folds.tolist() == [0, 7]
    assert X[0].dtype == np.float64
    first = arrays["pixels_packed"][3, 0]  # bits are stored from the highest
    assert X[1][0, :8].tolist() == [float(first >> bit & 1) for bit in range(7, -1, -1)]


def test_errors(monkeypatch, tmp_path):
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"letters\.npz"):
        load_ocr_letters()
    write(tmp_path, folds=None)
    with pytest.raises(ValueError, match="lacks the arrays"):
        load_ocr_letters()


def test_inconsistent_file(monkeypatch, tmp_path):
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    write(tmp_path, offsets=np.array([0, 3, 9]))
    with pytest.raises(ValueError, match="5 images, 5 labels, offsets up to 9"):
        load_ocr_letters()


@pytest.mark.data
def test_real_sizes():
    if not (data_home() / "ocr_letters/letters.npz").is_file():
        pytest.skip("OCR letters are not on disk")
    X, y, folds = load_ocr_letters()
    assert len(X) == len(y) == len(folds) == 6877
    assert sum(map(len, y)) == 52152
    assert (folds == 0).sum() == 626
    assert all(len(x) == len(labels) for x, labels in zip(X, y, strict=True))
