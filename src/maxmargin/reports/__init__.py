"""Texts and plots about fits."""

from maxmargin.pages.time_split import split_seconds, time_split
from maxmargin.reports.convergence import plot_convergence
from maxmargin.reports.displays import (
    AlignmentDisplay,
    ConfusionDisplay,
    GapDisplay,
    LatticeDisplay,
    WeightsDisplay,
)
from maxmargin.reports.faithfulness import faithfulness, moved_tables, plot_faithfulness
from maxmargin.reports.generalisation import Generalisation, error_bound, generalisation
from maxmargin.reports.summary import conversions, summary

__all__ = [
    "AlignmentDisplay", "ConfusionDisplay", "GapDisplay", "Generalisation", "LatticeDisplay", "WeightsDisplay",
    "conversions", "error_bound", "faithfulness", "generalisation", "moved_tables", "plot_convergence",
    "plot_faithfulness", "split_seconds", "summary", "time_split",
]  # fmt: skip
