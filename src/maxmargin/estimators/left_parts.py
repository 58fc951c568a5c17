"""Packed parts that stay with the workers of a fit: no process has them all, and the driver has none.

The driver knows the facts of each part and how to come by it. A shard takes its examples from the parts when it is
first asked: from the files of a temporary folder, which workers on one machine map, or else, on another machine or
where the disk was full, it reads and packs the part again. So a worker that takes over needs nothing of the one that
has died.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from maxmargin.execution.executors import is_remote
from maxmargin.execution.ray_workers import Ray
from maxmargin.formulations.ramp import Ramp
from maxmargin.models.chain import ChainBound
from maxmargin.models.chain_elsewhere import PartFacts
from maxmargin.models.chain_parts import PackedPart
from maxmargin.persistence.mapped import open_array
from maxmargin.solvers.base import BaseSolver
from maxmargin.solvers.presets import SOLVERS

__all__ = ["LeftPart", "Trained", "leave", "stays"]


class Trained(Protocol):
    """What of a tagger decides where its examples are in training."""

    executor: str | Ray
    solver: str | BaseSolver
    loss: str | Ramp
    slack_search: str


def stays(tagger: Trained, n_examples: int) -> bool:
    """Whether so many examples stay with the workers: the one rule.

    They do where workers share no memory with the driver, and the solver gives each shard its own examples and never
    asks for all: several shards, the hinge, and no search in Python, which would need all examples on each worker.
    """
    solver = SOLVERS[tagger.solver]() if isinstance(tagger.solver, str) and tagger.solver in SOLVERS else tagger.solver
    hinge = tagger.loss == "hinge" and tagger.slack_search == "auto"
    return is_remote(tagger.executor) and hinge and isinstance(solver, BaseSolver) and solver.count(n_examples) > 1


@dataclass(frozen=True)
class LeftPart:
    """A part that stays where it was packed; see :class:`~maxmargin.models.chain_elsewhere.Part`.

    Parameters
    ----------
    facts : PartFacts
    again : callable
        Reads and packs it again.
    folder : Path
        Where its arrays are kept, if they are, and if the folder is to be seen here.
    number : int
        Its place among all parts.
    """

    facts: PartFacts
    again: Callable[[], PackedPart]
    folder: Path
    number: int

    def packed(self) -> PackedPart:
        sizes = self.facts.sizes
        with suppress(OSError, ValueError):
            paths = _paths(self.folder, self.number)
            ints, floats = map(open_array, paths, (np.int32, np.float64), (sizes.n_ints, sizes.n_floats))
            return PackedPart(sizes.meta, ints, floats)
        return self.again()


def leave(bound: ChainBound, folder: Path, number: int) -> PartFacts:
    """Keep a packed part in files, if their folder is to be seen here and has room; the facts of the part."""
    if folder.is_dir():
        with suppress(OSError):
            for path, array in zip(_paths(folder, number), (bound.ints, bound.floats), strict=True):
                beside = path.with_name(f"{path.name}.{secrets.token_hex(6)}.part")
                try:
                    array.tofile(beside)
                    beside.replace(path)  # a worker that is killed leaves no file that looks whole
                finally:
                    beside.unlink(missing_ok=True)
    return PartFacts.of(bound)


def _paths(folder: Path, number: int) -> tuple[Path, Path]:
    return folder / f"ints-{number}", folder / f"floats-{number}"
