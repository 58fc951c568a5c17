"""ARCHITECTURE.md tells the life of a fit: here it is lived, and compared with what is written."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import numpy as np

import maxmargin
from maxmargin import SequenceTagger

ROOT = Path(maxmargin.__path__[0])
WRITTEN = (Path(__file__).parents[1] / "ARCHITECTURE.md").read_text()
TEXT = WRITTEN.partition("## The life of a fit")[2].partition("\n## ")[0]
ROW = re.compile(r"^\| \d+ \| `([\w/.]+)` \| `([\w.]+)` \| (.*) \|$", re.MULTILINE)
ROWS = ROW.findall(TEXT)
HELPERS = set(re.findall(r"`([\w/]+\.py)`", TEXT.partition("Helpers on the way")[2]))


def lived():
    """(file, function) of every call of a fit and a prediction, in the order of their first calls."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 4)) for n in rng.integers(2, 7, 30)]
    y = [["a" if row[0] > 0 else "b" for row in x] for x in X]
    SequenceTagger().fit(X, y).predict(X)  # kernels are compiled now
    calls: dict[tuple[str, str], None] = {}

    def note(frame, event, argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and ROOT in path.parents:
            calls.setdefault((path.relative_to(ROOT).as_posix(), frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        SequenceTagger().fit(X, y).predict(X)
    finally:
        sys.setprofile(None)
    return list(calls)


def test_every_step_is_called_and_in_this_order():
    calls = lived()
    told = [(file, name) for file, name, what in ROWS if not what.startswith("compiled")]
    assert len(told) >= 20
    places = [calls.index(step) for step in told]
    assert places == sorted(places), [told[p] for p in range(1, len(told)) if places[p] < places[p - 1]]


def test_compiled_steps_are_kernels_of_their_files():
    for file, name, what in ROWS:
        if what.startswith("compiled"):
            nodes = ast.walk(ast.parse((ROOT / file).read_text()))
            (found,) = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == name]
            assert any("kernel" in ast.unparse(mark) for mark in found.decorator_list), name


def test_no_file_is_left_out_and_a_newcomer_opens_at_most_25():
    files = {file for file, _, _ in ROWS}
    assert len(files) <= 25
    assert not files & HELPERS
    assert {file for file, _ in lived()} <= files | HELPERS
