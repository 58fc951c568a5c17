"""Lists of candidates with dense features: what MERT, PRO and large margins tune on.

Candidate y of list i has features phi_y (d,) and statistics, which add up to those of a corpus. All lists lie one after
the other in a few arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maxmargin.datasets import Lattice

__all__ = ["CandidateLists"]


@dataclass(frozen=True)
class CandidateLists:
    """n lists of N candidates in all.

    Parameters
    ----------
    features : float array (N, d)
    statistics : float array (N, s)
        Counts that add up, such as those of BLEU.
    quality : float array (N,)
        How good each candidate is by itself, such as its smoothed sentence BLEU.
    starts : int array (n + 1,)
        Candidates of list i are ``starts[i]`` to ``starts[i + 1]``.
    texts : list of N texts
        What the candidates say, all different within a list; their numbers, where there is none.
    """

    features: np.ndarray
    statistics: np.ndarray
    quality: np.ndarray
    starts: np.ndarray
    texts: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_features(self) -> int:
        return self.features.shape[1]

    @cached_property
    def columns(self) -> np.ndarray:
        """The features by column, for searches along one of them."""
        return np.asfortranarray(self.features)

    def span(self, i: int) -> slice:
        """Where the candidates of list i lie."""
        return slice(int(self.starts[i]), int(self.starts[i + 1]))

    def best(self, scores: np.ndarray) -> np.ndarray:
        """The candidate of highest score of each list, the first of equals, int (n,)."""
        return np.array([self.starts[i] + int(np.argmax(scores[self.span(i)])) for i in range(len(self))])

    def some(self, chosen: Iterable[int]) -> CandidateLists:
        """Some of the lists."""
        spans = [self.span(i) for i in chosen]
        rows = np.concatenate([np.arange(span.start, span.stop) for span in spans])
        starts = np.concatenate([[0], np.cumsum([span.stop - span.start for span in spans])])
        texts = tuple(text for span in spans for text in self.texts[span])
        return CandidateLists(self.features[rows], self.statistics[rows], self.quality[rows], starts, texts)

    def lattices(self) -> list[Lattice]:
        """The lists as lattices of two nodes."""
        found = []
        for i in range(len(self)):
            span = self.span(i)
            texts = self.texts[span] or [str(y) for y in range(span.stop - span.start)]
            found.append(Lattice.from_nbest(texts, self.features[span]))
        return found

    def costs(self) -> list[np.ndarray]:
        """What the best candidate of each list gains over each of the others."""
        return [self.quality[span].max() - self.quality[span] for span in map(self.span, range(len(self)))]
