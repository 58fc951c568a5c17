"""The worker's side of calls between processes: residents, and the memory of the last answer."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping, Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from maxmargin.persistence.mapped import mapped, open_array
from maxmargin.planes import OverBudget

__all__ = ["Home", "Plan", "pack"]

LARGE = 1 << 16  # bytes of an array that is sent apart from the residents that have it
Plan = Sequence[tuple[int, Sequence[int]]]  # calls: the address, and which of the arguments sent along are its own


class Home:
    """Where the residents of a worker live and are called by verb.

    A message has a number. One that comes again, because nobody knows whether it had been done, is answered from memory
    and does nothing. What was sent is pickled; so are the answers.

    Parameters
    ----------
    residents : mapping
        By address.
    """

    def __init__(self, residents: Mapping[int, object]) -> None:
        threadpool_limits(1, user_api="blas")  # results must not depend on the cores of a machine
        self.residents = dict(residents)
        self.number, self.last, self.size = -1, b"", -1

    def settle(self, own: Sequence[int], keys: Sequence[int], *data: bytes) -> bytes:
        """Take in residents and arrays of :func:`pack`; pickled None, why it is impossible, or an error to raise."""
        try:
            arrays = {key: pickle.loads(array) for key, array in zip(keys, data[len(own) :], strict=True)}
            for address, resident in zip(own, data, strict=False):
                self.residents[address] = _Unpickler(io.BytesIO(resident), arrays).load()
        except MemoryError as error:
            return pickle.dumps(_portable(error))
        except Exception as error:
            return pickle.dumps(f"{type(error).__name__}: {error}")
        return pickle.dumps(None)

    def answer(self, number: int, verb: str, plan: Plan, *arguments: bytes) -> bytes:
        """Do all calls of a message in their order; pickled pairs: whether it went well, and the result or error."""
        if number != self.number:
            try:
                found = [pickle.loads(argument) for argument in arguments]
                done = [self._done(verb, address, [found[k] for k in own]) for address, own in plan]
            except MemoryError as error:
                done = [(False, _portable(error))] * len(plan)
            self.number, self.last = number, _pickled(done)
        return self.last

    def _done(self, verb: str, address: int, arguments: Sequence[object]) -> tuple[bool, object]:
        try:
            return True, getattr(self.residents[address], verb)(*arguments)
        except Exception as error:
            return False, _portable(error)

    def save(self) -> bytes:
        """The state of all residents, which must have one, pickled."""
        self.size = -1
        saved = {address: resident.save() for address, resident in self.residents.items()}  # type: ignore[attr-defined]
        data = pickle.dumps(saved, protocol=5)
        self.size = len(data)
        return data

    def saved_size(self) -> int:
        """Bytes that the last :meth:`save` has returned; -1 if it has failed."""
        return self.size

    def load(self, saved: bytes) -> bytes:
        """Go back to what :meth:`save` has returned."""
        for address, state in pickle.loads(saved).items():
            self.residents[address].load(state)  # type: ignore[attr-defined]
        return b""

    def forget(self, addresses: Sequence[int]) -> bytes:
        """Let residents go."""
        for address in addresses:
            self.residents.pop(address, None)
        return b""


def pack(
    residents: Mapping[int, object], pickler: type[pickle.Pickler]
) -> tuple[dict[int, tuple[bytes, list[int]]], dict[int, bytes]]:
    """Residents, pickled one by one, and large arrays that they may have in common, pickled once.

    Returns for each address the bytes and the keys of the arrays that are not in them; and the arrays by key.
    """
    arrays: dict[int, np.ndarray] = {}
    known: dict[int, tuple[bytes, list[int]]] = {}
    for resident in residents.values():
        if id(resident) not in known:
            known[id(resident)] = _apart(resident, pickler, arrays)
    packed = {address: known[id(resident)] for address, resident in residents.items()}
    return packed, {key: pickle.dumps(array, protocol=5) for key, array in arrays.items()}


def _apart(resident: object, pickler: type[pickle.Pickler], arrays: dict[int, np.ndarray]) -> tuple[bytes, list[int]]:
    """A resident without its large arrays, which join ``arrays``, and their keys.

    What is mapped into memory travels as the name of its file: the worker maps it, too.
    """
    keys: list[int] = []

    class Pickler(pickler):  # type: ignore[misc, valid-type]
        def persistent_id(self, found: object) -> int | None:
            if not isinstance(found, np.ndarray) or found.nbytes < LARGE or found.dtype.hasobject or mapped(found):
                return None
            arrays[id(found)] = found
            keys.append(id(found))
            return id(found)

        def reducer_override(self, found: object) -> object:
            origin = mapped(found)
            if origin is not None:
                return open_array, origin
            usual = getattr(super(), "reducer_override", None)  # that of cloudpickle
            return NotImplemented if usual is None else usual(found)

    file = io.BytesIO()
    Pickler(file, protocol=5).dump(resident)
    return file.getvalue(), keys


class _Unpickler(pickle.Unpickler):
    """Finds arrays that were left out by their keys."""

    def __init__(self, file: io.BytesIO, arrays: Mapping[int, np.ndarray]) -> None:
        super().__init__(file)
        self.arrays = arrays

    def persistent_load(self, key: int) -> np.ndarray:
        return self.arrays[key]


def _pickled(done: Sequence[tuple[bool, object]]) -> bytes:
    try:
        return pickle.dumps(done, protocol=5)
    except MemoryError as error:
        return pickle.dumps([(False, _portable(error))] * len(done))
    except Exception as error:
        problem = TypeError(f"what a worker has found cannot be sent back: {error}")
        return pickle.dumps([(False, problem)] * len(done))


def _portable(error: Exception) -> Exception:
    """The error, or where its class cannot travel, one that says the same; what to do where memory is short."""
    if isinstance(error, MemoryError) and not isinstance(error, OverBudget):
        advice = (
            "Use fewer workers (n_jobs), a smaller memory=... of the solver (Auto, Sharded), or memory_map for files"
        )
        said = f": {error}" if str(error) else ""
        return MemoryError(f"a worker ran out of memory{said}. {advice}.")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
