"""The caller's side of workers in other processes: numbered messages, and dead workers replaced where they stood.

A worker that dies takes the state of its residents with it. So each worker has a journal: what its residents were when
last saved, and the messages that have changed them since. A new worker gets the former and does the latter again, which
leads to the same state bit for bit, because residents do nothing but what calls tell them. The journal is cut short
whenever doing it again would take much longer than saving, or when it has become larger than what is saved.
"""

from __future__ import annotations

import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from maxmargin.execution.home import Plan

__all__ = ["Link", "Lost", "Remote"]

MOST_DEATHS = 5  # of a worker that had been asked its work, without any new answer,
MOST_STARTS = 20  # and of one that was only starting: whatever else the machine does may be at fault there
PATIENCE = 20.0  # the work between two savings, in multiples of what saving takes,
AT_LEAST = 1.0  # and in seconds
SMALL_JOURNAL = 32 << 20  # bytes that are never worth saving for

T = TypeVar("T")


class Lost(Exception):
    """A worker is gone; the message says how."""


class LostAtStart(Lost):
    """A worker is gone that had not caught up yet with the one before it."""


class Link(ABC, Generic[T]):
    """A connection to a :class:`~maxmargin.execution.home.Home` elsewhere. T is how sent bytes are referred to.

    ``waiting``: whether an answer is on its way that nobody has fetched yet.
    """

    waiting = False

    @abstractmethod
    def ready(self) -> None:
        """Wait until a new worker can be asked. Raises Lost."""

    @abstractmethod
    def ask(self, method: str, *arguments: object) -> None:
        """Send a message; what is of type T arrives as bytes. Raises Lost."""

    @abstractmethod
    def fetch(self) -> bytes:
        """Wait for the answer. Raises Lost."""

    @abstractmethod
    def kept(self) -> tuple[T, int]:
        """Wait for the answer, but leave it where it is; also its size. Raises Lost."""

    @abstractmethod
    def end(self) -> None:
        """End the worker, if it still lives."""


@dataclass
class Message(Generic[T]):
    """Calls of one worker, by number."""

    number: int
    verb: str
    plan: Plan
    arguments: list[T]
    size: int


@dataclass
class Worker(Generic[T]):
    """What the caller knows of a worker."""

    residents: dict[int, object]  # as they were when they started,
    packed: object  # and as they are sent, together with others
    changing: frozenset[str]
    link: Link[T] | None = None
    number: int = 0  # messages so far
    saved: T | None = None
    journal: list[Message[T]] = field(default_factory=list)  # messages since then that have changed a resident,
    size: int = 0  # their bytes,
    seconds: float = 0.0  # and how long they took
    saving: float = 0.0  # seconds that saving took the last time,
    saved_size: int = 0  # and bytes
    deaths: int = 0  # since the last answer, of those that had been asked,
    starts: int = 0  # and of those that were starting
    open: Message[T] | None = None  # sent and not answered
    gone: list[int] = field(default_factory=list)  # residents to let go


class Remote(ABC, Generic[T]):
    """Residents in other processes, several in one where there are more of them than workers."""

    shares_memory = False

    def __init__(self, n_workers: int) -> None:
        self.n_workers, self.replaced = n_workers, 0
        self._workers: list[Worker[T]] = []
        self._homes: dict[int, Worker[T]] = {}
        self._back: dict[int, object] = {}  # residents that are back here
        self._next, self._emptied = 0, False
        self._sent: dict[int, tuple[object, T, int]] = {}  # values of the last call, which the next may have too

    @abstractmethod
    def _pack(self, residents: Mapping[int, object]) -> object:
        """Residents of several workers as :meth:`_hire` takes them."""

    @abstractmethod
    def _hire(self, packed: Any, own: Sequence[int]) -> Link[T]:
        """A new worker with some of the residents that were packed."""

    @abstractmethod
    def _share(self, data: bytes) -> T:
        """Bytes in a form in which they can be sent to several workers."""

    @abstractmethod
    def _end(self) -> None:
        """What is to be done when all workers have ended."""

    # --- the contract -------------------------------------------------------------------------------------------------

    def start(self, residents: Sequence[object], changing: Collection[str] = ()) -> list[int]:
        """Distribute residents over new workers."""
        self._dismiss()
        addresses = list(range(self._next, self._next + len(residents)))
        self._next += len(residents)
        count, packed = min(self.n_workers, len(residents)), self._pack(dict(zip(addresses, residents, strict=True)))
        for k in range(count):
            own = dict(zip(addresses[k::count], residents[k::count], strict=True))
            worker = Worker[T](own, packed, frozenset(changing))
            self._workers.append(worker)
            self._homes |= dict.fromkeys(own, worker)
        new = self._workers[len(self._workers) - count :]
        try:
            for worker in new:
                worker.link = self._hire(packed, list(worker.residents))
            for worker in new:
                self._make_ready(worker)
        except BaseException:
            self._drop(new)
            raise
        return addresses

    def call(self, verb: str, calls: Sequence[tuple[int, tuple]]) -> list:
        """All workers at once, each one call after the other; an error is raised when the others have ended.

        Ctrl-C is raised then too; a second one at once, and workers that have not answered are replaced later.
        """
        if calls and calls[0][0] in self._back:
            return [getattr(self._back[home], verb)(*arguments) for home, arguments in calls]
        self._dismiss()
        begin, asked = time.perf_counter(), self._messages(verb, calls)
        interrupt: KeyboardInterrupt | None = None
        results: list = [None] * len(calls)
        errors: list[Exception] = []
        try:
            for worker, _ in asked:
                self._send(worker)
            for worker, positions in asked:
                while worker.open is not None:
                    try:
                        done = self._receive(worker)
                    except KeyboardInterrupt as caught:
                        if interrupt is not None:
                            raise
                        interrupt = caught
                        continue
                    for position, (good, result) in zip(positions, done, strict=True):
                        if good:
                            results[position] = result
                        else:
                            errors.append(result)
        except BaseException:
            for worker, _ in asked:
                if worker.open is not None:
                    worker.open = None
                    self._cut_off(worker)
            raise
        spent = time.perf_counter() - begin
        if interrupt is not None:
            raise interrupt
        if errors:
            raise errors[0]
        self._save_where_due([worker for worker, _ in asked], spent)
        return results

    def recall(self) -> None:
        """Bring residents that change back, as they are now: from now on they answer here."""
        for worker in [worker for worker in self._workers if worker.changing]:
            saved = pickle.loads(self._fetch(worker, "save"))
            for address, resident in worker.residents.items():
                resident.load(saved[address])  # type: ignore[attr-defined]  # what changes can load
            self._back |= worker.residents

    def release(self, homes: Sequence[int]) -> None:
        """Let residents go. Workers hear of it at the next call, because this one may come at any moment."""
        for home in homes:
            worker = self._homes.pop(home, None)
            if worker is not None:
                worker.residents.pop(home, None)
                worker.gone.append(home)
                self._emptied |= not worker.residents

    def close(self) -> None:
        """End all workers."""
        self._drop(self._workers)
        self._sent = {}
        self._end()

    # --- inside -------------------------------------------------------------------------------------------------------

    def _dismiss(self) -> None:
        """End workers whose residents are all gone."""
        if self._emptied:
            self._emptied = False
            self._drop([worker for worker in self._workers if not worker.residents])

    def _drop(self, workers: Sequence[Worker[T]]) -> None:
        for worker in list(workers):
            self._workers.remove(worker)
            for address in worker.residents:
                self._homes.pop(address, None)
            self._cut_off(worker)

    def _make_ready(self, worker: Worker[T]) -> None:
        while worker.link is not None:
            try:
                worker.link.ready()
                return
            except Lost as lost:
                self._bury(worker, LostAtStart(*lost.args))
                worker.link = self._hire(worker.packed, list(worker.residents))

    def _cut_off(self, worker: Worker[T]) -> None:
        link, worker.link = worker.link, None
        if link is not None:
            link.end()

    def _messages(self, verb: str, calls: Sequence[tuple[int, tuple]]) -> list[tuple[Worker[T], list[int]]]:
        """Give each worker the message with its calls; the workers, and which calls are theirs.

        What several calls have in common is sent out once. So is a tuple, which nobody changes, that two calls in a
        row have in common.
        """
        sent: dict[int, tuple[object, T, int]] = {}
        positions: dict[int, list[int]] = {}
        for position, (home, arguments) in enumerate(calls):
            positions.setdefault(id(self._homes[home]), []).append(position)
            for argument in arguments:
                if id(argument) not in sent:
                    known = self._sent.get(id(argument)) if isinstance(argument, tuple) else None
                    if known is None:
                        data = pickle.dumps(argument, protocol=5)
                        known = argument, self._share(data), len(data)
                    sent[id(argument)] = known
        self._sent = {key: known for key, known in sent.items() if isinstance(known[0], tuple)}
        asked = []
        for own in positions.values():
            worker = self._homes[calls[own[0]][0]]
            keys = list(dict.fromkeys(id(argument) for p in own for argument in calls[p][1]))
            place = {key: k for k, key in enumerate(keys)}
            plan = [(calls[p][0], [place[id(argument)] for argument in calls[p][1]]) for p in own]
            worker.number += 1
            size = sum(sent[key][2] for key in keys)
            worker.open = Message(worker.number, verb, plan, [sent[key][1] for key in keys], size)
            asked.append((worker, own))
        return asked

    def _send(self, worker: Worker[T]) -> None:
        message = worker.open
        assert message is not None
        while True:
            try:
                link = self._link(worker)
                if worker.gone:
                    link.ask("forget", worker.gone)
                    link.fetch()
                    worker.gone = []
                link.ask("answer", message.number, message.verb, message.plan, *message.arguments)
                return
            except Lost as lost:
                self._bury(worker, lost)

    def _receive(self, worker: Worker[T]) -> list[tuple[bool, Any]]:
        """The answer to the open message; a worker that is gone is replaced and asked again."""
        message = worker.open
        assert message is not None
        done = None
        while done is None:
            if worker.link is None:
                self._send(worker)
            try:
                assert worker.link is not None
                done = pickle.loads(worker.link.fetch())
            except Lost as lost:
                self._bury(worker, lost)
        worker.open, worker.deaths, worker.starts = None, 0, 0
        if message.verb in worker.changing:
            worker.journal.append(message)
            worker.size += message.size
        return done

    def _link(self, worker: Worker[T]) -> Link[T]:
        """The link of a worker that can be asked: a new one that has caught up if there is none. Raises Lost."""
        if worker.link is not None and worker.link.waiting:  # Ctrl-C came before an answer
            self._cut_off(worker)
        if worker.link is None:
            link = self._hire(worker.packed, list(worker.residents))
            try:
                link.ready()
                if worker.saved is not None:
                    link.ask("load", worker.saved)
                    link.fetch()
                for message in worker.journal:
                    link.ask("answer", message.number, message.verb, message.plan, *message.arguments)
                    link.fetch()
            except Lost as lost:
                link.end()
                raise LostAtStart(*lost.args) from lost
            except BaseException:
                link.end()
                raise
            worker.link = link
        return worker.link

    def _bury(self, worker: Worker[T], lost: Lost) -> None:
        """Forget a worker that is gone. A call that always ends its worker ends the run, and so does a start."""
        self._cut_off(worker)
        self.replaced += 1
        if isinstance(lost, LostAtStart):
            worker.starts += 1
            times, when = worker.starts, " before it could be asked anything"
            advice = "Use fewer workers (n_jobs), or 1; see whether something else ends processes of this machine."
        else:
            worker.deaths += 1
            times, when = worker.deaths, ""
            advice = "Use fewer workers (n_jobs), or 1; see what the example needs, if it is always the same call."
        if worker.deaths >= MOST_DEATHS or worker.starts >= MOST_STARTS:
            raise RuntimeError(
                f"{lost}, {times} times in a row{when}; it may have run out of memory. {advice}"
            ) from lost

    def _fetch(self, worker: Worker[T], method: str) -> bytes:
        while True:
            try:
                link = self._link(worker)
                link.ask(method)
                return link.fetch()
            except Lost as lost:
                self._bury(worker, lost)

    def _save_where_due(self, workers: Sequence[Worker[T]], spent: float) -> None:
        due = []
        for worker in workers:
            worker.seconds += spent if worker.changing else 0.0
            long = worker.seconds > max(AT_LEAST, PATIENCE * worker.saving)
            if worker.journal and (long or worker.size > max(SMALL_JOURNAL, worker.saved_size)):
                due.append(worker)
        begin, asked = time.perf_counter(), []
        for worker in due:
            worker.seconds = 0.0
            try:
                self._link(worker).ask("save")
                asked.append(worker)
            except Lost as lost:  # it will be saved another time
                self._bury(worker, lost)
        for worker in asked:
            assert worker.link is not None
            try:
                worker.saved, worker.saved_size = worker.link.kept()
            except Lost as lost:
                self._bury(worker, lost)
                continue
            worker.journal, worker.size = [], 0
            worker.saving = time.perf_counter() - begin
