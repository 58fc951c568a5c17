"""Where work runs: in this thread, in threads (compiled models), or in processes (models in plain Python).

All executors keep the contract :class:`maxmargin.contracts.Executor`: what is started has a home of its own, keeps its
state there, and is called by verb; results come in the order of the calls.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import numpy as np

__all__ = ["Processes", "Serial", "Threads", "make_executor", "worker_count"]


class Serial:
    """Everything here and now."""

    n_workers = 1
    shares_memory = True

    def __init__(self) -> None:
        self._residents: list[object] = []

    def start(self, residents: Sequence[object]) -> list[int]:
        """Keep the residents; their addresses are positions in a list."""
        self._residents += residents
        return list(range(len(self._residents) - len(residents), len(self._residents)))

    def call(self, verb: str, calls: Sequence[tuple[int, tuple]]) -> list:
        """One call after the other."""
        return [getattr(self._residents[home], verb)(*arguments) for home, arguments in calls]

    def close(self) -> None:
        """Let the residents go."""
        self._residents = []


class Threads(Serial):
    """Threads that share the memory of this process: for kernels, which run without the GIL."""

    def __init__(self, n_workers: int) -> None:
        super().__init__()
        self.n_workers = n_workers
        self._pool: ThreadPoolExecutor | None = None

    def call(self, verb: str, calls: Sequence[tuple[int, tuple]]) -> list:
        """All calls at once, as far as there are workers. Whatever happens, none is left running."""
        if len(calls) == 1:
            return super().call(verb, calls)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_workers)
        futures = [self._pool.submit(Serial.call, self, verb, [call]) for call in calls]
        try:
            return [future.result()[0] for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            wait_for(futures)
            raise

    def close(self) -> None:
        """Stop the threads."""
        super().close()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


class Processes:
    """One process per resident, which stays there between calls: for models in plain Python."""

    shares_memory = False

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._homes: list[tuple[BaseProcess, Connection]] = []

    def start(self, residents: Sequence[object]) -> list[int]:
        """Start a process for each resident."""
        first = len(self._homes)
        for resident in residents:
            here, there = multiprocessing.Pipe()
            process = multiprocessing.Process(target=_serve, args=(there, resident), daemon=True)
            process.start()
            there.close()
            self._homes.append((process, here))
        return list(range(first, len(self._homes)))

    def call(self, verb: str, calls: Sequence[tuple[int, tuple]]) -> list:
        """All homes at once, each one call after the other; an error is raised when the others have ended."""
        queues: dict[int, list[int]] = {}
        for number, (home, _) in enumerate(calls):
            queues.setdefault(home, []).append(number)
        waiting = {self._homes[home][1]: (home, queue) for home, queue in queues.items()}
        results: list = [None] * len(calls)
        errors: list[Exception] = []
        for connection, (_, queue) in waiting.items():
            connection.send((verb, calls[queue[0]][1]))
        while waiting:
            for connection in wait(list(waiting)):
                assert isinstance(connection, Connection)
                home, queue = waiting[connection]
                good, result = self._receive(home)
                number = queue.pop(0)
                if good:
                    results[number] = result
                else:
                    errors.append(result)
                if queue:  # the next call only now: a pipe that is full both ways would never empty
                    connection.send((verb, calls[queue[0]][1]))
                else:
                    del waiting[connection]
        if errors:
            raise errors[0]
        return results

    def _receive(self, home: int) -> tuple:
        process, connection = self._homes[home]
        try:
            return connection.recv()
        except EOFError:
            process.join(1.0)
            end = f"a worker process ended with code {process.exitcode}; it may have run out of memory"
            raise RuntimeError(f"{end}. Use fewer workers (n_jobs), or 1.") from None

    def close(self) -> None:
        """End all processes."""
        for _, connection in self._homes:
            connection.close()
        for process, _ in self._homes:
            process.join(5.0)
            if process.is_alive():
                process.terminate()
        self._homes = []


def _serve(connection: Connection, resident: object) -> None:
    """The life of a worker process: answer calls until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the process that asks
    while True:
        try:
            verb, arguments = connection.recv()
        except EOFError:
            return
        try:
            answer = (True, getattr(resident, verb)(*arguments))
        except Exception as error:
            answer = (False, error)
        connection.send(answer)


def worker_count(n_jobs: int | None) -> int:
    """Number of workers: None is 1, -1 all cores, -2 all but one, as in scikit-learn."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        wrong = f"n_jobs must be a whole number, not 0; got {n_jobs!r}"
        raise ValueError(f"{wrong}. Use None or 1 for one worker, -1 for all cores.")
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def make_executor(n_jobs: int | None, *, compiled: bool) -> Serial | Threads | Processes:
    """The executor for ``n_jobs`` workers: threads for compiled models, processes for plain Python."""
    workers = worker_count(n_jobs)
    if workers == 1:
        return Serial()
    return Threads(workers) if compiled else Processes(workers)
