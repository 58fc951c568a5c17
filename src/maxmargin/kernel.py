"""One decorator for every compiled kernel.

``@kernel("float64(float64[::1], int64)")`` compiles a function when it is first called, without the GIL, and keeps the
machine code on disk. Three promises:

* **No stale code.** numba keys its disk cache on the file that holds a function, so editing a helper in *another* file
  leaves old machine code behind. Here the key is a digest of the kernel's own file and of all files of the package that
  it imports, directly or not: touch any of them and the kernel compiles again; touch another and it does not.
* **No hidden cost.** The seconds spent on compiling, or on loading compiled code, are counted in
  :func:`compile_seconds`, so that a report can print them apart; a line on standard error says why a first use is slow.
* **No code twice.** A kernel that others call is only translated, not optimised: that happens once, as a part of the
  kernel that Python calls, which is the only one with machine code, wrappers for Python and a file on disk.

With MAXMARGIN_BOUNDSCHECK=1 every kernel checks its indices and raises an IndexError (``make test-bounds``).

Kernels may call kernels and use constants of any file of the package that their own file imports.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

from numba.core import types
from numba.core.codegen import CPUCodegen, JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import Signature
from numba.extending import typeof_impl

from maxmargin.kernel_cache import DiskCache, checks_bounds

__all__ = ["Kernel", "clock", "compile_seconds", "kernel", "omit_notice", "record"]

NOTICE_AFTER = 2.0  # seconds of compiling after which a line on standard error says what is going on

_spent = 0.0


def compile_seconds() -> float:
    """Seconds this process has spent on compiling kernels or loading them from disk."""
    return _spent


def clock() -> float:
    """Seconds on a clock that stands still while kernels compile or load: differences count work only."""
    return time.perf_counter() - _spent


class _Notice:
    """Says once per process that kernels are being compiled, when that takes long; MAXMARGIN_QUIET=1 forbids it."""

    def __init__(self) -> None:
        self.left = NOTICE_AFTER

    @contextmanager
    def watch(self) -> Iterator[None]:
        timer = threading.Timer(max(self.left, 0.0), self.say)
        timer.daemon = True
        begin = time.perf_counter()
        if self.left > 0.0:
            timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self.left -= time.perf_counter() - begin

    def say(self) -> None:
        if os.environ.get("MAXMARGIN_QUIET", "0") in ("", "0") and sys.stderr is not None:
            first = "maxmargin: compiling kernels for the first use, about 10 to 20 seconds"
            print(f"{first}; `maxmargin compile` prepares them all", file=sys.stderr, flush=True)


_notice = _Notice()


def omit_notice() -> None:
    """Say nothing more: for a caller that shows what is being compiled itself."""
    _notice.left = 0.0


class _LinkedLibrary(JITCodeLibrary):
    """Code without a wrapper for Python is only ever linked into other code: neither optimise nor emit it by itself."""

    def finalize(self) -> None:
        if any(function.name.startswith(("_ZN7cpython", "_ZN5cfunc")) for function in self.get_defined_functions()):
            super().finalize()
            return
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True
        self._codegen = _WithoutEnvironment(self._codegen)  # type: ignore[assignment]

    @cached_property
    def _addresses(self) -> dict[str, int]:
        return {}

    def get_pointer_to_function(self, name: str) -> int:  # asked at each call that has a kernel as an argument
        if name not in self._addresses:
            self._addresses[name] = super().get_pointer_to_function(name)
        return self._addresses[name]


class _WithoutEnvironment:
    """A code generator that sets no environments, for code that has no address yet."""

    def __init__(self, codegen: CPUCodegen) -> None:
        self._engine = codegen._engine

    def set_env(self, name: str, environment: object) -> None:
        pass


class _Flags(Flags):
    """Flags that compare quickly: the comparisons of numba take a seventh of the time."""

    def __eq__(self, other: object) -> bool:
        return type(other) is _Flags and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values))


class _Compiler(_FunctionCompiler):
    def _customize_flags(self, flags: Flags) -> Flags:
        return _Flags(flags)


class _Linked(CPUDispatcher):
    """A kernel as other kernels call it."""

    def __init__(self, function: Callable, signature: str | Signature, options: dict[str, object]) -> None:
        options = options | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        super().__init__(function, targetoptions=options)
        self._compiler = _Compiler(function, self.targetdescr, options, {}, Compiler)
        self.declared = signature

    def get_call_template(self, args, kws):
        if not self.overloads:
            self.compile(self.declared)
            self.disable_compile()
        return super().get_call_template(args, kws)


class _WholeCompiler(_Compiler):
    """Compiles a kernel together with all that it calls."""

    def _compile_core(self, args: tuple, return_type: object) -> CompileResult:
        collecting = gc.isenabled()
        gc.disable()  # millions of small objects that live to the end: collecting them takes a seventh of the time
        try:
            with _notice.watch():
                result = super()._compile_core(args, return_type)
        finally:
            if collecting:
                gc.enable()
        for environment in result._find_referenced_environments():  # also those of linked kernels
            self.targetdescr.target_context.codegen().set_env(environment.env_name, environment)
        return result


class Kernel(CPUDispatcher):
    """A kernel as Python calls it: compiled, or loaded from disk, at the first call."""

    def __init__(self, function: Callable, signature: str | Signature, options: dict[str, object]) -> None:
        super().__init__(function, targetoptions=options)
        self.declared = signature
        self.linked = _Linked(function, signature, options)
        self._compiler = _WholeCompiler(function, self.targetdescr, options, {}, Compiler)
        self._cache = DiskCache(function)
        self._agreed: dict[int, tuple[Signature, CompileResult]] = {}

    @global_compiler_lock
    def prepare(self) -> None:
        """Compile the kernel or load it from disk, unless that is done."""
        global _spent
        if self.overloads:
            return
        begin = time.perf_counter()
        codegen = self.targetdescr.target_context.codegen()
        usual, codegen._library_class = codegen._library_class, _LinkedLibrary
        try:
            self.compile(self.declared)
        finally:
            codegen._library_class = usual
        self.disable_compile()
        _spent += time.perf_counter() - begin

    def on_disk(self) -> bool:
        """Whether machine code of the present sources is kept, so that :meth:`prepare` only loads it."""
        return self._cache.read(self.declared, self.targetctx) is not None

    def _compile_for_args(self, *args: object, **kws: object) -> Kernel:
        self.prepare()
        return self

    @cached_property
    def _numba_type_(self) -> types.Dispatcher:
        return types.Dispatcher(self)

    def get_call_template(self, args, kws):  # a kernel calls this one: so it finds the type ...
        return self.linked.get_call_template(args, kws)

    def get_overload(self, sig):  # ... and so the code
        return self.linked.get_overload(sig)

    def get_compile_result(self, sig):  # at each call that has this kernel as an argument: compare types only once
        if id(sig) not in self._agreed:
            self.prepare()
            self._agreed[id(sig)] = sig, super().get_compile_result(sig)
        return self._agreed[id(sig)][1]

    def _reduce_states(self) -> dict[str, object]:
        return {"function": self.py_func, "signature": self.declared, "options": self.targetoptions}

    @classmethod
    def _rebuild(cls, function: Callable, signature: str | Signature, options: dict[str, object]) -> Kernel:
        found = vars(sys.modules.get(function.__module__, sys)).get(function.__qualname__)
        return found if isinstance(found, cls) else cls(function, signature, options)


class CheckedKernel(Kernel):
    """A kernel that checks every index, as all do where MAXMARGIN_BOUNDSCHECK=1: for tests, three times as slow.

    An IndexError in a kernel that another one has as an argument cannot pass through that one: it is only told to
    ``sys.unraisablehook``. So it is taken there, and raised when the kernel that Python called returns.
    """

    def __call__(self, *args: object) -> object:
        if sys.unraisablehook is not _take_out_of_bounds:
            _others.append(sys.unraisablehook)
            sys.unraisablehook = _take_out_of_bounds
        result = super().__call__(*args)
        if _out_of_bounds:
            raise _out_of_bounds.pop()
        return result


_out_of_bounds: list[BaseException] = []
_others: list[Callable[[sys.UnraisableHookArgs], object]] = []


def _take_out_of_bounds(told: sys.UnraisableHookArgs) -> None:
    if isinstance(told.exc_value, IndexError):
        _out_of_bounds.append(told.exc_value)
    else:
        _others[-1](told)


def record(form: type[tuple], *members: types.Type) -> types.NamedTuple:
    """The type of a named tuple for the signatures of kernels.

    A tuple of this class is taken at its word: to look at the type of each member would take 10 microseconds a call.
    """
    declared = types.NamedTuple(members, form)
    typeof_impl.register(form)(lambda value, context: declared)
    return declared


def kernel(signature: str | Signature, *, fast: bool = True, borrows: bool = False) -> Callable[[Callable], Kernel]:
    """Make a compiled kernel of a function, for one signature, GIL released, cached on disk.

    Parameters
    ----------
    signature : str or numba signature
        The only signature; calls with other types are refused instead of compiled again.
    fast : bool
        Allow the compiler to reorder sums (vectorised reductions). Infinities and NaN keep their meaning. Not for loops
        over short arrays that both sum and write: whether these are vectorised may depend on how far apart the arrays
        lie, so results would differ from call to call by rounding.
    borrows : bool
        Promise that all arrays are the caller's, none made here: then references need no counting, which in loops over
        short blocks takes a third of the time and makes up much of the code to compile.
    """
    math, kind = {"reassoc", "contract", "nsz"} if fast else set(), CheckedKernel if checks_bounds() else Kernel
    options = {"nopython": True, "nogil": True, "fastmath": math, "boundscheck": checks_bounds(), "_nrt": not borrows}
    return lambda function: kind(function, signature, options)
