"""Model files: what goes in comes out, with its types; what is not a model file is refused, whatever it claims."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import maxmargin as mm
from maxmargin.persistence import model_file
from maxmargin.persistence.checkpoint import load_checkpoint
from maxmargin.persistence.json_text import parse_json
from maxmargin.persistence.model_file import read_model, write_model
from maxmargin.persistence.values import pack_texts, pack_value, unpack_texts, unpack_value

TENSORS = {
    "b/weights": np.linspace(-1, 1, 999),
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "wide": np.array([2**63 - 1, -(2**63)]),
    "bytes": np.arange(5, dtype=np.uint8),
    "flags": np.array([[True, False]]),
    "empty": np.zeros((0, 4), np.int16),
    "number": np.array(7, np.uint64),
    "big endian": np.arange(3, dtype=">i4"),
    "strided": np.arange(20, dtype=np.float64).reshape(4, 5)[::2, 1:4],
}
HEADER = {"kind": "test", "text": 'quotes " and \\ and \u00e9\U0001f600', "nothing": ""}


def forge(path: Path, metadata: dict, places: dict, data: bytes) -> Path:
    """A file with these contents and with checksums that agree, made from the description of the format alone."""
    metadata = {"header_sha256": "0" * 64, **metadata, "data_sha256": hashlib.sha256(data).hexdigest()}
    text = json.dumps({"__metadata__": metadata, **places}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256(len(text).to_bytes(8, "little") + text).hexdigest()
    text = text.replace(b"0" * 64, digest.encode(), 1)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def place(dtype: object = "F64", shape: object = (2,), offsets: object = (0, 16)) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def meta(**more: str) -> dict:
    return {"format": "maxmargin-model", "format_version": "1", **more}


def test_round_trip_and_safetensors_reads_the_same(tmp_path):
    path = write_model(tmp_path / "m", HEADER, TENSORS)
    assert os.listdir(tmp_path) == ["m"]
    peer = load_file(path)
    for mmap in (True, False):
        header, tensors = read_model(path, mmap=mmap)
        assert {name: header[name] for name in HEADER} == HEADER and header["format_version"] == "1"
        assert set(tensors) == set(TENSORS) == set(peer)
        for name, array in TENSORS.items():
            got = tensors[name]
            assert got.dtype == array.dtype.newbyteorder("<") and got.shape == array.shape
            assert np.array_equal(got, array) and np.array_equal(peer[name], array)
            assert got.flags.aligned and not got.flags.writeable


def test_equal_contents_give_equal_bytes(tmp_path):
    one = write_model(tmp_path / "one", HEADER, TENSORS).read_bytes()
    two = write_model(tmp_path / "two", HEADER, dict(reversed(TENSORS.items()))).read_bytes()
    assert one == two and (8 + int.from_bytes(one[:8], "little")) % 8 == 0
    assert write_model(tmp_path / "none", {}, {}).stat().st_size < 400 and read_model(tmp_path / "none")[1] == {}


def test_what_is_not_written(tmp_path):
    for header, tensors, words in [
        ({"format": "x"}, {}, "reserved"),
        ({}, {"x": np.array(["a"])}, "'x'"),
        ({}, {"x": np.array([{}], dtype=object)}, "dtype object"),
        ({}, {"x": np.zeros(1, np.complex64)}, "complex64"),
        ({}, {"x": np.zeros((1,) * 9)}, "dimensions"),
        ({}, {"__metadata__": np.zeros(1)}, "name"),
    ]:
        with pytest.raises(ValueError, match=words):
            write_model(tmp_path / "m", header, tensors)
    with pytest.raises(TypeError, match=r"json\.dumps"):
        write_model(tmp_path / "m", {"x": 3}, {})
    with pytest.raises(FileNotFoundError, match="create it"):
        write_model(tmp_path / "missing" / "m", {}, {})
    assert os.listdir(tmp_path) == []


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = write_model(tmp_path / "m", {"kind": "old"}, TENSORS)

    def full_disk(descriptor):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        write_model(path, {"kind": "new"}, {})
    monkeypatch.undo()
    assert read_model(path)[0]["kind"] == "old" and os.listdir(tmp_path) == ["m"]


def test_every_truncation_and_every_flipped_bit_is_refused(tmp_path):
    path = write_model(tmp_path / "m.mm", {"kind": "test"}, {"x": np.arange(9.0), "y": np.arange(3)})
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"m\.mm"):
            read_model(path)
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"m\.mm"):
            read_model(path)


def test_the_data_checksum_can_be_skipped_the_header_checksum_not(tmp_path):
    path = write_model(tmp_path / "m", {"kind": "test"}, {"x": np.zeros(4)})
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 1
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="data does not match its checksum"):
        read_model(path)
    assert read_model(path, verify=False)[1]["x"][-1] != 0
    at = whole.index(b"test")
    whole[at : at + 4] = b"best"
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="header does not match its checksum"):
        read_model(path, verify=False)


@pytest.mark.parametrize("read", [read_model, load_checkpoint])
@pytest.mark.parametrize("content", [b"", b"hello", b"\x93NUMPY" + b"\0" * 200, b"PK\x03\x04" + b"\0" * 90, b"\0" * 99])
def test_foreign_files(tmp_path, content, read):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="foreign"):
        read(path)


def test_other_safetensors_files_folders_pipes_and_versions(tmp_path, monkeypatch):
    save_file({"x": np.zeros(3)}, tmp_path / "other", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="its format is not"):
        read_model(tmp_path / "other")
    with pytest.raises(ValueError, match="not a file"):
        read_model(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")  # opening it would wait for a writer
        with pytest.raises(ValueError, match="not a file"):
            read_model(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        read_model(tmp_path / "missing")
    monkeypatch.setattr(model_file, "VERSION", 2)
    path = write_model(tmp_path / "future", {}, {})
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"format version 2.*Upgrade maxmargin"):
        read_model(path)
    for version in ("0", "-1", "1.5", "", "\u0661", "9" * 5000):
        with pytest.raises(ValueError, match="damaged"):
            read_model(forge(tmp_path / "odd", meta(format_version=version), {}, b""))


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ({"x": place(offsets=(0, 8))}, "does not take"),
        ({"x": place(shape=(3,))}, "does not take"),
        ({"x": place(shape=(2**62, 4), offsets=(0, 16))}, "does not take"),
        ({"x": place(shape=(2**61,), offsets=(0, 2**64))}, "incomplete"),
        ({"x": place(shape=(2**57,), offsets=(0, 2**60))}, "does not take"),
        ({"x": place(shape=(0, 2**62), offsets=(0, 0)), "y": place()}, "does not take"),
        ({"x": place(shape=(2,), offsets=(16, 0))}, "does not take"),
        ({"x": place(shape=(4,), offsets=(0, 32))}, "truncated"),
        ({"x": place(), "y": place()}, "overlap"),
        ({"x": place(shape=(1,), offsets=(8, 16))}, "gaps"),
        ({"x": place(shape=(1,), offsets=(0, 8))}, "8 bytes follow"),
        ({"x": place("F16", (8,))}, "F16"),
        ({"x": place("O")}, "'O'"),
        ({"x": place(["F64"])}, "dtype"),
        ({"x": place(shape=(-2,))}, "incomplete"),
        ({"x": place(shape=(True, 2))}, "incomplete"),
        ({"x": place(shape=(2.0,))}, "incomplete"),
        ({"x": place(shape="2")}, "incomplete"),
        ({"x": place(offsets=(0, 16, 32))}, "incomplete"),
        ({"x": {"dtype": "F64", "shape": [2]}}, "incomplete"),
        ({"x": {**place(), "more": 1}}, "incomplete"),
        ({"x": 3}, "incomplete"),
        ({"x": place(shape=(1,) * 40 + (2,))}, "does not take"),
        ({"x": place("U8", (1,), (0, 1)), "y": place("U8", (15,), (1, 16))}, None),
        ({"x": place("U8", (8,), (0, 8)), "y": place(shape=(1,), offsets=(8, 16))}, None),
        (
            {"x": place("U8", (4,), (0, 4)), "y": place("F64", (1,), (4, 12)), "z": place("I32", (1,), (12, 16))},
            "aligned",
        ),
        ({"x": place("BOOL", (16,))}, "neither 0 nor 1"),
    ],
)
def test_hostile_places(tmp_path, places, words):
    data = np.array([1.5, 2.5]).tobytes()
    path = forge(tmp_path / "hostile", meta(), places, data)
    if words is None:
        assert sum(array.nbytes for array in read_model(path)[1].values()) == 16
        return
    with pytest.raises(ValueError, match=words) as caught:
        read_model(path)
    assert "hostile" in str(caught.value) and len(str(caught.value)) < 700 + len(str(path))


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"__metadata__":' + b"[" * 70 + b"]" * 70 + b"}",
        b"{" + b'\\"' * 500_000,
        b'{"a":"' + b'\\"' * 500_000 + b"\\",
        b'{"a":[' + b"[]," * 2_000_000 + b"[]]}",
        b'{"a":1,"a":2}',
        b'{"a":NaN}',
        b'{"a":' + b"9" * 10_000 + b"}",
        b'{"a":"\xff"}',
        b"[]",
        b"{}",
        b"null",
        b"{} trailing",
    ],
)
def test_hostile_headers_are_refused_at_once(tmp_path, raw):
    path = tmp_path / "hostile"
    path.write_bytes(len(raw).to_bytes(8, "little") + raw)
    begin = time.perf_counter()
    with pytest.raises(ValueError, match="hostile"):
        read_model(path)
    assert time.perf_counter() - begin < 5


def test_a_header_longer_than_the_limit_is_not_read(tmp_path):
    path = tmp_path / "long"
    with open(path, "wb") as file:  # a hole: the file takes no room on disk
        file.write((200_000_000).to_bytes(8, "little"))
        file.truncate(300_000_000)
    with pytest.raises(ValueError, match="more than 100000000"):
        read_model(path)
    path.write_bytes((2**63).to_bytes(8, "little") + b"{}")
    with pytest.raises(ValueError, match="more than"):
        read_model(path)
    path.write_bytes((5000).to_bytes(8, "little") + b"{}")
    with pytest.raises(ValueError, match="truncated"):
        read_model(path)


# Values.

leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=8)
    | st.floats(width=32).map(np.float32) | st.integers(-128, 127).map(np.int8) | st.booleans().map(np.bool_)
)  # fmt: skip
keys = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.tuples(st.text(), st.integers())
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
        | st.frozensets(keys, max_size=4)
        | st.sets(keys, max_size=4)
        | st.lists(st.text(max_size=3), min_size=64, max_size=70)
    ),
    max_leaves=12,
)


def same(a: object, b: object) -> bool:
    """Equal with equal types, all the way down; NaN equals itself."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a.items(), b.items(), strict=True))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, (set, frozenset)):
        return a == b and sorted(map(repr, a)) == sorted(map(repr, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return repr(a) == repr(b)


@settings(max_examples=150, deadline=None)
@given(values)
def test_values_keep_their_types(value):
    tensors: dict = {}
    text = pack_value(value, tensors, "v")
    text.encode("ascii")
    assert same(unpack_value(text, tensors), value)


def test_arrays_and_components():
    value = {
        "numbers": np.arange(4.0).reshape(2, 2),
        "flags": (np.array([True]), [np.zeros(0, np.int8)]),
        "texts": np.array([["a", "bc"], ["", "\u00e9"]]),
        "$odd": {1: mm.BCFW(sampling="gap"), True + 1: mm.Auto()},
    }
    tensors: dict = {}
    known = {kind.__name__: kind.__module__ for kind in (mm.BCFW, mm.Auto)}
    text = pack_value(value, tensors, "p", known)
    back = unpack_value(text, tensors, lambda kind, arguments: {"BCFW": mm.BCFW, "Auto": mm.Auto}[kind](**arguments))
    assert all(same(back[name], value[name]) for name in ("numbers", "flags", "texts"))
    assert back["numbers"].flags.writeable and not np.shares_memory(back["numbers"], value["numbers"])
    assert repr(back["$odd"]) == repr(value["$odd"])
    with pytest.raises(ValueError, match="BCFW"):
        pack_value(mm.BCFW(), {}, "p")
    with pytest.raises(ValueError, match="unknown kind 'BCFW'"):
        unpack_value('{"$object": ["BCFW", {}]}', {})
    for bad in (object(), len, np.array([None]), 1j):
        with pytest.raises(ValueError, match="stored"):
            pack_value([bad], tensors, "p")


@pytest.mark.parametrize(
    "text",
    [
        '{"$what": 1}', '{"$tuple": 3}', '{"$tuple": [], "a": 1}', '{"$set": [[]]}', '{"$mapping": [[1]]}',
        '{"$mapping": [[[], 1]]}', '{"$float": "1e5"}', '{"$number": ["object", 1]}', '{"$number": ["int8", 300]}',
        '{"$number": ["int8", "3"]}', '{"$bytes": "zz"}', '{"$bytes": 5}', '{"$array": "no"}', '{"$array": ["x"]}',
        '[{"$array": "x"}, {"$array": "x"}]', '{"$texts": "x"}', '{"$text_array": [["a"], [7]]}',
        '{"$text_array": [[1], [1]]}', '{"$object": ["Auto", {"no": 1}]}', '{"$object": [[], {}]}', "", "{", "[" * 99,
    ],
)  # fmt: skip
def test_values_that_are_refused(text):
    with pytest.raises(ValueError):
        unpack_value(text, {"x": np.zeros(3)}, lambda kind, arguments: mm.Auto(**arguments))


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: (v,), lambda v: {1: v}, lambda v: {"a": v}, lambda v: {v}])
def test_what_is_nested_too_deep_is_not_written(wrap):
    """A value that is written can be read; one that is too deep for the reader is refused by the writer."""
    value, written = "x", 0
    for depth in range(5000):
        try:
            text = pack_value(value, {}, "v")
        except ValueError as error:
            assert "nested this deep" in str(error)
            break
        assert same(unpack_value(text, {}), value)
        value, written = wrap(frozenset(value) if isinstance(value, set) else value), depth
    assert 15 <= written < 64


def test_text_that_is_nested_too_deep_is_not_read():
    for text in ('{"a":' * 5000 + "1" + "}" * 5000, "[" * 5000 + "]" * 5000):
        with pytest.raises(ValueError, match="nested more than 64 levels deep"):
            unpack_value(text, {})


def test_texts():
    texts = ["", "a", "\u00e9\U0001f600", "\ud800", "a\0b", ""]
    assert unpack_texts(*pack_texts(texts)) == texts and unpack_texts(*pack_texts([])) == []
    blob, offsets = pack_texts(["ab", "c"])
    assert offsets.dtype == np.uint8 and pack_texts(["a" * 300])[1].dtype == np.uint16
    for bad in ([0, 2], [1, 2, 3], [0, 3, 2], [0, 2, 4], []):
        with pytest.raises(ValueError, match="offsets"):
            unpack_texts(blob, np.array(bad, np.int64))
    with pytest.raises(ValueError):
        unpack_texts(np.array([0xFF], np.uint8), np.array([0, 1]))
    with pytest.raises(ValueError, match="far longer"):
        unpack_value(json.dumps({"$text_array": [["a" * 10**6] + [""] * 50, [51]]}), {})
    assert parse_json('{"a": [1.5, "[[[["]}') == {"a": [1.5, "[[[["]}
