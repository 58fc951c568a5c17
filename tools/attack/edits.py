"""Edits that several suites share, and the fuzz test of model files: nested values, and files with valid checksums."""

from __future__ import annotations

import hashlib
import json
from copy import deepcopy
from typing import Any

import numpy as np

MARK = b'{"__metadata__":{"header_sha256":"'
REALS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200, 1e151, 1e101, 1e-320, -1.0, 0.0, 0.5, 3.0, 2.0**31, 2.0**63]
DEEP: Any = [0]
for _ in range(58):
    DEEP = [DEEP]
VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2, 7, 100, 2**31 - 1, 2**31, 2**40, 2**62, 2**63, 2**64, 10**400, 0.5, -0.0, 1e308,
    "", "a", "F32", "U8", "BOOL", "$tuple", "layout.cost", "\ud800", "\0", [], [[]], {}, [0], [0, 0], [2**40, 2**40],
    DEEP, {"$array": "layout.cost"}, {"$array": "weights"}, [{"$array": "parameters.0"}] * 50, {"$tuple": [[1]]},
    {"$tuple": []}, {"$mapping": [[1, 2]]}, {"$object": ["Auto", {}]}, {"$object": ["Chain", {}]},
    {"$object": ["Ramp", {"start": {"$array": "weights"}}]}, {"$object": ["MatrixCost", {"matrix": [[0, 1], [1, 0]]}]},
    {"$texts": "labels.0"}, {"$float": "nan"}, {"$float": "-inf"}, {"$number": ["float32", 1e300]},
    {"$number": ["int64", 2**62]}, {"$number": ["int8", 300]}, ["a"] * 300, {"a": {"b": 1}}, {"$bytes": "00ff"},
    {"$set": [1, 2]}, {"$text_array": [["a", "b"], [2]]}, "x" * 100_000,
]  # fmt: skip


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every place of nested lists and dicts (not of sparse matrices, which may be dicts too), by container and key."""
    found = []
    for key in list(tree) if type(tree) is dict else range(len(tree)) if isinstance(tree, list) else ():
        found += [(tree, key), *places(tree[key])]
    return found


def change(tree: Any, rng: np.random.Generator) -> None:
    """A value of a tree of JSON replaced, removed, moved or renamed, in place."""
    known = places(tree)
    if not known:
        return
    node, key = known[rng.integers(len(known))]
    action = rng.integers(7)
    if action == 0:
        del node[key]
    elif action == 1:  # what stands elsewhere
        other, place = known[rng.integers(len(known))]
        node[key] = deepcopy(other[place])
    elif action == 2 and type(node[key]) is int:
        node[key] += int(rng.choice([-8, -1, 1, 8]))
    elif action == 3 and isinstance(node, dict):
        node[f"{key}x"] = node.pop(key)
    else:
        node[key] = deepcopy(VALUES[rng.integers(len(VALUES))])


def split(whole: bytes) -> tuple[dict, bytes]:
    """Header and data of a model file."""
    length = int.from_bytes(whole[:8], "little")
    return json.loads(whole[8 : 8 + length]), whole[8 + length :]


def sign(header: dict, data: bytes) -> bytes:
    """The bytes of a model file with this header and data, and with the right checksums."""
    metadata = header.get("__metadata__")
    if isinstance(metadata, dict):
        metadata = {"header_sha256": "0" * 64, **{k: v for k, v in metadata.items() if k != "header_sha256"}}
        if "data_sha256" in metadata:
            metadata["data_sha256"] = hashlib.sha256(data).hexdigest()
        header = {"__metadata__": metadata, **{k: v for k, v in header.items() if k != "__metadata__"}}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    length = len(text).to_bytes(8, "little")
    if text.startswith(MARK):
        text = MARK + hashlib.sha256(length + text).hexdigest().encode() + text[len(MARK) + 64 :]
    return length + text + data


def tensor(header: dict, rng: np.random.Generator) -> str | None:
    """The name of a tensor that a header describes."""
    names = [name for name in sorted(set(header) - {"__metadata__"}) if isinstance(header[name], dict)]
    names = [name for name in names if header[name].keys() >= {"data_offsets", "dtype", "shape"}]
    return names[rng.integers(len(names))] if names else None


def fill(header: dict, data: bytes, rng: np.random.Generator) -> tuple[dict, bytes]:
    """A whole tensor of other bytes."""
    name = tensor(header, rng)
    if name is None:
        return header, data
    low, high = header[name]["data_offsets"]
    new = [rng.bytes(high - low), bytes(high - low), b"\xff" * (high - low), b"\x01" * (high - low)][rng.integers(4)]
    return header, data[:low] + new + data[high:]


def change_text(header: dict, rng: np.random.Generator) -> dict:
    """A header with a change inside one of the JSON texts of its metadata."""
    header = deepcopy(header)
    metadata = header.get("__metadata__")
    known = metadata.items() if isinstance(metadata, dict) else ()
    texts = sorted(name for name, text in known if isinstance(text, str) and text[:1] in ("{", "["))
    if texts:
        name = texts[rng.integers(len(texts))]
        tree = json.loads(metadata[name])
        change(tree, rng)
        metadata[name] = json.dumps(tree)
    return header
