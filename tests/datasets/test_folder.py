"""Where files are looked for, and what is said when they are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from maxmargin.datasets import data_home, require


def test_environment_wins(monkeypatch, tmp_path):
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    assert data_home() == tmp_path
    monkeypatch.delenv("MAXMARGIN_DATA")
    assert data_home() == Path.home() / ".cache" / "maxmargin" / "data"


def test_require(monkeypatch, tmp_path):
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError) as caught:
        require("some/set.txt", "the library of Alexandria")
    for part in ("'some/set.txt' is missing", str(tmp_path / "some" / "set.txt"), "library of Alexandria"):
        assert part in str(caught.value)
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "set.txt").write_text("x")
    assert require("some/set.txt", "") == tmp_path / "some" / "set.txt"
