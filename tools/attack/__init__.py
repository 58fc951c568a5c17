"""Hostile files and arrays for every door of the library, each in a process with limits.

    python -m tools.attack                      all suites
    python -m tools.attack --share 0.1          a tenth of each
    python -m tools.attack --suite arrays       one suite
    python -m tools.attack --case "..."         one case again, in this process, with its whole traceback

A suite is a module with ``NUMBER``, how many cases make it whole, and ``cases(rng, number)``, which gives pairs of a
name and a function without arguments. The function does what a user would do. It may answer, and then it checks the
answer and raises :class:`Foreign` where that cannot come from the input; or it may refuse with a ValueError or
TypeError (from a ``raise`` of this library, with a sentence). Everything else is a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np

Thing = TypeVar("Thing")


def in_turn(things: Sequence[Thing], rng: np.random.Generator, number: int) -> Iterator[tuple[Thing, int]]:
    """So many cases: the things one after the other, again and again, each with a seed of its own."""
    for k in range(number):
        yield things[k % len(things)], int(rng.integers(2**62))


def attacks_in_turn(
    attack: Callable[[str, int], object], names: Sequence[str], rng: np.random.Generator, number: int
) -> Iterator[tuple[str, Callable[[], object]]]:
    """So many cases of one attack: what each is called, and what it does."""
    for name, seed in in_turn(names, rng, number):
        yield f"{name}, seed {seed}", partial(attack, name, seed)


class Foreign(AssertionError):
    """An answer that no input explains: a label that does not exist, a number from nowhere."""
