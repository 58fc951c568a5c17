"""Oracles, which turn weights into planes; names load when they are first used."""

from maxmargin.lazy import lazy

_NAMES = {
    "oracle": "ModelOracle",
    "counting": "CountingOracle",
    "rescaling": "Rescaling rescaling_named",
    "references": "ReferenceOracle",
}

__all__, __getattr__, __dir__ = lazy(__name__, _NAMES)
