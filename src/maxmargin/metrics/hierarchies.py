"""Scores of sets of labels in a hierarchy, and of rankings of labels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["hierarchical_f1", "micro_average_precision"]

Sets = ArrayLike | Sequence[Iterable[Hashable]]
Parents = Mapping[Hashable, object] | ArrayLike


def hierarchical_f1(y_true: Sets, y_pred: Sets, parents: Parents | None = None) -> float:
    """F1 of all pairs of an example and a label, each set with the ancestors of its labels.

    Formula: ``2 |T & P| / (|T| + |P|)`` with the pairs T that are true and P that are predicted, over all examples
    together (Kiritchenko, Matwin, Famili 2005). For sets that are closed under ancestors, as those that
    MultilabelClassifier(hierarchy=...) predicts, this is the micro-averaged F1. 0 where nothing is true or predicted.

    Parameters
    ----------
    y_true, y_pred : arrays of 0 and 1 with one column per label, or lists with one set of labels per example
    parents : mapping of label to its parent (or a list of them), or vector with the parent's number, -1 for roots
        Without it sets count as they are.
    """
    above = _parents(parents)
    true, found = ([_closed(labels, above) for labels in _label_sets(y)] for y in (y_true, y_pred))
    if len(true) != len(found):
        raise ValueError(f"y_true has {len(true)} examples and y_pred has {len(found)}; they must agree.")
    total = sum(map(len, true)) + sum(map(len, found))
    return 2.0 * sum(len(a & b) for a, b in zip(true, found, strict=True)) / total if total else 0.0


def micro_average_precision(y_true: ArrayLike, y_score: ArrayLike, skip: Iterable[int] = ()) -> float:
    """Area under the precision-recall curve of all pairs of an example and a label, ranked together by score.

    Formula: ``sum_t (R_t - R_(t-1)) P_t`` over the thresholds t, scikit-learn's average precision with
    ``average="micro"``. This is the AU(PRC) of Giunchiglia and Lukasiewicz 2020 (Coherent hierarchical multi-label
    classification networks, C-HMCNN): their code leaves out the artificial root (and the three roots of the Gene
    Ontology), and no others; labels that never occur count too, as places for false alarms.

    Parameters
    ----------
    y_true : array (n, n_labels) of 0 and 1
    y_score : array (n, n_labels)
        Scores, for instance ``decision_function``.
    skip : numbers of columns that are not evaluated
    """
    from sklearn.metrics import average_precision_score

    true, scores = np.asarray(y_true), np.asarray(y_score, np.float64)
    if true.ndim != 2 or scores.shape != true.shape:
        raise ValueError(
            f"y_true has shape {true.shape} and y_score has {scores.shape}; they must agree, (n, n_labels)."
        )
    left_out = list(skip)
    for k in left_out:
        if not 0 <= k < true.shape[1]:
            raise ValueError(f"skip has {k!r}, which is not the number of a column; there are {true.shape[1]}.")
    kept = np.setdiff1d(np.arange(true.shape[1]), left_out)
    if not true[:, kept].any():
        raise ValueError("no example has one of the labels that are evaluated; pass examples with labels.")
    return float(average_precision_score(true[:, kept].ravel(), scores[:, kept].ravel()))


def _label_sets(y: object) -> list[set[Hashable]]:
    if isinstance(y, np.ndarray) and y.ndim == 2:
        return [set(np.flatnonzero(row).tolist()) for row in y]
    if not isinstance(y, Sequence) or isinstance(y, str):
        raise ValueError("give an array of 0 and 1 with one column per label, or a list with one set of labels each.")
    return [set(labels) for labels in y]


def _parents(given: Parents | None) -> dict[Hashable, list[Hashable]]:
    """The parents of each label that has some."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return {k: [p] for k, p in enumerate(np.asarray(given).tolist()) if p >= 0}
    several = {k: list(p) if isinstance(p, (list, set, frozenset)) else [p] for k, p in given.items()}
    return {k: [p for p in ps if p is not None] for k, ps in several.items()}


def _closed(labels: set[Hashable], parents: Mapping[Hashable, list[Hashable]]) -> set[Hashable]:
    """The labels and all their ancestors."""
    found, waiting = set(labels), list(labels)
    while waiting:
        new = [p for p in parents.get(waiting.pop(), []) if p not in found]
        found.update(new)
        waiting += new
    return found
