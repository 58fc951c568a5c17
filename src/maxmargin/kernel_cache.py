"""Machine code on disk: one file per compiled kernel, stamped with the sources that it was made from.

A file holds the SHA-256 of its stamp and its content, then the content. Whatever is wrong with it (cut short,
unreadable, from other sources), it counts as missing: the kernel compiles again and the file is replaced, at once and
as a whole, so that many processes may share a folder. What a killed process has left of a file goes when the next one
is written. A folder that cannot be written, or a full disk, costs one warning, no more.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import re
import sys
import time
import uuid
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numba
from numba.core.base import BaseContext
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

__all__ = ["DiskCache", "cache_folder", "checks_bounds", "source_digest"]

_PACKAGE = Path(__file__).parent
_HERE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]  # a folder may be shared by machines
_STARTED = time.time() - 0.05  # clocks of file systems tick slowly
_PASSING = re.compile(rf".+\.{_HERE}-([0-9]{{1,9}})-[0-9a-f]{{8}}\.part")

# Parsing all kernel files takes 70 ms, this 5. A line of prose that looks like an import does no harm: no such file.
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|.*)|import[ \t]+(.*))", re.MULTILINE)


@cache
def _digest_and_imports(path: Path) -> tuple[bytes, frozenset[Path]]:
    """Digest of one source file, and the files of the package that it imports itself, wherever in the file."""
    source = path.read_bytes()
    found = set()
    for origin, names, modules in _IMPORT.findall(source.decode()):
        dots = len(origin) - len(origin.lstrip("."))
        if dots:  # relative
            places = [path.parents[dots - 1].joinpath(*filter(None, origin[dots:].split(".")))]
        else:
            dotted = [name.split(".") for name in ([origin] if origin else re.findall(r"[\w.]+", modules))]
            places = [_PACKAGE.joinpath(*parts[1:]) for parts in dotted if parts[0] == _PACKAGE.name]
        for place in places:
            module = place.with_suffix(".py")
            if module.is_file():
                found.add(module)
                continue
            parts = re.findall(r"\w+", names)
            inside = [place / end for name in parts for end in (f"{name}.py", f"{name}/__init__.py")]
            if place != _PACKAGE:  # the package itself loads its names lazily and would drag all files in
                inside.append(place / "__init__.py")
            found.update(file for file in inside if file.is_file())
    return hashlib.sha256(source).digest(), frozenset(found)


@cache
def _sources(path: Path) -> list[Path]:
    """A source file and all files of the package that it imports, directly or not."""
    files, waiting = {path}, [path]
    while waiting:
        fresh = _digest_and_imports(waiting.pop())[1] - files
        files |= fresh
        waiting += fresh
    return sorted(files)


@cache
def _settled(path: Path) -> bool:
    """Whether no source of a file has changed since this process began: else what it runs may not be what it reads."""
    return all(file.stat().st_ctime < _STARTED for file in _sources(path))


@cache
def source_digest(path: Path) -> str:
    """Digest of a source file and of all files of the package that it imports: the stamp of its cached kernels."""
    digest = hashlib.sha256()
    for file in _sources(path):
        digest.update(str(file).encode() + b"\0" + _digest_and_imports(file)[0])
    return digest.hexdigest()


def checks_bounds() -> bool:
    """Whether kernels check every index: $MAXMARGIN_BOUNDSCHECK."""
    return os.environ.get("MAXMARGIN_BOUNDSCHECK", "0") not in ("", "0")


def cache_folder() -> Path:
    """Where kernels are kept: $MAXMARGIN_KERNEL_CACHE, or a folder of the user; those that check bounds apart."""
    chosen = os.environ.get("MAXMARGIN_KERNEL_CACHE") or os.environ.get("NUMBA_CACHE_DIR")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(chosen) if chosen else base / "maxmargin" / "kernels"
    return folder / "boundscheck" if checks_bounds() else folder


_warned: set[Path] = set()


def _warn_once(folder: Path, reason: str) -> None:
    if folder in _warned:
        return
    _warned.add(folder)
    lost = f"compiled kernels cannot be kept in {folder} ({reason}) and will be compiled again in the next process"
    warnings.warn(f"{lost}; name a writable folder in MAXMARGIN_KERNEL_CACHE.", RuntimeWarning, stacklevel=2)


class DiskCache:
    """The file of one kernel, with the methods that a dispatcher of numba asks of its cache."""

    def __init__(self, function: Callable) -> None:
        code, cells = function.__code__, function.__closure__ or ()
        file = Path(code.co_filename)
        place = hashlib.sha256(str(file).encode()).hexdigest()[:12]
        self.folder = cache_folder() / f"{file.stem}-{place}"
        self.name = re.sub(r"[^\w.]", "", function.__qualname__)
        self.stamp: bytes | None = None
        if file.is_file() and _settled(file):  # what is typed at a prompt is compiled anew
            closure = dumps(tuple(cell.cell_contents for cell in cells)) if cells else b""
            parts = (source_digest(file).encode(), str(code.co_firstlineno).encode(), code.co_code, closure)
            self.stamp = b"".join(hashlib.sha256(part).digest() for part in parts)

    @property
    def cache_path(self) -> str:
        return str(self.folder)

    def path(self, signature: object, machine: tuple) -> Path:
        """The file for one signature, processor, Python and numba: versions of them may share the folder."""
        key = repr((str(signature), machine, sys.version_info[:2], sys.flags.debug, numba.__version__))
        return self.folder / f"{self.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.kernel"

    def read(self, signature: object, target_context: BaseContext) -> bytes | None:
        """What the file holds, or None when there is no file, no good one, or one of other sources."""
        if self.stamp is None:
            return None
        target_context.refresh()
        machine = target_context.codegen().magic_tuple()  # type: ignore[attr-defined]
        try:
            blob = self.path(signature, machine).read_bytes()
        except OSError:
            return None
        seal, content = blob[:32], blob[32:]
        return content if hashlib.sha256(self.stamp + content).digest() == seal else None

    def load_overload(self, signature: object, target_context: BaseContext) -> CompileResult | None:
        """The compiled kernel, or None when it must be compiled."""
        content = self.read(signature, target_context)
        if content is None:
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(content))
        except Exception:  # no state of a cache may stop a program that can compile
            return None

    def save_overload(self, signature: object, result: CompileResult) -> None:
        """Replace the file; a crash at any moment leaves the old one or none, never half of one."""
        if self.stamp is None or result.library.has_dynamic_globals:  # type: ignore[attr-defined]
            return
        content = dumps(result._reduce())
        path = self.path(signature, result.codegen.magic_tuple())
        passing = path.with_suffix(f".{_HERE}-{os.getpid()}-{uuid.uuid4().hex[:8]}.part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._remove_abandoned()
            try:
                passing.write_bytes(hashlib.sha256(self.stamp + content).digest() + content)
                os.replace(passing, path)
            finally:
                passing.unlink(missing_ok=True)
        except OSError as error:
            _warn_once(cache_folder(), error.strerror or type(error).__name__)

    def _remove_abandoned(self) -> None:
        """Remove what processes of this machine that are gone have left of their files."""
        for name in os.listdir(self.folder) if os.name == "posix" else ():
            found = _PASSING.fullmatch(name)
            if found is None or int(found[1]) == os.getpid():
                continue
            try:
                os.kill(int(found[1]), 0)
            except ProcessLookupError:
                (self.folder / name).unlink(missing_ok=True)
            except OSError:  # it lives, or nobody can tell
                pass
