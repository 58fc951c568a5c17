"""A tenth of the attack on every door, as a change must pass it; ``make attack`` runs all of it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NEEDED = {"checkpoints": "tools.attack.checkpoints", "data_files": "maxmargin.datasets.text_lines"}


@pytest.mark.skipif(not hasattr(os, "fork") or not Path("/proc/self/statm").exists(), reason="needs Linux")
@pytest.mark.parametrize("suite", ["model_files", "checkpoints", "arrays", "data_files", "text_files"])
def test_a_tenth_of_the_attack(suite, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    if suite in NEEDED and find_spec(NEEDED[suite]) is None:
        pytest.skip(f"{NEEDED[suite]} is not there")
    command = [sys.executable, "-m", "tools.attack", "--share", "0.1", "--jobs", "2", "--suite", suite]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(found.stdout)
    assert found.returncode == 0, found.stdout[-5000:] + found.stderr[-3000:]
