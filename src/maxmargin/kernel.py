"""One decorator for every compiled kernel.

``@kernel("float64(float64[::1], int64)")`` compiles a function ahead of its first call, without the GIL, and keeps the
machine code on disk. Two promises:

* **No stale code.** numba keys its disk cache on the file that holds a function, so editing a helper in *another* file
  leaves old machine code behind. Here the key is a digest of the kernel's own file and of all files of the package that
  it imports, directly or not: touch any of them and the kernel compiles again; touch another and it does not.
* **No hidden cost.** The seconds spent on compiling, or on loading compiled code, are counted in
  :func:`compile_seconds`, so that a report can print them apart.

Kernels may call kernels and use constants of any file of the package that their own file imports.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

__all__ = ["clock", "compile_seconds", "kernel"]

_PACKAGE = Path(__file__).parent
_spent = 0.0


def compile_seconds() -> float:
    """Seconds this process has spent on compiling kernels or loading them from disk."""
    return _spent


def clock() -> float:
    """Seconds on a clock that stands still while kernels compile or load: differences count work only."""
    return time.perf_counter() - _spent


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
def source_digest(path: Path) -> str:
    """Digest of a source file and of all files of the package that it imports: the stamp of its cached kernels."""
    files, waiting = {path}, [path]
    while waiting:
        fresh = _digest_and_imports(waiting.pop())[1] - files
        files |= fresh
        waiting += fresh
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(str(file).encode() + b"\0" + _digest_and_imports(file)[0])
    return digest.hexdigest()


def cache_folder() -> Path:
    chosen = os.environ.get("MAXMARGIN_KERNEL_CACHE") or os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "maxmargin" / "kernels"


class _Locator(_CacheLocator):
    """Stores all kernels in one user folder, stamped with the digest of the sources it depends on."""

    def __init__(self, py_func: Callable, py_file: str) -> None:
        self._file = Path(py_file)
        place = hashlib.sha256(str(self._file).encode()).hexdigest()[:12]
        self._folder = cache_folder() / f"{self._file.stem}-{place}"

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return source_digest(self._file)

    def get_disambiguator(self) -> str:
        return ""

    @classmethod
    def from_function(cls, py_func: Callable, py_file: str) -> _Locator | None:
        locator = cls(py_func, py_file)
        try:
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator


class _CacheImpl(CompileResultCacheImpl):
    _locator_classes = [_Locator]


class _Cache(FunctionCache):
    _impl_class = _CacheImpl


def kernel(signature: Any, *, fast: bool = True) -> Callable[[Callable], Any]:
    """Compile a function for one signature, GIL released, cached on disk.

    Parameters
    ----------
    signature : str or numba signature
        The only signature; calls with other types are refused instead of compiled again.
    fast : bool
        Allow the compiler to reorder sums (vectorised reductions). Infinities and NaN keep their meaning.
    """

    def decorate(function: Callable) -> Any:
        global _spent
        begin = time.perf_counter()
        math = {"reassoc", "contract", "nsz"} if fast else set()
        compiled = njit(nogil=True, fastmath=math)(function)
        try:
            compiled._cache = _Cache(function)  # type: ignore[attr-defined]
        except RuntimeError:  # no writable cache folder: compile in memory
            pass
        compiled.compile(signature)
        compiled.disable_compile()
        _spent += time.perf_counter() - begin
        return compiled

    return decorate
