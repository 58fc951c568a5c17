"""A folder that holds what was packed of many files, so that the next fit on the same files maps it at once.

``pack/`` in the folder has the arrays of the kernels (``ints``, ``floats``) and a small file ``facts.mm`` with the
vocabulary, the layout, a digest of each array, and the *key*: a digest of the files (paths, sizes, times of change) and
of all that decides how they are packed. Another key is another pack, which takes the place of the old one. A pack
appears only when it is whole, and is checked before it is believed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.datasets.column_format import ColumnFormat
from maxmargin.estimators.file_parts import BoundFiles
from maxmargin.features.extractor import TextFeatures
from maxmargin.models.chain import ChainBound, ChainLayout
from maxmargin.models.chain_parts import checked
from maxmargin.persistence.json_text import parse_json
from maxmargin.persistence.mapped import file_digest, open_array
from maxmargin.persistence.model_file import read_model, write_model
from maxmargin.persistence.whole_file import lock

__all__ = ["key_of", "packed_in"]

VERSION = 1  # another one for every change of what kernels read, or of how text is read
ARRAYS = {"ints": np.int32, "floats": np.float64}


def key_of(paths: Sequence[str], settings: Mapping[str, object]) -> str:
    """A digest of the state of files and of all settings that decide what is packed of them."""
    files = []
    for path in paths:
        found = Path(path).stat()
        files.append([str(Path(path).resolve()), found.st_size, found.st_mtime_ns])
    facts = {"version": VERSION, "files": files, **settings}
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=repr).encode()).hexdigest()


def packed_in(folder: Path, key: str, make: Callable[[Path], BoundFiles]) -> BoundFiles:
    """The pack of a folder, if it has this key; else ``make`` makes it in another folder, which takes its place.

    One process at a time makes a pack in a folder; others wait, and find it made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "ab") as file:
        lock(file, wait=True)
        for left in folder.glob(".packing-*"):  # of a process that was killed: nobody else holds the lock
            shutil.rmtree(left, ignore_errors=True)
        found = _found(folder / "pack", key)
        if found is not None:
            return found
        temporary = Path(tempfile.mkdtemp(prefix=".packing-", dir=folder))
        try:
            made = make(temporary)
            bound = made.bound
            assert isinstance(bound, ChainBound)
            _write_facts(temporary, key, made, bound)
            shutil.rmtree(folder / "pack", ignore_errors=True)
            temporary.rename(folder / "pack")
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        ints, floats = _mapped(folder / "pack", [len(bound.ints), len(bound.floats)])  # workers open it by this name
        return made._replace(bound=replace(bound, ints=ints, floats=floats))


def _mapped(folder: Path, lengths: Sequence[int]) -> list[np.ndarray]:
    """The arrays of a pack, in the order of :data:`ARRAYS`."""
    return [open_array(folder / name, ARRAYS[name], n) for name, n in zip(ARRAYS, lengths, strict=True)]


def _write_facts(folder: Path, key: str, made: BoundFiles, bound: ChainBound) -> None:
    arrays, features = made.features.to_state()
    facts, tensors = bound.layout.to_state()
    header = {
        "key": key,
        "features": json.dumps(features),
        "layout": json.dumps(facts),
        "columns": json.dumps({**asdict(made.columns), "label_column": made.label_column}),
        **{f"sha256_{name}": file_digest(folder / name) for name in ARRAYS},
    }
    held = {f"features.{name}": array for name, array in arrays.items()}
    held |= {f"layout.{name}": array for name, array in tensors.items()}
    lengths = np.array([len(bound.ints), len(bound.floats)])
    write_model(folder / "facts.mm", header, {**held, "meta": bound.meta, "lengths": lengths})


def _found(folder: Path, key: str) -> BoundFiles | None:
    """A pack; None when there is none, or when it is of other files or settings, or damaged."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        header, tensors = read_model(folder / "facts.mm")
        if header["key"] != key:
            return None
        if any(file_digest(folder / name) != header[f"sha256_{name}"] for name in ARRAYS):
            return None

        def of(kind: str) -> dict[str, np.ndarray]:
            return {name.removeprefix(kind): array for name, array in tensors.items() if name.startswith(kind)}

        features = TextFeatures.from_state(of("features."), _facts(header["features"]))
        layout = ChainLayout.from_state(_facts(header["layout"]), of("layout."))
        columns = _facts(header["columns"])
        bound = checked(layout, np.array(tensors["meta"]), *_mapped(folder, tensors["lengths"].tolist()))
        place = columns["label_column"]
        return BoundFiles(bound, features, ColumnFormat.from_state(columns), range(columns["width"])[place])
    return None


def _facts(text: str) -> dict[str, Any]:
    """Facts by name; a TypeError when a text holds none."""
    found = parse_json(text)
    if not isinstance(found, dict):
        raise TypeError("no facts")
    return found
