"""Model files whose contents were changed by someone who knows the format; the checksums agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from maxmargin.persistence.model_file import read_model, write_model


def forge(path: Path, part: str, change: Callable[[dict], object]) -> Path:
    """Change the JSON of a part of the header in place; of the layout, its facts."""
    header, tensors = plain(path)
    content = json.loads(header[part])
    change(content["facts"] if part == "layout" and "facts" in content else content)
    return write_model(path, {**header, part: json.dumps(content)}, tensors)


def forge_text(path: Path, part: str, text: str) -> Path:
    """Replace a part of the header."""
    header, tensors = plain(path)
    return write_model(path, {**header, part: text}, tensors)


def forge_tensor(path: Path, name: str, change: Callable[[np.ndarray], np.ndarray | None]) -> Path:
    """Replace a tensor, or leave it out where ``change`` gives None."""
    header, tensors = plain(path)
    array = change(tensors.pop(name).copy())
    return write_model(path, header, tensors if array is None else {**tensors, name: array})


def plain(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    header, tensors = read_model(path, mmap=False)
    return {name: text for name, text in header.items() if not name.startswith(("format", "data_"))}, tensors
