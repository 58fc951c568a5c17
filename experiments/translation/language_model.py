"""A trigram language model with modified Kneser-Ney smoothing.

    p(w | u v) = max(c(u v w) - D(c(u v w)), 0) / c(u v) + g(u v) p(w | v)
    g(u v)     = (D1 N1(u v) + D2 N2(u v) + D3 N3+(u v)) / c(u v)

N_k(u v) counts the words that follow u v exactly k times (3+: at least 3 times). Lower orders look the same, with the
number of different words before an n-gram in place of how often it comes (but for those that begin a sentence, which
have no word before), and below single words all words are equally likely. Discounts of every order come from n_k, the
number of n-grams seen k times: ``Y = n1 / (n1 + 2 n2)``, ``D_k = k - (k + 1) Y n_{k+1} / n_k``. Chen, Goodman 1998, An
empirical study of smoothing techniques for language modeling.

Sentences begin with two marks of their own and end with a word </s>; unknown words are one word, <unk>.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from maxmargin.kernel import kernel

__all__ = ["BEGIN", "END", "UNKNOWN", "LanguageModel", "Tables", "log_probability"]

UNKNOWN, BEGIN, END = 0, 1, 2
MARKS = ("<unk>", "<s>", "</s>")
BITS = 20  # of a word in a key
TABLES = "Tuple((int64[::1], float64[::1], int64[::1], float64[::1], float64[::1], float64[::1], float64[::1]))"


class Tables(NamedTuple):
    """What :func:`log_probability` reads: hashed n-grams seen in training, and all words."""

    trigrams: np.ndarray  # keys, -1 where empty; a power of two of them
    trigram_logs: np.ndarray  # ln p(w | u v)
    bigrams: np.ndarray
    bigram_logs: np.ndarray  # ln p(w | v)
    bigram_backoff: np.ndarray  # ln g(u v)
    word_logs: np.ndarray  # ln p(w)
    word_backoff: np.ndarray  # ln g(v)


@kernel("int64(int64[::1], int64)")
def slot(keys, key):  # type: ignore[no-untyped-def]
    """Where a key is, or the empty place where it would go."""
    mask = len(keys) - 1
    at = (key ^ (key >> 29)) * 0x2545F4914F6CDD1D
    at = (at ^ (at >> 32)) & mask
    while keys[at] != -1 and keys[at] != key:
        at = (at + 1) & mask
    return at


@kernel("void(int64[::1], float64[:, ::1], int64[::1], float64[:, ::1])")
def insert(keys, values, table, table_values):  # type: ignore[no-untyped-def]
    """Put rows of values at the slots of their keys."""
    for i in range(len(keys)):
        at = slot(table, keys[i])
        table[at] = keys[i]
        table_values[at] = values[i]


@kernel(f"float64({TABLES}, int64, int64, int64)")
def log_probability(tables, u, v, w):  # type: ignore[no-untyped-def]
    """ln p(w | u v); words from ``len(word_logs)`` on are unknown."""
    trigrams, trigram_logs, bigrams, bigram_logs, bigram_backoff, word_logs, word_backoff = tables
    n = len(word_logs)
    u, v, w = u if u < n else 0, v if v < n else 0, w if w < n else 0
    context = (u << 20) | v
    at = slot(trigrams, (context << 20) | w)
    if trigrams[at] >= 0:
        return trigram_logs[at]
    found = 0.0
    at = slot(bigrams, context)
    if bigrams[at] >= 0:
        found += bigram_backoff[at]
    at = slot(bigrams, (v << 20) | w)
    if bigrams[at] >= 0:
        return found + bigram_logs[at]
    return found + word_backoff[v] + word_logs[w]


class LanguageModel:
    """Counts of a corpus as probabilities.

    Parameters
    ----------
    sentences : iterable of sequences of str
    """

    def __init__(self, sentences: Iterable[Sequence[str]]) -> None:
        self.number = {mark: i for i, mark in enumerate(MARKS)}
        ids = []
        for words in sentences:
            ids += [BEGIN, BEGIN, *(self.number.setdefault(word, len(self.number)) for word in words), END]
        if not ids:
            raise ValueError("there are no sentences to learn a language model from; give some.")
        text, V = np.array(ids, np.int64), len(self.number)
        if V >= 1 << BITS:
            raise ValueError(f"the corpus has {V} different words; at most {(1 << BITS) - 1} are possible.")
        starts = np.flatnonzero(text[2:] != BEGIN)  # trigrams that end in a word
        u, v, w = text[starts], text[starts + 1], text[starts + 2]
        trigrams, counts = np.unique(_key(_key(u, v), w), return_counts=True)
        bigrams, before = np.unique(trigrams & _mask(2 * BITS), return_counts=True)  # different words before
        first = bigrams >> BITS == BEGIN
        before[first] = np.unique(_key(v, w)[v == BEGIN], return_counts=True)[
            1
        ]  # has no word before: how often it comes
        words, different = np.unique(bigrams & _mask(BITS), return_counts=True)

        p1 = np.full(V, 0.0)
        shares, backoff = _discounted(np.zeros(len(words), np.int64), different)
        p1[words] = shares
        p1 += backoff[0] / (V - 1)  # every word but the mark of the beginning
        p1[BEGIN] = 0.0
        shares, g1 = _discounted(bigrams >> BITS, before, V)
        p2 = shares + g1[bigrams >> BITS] * p1[bigrams & _mask(BITS)]
        contexts, of = np.unique(trigrams >> BITS, return_inverse=True)
        shares, g2 = _discounted(of, counts)
        p3 = shares + g2[of] * p2[np.searchsorted(bigrams, trigrams & _mask(2 * BITS))]
        known = np.union1d(bigrams, contexts)  # two marks of the beginning are a context, but nothing predicts them
        rows = np.zeros((len(known), 2))
        rows[:, 0] = -np.inf
        rows[np.searchsorted(known, bigrams), 0] = np.log(p2)
        rows[np.searchsorted(known, contexts), 1] = np.log(g2)
        with np.errstate(divide="ignore"):
            word_logs, word_backoff = np.log(p1), np.log(g1)
        hashed3, values3 = _hashed(trigrams, np.log(p3)[:, None])
        hashed2, values2 = _hashed(known, rows)
        parts = (hashed3, values3[:, 0], hashed2, values2[:, 0], values2[:, 1], word_logs, word_backoff)
        self.tables = Tables(*(np.ascontiguousarray(part) for part in parts))

    @property
    def n_words(self) -> int:
        return len(self.number)

    def ids(self, words: Iterable[str]) -> list[int]:
        """Numbers of words."""
        return [self.number.get(word, UNKNOWN) for word in words]

    def log_probability(self, u: int, v: int, w: int) -> float:
        """ln p(w | u v) of numbers of words."""
        return float(log_probability(tuple(self.tables), u, v, w))

    def knows(self, u: int, v: int, w: int) -> bool:
        """Whether a trigram came in the corpus."""
        key = (((u << BITS) | v) << BITS) | w
        return bool(self.tables.trigrams[slot(self.tables.trigrams, key)] == key)

    def sentence(self, words: Iterable[str]) -> float:
        """ln p of a whole sentence, its end included."""
        text = [BEGIN, BEGIN, *self.ids(words), END]
        return sum(self.log_probability(*text[i : i + 3]) for i in range(len(text) - 2))


def discounts(counts: np.ndarray) -> np.ndarray:
    """D1, D2, D3+ of one order; k / 2 where the corpus is too small to tell."""
    n = np.bincount(np.minimum(counts, 5), minlength=6)[1:5].astype(float)
    if not n.all():
        return np.array([0.5, 1.0, 1.5])
    k, Y = np.arange(1, 4), n[0] / (n[0] + 2 * n[1])
    return np.clip(k - (k + 1) * Y * n[1:] / n[:-1], 0.0, k)


def _discounted(
    context: np.ndarray, counts: np.ndarray, n_contexts: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Discounted shares of n-grams in their contexts, and what the discounts leave of each context (1 without any)."""
    D = discounts(counts)[np.minimum(counts, 3) - 1]
    size = n_contexts if n_contexts is not None else int(context.max()) + 1
    total, left = np.bincount(context, counts, size), np.bincount(context, D, size)
    backoff = np.divide(left, total, out=np.ones(size), where=total > 0)
    return (counts - D) / total[context], backoff


def _hashed(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    size = 1 << int(2 * len(keys)).bit_length()
    table, rows = np.full(size, -1, np.int64), np.zeros((size, values.shape[1]))
    insert(keys, np.ascontiguousarray(values), table, rows)
    return table, rows


def _key(context: np.ndarray, word: np.ndarray) -> np.ndarray:
    return (context << BITS) | word


def _mask(bits: int) -> int:
    return (1 << bits) - 1
