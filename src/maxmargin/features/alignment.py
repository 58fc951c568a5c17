"""Features of every pair of words of two sentences, for an aligner.

====================  ================================================================================================
a constant            what any link is worth
dice                  how often the two words come together, and whether neither has a better partner in the sentence
models                posteriors of three alignment models learned from the bitext, in both directions: model 1, model 2
                      and the hidden Markov model, and the product of both directions of the last
neighbours            the product for the pairs before and behind, and the best rival of each word
position              how far the pair is from the diagonal, and its square
spelling              the same word, common beginnings, numbers, punctuation against words
frequency             both words rare; how different their frequencies are
beginnings            association, models and neighbours again, learned of the first letters of all words: forms of a
                      word are one there, which a small bitext needs
opinion               whether another aligner links the pair, and the pairs before and behind; on request
====================  ================================================================================================

Taskar, Lacoste-Julien, Klein 2005, A discriminative matching approach to word alignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Self

import numpy as np

from maxmargin.datasets.links import as_links
from maxmargin.features.interning import pack_strings, unpack_strings
from maxmargin.features.word_models import Lexicon, Translation, WordModel, WordModels, Words, learn
from maxmargin.parameters import Parameters

__all__ = ["AlignmentFeatures", "sentence_pairs"]

NAMES = (
    "constant", "dice", "dice best", "one right", "one left", "two right", "two left", "markov right", "markov left",
    "markov both", "markov agrees", "markov before", "markov behind", "markov rival left", "markov rival right",
    "lexicon right", "lexicon left", "unknown pair", "distance", "distance squared", "same word", "common beginning",
    "both numbers", "both punctuation", "one punctuation", "both rare", "frequencies differ",
)  # fmt: skip
AGAIN = slice(1, 18)  # of these, what beginnings of words tell
OPINION = ("other aligner", "other aligner near")
STORED = "stored alignment features"
N_PLACES = 21  # 2 REACH + 1 of the kernel
MOST_CELLS = 4_000_000  # word pairs of a sentence pair, some dozens of numbers each


def sentence_pairs(X: Iterable[object], opinion: bool = False) -> list[tuple[list[str], list[str]]]:
    """Pairs of sentences as lists of words; a sentence may be text, which is split at spaces.

    With ``opinion`` each may be followed by the links of another aligner, which are left out here.
    """
    if isinstance(X, str) or not isinstance(X, Iterable):
        raise TypeError(f"X is {X!r:.60}; give pairs of sentences.")
    found = []
    for i, pair in enumerate(X):
        if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence) or len(pair) not in (2, 2 + bool(opinion)):
            links = "; links of another aligner need AlignmentFeatures(opinion=True)" if not opinion else ""
            raise ValueError(f"example {i} is {pair!r:.60}; give a pair of sentences, (left, right){links}.")
        left, right = (_words(sentence, i) for sentence in pair[:2])
        if len(left) * len(right) > MOST_CELLS:
            what = f"example {i} has sentences of {len(left)} and {len(right)} words"
            raise ValueError(f"{what}; give at most {MOST_CELLS} word pairs, such as one sentence of each language.")
        found.append((left, right))
    if not found:
        raise ValueError("X is empty; at least one pair of sentences is needed.")
    return found


def _words(sentence: object, i: int) -> list[str]:
    words = sentence.split() if isinstance(sentence, str) else sentence
    if not isinstance(words, Iterable):
        raise ValueError(f"example {i} has the sentence {sentence!r:.60}; give text or a list of words.")
    found = list(words)
    for word in found:
        if not isinstance(word, str):
            raise ValueError(f"example {i} has the word {word!r:.60}; words must be text.")
    return found


@dataclass(repr=False, eq=False)
class AlignmentFeatures(Parameters):
    """Numbers for every pair of words, learned from a bitext.

    Parameters
    ----------
    iterations : int
        Of the training of each of the three alignment models.
    letters : int
        The models are learned a second time of the first so many letters of each word; 0: they are not.
    opinion : bool
        Whether another aligner has been asked. Examples are then (left, right, links) with its links, as text such as
        "0-0 1-2" or as pairs of positions; how far it is to be trusted is learned. Further bitext needs no links.

    Examples
    --------
    >>> from maxmargin.features import AlignmentFeatures
    >>> pairs = [("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book")]
    >>> features = AlignmentFeatures().fit(pairs)
    >>> features.transform([("ein Haus", "a house")])[0].shape
    (2, 2, 44)
    """

    iterations: int = 5
    letters: int = 4
    opinion: bool = False

    def fit(self, X: Iterable[object], y: object = None) -> Self:
        """Learn the models from pairs of sentences."""
        for name, value, least in (("iterations", self.iterations, 1), ("letters", self.letters, 0)):
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} is {value!r:.60}; give a whole number >= {least}.")
        if not isinstance(self.opinion, (bool, np.bool_)):
            raise ValueError(f"opinion is {self.opinion!r:.60}; give True or False.")
        pairs = [_lower(pair) for pair in sentence_pairs(X, self.opinion)]
        self.models_, self.beginnings_ = learn(pairs, int(self.iterations)), None
        if self.letters:
            self.beginnings_ = learn(_beginnings(pairs, int(self.letters)), int(self.iterations))
        return self

    def transform(self, X: Iterable[object]) -> list[np.ndarray]:
        """Features (n, m, F) of every pair of words of each pair of sentences, as many as :meth:`names` has."""
        examples = list(X) if isinstance(X, Iterable) and not isinstance(X, str) else X
        pairs = [_lower(pair) for pair in sentence_pairs(examples, self.opinion)]
        flat = _pair_features(self.models_, pairs)
        if self.beginnings_ is not None:
            again = _pair_features(self.beginnings_, _beginnings(pairs, int(self.letters)))
            flat = np.concatenate([flat, again[:, AGAIN]], axis=1)
        at = np.cumsum([0, *(len(left) * len(right) for left, right in pairs)])
        found = [
            flat[begin:end].reshape(len(left), len(right), flat.shape[1])
            for (left, right), begin, end in zip(pairs, at, at[1:], strict=False)
        ]
        if not self.opinion:
            return found
        return [
            np.concatenate([x, _opinion(example, i, x.shape[:2])], axis=2)
            for i, (x, example) in enumerate(zip(found, examples, strict=True))
        ]

    def names(self) -> list[str]:
        """Names of the features."""
        again = [f"{name}, beginnings" for name in NAMES[AGAIN]] if self.letters else []
        return [*NAMES, *again, *OPINION[: 2 * self.opinion]]

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, object]]:
        """Arrays and JSON-able facts for :meth:`from_state`."""
        arrays = _stored(self.models_)
        if self.beginnings_ is not None:
            arrays |= {f"beginnings/{name}": array for name, array in _stored(self.beginnings_).items()}
        facts = {"iterations": int(self.iterations), "letters": int(self.letters), "opinion": bool(self.opinion)}
        return arrays, {"version": 2, **facts}

    @classmethod
    def from_state(cls, arrays: Mapping[str, np.ndarray], facts: Mapping[str, object]) -> AlignmentFeatures:
        """The fitted features that :meth:`to_state` described; a ValueError names what does not fit."""
        iterations = facts.get("iterations")
        opinion, letters = facts.get("opinion"), facts.get("letters")
        numbers = type(iterations) is int and iterations >= 1 and type(letters) is int and letters >= 0
        if facts.get("version") != 2 or not numbers or type(opinion) is not bool:
            raise ValueError(f"{STORED} have another version, or no iterations; upgrade maxmargin or fit them again.")
        made = cls(iterations, letters, opinion)  # type: ignore[arg-type]
        made.models_, made.beginnings_ = _from_stored(arrays), None
        if letters:
            prefix = "beginnings/"
            own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            made.beginnings_ = _from_stored(own)
        return made


def _pair_features(models: WordModels, pairs: Sequence[tuple[Words, Words]]) -> np.ndarray:
    """Features (cells, 27) of all word pairs of all sentence pairs."""
    from maxmargin.features.alignment_kernel import fill_features

    lexicon = models.lexicon
    bitext = lexicon.read(pairs)
    said = [models.posteriors(bitext, name) for name in ("one", "two", "markov")]
    logs = [np.log(np.maximum(lexicon.of_cells(bitext, t), 1e-4)) / 4.0 + 1.0 for t in models.markov.translation.pairs]
    counts = (
        np.append(count, 0.0)[words]
        for count, words in ((lexicon.left_count, bitext.left_words), (lexicon.right_count, bitext.right_words))
    )
    words = [[word for pair in pairs for word in pair[side]] for side in (0, 1)]
    kinds = (np.array([_kind(word) for word in side], np.int8) for side in words)
    letters, left_at, right_at = _letters(*words)
    flat = np.empty((len(bitext.cells), len(NAMES)))
    fill_features(
        bitext.left, bitext.right, bitext.at, bitext.cells, lexicon.of_cells(bitext, lexicon.dice), *said,
        np.stack(logs), *counts, *kinds, letters, left_at, right_at, flat,
    )  # fmt: skip
    return flat


def _stored(models: WordModels) -> dict[str, np.ndarray]:
    """Models as arrays, for :func:`_from_stored`."""
    lexicon = models.lexicon
    arrays = {"keys": lexicon.keys, "together": lexicon.together}
    arrays |= {"left_count": lexicon.left_count, "right_count": lexicon.right_count}
    for name, model in (("one", models.one), ("two", models.two), ("markov", models.markov)):
        arrays |= {f"{name}.{part}": array for part, array in model.translation._asdict().items()}
        arrays[f"{name}.places"] = model.places
    for side, code in (("left", lexicon.left), ("right", lexicon.right)):
        arrays |= {f"{side}:{name}": array for name, array in pack_strings(list(code)).items()}
    return arrays


def _from_stored(arrays: Mapping[str, np.ndarray]) -> WordModels:
    """The models of arrays that nobody has checked."""
    left, right = (_stored_words(arrays, side) for side in ("left", "right"))
    n, m = max(1, len(left)), max(1, len(right))
    keys = arrays.get("keys", np.empty(0))
    fine = keys.dtype == np.int64 and keys.ndim == 1 and (np.diff(keys) > 0).all()
    if not fine or (len(keys) and not (0 <= keys[0] and keys[-1] < n * m)) or len(keys) >= 2**31:
        raise ValueError(f"{STORED} have word pairs that are out of order or of unknown words; save them again.")
    numbers = partial(_stored_numbers, arrays)
    counts = numbers("left_count", (n,)), numbers("right_count", (m,))
    lexicon = Lexicon(left, right, *counts, np.ascontiguousarray(keys), numbers("together", keys.shape))
    one, two, markov = (
        WordModel(
            Translation(
                numbers(f"{name}.pairs", (2, len(keys))),
                numbers(f"{name}.none_right", (m,)),
                numbers(f"{name}.none_left", (n,)),
            ),
            numbers(f"{name}.places", (2, N_PLACES)),
        )
        for name in ("one", "two", "markov")
    )
    return WordModels(lexicon, one, two, markov)


def _stored_words(arrays: Mapping[str, np.ndarray], side: str) -> dict[str, int]:
    own = {name.partition(":")[2]: array for name, array in arrays.items() if name.startswith(f"{side}:")}
    try:
        words = unpack_strings(own, STORED)
    except KeyError as error:
        raise ValueError(f"{STORED} lack {error} of the {side} words; save them again.") from None
    found = {word: k for k, word in enumerate(words)}
    if len(found) < len(words):
        raise ValueError(f"{STORED} have a {side} word twice; save them again.")
    return found


def _stored_numbers(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...]) -> np.ndarray:
    array = arrays.get(name, np.empty(0))
    fine = array.dtype == np.float64 and array.shape == shape
    if not fine or not (np.isfinite(array).all() and array.min(initial=0.0) >= 0 and array.max(initial=0.0) < 1e9):
        raise ValueError(f"{STORED} have numbers in {name!r} that cannot be; save them again.")
    return np.ascontiguousarray(array)


def _opinion(example: object, i: int, shape: tuple[int, int]) -> np.ndarray:
    """Where another aligner has links (n, m, 2), and how many of the pairs before and behind it links, of two."""
    if not isinstance(example, Sequence) or len(example) != 3:
        raise ValueError(f"example {i} lacks the links of the other aligner; give (left, right, links).")
    padded = np.zeros((shape[0] + 2, shape[1] + 2))
    links = as_links(example[2], i, shape)
    for left, right in links.sure | links.possible:
        padded[left + 1, right + 1] = 1.0
    return np.stack([padded[1:-1, 1:-1], (padded[:-2, :-2] + padded[2:, 2:]) / 2.0], axis=2)


def _lower(pair: tuple[Words, Words]) -> tuple[Words, Words]:
    left, right = ([word.lower() for word in words] for words in pair)
    return left, right


def _beginnings(pairs: Iterable[tuple[Words, Words]], letters: int) -> list[tuple[Words, Words]]:
    """Sentence pairs of the first letters of each word."""
    return [([word[:letters] for word in left], [word[:letters] for word in right]) for left, right in pairs]


@lru_cache(100_000)
def _kind(word: str) -> int:
    """What letters a word has, as the kernel reads it."""
    return 1 * (not any(c.isalnum() for c in word)) + 2 * any(c.isdigit() for c in word)


def _letters(left: Words, right: Words) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The letters of all words in one array, and where each word on the left and on the right begins."""
    at = np.concatenate([[0], np.cumsum([len(word) for word in (*left, *right)])]).astype(np.int64)
    text = "".join((*left, *right)).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(text, np.uint32).copy(), at[: len(left) + 1], at[len(left) :]
