"""Scores of translations against references, BLEU and NIST, and whether two systems differ.

Statistics of single sentences add up to those of a corpus, so that tests of significance, tuning and pseudo-references
need not count n-grams again: :func:`bleu_statistics` counts, :func:`bleu_of` scores a sum of counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from html import unescape
from typing import NamedTuple

import numpy as np

__all__ = [
    "Bleu", "bleu", "bleu_of", "bleu_statistics", "nist", "paired_randomisation", "sentence_bleu", "tokens_13a",
]  # fmt: skip

ORDER = 4  # the longest n-grams of BLEU
NIST_ORDER = 5
SMOOTHINGS = ("exp", "add-one", "none")
_PUNCTUATION = re.compile(r"([{-~[-` -&(-+:-@/])")
_RULES = (
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)

Sentence = str | Sequence[str]
References = Iterable[Sentence | Sequence[Sentence]]


class Bleu(NamedTuple):
    """BLEU, from 0 to 100, and its parts."""

    score: float
    precisions: tuple[float, ...]  # of 1-grams, 2-grams, ..., in per cent
    brevity_penalty: float
    hypothesis_length: int
    reference_length: int


def tokens_13a(text: str) -> list[str]:
    """Words as the official script of the NIST evaluations, version 13a, splits them."""
    line = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    line = f" {unescape(line) if '&' in line else line} "
    line = _PUNCTUATION.sub(r" \1 ", line)
    for pattern, replacement in _RULES:
        line = pattern.sub(replacement, line)
    return line.split()


def bleu_statistics(
    hypotheses: Iterable[Sentence], references: References, tokenize: Callable[[str], list[str]] = tokens_13a
) -> np.ndarray:
    """Counts of every sentence, float64 (n, 10): lengths of hypothesis and reference, then matches and n-grams.

    Parameters
    ----------
    hypotheses : list of n texts, or lists of words
    references : list of n texts (lists of words), or of lists of several of them
        The reference whose length is nearest to that of the hypothesis gives the reference length; of two that are
        equally near, the shorter.
    tokenize : callable
        Splits texts; lists of words are taken as they are.
    """
    pairs = _aligned(hypotheses, references, tokenize)
    found = np.zeros((len(pairs), 2 + 2 * ORDER))
    for row, (words, truths) in zip(found, pairs, strict=True):
        nearest = min((abs(len(truth) - len(words)), len(truth)) for truth in truths)[1]
        row[:2] = len(words), nearest
        most: Counter[tuple[str, ...]] = Counter()
        for truth in truths:
            most |= _n_grams(truth, ORDER)
        for gram, count in _n_grams(words, ORDER).items():
            row[2 + ORDER + len(gram) - 1] += count
            row[2 + len(gram) - 1] += min(count, most[gram])
    return found


def bleu_of(statistics: np.ndarray, smoothing: str = "exp", effective_order: bool = False) -> Bleu:
    """BLEU of counts that were added up, (10,).

    Formula: ``min(1, exp(1 - reference / hypothesis length)) * (p_1 ... p_4)^(1/4)``. Papineni et al. 2002, BLEU: a
    method for automatic evaluation of machine translation.

    Parameters
    ----------
    statistics : array (10,)
        A row of :func:`bleu_statistics`, or a sum of rows.
    smoothing : {"exp", "add-one", "none"}
        Of precisions without a match: 1/2, 1/4, ... of a match ("exp"); or one match and one n-gram more from 2-grams
        on ("add-one").
    effective_order : bool
        Leave out n-grams that are longer than the hypothesis, for single sentences.
    """
    if smoothing not in SMOOTHINGS:
        raise ValueError(f"smoothing must be {', '.join(SMOOTHINGS)}; got {smoothing!r:.60}.")
    length, reference = float(statistics[0]), float(statistics[1])
    right, total = statistics[2 : 2 + ORDER].astype(float), statistics[2 + ORDER :].astype(float)
    penalty = 1.0 if length >= reference else float(np.exp(1.0 - reference / length)) if length > 0 else 0.0
    precisions = np.zeros(ORDER)
    used, halves = ORDER, 1.0
    if right.any():
        if smoothing == "add-one":
            right[1:], total[1:] = right[1:] + 1.0, total[1:] + 1.0
        for n in range(ORDER):
            if total[n] == 0:
                break
            used = n + 1 if effective_order else ORDER
            if right[n] == 0 and smoothing == "exp":
                halves *= 2.0
                precisions[n] = 100.0 / (halves * total[n])
            else:
                precisions[n] = 100.0 * right[n] / total[n]
    fine = (precisions[:used] > 0).all()
    score = penalty * float(np.exp(np.log(precisions[:used]).mean())) if fine else 0.0
    return Bleu(score, tuple(precisions.tolist()), penalty, int(length), int(reference))


def bleu(
    hypotheses: Iterable[Sentence], references: References, tokenize: Callable[[str], list[str]] = tokens_13a
) -> Bleu:
    """BLEU of a corpus, as sacrebleu computes it; arguments as in :func:`bleu_statistics`.

    Examples
    --------
    >>> from maxmargin.metrics import bleu
    >>> round(bleu(["the small house"], [["the small house", "the little house"]]).precisions[1])
    100
    """
    return bleu_of(bleu_statistics(hypotheses, references, tokenize).sum(axis=0))


def sentence_bleu(
    hypothesis: Sentence, references: Sentence | Sequence[Sentence], tokenize: Callable[[str], list[str]] = tokens_13a
) -> float:
    """Smoothed BLEU of one sentence, from 0 to 100."""
    return bleu_of(bleu_statistics([hypothesis], [references], tokenize)[0], effective_order=True).score


def nist(
    hypotheses: Iterable[Sentence], references: References, tokenize: Callable[[str], list[str]] = tokens_13a
) -> float:
    """NIST score of a corpus: matches weighted by how much an n-gram says.

    Formula: ``sum_n (information of matching n-grams / n-grams) * exp(beta ln^2 min(1, length / mean reference
    length))``, where an n-gram informs by ``log2`` of how often its first n - 1 words come in the references for each
    time that it comes, and beta makes the penalty 1/2 at two thirds of the length. Doddington 2002, Automatic
    evaluation of machine translation quality using n-gram co-occurrence statistics.
    """
    pairs = _aligned(hypotheses, references, tokenize)
    known: Counter[tuple[str, ...]] = Counter()
    for _, truths in pairs:
        for truth in truths:
            known.update(_n_grams(truth, NIST_ORDER))
    words_seen = sum(count for gram, count in known.items() if len(gram) == 1)
    gain, total = np.zeros(NIST_ORDER), np.zeros(NIST_ORDER)
    length = reference = 0.0
    for words, truths in pairs:
        length, reference = length + len(words), reference + float(np.mean([len(truth) for truth in truths]))
        most: Counter[tuple[str, ...]] = Counter()
        for truth in truths:
            most |= _n_grams(truth, NIST_ORDER)
        for gram, count in _n_grams(words, NIST_ORDER).items():
            total[len(gram) - 1] += count
            if most[gram]:
                before = known[gram[:-1]] if len(gram) > 1 else words_seen
                gain[len(gram) - 1] += min(count, most[gram]) * np.log2(before / known[gram])
    share = min(1.0, length / reference) if reference else 1.0
    if share == 0.0:
        return 0.0
    beta = np.log(0.5) / np.log(1.5) ** 2
    return float((gain / np.maximum(total, 1.0)).sum() * np.exp(beta * np.log(share) ** 2))


def paired_randomisation(
    first: np.ndarray,
    second: np.ndarray,
    score: Callable[[np.ndarray], float],
    trials: int = 10_000,
    random_state: int | None = 0,
) -> float:
    """How likely a difference of scores as large as that of two systems is if it does not matter who said what.

    The outputs of the two systems are swapped sentence by sentence at random, ``trials`` times; the result is the share
    of differences at least as large, the original one included. Riezler, Maxwell 2005, On some pitfalls in automatic
    evaluation and significance testing for MT.

    Parameters
    ----------
    first, second : array (n, d)
        Statistics of every sentence, such as those of :func:`bleu_statistics`.
    score : callable
        Of statistics that were added up (d,), such as ``lambda counts: bleu_of(counts).score``.
    """
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if first.ndim != 2 or first.shape != second.shape:
        raise ValueError(f"the statistics have shapes {first.shape} and {second.shape}; give both as (n, d).")
    if trials < 1:
        raise ValueError(f"trials is {trials}; ask for at least one.")
    rng = np.random.default_rng(random_state)
    total, change = first.sum(axis=0), second - first
    seen = abs(score(total) - score(second.sum(axis=0)))
    larger = 0
    for _ in range(trials):
        moved = change[rng.random(len(first)) < 0.5].sum(axis=0)
        a, b = score(total + moved), score(second.sum(axis=0) - moved)
        larger += abs(a - b) >= seen - 1e-12
    return (larger + 1) / (trials + 1)


def _aligned(
    hypotheses: Iterable[Sentence], references: References, tokenize: Callable[[str], list[str]]
) -> list[tuple[Sequence[str], list[Sequence[str]]]]:
    """The words of each hypothesis and of its references."""
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise TypeError("give lists of sentences; sentence_bleu compares single ones.")
    given, truths = list(hypotheses), list(references)
    if len(given) != len(truths):
        raise ValueError(f"there are {len(given)} hypotheses and references of {len(truths)}; they must agree.")
    found = []
    for i, (hypothesis, several) in enumerate(zip(given, truths, strict=True)):
        flat = isinstance(several, str) or (len(several) > 0 and _is_words(several) and not isinstance(hypothesis, str))
        sentences = [several] if flat else list(several)
        if not sentences:
            raise ValueError(f"example {i} has no reference; give at least one.")
        found.append((_words(hypothesis, tokenize), [_words(sentence, tokenize) for sentence in sentences]))
    return found


def _is_words(given: Sequence[object]) -> bool:
    return all(isinstance(word, str) for word in given)


def _words(sentence: object, tokenize: Callable[[str], list[str]]) -> Sequence[str]:
    if isinstance(sentence, str):
        return tokenize(sentence)
    if not isinstance(sentence, Sequence) or not _is_words(sentence):
        raise TypeError(f"a sentence is {sentence!r:.60}; give text or a list of words.")
    return sentence


def _n_grams(words: Sequence[str], longest: int) -> Counter[tuple[str, ...]]:
    """All n-grams up to a length, counted."""
    sizes = range(1, longest + 1)
    return Counter(tuple(words[i : i + n]) for n in sizes for i in range(len(words) - n + 1))
