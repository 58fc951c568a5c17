"""How an output becomes a plane: the one table that all loops use.

A search answers with ``(psi, cost)``. With the cost weight lam,

===========  =====================  ==========================  =============================================
rescaling    a                      b                           loss: the largest of, over outputs y
===========  =====================  ==========================  =============================================
margin       psi                    lam cost                    lam cost - w . psi
slack        cost psi               lam cost                    cost (lam - w . psi)
sqrt_slack   sqrt(cost) psi         lam sqrt(cost)              sqrt(cost) (lam - w . psi)
unit         psi                    lam (0 where cost is 0)     lam - w . psi over wrong outputs, or 0
none         psi                    0                           - w . psi
===========  =====================  ==========================  =============================================

Taskar, Guestrin, Koller 2003 (margin); Tsochantaridis, Joachims, Hofmann, Altun 2005 (slack); square-root slacks make
the squared hinge of slack rescaling the paper's quadratic one; unit margins are those of LP-Struct.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["RESCALINGS", "Rescaling", "rescaling_named"]


class Rescaling(NamedTuple):
    """A row of the table: its number in :mod:`~maxmargin.oracles.rescaling_kernel`, and the search that it needs."""

    code: int
    search: str


RESCALINGS = {
    "margin": Rescaling(0, "argmax"),
    "slack": Rescaling(1, "slack"),
    "sqrt_slack": Rescaling(2, "sqrt_slack"),
    "unit": Rescaling(3, "best_wrong"),
    "none": Rescaling(4, "argmax"),
}


def rescaling_named(name: object) -> Rescaling:
    """The row of a name, checked."""
    if not isinstance(name, str) or name not in RESCALINGS:
        raise ValueError(f"rescaling must be one of {', '.join(RESCALINGS)}; got {name!r}.")
    return RESCALINGS[name]
