"""What weights that have not seen an example say about the output that was given for it.

Three argmaxes of each example give the large-margin evidence. With ``score`` the score of an output minus that of the
given one, and ``cost`` the cost of an output where the given one is true:

    hinge   = max_y score(y) + cost(y)      the loss of the given output
    margin  = max_y score(y)                how much better another output is
    concave = max_y score(y) - cost(y)      above zero: better by more than it differs; the concave part of the ramp

Sums over a sequence say little about a single wrong label in it, so every part of an output (a token, or the class of
an example) is judged for itself too, by :func:`doubts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from maxmargin.contracts import offers_part_scores
from maxmargin.door import weight_vector
from maxmargin.estimators.base import Inputs, Structured
from maxmargin.models.labels import Labels

__all__ = ["Evidence", "NeighbourCounts", "example_scores", "judge"]

Seed = int | Sequence[int]

WRONG = 0.01  # share of wrong labels that is expected before anything is known
FLOOR = -100.0  # the least score
TINY = 1e-9  # what rounding makes of a difference of zero
FORBIDDEN = -1e6  # score of a label that constraints forbid
MOST_PARTS = 20_000  # for the calibration of a fold
USUAL_SCALE, USUAL_COUNTS, USUAL_WIDTH = 4.0, 0.3, 0.5  # prior of the scales: medians, and deviation of the logs
UNSEEN = 0.1  # count of a pair of labels that is nowhere


@dataclass(frozen=True)
class Evidence:
    """About m held-out examples."""

    hinge: np.ndarray  # (m,), as margin and concave: the values of the three argmaxes
    margin: np.ndarray
    concave: np.ndarray
    suggested: list  # outputs: the best that pays for its distance to the given one, else the prediction
    doubt: list[np.ndarray]  # log odds against the given label of each part


@dataclass(frozen=True)
class NeighbourCounts:
    """How often labels stand beside each other in all given outputs."""

    labels: Labels
    pairs: np.ndarray  # (K + 1, K + 1), row: left label, column: right label; the last of both: end of a sequence

    @staticmethod
    def of(codes: list[np.ndarray], labels: Labels) -> NeighbourCounts:
        pairs = np.zeros((len(labels) + 1,) * 2)
        for row in codes:
            closed = np.concatenate([[-1], row, [-1]])
            np.add.at(pairs, (closed[:-1], closed[1:]), 1.0)
        return NeighbourCounts(labels, pairs)

    def tables(self, codes: list[np.ndarray]) -> list[np.ndarray]:
        """Log counts (parts, K) of each label beside the given left neighbour, and beside the right one.

        The pair that the given label itself forms is not counted: otherwise a mistake would be evidence for itself.
        """
        K = len(self.labels)
        given = _flat(codes)
        left = _flat([np.concatenate([[-1], row[:-1]]) for row in codes if len(row)])
        right = _flat([np.concatenate([row[1:], [-1]]) for row in codes if len(row)])
        tables = [self.pairs[left][:, :K], self.pairs[:K, right].T.copy()]
        for table in tables:
            table[np.arange(len(given)), given] -= 1.0
        return [np.log(table + UNSEEN) for table in tables]


def judge(
    estimator: Structured[Inputs, list],
    X: Inputs,
    y: list,
    codes: list[np.ndarray],
    neighbours: NeighbourCounts | None,
    seed: Seed,
) -> Evidence:
    """Evidence of a fitted estimator about m examples that it has not seen, and their given outputs.

    ``codes`` are those of the given labels, in the labels of ``neighbours``; for models whose outputs have no parts
    zeros, one per example, and no ``neighbours``. The ``seed`` chooses the parts that calibrate the scores.

    Complexity: three argmaxes and one score table per example; memory for a table (parts, K) of all examples at once.
    """
    bound = estimator._bind_held_out(X, y)
    weights = weight_vector(estimator.weights_, bound.n_weights, values=False)
    found = {c: bound.argmax(weights, cost_weight=c) for c in (1.0, 0.0, -1.0)}
    suggested = []
    for i, given in enumerate(y):
        better = [answers.outputs[i] for answers in (found[-1.0], found[0.0]) if answers.value[i] > TINY]
        suggested.append(bound.layout.output(better[0]) if better else given)
    if neighbours is None:
        # the given output against the best of those that were found in its place
        others = [np.where(a.cost > 0, a.value - c * a.cost, FORBIDDEN) for c, a in found.items()]
        tables = [np.stack([np.zeros(len(y)), np.max(others, axis=0)], axis=1)]
    else:
        assert offers_part_scores(bound)
        scores = bound.part_scores(weights, codes) if len(codes) else np.empty((0, len(neighbours.labels)))
        tables = [_all_labels(scores, estimator.layout_.labels, neighbours.labels)]
        tables += neighbours.tables(codes)
    doubt = doubts(tables, _flat(codes), seed)
    hinge, margin, concave = (np.maximum(found[c].value, 0.0) for c in (1.0, 0.0, -1.0))
    return Evidence(hinge, margin, concave, suggested, np.split(doubt, np.cumsum([len(row) for row in codes])[:-1]))


def doubts(tables: list[np.ndarray], given: np.ndarray, seed: Seed) -> np.ndarray:
    """Log odds against the given label of each part, the labels of the other parts taken as they are.

    Formula: ``log sum_{k != y_t} p_t(k) / p_t(y_t)`` with ``p_t(k)`` proportional to ``exp(sum_j a_j table_j[t, k])``.
    The scales ``a > 0`` make the given labels most probable under the law ``(1 - e) p + e / K``, in which a share
    e = 0.01 of the labels is drawn by chance, so that mistakes do not bend them. Where there are few parts, a prior
    keeps them near what they are in large data: ``log a`` is normal around the log of 4 (margins), 0.3 (log counts).

    With neighbours taken as given, a label that is wrong alone stands against all of its context, while a model that is
    unsure of a whole span still finds each of its labels in agreement with the others. If one label was replaced by
    chance, at a place chosen by chance, ``mean_t (1 / p_t(y_t) - 1)`` orders the examples best (Neyman and Pearson);
    :func:`example_scores` extends that to several wrong labels.

    Of tables (N, K) and given labels (N,); an array (N,).

    References
    ----------
    Besag. Statistical analysis of non-lattice data. The Statistician 1975 (conditional distributions of parts).
    """
    if len(given) == 0 or tables[0].shape[1] < 2:
        return np.full(len(given), -np.inf)
    tables = [np.maximum(table, FORBIDDEN) - table.max(axis=1, keepdims=True) for table in tables]
    chosen = np.random.default_rng(seed).permutation(len(given))[:MOST_PARTS]
    scales = _scales([table[chosen] for table in tables], given[chosen])
    logits = sum(scale * table for scale, table in zip(scales, tables, strict=True))
    rows = np.arange(len(given))
    own = logits[rows, given]
    logits[rows, given] = -np.inf
    return logsumexp(logits, axis=1) - own


def example_scores(doubt: np.ndarray, example: np.ndarray, lengths: np.ndarray, n_labels: int) -> np.ndarray:
    """Log of the odds that a label of the example is wrong, over its number of labels.

    Formula: ``log (prod_t (1 + o_t) - 1) - log T`` with ``o_t = e / (1 - e) exp(doubt_t) / (K - 1)``, where each label
    is wrong with probability e = 0.01 and then any other one alike; at least -100. ``doubt`` (N,) is that of all parts,
    ``example`` (N,) whose parts they are, ``lengths`` (n,) the number of parts of each example.
    """
    prior = np.log(WRONG / (1.0 - WRONG) / max(1, n_labels - 1))
    total = np.bincount(example, weights=np.logaddexp(0.0, doubt + prior), minlength=len(lengths))
    with np.errstate(divide="ignore"):
        odds = total + np.log(-np.expm1(-total))
    return np.maximum(odds - np.log(np.maximum(lengths, 1)), FLOOR)


def _scales(tables: list[np.ndarray], given: np.ndarray) -> np.ndarray:
    """What each table has to be multiplied with; see :func:`doubts`."""
    K, rows = tables[0].shape[1], np.arange(len(given))
    stacked = np.stack(tables)
    usual = np.log([USUAL_SCALE] + [USUAL_COUNTS] * (len(tables) - 1))

    def height(logs: np.ndarray) -> tuple[float, np.ndarray]:
        scales = np.exp(logs)
        logits = np.tensordot(scales, stacked, axes=1)
        p = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
        own = (1.0 - WRONG) * p[rows, given]
        mixed = own + WRONG / K
        p[rows, given] -= 1.0
        slope = scales * np.einsum("nk,jnk->j", p * (own / mixed)[:, None], stacked)
        away = (logs - usual) / USUAL_WIDTH
        return float(away @ away / 2 - np.log(mixed).sum()), slope + away / USUAL_WIDTH

    return np.exp(minimize(height, usual, jac=True, method="L-BFGS-B").x)


def _all_labels(scores: np.ndarray, own: Labels, all_labels: Labels) -> np.ndarray:
    """Columns for all labels; those that the fold has never seen score like the worst."""
    if own.classes == all_labels.classes or not len(scores):
        return scores
    full = np.repeat(scores.min(axis=1, keepdims=True), len(all_labels), axis=1)
    full[:, [all_labels.code[label] for label in own.classes]] = scores
    return full


def _flat(rows: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, np.int64), *rows]).astype(np.int64)
