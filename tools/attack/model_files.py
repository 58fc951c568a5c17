"""Model files of all estimators, edited by someone who knows the format: all checksums are right."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from functools import cache

import numpy as np
from tools.attack import Foreign, attacks_in_turn
from tools.attack.edits import REALS, change, change_text, fill, sign, split, tensor
from tools.attack.targets import file_targets, weights_of

import maxmargin as mm

NUMBER = 4000
SMALL = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1", "U16": "<u2", "U32": "<u4", "BOOL": "|b1"}


@cache
def files() -> dict[str, bytes]:
    """A file of each target."""
    made = {}
    for name, target in file_targets().items():
        path = target.estimator.save(os.path.abspath("model.mm"))
        made[name] = path.read_bytes()
        path.unlink()
    return made


def cases(rng: np.random.Generator, number: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each file in turn, edited at random in one to three places."""
    yield from attacks_in_turn(attack, list(files()), rng, number)


def attack(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    header, data = split(files()[name])
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        with suppress(
            LookupError, TypeError, AttributeError, ValueError, RecursionError, MemoryError
        ):  # no edit fits what earlier ones have left
            header, data = EDITS[rng.integers(len(EDITS))](header, data, rng)
    path = os.path.abspath(f"edited-{os.getpid()}.mm")
    with open(path, "wb") as file:
        file.write(sign(header, data))
    loaded = mm.load(path)
    target = file_targets()[name]
    target.verbs["predict"](loaded, target.X, target.y)
    verbs = sorted(target.verbs)
    target.verbs[verbs[rng.integers(len(verbs))]](loaded, target.X, target.y)
    again = mm.load(loaded.save(path))  # what loads and predicts can be saved, and is the same
    ours, theirs = weights_of(loaded), weights_of(again)
    if not np.array_equal(ours[ours != 0], theirs[theirs != 0]):
        raise Foreign("other weights after saving and loading")


def numbers(header: dict, data: bytes, rng: np.random.Generator) -> tuple[dict, bytes]:
    """Some numbers of a tensor become hostile ones."""
    name = tensor(header, rng)
    if name is None:
        return header, data
    low, high = header[name]["data_offsets"]
    array = np.frombuffer(data[low:high], SMALL.get(header[name]["dtype"], "|u1")).copy()
    if array.size:
        for at in rng.integers(array.size, size=int(rng.choice([1, 1, 2, array.size]))):
            if array.dtype.kind == "f":
                array[at] = rng.choice(REALS)
            elif array.dtype.kind == "b":
                array[at] = not array[at]
            else:
                limits = np.iinfo(array.dtype)
                near = int(array[at]) + int(rng.choice([-1, 1]))
                value = [0, 1, int(limits.max), int(limits.min), near][rng.integers(5)]
                array[at] = min(max(value, int(limits.min)), int(limits.max))
    return header, data[:low] + array.tobytes() + data[high:]


def shape(header: dict, data: bytes, rng: np.random.Generator) -> tuple[dict, bytes]:
    """Another shape, dtype or length of a tensor, told so that the file is still consistent."""
    header, name = deepcopy(header), tensor(header, rng)
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
    return change_text(header, rng), data


def depth(header: dict, data: bytes, rng: np.random.Generator) -> tuple[dict, bytes]:
    """A text of the header that is nested deeper than any reader goes."""
    header, mark = deepcopy(header), ["[", '{"a":'][rng.integers(2)]
    metadata = header["__metadata__"]
    name = sorted(metadata)[rng.integers(len(metadata))]
    begun = metadata[name][:-1] + ',"deep":' if metadata[name][:1] == "{" else ""
    metadata[name] = begun + mark * 5000
    return header, data


def entries(header: dict, data: bytes, rng: np.random.Generator) -> tuple[dict, bytes]:
    """Whole texts of the header exchanged or removed, entries of tensors changed."""
    header = deepcopy(header)
    change(header, rng)
    return header, data


EDITS: list[Callable] = [*[numbers, fill, shape, values, entries] * 4, *[numbers] * 4, *[values] * 12, depth]
