"""Why a run ended, as a code for programs and as a sentence for people."""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.certificate import Certificate

__all__ = ["CODES", "Status", "describe"]

CODES = (
    "converged",
    "max_passes",
    "max_oracle_calls",
    "max_seconds",
    "interrupted",
    "stopped by callback",
    "stalled",
    "max_rounds",
    "finished",
)


@dataclass(frozen=True)
class Status:
    """The end of a run.

    Parameters
    ----------
    code : str
        One of ``CODES``.
    sentence : str
        Plain English: why the run ended, the achieved relative gap beside tol, and what to do next.
    """

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
    code: str,
    certificate: Certificate,
    tol: float,
    *,
    passes: float,
    oracle_calls: int,
    seconds: float,
    budget: float | None = None,
) -> Status:
    """Make the status of a run that ended with ``code``; ``budget`` is the limit that was hit, if one was."""
    achieved = _achieved(certificate, tol)
    work = f"{passes:.4g} passes ({oracle_calls} oracle calls, {seconds:.3g} s)"
    if code == "converged":
        sentence = f"Converged: {achieved} after {work}."
        if not certificate.certified:
            sentence += " The oracle gives no upper bound of the losses, so the gap is an estimate, not a proof."
        return Status(code, sentence)
    if code == "finished":
        return Status(code, f"Finished: {work}, as many passes as the solver makes; {achieved}.")
    advice = {
        "max_passes": f"raise max_passes (now {budget:g}) to continue" if budget is not None else "raise max_passes",
        "max_oracle_calls": f"raise max_oracle_calls (now {budget:g})"
        if budget is not None
        else "raise max_oracle_calls",
        "max_seconds": f"raise max_seconds (now {budget:g})" if budget is not None else "raise max_seconds",
        "interrupted": "the weights are consistent; fit again with a warm start, or resume, to continue",
        "stopped by callback": "remove or relax the callback to continue",
        "stalled": "no step changes the objective any more: tol is below what rounding or the oracle allows; raise tol "
        "or scale the features",
        "max_rounds": "raise max_rounds to continue",
    }[code]
    reason = {
        "max_passes": "Stopped at max_passes",
        "max_oracle_calls": "Stopped at max_oracle_calls",
        "max_seconds": "Stopped at max_seconds",
        "interrupted": "Interrupted",
        "stopped by callback": "Stopped by a callback",
        "stalled": "Stalled",
        "max_rounds": "Stopped at max_rounds",
    }[code]
    if certificate.relative_gap > tol and code.startswith("max_"):
        advice += ", or raise tol if this accuracy is enough"
    return Status(code, f"{reason} after {work}: {achieved}. Next: {advice}.")


def _achieved(certificate: Certificate, tol: float) -> str:
    gap = certificate.relative_gap
    if gap == float("inf"):
        return f"relative gap unknown (tol {tol:.2g})"
    word = "relative gap" if certificate.certified else "estimated relative gap (not certified)"
    return f"{word} {gap:.2g} {'<=' if gap <= tol else '>'} tol {tol:.2g}"
