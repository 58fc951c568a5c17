"""Compiled features of word pairs; their names and meaning are in :mod:`maxmargin.features.alignment`."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from maxmargin.kernel import kernel

MARK, NUMBER = 1, 2  # kinds of words: without any letter or digit; with a digit
AGREES = 0.25  # of the product of two posteriors: each word is the other's likely partner
RARE = 3.0  # sentences
SHORTEST = 3  # letters of a common beginning that says something


@register_jitable
def beginning(letters, a, b, c, d):
    """How many letters two words have in common from their beginning on."""
    k = 0
    while a + k < b and c + k < d and letters[a + k] == letters[c + k]:
        k += 1
    return k


@register_jitable
def largest_two(table, n, m, rows, first, second):
    """The two largest numbers of each row (or column) of a table, 0 where there is none."""
    size = n if rows else m
    first[:size] = 0.0
    second[:size] = 0.0
    for i in range(n):
        for j in range(m):
            k = i if rows else j
            if table[i, j] > first[k]:
                second[k] = first[k]
                first[k] = table[i, j]
            elif table[i, j] > second[k]:
                second[k] = table[i, j]


@kernel(
    "void(int64[::1], int64[::1], int64[::1], int32[::1], float64[::1], float64[:, ::1], float64[:, ::1], "
    "float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], int8[::1], int8[::1], uint32[::1], int64[::1], "
    "int64[::1], float64[:, ::1])"
)
def fill_features(
    left, right, at, cells, dice, one, two, markov, logs, left_count, right_count, left_kind, right_kind, letters,
    left_at, right_at, out,
):  # fmt: skip
    """Features (cells, 27) of all word pairs of all sentence pairs. O(cells)."""
    longest = 1
    for s in range(len(at) - 1):
        longest = max(longest, left[s + 1] - left[s], right[s + 1] - right[s])
    both, association = np.empty((longest, longest)), np.empty((longest, longest))
    best = np.zeros((8, longest))  # and second best of rows and columns, of both tables
    for s in range(len(at) - 1):
        n, m = left[s + 1] - left[s], right[s + 1] - right[s]
        for i in range(n):
            for j in range(m):
                c = at[s] + i * m + j
                both[i, j] = np.sqrt(markov[0, c] * markov[1, c])
                association[i, j] = dice[c]
        largest_two(both, n, m, True, best[0], best[1])
        largest_two(both, n, m, False, best[2], best[3])
        largest_two(association, n, m, True, best[4], best[5])
        largest_two(association, n, m, False, best[6], best[7])
        for i in range(n):
            a, b = left_at[left[s] + i], left_at[left[s] + i + 1]
            kind, count = left_kind[left[s] + i], left_count[left[s] + i]
            for j in range(m):
                c = at[s] + i * m + j
                x, y = right_at[right[s] + j], right_at[right[s] + j + 1]
                other, number = right_kind[right[s] + j], right_count[right[s] + j]
                shared = beginning(letters, a, b, x, y)
                off = abs(i / n - j / m)
                row = out[c]
                row[0] = 1.0
                row[1] = dice[c]
                row[2] = dice[c] > 0.0 and dice[c] >= best[4, i] and dice[c] >= best[6, j]
                row[3], row[4] = one[0, c], one[1, c]
                row[5], row[6] = two[0, c], two[1, c]
                row[7], row[8] = markov[0, c], markov[1, c]
                row[9] = both[i, j]
                row[10] = markov[0, c] * markov[1, c] > AGREES
                row[11] = both[i - 1, j - 1] if i > 0 and j > 0 else 0.0
                row[12] = both[i + 1, j + 1] if i + 1 < n and j + 1 < m else 0.0
                row[13] = best[1, i] if both[i, j] == best[0, i] else best[0, i]
                row[14] = best[3, j] if both[i, j] == best[2, j] else best[2, j]
                row[15], row[16] = logs[0, c], logs[1, c]
                row[17] = cells[c] < 0
                row[18], row[19] = off, off * off
                row[20] = shared == b - a and shared == y - x
                row[21] = shared / max(b - a, y - x) if shared >= SHORTEST else 0.0
                row[22] = kind & NUMBER > 0 and other & NUMBER > 0
                row[23] = kind & MARK > 0 and other & MARK > 0
                row[24] = (kind & MARK > 0) != (other & MARK > 0)
                row[25] = count < RARE and number < RARE
                row[26] = abs(np.log1p(count) - np.log1p(number)) / 8.0
