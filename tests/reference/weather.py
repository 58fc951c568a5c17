"""Rows for Bayesian networks whose variables depend on each other in a way that the graph does not quite catch."""

from __future__ import annotations

import numpy as np

EDGES = [("sky", "class"), ("class", "wind"), ("class", "grass"), ("wind", "grass"), ("grass", "cat")]
STATES = {"sky": list("abc"), "class": ["no", "yes", "perhaps"], "wind": [0, 1], "grass": list("xyz"), "cat": [0, 1]}


def weather_codes(rng, n):
    """The number of the state of each variable in n rows."""
    sky = rng.integers(0, 3, n)
    truth = (sky + (rng.random(n) < 0.4) + (rng.random(n) < 0.2)) % 3
    wind = (truth > 0) ^ (rng.random(n) < 0.3)
    grass = (truth + wind + (rng.random(n) < 0.4) * (sky == 1)) % 3
    cat = (grass == sky) ^ (rng.random(n) < 0.2)
    return {"sky": sky, "class": truth, "wind": wind, "grass": grass, "cat": cat}


def named(codes):
    """The states themselves."""
    return {name: [STATES[name][int(k)] for k in np.asarray(column)] for name, column in codes.items()}
