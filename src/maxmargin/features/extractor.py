"""Text in, sparse features out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from maxmargin.features.definition import Definition
from maxmargin.features.interning import Coder, Hashed, Vocabulary
from maxmargin.features.plan import Plan
from maxmargin.features.rows import MOST_LOOKED_UP, Rows, feature_rows, looked_up_rows, ranked, stacked
from maxmargin.features.sequences import Sequences
from maxmargin.features.sparse_rows import RowFeatures, SparseRows
from maxmargin.features.template import Template
from maxmargin.features.tokens import Column, Frame, Sentences, Tokens
from maxmargin.features.window import Ends, Join, Window, describe, restore
from maxmargin.parameters import Parameters

__all__ = ["TextFeatures", "renumbered"]

Part = str | Path | Template | Window | Join | Ends

AT_ONCE = 1 << 18  # tokens whose features are computed together


@dataclass(repr=False, eq=False)
class TextFeatures(RowFeatures[Tokens | Frame | Sentences], Parameters):
    """Features of tokens from templates or windows.

    Sentences are lists of tokens (a string, or a tuple with one string per column),
    :class:`~maxmargin.features.tokens.Tokens`, or a pandas or polars frame with a column ``sentence``. The language of
    templates is that of Kudo, CRF++: yet another CRF toolkit.

    Parameters
    ----------
    template : str, Path, Template, Window, Join, Ends, or a list of these
        A string is the path of a template file, or the text of a template if it has a newline or ``%``.
    min_count : int
        Leave out features that occur on fewer tokens in training.
    hashing : int, optional
        Number of features; ids are then hashes of the text, with no vocabulary and no names.

    Attributes
    ----------
    n_features_, n_edge_features_ : int
        Features of tokens, and of pairs of neighbours (``B`` lines, ``edge=True``).

    Examples
    --------
    >>> features = TextFeatures("U00:%x[0,0]\\nU01:%x[-1,0]/%x[0,0]\\n")
    >>> X = features.fit_transform([["the", "dog"], ["the", "cat"]])
    >>> features.names(X.sparse[[1]].indices)
    ['U00:dog', 'U01:the/dog']
    >>> features.transform([["the", "bird"]]).sparse.nnz
    2
    """

    template: Part | Sequence[Part]
    min_count: int = 1
    hashing: int | None = None

    def fit(self, X: Tokens | Frame | Sentences, y: object = None) -> Self:
        """Learn the features of training sentences."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Tokens | Frame | Sentences, y: object = None) -> Sequences:
        """Learn the features of ``X``, numbered by falling frequency, and return them."""
        self._prepare()
        tokens = self._tokens(X)
        if self.hashing is not None:
            return self._sequences(tokens, self._rows(tokens, self._hashed))
        vocabulary = Vocabulary(self.definitions_)
        if tokens.n_tokens == 0:
            raise ValueError("these sentences have no tokens; give at least one to learn from.")
        rows = self._rows(tokens, vocabulary, learn=True)
        return self._sequences(tokens, rows, self._freeze(vocabulary))

    def count(self, X: Tokens | Frame | Sentences) -> tuple[Vocabulary | None, Sequences]:
        """The features of some of many sentences, which they have numbered and counted by themselves.

        :meth:`fit_counts` makes one vocabulary of those of all parts. Hashed features have none, and the numbers that
        they have in the end.
        """
        self._prepare()
        tokens = self._tokens(X)
        if self.hashing is not None:
            return None, self._sequences(tokens, self._rows(tokens, self._hashed))
        vocabulary = Vocabulary(self.definitions_)
        rows = self._rows(tokens, vocabulary, learn=True)
        own = {edge: len(table) for edge, table in vocabulary.tables.items()}
        return vocabulary, self._sequences(tokens, rows, widths=own)

    def fit_counts(self, counted: Iterable[tuple[Vocabulary | None, int]]) -> list[dict[bool, np.ndarray]]:
        """Learn from the vocabularies of all parts in their order, each with its number of tokens.

        The result is that of :meth:`fit` on all sentences. Returns, for each part, the new numbers (-1: dropped) of its
        own token features (False) and edge features (True); none where features are hashed.
        """
        self._prepare()
        vocabulary, ids, tokens = Vocabulary(self.definitions_), list[dict[bool, np.ndarray]](), 0
        for part, n_tokens in counted:
            ids.append({} if part is None else vocabulary.add(part, tokens))
            tokens += n_tokens
        if self.hashing is not None:
            return ids
        ranks = self._freeze(vocabulary)
        return [{edge: ranks[edge][numbers] for edge, numbers in own.items()} for own in ids]

    def _freeze(self, vocabulary: Vocabulary) -> dict[bool, np.ndarray]:
        """Take over a vocabulary that has counted all tokens; the new numbers of its features."""
        ranks = vocabulary.freeze(self.min_count)
        if len(vocabulary.tables[False]) == 0:
            raise ValueError(f"no feature occurs min_count ({self.min_count}) times; lower it or add features.")
        self._adopt(vocabulary)
        return ranks

    def transform(self, X: Tokens | Frame | Sentences) -> Sequences:
        """The features of ``X``, without those that are unknown."""
        self._check_fitted()
        tokens = self._tokens(X)
        rows = self._looked_up(tokens)
        if rows is None:
            coder = self.vocabulary_ if self.hashing is None else self._hashed
            return self._sequences(tokens, self._rows(tokens, coder))
        made = rows[False].sequences(self.n_features_)
        return replace(made, edge=rows[True].sequences(self.n_edge_features_).sparse) if self.n_edge_features_ else made

    def rows(self, X: Tokens | Frame | Sentences) -> SparseRows | None:
        """What :meth:`transform` gives for a few sentences, as plain arrays; None when there are edge features."""
        self._check_fitted()
        rows = None if self.n_edge_features_ else self._looked_up(self._tokens(X))
        return None if rows is None else rows[False]

    def _looked_up(self, tokens: Tokens) -> dict[bool, SparseRows] | None:
        """Features of few tokens, each looked up by itself; None where they are made together."""
        if tokens.n_tokens > MOST_LOOKED_UP or self.hashing is not None:
            return None
        return looked_up_rows(tokens, self._plan, self.vocabulary_)

    def names(self, ids: Iterable[int] | None = None, edge: bool = False) -> list[str]:
        """Names of features, or with ``edge`` of edge features, such as ``U05:the/dog``; all of them by default."""
        self._check_fitted()
        if self.hashing is not None:
            raise ValueError("hashed features have no names; fit without hashing to get them.")
        n = self.n_edge_features_ if edge else self.n_features_
        ids = range(n) if ids is None else [int(i) for i in ids]
        for i in ids:
            if not 0 <= i < n:
                raise IndexError(f"there is no {'edge ' if edge else ''}feature {i}; there are {n}.")
        return self.vocabulary_.names(ids, edge)

    def keeping(self, kept: np.ndarray) -> Self | None:
        """Only the features that ``kept`` marks, a bool array with ``n_features_`` entries; None if they are hashed."""
        self._check_fitted()
        if self.hashing is not None:
            return None
        fewer = copy(self)
        fewer._adopt(self.vocabulary_.keeping(kept))
        return fewer

    def to_state(self) -> tuple[dict[str, np.ndarray], dict[str, object]]:
        """Arrays and JSON-able facts for :meth:`from_state`."""
        self._check_fitted()
        return (self.vocabulary_.to_arrays() if self.hashing is None else {}), self.description()

    def description(self) -> dict[str, object]:
        """The parameters as JSON-able facts."""
        parts = [
            {"kind": "Template", "lines": p.lines, "name": p.name} if isinstance(p, Template) else describe(p)
            for p in _parts(self.template)
        ]
        hashing = None if self.hashing is None else int(self.hashing)
        return {"version": 1, "features": parts, "min_count": int(self.min_count), "hashing": hashing}

    def check_unread(self, column: int, option: str, name: str | None = None) -> None:
        """A ValueError when a feature reads the column of the labels; ``name`` is what all features are called."""
        for definition in self.definitions_:
            if any(source.column == column for source, _ in definition.slots):
                what = f"{name or definition.where}: reads column {column}, which holds the labels to predict"
                raise ValueError(f"{what}; use another column, or name the column of the labels with {option}.")

    @classmethod
    def from_state(cls, arrays: dict[str, np.ndarray], facts: Mapping[str, Any]) -> TextFeatures:
        """The fitted features that :meth:`to_state` described."""
        try:
            if facts["version"] != 1:
                raise ValueError(f"stored text features have version {facts['version']!r}; upgrade maxmargin.")
            parts: list[Any] = [
                Template(part["lines"], part["name"]) if part["kind"] == "Template" else restore(part)
                for part in facts["features"]
            ]
            made = cls(parts, facts["min_count"], facts["hashing"])
            made._prepare()
            if made.hashing is None:
                made._adopt(Vocabulary.from_arrays(made.definitions_, arrays))
                if made.n_edge_features_ and not any(d.edge for d in made.definitions_):
                    raise ValueError(
                        "stored text features are damaged (edge features of no definition); save them again."
                    )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"stored text features are damaged ({error!r}); save them again.") from None
        return made

    def _prepare(self) -> None:
        """Check the parameters and expand the template."""
        if not _whole(self.min_count) or self.min_count < 1:
            raise ValueError(f"min_count must be a whole number >= 1, got {self.min_count!r}.")
        if self.hashing is not None and not (_whole(self.hashing) and 1 <= self.hashing < 2**31):
            raise ValueError(f"hashing must be None or a number of features from 1 to 2^31 - 1, got {self.hashing!r}.")
        if self.hashing is not None and self.min_count > 1:
            raise ValueError("hashed features are not counted; leave min_count at 1 with hashing.")
        definitions: list[Definition] = [d for part in _parts(self.template) for d in part.definitions]
        if all(d.edge for d in definitions):
            raise ValueError("the template has no token features; add a line such as U00:%x[0,0].")
        self.definitions_ = tuple(definitions)
        self._plan = Plan(definitions)
        if self.hashing is not None:
            self.n_features_ = int(self.hashing)
            self.n_edge_features_ = int(self.hashing) if any(d.edge for d in definitions) else 0
            self._hashed = Hashed(definitions, self.n_features_)

    def _adopt(self, vocabulary: Vocabulary) -> None:
        self.vocabulary_ = vocabulary
        self.n_features_, self.n_edge_features_ = (len(vocabulary.tables[edge]) for edge in (False, True))

    def _check_fitted(self) -> None:
        if "n_features_" not in self.__dict__:
            raise AttributeError("these features are not fitted; call fit or fit_transform on training sentences.")

    def _tokens(self, X: Tokens | Frame | Sentences) -> Tokens:
        tokens = Tokens.of(X)
        if tokens.n_tokens == 0:  # the number of columns is unknown, and nothing reads them
            return Tokens([Column([], np.empty(0, np.int32))] * self._plan.width, tokens.offsets)
        if self._plan.width > len(tokens.columns):
            n = len(tokens.columns)
            reads = ((d.where, source.column) for d in self.definitions_ for source, _ in d.slots)
            where, column = next(read for read in reads if read[1] >= n)
            raise ValueError(f"{where} reads column {column}, but the tokens have {n} (from 0 on).")
        return tokens

    def _rows(self, tokens: Tokens, coder: Coder, learn: bool = False) -> list[dict[bool, Rows]]:
        """The ids of all features, a part of the sentences at a time to save memory."""
        if tokens.n_tokens <= AT_ONCE:
            return [feature_rows(tokens, self._plan, coder, learn)]
        marks = np.searchsorted(tokens.offsets, np.arange(0, tokens.n_tokens, AT_ONCE), side="left")
        cuts = [*np.unique(marks).tolist(), len(tokens)]
        return [feature_rows(tokens[a:b], self._plan, coder, learn, int(tokens.offsets[a])) for a, b in pairwise(cuts)]

    def _sequences(
        self,
        tokens: Tokens,
        rows: list[dict[bool, Rows]],
        ranks: dict[bool, np.ndarray] | None = None,
        widths: dict[bool, int] | None = None,
    ) -> Sequences:
        ranks = ranks or {}
        if widths is None:
            widths = {False: self.n_features_, True: self.n_edge_features_}
        made: dict[bool, list] = {False: [], True: []}
        while rows:  # frees each part once it is in rows
            part = rows.pop(0)
            for edge, width in widths.items():
                if width or not edge:
                    made[edge].append(part[edge].to_csr(width, ranks.get(edge)))
        edge_rows = stacked(made[True]) if made[True] else None
        return Sequences(tokens.offsets, sparse=stacked(made[False]), edge=edge_rows)


def renumbered(X: Sequences, numbers: Mapping[bool, np.ndarray], n_features: int, n_edge_features: int) -> Sequences:
    """What ``count`` gave for a part, under the ``numbers`` that ``fit_counts`` gave it; hashed features stay."""
    if not numbers:
        return X
    assert X.sparse is not None
    edge = None
    if n_edge_features:  # a part may have none of its own
        own = X.edge if X.edge is not None else sp.csr_array((X.n_tokens, 0), dtype=np.int8)
        edge = ranked(own, numbers[True], n_edge_features)
    return Sequences(X.offsets, sparse=ranked(X.sparse, numbers[False], n_features), edge=edge)


def _whole(number: object) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)


def _parts(template: Part | Sequence[Part]) -> list[Template | Window | Join | Ends]:
    """The templates and windows of a parameter, as a list."""
    given = template if isinstance(template, Sequence) and not isinstance(template, str) else [template]
    parts = [Template.parse(part) if isinstance(part, (str, Path)) else part for part in given]
    for part in parts:
        if not isinstance(part, (Template, Window, Join, Ends)):
            raise TypeError(f"a template must be text, a path, a Template, or windows; got {part!r}.")
    return parts
