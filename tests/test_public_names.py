"""Every public name of every room imports, is documented, and is not hidden by a module of the same name."""

from __future__ import annotations

import ast
import inspect
import re
from functools import reduce
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import maxmargin
import maxmargin.estimators

ROOMS = [
    "", ".callbacks", ".costs", ".datasets", ".estimators", ".execution", ".features", ".formulations", ".inference",
    ".metrics", ".models", ".oracles", ".persistence", ".reports", ".solvers", ".testing",
]  # fmt: skip


@pytest.mark.parametrize("room", ROOMS)
def test_public_names(room):
    package = import_module(f"maxmargin{room}")
    assert package.__all__ and len(set(package.__all__)) == len(package.__all__)
    if room:  # as users may do, in any order
        for module in iter_modules(package.__path__):
            import_module(f"{package.__name__}.{module.name}")
    for name in package.__all__:
        value = getattr(package, name)
        assert not inspect.ismodule(value), name
        assert inspect.getdoc(value), name
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing


CLASSES = sorted(
    {
        value
        for room in ("", ".callbacks", ".costs", ".estimators", ".features", ".formulations", ".models", ".solvers")
        for value in (
            getattr(import_module(f"maxmargin{room}"), name) for name in import_module(f"maxmargin{room}").__all__
        )
        if inspect.isclass(value)
        and value.__module__.startswith("maxmargin")
        and not getattr(value, "_is_protocol", False)
    },
    key=lambda cls: f"{cls.__module__}.{cls.__qualname__}",
)


def described(cls):
    """Names in the sections of a docstring that say what the constructor takes, each with a line of description."""
    names = set(re.findall(r"``(\w+)``", inspect.getdoc(cls) or ""))  # or a sentence speaks of them
    for section in re.findall(
        r"^(?:Parameters|Attributes)\n-+\n(.+?)(?:\n\n|\Z)", inspect.getdoc(cls) or "", re.S | re.M
    ):
        for entry in re.split(r"\n(?=\S)", section):
            head, _, text = entry.partition("\n")
            if text.strip() or " : " in head:
                names |= set(head.partition(" :")[0].split(", "))
    return names


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__qualname__)
def test_every_parameter_is_described(cls):
    own = inspect.signature(cls.__init__).parameters if cls.__init__ is not object.__init__ else {}
    wanted = {name for name, p in own.items() if name != "self" and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    assert wanted - described(cls) == set()


METHODS = sorted(
    {
        (f"{name}.{method.__name__}", method)
        for name, value in ((name, getattr(maxmargin.estimators, name)) for name in maxmargin.estimators.__all__)
        for _, method in (inspect.getmembers(value, inspect.isroutine) if inspect.isclass(value) else [(name, value)])
        if inspect.isroutine(method)
        and not method.__name__.startswith("_")
        and (method.__module__ or "").startswith("maxmargin")
    },
    key=lambda pair: pair[0],
)


@pytest.mark.parametrize("method", [pytest.param(method, id=name) for name, method in METHODS])
def test_every_parameter_of_a_method_of_an_estimator_is_described(method):
    """All but X and y, of which the first sentence speaks."""
    wanted = set(inspect.signature(method).parameters) - {"self", "X", "y"}
    assert wanted - {name.lstrip("*") for name in described(method)} == set()


def messages():
    """(file, line, text) of all texts of the package that are no documentation, as far as they are constant."""
    root = Path(maxmargin.__path__[0])
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text())
        told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
                yield path.relative_to(root).as_posix(), node.lineno, node.value


OWN = {cls.__name__ for cls in CLASSES} | {"Run", "Tables", "Tokens", "Labels", "Status", "Certificate", "GraphAnswer"}


@pytest.mark.found("C: names in messages")
def test_messages_recommend_public_names():
    """``Name.method`` and ``Name(...)`` of a message are found in maxmargin itself, or the message says where."""
    wrong = []
    for file, line, text in messages():
        for prefix, name in re.findall(r"((?:\b[a-z_]+\.)*)\b([A-Z]\w*(?:\.\w+)+|[A-Z]\w*(?=\())", text):
            if name.partition(".")[0] in OWN:
                try:
                    place = import_module(prefix.rstrip(".") or "maxmargin")
                    reduce(getattr, name.split("."), place)
                except (ImportError, AttributeError):
                    wrong.append(f"{file}:{line}: {prefix}{name}")
    assert wrong == [], wrong


@pytest.mark.found("C: GraphAnswer")
def test_answers_of_graphs_have_a_public_class():
    assert "GraphAnswer" in maxmargin.__all__ and inspect.isclass(maxmargin.GraphAnswer)
