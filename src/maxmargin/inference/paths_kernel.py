"""The k best distinct outputs of a lattice, compiled.

Several paths may spell one output, so the k best paths may hold far fewer than k outputs. The search below goes through
the prefixes of outputs instead of paths: a *state* is a sequence of words together with all places where paths that
spell it may be, each with the score of the best of these paths. Prefixes are tried in the order of the best output that
begins with them, which the best completion of every node tells exactly. So no prefix is opened that does not belong to
one of the k best outputs, but for ties, and of those that wait no more are kept than outputs are still wanted.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel

ROUNDING = 1e-9  # relative: places whose best completion is below the worst kept output by more are left
FINISHED = -1


@register_jitable
def roomier(array, used, more):
    """An array that has room for ``more`` entries after the first ``used``: the same, or a larger copy."""
    if used + more <= array.shape[0]:
        return array
    larger = np.empty(2 * (used + more), array.dtype)
    larger[:used] = array[:used]
    return larger


@register_jitable
def reach_place(place, score, before, arc, item_at, item_place, item_score, item_before, item_arc, n):
    """Add a place to a new state, or improve its score; returns the number of items, and whether anything changed."""
    known = item_at[place]
    if known >= 0 and item_score[known] >= score:
        return n, False
    if known < 0:
        known, n = n, n + 1
        item_at[place], item_place[known] = known, place
    item_score[known], item_before[known], item_arc[known] = score, before, arc
    return n, True


@register_jitable
def wait(value, state, label, waiting, size, most, of_state, of_label):
    """Insert a prefix into the waiting ones, in rising order and at most so many; returns their number.

    Of equals, that of the newest state comes first, then that of the largest word: so the search goes straight to an
    end, and finds the same outputs in the same order whatever their number.
    """
    if size == most and (most == 0 or value < waiting[0]):
        return size
    at = size
    while at > 0 and (
        waiting[at - 1] > value or (waiting[at - 1] == value and (of_state[at - 1], of_label[at - 1]) > (state, label))
    ):
        at -= 1
    if size < most:
        for p in range(size, at, -1):
            waiting[p], of_state[p], of_label[p] = waiting[p - 1], of_state[p - 1], of_label[p - 1]
        size += 1
    else:
        if at == 0:
            return size
        at -= 1
        for p in range(at):
            waiting[p], of_state[p], of_label[p] = waiting[p + 1], of_state[p + 1], of_label[p + 1]
    waiting[at], of_state[at], of_label[at] = value, state, label
    return size


@kernel(
    "int64(int32[::1], int32[::1], int32[::1], float64[::1], int32[::1], int32[::1], int64, int32[:, ::1], "
    "float64[::1])",
    fast=False,
)
def distinct_outputs(begin, leaving, head, arc, word_begin, word, n_words, arcs_out, scores_out):
    """Write the best paths of the k best distinct outputs, best first, and return how many there are (at most k).

    The arcs that leave node v are ``leaving[begin[v] : begin[v + 1]]``; arc e leads to ``head[e]``, scores ``arc[e]``
    and says the words ``word[word_begin[e] : word_begin[e + 1]]``, numbers below ``n_words``. Paths go from node 0 to
    the last. ``arcs_out`` (k, L) receives the arcs of each path, -1 behind the last, ``scores_out`` is (k,).

    Complexity: O(N + E) for the best completions, then at most k times the longest output prefixes are opened, each in
    the time of the arcs that leave its places. Mohri, Riley 2002, An efficient algorithm for the n-best-strings
    problem.
    """
    n, k = begin.shape[0] - 1, scores_out.shape[0]
    rest = np.full(n, -np.inf)  # of each node: the best score from there to the end
    rest[n - 1] = 0.0
    n_silent = 0
    for v in range(n - 2, -1, -1):
        for p in range(begin[v], begin[v + 1]):
            e = leaving[p]
            rest[v] = max(rest[v], arc[e] + rest[head[e]])
            n_silent += word_begin[e] == word_begin[e + 1]
    if k == 0 or rest[0] == -np.inf:
        return 0
    owner = np.empty(word.shape[0], np.int32)  # of each word: its arc
    for e in range(head.shape[0]):
        owner[word_begin[e] : word_begin[e + 1]] = e

    # a place is a node, or n + the word to come inside an arc of several words
    item_at = np.full(n + word.shape[0], -1, np.int32)
    item_place, item_score = np.empty(256, np.int32), np.empty(256)
    item_before, item_arc = np.empty(256, np.int32), np.empty(256, np.int32)
    state_begin = np.zeros(256, np.int64)
    waiting, of_state, of_label = np.empty(k), np.empty(k, np.int64), np.empty(k, np.int64)
    top, named = np.full(n_words, -np.inf), np.empty(n_words, np.int32)
    items, states, size, found = 0, 0, 0, 0
    parent, label, value = -1, FINISHED, rest[0]
    while True:
        # the state of the prefix: at first the empty one
        least = -np.inf
        if size == k - found - 1:  # with this prefix, as many as are wanted: none below the worst is needed any more
            least = waiting[0] if size > 0 else value
            least -= ROUNDING * (abs(least) + 1.0)
        more = 1 + n_silent
        if parent >= 0:
            for i in range(state_begin[parent], state_begin[parent + 1]):
                v = item_place[i]
                more += begin[v + 1] - begin[v] if v < n else 1
        item_place, item_score = roomier(item_place, items, more), roomier(item_score, items, more)
        item_before, item_arc = roomier(item_before, items, more), roomier(item_arc, items, more)
        state_begin = roomier(state_begin, states + 1, 1)
        first = items
        if parent < 0:
            items, _ = reach_place(0, 0.0, -1, -1, item_at, item_place, item_score, item_before, item_arc, items)
        else:
            for i in range(state_begin[parent], state_begin[parent + 1]):
                v = item_place[i]
                if v >= n:
                    s = v - n
                    if word[s] == label:
                        e = owner[s]
                        place = head[e] if s + 1 == word_begin[e + 1] else v + 1
                        if item_score[i] + rest[head[e]] >= least:
                            items, _ = reach_place(
                                place, item_score[i], i, -1, item_at, item_place, item_score, item_before, item_arc,
                                items,
                            )  # fmt: skip
                    continue
                for p in range(begin[v], begin[v + 1]):
                    e = leaving[p]
                    s = word_begin[e]
                    if s == word_begin[e + 1] or word[s] != label:
                        continue
                    score = item_score[i] + arc[e]
                    if score + rest[head[e]] >= least and score > -np.inf:
                        place = head[e] if s + 1 == word_begin[e + 1] else n + s + 1
                        items, _ = reach_place(
                            place, score, i, e, item_at, item_place, item_score, item_before, item_arc, items
                        )
        changed = n_silent > 0
        while changed:
            changed, i = False, first
            while i < items:
                v = item_place[i]
                for p in range(begin[v] if v < n else 0, begin[v + 1] if v < n else 0):
                    e = leaving[p]
                    if word_begin[e] == word_begin[e + 1] and arc[e] > -np.inf:
                        items, better = reach_place(
                            head[e], item_score[i] + arc[e], i, e, item_at, item_place, item_score, item_before,
                            item_arc, items,
                        )  # fmt: skip
                        changed = changed or better
                i += 1
        for i in range(first, items):
            item_at[item_place[i]] = -1
        state = states
        states += 1
        state_begin[states] = items

        # the prefixes that are one word longer, by how much less the best output that begins with each scores than that
        # of this state: the best one has the value of the state itself, whatever rounding does, and comes next
        n_named, most, finished = 0, -np.inf, -np.inf
        for i in range(first, items):
            v = item_place[i]
            if v == n - 1:
                finished = item_score[i]
                most = max(most, finished)
                continue
            inside = v >= n
            for p in range(0 if inside else begin[v], 1 if inside else begin[v + 1]):
                e = owner[v - n] if inside else leaving[p]
                s = v - n if inside else word_begin[e]
                if s == word_begin[e + 1]:
                    continue
                reach, a = item_score[i] + (0.0 if inside else arc[e]) + rest[head[e]], word[s]
                if reach > top[a]:
                    if top[a] == -np.inf:
                        named[n_named] = a
                        n_named += 1
                    top[a] = reach
                    most = max(most, reach)
        if finished > -np.inf:
            size = wait(value - (most - finished), state, FINISHED, waiting, size, k - found, of_state, of_label)
        for p in range(n_named):
            a = named[p]
            size = wait(value - (most - top[a]), state, a, waiting, size, k - found, of_state, of_label)
            top[a] = -np.inf

        # the best one next; a finished one is an output
        while size > 0 and of_label[size - 1] == FINISHED:
            size -= 1
            i, length = state_begin[of_state[size]], 0
            while item_place[i] != n - 1:
                i += 1
            scores_out[found] = item_score[i]
            row = arcs_out[found]
            while i >= 0:
                if item_arc[i] >= 0:
                    row[length] = item_arc[i]
                    length += 1
                i = item_before[i]
            for p in range(length // 2):
                row[p], row[length - 1 - p] = row[length - 1 - p], row[p]
            row[length:] = -1
            found += 1
        if size == 0:
            return found
        size -= 1
        parent, label, value = of_state[size], of_label[size], waiting[size]
