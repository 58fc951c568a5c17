"""A digest of the sequences of a chain that does not depend on how they are divided into parts.

Each sequence has a digest of its own, and those of n sequences are the digits of a number in a large base, modulo a
prime. So the digest of parts, one behind the other, follows from the digests of the parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from maxmargin.models.base import digest
from maxmargin.models.chain import ChainBound
from maxmargin.models.chain_parts import PackedPart

__all__ = ["Digest", "added", "digest_of", "fingerprint_of"]

PRIME = 2**255 - 19
BASE = 2**254 // 3
AT_ONCE = 1024  # sequences whose bytes are copied together


class Digest(NamedTuple):
    """Of so many sequences."""

    n: int
    value: int


def digest_of(bound: ChainBound) -> Digest:
    """That of the sequences that a chain is bound to: all that kernels read of each."""
    value = 0
    for begin in range(0, bound.n_examples, AT_ONCE):
        columns = _bytes(bound, begin, min(begin + AT_ONCE, bound.n_examples))
        for own in zip(*columns, strict=True):
            state = hashlib.blake2b(digest_size=32)
            for data in own:
                state.update(data)
            value = (value * BASE + int.from_bytes(state.digest(), "little")) % PRIME
    return Digest(bound.n_examples, value)


def added(parts: Iterable[Digest]) -> Digest:
    """That of the sequences of parts, one behind the other."""
    n = value = 0
    for part in parts:
        n, value = n + part.n, (value * pow(BASE, part.n, PRIME) + part.value) % PRIME
    return Digest(n, value)


def fingerprint_of(bound: ChainBound, sequences: Digest) -> str:
    """Hexadecimal digest of sequences, and of what a chain that is bound to any has in common for all of them."""
    from maxmargin.models import chain_kernel as ck

    meta, places = bound.meta.copy(), PackedPart.of(bound).sizes.sections()
    meta[[*range(ck.AT_TOKENS, ck.AT_EDGE_VALUES + 1), ck.TABLE_BITS]] = 0  # where things are, and scratch
    tables = (ck.AT_PAIR_ROWS, ck.AT_PAIR_LABELS, ck.AT_MASK, ck.AT_START_MASK, ck.AT_END_MASK, ck.AT_COST)
    common = [(bound.floats if key >= ck.AT_VALUES else bound.ints)[places[key]] for key in tables if key in places]
    return digest(meta, *common, np.frombuffer(sequences.value.to_bytes(32, "little"), np.uint8), np.array(sequences.n))


def _bytes(bound: ChainBound, first: int, last: int) -> list[list[bytes]]:
    """The bytes of neighbouring sequences, kind by kind; where rows begin is told by their lengths."""
    from maxmargin.models import chain_kernel as ck

    places, tokens = PackedPart.of(bound).sizes.sections(), bound.output_at[first : last + 1]
    begin, end, found = int(tokens[0]), int(tokens[-1]), []

    def divide(array: np.ndarray, ends: np.ndarray) -> None:
        """Note an array of all these sequences, in which they end at ``ends``, counted from the first."""
        data, at = array.tobytes(), (ends * array.itemsize).tolist()
        found.append([data[a:b] for a, b in pairwise(at)])

    def section(key: int) -> np.ndarray:
        return (bound.floats if key >= ck.AT_VALUES else bound.ints)[places[key]]

    for key in (ck.AT_LABELS, ck.AT_FIXED, ck.AT_TOKEN_WEIGHT):
        if key in places:
            divide(section(key)[begin:end], tokens - begin)
    if ck.AT_DENSE in places:
        D = bound.layout.n_dense
        divide(section(ck.AT_DENSE)[begin * D : end * D], (tokens - begin) * D)
    for key, *entries in (
        (ck.AT_ROWS, ck.AT_COLUMNS, ck.AT_VALUES), (ck.AT_EDGE_ROWS, ck.AT_EDGE_COLUMNS, ck.AT_EDGE_VALUES)
    ):  # fmt: skip
        if key in places:
            rows = section(key)[begin : end + 1].astype(np.int64)
            divide(np.diff(rows).astype(np.int32), tokens - begin)
            for own in entries:
                if own in places:
                    divide(section(own)[rows[0] : rows[-1]], rows[tokens - begin] - rows[0])
    return found
