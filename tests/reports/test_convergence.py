"""Pictures of histories show the numbers of the histories."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

from maxmargin.certificate import Certificate  # noqa: E402
from maxmargin.reports.convergence import plot_convergence  # noqa: E402
from maxmargin.solvers.history import History  # noqa: E402


@pytest.fixture
def history():
    history = History()
    for k, (primal, dual) in enumerate([(10.0, 5.0), (8.0, 6.0), (7.0, 7.0)], start=1):
        history.record(Certificate(primal, dual), passes=k, oracle_calls=20 * k, argmax_calls=20 * k, seconds=0.5 * k)
    return history


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


def curve(ax, number=0):
    return ax.lines[number].get_xdata(), ax.lines[number].get_ydata()


def test_curves_hold_the_history(history):
    axes = plot_convergence({"a": history, "b": list(history)})
    assert [ax.get_xlabel() for ax in axes] == ["oracle passes", "seconds"]
    assert axes[0].get_ylabel() == "relative gap"
    for ax, places in zip(axes, ([1, 2, 3], [0.5, 1.0, 1.5]), strict=True):
        assert ax.get_yscale() == "log"
        for number in range(2):
            x, gap = curve(ax, number)
            assert x == pytest.approx(places)
            assert gap == pytest.approx([0.5, 0.25, 1e-16])  # a gap of 0 lies at rounding level
    assert [text.get_text() for text in axes[-1].get_legend().get_texts()] == ["a", "b"]


def test_frames_and_given_axes(history):
    pytest.importorskip("pandas")
    _, ax = pyplot.subplots()
    (same,) = plot_convergence({"a": history.to_frame()}, ax, against="oracle_calls", tol=1e-3)
    assert same is ax
    assert curve(ax)[0] == pytest.approx([20, 40, 60])
    assert set(curve(ax, 1)[1]) == {1e-3}
    ax.figure.canvas.draw()


def test_unknown_gaps_are_left_out(history):
    history.record(Certificate(np.inf, 7.0, certified=False), passes=4, oracle_calls=80, argmax_calls=80, seconds=2.0)
    axes = plot_convergence({"a": history})
    assert curve(axes[0])[0] == pytest.approx([1, 2, 3])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (({},), {}, "no history to plot"),
        (({"a": [{"pass": 1}]},), {}, "'a' lacks one of relative_gap"),
        (({"a": []},), {"against": ("gap",)}, "against has the unknown entry 'gap'; use pass"),
    ],
)
def test_bad_arguments(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        plot_convergence(*arguments, **options)


def test_wrong_number_of_axes(history):
    _, ax = pyplot.subplots()
    with pytest.raises(ValueError, match="1 axes for 2 columns"):
        plot_convergence({"a": history}, ax)


def test_missing_matplotlib_names_the_extra(history, monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest, **named):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plot_convergence({"a": history})
