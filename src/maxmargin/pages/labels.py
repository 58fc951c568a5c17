"""What a page says about labels: how many there are, which are missed, and for what they are taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from maxmargin.metrics.label_sets import LabelReport
from maxmargin.pages.html import Html, Section, figures, paragraph, table
from maxmargin.pages.svg import lines, shaded

__all__ = ["Counts", "label_section", "label_set_section", "reliability"]

MOST_ROWS, MOST_CELLS, BINS = 40, 14, 10
HEADERS = ["label", "true", "predicted", "right", "precision", "recall"]
Counts = Mapping[tuple[Hashable, Hashable], int]  # of pairs (true, predicted)


def label_section(counts: Counts, what: str) -> Section:
    """Counts and errors by label, and the labels that are most often confused; ``what`` is counted (tokens, ...)."""
    total, given, right = Counter[Hashable](), Counter[Hashable](), Counter[Hashable]()
    for (true, found), n in counts.items():
        total[true] += n
        given[found] += n
        right[true] += n * (true == found)
    names = list(dict.fromkeys([*total, *given]))
    names.sort(key=lambda name: 2 * right[name] - total[name] - given[name])  # the most errors first
    rows = []
    for name in names[:MOST_ROWS]:
        recall = f"{right[name] / total[name]:.3f}" if total[name] else "–"
        precision = f"{right[name] / given[name]:.3f}" if given[name] else "–"
        rows.append((str(name), total[name], given[name], right[name], precision, recall))
    n = sum(total.values())
    told = f"{n} {what}, {len(names)} labels; {100 * sum(right.values()) / max(1, n):.2f} % are right."
    if len(names) > MOST_ROWS:
        told += f" The table has the {MOST_ROWS} labels with the most errors."
    return Section("Labels", [paragraph(told), table(HEADERS, rows), _confused(counts, names, total)])


def _confused(counts: Counts, names: Sequence[Hashable], total: Mapping[Hashable, int]) -> Html:
    """The labels with the most errors against each other; cells are shares of the true label."""
    kept = names[:MOST_CELLS]
    shares = np.array([[counts.get((true, found), 0) / max(1, total[true]) for found in kept] for true in kept])
    labels = [str(name) for name in kept]
    caption = "Per cent of each true label (row) that was predicted as each label (column)"
    more = f", the {MOST_CELLS} labels with the most errors" if len(names) > MOST_CELLS else ""
    return figures([(shaded(labels, labels, shares, "confusion of labels"), caption + more)])


def _said(score: str) -> str:
    return score.replace("_", " ").replace("f1", "F1").replace("jaccard", "Jaccard")


def label_set_section(report: LabelReport, n: int) -> Section:
    """All scores of n label sets, and the labels with the most errors."""
    scores = [(_said(name), f"{value:.4f}") for name, value in vars(report).items() if name != "by_label"]
    found = sorted(report.by_label.items(), key=lambda item: 2 * item[1].n_right - item[1].n_true - item[1].n_predicted)
    rows = [
        (str(name), s.n_true, s.n_predicted, s.n_right, f"{s.precision:.3f}", f"{s.recall:.3f}")
        for name, s in found[:MOST_ROWS]
    ]
    told = f"{n} label sets of {len(found)} labels."
    if len(found) > MOST_ROWS:
        told += f" The second table has the {MOST_ROWS} labels with the most errors."
    return Section("Labels", [paragraph(told), table(["score", "value"], scores), table(HEADERS, rows)])


def reliability(probabilities: np.ndarray, right: np.ndarray, calibrated: bool) -> Section:
    """How often predictions are right (0/1), by the probability (n,) that they claim."""
    edges = np.linspace(0.0, 1.0, BINS + 1)
    bins = np.clip(np.digitize(probabilities, edges) - 1, 0, BINS - 1)
    rows, x, y = [], [], []
    for k in range(BINS):
        inside = bins == k
        if inside.any():
            claimed, found = float(probabilities[inside].mean()), float(right[inside].mean())
            x.append(claimed)
            y.append(found)
            rows.append((f"{edges[k]:.1f} to {edges[k + 1]:.1f}", int(inside.sum()), f"{claimed:.3f}", f"{found:.3f}"))
    error = sum(row[1] * abs(float(row[2]) - float(row[3])) for row in rows) / max(1, len(right))
    told = f"Probabilities and the share that is right differ by {error:.3f} on average (expected calibration error)."
    if not calibrated:
        told += " The probabilities are not calibrated: call fit_temperature on held-out examples first."
    drawn = lines({"predictions": (x, y), "ideal": ([0.0, 1.0], [0.0, 1.0])}, "probability", "share that is right")
    headers = ["probability", "predictions", "mean", "right"]
    return Section("Calibration", [paragraph(told), figures([(drawn, "")]), table(headers, rows)])
