"""JSON from files that nobody vouches for: bounded in depth and in memory before it is parsed."""

from __future__ import annotations

import json
import re

import numpy as np

__all__ = ["DEPTH_LIMIT", "parse_json"]

STRUCTURE_LIMIT = 4_000_000
DEPTH_LIMIT = 64

# A string, closed or running to the end of the text: the second case keeps the search linear on damaged text.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


def parse_json(text: str) -> object:
    """The value of a JSON text, or a ValueError; no key twice, no NaN, no deep nesting.

    Text costs as much memory as it is long, but three characters of structure (``[],``) make an object of some sixty
    bytes. So the text without its strings is measured first. O(length).
    """
    structure = _STRING.sub("", text)
    if len(structure) > STRUCTURE_LIMIT:
        raise ValueError(f"its JSON has {len(structure)} characters outside of strings, more than {STRUCTURE_LIMIT}")
    signs = np.frombuffer(structure.encode("ascii", "replace"), np.uint8)
    steps = np.isin(signs, list(b"[{")).astype(np.int32) - np.isin(signs, list(b"]}"))
    if np.cumsum(steps).max(initial=0) > DEPTH_LIMIT:
        raise ValueError(f"its JSON is nested more than {DEPTH_LIMIT} levels deep")
    return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("its JSON has a key twice")
    return made


def _constant(name: str) -> float:
    raise ValueError(f"its JSON has {name}, which is no number")
