"""Arrays of a checkpoint, which nobody vouches for: each is asked for by name, kind, shape and range.

What a solver makes of them reaches compiled loops, which check nothing. So this is the door: a state is made only of
arrays that came through :class:`Saved`, and of those that hold together (:mod:`maxmargin.solvers.saved_set`,
:mod:`maxmargin.solvers.proof`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np

from maxmargin import contracts
from maxmargin.formulations.problem import Problem
from maxmargin.models.base import digest
from maxmargin.oracles.counting import all_losses
from maxmargin.planes import Planes

__all__ = ["COUNT", "FINITE", "FLAG", "NUMBER", "SECONDS", "SIZE", "Range", "Saved", "twice"]

Range = tuple[float, float]
NUMBER, FINITE, FLAG = (-np.inf, np.inf), (-1e150, 1e150), (0.0, 1.0)  # whose squares are finite; NaN is in no range
COUNT, SECONDS, SIZE = (0.0, 2.0**53), (0.0, 1e15), (0.0, np.inf)


class Saved(Mapping[str, np.ndarray]):
    """The arrays of a state by name; ``place`` is where they stand in the checkpoint, for messages."""

    def __init__(
        self, arrays: Mapping[str, np.ndarray], place: str = "state", known: dict[str, np.ndarray] | None = None
    ) -> None:
        self._arrays, self.place, self._known = arrays, place, {} if known is None else known

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> Saved:
        """Arrays that are not yet asked for by kind, as if they stood for a state."""
        return arrays if isinstance(arrays, Saved) else cls(arrays)

    def __getitem__(self, name: str) -> np.ndarray:
        return np.asarray(self._arrays[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def part(self, name: str) -> Saved:
        """The arrays called ``name/...``, by the rest of their names."""
        begin = f"{name}/"
        inside = {key.removeprefix(begin): array for key, array in self._arrays.items() if key.startswith(begin)}
        return Saved(inside, self._path(name), self._known)

    def refusal(self, name: str, what: str) -> ValueError:
        """The error that says which array is wrong, how, and what to do."""
        cause = "the checkpoint was changed, or written by another version"
        return ValueError(
            f"{self._path(name)} of the checkpoint {what}: {cause}. Resume from an earlier one, or fit without resume."
        )

    def array(self, name: str, dtype: type, shape: tuple[int | None, ...]) -> np.ndarray:
        """A copy of an array of a kind and a shape, None for any length."""
        found, kind = self[name], np.dtype(dtype)
        fits = found.ndim == len(shape) and all(m is None or m == n for m, n in zip(shape, found.shape, strict=True))
        if found.dtype != kind or not fits:
            wanted = f"{kind} of shape ({', '.join('any' if m is None else str(m) for m in shape)})"
            raise self.refusal(name, f"is {found.dtype} of shape {found.shape}, not {wanted}")
        return np.array(found, order="C")

    def reals(self, name: str, shape: tuple[int | None, ...], within: Range = FINITE) -> np.ndarray:
        """float64 numbers in a range; NaN is never one."""
        return self._inside(name, self.array(name, np.float64, shape), within)

    def whole(self, name: str, dtype: type, shape: tuple[int | None, ...], within: Range) -> np.ndarray:
        """Whole numbers in a range, its ends included."""
        return self._inside(name, self.array(name, dtype, shape), within)

    def numbers(self, name: str, ranges: Mapping[str, Range], unknown: str = "") -> np.ndarray:
        """float64 numbers, each in a range of its own; ``unknown`` may be NaN."""
        found = self.array(name, np.float64, (len(ranges),))
        for number, (which, (low, high)) in zip(found, ranges.items(), strict=True):
            if not (low <= number <= high or (which == unknown and np.isnan(number))):
                raise self.refusal(name, f"has {which} = {number}, not a number from {low} to {high}")
        return found

    def take_over(self, name: str, state: object, ranges: Mapping[str, Range], unknown: str = "") -> None:
        """Numbers of a state, or of its parts (names with a dot), each as the kind of number that stands there."""
        for number, which in zip(self.numbers(name, ranges, unknown), ranges, strict=True):
            part, _, last = which.rpartition(".")
            owner = getattr(state, part) if part else state
            setattr(owner, last, type(getattr(owner, last))(number))

    def weights(self, name: str, problem: contracts.Problem, shape: tuple[int | None, ...]) -> np.ndarray:
        """Weights in the domain of a problem's regulariser, where the argmax is defined."""
        found = self.reals(name, shape)
        try:
            near = np.allclose(problem.feasible(found), found)
        except ValueError as error:
            raise self.refusal(name, f"is outside the domain of the weights ({error})") from None
        if not near:
            raise self.refusal(name, "holds negative weights where the problem allows none")
        return found

    def flag(self, name: str) -> bool:
        """A boolean."""
        return bool(self.array(name, np.bool_, ()))

    def text(self, name: str) -> str:
        """A string."""
        found = self[name]
        if found.dtype.kind != "U" or found.ndim:
            raise self.refusal(name, f"is {found.dtype} of shape {found.shape}, not text")
        try:
            return str(found)
        except ValueError as error:
            raise self.refusal(name, f"is not text ({error})") from None

    def json(self, name: str) -> object:
        """The value of a JSON text."""
        try:
            return json.loads(self.text(name))
        except (json.JSONDecodeError, RecursionError) as error:
            raise self.refusal(name, f"is not the JSON it should be ({type(error).__name__})") from None

    def planes(self, name: str, n_columns: int, n_owners: int, *, one_each: bool = False) -> Planes:
        """The arrays ``name/...`` of planes, of any owners (examples or blocks) or of at most one each, in order."""
        part = self.part(name)
        b, owner = part.reals("b", (None,)), part.whole("example", np.int64, (None,), (0, n_owners - 1))
        indices = part.whole("indices", np.int32, (None,), (0, n_columns - 1))
        indptr = part.whole("indptr", np.int64, (len(b) + 1,), (0, len(indices)))
        data, bound = part.reals("data", (len(indices),)), part.reals("bound", (len(b),), NUMBER)
        if len(owner) != len(b) or (one_each and (np.diff(owner) <= 0).any()):
            raise part.refusal("example", "does not name an owner for each plane, in order")
        if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
            raise part.refusal("indptr", "does not rise from 0 to the number of entries")
        planes = Planes(indptr, indices, data, b, owner, bound, n_columns)
        if twice(indptr[:-1], np.diff(indptr), indices, n_columns) >= 0:
            raise part.refusal("indices", "names a column twice in a plane")
        return planes

    def generator(self, name: str, rng: np.random.Generator) -> None:
        """Put a generator of random numbers into a saved state."""
        state, before = self.json(name), rng.bit_generator.state
        try:
            if not isinstance(state, dict) or state.keys() != before.keys():
                raise ValueError("it has other entries")
            rng.bit_generator.state = state
            rng.bit_generator.random_raw()  # an odd state must show itself here
            rng.bit_generator.state = state
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise self.refusal(name, f"is no state of {type(rng.bit_generator).__name__} ({error})") from None

    def losses(self, problem: Problem, w: np.ndarray) -> np.ndarray:
        """Losses of all examples at weights (n_columns,), asked for once."""
        key = problem.oracle.fingerprint + digest(w)
        if key not in self._known:
            self._known[key] = all_losses(problem.oracle, w)
        return self._known[key]

    def directions(self, d: int, number: int) -> np.ndarray:
        """Random directions (number, d) of length 1, the same at every call, which the writer cannot have foreseen."""
        if "seed" not in self._known:
            self._known["seed"] = np.random.default_rng().integers(2**63, size=1)
        found = np.random.default_rng(self._known["seed"]).normal(size=(number, d))
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-300)

    def belongs_to(self, problem: Problem, *, same: bool = True, needs: str = " and loss") -> None:
        """Refuse a state of other examples, another cost or other weights C_i than those of a problem."""
        if not (same and np.array_equal(self["weight"], problem.weight) and self.text("data") == problem.fingerprint):
            raise ValueError(
                f"the saved state belongs to another problem: resume with the same examples, cost, C{needs}."
            )

    def _path(self, name: str) -> str:
        return f"{self.place}/{name}" if self.place else name

    def _inside(self, name: str, found: np.ndarray, within: Range) -> np.ndarray:
        low, high = within
        if found.size and not (found.min() >= low and found.max() <= high):
            wrong = found[~((found >= low) & (found <= high))].flat[0]
            raise self.refusal(name, f"holds {wrong}, not only numbers from {low} to {high}")
        return found


def twice(start: np.ndarray, length: np.ndarray, columns: np.ndarray, n_columns: int) -> int:
    """The first row ``columns[start:start + length]`` that names a column twice, or -1."""
    from maxmargin.solvers.saved_kernel import first_repetition

    return int(first_repetition(start, length.astype(np.int64), columns, np.full(n_columns, -1)))
