"""One decorator for every compiled kernel.

``@kernel("float64(float64[::1], int64)")`` compiles a function ahead of its first call, without the GIL, and keeps the
machine code on disk. Two promises:

* **No stale code.** numba keys its disk cache on the file that holds a function, so editing a helper in *another* file
  leaves old machine code behind. Here the key is one digest over every kernel source file of the package (and the
  file of the kernel itself when it lives outside): touch any of them and all kernels compile again.
* **No hidden cost.** The seconds spent on compiling, or on loading compiled code, are counted in
  :func:`compile_seconds`, so that a report can print them apart.

Kernels may call kernels of any file. They may use module-level constants only from kernel files.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

__all__ = ["clock", "compile_seconds", "kernel"]

_PACKAGE = Path(__file__).parent
_MARK = b"@kernel"
_spent = 0.0


def compile_seconds() -> float:
    """Seconds this process has spent on compiling kernels or loading them from disk."""
    return _spent


def clock() -> float:
    """Seconds on a clock that stands still while kernels compile or load: differences count work only."""
    return time.perf_counter() - _spent


@lru_cache(maxsize=1)
def source_digest() -> str:
    """Digest of all kernel sources of the package, the stamp of every cached kernel."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        source = path.read_bytes()
        if _MARK in source:
            digest.update(str(path.relative_to(_PACKAGE)).encode() + b"\0" + source + b"\0")
    return digest.hexdigest()


def cache_folder() -> Path:
    chosen = os.environ.get("MAXMARGIN_KERNEL_CACHE") or os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "maxmargin" / "kernels"


class _Locator(_CacheLocator):
    """Stores all kernels in one user folder, stamped with the digest of all kernel sources."""

    def __init__(self, py_func: Callable, py_file: str) -> None:
        self._file = Path(py_file)
        place = hashlib.sha256(str(self._file).encode()).hexdigest()[:12]
        self._folder = cache_folder() / f"{self._file.stem}-{place}"

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        if _PACKAGE in self._file.parents:
            return source_digest()
        return source_digest() + hashlib.sha256(self._file.read_bytes()).hexdigest()

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
