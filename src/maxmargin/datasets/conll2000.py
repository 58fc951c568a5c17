"""CoNLL-2000: noun, verb, ... phrases in Wall Street Journal text, one chunk label per word."""

from __future__ import annotations

import gzip

from maxmargin.datasets.folder import require

__all__ = ["load_conll2000"]

Token = tuple[str, str, str]

_WHERE = (
    "the CoNLL-2000 shared task or the corpus 'conll2000' of nltk_data, as gzip text "
    "with a line 'word POS chunk' for each token and a blank line between sentences"
)


def load_conll2000(split: str = "train") -> list[list[Token]]:
    """Sentences of the chunking task as lists of (word, part of speech, chunk label).

    The train split has 8,936 sentences of 211,727 tokens (Penn Treebank sections 15-18), the test split 2,012 sentences
    of 47,377 tokens (section 20). Chunk labels are BIO: ``B-NP``, ``I-NP``, ``O``, ...

    Parameters
    ----------
    split : {"train", "test"}
        The file is ``conll2000/<split>.txt.gz`` in :func:`~maxmargin.datasets.data_home`.

    References
    ----------
    Tjong Kim Sang, Buchholz. Introduction to the CoNLL-2000 shared task: chunking. CoNLL 2000.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split must be 'train' or 'test', got {split!r}")
    path = require(f"conll2000/{split}.txt.gz", _WHERE)
    sentences: list[list[Token]] = []
    sentence: list[Token] = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            columns = line.split()
            if len(columns) == 3:
                sentence.append((columns[0], columns[1], columns[2]))
            elif columns:
                raise ValueError(
                    f"{path}, line {number} (sentence {len(sentences)}): expected 'word POS chunk', "
                    f"got {len(columns)} columns: {line.strip()!r}. Download the file again."
                )
            elif sentence:
                sentences.append(sentence)
                sentence = []
    if sentence:
        sentences.append(sentence)
    return sentences
