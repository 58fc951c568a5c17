"""Where work runs: in this thread, in threads (compiled models), in processes (models in plain Python), or on Ray.

All executors keep the contract :class:`maxmargin.contracts.Executor`: what is started has a home of its own, keeps its
state there, and is called by verb; results come in the order of the calls.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress

import numpy as np

from maxmargin.contracts import Executor
from maxmargin.execution.ray_workers import Ray

__all__ = ["EXECUTORS", "Serial", "Threads", "is_remote", "make_executor", "worker_count"]

EXECUTORS = ("auto", "serial", "threads", "processes", "ray")


class Serial:
    """Everything here and now."""

    n_workers = 1
    shares_memory = True
    replaced = 0

    def __init__(self) -> None:
        self._residents: dict[int, object] = {}
        self._next = 0

    def start(self, residents: Sequence[object], changing: Collection[str] = ()) -> list[int]:
        """Keep the residents."""
        homes = list(range(self._next, self._next + len(residents)))
        self._next += len(residents)
        self._residents |= zip(homes, residents, strict=True)
        return homes

    def call(self, verb: str, calls: Sequence[tuple[int, tuple]]) -> list:
        """One call after the other."""
        return [getattr(self._residents[home], verb)(*arguments) for home, arguments in calls]

    def recall(self) -> None:
        """They have never been away."""

    def release(self, homes: Sequence[int]) -> None:
        """Let residents go."""
        for home in homes:
            self._residents.pop(home, None)

    def close(self) -> None:
        """Nothing runs; residents stay for whoever still calls them."""


class Threads(Serial):
    """This thread and others that share its memory: for kernels, which run without the GIL.

    Residents that wait for each other within a call must be as many as there are workers at most, and must have
    ``let_go()``, which ends all waits: it is called when a call is interrupted, and some may never come.
    """

    def __init__(self, n_workers: int) -> None:
        super().__init__()
        self.n_workers = n_workers
        self._pool: ThreadPoolExecutor | None = None

    def call(self, verb: str, calls: Sequence[tuple[int, tuple]]) -> list:
        """All calls at once, as far as there are workers. Whatever happens, none is left running."""
        if len(calls) <= 1 or self.n_workers == 1:
            return super().call(verb, calls)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_workers - 1)
        first, *others = ([call] for call in calls)
        futures: list[Future] = []
        try:
            for call in others:
                futures.append(self._pool.submit(Serial.call, self, verb, call))
            found = [Serial.call(self, verb, first)]
            here = {k: Serial.call(self, verb, others[k]) for k in reversed(range(len(others))) if futures[k].cancel()}
            found += [here[k] if k in here else future.result() for k, future in enumerate(futures)]
            return [answer for [answer] in found]
        except BaseException:
            for home, _ in calls:
                getattr(self._residents[home], "let_go", _nothing)()
            _wait_for(futures)
            raise

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def _nothing() -> None:
    pass


def _wait_for(futures: list[Future]) -> None:
    """Wait until none is left running, whatever happens meanwhile."""
    for future in futures:
        future.cancel()
    while not all(future.done() for future in futures):
        with suppress(KeyboardInterrupt):
            wait(futures)


def worker_count(n_jobs: int | None) -> int:
    """Number of workers: None is 1, -1 all cores, -2 all but one, as in scikit-learn."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        wrong = f"n_jobs must be a whole number, not 0; got {n_jobs!r}"
        raise ValueError(f"{wrong}. Use None or 1 for one worker, -1 for all cores.")
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def is_remote(executor: str | Ray) -> bool:
    """Whether the workers that an ``executor`` gives to compiled models share no memory with this process."""
    return isinstance(executor, Ray) or executor in ("processes", "ray")


def make_executor(n_jobs: int | None, *, compiled: bool, executor: str | Ray = "auto") -> Executor:
    """The executor for ``n_jobs`` workers; "auto" is threads for compiled models, processes for plain Python."""
    executor = Ray() if isinstance(executor, str) and executor == "ray" else executor
    if isinstance(executor, Ray):
        return executor.workers(None if n_jobs is None else worker_count(n_jobs))
    if executor not in EXECUTORS:
        *names, last = map('"{}"'.format, EXECUTORS)
        raise ValueError(f"executor must be {', '.join(names)} or {last}, or Ray(address=...); got {executor!r:.60}.")
    workers = worker_count(n_jobs)
    if executor == "serial" or (workers == 1 and executor != "processes"):
        return Serial()
    if executor == "processes" or (executor == "auto" and not compiled):
        from maxmargin.execution.processes import Processes

        return Processes(workers)
    return Threads(workers)
