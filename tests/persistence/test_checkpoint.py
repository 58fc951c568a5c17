import os

import numpy as np
import pytest

from maxmargin.persistence import checkpoint
from maxmargin.persistence.checkpoint import load_checkpoint, save_checkpoint

ARRAYS = {
    "state/alpha": np.linspace(0, 1, 1000),
    "state/rng": "{}",
    "file": np.arange(3, dtype=np.int32),
    "count": 7,
    "flag": True,
    "empty": np.zeros((0, 4)),
}


def test_round_trip(tmp_path):
    path = save_checkpoint(tmp_path / "run.ckpt", ARRAYS)
    assert path.name == "run.ckpt"
    loaded = load_checkpoint(path)
    assert set(loaded) == set(ARRAYS)
    for name, value in ARRAYS.items():
        assert loaded[name].dtype == np.asarray(value).dtype and np.array_equal(loaded[name], value)
    assert str(loaded["state/rng"]) == "{}" and int(loaded["count"]) == 7 and loaded["empty"].shape == (0, 4)
    assert os.listdir(tmp_path) == ["run.ckpt"]


def test_every_truncation_is_refused(tmp_path):
    path = save_checkpoint(tmp_path / "run.ckpt", ARRAYS)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), max(1, len(whole) // 60)), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"run\.ckpt"):
            load_checkpoint(path)


def test_damaged_bytes_are_refused(tmp_path):
    path = save_checkpoint(tmp_path / "run.ckpt", ARRAYS)
    whole = bytearray(path.read_bytes())
    middle = whole.index(np.linspace(0, 1, 1000)[500].tobytes())
    whole[middle + 3] ^= 0xFF
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="damaged"):
        load_checkpoint(path)


def test_other_numpy_files_and_versions(tmp_path, monkeypatch):
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match="not a checkpoint"):
        load_checkpoint(tmp_path / "other.npz")
    np.save(tmp_path / "one.npy", np.zeros(3))
    with pytest.raises(ValueError, match=r"one\.npy"):
        load_checkpoint(tmp_path / "one.npy")
    monkeypatch.setattr(checkpoint, "VERSION", 99)
    path = save_checkpoint(tmp_path / "future", {})
    monkeypatch.undo()
    with pytest.raises(ValueError, match="version 99"):
        load_checkpoint(path)
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "missing")


def test_pickles_are_neither_written_nor_read(tmp_path):
    with pytest.raises(ValueError, match="'bad'"):
        save_checkpoint(tmp_path / "x", {"bad": np.array([{}, None], dtype=object)})
    np.savez(tmp_path / "evil.npz", maxmargin_checkpoint=np.array(1), bad=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match=r"evil\.npz"):
        load_checkpoint(tmp_path / "evil.npz")


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = save_checkpoint(tmp_path / "run.ckpt", {"x": 1})

    def full_disk(*args, **kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(np.lib.format, "write_array", full_disk)
    with pytest.raises(OSError, match="no space"):
        save_checkpoint(path, {"x": 2})
    monkeypatch.undo()
    assert int(load_checkpoint(path)["x"]) == 1 and os.listdir(tmp_path) == ["run.ckpt"]
