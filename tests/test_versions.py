"""Version bounds: every requirement has a lower one that `make test-lowest` tries; dependencies have both."""

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.found("A7")


def test_every_dependency_has_both_bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in project["dependencies"]:
        assert re.fullmatch(r"[\w-]+>=[\d.]+,<[\d.]+", requirement), requirement


def test_the_lowest_versions_are_those_of_the_project():
    text = subprocess.run(
        [sys.executable, ROOT / "tools" / "lowest.py"], capture_output=True, text=True, check=True
    ).stdout
    versions = dict(line.split("==") for line in text.splitlines())
    declared = (ROOT / "pyproject.toml").read_text()
    assert {"numpy", "scipy", "scikit-learn", "numba", "typer", "pytest"} <= versions.keys()
    assert all(re.search(rf'"{name}>={re.escape(version)}[",]', declared) for name, version in versions.items())


@pytest.mark.parametrize(("requirement", "message"), [("numpy", "no lower bound"), ("rich>=1.0", "choose one")])
def test_a_requirement_that_nobody_can_have_tried_is_refused(requirement, message, tmp_path):
    lowest = runpy.run_path(str(ROOT / "tools" / "lowest.py"))["lowest"]
    (tmp_path / "p.toml").write_text(
        f'[project]\ndependencies = ["rich>=13.0", "{requirement}"]\n[project.optional-dependencies]\n'
    )
    with pytest.raises(SystemExit, match=message):
        lowest(tmp_path / "p.toml")
