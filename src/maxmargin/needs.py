"""What one part needs of another beyond the members of its contract: words, and the one function that compares them."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["CAPABILITIES", "TRAITS", "refusal", "require"]

TRAITS = {
    "quadratic": "the regulariser 1/2 |w|^2",
    "l1": 'the regulariser |w|_1 (penalty="l1")',
    "signs": "weights that must be >= 0 (positive=)",
    "squared": "squared slacks",
    "tables": "log-probabilities in tables (a generative model)",
    "ramp": "a ramp loss",
    "latent": "latent parts of the outputs",
}  # what a problem may ask of its solver; a formulation of your own may add words
CAPABILITIES = {
    "exact": "an exact argmax",
    "k_best": "the k best outputs",
    "outputs": "the plane of any output",
    "marginals": "marginal probabilities",
    "part_scores": "scores of the labels of single parts",
    "constrained": "the argmax among outputs whose ratio of cost to violation is between two numbers",
    "relaxed": "an argmax over a convex set that holds all outputs",
    "parts": "the data of some examples alone, which travel to a worker without those of the others",
    "elsewhere": "examples that are with the workers, so that only parts of them can be asked",
    "slack": "a search for slack rescaling",
    "sqrt_slack": "a search for square-root slack rescaling",
    "best_wrong": "a search for the best wrong output",
}  # what a bound model may offer


def refusal(asker: str, lacking: Collection[str], giver: str, remedy: str) -> ValueError:
    """The error that names both sides, what is missing between them, and what would work.

    Parameters
    ----------
    asker, giver : str
        What the reader calls the two sides, such as ``rescaling="slack"`` and "the grid model".
    lacking : collection of str
        Words of :data:`TRAITS` or :data:`CAPABILITIES`, or of a formulation of your own.
    remedy : str
        What would work, as a clause without its full stop.
    """
    words = TRAITS | CAPABILITIES
    what = " and ".join(words.get(word, word) for word in sorted(lacking))
    return ValueError(f"{asker} needs {what}, which {giver} does not offer; {remedy}.")


def require(asker: str, needs: Collection[str], giver: str, offers: Collection[str], remedy: str) -> None:
    """Raise :func:`refusal` unless everything that is needed is offered."""
    lacking = set(needs) - set(offers)
    if lacking:
        raise refusal(asker, lacking, giver, remedy)
