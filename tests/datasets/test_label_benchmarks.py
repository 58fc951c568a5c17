"""The loaders of multi-label datasets: small files, damaged files, and the real sizes where they are on disk."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import datasets

PLAIN = {"load_yeast": "yeast/yeast.npz", "load_scene": "scene/scene.npz"}
TREES = {
    "load_enron": "hmc_enron/enron_corr.npz",
    "load_imclef07a": "hmc_imclef07a/imclef07a.npz",
    "load_cellcycle": "hmc_cellcycle_fun/cellcycle_fun.npz",
}
RCV1 = "rcv1/rcv1subset1_top944.npz"


def write(folder, file, **changes):
    arrays = {
        "X_train": np.array([[1, 0], [0, 1], [1, 1]], np.int8),
        "Y_train": np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0]], np.uint8),
        "X_test": np.array([[0, 0]], np.float32),
        "Y_test": np.array([[0, 0, 1]], np.uint8),
        "label_names": np.array(["a", "a/b", "c"]),
        "feature_names": np.array(["x", "y"]),
        "parent": np.array([-1, 0, -1], np.int32),
    } | changes
    path = folder / file
    path.parent.mkdir(exist_ok=True)
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return arrays


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("loader", [*PLAIN, *TREES])
def test_small_files(loader, home):
    load, file = getattr(datasets, loader), (PLAIN | TREES)[loader]
    with pytest.raises(FileNotFoundError, match=r"Get it from github\.com"):
        load()
    arrays = write(home, file)
    data, test = load(), load("test")
    np.testing.assert_array_equal(data.X, arrays["X_train"])
    np.testing.assert_array_equal(test.Y, arrays["Y_test"])
    assert data.X.dtype == test.X.dtype == np.float64 and data.feature_names == ["x", "y"]
    assert data.sets() == [{"a", "a/b"}, {"a", "c"}, set()]
    assert data.hierarchy == (None if loader in PLAIN else [("a", "a/b")])
    with pytest.raises(ValueError, match="split must be one of 'train'"):
        load("other")
    write(home, file, Y_train=None)
    with pytest.raises(ValueError, match="lacks the arrays"):
        load()
    write(home, file, Y_train=np.full((3, 3), 2, np.uint8))
    with pytest.raises(ValueError, match="inconsistent"):
        load()
    write(home, file, X_train=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="inconsistent"):
        load()
    if loader in TREES:
        write(home, file, parent=np.array([-1, 3, -1]))
        with pytest.raises(ValueError, match="'parent' does not name a label"):
            load()


def test_packed_bits(home):
    rng = np.random.default_rng(0)
    X, Y = rng.integers(2, size=(4, 11), dtype=np.uint8), rng.integers(2, size=(4, 3), dtype=np.uint8)
    packed = {f"{k}_{s}_packed": np.packbits(v, axis=1) for k, v in (("X", X), ("Y", Y)) for s in ("train", "test")}
    write(home, RCV1, n_features=np.array(11), n_labels=np.array(3), label_ids=np.array([1, 4, 9]), **packed)
    data = datasets.load_rcv1("test")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.Y, Y)
    assert data.label_names == ["1", "4", "9"] and len(data.feature_names) == 11


SIZES = {
    "load_yeast": (1500, 917, 103, 14), "load_scene": (1211, 1196, 294, 6), "load_rcv1": (3000, 3000, 944, 100),
    "load_enron": (988, 660, 1001, 56), "load_imclef07a": (10000, 1006, 80, 96),
    "load_cellcycle": (1628, 1281, 77, 499),
}  # fmt: skip


@pytest.mark.data
@pytest.mark.parametrize("loader", SIZES)
def test_real_sizes(loader):
    if not (datasets.data_home() / (PLAIN | TREES | {"load_rcv1": RCV1})[loader]).is_file():
        pytest.skip("the dataset is not on disk")
    train, test = (getattr(datasets, loader)(split) for split in ("train", "test"))
    assert (len(train), len(test), train.X.shape[1], train.Y.shape[1]) == SIZES[loader]
    if loader in TREES:
        code = {label: k for k, label in enumerate(train.label_names)}
        assert all((train.Y[:, code[a]] >= train.Y[:, code[b]]).all() for a, b in train.hierarchy)
        assert all(b.rpartition("/")[0] == a for a, b in train.hierarchy)
