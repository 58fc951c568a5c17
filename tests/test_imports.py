"""The import direction holds, and the tool that checks it notices every way to break it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
TOOL = REPOSITORY / "tools" / "check_imports.py"


def check(folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(TOOL), str(folder)], capture_output=True, text=True, check=False)


def tree(root: Path, **files: str) -> Path:
    for name, source in files.items():
        path = root / "maxmargin" / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return root / "maxmargin"


def test_package_imports_in_one_direction():
    run = check(REPOSITORY / "src" / "maxmargin")
    assert run.returncode == 0, run.stdout


def test_good_tree_passes(tmp_path):
    folder = tree(
        tmp_path,
        planes="from maxmargin.kernel import kernel\n",
        models__chain="import numpy\nfrom maxmargin.inference import viterbi\nfrom . import base\n",
        solvers__driver="from maxmargin import planes\nfrom ..callbacks.base import Callback\n",
        testing__checks="import maxmargin\nfrom maxmargin.estimators import tagger\n",
    )
    assert check(folder).returncode == 0


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("from maxmargin.models.chain import Chain\n", 1),
        ("import maxmargin.models.chain\n", 1),
        ("import numpy\n\ndef f():\n    from maxmargin import models\n    return models\n", 4),
        ("from ..solvers.driver import run\n", 1),
        ("from .. import estimators\n", 1),
        ("import importlib\nm = importlib.import_module('maxmargin.cli')\n", 2),
        ("from maxmargin import SequenceTagger\n", 1),
    ],
)
def test_bad_imports_are_named(tmp_path, source, line):
    folder = tree(tmp_path, inference__viterbi=source)
    run = check(folder)
    assert run.returncode == 1
    assert f"viterbi.py:{line}:" in run.stdout
    assert source.splitlines()[line - 1].strip() in run.stdout


def test_side_rooms_keep_to_themselves(tmp_path):
    wrong = {"callbacks__progress": "solvers.driver", "testing__checks": "cli", "datasets__folder": "metrics"}
    run = check(tree(tmp_path, **{name: f"from maxmargin.{room} import it\n" for name, room in wrong.items()}))
    assert run.returncode == 1
    assert len(run.stdout.splitlines()) == 3


def test_unknown_room_is_refused(tmp_path):
    run = check(tree(tmp_path, cellar__wine="x = 1\n"))
    assert run.returncode == 1
    assert "'cellar' is unknown" in run.stdout
