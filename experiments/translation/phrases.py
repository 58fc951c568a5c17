"""Phrase pairs of a word-aligned bitext, with their probabilities and orientations.

A pair of spans is consistent with an alignment when it holds at least one link and no link leads out of it on one side
only (Och, Ney 2004; Koehn, Och, Marcu 2003, Statistical phrase-based translation). Of each phrase pair (f, e), in logs:

    p(e | f) = count(f, e) / count(f)         and p(f | e)
    lex(e | f) = prod_j mean of w(e_j | f_i) over the links (i, j) of word j, w(e_j | nothing) without one
    w(e | f) = links of words f and e / links of word f        and lex(f | e) the other way round

of the instance with the largest lexical weight; and six orientation probabilities (Tillmann 2004; Koehn et al. 2005):
where the phrase before it in the target language lies in the source, directly before it (monotone), directly after it
(swap) or elsewhere (other), and where the next one lies. They are smoothed towards those of all phrases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from maxmargin.kernel import kernel

__all__ = ["MONOTONE", "OTHER", "SWAP", "PhraseTable", "extract_spans", "phrase_table"]

MONOTONE, SWAP, OTHER = 0, 1, 2
LONGEST = 5  # words of a phrase
PRIOR = 2.0  # instances that smooth orientations
COLUMNS = 6  # of a pair of spans: source from, to, target from, to (to is behind the end), orientation before, after

Links = Iterable[tuple[int, int]]


@kernel("int64(int32[:, ::1], int64, int64, int64, int32[:, ::1])")
def spans_of_sentence(links, n_source, n_target, longest, out):  # type: ignore[no-untyped-def]
    """All consistent pairs of spans of one sentence pair as rows of ``out``, as far as there is room; their number."""
    first, last = np.full(n_target, n_source), np.full(n_target, -1)  # source words that a target word is linked to
    low, high = np.full(n_source, n_target), np.full(n_source, -1)
    linked = np.zeros((n_source + 2, n_target + 2), np.bool_)  # shifted by 1: the ends of both sentences are linked
    linked[0, 0] = linked[n_source + 1, n_target + 1] = True
    for at in range(len(links)):
        i, j = links[at, 0], links[at, 1]
        first[j], last[j] = min(first[j], i), max(last[j], i)
        low[i], high[i] = min(low[i], j), max(high[i], j)
        linked[i + 1, j + 1] = True
    found = 0
    for e1 in range(n_target):
        f1, f2 = n_source, -1
        for e2 in range(e1, min(e1 + longest, n_target)):
            f1, f2 = min(f1, first[e2]), max(f2, last[e2])
            if f2 < 0 or f2 - f1 >= longest:
                continue
            consistent = True
            for i in range(f1, f2 + 1):
                consistent = consistent and (high[i] < 0 or (low[i] >= e1 and high[i] <= e2))
            if not consistent:
                continue
            begin = f1
            while True:  # words without links may join at both ends
                end = f2
                while end - begin < longest:
                    if found < len(out):
                        out[found, 0], out[found, 1], out[found, 2], out[found, 3] = begin, end + 1, e1, e2 + 1
                        # in `linked`, rows begin and end + 2 are the words before and after the phrase
                        before = 0 if linked[begin, e1] else 1 if linked[end + 2, e1] else 2
                        after = 0 if linked[end + 2, e2 + 2] else 1 if linked[begin, e2 + 2] else 2
                        out[found, 4], out[found, 5] = before, after
                    found += 1
                    end += 1
                    if end == n_source or high[end] >= 0:
                        break
                begin -= 1
                if begin < 0 or high[begin] >= 0 or f2 - begin >= longest:
                    break
    return found


def extract_spans(links: Links, n_source: int, n_target: int, longest: int = LONGEST) -> np.ndarray:
    """All pairs of spans that are consistent with the links of a sentence pair, int32 (m, 6)."""
    pairs = np.array(sorted(links), np.int32).reshape(-1, 2)
    out = np.empty((4 * (n_source + n_target) + 16, COLUMNS), np.int32)
    while True:
        found = spans_of_sentence(pairs, n_source, n_target, longest, out)
        if found <= len(out):
            return out[:found]
        out = np.empty((found, COLUMNS), np.int32)


@dataclass(frozen=True)
class PhraseTable:
    """Phrase pairs by source phrase.

    Parameters
    ----------
    number : dict of tuple of str to int
        Source phrases.
    starts : int array (n_sources + 1,)
        Pairs of source phrase s are ``starts[s]`` to ``starts[s + 1]``, the likeliest first.
    targets : list of tuple of str, one per pair
    scores : float array (n_pairs, 4)
        Logs of p(e | f), p(f | e), lex(e | f), lex(f | e).
    orientations : float array (n_pairs, 6)
        Logs of monotone, swap, other before the phrase, and the same three after it.
    """

    number: dict[tuple[str, ...], int]
    starts: np.ndarray
    targets: list[tuple[str, ...]]
    scores: np.ndarray
    orientations: np.ndarray

    def __len__(self) -> int:
        return len(self.targets)

    def pairs(self, source: Sequence[str]) -> range:
        """Pairs of a source phrase."""
        s = self.number.get(tuple(source))
        return range(0) if s is None else range(int(self.starts[s]), int(self.starts[s + 1]))


def phrase_table(
    bitext: Sequence[tuple[Sequence[str], Sequence[str]]], links: Sequence[Links], longest: int = LONGEST
) -> PhraseTable:
    """Extract the phrase pairs of an aligned bitext; sorting takes O(m log m) for m pairs of spans."""
    if len(bitext) != len(links):
        raise ValueError(f"there are {len(bitext)} sentence pairs and links of {len(links)}; they must agree.")
    aligned = [sorted(pairs) for pairs in links]
    spans = [extract_spans(a, len(f), len(e), longest) for (f, e), a in zip(bitext, aligned, strict=True)]
    of = np.repeat(np.arange(len(spans)), [len(s) for s in spans])
    rows = np.concatenate(spans).astype(np.int64)
    lengths = [rows[:, 2 * side + 1] - rows[:, 2 * side] for side in (0, 1)]
    begins = [
        np.concatenate([[0], np.cumsum([len(pair[side]) for pair in bitext])])[of] + rows[:, 2 * side]
        for side in (0, 1)
    ]  # where both phrases begin in the texts of all sentences
    (source, sources), (target, targets) = (
        _numbered([pair[side] for pair in bitext], begins[side], lengths[side], longest) for side in (0, 1)
    )
    both, first, pair, count = np.unique(
        source * len(targets) + target, return_index=True, return_inverse=True, return_counts=True
    )
    scores = np.full((len(both), 4), -np.inf)
    scores[:, 0] = np.log(count / np.bincount(source)[source[first]])
    scores[:, 1] = np.log(count / np.bincount(target)[target[first]])
    for column, side in ((2, 1), (3, 0)):
        sums = np.concatenate([[0.0], np.cumsum(_lexical(bitext, aligned, side))])
        np.maximum.at(scores[:, column], pair, sums[begins[side] + lengths[side]] - sums[begins[side]])
    orientations = np.concatenate([_oriented(pair, rows[:, column], len(both)) for column in (4, 5)], axis=1)
    order = np.lexsort((-scores[:, 0], source[first]))
    starts = np.searchsorted(source[first][order], np.arange(len(sources) + 1))
    number = {phrase: s for s, phrase in enumerate(sources)}
    chosen = [targets[t] for t in target[first][order].tolist()]
    return PhraseTable(number, starts, chosen, scores[order], orientations[order])


def _numbered(
    sentences: Sequence[Sequence[str]], begin: np.ndarray, length: np.ndarray, longest: int
) -> tuple[np.ndarray, list[tuple[str, ...]]]:
    """Numbers of phrases, given where they are in the text, and the phrases.

    Phrases are numbered as in a trie: those of k + 1 words by the number of their first k and the word that follows.
    """
    vocabulary: dict[str, int] = {}
    flat = [word for words in sentences for word in words]
    text = np.array([vocabulary.setdefault(word, len(vocabulary) + 1) for word in flat] + [0] * longest, np.int64)
    number = np.zeros(len(begin), np.int64)
    for k in range(longest):
        word = np.where(k < length, text[begin + k], 0)
        _, first, number = np.unique(number * (len(vocabulary) + 1) + word, return_index=True, return_inverse=True)
    places = zip(begin[first].tolist(), length[first].tolist(), strict=True)
    return number, [tuple(flat[at : at + n]) for at, n in places]


def _lexical(bitext: Sequence[tuple[Sequence[str], Sequence[str]]], links: Sequence[Sequence], side: int) -> np.ndarray:
    """ln of the mean w(word | partner) over the links of every word of one side, all sentences one after the other.

    Every phrase pair around a word has all its links, so that the value does not depend on the phrase.
    """
    words: dict[str, int] = {}
    partners: dict[str, int] = {}
    word, partner, owner = [], [], []  # of every link; partner 0 is nothing
    at = 0
    for pair, linked in zip(bitext, links, strict=True):
        mine, theirs = pair[side], pair[1 - side]
        bare = set(range(len(mine)))
        for link in linked:
            j, i = link[side], link[1 - side]
            bare.discard(j)
            word.append(words.setdefault(mine[j], len(words)))
            partner.append(partners.setdefault(theirs[i], len(partners) + 1))
            owner.append(at + j)
        for j in bare:
            word.append(words.setdefault(mine[j], len(words)))
            partner.append(0)
            owner.append(at + j)
        at += len(mine)
    w, p, o = np.array(word, np.int64), np.array(partner, np.int64), np.array(owner, np.int64)
    _, which, count = np.unique(p * len(words) + w, return_inverse=True, return_counts=True)
    share = count[which] / np.bincount(p)[p]
    return np.log(np.bincount(o, share, at) / np.bincount(o, minlength=at))


def _oriented(pair: np.ndarray, orientation: np.ndarray, n_pairs: int) -> np.ndarray:
    """Smoothed logs (n_pairs, 3) of the orientations of each pair."""
    counts = np.bincount(3 * pair + orientation, minlength=3 * n_pairs).reshape(-1, 3).astype(float)
    prior = (counts.sum(axis=0) + 1.0) / (counts.sum() + 3.0)
    return np.log((counts + PRIOR * prior) / (counts.sum(axis=1, keepdims=True) + PRIOR))
