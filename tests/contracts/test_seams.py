"""Seams stay what they are: nothing is unwrapped, set from outside or told apart by class where a contract would do."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import maxmargin
from maxmargin.contracts import Layout, Problem

ROOT = Path(maxmargin.__path__[0])
SOURCES = {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
TREES = {name: ast.parse(text) for name, text in SOURCES.items()}
MOST_ANY, MOST_GETATTR = 263, 60


@pytest.mark.parametrize("word", ["innermost", "compiled_oracle", "OracleWrapper"])
def test_nothing_unwraps_an_oracle(word):
    assert [name for name, text in SOURCES.items() if re.search(rf"\b{word}\b", text)] == []


def assigned():
    """(file, code) of every assignment to an attribute of something other than ``self`` and ``cls``."""
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            for target in targets if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) else ():
                for part in ast.walk(target):
                    if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                        yield name, ast.unparse(part)


def test_nobody_sets_an_attribute_of_an_oracle_or_a_problem():
    wrong = [(name, code) for name, code in assigned() if re.search(r"\b(oracle|concave|problem|convex)\.\w+$", code)]
    assert wrong == []


def classes():
    """(bases, members) of every class in the sources by name: methods, properties and annotated fields."""
    found: dict[str, tuple[list[str], set[str]]] = {}
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                names = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
                names |= {ast.unparse(part.target) for part in node.body if isinstance(part, ast.AnnAssign)}
                targets = [target for part in node.body if isinstance(part, ast.Assign) for target in part.targets]
                names |= {ast.unparse(target) for target in targets}
                bases = [ast.unparse(base).partition("[")[0].split(".")[-1] for base in node.bases]
                known = found.get(node.name, ([], set()))
                found[node.name] = (known[0] + bases, known[1] | names)
    return found


def layouts_and_problems() -> set[str]:
    """Names of all classes that are one of the two, of their bases, and of protocols that ask for a part of one."""
    found = classes()

    def line(name: str) -> set[str]:
        return {name}.union(*(line(base) for base in found[name][0] if base in found and base != name))

    def members(name: str) -> set[str]:
        return set().union(*(found[each][1] for each in line(name)))

    kinds = set()
    for contract in (Layout, Problem):
        asked = {name for name in vars(contract) if not name.startswith("_")}
        whole = {name for name in found if asked <= members(name)}
        kinds.update(*(line(name) for name in whole))
        kinds |= {name for name, (bases, own) in found.items() if "Protocol" in bases and own and own <= asked}
    return kinds


def told_apart(tree: ast.AST, kinds: set[str]) -> list[str]:
    """What tells a layout or a problem apart by its class: ``isinstance``, ``issubclass``, ``type(...)``, patterns."""
    classed, found = re.compile(rf"\b({'|'.join(sorted(kinds))})\b"), []
    thing = re.compile(r"(^|[._'\"])(layout|problem)_?('|\"|\)|$)")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            if classed.search(ast.unparse(node.args[1])) or thing.search(ast.unparse(node.args[0])):
                found.append(ast.unparse(node))
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node) and classed.search(ast.unparse(node)):
            found.append(ast.unparse(node))
        elif isinstance(node, ast.MatchClass) and classed.search(ast.unparse(node.cls)):
            found.append(ast.unparse(node.cls))
    return found


def test_layouts_and_problems_are_not_told_apart_by_class():
    kinds = layouts_and_problems()
    assert {name: found for name, tree in TREES.items() if (found := told_apart(tree, kinds))} == {}


def test_a_layout_told_apart_would_be_found():
    kinds = layouts_and_problems()
    assert {"ChainLayout", "FeatureRows", "PythonLayout", "StorableLayout", "RampProblem", "LatentProblem"} <= kinds
    for wrong in (
        "isinstance(x, FeatureRows)",
        "isinstance(x, (str, layout.ChainLayout))",
        "isinstance(bound.layout, kind)",
        "isinstance(vars(given).get('layout_', None), kind)",
        "issubclass(kind, PythonLayout)",
        "type(x) is RampProblem",
        "type(x) in (Chain, GridLayout)",
        "match x:\n    case LatentProblem():\n        pass",
    ):
        assert told_apart(ast.parse(wrong), kinds), wrong
    assert not told_apart(ast.parse("isinstance(model, Chain) or isinstance(layout.cost, str)"), kinds)


def test_types_are_told():
    many = sum(len(re.findall(r"\bAny\b", text)) for text in SOURCES.values())
    assert many <= MOST_ANY, many
    many = sum(len(re.findall(r"\b(?:getattr|hasattr)\(", text)) for text in SOURCES.values())
    assert many <= MOST_GETATTR, many


def test_no_contract_says_any():
    assert not re.search(r"\bAny\b", SOURCES["contracts.py"])


def test_files_stay_short():
    assert [name for name, text in SOURCES.items() if len(text.splitlines()) > 500] == []
