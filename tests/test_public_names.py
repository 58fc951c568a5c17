"""Every public name of every room imports, is documented, and is not hidden by a module of the same name."""

from __future__ import annotations

import inspect
from importlib import import_module
from pkgutil import iter_modules

import pytest

ROOMS = ["", ".callbacks", ".costs", ".datasets", ".features", ".metrics", ".reports", ".testing"]


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
