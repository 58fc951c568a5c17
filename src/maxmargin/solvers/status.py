"""Why a run ended, as a code for programs and as a sentence for people."""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.certificate import Certificate

__all__ = ["CODES", "Status", "describe"]

# why a run has ended before it was done, and what to do next, by the code
_EARLY = {
    "max_passes": ("Stopped at max_passes", "raise max_passes{now} to continue"),
    "max_oracle_calls": ("Stopped at max_oracle_calls", "raise max_oracle_calls{now}"),
    "max_seconds": ("Stopped at max_seconds", "raise max_seconds{now}"),
    "interrupted": ("Interrupted", "the weights are consistent; fit again with a warm start, or resume, to continue"),
    "stopped by callback": ("Stopped by a callback", "remove or relax the callback to continue"),
    "stalled": (
        "Stalled",
        "no step changes the objective any more: tol is below what rounding or the oracle allows; raise tol or scale "
        "the features",
    ),
    "badly scaled": (
        "Stopped because of badly scaled features",
        "subtract the mean of large columns and divide them by their standard deviation, or lower C",
    ),
    "overflow": ("Stopped because numbers overflow", "lower C, or scale the features or costs down"),
    "max_rounds": ("Stopped at max_rounds", "raise max_rounds to continue"),
}
CODES = ("converged", *_EARLY, "finished")


@dataclass(frozen=True)
class Status:
    """The end of a run: ``code`` is one of ``CODES``; ``sentence`` says why it ended, the gap, and what to do next."""

    code: str
    sentence: str

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"unknown status code {self.code!r}; use one of {', '.join(CODES)}")

    @property
    def converged(self) -> bool:
        """Whether the requested tolerance was reached."""
        return self.code == "converged"

    def __str__(self) -> str:
        return self.sentence


def describe(
    code: str, certificate: Certificate, tol: float, passes: float, calls: int, seconds: float, budget: float | None,
    replaced: int = 0,
) -> Status:  # fmt: skip
    """Make the status of a run that ended with ``code``; ``budget`` is the limit that was hit, if one was.

    ``replaced`` is the number of workers that have died on the way.
    """
    status = _ended(code, certificate, tol, passes, calls, seconds, budget)
    if not replaced:
        return status
    who = "A worker died and was" if replaced == 1 else f"{replaced} workers died and were"
    return Status(code, f"{status.sentence} {who} replaced; the result is as if none had.")


def _ended(
    code: str, certificate: Certificate, tol: float, passes: float, calls: int, seconds: float, budget: float | None
) -> Status:
    achieved = _achieved(certificate, tol)
    work = f"{passes:.4g} passes ({calls} oracle calls, {seconds:.3g} s)"
    if code == "converged":
        sentence = f"Converged: {achieved} after {work}."
        if not certificate.certified:
            sentence += " The oracle gives no upper bound of the losses, so the gap is an estimate, not a proof."
        return Status(code, sentence)
    if code == "finished":
        return Status(code, f"Finished: {work}, as many passes as the solver makes; {achieved}.")
    reason, advice = _EARLY[code]
    advice = advice.format(now="" if budget is None else f" (now {budget:g})")
    if certificate.relative_gap > tol and code.startswith("max_"):
        advice += ", or raise tol if this accuracy is enough"
    return Status(code, f"{reason} after {work}: {achieved}. Next: {advice}.")


def _achieved(certificate: Certificate, tol: float) -> str:
    gap = certificate.relative_gap
    if gap == float("inf"):
        return f"relative gap unknown (tol {tol:.2g})"
    word = "relative gap" if certificate.certified else "estimated relative gap (not certified)"
    return f"{word} {gap:.2g} {'<=' if gap <= tol else '>'} tol {tol:.2g}"
