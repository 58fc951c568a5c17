"""Structures of Bayesian networks from data: naive Bayes, tree-augmented naive Bayes, Chow-Liu trees.

    I(a; b)     = sum P(a, b) ln P(a, b) / (P(a) P(b))
    I(a; b | c) = sum_c P(c) I(a; b) within c

Among all trees the one with the largest sum of these has the largest likelihood. O(n v^2) for n rows of v variables.

Chow, Liu 1968, Approximating discrete probability distributions with dependence trees. Friedman, Geiger, Goldszmidt
1997, Bayesian network classifiers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from maxmargin.models.base import offsets_of
from maxmargin.models.labels import Labels
from maxmargin.models.network import Network

__all__ = ["STRUCTURES", "chow_liu", "information", "learn_structure", "naive_bayes", "tree_augmented"]

STRUCTURES = ("naive", "tan", "chow-liu")
DIGITS = 12  # information that differs only beyond is a tie, and the first variable wins

Parents = tuple[tuple[int, ...], ...]


def learn_structure(
    kind: str, names: Sequence[str], states: Sequence[Labels], codes: np.ndarray, target: str | None = None
) -> Network:
    """The network of a named kind.

    Parameters
    ----------
    kind : {"naive", "tan", "chow-liu"}
    names : sequence of str
    states : sequence of Labels
        Values of each variable.
    codes : int array (n, n_variables)
        -1 where a value is missing; a pair of variables is judged by the rows that have both.
    target : str, optional
        The class of "naive" and "tan"; the root of a "chow-liu" tree.
    """
    if kind not in STRUCTURES:
        raise ValueError(f"structure must be {', '.join(STRUCTURES)} or a graph; got {kind!r}.")
    names = list(names)
    if target is not None and target not in names:
        raise ValueError(f"the target {target!r} is not among the variables; correct its name.")
    if target is None and kind != "chow-liu":
        raise ValueError(f'structure "{kind}" needs one target, the class; name it.')
    at = names.index(target) if target is not None else 0
    sizes = [len(labels) for labels in states]
    learn = tree_augmented if kind == "tan" else chow_liu
    parents = naive_bayes(len(names), at) if kind == "naive" else learn(codes, sizes, at)
    return Network(tuple(names), tuple(states), parents)


def naive_bayes(n_variables: int, target: int) -> Parents:
    """The class is the one parent of all others."""
    return tuple(() if v == target else (target,) for v in range(n_variables))


def chow_liu(codes: np.ndarray, cardinalities: Sequence[int], root: int = 0) -> Parents:
    """The tree of largest likelihood; edges without any information are left out, so it may be a forest."""
    return _spanning(information(codes, cardinalities), root)


def tree_augmented(codes: np.ndarray, cardinalities: Sequence[int], target: int) -> Parents:
    """Naive Bayes with a tree among the attributes: parents are the class and at most one attribute."""
    n_variables = len(cardinalities)
    attributes = [v for v in range(n_variables) if v != target]
    value = information(codes, cardinalities, given=target)[np.ix_(attributes, attributes)]
    parents: list[tuple[int, ...]] = [() for _ in range(n_variables)]
    for v, above in zip(attributes, _spanning(value, 0), strict=True):
        parents[v] = (target, *(attributes[u] for u in above))
    return tuple(parents)


def information(codes: np.ndarray, cardinalities: Sequence[int], given: int | None = None) -> np.ndarray:
    """Mutual information of all pairs of variables in nats, (v, v), conditional on the variable ``given``.

    Rows in which one of the two (or the one given) is missing are left out, for each pair on its own. The diagonal,
    and the row and column of the variable given, are 0.
    """
    sizes = np.asarray(cardinalities, np.int64)
    codes = _checked(codes, sizes)
    groups = [codes] if given is None else [codes[codes[:, given] == k] for k in range(int(sizes[given]))]
    v = len(sizes)
    joint, total = np.zeros((v, v)), np.zeros((v, v))  # sums over groups of rows * information, and of rows
    for rows in groups:
        seen, size = _information_within(rows, sizes)
        joint += size * seen
        total += size
    value = np.round(np.divide(joint, total, out=np.zeros((v, v)), where=total > 0), DIGITS)
    value = np.triu(np.maximum(value, 0.0), 1)
    if given is not None:
        value[given, :] = value[:, given] = 0.0
    return value + value.T


def _information_within(codes: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Information of the pairs a < b, and the number of rows that have both."""
    n, v = codes.shape
    at = offsets_of(sizes)
    row, column = np.nonzero(codes >= 0)
    ones = np.ones(len(row))
    indicator = sp.csc_array((ones, (row, at[column] + codes[row, column])), shape=(n, int(at[-1])))
    value, rows = np.zeros((v, v)), np.zeros((v, v))
    for a in range(v - 1):
        rest = at[a + 1]
        pair = (indicator[:, at[a] : at[a + 1]].T @ indicator[:, rest:]).toarray()  # counts of (a, any later value)
        blocks = at[a + 1 : -1] - rest
        of_a = np.repeat(np.add.reduceat(pair, blocks, axis=1), sizes[a + 1 :], axis=1)  # of a, where b is there too
        of_b, both = pair.sum(axis=0), np.add.reduceat(pair.sum(axis=0), blocks)
        share = np.repeat(both, sizes[a + 1 :]) * pair / np.maximum(of_a * of_b, 1.0)
        terms = pair * np.log(np.where(pair > 0, share, 1.0))
        value[a, a + 1 :] = np.add.reduceat(terms.sum(axis=0), blocks) / np.maximum(both, 1.0)
        rows[a, a + 1 :] = both
    return value, rows


def _spanning(value: np.ndarray, root: int) -> Parents:
    """Parents in the spanning forest of largest weight, grown from ``root`` (Prim); the first variable wins a tie."""
    v = len(value)
    parents: list[tuple[int, ...]] = [() for _ in range(v)]
    best, source = np.zeros(v), np.full(v, -1)
    outside = np.ones(v, bool)
    for _ in range(v):
        # the first of the best; without information, a new root
        u = root if outside.all() else int(np.argmax(np.where(outside, best, -1.0)))
        outside[u] = False
        if source[u] >= 0:
            parents[u] = (int(source[u]),)
        better = outside & (value[u] > best)
        best[better], source[better] = value[u][better], u
    return tuple(parents)


def _checked(codes: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.shape[1] != len(sizes) or codes.dtype.kind not in "iu":
        raise ValueError(f"codes are {codes.dtype} of shape {codes.shape}; give whole numbers, {len(sizes)} columns.")
    codes = codes.astype(np.int64)
    odd = np.argwhere((codes < -1) | (codes >= sizes))
    if len(odd):
        i, v = map(int, odd[0])
        raise ValueError(f"example {i} has the code {codes[i, v]} in variable {v}, which has {sizes[v]} states.")
    return codes
