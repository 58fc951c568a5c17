"""Checks of a compiled model through its kernel."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.models.base import CompiledModel
from maxmargin.models.sequence_bound import Tabulated
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
        if bound.needs_positive is not None:
            w[bound.needs_positive] = np.abs(w[bound.needs_positive])
        for cost_weight in COST_WEIGHTS:
            for i in examples:
                _visit(report, bound, w, i, cost_weight, seen[i])
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
    parts = [slice(*pair) for pair in pairwise(ends)]
    planes = [(index[part].copy(), value[part].copy(), float(result[2 + 2 * p])) for p, part in enumerate(parts)]
    return made, output[: bound.output_at[i + 1] - bound.output_at[i]].copy(), result, planes, iwork


def _visit(report: Report, bound: CompiledModel, w: np.ndarray, i: int, cost_weight: float, seen: list[Plane]) -> None:
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
            report.problem("numbers", f"{where}: plane {p} has a negative cost or is not finite (b = {b}).")
    first = cost_weight * planes[0][2] - w[planes[0][0]] @ planes[0][1]
    if abs(first - value) > slack:
        report.problem("plane value", f"{where}: the plane is worth {first:.6g} at w, its output {value:.6g}.")
    seen.extend(planes)
    del seen[:-60]
    best = max(cost_weight * b - w[index] @ values for index, values, b in seen)
    if best > limit + slack:
        report.problem("not the maximum", f"{where}: a plane before was worth {best:.6g}, the bound is {limit:.6g}.")
    if limit < -slack:
        report.problem("below truth", f"{where}: the bound {limit:.6g} is negative; the true output alone gives 0.")
    _enumerate(report, bound, w, i, cost_weight, output, float(result[2]), value, where)


def _enumerate(
    report: Report, bound: CompiledModel, w: np.ndarray, i: int, cost_weight: float,
    output: np.ndarray, cost: float, value: float, where: str,
) -> None:  # fmt: skip
    """Look at every output of a small example."""
    if not isinstance(bound, Tabulated):
        return
    unary, pairs = bound.tables(w, i)
    zero, truth = np.zeros_like(w), bound.truth(i)
    costs = np.where(np.isfinite(unary), bound.tables(zero, i, 1.0)[0] - bound.tables(zero, i)[0], 0.0)
    T, K = unary.shape
    pairs = np.broadcast_to(pairs, (max(T - 1, 0), K, K))
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
        kernels = f"the output {output.tolist()} of value {objective[found] - objective[true]:.6g}"
        text = f"{where}: the kernel found {kernels}; {y[objective.argmax()].tolist()} has {best:.6g}."
        report.problem("enumeration", text)
    if abs(best - value) > slack:
        report.problem("value", f"{where}: the kernel says the value is {value:.6g}; enumeration finds {best:.6g}.")


@lru_cache(maxsize=8)
def _labelings(T: int, K: int) -> np.ndarray:
    return np.arange(K**T)[:, None] // K ** np.arange(T) % K  # the first position changes fastest
