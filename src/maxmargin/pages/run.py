"""What a page says about a training run, from plain values: certificate in words, curves, time, parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from maxmargin.certificate import Certificate
from maxmargin.pages.html import Html, Section, card, figures, paragraph, table
from maxmargin.pages.svg import lines, number, stacked
from maxmargin.pages.time_split import split_seconds

__all__ = ["CURVES", "Run", "certificate_in_words", "run_card", "run_sections"]

CURVES = ("pass", "seconds", "primal", "dual")
ROUNDING = 1e-9  # a relative gap below it is none


@dataclass(frozen=True)
class Run:
    """How a fit went; None for what is not known, as of a model that was built and not fitted."""

    parameters: Mapping[str, object]
    certificate: Certificate | None = None
    status: str | None = None
    seconds: Mapping[str, float] | None = None
    passes: float | None = None
    history: Mapping[str, Sequence[float]] | None = None  # the columns CURVES


def certificate_in_words(certificate: Certificate | None) -> list[str]:
    """What is proven about the weights, for a reader who has never heard of duality."""
    if certificate is None:
        return ["There is no certificate: the weights were learned from a stream, or come from elsewhere."]
    c = certificate
    if not math.isfinite(c.gap):
        return [f"The objective of these weights is {number(c.primal)}; this solver proves no lower bound."]
    told = f"The objective of these weights is {c.primal:.6g}. No weights can reach less than {c.dual:.6g}."
    share = f"{100 * c.relative_gap:.2g} % of the objective"
    if not c.certified:
        return [told, "This holds for the last convex step only: the loss is not convex, or some losses are estimates."]
    if c.relative_gap < ROUNDING:
        return [told, "The two agree to rounding: this is the best possible fit."]
    return [told, f"So training longer could lower the objective by at most {c.gap:.3g}, {share}."]


def run_sections(run: Run) -> list[Section]:
    """Certificate, progress, time and parameters."""
    words = [paragraph(text) for text in certificate_in_words(run.certificate)]
    if run.status:
        words.append(paragraph(run.status, "soft"))
    sections = [Section("Certificate", words)]
    if run.history is not None and len(run.history["pass"]) > 1:
        sections.append(Section("Progress", [_curves(run.history)]))
    if run.seconds:
        passes = f", {run.passes:.4g} passes over the examples" if run.passes else ""
        told = paragraph(f"{run.seconds['total']:.2f} seconds{passes}.")
        drawn = figures([(stacked(split_seconds(run.seconds), "where the time went"), "")])
        sections.append(Section("Time", [told, drawn]))
    sections.append(Section("Parameters", [table(["parameter", "value"], list(run.parameters.items()))]))
    return sections


def run_card(title: str, run: Run | None) -> str:
    """A fit in a few lines, for a notebook; None before ``fit``."""
    if run is None:
        return card(title, [paragraph("Not fitted yet: call fit.", "soft")])
    blocks = [
        paragraph(text) for text in [*([run.status] if run.status else []), *certificate_in_words(run.certificate)]
    ]
    if run.history is not None and len(run.history["pass"]) > 1:
        drawn = lines({"gap": (run.history["pass"], _gaps(run.history))}, "passes", "relative gap", log=True)
        blocks.append(figures([(drawn, "")]))
    return card(title, blocks)


def _gaps(history: Mapping[str, Sequence[float]]) -> list[float]:
    both = zip(history["primal"], history["dual"], strict=True)
    return [Certificate(float(primal), float(dual)).relative_gap for primal, dual in both]


def _curves(history: Mapping[str, Sequence[float]]) -> Html:
    """Gap and objective against passes and seconds."""
    primal, dual = history["primal"], history["dual"]
    gaps, drawn = _gaps(history), []
    for column, label in (("pass", "passes"), ("seconds", "seconds")):
        x = history[column]
        drawn.append((lines({"gap": (x, gaps)}, label, "relative gap", log=True), f"Relative gap against {label}"))
        both = {"primal": (x, primal), "dual": (x, dual)}
        drawn.append((lines(both, label, "objective"), f"Objective and its lower bound against {label}"))
    return figures(drawn)
