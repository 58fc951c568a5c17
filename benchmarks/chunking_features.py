"""The features of CRFsuite's chunking example, as strings and as integers.

For each token: words at -2..2 and two word pairs, parts of speech at -2..2 with their four pairs and three triples, and
a mark on the first and the last token. The strings are for python-crfsuite; the integers are the same attributes as CSR
arrays. Both sides of a comparison therefore see identical data. When run as a program, this file prints the sizes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

Sentence = list[tuple[str, str, str]]

WORD, POS = 0, 1  # columns of a token
FIELDS = ("w", "pos")
TEMPLATES: list[tuple[tuple[int, int], ...]] = [
    *(((WORD, offset),) for offset in (-2, -1, 0, 1, 2)),
    *(((WORD, offset), (WORD, offset + 1)) for offset in (-1, 0)),
    *(((POS, offset),) for offset in (-2, -1, 0, 1, 2)),
    *(((POS, offset), (POS, offset + 1)) for offset in (-2, -1, 0, 1)),
    *(((POS, offset), (POS, offset + 1), (POS, offset + 2)) for offset in (-2, -1, 0)),
]
NAMES = ["|".join(f"{FIELDS[field]}[{offset}]" for field, offset in template) for template in TEMPLATES]
MARKS = ("__BOS__", "__EOS__")


def string_features(sentences: list[Sentence]) -> list[list[list[str]]]:
    """Attributes of every token of every sentence; a template that reaches outside the sentence yields none."""
    result = []
    for sentence in sentences:
        columns = ([token[WORD] for token in sentence], [token[POS] for token in sentence])
        rows: list[list[str]] = [[] for _ in sentence]
        length = len(sentence)
        for name, template in zip(NAMES, TEMPLATES, strict=True):
            low = max(0, -template[0][1])
            high = length - max(0, template[-1][1])
            parts = [columns[field][low + offset : max(low, high) + offset] for field, offset in template]
            for row, values in zip(rows[low:high], zip(*parts, strict=True), strict=False):
                row.append(f"{name}={'|'.join(values)}")
        rows[0].append(MARKS[0])
        rows[-1].append(MARKS[1])
        result.append(rows)
    return result


def chunk_labels(sentences: list[Sentence]) -> list[list[str]]:
    """The chunk labels, one list per sentence."""
    return [[token[2] for token in sentence] for sentence in sentences]


@dataclass(frozen=True)
class TokenFeatures:
    """Binary features of all tokens as CSR without data.

    ``indices[indptr[t]:indptr[t + 1]]`` are the features of token t (over all sentences), in the order of the
    templates; sentence i holds the tokens ``offsets[i]:offsets[i + 1]``.
    """

    indptr: np.ndarray  # int64 (n_tokens + 1,)
    indices: np.ndarray  # int32
    offsets: np.ndarray  # int64 (n_sentences + 1,)
    n_features: int


class ChunkingVocabulary:
    """Numbers the attributes of the train sentences, the most frequent first.

    Frequent features at the front share cache lines when weights are stored by feature. Ties follow the order of the
    templates and, within a template, the first occurrence. Cost: one sort of n_tokens integers per template.
    """

    def fit_transform(self, sentences: list[Sentence]) -> TokenFeatures:
        """Learn the attributes of ``sentences`` and number them."""
        self._values: list[dict[str, int]] = []
        for field in (WORD, POS):
            seen: dict[str, int] = {}
            for sentence in sentences:
                for token in sentence:
                    seen.setdefault(token[field], len(seen))
            self._values.append(seen)
        keys, offsets = self._keys(sentences)
        self._known: list[np.ndarray] = []
        counts = []
        for column in keys:
            known, count = np.unique(column[column >= 0], return_counts=True)
            self._known.append(known)
            counts.append(count)
        order = np.argsort(-np.concatenate(counts), kind="stable")
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        self._ranks = np.split(rank, np.cumsum([len(known) for known in self._known])[:-1])
        self.n_features = len(order)
        return self._number(keys, offsets)

    def transform(self, sentences: list[Sentence]) -> TokenFeatures:
        """Number the attributes of other sentences; those not seen in training are dropped."""
        return self._number(*self._keys(sentences))

    def names(self) -> list[str]:
        """The attribute behind each number, spelled as in :func:`string_features`."""
        spelled = [""] * self.n_features
        texts = [list(values) for values in self._values]
        for name, template, known, ranks in zip(NAMES, TEMPLATES, self._known, self._ranks, strict=False):
            for key, rank in zip(known.tolist(), ranks.tolist(), strict=True):
                values = []
                for field, _ in reversed(template):
                    key, value = divmod(key, len(texts[field]))
                    values.append(texts[field][value])
                spelled[rank] = f"{name}={'|'.join(reversed(values))}"
        for mark, ranks in zip(MARKS, self._ranks[-2:], strict=True):
            spelled[ranks[0]] = mark
        return spelled

    def _keys(self, sentences: list[Sentence]) -> tuple[list[np.ndarray], np.ndarray]:
        """One integer per template and token (-1: no such attribute), and the offsets of the sentences."""
        if not sentences or not all(sentences):
            raise ValueError("need at least one sentence, and at least one token in each")
        lengths = np.array([len(sentence) for sentence in sentences])
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        begin, end = np.repeat(offsets[:-1], lengths), np.repeat(offsets[1:], lengths)
        place = np.arange(offsets[-1])
        columns = [
            np.array([values.get(token[field], -1) for sentence in sentences for token in sentence], dtype=np.int64)
            for field, values in enumerate(self._values)
        ]

        def shifted(field: int, offset: int) -> np.ndarray:
            there = place + offset
            inside = (there >= begin) & (there < end)
            return np.where(inside, columns[field][np.where(inside, there, 0)], -1)

        keys = []
        for template in TEMPLATES:
            key = np.zeros(len(place), dtype=np.int64)
            for field, offset in template:
                value = shifted(field, offset)
                key = np.where((key < 0) | (value < 0), -1, key * len(self._values[field]) + value)
            keys.append(key)
        keys.append(np.where(place == begin, 0, -1))
        keys.append(np.where(place == end - 1, 0, -1))
        return keys, offsets

    def _number(self, keys: list[np.ndarray], offsets: np.ndarray) -> TokenFeatures:
        table = np.full((offsets[-1], len(keys)), -1, dtype=np.int32)
        for j, (column, known, ranks) in enumerate(zip(keys, self._known, self._ranks, strict=True)):
            found = np.minimum(np.searchsorted(known, column), len(known) - 1)
            hit = known[found] == column if len(known) else np.zeros(len(column), dtype=bool)
            table[hit, j] = ranks[found[hit]]
        present = table >= 0
        indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int64)
        return TokenFeatures(indptr, table[present], offsets.astype(np.int64), self.n_features)


def main() -> None:
    from maxmargin.datasets import load_conll2000

    train, test = load_conll2000("train"), load_conll2000("test")
    begin = time.perf_counter()
    vocabulary = ChunkingVocabulary()
    features = vocabulary.fit_transform(train)
    test_features = vocabulary.transform(test)
    numbered = time.perf_counter()
    strings = string_features(train)
    spelled = time.perf_counter()
    print(f"train: {len(train)} sentences, {len(features.indptr) - 1} tokens, {len(features.indices)} attributes")
    print(f"test:  {len(test)} sentences, {len(test_features.indptr) - 1} tokens, {len(test_features.indices)} known")
    print(f"distinct attributes: {features.n_features}, labels: {len({c for row in chunk_labels(train) for c in row})}")
    print(f"seconds: {numbered - begin:.2f} to integers (train and test), {spelled - numbered:.2f} to strings (train)")
    assert sum(len(row) for rows in strings for row in rows) == len(features.indices)


if __name__ == "__main__":
    main()
