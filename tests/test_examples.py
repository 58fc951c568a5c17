"""The example programs run, print what they promise and write their pictures."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from reference.process import run_python

REPOSITORY = Path(__file__).parents[1]


def run_example(name: str, folder: Path) -> str:
    """What a quick run of an example prints; the picture that it names is there."""
    pytest.importorskip("matplotlib")
    printed = run_python(str(REPOSITORY / "examples" / f"{name}.py"), "--quick", folder=folder).stdout
    picture = folder / "outputs" / f"{name}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000
    assert f"Picture: {picture.resolve()}" in printed
    return printed


def test_digit_words(tmp_path):
    printed = run_example("digit_words", tmp_path)

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
    assert re.search(r"Whole demo [\d.]+ s, including [\d.]+ s for kernels", printed)


def test_ramp_loss(tmp_path):
    printed = run_example("ramp_loss", tmp_path)

    def rows(name):
        return [list(map(float, row.split())) for row in re.findall(rf"^{name} +([-+\d. ]+)$", printed, re.M)]

    for C in ("0\\.1", "1"):
        hinge, ramp = rows(f"hinge, C = {C}")[0], rows(f"ramp, cost diminished, C = {C}")[0]
        assert len(hinge) == len(ramp) == 5
        assert all(25 < share <= 100 for share in hinge + ramp)  # better than guessing one of four labels
    assert len(rows("ramp minus hinge")) == len(rows("standard error")) == 2


def test_curves_of_the_ramp_picture():
    """Two labels have closed forms; the sequence lies between its bounds and ends at twice its length."""
    example = runpy.run_path(str(REPOSITORY / "examples" / "ramp_loss.py"))
    margins = np.linspace(-3, 3, 61)
    hinge = np.maximum(0.0, 1.0 - margins)
    for ramp, top in (("cost_diminished", 2.0), ("best_output", 1.0)):
        found = example["against_the_margin"](ramp, margins)
        assert [f["hinge"] for f in found] == pytest.approx(hinge)
        assert [f["ramp"] for f in found] == pytest.approx(np.minimum(hinge, top))
    found = example["along_a_line"]("cost_diminished", np.linspace(-6, 6, 101))
    assert all(f["low"] - 1e-9 <= f["ramp"] <= f["high"] + 1e-9 for f in found)
    assert found[0]["ramp"] == pytest.approx(10.0) and found[-1]["ramp"] == 0.0
