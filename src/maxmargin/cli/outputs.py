"""Output files of the command line: refused before the work, whole or not there after it, never lost."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

import typer

from maxmargin.cli.errors import reason

if TYPE_CHECKING:
    from maxmargin.estimators.saveable import Saveable

__all__ = ["check_model_output", "check_output", "opened_output", "refuse_inputs", "save_model", "warn_of_space"]

TRIAL = 1 << 16  # bytes that must fit


def check_output(path: str, inputs: Iterable[str | None]) -> None:
    """Refuse a file that cannot be written, or that is one of the inputs, before the work and not after it."""
    if path == "-":
        if sys.stdout is None:
            raise ValueError("standard output is closed; name a file with -o.")
        return
    if not path.strip():
        raise ValueError("the name of the output is empty; name a file with -o.")
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; name a file with -o.")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        missing = os.path.dirname(path) or folder
        raise ValueError(f"{path} cannot be written, there is no folder {missing!r}; create it first.")
    refuse_inputs([path], inputs)
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise ValueError(f"{path} is write-protected; name another file, or change its mode.")
    if _is_special(path):
        return
    from maxmargin.persistence.whole_file import check_room

    try:
        check_room(Path(os.path.realpath(path)), TRIAL)
    except OSError as error:
        raise ValueError(f"{path} cannot be written ({reason(error)}); name another file.") from None


def refuse_inputs(outputs: Iterable[str], inputs: Iterable[str | None]) -> None:
    """Refuse outputs that are one of the inputs, by whatever name."""
    files = {_identity(given): given for given in inputs if given not in (None, "-") and os.path.exists(given)}
    for path in outputs:
        given = files.get(_identity(path)) if os.path.exists(path) else None
        if given is not None:
            same = "the input" if path == given else f"the input {given} by another name"
            raise ValueError(f"{path} is {same}; name another file.")


def check_model_output(path: str, inputs: Iterable[str | None]) -> None:
    """Refuse a model file as :func:`check_output` does; a model is a file of its own."""
    if path == "-":
        raise ValueError("a model cannot go to standard output; name a file with -o.")
    check_output(path, inputs)
    if _is_special(path):
        raise ValueError(f"{path} is a device or a pipe; a model needs a file.")


def warn_of_space(path: str, needed: float) -> None:
    """Say so when there may be too little space for a model."""
    with suppress(OSError):
        free = shutil.disk_usage(os.path.dirname(os.path.realpath(path))).free
        if free < needed:
            room = f"the model may take up to {needed / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free for {path}"
            typer.echo(f"maxmargin: {room}; make room while it trains.", err=True)


def save_model(model: Saveable, path: str, precision: str = "float64") -> tuple[str, str]:
    """Write a model; where it cannot go to its place, to another folder.

    Returns where it is, and why not in its place.
    """
    try:
        model.save(os.path.realpath(path), precision)
        return path, ""
    except OSError as error:
        problem = reason(error)
    for folder in (tempfile.gettempdir(), os.path.expanduser("~"), os.getcwd(), "/dev/shm"):
        with suppress(OSError):
            handle, place = tempfile.mkstemp(prefix=f"{Path(path).stem}-", suffix=".mm", dir=folder)
            os.close(handle)
            try:
                model.save(place, precision)
                return place, f"{path} could not be written ({problem}); the model is in {place}: move it from there."
            except OSError:
                os.unlink(place)
    raise OSError(f"{path} could not be written ({problem}), and no other folder has room for the model.")


@contextmanager
def opened_output(path: str) -> Iterator[TextIO]:
    """A file for text in UTF-8, compressed by its suffix, that is there when all is written; ``-``: standard output."""
    if path == "-":
        text = io.TextIOWrapper(sys.stdout.buffer, "utf-8", newline="\n", write_through=True)
        try:
            yield text
            text.flush()
        finally:
            text.detach()  # standard output stays open
        return
    if _is_special(path):
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    from maxmargin.persistence.whole_file import whole_file

    with whole_file(Path(os.path.realpath(path))) as whole, _packed(path, whole) as packed:
        text = io.TextIOWrapper(packed, "utf-8", newline="\n")
        try:
            yield text
            text.flush()
        finally:
            with suppress(OSError):  # of a disk that has just been found full
                text.detach()


def _packed(path: str, file: BinaryIO) -> AbstractContextManager[BinaryIO]:
    """A file that compresses what it is given, by the suffix of its name."""
    import gzip
    import lzma

    suffix = os.path.splitext(path)[1]
    if suffix == ".gz":
        return cast(AbstractContextManager[BinaryIO], gzip.GzipFile(os.path.basename(path), "wb", fileobj=file))
    if suffix == ".xz":
        return cast(AbstractContextManager[BinaryIO], lzma.LZMAFile(file, "wb"))
    return nullcontext(file)


def _identity(path: str) -> tuple[int, int]:
    """What all names of a file share."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _is_special(path: str) -> bool:
    """Whether this is a device or a pipe, which is written to and not replaced."""
    return os.path.exists(path) and not os.path.isfile(path)
