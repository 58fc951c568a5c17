"""What a program prints is shown and kept, with its command; a program that fails leaves the last result alone."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from reference.process import run_python

ROOT = Path(__file__).resolve().parent.parent


def test_printed_lines_are_kept(tmp_path):
    program = tmp_path / "small.py"
    program.write_text(
        "import sys\nprint('seconds 1.25', *sys.argv[1:])\nprint('picture: /here\\n\\x1b[33m(raylet) dead')\n"
    )
    shown = run_python(str(ROOT / "tools" / "record.py"), str(program), "--fast", folder=tmp_path).stdout
    assert "seconds 1.25 --fast" in shown and "picture" in shown
    path = tmp_path / "results" / "small.json"
    kept = json.loads(path.read_text())
    assert kept["printed"] == ["seconds 1.25 --fast"] and kept["command"] == "python small.py --fast"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", kept["date"])
    run_python(str(ROOT / "tools" / "record.py"), "--as", "other", str(program), "--slow", folder=tmp_path)
    assert json.loads(path.with_name("other.json").read_text())["printed"] == ["seconds 1.25 --slow"]
    program.write_text("print('seconds 2.5')\nraise SystemExit(3)\n")
    with pytest.raises(AssertionError):  # its exit code is passed on
        run_python(str(ROOT / "tools" / "record.py"), str(program), folder=tmp_path)
    assert json.loads(path.read_text()) == kept


def test_pages_show_the_present_result_files():
    filled = runpy.run_path(str(ROOT / "tools" / "record.py"))["filled"]
    shown = set()
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert filled(text) == text, f"{page.name}: python tools/record.py --pages"
        shown |= set(re.findall(r"<!-- result: (\S+) -->", text))
    kept = [*ROOT.glob("benchmarks/results/*.json"), *ROOT.glob("tools/results/*.json")]
    assert {path.relative_to(ROOT).as_posix() for path in kept} <= shown


def test_result_files_name_no_folder_of_a_machine():
    for path in [*ROOT.glob("*/results/*.json"), *ROOT.glob("experiments/*/results/*.json")]:
        assert not re.search(r"/(?:tmp|home|root|work|Users)/", path.read_text(encoding="utf-8")), path
