"""Checks of a compiled model through its kernel."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.features.sequences import Sequences
from maxmargin.models.base import CompiledModel
from maxmargin.models.chain import Chain, ChainBound
from maxmargin.models.multiclass import MulticlassBound
from maxmargin.testing.report import Report

if TYPE_CHECKING:
    from maxmargin.testing.check_model import Model

__all__ = ["check_compiled"]

MOST_EXAMPLES = 20
MOST_OUTPUTS = 4096
COST_WEIGHTS = (0.0, 1.0, 0.3, -1.0)
EMIT = 6
TOLERANCE = 1e-9

Plane = tuple[np.ndarray, np.ndarray, float]  # indices, values, b


def check_compiled(model: Model, X: object, Y: object, n_trials: int, rng: np.random.Generator) -> Report:
    """Compare planes, costs and bounds with each other, and with enumeration where outputs are few."""
    report = Report(repr(model))
    try:
        X = Sequences.of(X) if isinstance(model, Chain) else X
        bound = model.bind(X, Y)
    except (TypeError, ValueError) as error:
        report.problem("bind", f"bind refused the data: {error}")
        return report
    if not isinstance(bound, CompiledModel):
        report.problem("bind", f"bind returned a {type(bound).__name__}; a CompiledModel is expected.")
        return report
    report.capabilities |= {name: True for name in sorted(bound.capabilities)}
    examples = rng.permutation(bound.n_examples)[:MOST_EXAMPLES].tolist()
    seen: dict[int, list[Plane]] = {i: [] for i in examples}
    for trial in range(n_trials):
        w = rng.normal(size=bound.n_weights) * (0.0, 1.0, 0.1, 10.0)[trial % 4]
        for cost_weight in COST_WEIGHTS:
            for i in examples:
                _visit(report, bound, X, w, i, cost_weight, seen[i])
    return report


def _ask(
    bound: CompiledModel, w: np.ndarray, i: int, cost_weight: float, emit: int
) -> tuple[int, np.ndarray, np.ndarray, list[Plane], np.ndarray]:
    """One kernel call: (planes made, output, result, [(indices, values, b)], iwork)."""
    iwork, fwork, output = bound.workspace()
    index, value = np.empty(bound.room, np.int32), np.empty(bound.room)
    result = np.full(2 + 2 * max(emit, 1), np.nan)
    made = bound.plane(
        bound.meta, bound.ints, bound.floats, w, i, cost_weight, emit, iwork, fwork, output, index, value, result
    )
    ends = [0, *(int(result[3 + 2 * p]) for p in range(made))]
    planes = [
        (index[ends[p] : ends[p + 1]].copy(), value[ends[p] : ends[p + 1]].copy(), float(result[2 + 2 * p]))
        for p in range(made)
    ]
    return made, output[: bound.output_at[i + 1] - bound.output_at[i]].copy(), result, planes, iwork


def _visit(
    report: Report,
    bound: CompiledModel,
    X: object,
    w: np.ndarray,
    i: int,
    cost_weight: float,
    seen: list[Plane],
) -> None:
    where = f"example {i}, cost_weight {cost_weight:g}"
    before = w.copy()
    made, output, result, planes, iwork = _ask(bound, w, i, cost_weight, EMIT)
    if made < 1:
        report.problem("no plane", f"{where}: the kernel returned {made}; the true output is always possible.")
        return
    if iwork.any():
        report.problem("scratch", f"{where}: iwork is not zero after the call; the next call would go wrong.")
    _, again, decoded, _, _ = _ask(bound, w, i, cost_weight, 0)
    if not np.array_equal(w, before):
        report.problem("w changed", f"{where}: the kernel changed w; it may only read it.")
    if not np.array_equal(output, again) or not np.array_equal(result[:3], decoded[:3]):
        report.problem("unlike", f"{where}: two calls gave different outputs, costs or bounds; keep no state.")
    value, limit = float(result[0]), float(result[1])
    slack = TOLERANCE * max(1.0, abs(value), np.abs(w).max(initial=0.0))
    if limit < value - slack:
        report.problem("bound", f"{where}: the bound {limit:.6g} is below the value {value:.6g} of the output found.")
    if "exact" in bound.capabilities and limit > value + slack:
        report.problem("exact", f"{where}: the bound {limit:.6g} is not the value {value:.6g}, but the model is exact.")
    for p, (index, values, b) in enumerate(planes):
        if len(index) and (index.min() < 0 or index.max() >= bound.n_weights):
            report.problem("index", f"{where}: plane {p} has an index outside 0..{bound.n_weights - 1}.")
            return
        if len(np.unique(index)) != len(index):
            report.problem("twice", f"{where}: plane {p} repeats an index; merge its entries.")
        if not (np.isfinite(values).all() and np.isfinite(b) and b >= 0.0):
            report.problem(
                "numbers", f"{where}: plane {p} has a negative cost or numbers that are not finite (b = {b})."
            )
    first = cost_weight * planes[0][2] - w[planes[0][0]] @ planes[0][1]
    if abs(first - value) > slack:
        report.problem(
            "plane value", f"{where}: the plane of the output is worth {first:.6g} at w, and its value is {value:.6g}."
        )
    seen.extend(planes)
    del seen[:-60]
    best = max(cost_weight * b - w[index] @ values for index, values, b in seen)
    if best > limit + slack:
        report.problem(
            "not the maximum", f"{where}: a plane seen before is worth {best:.6g}, above the bound {limit:.6g}."
        )
    if limit < -slack:
        report.problem("below truth", f"{where}: the bound {limit:.6g} is negative; the true output alone gives 0.")
    _enumerate(report, bound, X, w, i, cost_weight, output, float(result[2]), value, where)


def _enumerate(
    report: Report, bound: CompiledModel, X: object, w: np.ndarray, i: int, cost_weight: float,
    output: np.ndarray, cost: float, value: float, where: str,
) -> None:  # fmt: skip
    """Look at every output of a small example."""
    tables = _tables(bound, X, w, i)
    if tables is None:
        return
    unary, pairs, costs, truth = tables
    T, K = unary.shape
    if K > 1 and T * np.log(K) > np.log(MOST_OUTPUTS) + 1e-9:
        return
    y = _labelings(T, K)
    at = np.arange(T)
    scores = unary[at, y].sum(axis=1) + pairs[at[1:] - 1, y[:, :-1], y[:, 1:]].sum(axis=1)
    totals = costs[at, y].sum(axis=1)
    objective = scores + cost_weight * totals
    true = int((truth * K**at).sum())
    found = int((output.astype(np.int64) * K**at).sum())
    slack = TOLERANCE * max(1.0, np.abs(unary[np.isfinite(unary)]).sum())
    if abs(totals[found] - cost) > slack:
        report.problem("cost", f"{where}: the cost of the output is {totals[found]:.6g}; the kernel says {cost:.6g}.")
    best = objective.max() - objective[true]
    if not abs(objective[found] - objective[true] - best) <= slack:
        report.problem(
            "enumeration",
            f"{where}: the kernel found the output {output.tolist()} of value "
            f"{objective[found] - objective[true]:.6g}; {y[objective.argmax()].tolist()} has {best:.6g}.",
        )
    if abs(best - value) > slack:
        report.problem("value", f"{where}: the kernel says the value is {value:.6g}; enumeration finds {best:.6g}.")


@lru_cache(maxsize=8)
def _labelings(T: int, K: int) -> np.ndarray:
    return np.arange(K**T)[:, None] // K ** np.arange(T) % K  # the first position changes fastest


def _tables(bound: CompiledModel, X: object, w: np.ndarray, i: int) -> tuple | None:
    """Unary (T, K), pair (T - 1, K, K) and cost (T, K) tables and true codes, with numpy; None for other models."""
    if isinstance(bound, MulticlassBound):
        from maxmargin.models import multiclass_kernel as mk

        truth = bound.ints[bound.meta[mk.AT_LABELS] + i : bound.meta[mk.AT_LABELS] + i + 1]
        K = len(bound.layout.labels)
        return bound.scores(w, np.array([i])), np.zeros((0, K, K)), bound.layout.cost_table[truth], truth
    if not (isinstance(bound, ChainBound) and isinstance(X, Sequences)):
        return None
    from maxmargin.models import chain_kernel as ck

    layout, sequences = bound.layout, X
    groups, K = layout.groups(w), len(layout.labels)
    tokens = slice(*sequences.offsets[i : i + 2])
    T = tokens.stop - tokens.start
    truth = bound.ints[bound.meta[ck.AT_LABELS] :][tokens]
    unary = np.zeros((T, K))
    if sequences.sparse is not None:
        unary += sequences.sparse[tokens].toarray() @ groups["sparse"]
    if sequences.dense is not None:
        unary += sequences.dense[tokens] @ groups["dense"]
    pairs = np.tile(groups["transition"] + layout.pair_mask, (max(T - 1, 0), 1, 1))
    if sequences.edge is not None and T > 1:
        pairs += np.tensordot(sequences.edge[tokens].toarray()[1:], groups["edge"], axes=1)
    if T:
        unary[0] += layout.start_mask
        unary[-1] += layout.end_mask
        if layout.ends:
            unary[0] += groups["start"]
            unary[-1] += groups["end"]
    return unary, pairs, layout.cost_table[truth] / (T if layout.normalize and T else 1), truth
