"""Packages whose public names load their module when they are first used, and modules that load likewise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["lazy", "load_when_used"]


def lazy(package: str, names: Mapping[str, str]) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` and ``__dir__`` of a package; ``names`` holds the public ones of each module."""
    places = {name: f"{package}.{module}" for module, owned in names.items() for name in owned.split()}

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(places[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return [*places], load, lambda: sorted({*places, *vars(sys.modules[package])})


class _Later(ModuleType):
    """Stands for a module until something of it is used."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        real = import_module(self.__name__)
        vars(self).update(vars(real))
        return getattr(real, name)


def load_when_used(name: str) -> None:
    """Let all further ``import name`` be free: the module is loaded when the first of its attributes is used."""
    sys.modules.setdefault(name, _Later(name))
