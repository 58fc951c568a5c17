"""Seams stay what they are: nothing is unwrapped, set from outside or told apart by class where a contract would do."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import maxmargin

ROOT = Path(maxmargin.__path__[0])
SOURCES = {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
MOST_ANY, MOST_GETATTR = 263, 60


@pytest.mark.parametrize("word", ["innermost", "compiled_oracle", "OracleWrapper"])
def test_nothing_unwraps_an_oracle(word):
    assert [name for name, text in SOURCES.items() if re.search(rf"\b{word}\b", text)] == []


def assigned():
    """(file, code) of every assignment to an attribute of something other than ``self`` and ``cls``."""
    for name, text in SOURCES.items():
        for node in ast.walk(ast.parse(text)):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in targets if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) else ():
                for part in ast.walk(target):
                    if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                        yield name, ast.unparse(part)


def test_nobody_sets_an_attribute_of_an_oracle_or_a_problem():
    wrong = [(name, code) for name, code in assigned() if re.search(r"\b(oracle|concave|problem|convex)\.\w+$", code)]
    assert wrong == []


def test_layouts_and_problems_are_not_told_apart_by_class():
    """Outside factories, which make them, and loaders, which check what a file holds."""
    kinds = r"\w*(?:Layout|Problem)"
    found = []
    for name, text in SOURCES.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                if re.search(rf"\b{kinds}\b", ast.unparse(node.args[1])):
                    found.append((name, ast.unparse(node)))
    allowed = {name for name, _ in found if name in FACTORIES}
    assert [pair for pair in found if pair[0] not in allowed] == []


FACTORIES = {"estimators/structured_svm.py"}  # a model given again must be of the kind that the file was trained with


def test_types_are_told():
    many = sum(len(re.findall(r"\bAny\b", text)) for text in SOURCES.values())
    assert many <= MOST_ANY, many
    many = sum(len(re.findall(r"\b(?:getattr|hasattr)\(", text)) for text in SOURCES.values())
    assert many <= MOST_GETATTR, many


def test_no_contract_says_any():
    assert not re.search(r"\bAny\b", SOURCES["contracts.py"])


def test_files_stay_short():
    assert [name for name, text in SOURCES.items() if len(text.splitlines()) > 500] == []
