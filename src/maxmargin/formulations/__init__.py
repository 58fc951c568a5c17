"""Objectives and the problems they make; names load when they are first used."""

from maxmargin.lazy import lazy

_NAMES = {
    "rescaled_hinge": "MarginRescaling RescaledHinge SlackRescaling",
    "ramp": "Ramp RampProblem",
    "generative": "Generative",
    "problem": "Problem",
    "latent": "LatentProblem",
    "references": "References",
    "regularisers": "Quadratic SignedQuadratic",
    "absolute": "Absolute",
}

__all__, __getattr__, __dir__ = lazy(__name__, _NAMES)
