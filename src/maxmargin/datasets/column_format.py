"""How a column file is read: what a model of the command line remembers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["FIELDS", "ColumnFormat"]

FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")  # of CoNLL-U


@dataclass(frozen=True)
class ColumnFormat:
    """The format of a training file.

    Attributes
    ----------
    conllu : bool
        Whether it was CoNLL-U.
    separator, comment : str or None
        As in :func:`maxmargin.datasets.columns.iter_sentences`, one comment prefix; None where nobody asked for one.
    word_column : int
        The column of the words, from 0.
    width : int
        The number of columns.
    """

    conllu: bool
    separator: str | None
    comment: str | None
    word_column: int
    width: int

    @staticmethod
    def from_state(facts: Mapping[str, object]) -> ColumnFormat:
        """The format that ``asdict`` described; a ValueError when it is none."""
        conllu, separator, comment = facts["conllu"], facts["separator"], facts["comment"]
        word_column, width = facts["word_column"], facts["width"]
        for text in (separator, comment):
            if text is not None and (not isinstance(text, str) or not 0 < len(text) <= 1000):
                raise ValueError(f"the separator or the comment of its columns is {str(text)[:40]!r}")
        if type(word_column) is not int or type(width) is not int or not 0 <= word_column < width <= 1_000_000:
            raise ValueError(f"it has words in column {str(word_column)[:40]} of {str(width)[:40]}")
        assert separator is None or isinstance(separator, str)
        assert comment is None or isinstance(comment, str)
        return ColumnFormat(conllu is True, separator, comment, word_column, width)
