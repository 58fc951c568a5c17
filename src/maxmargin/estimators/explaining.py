"""Which weights make one labelling score higher than another, and by how much.

The score of a chain is a sum over features, so the difference of two scores splits without remainder:

    score(x, y) - score(x, y') = sum_f value_f (w[f, y] - w[f, y'])
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import scipy.sparse as sp

from maxmargin.features.sequences import Sequences

if TYPE_CHECKING:
    from maxmargin.estimators.sequence_tagger import SequenceTagger

__all__ = ["Contribution", "WeightRow", "coef_table", "explain"]

Labelling = Sequence[Hashable]


class WeightRow(TypedDict):
    """A weight; its label is a pair (left, right) for transitions and edge features."""

    feature: str
    label: Hashable
    weight: float


class Contribution(TypedDict):
    """What a feature at a position adds to the difference of two scores."""

    position: int
    feature: str
    label: Hashable
    other: Hashable
    value: float
    contribution: float


def coef_table(tagger: SequenceTagger, top: int | None = None, label: Hashable = None) -> list[WeightRow]:
    """The weights of a fitted tagger that are not zero, largest absolute value first.

    Parameters
    ----------
    tagger : SequenceTagger
    top : int, optional
        How many rows; all when missing.
    label : optional
        Only the weights of features with this label, without pairs of labels.

    Returns
    -------
    list of dict
        ``feature`` (its name; ``x7`` for column 7 without names; "transition", "start", "end"), ``label`` (a pair
        (left, right) for transitions and edge features) and ``weight``. ``pandas.DataFrame`` takes it as it is.
    """
    tagger._check_fitted()
    if top is not None and not (isinstance(top, (int, np.integer)) and top >= 1):
        raise ValueError(f"top must be a whole number >= 1 or None, got {top!r}.")
    layout, classes = tagger.layout_, tagger.classes_
    if label is not None and label not in layout.labels.code:
        raise ValueError(f"the model has no label {label!r}; it has {', '.join(map(str, classes))}.")
    only = None if label is None else layout.labels.code[label]
    found = []  # group, flat places of the non-zero weights in it, the weights
    for group, block in layout.groups(tagger.weights_).items():
        if only is not None and group in ("transition", "edge"):
            continue
        places, values = _non_zero(block, only)
        found.append((group, _strongest(values, top), places, values))
    groups = [group for group, kept, _, _ in found for _ in range(len(kept))]
    places = np.concatenate([places[kept] for _, kept, places, _ in found])
    values = np.concatenate([values[kept] for _, kept, _, values in found])
    order = _strongest(values, top)
    K = len(classes)
    ids: dict[str, set[int]] = {}
    rows: list[tuple[str, int, Hashable, float]] = []
    for k in order.tolist():
        group, pairs = groups[k], groups[k] in ("transition", "edge")
        feature, where = divmod(int(places[k]), K * K if pairs else K)
        label = (classes[where // K], classes[where % K]) if pairs else classes[where]
        rows.append((group, feature, label, float(values[k])))
        ids.setdefault(group, set()).add(feature)
    names = {group: _names(tagger, group, members) for group, members in ids.items()}
    return [{"feature": names[g][feature], "label": where, "weight": w} for g, feature, where, w in rows]


def explain(
    tagger: SequenceTagger, x: object, y: Labelling | None = None, other: Labelling | None = None
) -> list[Contribution]:
    """Why one labelling of a sequence scores higher than another: the difference, split by features.

    Parameters
    ----------
    tagger : SequenceTagger
    x : one sequence, as an element of the list that ``predict`` takes
    y : sequence of labels, optional
        The prediction when missing.
    other : sequence of labels, optional
        The best labelling other than ``y`` when missing.

    Returns
    -------
    list of dict
        ``position``, ``feature``, ``label`` and ``other`` (what ``y`` and ``other`` have there; pairs (left, right) for
        transitions and edge features), ``value`` of the feature and ``contribution``, largest absolute value first.
        The contributions add up to ``score(y) - score(other)``; those that are zero are left out.
    """
    tagger._check_fitted()
    layout = tagger.layout_
    sequence = _one_sequence(tagger, x)
    y, other = _two_labellings(tagger, sequence, y, other)
    codes, codes_other = layout.labels.encode(y, 0), layout.labels.encode(other, 0)
    rows = _emission_rows(tagger, sequence, codes, codes_other) + _pair_rows(tagger, sequence, codes, codes_other)
    kept = [row for row in rows + _end_rows(tagger, codes, codes_other) if row["contribution"] != 0.0]
    return sorted(kept, key=lambda row: -abs(row["contribution"]))


def _row(position: int, feature: str, label: Hashable, other: Hashable, value: float, part: float) -> Contribution:
    return Contribution(position=position, feature=feature, label=label, other=other, value=value, contribution=part)


def _non_zero(block: np.ndarray | sp.csr_array, only: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Flat places (row after row) and values of the weights of a group, those of label ``only`` if it is given."""
    if isinstance(block, sp.csr_array):
        rows = np.repeat(np.arange(block.shape[0], dtype=np.int64), np.diff(block.indptr))
        places, values = rows * block.shape[1] + block.indices, block.data
        kept = values != 0 if only is None else (values != 0) & (block.indices == only)
        return places[kept], values[kept]
    if only is None:
        places = np.flatnonzero(block)
        return places, block.ravel()[places]
    column = np.asarray(block)[..., only].reshape(-1)
    rows = np.flatnonzero(column)
    return rows * block.shape[-1] + only, column[rows]


def _strongest(values: np.ndarray, top: int | None) -> np.ndarray:
    """Where the largest absolute values are, in falling order; ties in the order of their places."""
    size = np.abs(values)
    if top is not None and top < len(size):
        least = np.partition(size, len(size) - top)[len(size) - top]
        chosen = np.flatnonzero(size >= least)
        return chosen[np.argsort(-size[chosen], kind="stable")][:top]
    return np.argsort(-size, kind="stable")


def _names(tagger: SequenceTagger, group: str, ids: Iterable[int]) -> dict[int, str]:
    """Names of features of a group by id."""
    ids = sorted(ids)
    if group not in ("sparse", "dense", "edge"):
        return dict.fromkeys(ids, group)
    extractor = tagger.features_
    if extractor is not None and group != "dense" and vars(extractor).get("hashing") is None:
        edge = {"edge": True} if group == "edge" else {}
        return dict(zip(ids, extractor.names(ids, **edge), strict=True))
    first = tagger.layout_.n_sparse if group == "dense" else 0
    return {i: f"{'edge ' if group == 'edge' else ''}x{first + i}" for i in ids}


def _one_sequence(tagger: SequenceTagger, x: object) -> Sequences:
    if isinstance(x, Sequences):
        if len(x) != 1:
            raise ValueError(f"one sequence can be explained at a time; got {len(x)}.")
        return x
    return Sequences.of([x]) if tagger.features_ is None else tagger.features_.transform([x])


def _two_labellings(
    tagger: SequenceTagger, sequence: Sequences, y: Labelling | None, other: Labelling | None
) -> tuple[Labelling, Labelling]:
    for name, labels in (("y", y), ("other", other)):
        if isinstance(labels, str):
            raise TypeError(f"{name} is one string; give a list with a label for each token.")
        if labels is not None and len(labels) != sequence.n_tokens:
            raise ValueError(f"{name} has {len(labels)} labels and x has {sequence.n_tokens} tokens; they must agree.")
    y = list(tagger.predict(sequence)[0] if y is None else y)
    if other is None:
        best = [labels for labels, _ in tagger.predict_kbest(sequence, 2)[0]]
        other = next((labels for labels in best if labels != y), None)
        if other is None:
            raise ValueError("the model allows no other labelling of this sequence; there is nothing to compare with.")
    return y, list(other)


def _features(tagger: SequenceTagger, sequence: Sequences) -> sp.csr_array:
    """Features of the tokens side by side in the order of ``coef_``, whichever kinds they were given as."""
    blocks = [sp.csr_array(block) for block in (sequence.sparse, sequence.dense) if block is not None]
    width, expected = sum(b.shape[1] for b in blocks), tagger.layout_.n_sparse + tagger.layout_.n_dense
    if width != expected:
        raise ValueError(f"x has {width} features per token; the model was fitted with {expected}.")
    return sp.csr_array(sp.hstack(blocks, format="csr"))


def _emission_rows(tagger: SequenceTagger, sequence: Sequences, y: np.ndarray, other: np.ndarray) -> list[Contribution]:
    layout, classes = tagger.layout_, tagger.classes_
    groups, rows = layout.groups(tagger.weights_), []
    X = _features(tagger, sequence)
    for t in np.flatnonzero(y != other).tolist():
        ids, values = X.indices[X.indptr[t] : X.indptr[t + 1]], X.data[X.indptr[t] : X.indptr[t + 1]]
        dense = ids >= layout.n_sparse
        for group, inside, first in (("sparse", ~dense, 0), ("dense", dense, layout.n_sparse)):
            chosen = ids[inside] - first
            if not len(chosen):
                continue
            weights = groups[group][chosen]
            weights = weights.toarray() if sp.issparse(weights) else weights
            contributions = values[inside] * (weights[:, y[t]] - weights[:, other[t]])
            names = _names(tagger, group, chosen.tolist())
            for i, value, part in zip(chosen.tolist(), values[inside].tolist(), contributions.tolist(), strict=True):
                rows.append(_row(t, names[i], classes[y[t]], classes[other[t]], value, part))
    return rows


def _pair_rows(tagger: SequenceTagger, sequence: Sequences, y: np.ndarray, other: np.ndarray) -> list[Contribution]:
    groups, classes, rows = tagger.layout_.groups(tagger.weights_), tagger.classes_, []
    edge = sequence.edge if tagger.layout_.n_edge else None
    for t in range(1, len(y)):
        if y[t - 1] == other[t - 1] and y[t] == other[t]:
            continue
        ours, theirs = (int(y[t - 1]), int(y[t])), (int(other[t - 1]), int(other[t]))
        pair, pair_other = (classes[ours[0]], classes[ours[1]]), (classes[theirs[0]], classes[theirs[1]])
        part = float(groups["transition"][ours] - groups["transition"][theirs])
        rows.append(_row(t, "transition", pair, pair_other, 1.0, part))
        if edge is None:
            continue
        ids, values = edge.indices[edge.indptr[t] : edge.indptr[t + 1]], edge.data[edge.indptr[t] : edge.indptr[t + 1]]
        names = _names(tagger, "edge", ids.tolist())
        for i, value in zip(ids.tolist(), values.tolist(), strict=True):
            part = value * float(groups["edge"][(i, *ours)] - groups["edge"][(i, *theirs)])
            rows.append(_row(t, names[i], pair, pair_other, value, part))
    return rows


def _end_rows(tagger: SequenceTagger, y: np.ndarray, other: np.ndarray) -> list[Contribution]:
    groups, classes = tagger.layout_.groups(tagger.weights_), tagger.classes_
    rows = []
    for name, t in (("start", 0), ("end", len(y) - 1)):
        if name in groups and len(y) and y[t] != other[t]:
            part = float(groups[name][y[t]] - groups[name][other[t]])
            rows.append(_row(t, name, classes[y[t]], classes[other[t]], 1.0, part))
    return rows
