"""Model files of all estimators, edited by someone who knows the format: all checksums are right."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
from tools.attack import Foreign
from tools.attack.targets import targets

import maxmargin as mm

NUMBER = 4000
MARK = b'{"__metadata__":{"header_sha256":"'
SMALL = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1", "U16": "<u2", "U32": "<u4", "BOOL": "|b1"}
FLOATS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200, 1e-320, -1.0, 0.0, 1e151, 3.0]
DEEP: Any = [0]
for _ in range(58):
    DEEP = [DEEP]
VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2, 7, 100, 2**31 - 1, 2**31, 2**40, 2**62, 2**63, 2**64, 10**400, 0.5, -0.0, 1e308,
    "", "a", "F32", "$tuple", "layout.cost", "\ud800", "\0", [], [[]], {}, [0], [0, 0], [2**40, 2**40], DEEP,
    {"$array": "layout.cost"}, {"$array": "weights"}, {"$tuple": [[1]]}, {"$tuple": []}, {"$mapping": [[1, 2]]},
    {"$object": ["Auto", {}]}, {"$object": ["Chain", {}]}, {"$object": ["Ramp", {"start": {"$array": "weights"}}]},
    {"$object": ["MatrixCost", {"matrix": [[0, 1], [1, 0]]}]}, {"$texts": "labels.0"}, {"$float": "nan"},
    {"$float": "-inf"}, {"$number": ["float32", 1e300]}, {"$number": ["int64", 2**62]}, ["a"] * 300, {"a": {"b": 1}},
    {"$bytes": "00ff"}, {"$set": [1, 2]}, {"$text_array": [["a", "b"], [2]]}, "x" * 100_000,
]  # fmt: skip


@cache
def files() -> dict[str, bytes]:
    """A file of each target."""
    made = {}
    for name, target in targets().items():
        path = target.estimator.save(os.path.abspath("model.mm"))
        made[name] = path.read_bytes()
        path.unlink()
    return made


def cases(rng: np.random.Generator, number: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each file in turn, edited at random in one to three places."""
    names = list(files())
    for k in range(number):
        name, seed = names[k % len(names)], int(rng.integers(2**62))
        yield f"{name}, edit {seed}", lambda name=name, seed=seed: attack(name, seed)


def attack(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    header, data = split(files()[name])
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        with suppress(
            KeyError, TypeError, AttributeError, ValueError, RecursionError
        ):  # no edit fits what earlier ones have left
            header, data = EDITS[rng.integers(len(EDITS))](header, data, rng)
    path = os.path.abspath(f"edited-{os.getpid()}.mm")
    with open(path, "wb") as file:
        file.write(sign(header, data))
    loaded = mm.load(path)
    target = targets()[name]
    target.verbs["predict"](loaded, target.X, target.y)
    verbs = sorted(target.verbs)
    target.verbs[verbs[rng.integers(len(verbs))]](loaded, target.X, target.y)
    again = mm.load(loaded.save(path))  # what loads and predicts can be saved, and is the same
    if not np.array_equal(again.weights_[again.weights_ != 0], loaded.weights_[loaded.weights_ != 0]):
        raise Foreign("other weights after saving and loading")


def split(whole: bytes) -> tuple[dict, bytes]:
    length = int.from_bytes(whole[:8], "little")
    return json.loads(whole[8 : 8 + length]), whole[8 + length :]


def sign(header: dict, data: bytes) -> bytes:
    """The bytes of a file with this header and data, and with the right checksums."""
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


def numbers(header: dict, data: bytes, rng: np.random.Generator) -> tuple[dict, bytes]:
    """Some numbers of a tensor become hostile ones."""
    name = _tensor(header, rng)
    if name is None:
        return header, data
    low, high = header[name]["data_offsets"]
    array = np.frombuffer(data[low:high], SMALL.get(header[name]["dtype"], "|u1")).copy()
    if array.size:
        for at in rng.integers(array.size, size=int(rng.choice([1, 1, 2, array.size]))):
            if array.dtype.kind == "f":
                array[at] = rng.choice(FLOATS)
            elif array.dtype.kind == "b":
                array[at] = not array[at]
            else:
                limits = np.iinfo(array.dtype)
                near = int(array[at]) + int(rng.choice([-1, 1]))
                array[at] = np.clip(int(rng.choice([0, 1, limits.max, limits.min, near])), limits.min, limits.max)
    return header, data[:low] + array.tobytes() + data[high:]


def filling(header: dict, data: bytes, rng: np.random.Generator) -> tuple[dict, bytes]:
    """A whole tensor of other bytes."""
    name = _tensor(header, rng)
    if name is None:
        return header, data
    low, high = header[name]["data_offsets"]
    new = [rng.bytes(high - low), bytes(high - low), b"\xff" * (high - low), b"\x01" * (high - low)][rng.integers(4)]
    return header, data[:low] + new + data[high:]


def shape(header: dict, data: bytes, rng: np.random.Generator) -> tuple[dict, bytes]:
    """Another shape, dtype or length of a tensor, told so that the file is still consistent."""
    header, name = deepcopy(header), _tensor(header, rng)
    if name is None:
        return header, data
    entry = header[name]
    low, high = entry["data_offsets"]
    action = rng.integers(4)
    if action == 0:  # another dtype of the same bytes
        dtype = sorted(SMALL)[rng.integers(len(SMALL))]
        size = np.dtype(SMALL[dtype]).itemsize
        if (high - low) % size == 0 and low % size == 0:
            entry["dtype"], entry["shape"] = dtype, [(high - low) // size]
    elif action == 1:
        count = int(np.prod(entry["shape"]))
        entry["shape"] = [[count], [count, 1], [1, count], [1, 1, count], [0, *entry["shape"]]][rng.integers(5)]
    elif entry["shape"]:  # shorter or longer
        size = np.dtype(SMALL.get(entry["dtype"], "<f8")).itemsize * max(1, int(np.prod(entry["shape"][1:])))
        more = int(rng.choice([-1, 1, -entry["shape"][0], 5]))
        entry["shape"][0] += more
        new = (data[low:high] + bytes(max(more, 0) * size))[: max(0, high - low + more * size)]
        change = len(new) - (high - low)
        for other in header.values():
            if (
                isinstance(other, dict)
                and "data_offsets" in other
                and other is not entry
                and other["data_offsets"][0] >= high
            ):
                other["data_offsets"] = [place + change for place in other["data_offsets"]]
        entry["data_offsets"] = [low, low + len(new)]
        return header, data[:low] + new + data[high:]
    return header, data


def values(header: dict, data: bytes, rng: np.random.Generator) -> tuple[dict, bytes]:
    """Values anywhere in the texts of the header replaced, removed, moved."""
    header = deepcopy(header)
    metadata = header.get("__metadata__", {})
    texts = sorted(name for name, text in metadata.items() if isinstance(text, str) and text[:1] in ("{", "["))
    if not texts:
        return header, data
    name = texts[rng.integers(len(texts))]
    tree = json.loads(metadata[name])
    places: list[tuple[Any, Any]] = []
    _visit(tree, places)
    if places:
        node, key = places[rng.integers(len(places))]
        action = rng.integers(7)
        if action == 0:
            del node[key]
        elif action == 1:
            other, place = places[rng.integers(len(places))]
            node[key] = deepcopy(other[place])
        elif action == 2 and type(node[key]) is int:
            node[key] += int(rng.choice([-8, -1, 1, 8]))
        elif action == 3 and isinstance(node, dict):
            node[f"{key}x"] = node.pop(key)
        else:
            node[key] = deepcopy(VALUES[rng.integers(len(VALUES))])
    text = json.dumps(tree)
    if rng.random() < 0.02:  # deeper than any reader goes
        mark = ["[", '{"a":'][rng.integers(2)]
        text = text[:-1] + f',"deep":{mark * 5000}' if text[:1] == "{" else mark * 5000
    metadata[name] = text
    return header, data


def metadata(header: dict, data: bytes, rng: np.random.Generator) -> tuple[dict, bytes]:
    """Whole texts of the header exchanged or removed, entries of tensors changed."""
    header = deepcopy(header)
    places: list[tuple[Any, Any]] = []
    _visit(header, places)
    node, key = places[rng.integers(len(places))]
    if rng.random() < 0.3:
        del node[key]
    else:
        node[key] = deepcopy(VALUES[rng.integers(len(VALUES))])
    return header, data


def _tensor(header: dict, rng: np.random.Generator) -> str | None:
    names = [name for name in sorted(set(header) - {"__metadata__"}) if isinstance(header[name], dict)]
    names = [name for name in names if header[name].keys() >= {"data_offsets", "dtype", "shape"}]
    return names[rng.integers(len(names))] if names else None


def _visit(node: Any, places: list[tuple[Any, Any]]) -> None:
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        places.append((node, key))
        _visit(node[key], places)


EDITS: list[Callable] = [numbers, numbers, filling, shape, values, values, values, values, metadata]
