"""A few of the kills of `make kills`: fits end as if they had not been killed, and nothing is left behind."""

from pathlib import Path

import pytest

from reference.process import run_python

TOOL = Path(__file__).parents[1] / "tools" / "kills.py"


@pytest.mark.found("A5")
def test_killed_fits_end_with_the_same_weights(tmp_path):
    families = [word for name in ("auto", "pegasos", "ramp", "hmm", "bayes net") for word in ("--only", name)]
    said = run_python(str(TOOL), "--kills", "12", "--warm", *families, folder=tmp_path).stdout
    assert said.splitlines()[-1] == "every run ended as if it had not been killed"
    assert said.splitlines()[-2].split()[2] == "12"
