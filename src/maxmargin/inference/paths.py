"""Best paths of a lattice: the best one, the k best, and the best of each of the k best distinct outputs.

A lattice has nodes 0, ..., N - 1 and arcs that go upwards; paths lead from node 0 to the last node. The formulas are in
:mod:`maxmargin.inference.recursion_kernel` and :mod:`maxmargin.inference.paths_kernel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.datasets.lattice import grouped
from maxmargin.door import indices, numbers
from maxmargin.inference.tables import refuse_large, refuse_scores

__all__ = ["Path", "best_path", "k_best_paths"]

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
    from maxmargin.inference.paths_kernel import distinct_outputs
    from maxmargin.inference.recursion_kernel import longest_path

    if not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"k is {k!r:.80}; ask for at least one.")
    tail, head, score, n = _checked(tails, heads, scores)
    each = np.arange(len(tail) + 1, dtype=np.int32)  # without labels every arc says a word of its own
    words = (each, each[:-1], len(tail)) if labels is None else _word_codes(labels, len(tail))
    order, begin = grouped(head, n)
    length = int(longest_path(begin, tail[order]))
    refuse_large(4 * int(k) * length, f"k best with k = {k} on paths of {length} arcs", "ask for a smaller k")
    leaving, begin = grouped(tail, n)
    arcs, found_scores = np.empty((int(k), length), np.int32), np.empty(int(k))
    found = distinct_outputs(begin, leaving, head, score, *words, arcs, found_scores)
    return [Path(row[row >= 0], float(s)) for row, s in zip(arcs[:found], found_scores[:found], strict=True)]


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


def _word_codes(labels: Labels, n_arcs: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Where the words of each arc begin, their numbers, and how many distinct ones there are."""
    if isinstance(labels, str) or not isinstance(labels, Sequence) or len(labels) != n_arcs:
        raise ValueError(f"labels are {labels!r:.60}; give what each of the {n_arcs} arcs says.")
    vocabulary: dict[object, int] = {}
    split = [label.split() if isinstance(label, str) else list(label) for label in labels]
    code = [vocabulary.setdefault(word, len(vocabulary)) for words in split for word in words]
    begin = np.concatenate([[0], np.cumsum([len(words) for words in split])]).astype(np.int32)
    return begin, np.array(code, np.int32), len(vocabulary)
