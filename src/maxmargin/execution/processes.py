"""Residents in processes of this machine: for models in plain Python."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection

from maxmargin.execution.home import Home
from maxmargin.execution.remote import Link, Lost, Remote

__all__ = ["Processes"]


class Processes(Remote[bytes]):
    """Processes that keep their residents between calls, at most ``n_workers`` for each :meth:`start`."""

    def __init__(self, n_workers: int) -> None:
        super().__init__(n_workers)
        self._pipes: list[Pipe] = []

    def _pack(self, residents: Mapping[int, object]) -> Mapping[int, object]:
        return residents

    def _hire(self, packed: Mapping[int, object], own: Sequence[int]) -> Link[bytes]:
        self._pipes = [pipe for pipe in self._pipes if not pipe.here.closed]
        pipe = Pipe({address: packed[address] for address in own}, [other.here for other in self._pipes])
        self._pipes.append(pipe)
        return pipe

    def _share(self, data: bytes) -> bytes:
        return data

    def _end(self) -> None:
        self._pipes = []


class Pipe(Link[bytes]):
    """A process and the pipe to it.

    Parameters
    ----------
    residents : mapping
        By address. A process that is forked has them already; others get them pickled.
    others : sequence of Connection
        Ends of other pipes that a fork would hold open, so that nobody would notice when this process ends.
    """

    def __init__(self, residents: Mapping[int, object], others: Sequence[Connection]) -> None:
        self.here, there = multiprocessing.Pipe()
        forked = multiprocessing.get_start_method() == "fork"
        extra = [*others, self.here] if forked else []
        self.process = multiprocessing.Process(target=_serve, args=(there, residents, extra), daemon=True)
        self.process.start()
        there.close()

    def ready(self) -> None:
        """At once: messages wait in the pipe."""

    def ask(self, method: str, *arguments: object) -> None:
        self.waiting = True
        try:
            self.here.send_bytes(pickle.dumps((method, arguments), protocol=5))
        except (OSError, EOFError) as error:
            raise self._lost() from error
        except KeyboardInterrupt:  # nobody knows how much has been sent
            self.end()
            raise

    def fetch(self) -> bytes:
        try:
            self.here.poll(None)  # Ctrl-C comes here, if it comes
            data = self.here.recv_bytes()
        except (OSError, EOFError) as error:
            raise self._lost() from error
        self.waiting = False
        return data

    def kept(self) -> tuple[bytes, int]:
        data = self.fetch()
        return data, len(data)

    def end(self) -> None:
        self.here.close()
        self.process.join(0.0 if self.waiting else 5.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def _lost(self) -> Lost:
        self.process.join(1.0)
        return Lost(f"a worker process ended with code {self.process.exitcode}")


def _serve(there: Connection, residents: Mapping[int, object], others: Sequence[Connection]) -> None:
    """The life of a worker process: answer until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the process that asks
    for other in others:
        other.close()
    home = Home(residents)
    try:
        while True:
            method, arguments = pickle.loads(there.recv_bytes())
            there.send_bytes(getattr(home, method)(*arguments))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except MemoryError:  # for the message itself: the process that asks says so, in place of a traceback here
        sys.exit(1)
