"""Where oracle calls run: in this thread, in threads (compiled models), or in processes (plain-Python models)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np

__all__ = ["Processes", "Serial", "Threads", "make_executor", "worker_count"]


class Serial:
    """Everything here and now."""

    n_workers = 1

    def map(self, function: Callable, tasks: Sequence[tuple]) -> list:
        """``[function(*task) for task in tasks]``; the other executors keep this order too."""
        return [function(*task) for task in tasks]

    def close(self) -> None:
        """Nothing to close."""


class _Pool:
    """Workers of the standard library, started on the first call."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._pool: Executor | None = None

    def close(self) -> None:
        """Stop the workers; the next call starts new ones."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


class Threads(_Pool):
    """Threads: for kernels, which run without the GIL."""

    def map(self, function: Callable, tasks: Sequence[tuple]) -> list:
        """Results in the order of ``tasks``."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_workers)
        return list(self._pool.map(lambda task: function(*task), tasks))


_oracle: Any = None


def _hold(oracle: Any) -> None:
    global _oracle
    _oracle = oracle


def _call(verb: str, cost_weight: float | None, *arguments: Any) -> Any:
    if cost_weight is not None:
        _oracle.cost_weight = cost_weight
    return getattr(_oracle, verb)(*arguments)


class Processes(_Pool):
    """Processes: for models in plain Python. The oracle travels to each worker once, at the start.

    Parameters
    ----------
    n_workers : int
    oracle : picklable oracle
    """

    def __init__(self, n_workers: int, oracle: Any) -> None:
        super().__init__(n_workers)
        self.oracle = oracle

    def map(self, function: Callable, tasks: Sequence[tuple]) -> list:
        """Results in the order of ``tasks``; ``function`` must be a method of the oracle."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.n_workers, initializer=_hold, initargs=(self.oracle,))
        # oracles of one model differ in their cost weight, which therefore travels with every call
        cost_weight = getattr(function.__self__, "cost_weight", None)  # type: ignore[attr-defined]
        futures = [self._pool.submit(_call, function.__name__, cost_weight, *task) for task in tasks]
        return [future.result() for future in futures]


def worker_count(n_jobs: int | None) -> int:
    """Number of workers: None is 1, -1 all cores, -2 all but one, as in scikit-learn."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise ValueError(
            f"n_jobs must be a whole number, not 0; got {n_jobs!r}. Use None or 1 for one worker, -1 for all cores."
        )
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def make_executor(n_jobs: int | None, oracle: Any, *, compiled: bool) -> Serial | Threads | Processes:
    """The executor for ``n_jobs`` workers: threads for compiled models, processes for plain Python."""
    workers = worker_count(n_jobs)
    if workers == 1:
        return Serial()
    return Threads(workers) if compiled else Processes(workers, oracle)
