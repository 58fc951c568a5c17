"""Compiled kernels of the text features: a table of pairs of integers, rows of features, phrases in sentences.

A pair (left, right) of non-negative int32 is one int64, ``left << 32 | right``: exact, so two pairs never meet in one
entry. The table is open-addressed: ``keys`` (-1: free) and the id of each key in ``ids``.
"""

from __future__ import annotations

import numpy as np

from maxmargin.features.interning import RANK_BITS
from maxmargin.kernel import kernel

TOKEN_BITS = 40  # of a key: which definition, at which token, and which of several values there


@kernel("int64(int64[::1], int64, int64)")
def probe(keys, key, mask):
    """The slot that holds ``key``, or the free slot where it belongs; the first is the key, with all its bits mixed."""
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0xD6E8FEB86659FD93)
    h ^= h >> np.uint64(32)
    slot = np.int64(h & np.uint64(mask))
    while keys[slot] != key and keys[slot] != -1:
        slot = (slot + 1) & mask
    return slot


@kernel("int64(int32[::1], int32[::1], int64[::1], int32[::1], int64[::1], int64[::1], int64[::1], int32[::1], int64)")
def add_pairs(left, right, keys, ids, entries, counts, size, out, start):
    """Number the pairs from row ``start`` on and count them; a new one gets the id ``size[0]``. -1 on a side gives -1.

    Returns the first row that found no room for a new entry (call again with larger arrays), or ``len(left)``.
    """
    mask = len(keys) - 1
    for t in range(start, len(left)):
        if left[t] < 0 or right[t] < 0:
            out[t] = -1
            continue
        key = (np.int64(left[t]) << 32) | np.int64(right[t])
        slot = probe(keys, key, mask)
        if keys[slot] == -1:
            if size[0] == len(entries):
                return t
            keys[slot] = key
            ids[slot] = size[0]
            entries[size[0]] = key
            size[0] += 1
        counts[ids[slot]] += 1
        out[t] = ids[slot]
    return len(left)


@kernel("int64(int64, int64, int64)", borrows=True)
def first_key(definition, token, rank):
    """A number that orders appearances of features by definition, then by token, then by their rank there."""
    definition, rank = min(definition, (1 << 10) - 1), min(rank, (1 << RANK_BITS) - 1)
    return (definition << (TOKEN_BITS + RANK_BITS)) | (token << RANK_BITS) | rank


@kernel("void(int32[:, ::1], int64, int64[::1])")
def note_first(table, token, first):
    """Let ``first`` of every id in ``table`` (definitions, n) be its least key; ``token`` is the number of column 0."""
    for d in range(len(table)):
        for t in range(table.shape[1]):
            i = table[d, t]
            if i >= 0:
                first[i] = min(first[i], first_key(d, token + t, 0))


@kernel("void(int32[::1], int64[::1], int32[::1], int64, int64, int64[::1])")
def note_lists(owner, pointers, ids, definition, token, first):
    """As :func:`note_first` for a definition with many values: token t has list ``owner[t]`` (-1: none)."""
    for t in range(len(owner)):
        if owner[t] >= 0:
            for p in range(pointers[owner[t]], pointers[owner[t] + 1]):
                if ids[p] >= 0:
                    first[ids[p]] = min(first[ids[p]], first_key(definition, token + t, p - pointers[owner[t]]))


@kernel("int32(int64[::1], int32[::1], int32, int32)")
def find_pair(keys, ids, left, right):
    """Id of one pair; -1 when it is not in the table."""
    key = (np.int64(left) << 32) | np.int64(right)
    slot = probe(keys, key, len(keys) - 1)
    return ids[slot] if keys[slot] == key else np.int32(-1)


@kernel("void(int32[::1], int32[::1], int64[::1], int32[::1], int32[::1])")
def find_pairs(left, right, keys, ids, out):
    """Ids of the pairs; -1 for those that are not in the table, or have a side of -1."""
    for t in range(len(left)):
        out[t] = find_pair(keys, ids, left[t], right[t]) if left[t] >= 0 and right[t] >= 0 else -1


@kernel(
    "int64(int32[::1], int64[::1], int64[::1], int32[:, ::1], int64[::1], int64, int64, int64[::1], int64[::1], "
    "int64[::1], int32[::1], boolean, UniTuple(int64[::1], 4), UniTuple(int32[::1], 4), int64[::1], int32[::1])"
)
def find_features(
    values, begins, owners, codes, offsets, before, n_marks, slots, sources, shifts, skeletons, edge, keys, ids,
    indptr, indices,
):  # fmt: skip
    """Ids of the known features of each token, in rows; returns how many.

    Slot s of definition d (``slots[d] <= s < slots[d + 1]``) reads source ``sources[s]``, ``shifts[s]`` tokens on. The
    values of source r begin at ``begins[r]`` with those of the marks and of what is missing; behind them is that of
    code c, and token t has code ``codes[owners[r], t]``. ``keys[0]`` and ``ids[0]`` are the table of features, the
    others those of tuples: ``keys[k]`` joins value k to the k values before it.
    """
    n = 0
    indptr[0] = 0
    for i in range(len(offsets) - 1):
        first, last = offsets[i], offsets[i + 1]
        for t in range(first, last):
            for d in range(len(skeletons)):
                code = np.int32(-1 if edge and t == first else 0)
                for s in range(slots[d], slots[d + 1]):
                    if code < 0:
                        break
                    place, source, level = t + shifts[s], sources[s], s - slots[d]
                    if place < first:
                        entry = before + place - first
                    elif place >= last:
                        entry = before + place - last
                    else:
                        entry = n_marks + 1 + codes[owners[source], place]
                    value = values[begins[source] + entry]
                    if level == 0 or value < 0:
                        code = value
                    else:
                        code = find_pair(keys[level], ids[level], code, value)
                if code >= 0:
                    code = find_pair(keys[0], ids[0], skeletons[d], code)
                if code >= 0:
                    indices[n] = code
                    n += 1
            indptr[t + 1] = n
    return n


@kernel("int64(int64[::1], int64, int64[::1], int32[::1])")
def index_entries(entries, n_entries, keys, ids):
    """Fill an empty table with the entries; returns the first entry that is there already, or ``n_entries``."""
    mask = len(keys) - 1
    for i in range(n_entries):
        slot = probe(keys, entries[i], mask)
        if keys[slot] != -1:
            return i
        keys[slot] = entries[i]
        ids[slot] = i
    return n_entries


@kernel("int32(int32[::1], int32)")
def rank_of(rank, i):
    """Rank of an id; without ranks the id itself, and -1 of -1."""
    return i if i < 0 or len(rank) == 0 else rank[i]


@kernel("void(int32[:, ::1], int32[::1], int64[::1])")
def count_rows(table, rank, lengths):
    """Add to ``lengths`` how many of the ids ``table[:, t]`` are kept: have a rank >= 0."""
    for d in range(table.shape[0]):
        for t in range(table.shape[1]):
            if rank_of(rank, table[d, t]) >= 0:
                lengths[t] += 1


@kernel("void(int32[:, ::1], int32[::1], int64[::1], int32[::1])")
def fill_rows(table, rank, at, indices):
    """Write the kept ranks of ``table[:, t]`` to ``indices`` from ``at[t]`` on, and advance ``at[t]``."""
    for t in range(table.shape[1]):
        place = at[t]
        for d in range(table.shape[0]):
            kept = rank_of(rank, table[d, t])
            if kept >= 0:
                indices[place] = kept
                place += 1
        at[t] = place


@kernel("void(int32[::1], int64[::1], int32[::1], int64[::1], int32[::1])")
def fill_lists(owner, pointers, ranks, at, indices):
    """The same for lists: token t has the ranks of list ``owner[t]`` (-1: none)."""
    for t in range(len(owner)):
        if owner[t] >= 0:
            for p in range(pointers[owner[t]], pointers[owner[t] + 1]):
                indices[at[t]] = ranks[p]
                at[t] += 1


@kernel("void(int32[::1], int64[::1], int64[::1], int32[::1], boolean[::1], int32[::1])")
def mark_phrases(words, offsets, keys, ids, ends, marks):
    """Mark the longest phrases from left to right, without overlap: 0 on a first word, 1 inside, -1 elsewhere.

    ``(node + 1, word)`` -> id is the tree of phrases, node -1 its root; ``ends[id]`` tells where a phrase is complete.
    """
    for i in range(len(offsets) - 1):
        t = offsets[i]
        while t < offsets[i + 1]:
            node, here, last = np.int32(-1), t, t
            while here < offsets[i + 1] and words[here] >= 0:
                node = find_pair(keys, ids, np.int32(node + 1), words[here])
                if node < 0:
                    break
                here += 1
                if ends[node]:
                    last = here
            marks[t] = -1
            if last > t:
                marks[t] = 0
                marks[t + 1 : last] = 1
            t = max(last, t + 1)
