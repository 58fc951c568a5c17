"""Where datasets live on disk."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["data_home", "require"]


def data_home() -> Path:
    """Folder of the datasets: ``$MAXMARGIN_DATA``, or ``~/.cache/maxmargin/data`` when that is not set."""
    chosen = os.environ.get("MAXMARGIN_DATA")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "maxmargin" / "data"


def require(relative_path: str, where: str) -> Path:
    """Path of a dataset's file, or an error that says how to get it.

    Parameters
    ----------
    relative_path : str
        The file, relative to :func:`data_home`.
    where : str
        Where the set can be had, as a phrase that may follow "It can be had from".

    Raises
    ------
    FileNotFoundError
        When the file is not there.
    """
    path = data_home() / relative_path
    if not path.is_file():
        source = "MAXMARGIN_DATA" if os.environ.get("MAXMARGIN_DATA") else "the default; MAXMARGIN_DATA is not set"
        raise FileNotFoundError(
            f"dataset file '{relative_path}' is missing: looked for {path} (data folder from {source}). "
            f"It can be had from {where}. Put it there, or set MAXMARGIN_DATA to the folder that holds it."
        )
    return path
