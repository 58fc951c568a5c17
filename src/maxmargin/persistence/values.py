"""Python values as JSON text and arrays: what was a tuple, a number key or an array comes back as one.

Plain JSON stands for itself: None, booleans, whole numbers, finite floats, text, lists, and mappings with text keys.
Everything else is a mapping with one key that begins with ``$``:

==================================  ==================================================================================
``{"$tuple": [..]}``                also ``$set``, ``$frozenset``
``{"$mapping": [[key, value]..]}``  a mapping with other keys
``{"$float": "nan"}``               also ``inf``, ``-inf``
``{"$number": ["int64", 3]}``       a numpy number
``{"$bytes": "00ff"}``
``{"$array": "name"}``              an array, stored as a tensor
``{"$texts": "name"}``              a long list of text, stored as the tensors ``name.utf8`` and ``name.offsets``
``{"$text_array": [texts, shape]}`` an array of text
``{"$object": ["Name", {..}]}``     an object of a class the reader knows, by its constructor arguments
==================================  ==================================================================================
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np

from maxmargin.persistence.json_text import DEPTH_LIMIT, parse_json

__all__ = ["pack_texts", "pack_value", "unpack_texts", "unpack_value"]

LONG = 64  # from so many texts on a list is stored as a tensor
Maker = Callable[[str, dict[str, object]], object]

_GROUPS: dict[str, Callable[[list], object]] = {"$tuple": tuple, "$set": set, "$frozenset": frozenset}
_FLOATS = ("nan", "inf", "-inf")
_NUMBERS = ("bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)), "float32", "float64")


@runtime_checkable
class _Component(Protocol):
    """An object that knows its constructor arguments."""

    def get_params(self, deep: bool = True) -> dict[str, object]: ...


def pack_value(
    value: object, tensors: dict[str, np.ndarray], prefix: str, components: Mapping[str, str] | None = None
) -> str:
    """JSON text of a value; its arrays are added to ``tensors`` under names that begin with ``prefix``.

    ``components`` maps names to modules of classes whose objects are stored by their constructor arguments. A
    ValueError says that some part is of another kind, or nested too deep for a reader; ``tensors`` is left as it was.
    """
    found: dict[str, np.ndarray] = {}
    text = json.dumps(_encode(value, found, prefix, components or {}, DEPTH_LIMIT), allow_nan=False)
    tensors.update(found)
    return text


def unpack_value(text: str, tensors: Mapping[str, np.ndarray], make: Maker | None = None) -> object:
    """The value behind a text of :func:`pack_value`, with arrays of its own; a ValueError when there is none.

    ``make`` gives the object of a class, by its name, and of constructor arguments; without it there are no objects.
    """
    try:
        return _decode(parse_json(text), dict(tensors), make or _unknown)
    except (KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"a stored value cannot be understood ({type(error).__name__}: {error})") from error


def pack_texts(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Texts as one blob of UTF-8 (uint8) and the n + 1 offsets between them."""
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return np.frombuffer(b"".join(parts), np.uint8), offsets.astype(np.min_scalar_type(int(offsets[-1])))


def unpack_texts(blob: np.ndarray, offsets: np.ndarray) -> list[str]:
    """The texts of :func:`pack_texts`, checked."""
    if blob.dtype != np.uint8 or blob.ndim != 1 or offsets.dtype.kind not in "iu" or offsets.ndim != 1:
        raise ValueError("stored texts must be bytes and whole offsets, one after the other")
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(blob) or (offsets[1:] < offsets[:-1]).any():
        raise ValueError("the offsets of stored texts must rise from 0 to the number of bytes")
    data = blob.tobytes()
    return [data[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(offsets.tolist())]


def _unknown(kind: str, arguments: Mapping[str, object]) -> object:
    raise ValueError(f"it has an object of the unknown kind {kind[:40]!r}; upgrade maxmargin")


def _encode(
    value: object, tensors: dict[str, np.ndarray], prefix: str, components: Mapping[str, str], depth: int
) -> object:
    if depth < 3:  # of JSON: a mark and its content take up to three
        raise ValueError("a value that is nested this deep cannot be stored")

    def inner(part: object, levels: int = 1) -> object:
        return _encode(part, tensors, prefix, components, depth - levels)

    at = f"{prefix}.{len(tensors)}"
    if value is None or type(value) in (bool, int):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "U":
            return {"$text_array": [inner(value.ravel().tolist()), list(value.shape)]}
        if value.dtype.name not in _NUMBERS:
            raise ValueError(f"an array of dtype {value.dtype} cannot be stored; use numbers, booleans or text")
        tensors[at] = value
        return {"$array": at}
    if isinstance(value, np.generic) and value.dtype.name in _NUMBERS:
        return {"$number": [value.dtype.name, inner(value.item())]}
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": str(value)}
    if type(value) in (str, np.str_):
        return str(value)
    if type(value) is bytes:
        return {"$bytes": value.hex()}
    if type(value) is list:
        if len(value) >= LONG and all(type(part) is str for part in value):
            tensors[f"{at}.utf8"], tensors[f"{at}.offsets"] = pack_texts(value)
            return {"$texts": at}
        return [inner(part) for part in value]
    if type(value) is tuple:
        return {"$tuple": [inner(part, 2) for part in value]}
    if isinstance(value, (set, frozenset)) and type(value) in (set, frozenset):
        # sets have no order of their own: equal sets must give equal files
        parts = sorted(value, key=lambda part: (type(part).__name__, repr(part)))
        return {f"${type(value).__name__}": [inner(part, 2) for part in parts]}
    if isinstance(value, Mapping):
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: inner(part) for key, part in value.items()}
        return {"$mapping": [[inner(key, 3), inner(part, 3)] for key, part in value.items()]}
    kind = type(value).__name__
    if isinstance(value, _Component) and components.get(kind) == type(value).__module__:
        return {"$object": [kind, inner(value.get_params(deep=False), 2)]}
    raise ValueError(f"{value!r} of type {kind} cannot be stored; use text, numbers, booleans, None, or tuples of them")


def _decode(value: object, tensors: dict[str, np.ndarray], make: Maker) -> object:
    # Tensors are taken out as they are used: a text that names one a thousand times would make a thousand copies.
    def inner(part: object) -> object:
        return _decode(part, tensors, make)

    if isinstance(value, list):
        return [inner(part) for part in value]
    if not isinstance(value, dict):
        return value
    if not any(key.startswith("$") for key in value):
        return {key: inner(part) for key, part in value.items()}
    if len(value) != 1:
        raise ValueError(f"a stored value has the keys {', '.join(value)[:80]}; a mark stands alone")
    mark, content = next(iter(value.items()))
    if mark in _GROUPS:
        return _GROUPS[mark]([inner(part) for part in _list(content)])
    if mark == "$mapping":
        return {inner(key): inner(part) for key, part in map(_list, _list(content))}
    if mark == "$float" and content in _FLOATS:
        return float(content)
    if mark == "$number":
        dtype, number = _list(content)
        if dtype not in _NUMBERS:
            raise ValueError(f"a stored number has the unknown type {str(dtype)[:40]!r}")
        number = inner(number)
        if not isinstance(number, (bool, int, float)):
            raise ValueError(f"a stored number is a {type(number).__name__}")
        if np.dtype(dtype).kind in "iu" and not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
            raise ValueError(f"a stored number is {str(number)[:40]}, which is no {dtype}")
        with np.errstate(over="ignore"):
            return np.dtype(dtype).type(number)
    if mark == "$bytes":
        return bytes.fromhex(content)
    if mark == "$array":
        return np.array(tensors.pop(content))
    if mark == "$texts":
        return unpack_texts(tensors.pop(f"{content}.utf8"), tensors.pop(f"{content}.offsets"))
    if mark == "$text_array":
        texts, shape = _list(content)
        texts = _list(inner(texts))
        widest = max(map(len, texts), default=0)  # an array of text is as wide as its longest text, everywhere
        if widest * len(texts) > 8 * sum(map(len, texts)) + 1_000_000:
            raise ValueError("a stored array of text has one text far longer than the others")
        return np.array(texts, dtype=np.str_).reshape(shape)
    if mark == "$object":
        kind, arguments = _list(content)
        arguments = inner(arguments)
        if type(kind) is not str or type(arguments) is not dict:
            raise ValueError("a stored object is not a name and its arguments")
        return make(kind, arguments)
    raise ValueError(f"a stored value has the unknown mark {mark[:40]!r}; upgrade maxmargin")


def _list(content: object) -> list:
    if not isinstance(content, list):
        raise ValueError("a stored value is not the list it should be")
    return content
