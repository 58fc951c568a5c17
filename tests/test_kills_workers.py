"""A few of the kills of `make kills-workers`: weights and certificates stay, and a run that is cut short fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tools import kills_workers

from reference.process import SOURCES, run_python

TOOL = str(Path(kills_workers.__file__).resolve())
FEW = ("--executor", "processes", "--kills", "2", "--drivers", "1", "--passes", "60")


@pytest.mark.slow
def test_killed_workers_and_drivers_change_nothing(tmp_path):
    said = run_python(TOOL, *FEW, folder=tmp_path).stdout.splitlines()
    assert said[-1] == "processes: 2 kills of workers, 1 of drivers; every run ended as if undisturbed"
    assert said[-2] == "driver 1: killed and resumed, the same weights and certificate"


@pytest.mark.slow
def test_a_driver_that_ends_before_it_is_killed_does_not_count(capsys, monkeypatch):
    """The first one has time to end; the next is killed at its first checkpoint."""
    monkeypatch.setenv("PYTHONPATH", str(SOURCES))
    pauses = iter([6.0, 0.0, 0.0, 0.0])
    rng = SimpleNamespace(uniform=lambda *bounds: next(pauses))
    given = SimpleNamespace(passes=20, drivers=1, minutes=5.0)
    assert kills_workers.kill_drivers("processes", given, rng) == (1, 0)
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == "a driver had ended before it was killed; it does not count"
    assert last == "driver 1: killed and resumed, the same weights and certificate"


def test_a_run_that_is_cut_short_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(SOURCES))
    command = [sys.executable, TOOL, *FEW, "--minutes", "0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "INCOMPLETE, the time was over before 2 and 1" in done.stdout.splitlines()[-1]
