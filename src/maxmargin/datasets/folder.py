"""Where datasets live on disk."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["data_home", "require"]


def data_home() -> Path:
    """Folder of the datasets: ``$MAXMARGIN_DATA``, or ``~/.cache/maxmargin/data`` by default."""
    chosen = os.environ.get("MAXMARGIN_DATA")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "maxmargin" / "data"


def require(relative_path: str, where: str) -> Path:
    """Path of a dataset file in :func:`data_home`; a FileNotFoundError says "Get it from" ``where``."""
    path = data_home() / relative_path
    if not path.is_file():
        source = "MAXMARGIN_DATA" if os.environ.get("MAXMARGIN_DATA") else "the default; MAXMARGIN_DATA is not set"
        raise FileNotFoundError(
            f"dataset file '{relative_path}' is missing: looked for {path} (data folder from {source}). "
            f"Get it from {where}. Put it there, or set MAXMARGIN_DATA to the folder that holds it."
        )
    return path
