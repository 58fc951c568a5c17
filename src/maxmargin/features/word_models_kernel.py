"""Compiled expectation steps of two word alignment models, each in both directions at once, trained to agree.

A bitext is flat: sentence pair s has ``n = left[s + 1] - left[s]`` and ``m = right[s + 1] - right[s]`` words, and
``cells[at[s] + i m + j]`` is the entry of its word pair (i, j) in the lexicon, a table with t(right | left) and
t(left | right) for every pair of words that occurs in some sentence pair.

Model 1: a word chooses its partner, or none, by t alone. Hidden Markov model: the partners of neighbouring words are
near each other, jump[d + REACH] for a step of d. Both directions are weighed by the product of their posteriors, which
makes them agree. Brown et al. 1993, The mathematics of statistical machine translation. Vogel, Ney, Tillmann 1996,
HMM-based word alignment. Liang, Taskar, Klein 2006, Alignment by agreement.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel

REACH = 10  # jumps that are longer count as this long
TINY = 1e-300
_BITEXT = "int64[::1], int64[::1], int64[::1], int32[::1], int32[::1], int32[::1]"


@register_jitable
def choose(n, m, t, null, out):
    """Posteriors of model 1: out[i, j] of word j's partner being i, when t (n, m) and null (m,) compete for j."""
    for j in range(m):
        total = null[j] + TINY
        for i in range(n):
            total += t[i, j]
        for i in range(n):
            out[i, j] = t[i, j] / total


@register_jitable
def jump_row(n, jump, i, row):
    """Probabilities of the next partner after i (-1: at the start)."""
    total = TINY
    for k in range(n):
        row[k] = jump[min(max(k - i, -REACH), REACH) + REACH]
        total += row[k]
    for k in range(n):
        row[k] /= total


@register_jitable
def walk(n, m, t, null, jump, absent, out, counts, forward, backward, steps):
    """Posteriors of the hidden Markov model, and expected jumps added to ``counts``.

    States are the partner i, real (first n) or remembered while the word has none (last n). O(m n^2).
    """
    for i in range(n):
        jump_row(n, jump, i, steps[i])
    jump_row(n, jump, -1, steps[n])
    for j in range(m):
        total = TINY
        for k in range(n):
            come, stay = steps[n, k], 1.0 / n
            if j > 0:
                come, stay = 0.0, forward[j - 1, k] + forward[j - 1, n + k]
                for i in range(n):
                    come += (forward[j - 1, i] + forward[j - 1, n + i]) * steps[i, k]
            forward[j, k] = (1.0 - absent) * come * t[k, j]
            forward[j, n + k] = absent * stay * null[j]
            total += forward[j, k] + forward[j, n + k]
        for k in range(2 * n):
            forward[j, k] /= total
    backward[m - 1, : 2 * n] = 1.0
    for j in range(m - 2, -1, -1):
        total = TINY
        for i in range(n):
            value = absent * null[j + 1] * backward[j + 1, n + i]
            for k in range(n):
                value += (1.0 - absent) * steps[i, k] * t[k, j + 1] * backward[j + 1, k]
            backward[j, i] = backward[j, n + i] = value
            total += value
        for k in range(2 * n):
            backward[j, k] /= total
    for j in range(m):
        total = TINY
        for k in range(2 * n):
            total += forward[j, k] * backward[j, k]
        for k in range(n):
            out[k, j] = forward[j, k] * backward[j, k] / total
    for j in range(1, m):
        total = TINY
        for i in range(n):
            before = forward[j - 1, i] + forward[j - 1, n + i]
            total += before * absent * null[j] * backward[j, n + i]
            for k in range(n):
                total += before * (1.0 - absent) * steps[i, k] * t[k, j] * backward[j, k]
        for i in range(n):
            before = forward[j - 1, i] + forward[j - 1, n + i]
            for k in range(n):
                share = before * (1.0 - absent) * steps[i, k] * t[k, j] * backward[j, k] / total
                counts[min(max(k - i, -REACH), REACH) + REACH] += share


@kernel(
    f"void({_BITEXT}, float64[:, ::1], float64[::1], float64[::1], float64[:, ::1], float64, "
    "float64[:, ::1], float64[::1], float64[::1], float64[:, ::1], float64[:, ::1])"
)
def expect(
    left, right, at, left_words, right_words, cells, t, none_right, none_left, jumps, absent, counts, count_right,
    count_left, jump_counts, posteriors,
):  # fmt: skip
    """One expectation step over all sentence pairs, by model 1 where ``jumps`` is empty, else by the Markov model.

    ``t`` (2, entries): t(right | left) and t(left | right). ``none_right``, ``none_left``: t of each word without a
    partner. The counts receive expected numbers; ``posteriors`` (2, cells), where there is room, what each direction
    says of every cell.
    """
    longest = 1
    for s in range(len(at) - 1):
        longest = max(longest, left[s + 1] - left[s], right[s + 1] - right[s])
    both = np.empty((4, longest * longest))
    null = np.empty(longest)
    forward, backward = np.empty((longest, 2 * longest)), np.empty((longest, 2 * longest))
    steps = np.empty((longest + 1, longest))
    markov = jumps.shape[0] > 0
    for s in range(len(at) - 1):
        n, m = left[s + 1] - left[s], right[s + 1] - right[s]
        if n == 0 or m == 0:
            continue
        there, back = both[0, : n * m].reshape(n, m), both[1, : n * m].reshape(m, n)
        p, q = both[2, : n * m].reshape(n, m), both[3, : n * m].reshape(m, n)
        for i in range(n):
            for j in range(m):
                c = cells[at[s] + i * m + j]
                there[i, j] = t[0, c] if c >= 0 else 0.0
                back[j, i] = t[1, c] if c >= 0 else 0.0
        for j in range(m):
            word = right_words[right[s] + j]
            null[j] = none_right[word] if word >= 0 else TINY
        if markov:
            walk(n, m, there, null, jumps[0], absent, p, jump_counts[0], forward, backward, steps)
        else:
            choose(n, m, there, null, p)
        for i in range(n):
            word = left_words[left[s] + i]
            null[i] = none_left[word] if word >= 0 else TINY
        if markov:
            walk(m, n, back, null, jumps[1], absent, q, jump_counts[1], forward, backward, steps)
        else:
            choose(m, n, back, null, q)
        for i in range(n):
            for j in range(m):
                c = cells[at[s] + i * m + j]
                if c >= 0 and counts.shape[1] > 0:
                    counts[0, c] += p[i, j] * q[j, i]
                    counts[1, c] += p[i, j] * q[j, i]
                if posteriors.shape[1] > 0:
                    posteriors[0, at[s] + i * m + j] = p[i, j]
                    posteriors[1, at[s] + i * m + j] = q[j, i]
        if counts.shape[1] > 0:
            for j in range(m):
                rest = 1.0
                for i in range(n):
                    rest -= p[i, j]
                count_right[right_words[right[s] + j]] += max(rest, 0.0)
            for i in range(n):
                rest = 1.0
                for j in range(m):
                    rest -= q[j, i]
                count_left[left_words[left[s] + i]] += max(rest, 0.0)
