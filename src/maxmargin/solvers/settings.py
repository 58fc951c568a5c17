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
    "strands": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """A setting of the engine."""

    # one block per example ("product"), "one" for all, that many groups of examples, or the subsets of a stream, which
    # may overlap: examples in the same subsets then share a block
    blocks: BlockWords = "product"
    selection: str = "permutation"  # policy of :mod:`maxmargin.solvers.block_selection`
    visits: float = 1.0  # blocks (subsets of a stream) visited in a step: a share of all (at most 1) or a number
    repeats: int = 1  # times that the visited blocks are asked for planes and solved in a step
    batch: int | None = 1  # examples decoded at the same weights before their blocks are solved; None: all visited
    limit: int | None = None  # most extreme points a block keeps; None for no limit but memory
    rule: str = "merge"  # or "iterate": what a full block does; see working_set_kernel.make_room
    keep_origin: bool = True  # whether the origin stays available after a stored iterate has replaced it
    patience: int = 10  # visits that a plane without weight survives
    # "smo": blocks one after the other; "newton": jointly, by projected Newton; "auto": Newton in the late phase, or
    # when progress is slow, while there are few planes
    master: str = "smo"
    accuracy: float | None = None  # share of the last gap to which joint masters are solved; None: as rounding allows
    cached_passes: int = 0  # most passes over planes at hand after the oracle has been asked;
    cached_share: float = 0.0  # they end when one gains less than this share of what the step has gained
    cached_blocks: str = "all"  # or "visited"
    # blocks are solved until their gradients differ by at most this share of their largest cost; None follows the gap
    tau: float | None = None
    max_steps: int = 1000  # most steps of sequential minimal optimisation in one visit of a block
    # passes of steps between certificates; 0: a certificate before every step, whose planes the step uses
    certificate_every: float = 1.0
    parts: int = 1  # the most planes taken from one argmax
    memory: int = 4 << 30  # bytes the working set may take
    # the average over the visits that weights and multipliers are: none, all visits alike ("uniform"), each by its
    # number ("weighted"), or only the later half or more ("tail")
    averaging: str | None = None
    reuse: bool = True  # whether the planes of a certificate are used as a visit of all blocks
    # whether passes over planes at hand are followed by jumps to where they lead, when the weights are few beside the
    # planes; see :mod:`maxmargin.solvers.masters.extrapolation`
    extrapolate: bool = False
    strands: int = 1  # that share a round of visits, on as many threads as there are workers; see strand_kernel

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
