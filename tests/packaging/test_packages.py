"""The packages that users install: what is in them, what they say of themselves, and that they work by themselves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

import maxmargin

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def run(*command, **words):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=900, **words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A wheel and a source distribution, made from the files that are tracked."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The folder of programs of a new environment with the wheel and nothing else."""
    home = tmp_path_factory.mktemp("plain") / "environment"
    venv.create(home, with_pip=True)
    run(home / "bin" / "python", "-m", "pip", "install", "--quiet", built[0])
    return home / "bin"


def plain():
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MAXMARGIN"))}


def test_the_wheel_has_the_package_and_nothing_else(built):
    names = zipfile.ZipFile(built[0]).namelist()
    tops = {name.split("/")[0] for name in names}
    version = maxmargin.__version__
    assert tops == {"maxmargin", f"maxmargin-{version}.dist-info"}
    here = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.is_file()}
    here = {name for name in here if "__pycache__" not in name}
    assert {name for name in names if name.startswith("maxmargin/")} == here
    assert "maxmargin/py.typed" in names and any(name.startswith("maxmargin/datasets/data/") for name in names)
    assert built[0].stat().st_size < 3_000_000


def test_the_source_has_what_tests_and_pages_need(built):
    top = f"maxmargin-{maxmargin.__version__}/"
    names = {name.removeprefix(top) for name in tarfile.open(built[1]).getnames()}
    wanted = {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "Makefile", "pyproject.toml", "docs/conf.py"}
    wanted |= {"tests/test_readme.py", "tools/check_imports.py", "tools/record.py", "src/maxmargin/py.typed"}
    assert wanted <= names
    assert not [name for name in names if re.search(r"__pycache__|\.venv|build/|\.pyc$", name)]


def test_what_the_packages_say_of_themselves(built):
    pytest.importorskip("twine")
    assert run(sys.executable, "-m", "twine", "check", "--strict", *built).count("PASSED") == 2
    with zipfile.ZipFile(built[0]) as wheel:
        (place,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
        said = HeaderParser().parsestr(wheel.read(place).decode())
    assert said["Version"] == maxmargin.__version__ and said["Requires-Python"] == ">=3.11"
    assert set(said.get_all("Provides-Extra")) == set(EXTRAS)
    assert f"version: {maxmargin.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## [{maxmargin.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_wheel_works_without_development_tools(installed, tmp_path):
    listed = run(installed / "python", "-m", "pip", "list", "--format=freeze").lower()
    assert not re.search(r"^(pytest|ruff|mypy|matplotlib|pandas|sphinx)==", listed, re.M)
    assert maxmargin.__version__ in run(installed / "maxmargin", "--version", env=plain())
    printed = run(installed / "maxmargin", "demo", "labels", cwd=tmp_path, env=plain())
    assert "relative gap" in printed and "pip install" in printed  # what a picture needs


def test_the_page_on_installation_names_every_extra():
    named = re.findall(r'pip install "\.\[(\w+)\]"', (ROOT / "docs" / "install.md").read_text(encoding="utf-8"))
    assert sorted(named) == sorted(EXTRAS)


@pytest.mark.parametrize("extra", sorted(set(EXTRAS) - {"dev"}))
def test_every_extra_can_be_installed(installed, built, extra):
    """Resolved and found for this Python; without the download of everything."""
    asked = run(installed / "python", "-m", "pip", "install", "--dry-run", "--quiet", f"{built[0]}[{extra}]")
    assert "error" not in asked.lower()
