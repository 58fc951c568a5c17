"""The example programs run, print what they promise and write their pictures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


def run_example(name: str, *arguments: str, folder: Path) -> str:
    paths = [str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "examples" / name), *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_digit_words(tmp_path):
    pytest.importorskip("matplotlib")
    printed = run_example("digit_words.py", "--quick", folder=tmp_path)

    picture = tmp_path / "outputs" / "digit_words.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000
    assert f"Picture: {picture.resolve()}" in printed

    right = {
        name: [float(share) for share in re.search(rf"^{name} +([\d.]+) % +([\d.]+) %$", printed, re.M).groups()]
        for name in ("letters alone", "whole words")
    }
    assert all(0 <= share <= 100 for shares in right.values() for share in shares)
    assert right["whole words"][0] > right["letters alone"][0]  # the grammar helps

    assert printed.count("Converged: relative gap") >= 2
    primal, dual = map(
        float, re.search(r"Certificate \(whole words\): primal ([\d.]+), dual ([\d.]+)", printed).groups()
    )
    assert 0 < dual <= primal <= dual * 1.02
    assert re.search(r"Time of that fit: [\d.]+ s: oracle .* solver .* compile ", printed)
    assert re.search(r"Whole demo [\d.]+ s, of which kernels [\d.]+ s", printed)
