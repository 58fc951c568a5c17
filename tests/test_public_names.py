"""Every public name of every room imports, is documented, and is not hidden by a module of the same name."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pkgutil import iter_modules

import pytest

ROOMS = [
    "", ".callbacks", ".costs", ".datasets", ".estimators", ".execution", ".features", ".formulations", ".metrics",
    ".models", ".oracles", ".persistence", ".reports", ".solvers", ".testing",
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
