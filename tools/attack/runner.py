"""Runs cases in child processes with limits of time and memory, and tells what became of each."""

from __future__ import annotations

import gc
import linecache
import os
import pickle
import resource
import select
import signal
import struct
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from tools.attack import Foreign

import maxmargin

Case = tuple[str, Callable[[], object]]
OUTCOMES = ("answered", "refused", "unnamed", "other exception", "foreign", "memory", "hang", "signal")
FINE = OUTCOMES[:2]
PROCESSOR_SECONDS = 60.0  # of one case; more is a hang (a hundred million blank lines of an archive take half of it)
WALL_SECONDS = 180.0  # without a word from a child, on however busy a machine
MEMORY = 2 << 30  # bytes beyond those that a child begins with
LIBRARY = os.path.dirname(os.path.abspath(maxmargin.__file__)) + os.sep
SKLEARN = f"{os.sep}sklearn{os.sep}"


@dataclass
class Tally:
    """What became of the cases of a suite."""

    counts: Counter = field(default_factory=Counter)
    faults: list[tuple[str, str, str]] = field(default_factory=list)  # name, outcome, what was seen
    seconds: float = 0.0

    def add(self, name: str, outcome: str, seen: str) -> None:
        self.counts[outcome] += 1
        if outcome not in FINE:
            self.faults.append((name, outcome, seen))


def outcome_of(case: Callable[[], object]) -> tuple[str, str]:
    """Run a case here; its outcome and the last words."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case()
        return "answered", ""
    except Foreign as error:
        return "foreign", str(error)
    except MemoryError as error:
        return "memory", _last_words(error)
    except (ValueError, TypeError, FileNotFoundError) as error:  # the last is Python's own word for a wrong path
        return ("refused" if _is_deliberate(error) else "unnamed"), _last_words(error)
    except BaseException as error:
        return "other exception", _last_words(error)


def _is_deliberate(error: BaseException) -> bool:
    """Whether a ``raise`` with a sentence made it, not an operation that happened to fail."""
    place = _innermost(error.__traceback__)
    if place is None or not str(error).strip():
        return False
    file, line = place
    # what scikit-learn's checks of X and y say is the convention, even where numpy says it for them
    return SKLEARN in file or (LIBRARY in file and _begins_raise(file, line))


def _innermost(trace: TracebackType | None) -> tuple[str, int] | None:
    """File and line of the last frame, numpy's own aside."""
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]
    return next((place for place in reversed(places) if f"{os.sep}numpy{os.sep}" not in place[0]), None)


def _begins_raise(file: str, line: int) -> bool:
    return any(linecache.getline(file, line - up).strip().startswith("raise") for up in range(4))


def _last_words(error: BaseException) -> str:
    place = _innermost(error.__traceback__)
    where = "" if place is None else f" at {os.path.basename(place[0])}:{place[1]}"
    return f"{type(error).__name__}{where}: {str(error)[:300]}"


def run(cases: list[Case], jobs: int = 2) -> Tally:
    """Run all cases over some children; a child that dies is replaced, and its case is blamed."""
    tally, begin = Tally(), time.monotonic()
    linecache.checkcache()
    gc.collect()
    gc.freeze()
    shares = [list(range(k, len(cases), jobs)) for k in range(jobs)]
    children = [_Child(cases, share) for share in shares if share]
    while children:
        readable, _, _ = select.select(children, [], [], 5.0)
        for child in list(children):
            if child in readable:
                said = child.hear()
                for name, outcome, seen in said:
                    tally.add(name, outcome, seen)
            elif time.monotonic() - child.heard > WALL_SECONDS:
                os.kill(child.pid, signal.SIGKILL)
                child.silent = True
            if child.ended:
                children.remove(child)
                left = child.bury(tally)
                if left:
                    children.append(_Child(cases, left))
    tally.seconds = time.monotonic() - begin
    return tally


class _Child:
    """A forked process that works through its share and reports through a pipe: the start and the end of each case."""

    def __init__(self, cases: list[Case], share: list[int]) -> None:
        self.cases, self.left = cases, list(share)
        self.buffer, self.ended, self.silent, self.heard = b"", False, False, time.monotonic()
        self.pipe, write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            _work(cases, self.left, write)
        os.close(write)

    def fileno(self) -> int:
        return self.pipe

    def hear(self) -> list[tuple[str, str, str]]:
        data = os.read(self.pipe, 1 << 16)
        self.heard, self.ended, self.buffer = time.monotonic(), not data, self.buffer + data
        said = []
        while len(self.buffer) >= 4 and len(self.buffer) >= 4 + struct.unpack("<I", self.buffer[:4])[0]:
            size = struct.unpack("<I", self.buffer[:4])[0]
            number, outcome, seen = pickle.loads(self.buffer[4 : 4 + size])  # from our own child
            self.buffer = self.buffer[4 + size :]
            assert self.left[0] == number
            self.left.pop(0)
            said.append((self.cases[number][0], outcome, seen))
        return said

    def bury(self, tally: Tally) -> list[int]:
        """What is left to do; the case during which it died, if it did, is told."""
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pipe)
        if not self.left:
            return []
        name = self.cases[self.left.pop(0)][0]
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        if self.silent or number == signal.SIGPROF:
            tally.add(name, "hang", f"more than {PROCESSOR_SECONDS:g} seconds")
        elif number:
            tally.add(name, "signal", signal.Signals(number).name)
        else:
            tally.add(name, "other exception", f"the process ended with code {os.WEXITSTATUS(status)}")
        return self.left


def _work(cases: list[Case], share: list[int], pipe: int) -> None:
    """The life of a child; it never returns."""
    code = 1
    try:
        with open(os.devnull, "w") as null:
            os.dup2(null.fileno(), 1)
            os.dup2(null.fileno(), 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/statm") as statm:
            size = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # compiled code hears no handler, so the process has to end
        for number in share:
            signal.setitimer(signal.ITIMER_PROF, PROCESSOR_SECONDS)
            outcome, seen = outcome_of(cases[number][1])
            signal.setitimer(signal.ITIMER_PROF, 0)
            said = pickle.dumps((number, outcome, seen))
            os.write(pipe, struct.pack("<I", len(said)) + said)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
