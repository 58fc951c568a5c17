"""The parts of the time are disjoint and add up, also when kernels compiled inside another clock."""

from __future__ import annotations

import pytest

from maxmargin.pages.time_split import split_seconds, time_split


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ((10.0, 2.0, 3.0, 4.0), (2.0, 3.0, 4.0, 1.0)),  # disjoint already: the rest is "other"
        ((13.0, 1.0, 12.0, 9.0), (1.0, 3.0, 9.0, 0.0)),  # 9 s of compiling within the solver
        ((13.0, 11.0, 2.0, 10.0), (3.0, 0.0, 10.0, 0.0)),  # more than the solver has: within the oracle too
        ((0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)),
    ],
)
def test_parts_are_disjoint(seconds, expected):
    given = dict(zip(("total", "oracle", "solver", "compile"), seconds, strict=True))
    parts = split_seconds(given)
    assert tuple(parts) == ("oracle", "solver", "compile", "other")
    assert tuple(parts.values()) == pytest.approx(expected)
    assert sum(parts.values()) == pytest.approx(given["total"])


def test_text_names_parts_and_shares():
    text = time_split({"total": 13.0, "oracle": 1.0, "solver": 12.0, "compile": 9.0})
    assert text == "13.00 s: oracle 1.00 s (8 %), solver 3.00 s (23 %), compile 9.00 s (69 %), other 0.00 s (0 %)"
    assert "(0 %)" in time_split(dict.fromkeys(("total", "oracle", "solver", "compile"), 0.0))


def test_missing_parts_are_named():
    with pytest.raises(ValueError, match=r"lacks solver, compile; pass the attribute seconds_"):
        split_seconds({"total": 1.0, "oracle": 0.5})
