"""Files that appear under their name only when they are complete."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["check_room", "lock", "whole_file"]

_UNFINISHED = re.compile(r".+\.[0-9a-f]{12}\.part")


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write beside, flush to disk, then rename: a crash or a full disk leaves the file that was there untouched.

    A process that is killed leaves an unfinished file ``<name>.<hex digits>.part``, which the next one that writes to
    the same folder removes.
    """
    _remove_abandoned(path.parent)
    with _unfinished(path) as (temporary, file):
        yield file
        file.flush()
        os.fsync(file.fileno())
        if os.name != "posix":
            file.close()
        os.replace(temporary, path)


def check_room(path: Path, n_bytes: int) -> None:
    """Write and remove so many bytes beside the place of a file; an OSError says why it could not be written."""
    with _unfinished(path) as (_, file):
        file.write(bytes(n_bytes))
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _unfinished(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file beside the place of another, locked while it is open; removed in the end if it is still there."""
    while True:
        temporary = path.with_name(f"{path.name}.{secrets.token_hex(6)}.part")
        with open(temporary, "xb") as file:
            try:
                lock(file, wait=True)
                if not temporary.exists():  # taken for an abandoned one before it was locked
                    continue
                yield temporary, file
                return
            finally:
                temporary.unlink(missing_ok=True)


def _remove_abandoned(folder: Path) -> None:
    """Remove unfinished files that no process is writing any more: those that can be locked."""
    with suppress(OSError):
        for name in filter(_UNFINISHED.fullmatch, os.listdir(folder)):
            with suppress(OSError), open(folder / name, "rb") as file:
                lock(file, wait=False)
                (folder / name).unlink()


def lock(file: BinaryIO, wait: bool) -> None:
    """Hold a file as long as it is open; an OSError when another process does and this one is not to wait.

    Not all file systems have locks; on those an unfinished file looks like one that is being written.
    """
    try:
        import fcntl
    except ImportError:  # Windows, where nobody can remove a file that is open
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        if not wait:
            raise
