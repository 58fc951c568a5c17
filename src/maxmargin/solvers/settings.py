"""The settings of the dual engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from maxmargin.solvers.blocks import BlockWords

__all__ = ["Settings"]

AVERAGES = (None, "uniform", "weighted", "tail")
# whole numbers and their least values
_WHOLE = {
    "batch": 1, "limit": 1, "parts": 1, "memory": 1, "patience": 0, "cached_passes": 0, "max_steps": 1, "repeats": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """A setting of the engine.

    Attributes
    ----------
    blocks : "product", "one", int, or sequence of sequences of examples
        One block per example, one for all, that many groups of examples, or the subsets of a stream, which may overlap:
        examples in the same subsets then share a block.
    selection : str
        Policy of :mod:`maxmargin.solvers.block_selection`.
    visits : float
        Blocks (subsets of a stream) visited in a step, as a share of all (at most 1) or as a number (above 1).
    repeats : int
        Times that the visited blocks are asked for planes and solved in a step.
    batch : int or None
        Examples decoded at the same weights before their blocks are solved; None for all that are visited.
    limit : int or None
        Most extreme points a block keeps; None for no limit but memory.
    rule : "iterate" or "merge"
        What a full block does; see :func:`maxmargin.solvers.working_set_kernel.make_room`.
    keep_origin : bool
        Whether the origin stays available after a stored iterate has replaced it.
    patience : int
        Visits that a plane without weight survives.
    master : "smo", "newton" or "auto"
        Blocks one after the other by SMO, or jointly by projected Newton; "auto" is
        Newton in the late phase, or when progress is slow, while there are few planes.
    accuracy : float or None
        Joint master problems are solved to this share of the gap of the last certificate; None: as exactly as rounding
        allows.
    cached_passes : int
        Most passes over planes at hand after the oracle has been asked.
    cached_share : float
        Such passes end early when one gains less than this share of what the step has gained.
    cached_blocks : "all" or "visited"
    tau : float or None
        Blocks are solved until their gradients differ by at most this share of their largest cost; None follows the gap
        of the last certificate.
    max_steps : int
        Most steps of sequential minimal optimisation in one visit of a block.
    certificate_every : float
        Passes of steps between certificates; 0: a certificate before every step, whose planes the step uses.
    parts : int
        The most planes taken from one argmax.
    memory : int
        Bytes the working set may take.
    averaging : None, "uniform", "weighted" or "tail"
        Which average over the visits the weights (and the multipliers behind them) are: none, all visits alike, each
        by its number, or only the later half or more.
    reuse : bool
        Whether the planes of a certificate are used as a visit of all blocks.
    extrapolate : bool
        Whether passes over planes at hand are followed by jumps to where they lead, when the weights are few beside the
        planes; see :mod:`maxmargin.solvers.masters.extrapolation`.
    """

    blocks: BlockWords = "product"
    selection: str = "permutation"
    visits: float = 1.0
    repeats: int = 1
    batch: int | None = 1
    limit: int | None = None
    rule: str = "merge"
    keep_origin: bool = True
    patience: int = 10
    master: str = "smo"
    accuracy: float | None = None
    cached_passes: int = 0
    cached_share: float = 0.0
    cached_blocks: str = "all"
    tau: float | None = None
    max_steps: int = 1000
    certificate_every: float = 1.0
    parts: int = 1
    memory: int = 4 << 30
    averaging: str | None = None
    reuse: bool = True
    extrapolate: bool = False

    def __post_init__(self) -> None:
        check_whole(self, _WHOLE)
        for name in ("visits", "accuracy", "tau", "certificate_every"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float, np.number)) and value >= 0):
                raise ValueError(f"{name} must be a number >= 0, got {value!r}.")
        check_words("master", self.master, ("smo", "newton", "auto"))
        check_words("averaging", self.averaging, AVERAGES)
        if self.selection == "gap" and not self.reuse:
            raise ValueError('selection="gap" needs the gaps that come with planes of certificates: set reuse=True.')


def check_whole(setting: object, least: Mapping[str, int], optional: Collection[str] = ("batch", "limit")) -> None:
    """Refuse attributes that are no whole numbers, or below their least values."""
    for name, lowest in least.items():
        value = getattr(setting, name)
        if not ((value is None and name in optional) or (isinstance(value, (int, np.integer)) and value >= lowest)):
            raise ValueError(f"{name} must be a whole number >= {lowest}, got {value!r}.")


def check_words(name: str, value: object, words: Sequence[str | None]) -> None:
    """Refuse what is none of the words that a parameter may be."""
    if not (value is None or isinstance(value, str)) or value not in words:
        known = [f'"{word}"' if isinstance(word, str) else repr(word) for word in words]
        raise ValueError(f"{name} must be {', '.join(known[:-1])} or {known[-1]}, got {value!r}.")
