"""Oracles, which turn weights into planes; names load when they are first used."""

from maxmargin.lazy import lazy

_NAMES = {
    "oracle": "ModelOracle",
    "counting": "CountingOracle",
    "rescaling": "Rescaling rescaling_named",
}
_PLACES = {name: f"maxmargin.oracles.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_PLACES]
__getattr__, __dir__ = lazy(__name__, _PLACES)
