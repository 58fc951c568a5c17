"""How faithful a generative model stays when it is trained for prediction: likelihood against accuracy over C.

With C = 0 the model is its reference. As C grows it predicts better, up to a point, and moves away from the reference:
tables change their shape, ``KL(c_j || e^{theta_j} / m_j)``, and lose mass, ``-ln m_j`` with ``m_j = 1'e^{theta_j}``.
Their sum is the divergence that training penalises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from maxmargin.reports.convergence import Rows, columns, require_matplotlib
from maxmargin.solvers.history import Table, as_frame

if TYPE_CHECKING:
    from maxmargin.estimators.discriminative_bayes_net import DiscriminativeBayesNet
    from maxmargin.estimators.discriminative_hmm import DiscriminativeHMM

__all__ = ["faithfulness", "moved_tables", "plot_faithfulness"]

GRID = (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
ORDERS = ("divergence", "lost_mass")


def faithfulness(
    estimator: DiscriminativeHMM | DiscriminativeBayesNet,
    train: Sequence,
    held_out: Sequence,
    C: Sequence[float] = GRID,
    **fit_words: object,
) -> Table:
    """Held-out likelihood and accuracy of a generative model over a grid of C.

    Parameters
    ----------
    estimator : DiscriminativeHMM or DiscriminativeBayesNet
        Supplies the parameters; it is not changed.
    train, held_out : sequences of arguments
        ``(X, y)`` for a hidden Markov model, ``(frame,)`` for a network: what ``fit``, ``score`` and
        ``log_likelihood`` take.
    C : sequence of float
        0 is the reference itself.
    **fit_words
        Keyword arguments of ``fit``, such as ``target``.

    Returns
    -------
    pandas.DataFrame, or dict of columns without pandas
        One row per C: ``C``; ``log_likelihood``, the mean ``ln P(x, y)`` of a held-out example under the renormalised
        model; ``accuracy``; ``cost``, the mean over examples; ``divergence`` from the reference, in nats, summed over
        tables; ``lost_mass``, the largest of any table; ``relative_gap`` of the fit.
    """
    if len(C) == 0:
        raise ValueError("C is empty; give at least one value, such as 0 for the reference.")
    rows = []
    for value in C:
        model = type(estimator)(**{**estimator.get_params(deep=False), "C": float(value)})
        fit: Callable[..., object] = model.fit
        fit(*train, **fit_words)
        shape, mass = _divergences(model)
        row = {
            "C": float(value),
            "log_likelihood": float(np.mean(model.log_likelihood(*held_out))),
            "accuracy": float(model.score(*held_out)),
            "cost": float(model.mean_cost(*held_out)),
            "divergence": float((shape - np.log(mass)).sum()),
            "lost_mass": float(1 - mass.min()),
            "relative_gap": float(model.certificate_.relative_gap),
        }
        rows.append(row)
    return as_frame(rows)


def moved_tables(
    estimator: DiscriminativeHMM | DiscriminativeBayesNet, top: int | None = 20, by: str = "divergence"
) -> Table:
    """The conditional distributions that have changed most, their largest change, and the mass they have lost.

    Parameters
    ----------
    estimator : fitted generative estimator
    top : int or None
        Number of tables; None for all.
    by : {"divergence", "lost_mass"}

    Returns
    -------
    pandas.DataFrame, or dict of columns without pandas
        ``table``; ``divergence = shape + mass``, where ``shape`` is the divergence of the renormalised table and
        ``mass`` is ``-ln`` of its remaining mass; ``lost_mass``; ``value``, the entry whose probability has changed
        most, with its probability in the ``reference`` and in the ``model``; ``seen``, its uses in training.
    """
    if by not in ORDERS:
        raise ValueError(f"by must be one of {', '.join(ORDERS)}; got {by!r}.")
    estimator._check_fitted()
    layout, tables = estimator.layout_, estimator.layout_.tables
    shape, mass = _divergences(estimator)
    total, seen = shape - np.log(mass), tables.sums(estimator.counts_)
    order = np.argsort(-(total if by == "divergence" else 1 - mass), kind="stable")[:top]
    rows = []
    for j in map(int, order):
        place = slice(int(tables.starts[j]), int(tables.starts[j + 1]))
        c, p = estimator.reference_[place], np.exp(estimator.weights_[place])
        k = int(np.argmax(np.abs(p - c)))
        moved = {"divergence": total[j], "shape": shape[j], "mass": 0.0 - np.log(mass[j]), "lost_mass": 1 - mass[j]}
        numbers = {name: float(number) for name, number in moved.items()}
        entry = {"value": layout.values(j)[k], "reference": float(c[k]), "model": float(p[k])}
        rows.append({"table": tables.name(j), **numbers, **entry, "seen": float(seen[j])})
    return as_frame(rows)


def plot_faithfulness(
    results: Rows | Mapping[str, Rows], axes: object = None, *, measure: str = "accuracy"
) -> np.ndarray:
    """Plot accuracy against likelihood over C, and the divergence from the reference against C.

    Parameters
    ----------
    results : table of :func:`faithfulness`, or mapping of names to such tables
    axes : two matplotlib axes, optional
        A new figure by default.
    measure : {"accuracy", "cost"}

    Returns
    -------
    array of two matplotlib axes
        A ring marks the reference (C = 0), which the logarithmic axis of the second plot cannot show.
    """
    pyplot = require_matplotlib()
    one = not isinstance(results, Mapping) or "log_likelihood" in results
    named = {"": cast(Rows, results)} if one else cast(Mapping[str, Rows], results)
    if not named:
        raise ValueError("nothing to plot; pass {name: faithfulness(...)}.")
    wanted = ("C", "log_likelihood", measure, "divergence")
    curves = {name: columns(name, rows, wanted, "the result of faithfulness()") for name, rows in named.items()}
    if axes is None:
        _, axes = pyplot.subplots(1, 2, figsize=(9.2, 3.8), layout="constrained")
    axes = np.atleast_1d(np.asarray(axes, dtype=object))
    if len(axes) != 2:
        raise ValueError(f"{len(axes)} axes were given; two are needed.")
    for name, curve in curves.items():
        order = np.argsort(curve["C"], kind="stable")
        C, likelihood, value, divergence = (curve[column][order] for column in wanted)
        (line,) = axes[0].plot(likelihood, value, marker="o", markersize=3, linewidth=1.4, label=name)
        start = C == 0
        ring = {"markersize": 9, "markerfacecolor": "none", "color": line.get_color(), "linestyle": "none"}
        axes[0].plot(likelihood[start], value[start], marker="o", **ring)
        best = int(np.argmax(value) if measure == "accuracy" else np.argmin(value))
        for k in sorted({int(np.argmin(C)), best, int(np.argmax(C))}):  # the reference, the best, the last
            text, where = f"C = {C[k]:g}", (likelihood[k], value[k])
            axes[0].annotate(text, where, xytext=(4, 4), textcoords="offset points", fontsize="x-small")
        axes[1].plot(C[~start], divergence[~start], marker="o", markersize=3, linewidth=1.4, color=line.get_color())
    axes[0].set(xlabel="held-out ln P(x, y) of an example", ylabel=f"held-out {measure}")
    axes[1].set(xlabel="C", ylabel="divergence from the reference (nats)", xscale="log")
    for ax in axes:
        ax.grid(True, which="major", alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
    if any(named):
        axes[0].legend(frameon=False, fontsize="small")
    return axes


def _divergences(estimator: DiscriminativeHMM | DiscriminativeBayesNet) -> tuple[np.ndarray, np.ndarray]:
    """``KL(c_j || e^{theta_j} / m_j)`` and the mass m_j of each table."""
    tables, c, theta = estimator.layout_.tables, estimator.reference_, estimator.weights_
    log_mass = np.minimum(tables.log_mass(theta), 0.0)
    with np.errstate(invalid="ignore"):
        shape = tables.sums(c * (np.log(c) - theta)) + log_mass
    return np.maximum(shape, 0.0), np.exp(log_mass)
