"""Where the seconds of a fit went."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["split_seconds", "time_split"]

PARTS = ("oracle", "solver", "compile", "other")


def split_seconds(seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds of oracle, solver, compile and other, disjoint, which add up to ``seconds["total"]`` (of ``seconds_``).

    Kernels compile when first used, while the clock of the solver or the oracle may be running. So any excess over the
    total is compile time counted twice; it is subtracted from the solver first, then from the oracle.
    """
    missing = [name for name in ("total", *PARTS[:3]) if name not in seconds]
    if missing:
        raise ValueError(f"seconds lacks {', '.join(missing)}; pass the attribute seconds_ of a fitted estimator.")
    total, oracle, solver, compiling = (float(seconds[name]) for name in ("total", *PARTS[:3]))
    twice = max(0.0, oracle + solver + compiling - total)
    from_solver = min(twice, solver)
    solver -= from_solver
    oracle -= min(twice - from_solver, oracle)
    other = max(0.0, total - oracle - solver - compiling)
    return dict(zip(PARTS, (oracle, solver, compiling, other), strict=True))


def time_split(seconds: Mapping[str, float]) -> str:
    """One line with the total, and the seconds and share of oracle, solver, compile and other, of ``seconds_``.

    Examples
    --------
    >>> from maxmargin.pages.time_split import time_split
    >>> time_split({"total": 4.0, "oracle": 1.0, "solver": 2.0, "compile": 1.0})
    '4.00 s: oracle 1.00 s (25 %), solver 2.00 s (50 %), compile 1.00 s (25 %), other 0.00 s (0 %)'
    """
    parts = split_seconds(seconds)
    total = float(seconds["total"])
    shares = {name: 100 * part / total if total > 0 else 0.0 for name, part in parts.items()}
    texts = [f"{name} {part:.2f} s ({shares[name]:.0f} %)" for name, part in parts.items()]
    return f"{total:.2f} s: {', '.join(texts)}"
