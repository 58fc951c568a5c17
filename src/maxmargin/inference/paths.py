"""Best paths of a lattice: the best one, the k best, and the best of each of the k best distinct outputs.

A lattice has nodes 0, ..., N - 1 and arcs that go upwards; paths lead from node 0 to the last node. The formulas are in
:mod:`maxmargin.inference.recursion_kernel` and :mod:`maxmargin.inference.paths_kernel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.datasets.lattice import WordCodes, grouped, word_codes
from maxmargin.door import indices, numbers
from maxmargin.inference.tables import refuse_large, refuse_scores

__all__ = ["Path", "best_outputs", "best_path", "k_best_paths"]

Labels = Sequence[str | Sequence[object]]


class Path(NamedTuple):
    """The arcs of a path in order, as positions in the arrays given, int32, and its score."""

    arcs: np.ndarray
    score: float


def best_path(tails: ArrayLike, heads: ArrayLike, scores: ArrayLike) -> Path:
    """The best path from node 0 to the last node; ties go to the first arc into the last node, and so on. O(N + E).

    Parameters
    ----------
    tails, heads : array (E,)
        Where arcs begin and end; every arc goes upwards, and the largest head is the last node.
    scores : array (E,)
        Of arcs; -inf forbids one.

    Examples
    --------
    >>> from maxmargin.inference import best_path
    >>> best_path([0, 0, 1], [1, 2, 2], [1.0, 2.5, 2.0])
    Path(arcs=array([0, 2], dtype=int32), score=3.0)
    """
    from maxmargin.inference.recursion_kernel import best_from_first

    tail, head, score, n = _checked(tails, heads, scores)
    order, begin = grouped(head, n)
    value, out = np.empty(n), np.empty(n, np.int32)
    length = best_from_first(begin, tail[order], score[order], value, out)
    if length < 0:
        raise ValueError(f"there is no allowed path from node 0 to node {n - 1}; add arcs, or allow some.")
    return Path(order[out[:length]], float(value[-1]))


def k_best_paths(
    tails: ArrayLike, heads: ArrayLike, scores: ArrayLike, k: int, labels: Labels | None = None
) -> list[Path]:
    """The k best paths, best first, or with labels the best path of each of the k best distinct outputs.

    Parameters
    ----------
    tails, heads, scores : array (E,)
        As in :func:`best_path`.
    k : int
        Fewer are returned when there are no more.
    labels : list of E texts, or of E lists of words, optional
        What each arc says, one word, several or nothing. The output of a path is what its arcs say, one after the
        other; an output that several paths say comes once, with the best of them.

    Examples
    --------
    >>> from maxmargin.inference import k_best_paths
    >>> arcs = [0, 0, 1, 1], [1, 2, 2, 2], [1.0, 2.5, 2.0, 1.0]
    >>> [path.score for path in k_best_paths(*arcs, 3)]
    [3.0, 2.5, 2.0]
    >>> [path.score for path in k_best_paths(*arcs, 3, labels=["a", "a b", "b", "c"])]
    [3.0, 2.0]
    """
    from maxmargin.inference.recursion_kernel import longest_path

    if not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"k is {k!r:.80}; ask for at least one.")
    tail, head, score, n = _checked(tails, heads, scores)
    if labels is None:
        words = word_codes([[e] for e in range(len(tail))])  # every arc says a word of its own
    elif isinstance(labels, str) or not isinstance(labels, Sequence) or len(labels) != len(tail):
        raise ValueError(f"labels are {labels!r:.60}; give what each of the {len(tail)} arcs says.")
    else:
        words = word_codes([label.split() if isinstance(label, str) else list(label) for label in labels])
    order, begin = grouped(head, n)
    longest = int(longest_path(begin, tail[order]))
    arcs, found = best_outputs(grouped(tail, n), head, score, words, int(k), longest)
    return [Path(row[row >= 0], float(s)) for row, s in zip(arcs, found, strict=True)]


def best_outputs(
    leaving: tuple[np.ndarray, np.ndarray], head: np.ndarray, score: np.ndarray, words: WordCodes, k: int, longest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Paths (m, longest), -1 behind their ends, and scores (m,) of the k best distinct outputs of checked arcs.

    ``leaving`` are the arcs by the nodes that they leave, as :func:`~maxmargin.datasets.lattice.grouped` gives them; no
    path has more than ``longest`` arcs.
    """
    from maxmargin.inference.paths_kernel import distinct_outputs

    refuse_large(4 * k * longest, f"k best with k = {k} on paths of {longest} arcs", "ask for a smaller k")
    arcs, scores, (order, begin) = np.empty((k, longest), np.int32), np.empty(k), leaving
    found = distinct_outputs(begin, order, head, score, words.begin, words.code, len(words.vocabulary), arcs, scores)
    return arcs[:found], scores[:found]


def _checked(tails: ArrayLike, heads: ArrayLike, scores: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Arcs that go upwards, and scores that are no NaN."""
    score = numbers(scores, "scores")
    tail, head = (indices(given, 2**31 - 1, name) for name, given in (("tails", tails), ("heads", heads)))
    if score.ndim != 1 or not score.shape == tail.shape == head.shape:
        shapes = f"tails {tail.shape}, heads {head.shape} and scores {score.shape}"
        raise ValueError(f"the shapes are {shapes}; give one number for each arc.")
    if score.size == 0:
        raise ValueError("there are no arcs, and so no path; give at least one.")
    if (tail >= head).any():
        e = int(np.argmax(tail >= head))
        raise ValueError(f"arc {e} goes from {tail[e]} to {head[e]}; number the nodes so that every arc goes upwards.")
    refuse_scores(scores=score)
    n = int(head.max()) + 1
    refuse_large(16 * n, f"{n} nodes", "number the nodes without gaps")
    return tail.astype(np.int32), head.astype(np.int32), score, n
