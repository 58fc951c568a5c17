"""Residents in actors of a Ray cluster: several machines, or a cluster that is started here for one fit."""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from maxmargin.execution.home import Home, pack
from maxmargin.execution.remote import Link, Lost, Remote
from maxmargin.parameters import Parameters

if TYPE_CHECKING:
    from ray import ObjectRef

__all__ = ["Ray", "RayWorkers"]

INLINE, LARGER = 90_000, 250_000  # bytes up to which an argument travels with a call: anywhere; in a cluster of our own
KNOCK = 5.0  # seconds in which an address must be reached, and then answer the first knock
AGAIN = 3  # times that a worker out of reach is asked the same again
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # what a gRPC client says first
# of a cluster for one fit: its workers need not give way to other programs, and changes travel with calls
OWN = {"worker_niceness": 0, "max_direct_call_object_size": 1 << 20}
DATA, HEADERS, SETTINGS = 0, 1, 4  # kinds of frames: a server begins with the last
END_STREAM, END_HEADERS = 1, 4
STATUS_200 = b"\x88"  # near the start of all headers of gRPC servers, errors included


@dataclass(repr=False, eq=False)
class Ray(Parameters):
    """Runs the workers of a fit on a Ray cluster: ``executor=Ray(...)``; ``executor="ray"`` is ``Ray()``.

    ``n_jobs`` is the number of workers, by default one for each processor of the cluster. Weights do not depend on it.
    To share out a whole fit, use ``solver=Sharded(shards=8)``: each worker then keeps its shards, that is, their
    examples, planes and multipliers. ``Pegasos(shards=8)`` and its kin share out their passes. With other solvers, and
    with ``solver="sharded"`` below 100,000 examples (a single shard), each worker has all examples and only answers
    argmaxes.

    A worker that dies is replaced by one that does its work again; ``history_["workers_replaced"]`` and ``status_``
    report it.

    If the process is already connected to a cluster (``ray.init``), the fit uses that cluster and leaves the connection
    open. If the fit connects to a cluster itself, it disconnects when it ends; a local cluster that it has started ends
    with it. Starting one takes seconds for every fit: before many fits, call ``ray.init`` yourself.

    Parameters
    ----------
    address : str or None
        The address of a running cluster: "host:port", "auto", or "ray://host:port" (needs ``ray[client]``). None means
        ``$RAY_ADDRESS`` if it is set, else a local cluster. All machines of a cluster need maxmargin and the modules
        of your own models.
    wait : float
        Seconds that the cluster has to provide the workers; then the fit ends with an error.
    """

    address: str | None = None
    wait: float = 60.0

    def workers(self, n_workers: int | None = None) -> RayWorkers:
        """The executor, connected."""
        try:
            import ray
        except ImportError as error:
            how = 'install it by pip install "maxmargin[ray]", or use executor="threads" or "processes"'
            raise ImportError(f'executor="ray" needs Ray; {how}.') from error
        if not isinstance(self.wait, (int, float)) or not self.wait > 0:
            raise ValueError(f"wait must be a number of seconds > 0, got {self.wait!r:.60}.")
        present = ray.is_initialized()
        leave, inline = (_present, INLINE) if present else _join(ray, self.address, n_workers)
        try:
            if present:
                _check_same(ray, self.address)
            cpus = int(ray.cluster_resources().get("CPU", 0.0))
        except BaseException:
            leave()
            raise
        return RayWorkers(ray, n_workers or max(1, cpus), cpus, self.wait, leave, inline)


class RayWorkers(Remote["bytes | ObjectRef[bytes]"]):
    """Actors that keep their residents between calls. Made by :class:`Ray`.

    Parameters
    ----------
    ray : module
    n_workers, cpus : int
        Workers, and the processors of the cluster.
    wait : float
    leave : callable
        Leaves the cluster.
    inline : int
        Bytes up to which an argument travels with a call; larger ones go through the object store.
    """

    def __init__(
        self, ray: ModuleType, n_workers: int, cpus: int, wait: float, leave: Callable[[], None], inline: int
    ) -> None:
        super().__init__(n_workers)
        self._ray, self._wait, self._leave, self._inline = ray, wait, leave, inline
        self._actor = ray.remote(Home)
        # where there are more workers than processors, or another group, an actor that waits for one waits for ever
        self._cpus = int(n_workers <= cpus)

    def _pack(self, residents: Mapping[int, object]) -> Cargo:
        """Each resident in a piece of its own; arrays that several have in common go out once, and once per machine."""
        cpus, self._cpus = self._cpus, 0
        packed, arrays = pack(residents, self._ray.cloudpickle.Pickler)
        put = {key: self._ray.put(data) for key, data in arrays.items()}
        return Cargo({address: (self._ray.put(data), needs) for address, (data, needs) in packed.items()}, put, cpus)

    def _hire(self, packed: Any, own: Sequence[int]) -> Actor:
        return Actor(self._ray, self._actor.options(num_cpus=packed.cpus).remote({}), packed, own, self._wait)

    def _share(self, data: bytes) -> bytes | ObjectRef[bytes]:
        return data if len(data) <= self._inline else self._ray.put(data)

    def _end(self) -> None:
        leave, self._leave = self._leave, _present
        leave()


class Cargo(NamedTuple):
    """Residents as they are sent: see :func:`~maxmargin.execution.home.pack`."""

    residents: dict[int, tuple[ObjectRef[bytes], list[int]]]
    arrays: dict[int, ObjectRef[bytes]]
    cpus: int  # that a worker of theirs takes


class Actor(Link["bytes | ObjectRef[bytes]"]):
    """A home in an actor."""

    def __init__(self, ray: ModuleType, handle: Any, cargo: Cargo, own: Sequence[int], wait: float) -> None:
        self.ray, self.handle, self.wait = ray, handle, wait
        self.asked: tuple[str, tuple] = ("", ())
        keys = sorted({key for address in own for key in cargo.residents[address][1]})
        data = [cargo.residents[address][0] for address in own] + [cargo.arrays[key] for key in keys]
        self.ask("settle", list(own), keys, *data)

    def ready(self) -> None:
        try:
            fault = pickle.loads(self.fetch(self.wait))
        except self.ray.exceptions.GetTimeoutError:
            free = int(self.ray.available_resources().get("CPU", 0.0))
            has = f"it has {int(self.ray.cluster_resources().get('CPU', 0.0))} processors, {free} of them free"
            advice = "Use fewer workers (n_jobs), wait for others to end, or raise Ray(wait=...)"
            raise TimeoutError(
                f"the Ray cluster has not provided all workers within {self.wait:g} s: {has}. {advice}."
            ) from None
        if isinstance(fault, Exception):
            raise fault
        if fault is not None:
            advice = "install maxmargin and the modules of your models on all its machines"
            raise RuntimeError(f"the Ray cluster cannot load the examples or the model ({fault}); {advice}.")

    def ask(self, method: str, *arguments: object) -> None:
        self.waiting, self.asked = True, (method, arguments)
        self.answer = getattr(self.handle, method).remote(*arguments)

    def fetch(self, timeout: float | None = None) -> bytes:
        data = self._get(lambda: self.answer, timeout)
        self.waiting, self.asked = False, ("", ())
        del self.answer
        return data

    def kept(self) -> tuple[ObjectRef[bytes], int]:
        size = self._get(lambda: self.handle.saved_size.remote(), None)
        answer, self.waiting, self.asked = self.answer, False, ("", ())
        del self.answer
        if size < 0:
            raise Lost("a worker of the Ray cluster could not save its state")
        return answer, size

    def _get(self, what: Callable[[], Any], timeout: float | None) -> Any:
        errors = self.ray.exceptions
        for attempt in range(AGAIN + 1):
            try:
                return self.ray.get(what(), timeout=timeout)
            except errors.ActorUnavailableError as error:  # it may have done what was asked: numbers make that harmless
                if attempt == AGAIN:
                    raise Lost(f"a worker of the Ray cluster is out of reach ({_first_line(error)})") from error
                time.sleep(0.2 * 2**attempt)
                method, arguments = self.asked
                self.answer = getattr(self.handle, method).remote(*arguments)
            except errors.GetTimeoutError:
                raise
            except (errors.RayActorError, errors.WorkerCrashedError, errors.OutOfMemoryError) as error:
                raise Lost(f"a worker of the Ray cluster ended ({_first_line(error)})") from error
            except errors.RayError as error:
                advice = "Resume from a checkpoint (callbacks=[Checkpoint(...)])"
                raise RuntimeError(f"the Ray cluster has lost what this fit needs: {error}. {advice}.") from error
        raise AssertionError

    def end(self) -> None:
        if self.ray.is_initialized():
            self.ray.kill(self.handle)


# --- clusters ---------------------------------------------------------------------------------------------------------


def _present() -> None:
    """Leave a cluster that was not joined: it is somebody else's."""


def _join(ray: ModuleType, address: str | None, n_workers: int | None) -> tuple[Callable[[], None], int]:
    """Start a local cluster, or connect to a running one; returns how to leave it, and what travels with a call."""
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address != "local":
        _knock(address)
        try:
            ray.init(address=address, **quiet)
        except ConnectionError as error:
            raise ConnectionError(_unreachable(address, str(error))) from error
        return ray.shutdown, INLINE
    place = tempfile.mkdtemp(prefix="ray")  # a short name: those of sockets may not be long

    def leave() -> None:
        ray.shutdown()
        shutil.rmtree(place, ignore_errors=True)

    try:
        processors = max(n_workers or 1, os.cpu_count() or 1)
        ray.init(
            address="local", num_cpus=processors, include_dashboard=False, _temp_dir=place, _system_config=OWN, **quiet
        )
    except BaseException:
        leave()
        raise
    return leave, LARGER


def _knock(address: str) -> None:
    """Refuse an address where no cluster answers: Ray itself would try for minutes, and print what its parts think."""
    if address == "auto":
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(f'address must be "host:port", "auto" or "ray://host:port", got {address!r}.')
    try:
        with socket.create_connection((host, int(port)), timeout=KNOCK) as connection:
            if os.environ.get("RAY_USE_TLS", "0") == "0":
                _ask_for_health(connection, f"{host}:{port}")
    except (OSError, OverflowError) as error:
        raise ConnectionError(_unreachable(address, str(error))) from error


def _ask_for_health(connection: socket.socket, authority: str) -> None:
    """Send a gRPC request: a gRPC server answers, if only that it does not know the method; others do not, or 404."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/grpc.health.v1.Health/Check",
        ":authority": authority[:99],
    }
    fields |= {"te": "trailers", "content-type": "application/grpc"}
    pairs = [(name.encode(), value.encode()) for name, value in fields.items()]
    head = b"".join(bytes([0, len(name)]) + name + bytes([len(value)]) + value for name, value in pairs)
    nothing = bytes(5)  # a message without a byte, and its length
    connection.sendall(PREFACE + _frame(HEADERS, END_HEADERS, head) + _frame(DATA, END_STREAM, nothing))
    end, begun = time.monotonic() + KNOCK, False
    with connection.makefile("rb") as answer:
        while time.monotonic() < end:
            frame = answer.read(9)
            if len(frame) < 9 or not (begun or frame[3] == SETTINGS):
                raise ConnectionError("what answers there is not Ray")
            begun, payload = True, answer.read(int.from_bytes(frame[:3], "big"))
            if frame[3] == HEADERS:
                if STATUS_200 not in payload[:8]:
                    raise ConnectionError("what answers there is a web server")
                return
    raise TimeoutError("timed out")


def _frame(kind: int, flags: int, payload: bytes) -> bytes:
    """A frame of HTTP/2, of the first stream."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags, 0, 0, 0, 1]) + payload


def _unreachable(address: str, reason: str) -> str:
    advice = 'Start one there ("ray start --head"), correct the address, or leave it out for a local cluster'
    return f"no Ray cluster answers at {address} ({reason}). {advice}."


def _check_same(ray: ModuleType, address: str | None) -> None:
    """Refuse to leave a cluster that somebody else has joined for another one."""
    present = str(ray.get_runtime_context().gcs_address)
    if address in (None, "auto", "local") or str(address).startswith("ray://"):
        return
    if str(address).rpartition(":")[2] != present.rpartition(":")[2]:
        advice = "call ray.shutdown() first, or leave the address out to use the present one"
        raise ValueError(f"this process is connected to the Ray cluster at {present}, not {address}; {advice}.")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
