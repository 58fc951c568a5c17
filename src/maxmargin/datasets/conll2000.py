"""CoNLL-2000: noun, verb, ... phrases in Wall Street Journal text, one chunk label per word."""

from __future__ import annotations

from maxmargin.datasets.columns import read_columns
from maxmargin.datasets.folder import require

__all__ = ["load_conll2000"]

_WHERE = (
    "the CoNLL-2000 shared task or the corpus 'conll2000' of nltk_data, as gzip text "
    "with a line 'word POS chunk' for each token and a blank line between sentences"
)


def load_conll2000(split: str = "train") -> list[list[tuple[str, ...]]]:
    """Sentences of the chunking task as lists of (word, part of speech, chunk label).

    The train split has 8,936 sentences of 211,727 tokens (Penn Treebank sections 15-18), the test split 2,012 sentences
    of 47,377 tokens (section 20). Chunk labels are BIO: ``B-NP``, ``I-NP``, ``O``, ... The file of a split is
    ``conll2000/<split>.txt.gz`` in :func:`~maxmargin.datasets.data_home`.

    References
    ----------
    Tjong Kim Sang, Buchholz. Introduction to the CoNLL-2000 shared task: chunking. CoNLL 2000.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split must be 'train' or 'test', got {split!r}")
    path = require(f"conll2000/{split}.txt.gz", _WHERE)
    try:
        sentences = read_columns(path, comments=(), document_markers=())
        if sentences and len(sentences[0][0]) != 3:
            raise ValueError(f"{path} has {len(sentences[0][0])} columns.")
    except ValueError as error:
        raise ValueError(f"{error} Expected 'word POS chunk' on each line: download the file again.") from None
    return sentences
