"""Compiled search of the decoder, and the k best outputs of the lattice that it leaves.

A *stack* holds hypotheses that have translated the same source words: all up to position k, or all up to i and those
of [j, k), in which case the phrase of the gap [i, j) comes next (two adjacent phrases swap). Hypotheses of one stack
compete, so that no estimate of the rest is needed. A hypothesis is a *state*: the last two words, whether the last
phrase was swapped to its place, and whether the next phrase follows or jumps (a promise, kept by the next step, so that
the orientation after a phrase is known when it is taken). Hypotheses of equal state are one node of the lattice. The
distance of a derivation is the sum of all jumps between the end of a phrase and the beginning of the next, to the end
of the sentence too.
"""

from __future__ import annotations

import numpy as np
from language_model import BEGIN, END, TABLES, log_probability

from maxmargin.kernel import kernel

__all__ = ["k_best_distinct", "max_marginals", "search"]

OPTIONS = "int64[:, ::1], int64[::1], int64[::1], float64[::1], float64[:, ::1]"
CANDIDATE = 8  # columns of a candidate: tail, option, words u and v, flags, orientations before and after, distance


@kernel(f"float64({TABLES}, int64[::1], int64, int64, int64[::1])")
def words_score(tables, words, u, v, last):  # type: ignore[no-untyped-def]
    """ln p of words after u v; the two last words are left in ``last``."""
    total = 0.0
    for word in words:
        total += log_probability(tables, u, v, word)
        u, v = v, word
    last[0], last[1] = u, v
    return total


@kernel("int64(int64[:, ::1], float64[::1], int64, int64, float64, int64[::1], float64[::1], int64[::1])")
def keep_best(candidates, scores, n, beam, threshold, state, best, group):  # type: ignore[no-untyped-def]
    """Recombine candidates of equal state and keep the best states.

    ``state`` and ``best`` get one candidate and the score of each state kept, ``group`` (n,) the position of each
    candidate's state among them, or -1; returns how many are kept.
    """
    size = 16
    while size < 2 * n:
        size *= 2
    table, of = np.full(size, -1, np.int64), np.empty(size, np.int64)
    found = 0
    leader, top = np.empty(n, np.int64), np.empty(n)
    for c in range(n):
        key = (candidates[c, 2] << 26) | (candidates[c, 3] << 2) | candidates[c, 4]
        at = (key ^ (key >> 29)) * 0x2545F4914F6CDD1D
        at = (at ^ (at >> 32)) & (size - 1)
        while table[at] != -1 and table[at] != key:
            at = (at + 1) & (size - 1)
        if table[at] == -1:
            table[at], of[at] = key, found
            leader[found], top[found] = c, scores[c]
            found += 1
        elif scores[c] > top[of[at]]:
            leader[of[at]], top[of[at]] = c, scores[c]
        group[c] = of[at]
    order = np.argsort(-top[:found], kind="mergesort")
    place = np.full(found, -1, np.int64)
    kept = 0
    for g in order:
        if kept == beam or top[g] < top[order[0]] - threshold:
            break
        place[g] = kept
        state[kept], best[kept] = leader[g], top[g]
        kept += 1
    for c in range(n):
        group[c] = place[group[c]]
    return kept


@kernel(
    f"Tuple((int64[:, ::1], int64[:, ::1], float64[::1]))"
    f"({TABLES}, int64, int64, int64, {OPTIONS}, float64[::1], int64, int64, float64)"
)
def search(tables, n, longest, swapped, place, first, words, fixed, orientation, weights, beam, gap_beam, threshold):  # type: ignore[no-untyped-def]
    """Beam search over one sentence of n words; the lattice of all recombined hypotheses.

    Parameters
    ----------
    tables : of the language model
    n, longest, swapped : words of the sentence, of a phrase, and of a phrase that swaps
    place : int (n, longest + 1): options of span [i, i + l) are place[i, l - 1] to place[i, l]
    first, words : words of option o are words[first[o]:first[o + 1]]
    fixed : float (n_options,): the part of an option's score that depends on nothing else
    orientation : float (n_options, 6): weighted logs of the orientations before and after
    weights : of the language model and of the distance
    beam, gap_beam, threshold : states of a stack, of a stack with a gap, and how far they may fall behind its best

    Returns
    -------
    nodes : int (N, 4): words u and v, flags, stack position; 0 is the beginning, N - 1 the end (unless there is none)
    arcs : int (A, 6): tail, head, option, orientations before and after, distance
    language : float (A,): ln p of the words of each arc
    """
    nodes, score = np.empty((1024, 4), np.int64), np.empty(1024)
    arcs, language = np.empty((4096, 6), np.int64), np.empty(4096)
    nodes[0, 0], nodes[0, 1], nodes[0, 2], nodes[0, 3] = BEGIN, BEGIN, 0, 0
    nodes[1, 0], nodes[1, 1], nodes[1, 2], nodes[1, 3] = BEGIN, BEGIN, 1, 0
    score[0] = score[1] = 0.0
    n_nodes, n_arcs = 2, 0
    # where the nodes of each stack lie: without a gap [k], with one [i, j - i, k - j]
    prefix = np.zeros((n + 1, 2), np.int64)
    prefix[0, 1] = 2
    gaps = np.zeros((n, swapped + 1, swapped + 1, 2), np.int64)
    last = np.empty(2, np.int64)
    for k in range(n + 1):
        # the stack without a gap, and then those with one that begin here: their sizes first
        for job in range(-1, swapped * swapped):
            candidates = np.empty((0, CANDIDATE), np.int64)
            value, logs = np.empty(0), np.empty(0)
            count = 0
            width, gap = 0, 0
            if job >= 0:
                width, gap = job % swapped + 1, job // swapped + 1
                if k + gap + width > n:
                    continue
            for fill in range(2):
                if fill == 1:
                    candidates, value, logs = np.empty((count, CANDIDATE), np.int64), np.empty(count), np.empty(count)
                    count = 0
                for source in range(longest if job < 0 else 1):
                    for inner in range(-1, swapped if job < 0 else 0):
                        # which tails, which options
                        if job < 0 and inner < 0:  # the next phrase, of source + 1 words
                            i = k - source - 1
                            if i < 0:
                                continue
                            begin, end, at, size = prefix[i, 0], prefix[i, 1], i, source + 1
                        elif job < 0:  # the phrase of a gap of source + 1 words, followed by inner + 1 translated ones
                            i = k - (source + 1) - (inner + 1)
                            if i < 0 or source >= swapped:
                                continue
                            begin, end = gaps[i, source + 1, inner + 1, 0], gaps[i, source + 1, inner + 1, 1]
                            at, size = i, source + 1
                        else:  # a phrase behind the gap
                            begin, end, at, size = prefix[k, 0], prefix[k, 1], k + gap, width
                        low, high = place[at, size - 1], place[at, size]
                        promises = 1 if job >= 0 or k >= n - 1 else 2
                        if fill == 0:
                            count += (end - begin) * (high - low) * promises
                            continue
                        for tail in range(begin, end):
                            jumps = nodes[tail, 2] & 1
                            if inner < 0 and jumps != (job >= 0):
                                continue
                            moved = nodes[tail, 2] >> 1
                            for o in range(low, high):
                                before, after, distance, now_moved = 0, 0, 0, 0
                                if job >= 0:
                                    before, after, distance = 2, 1, gap
                                elif inner >= 0:
                                    before, after, distance, now_moved = 1, 2, size + 2 * (inner + 1), 1
                                else:
                                    before = 2 if moved else 0
                                log = words_score(
                                    tables, words[first[o] : first[o + 1]], nodes[tail, 0], nodes[tail, 1], last
                                )
                                if job < 0 and k == n:
                                    log += log_probability(tables, last[0], last[1], END)
                                    last[0], last[1], now_moved = END, END, 0
                                base = score[tail] + fixed[o] + weights[0] * log - weights[1] * distance
                                base += orientation[o, before]
                                for promise in range(promises):
                                    right = 2 if job < 0 and inner < 0 and promise == 1 else after
                                    row = candidates[count]
                                    row[0], row[1], row[2], row[3] = tail, o, last[0], last[1]
                                    row[4] = 2 * now_moved + promise
                                    row[5], row[6], row[7] = before, right, distance
                                    value[count] = base + orientation[o, 3 + right]
                                    logs[count] = log
                                    count += 1
            if count == 0:
                continue
            room = min(count, beam if job < 0 else gap_beam)
            state, best, group = np.empty(room, np.int64), np.empty(room), np.empty(count, np.int64)
            kept = keep_best(candidates, value, count, room, threshold, state, best, group)
            while n_nodes + kept > len(nodes):
                nodes, score = (
                    np.concatenate((nodes, np.empty_like(nodes))),
                    np.concatenate((score, np.empty_like(score))),
                )
            for s in range(kept):
                nodes[n_nodes + s, 0], nodes[n_nodes + s, 1] = candidates[state[s], 2], candidates[state[s], 3]
                nodes[n_nodes + s, 2], nodes[n_nodes + s, 3] = candidates[state[s], 4], k
                score[n_nodes + s] = best[s]
            for c in range(count):
                if group[c] < 0:
                    continue
                if n_arcs == len(arcs):
                    arcs, language = (
                        np.concatenate((arcs, np.empty_like(arcs))), np.concatenate((language, np.empty_like(language)))
                    )  # fmt: skip
                row = arcs[n_arcs]
                row[0], row[1], row[2] = candidates[c, 0], n_nodes + group[c], candidates[c, 1]
                row[3], row[4], row[5] = candidates[c, 5], candidates[c, 6], candidates[c, 7]
                language[n_arcs] = logs[c]
                n_arcs += 1
            if job < 0:
                prefix[k, 0], prefix[k, 1] = n_nodes, n_nodes + kept
            else:
                gaps[k, gap, width, 0], gaps[k, gap, width, 1] = n_nodes, n_nodes + kept
            n_nodes += kept
    return nodes[:n_nodes].copy(), arcs[:n_arcs].copy(), language[:n_arcs].copy()


@kernel("void(int64, int64[::1], int64[::1], float64[::1], float64[::1])")
def max_marginals(n_nodes, tails, heads, scores, out):  # type: ignore[no-untyped-def]
    """Score of the best path through each arc; arcs in order of their heads, -inf where no path leads to the end."""
    forward, backward = np.full(n_nodes, -np.inf), np.full(n_nodes, -np.inf)
    forward[0], backward[n_nodes - 1] = 0.0, 0.0
    for a in range(len(tails)):
        forward[heads[a]] = max(forward[heads[a]], forward[tails[a]] + scores[a])
    for a in range(len(tails) - 1, -1, -1):
        backward[tails[a]] = max(backward[tails[a]], backward[heads[a]] + scores[a])
    for a in range(len(tails)):
        out[a] = forward[tails[a]] + scores[a] + backward[heads[a]]


@kernel(
    "int64(int64, int64[::1], int64[::1], float64[::1], int64[::1], int64[::1], int64, "
    "float64[:, ::1], int64[:, ::1], int64[:, ::1], uint64[:, ::1], int64[::1])"
)
def k_best_distinct(n_nodes, begin, tails, scores, first, words, k, best, arc, rank, hashed, count):  # type: ignore[no-untyped-def]
    """The k best paths with distinct words to every node; the number of those to the last.

    Arcs lie in order of heads, those into node v from ``begin[v]`` to ``begin[v + 1]``. Path r to node v has score
    best[v, r], ends in arc[v, r] and continues path rank[v, r] of its tail. Two paths with the same words to one node
    have the same continuations, so that only the better one is kept: the result is exact (but for equal hashes of
    different words, 64 bits). A heap holds the next path of every arc: O(A k log) at most, far less in practice.
    """
    best[0, 0], arc[0, 0], rank[0, 0], hashed[0, 0], count[0] = 0.0, -1, -1, np.uint64(1469598103934665603), 1
    prime = np.uint64(1099511628211)
    for v in range(1, n_nodes):
        low, high = begin[v], begin[v + 1]
        heap, key, next_rank = np.empty(high - low, np.int64), np.empty(high - low), np.zeros(high - low, np.int64)
        size = 0
        for a in range(low, high):
            if count[tails[a]] == 0:
                continue
            key[a - low] = best[tails[a], 0] + scores[a]
            at = size
            size += 1
            while at > 0 and key[heap[(at - 1) // 2]] < key[a - low]:
                heap[at] = heap[(at - 1) // 2]
                at = (at - 1) // 2
            heap[at] = a - low
        found = 0
        while size > 0 and found < k:
            top = heap[0]
            a, r = low + top, next_rank[top]
            h = hashed[tails[a], r]
            for i in range(first[a], first[a + 1]):
                h = (h ^ np.uint64(words[i] + 1)) * prime
                h ^= h >> np.uint64(29)
            new = True
            for seen in range(found):
                if hashed[v, seen] == h:
                    new = False
                    break
            if new:
                best[v, found], arc[v, found], rank[v, found], hashed[v, found] = key[top], a, r, h
                found += 1
            if r + 1 < count[tails[a]]:
                next_rank[top] = r + 1
                key[top] = best[tails[a], r + 1] + scores[a]
                moving = top
            else:
                size -= 1
                moving = heap[size]
            at = 0
            while True:
                child = 2 * at + 1
                if child >= size:
                    break
                if child + 1 < size and key[heap[child + 1]] > key[heap[child]]:
                    child += 1
                if key[heap[child]] <= key[moving]:
                    break
                heap[at] = heap[child]
                at = child
            if size > 0:
                heap[at] = moving
        count[v] = found
    return count[n_nodes - 1]
