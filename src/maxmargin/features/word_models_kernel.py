"""Compiled expectation steps of three word alignment models, each in both directions at once, trained to agree.

A bitext is flat: sentence pair s has ``n = left[s + 1] - left[s]`` and ``m = right[s + 1] - right[s]`` words, and
``cells[at[s] + i m + j]`` is the entry of its word pair (i, j) in the lexicon, a table with t(right | left) and
t(left | right) for every pair of words that occurs in some sentence pair.

Model 1: a word chooses its partner, or none, by t alone. Model 2: by t and by place; place[d + REACH] for a partner
that is d tenths of the sentence away from the diagonal. Hidden Markov model: the partners of neighbouring words are
near each other, place[d + REACH] for a step of d. Both directions are weighed by the product of their posteriors, which
makes them agree, or each learns by itself. Brown et al. 1993, The mathematics of statistical machine translation.
Vogel, Ney, Tillmann 1996, HMM-based word alignment. Liang, Taskar, Klein 2006, Alignment by agreement. Dyer, Chahuneau,
Smith 2013, A simple, fast, and effective reparameterization of IBM model 2.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel

ONE, TWO, MARKOV = 1, 2, 3  # the models
REACH = 10  # jumps that are longer count as this long
TINY = 1e-300
UNKNOWN_PAIR, UNKNOWN_WORD = 1e-7, 1e-6  # t of a pair, and of a word without a partner, that no training text has
_BITEXT = "int64[::1], int64[::1], int64[::1], int32[::1], int32[::1], int32[::1]"


@register_jitable
def choose(n, m, t, null, out):
    """Posteriors of model 1: out[j, i] of word j's partner being i, when t (m, n) and null (m,) compete for j."""
    for j in range(m):
        total = null[j] + TINY
        for i in range(n):
            total += t[j, i]
        for i in range(n):
            out[j, i] = t[j, i] / total


@register_jitable
def tenths(i, n, j, m):
    """How far the pair (i, j) of n and m words is from the diagonal, in tenths of a sentence: -REACH to REACH."""
    return int(np.rint(REACH * ((i + 0.5) / n - (j + 0.5) / m)))


@register_jitable
def choose_near(n, m, t, null, place, absent, out, counts, row):
    """Posteriors (m, n) of model 2, and expected places added to ``counts``. O(m n)."""
    for j in range(m):
        total = TINY
        for i in range(n):
            row[i] = place[tenths(i, n, j, m) + REACH]
            total += row[i]
        weight = absent * null[j] + TINY
        for i in range(n):
            out[j, i] = (1.0 - absent) * row[i] / total * t[j, i]
            weight += out[j, i]
        for i in range(n):
            out[j, i] /= weight
            counts[tenths(i, n, j, m) + REACH] += out[j, i]


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
def walk(n, m, t, null, jump, absent, out, counts, forward, backward, steps, pairs, ahead):
    """Posteriors (m, n) of the hidden Markov model, and expected jumps added to ``counts``.

    The partner k of a word is real, ``forward[j, k]``, or remembered while the word has none, ``forward[j, n + k]``.
    ``steps[i, k]`` is the probability to go from i to k; ``pairs[i, k]`` gathers how often that is expected. O(m n^2).
    """
    for i in range(n):
        jump_row(n, jump, i, steps[i])
        pairs[i, :n] = 0.0
    jump_row(n, jump, -1, ahead)
    for j in range(m):
        if j > 0:
            ahead[:n] = 0.0
            for i in range(n):
                before = forward[j - 1, i] + forward[j - 1, n + i]
                for k in range(n):
                    ahead[k] += before * steps[i, k]
        total = TINY
        for k in range(n):
            stay = 1.0 / n if j == 0 else forward[j - 1, k] + forward[j - 1, n + k]
            forward[j, k] = (1.0 - absent) * ahead[k] * t[j, k]
            forward[j, n + k] = absent * stay * null[j]
            total += forward[j, k] + forward[j, n + k]
        for k in range(2 * n):
            forward[j, k] /= total
    backward[m - 1, : 2 * n] = 1.0
    for j in range(m - 1, -1, -1):
        total = TINY
        for k in range(2 * n):
            total += forward[j, k] * backward[j, k]
        for k in range(n):
            out[j, k] = forward[j, k] * backward[j, k] / total
        if j == 0:
            break
        for k in range(n):
            ahead[k] = (1.0 - absent) * t[j, k] * backward[j, k]
        total = share = TINY
        for i in range(n):
            value = absent * null[j] * backward[j, n + i]
            for k in range(n):
                value += steps[i, k] * ahead[k]
            backward[j - 1, i] = backward[j - 1, n + i] = value
            total += value
            share += value * (forward[j - 1, i] + forward[j - 1, n + i])
        for i in range(n):
            before = (forward[j - 1, i] + forward[j - 1, n + i]) / share
            for k in range(n):
                pairs[i, k] += before * ahead[k]
        for k in range(2 * n):
            backward[j - 1, k] /= total
    for i in range(n):
        for k in range(n):
            counts[min(max(k - i, -REACH), REACH) + REACH] += pairs[i, k] * steps[i, k]


@register_jitable
def chances_of_none(words, chances, null):
    """The chance of each word to have no partner."""
    for k in range(len(words)):
        null[k] = chances[words[k]] if words[k] >= 0 else UNKNOWN_WORD


@register_jitable
def align(model, n, m, t, null, place, absent, out, counts, forward, backward, steps, pairs, ahead):
    """Posteriors (m, n) of a model, in one direction; expected places or jumps are added to ``counts``."""
    if model == MARKOV:
        walk(n, m, t, null, place, absent, out, counts, forward, backward, steps, pairs, ahead)
    elif model == TWO:
        choose_near(n, m, t, null, place, absent, out, counts, ahead)
    else:
        choose(n, m, t, null, out)


@kernel(
    f"void({_BITEXT}, float64[:, ::1], float64[::1], float64[::1], float64[:, ::1], int64, float64, boolean, "
    "float64[:, ::1], float64[::1], float64[::1], float64[:, ::1], float64[:, ::1])"
)
def expect(
    left, right, at, left_words, right_words, cells, t, none_right, none_left, places, model, absent, agree, counts,
    count_right, count_left, place_counts, posteriors,
):  # fmt: skip
    """One expectation step over all sentence pairs by a model, which both directions ``agree`` upon or not.

    ``t`` (2, entries): t(right | left) and t(left | right). ``none_right``, ``none_left``: t of each word without a
    partner. ``places`` (2, 2 REACH + 1): of partners in model 2, of steps in the Markov model. The counts receive
    expected numbers; ``posteriors`` (2, cells), where there is room, what each direction says of every cell.
    """
    longest = 1
    for s in range(len(at) - 1):
        longest = max(longest, left[s + 1] - left[s], right[s + 1] - right[s])
    both = np.empty((4, longest * longest))
    null = np.empty(longest)
    forward, backward = np.empty((longest, 2 * longest)), np.empty((longest, 2 * longest))
    steps, pairs, ahead = np.empty((longest, longest)), np.empty((longest, longest)), np.empty(longest)
    for s in range(len(at) - 1):
        n, m = left[s + 1] - left[s], right[s + 1] - right[s]
        if n == 0 or m == 0:
            continue
        there, back = both[0, : n * m].reshape(m, n), both[1, : n * m].reshape(n, m)
        p, q = both[2, : n * m].reshape(m, n), both[3, : n * m].reshape(n, m)
        for i in range(n):
            for j in range(m):
                c = cells[at[s] + i * m + j]
                there[j, i] = t[0, c] if c >= 0 else UNKNOWN_PAIR
                back[i, j] = t[1, c] if c >= 0 else UNKNOWN_PAIR
        chances_of_none(right_words[right[s] : right[s + 1]], none_right, null)
        align(model, n, m, there, null, places[0], absent, p, place_counts[0], forward, backward, steps, pairs, ahead)
        chances_of_none(left_words[left[s] : left[s + 1]], none_left, null)
        align(model, m, n, back, null, places[1], absent, q, place_counts[1], forward, backward, steps, pairs, ahead)
        for i in range(n):
            for j in range(m):
                c = cells[at[s] + i * m + j]
                if c >= 0 and counts.shape[1] > 0:
                    counts[0, c] += p[j, i] * (q[i, j] if agree else 1.0)
                    counts[1, c] += q[i, j] * (p[j, i] if agree else 1.0)
                if posteriors.shape[1] > 0:
                    posteriors[0, at[s] + i * m + j] = p[j, i]
                    posteriors[1, at[s] + i * m + j] = q[i, j]
        if counts.shape[1] > 0:
            for j in range(m):
                rest = 1.0
                for i in range(n):
                    rest -= p[j, i]
                count_right[right_words[right[s] + j]] += max(rest, 0.0)
            for i in range(n):
                rest = 1.0
                for j in range(m):
                    rest -= q[i, j]
                count_left[left_words[left[s] + i]] += max(rest, 0.0)
