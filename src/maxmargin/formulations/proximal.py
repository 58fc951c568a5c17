"""The generative regulariser with a proximal term, seen by the dual through its conjugate.

    R_n(theta) = - c . theta + gamma/2 |theta - theta^n|^2        with  1'e^{theta_j} <= 1 for every table j

The conjugate is finite everywhere, unlike that of R itself, whose domain is ``c + u >= 0``: that is what the proximal
term is for. With s = c + u + gamma theta^n the maximiser of ``u . theta - R_n(theta)`` solves, entry by entry,

    lambda_j e^theta + gamma theta = s

which is closed in Wright's omega, and lambda_j >= 0 is the root of ``1'e^{theta_j} = 1``, or 0. Yu, Bertsekas, Rousu,
section 2.3.2; their equations (23), (25) and (26) want ``lambda e^theta + gamma`` in the denominators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import wrightomega

from maxmargin.models.tables import Tables

__all__ = ["Proximal", "Solved", "theta_closed", "theta_newton"]


def theta_closed(s: np.ndarray, lam: np.ndarray, gamma: float | np.ndarray) -> np.ndarray:
    """The theta with ``lam e^theta + gamma theta = s``, by Wright's omega.

    ``theta = s/gamma - omega(z)`` with ``z = s/gamma + ln(lam/gamma)``, written as ``ln omega(z) + ln(gamma/lam)``
    where z is large and the difference would cancel; ``s/gamma`` where lam is 0.
    """
    s, lam = np.broadcast_arrays(np.asarray(s, np.float64), np.asarray(lam, np.float64))
    safe = np.where(lam > 0, lam, gamma)
    ratio = s / gamma
    z = ratio + np.log(safe / gamma)
    omega = wrightomega(z)
    with np.errstate(divide="ignore"):
        large = np.log(omega) + np.log(gamma / safe)
    return np.where(lam > 0, np.where(z < 1, ratio - omega, large), ratio)


def theta_newton(s: np.ndarray, lam: np.ndarray, gamma: float | np.ndarray, most: int = 200) -> np.ndarray:
    """The same by Newton's method, from the smallest upper bound of theta that is at hand.

    From there the iteration falls monotonically to the root; from elsewhere it can overshoot and then crawl.
    """
    s, lam = np.broadcast_arrays(np.asarray(s, np.float64), np.asarray(lam, np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        other = np.where((s > 0) & (lam > 0), np.maximum(np.log(s) - np.log(lam), 0.0), np.inf)
    x = np.minimum(s / gamma, other)
    for _ in range(most):
        grown = lam * np.exp(x)
        step = (grown + gamma * x - s) / (grown + gamma)
        x = x - step
        if (np.abs(step) <= 1e-15 * np.maximum(1.0, np.abs(x))).all():
            break
    return x


class Solved(NamedTuple):
    """theta (d,) and lambda (J,) at some u."""

    theta: np.ndarray
    lam: np.ndarray


@dataclass(frozen=True)
class Proximal:
    """R_n.

    Attributes
    ----------
    tables : Tables
    reference : float64 array (d,)
        c.
    gamma : float64 array (d,)
        One weight for all, as in the paper, or one for each entry: |theta - theta^n|^2 is then weighted by it.
    centre : float64 array (d,)
        theta^n.
    pull : float
        rho of the objective ``rho/2 |theta - m|^2``, which belongs to R and not to the proximal term.
    newton : bool
        theta by Newton's method in place of the closed form.
    """

    tables: Tables
    reference: np.ndarray
    gamma: np.ndarray
    centre: np.ndarray
    pull: float = 0.0
    newton: bool = False

    def __post_init__(self) -> None:
        gamma = np.array(np.broadcast_to(np.asarray(self.gamma, np.float64), self.reference.shape))
        object.__setattr__(self, "gamma", gamma)

    @property
    def curving(self) -> np.ndarray:
        """Second derivative of R_n by entry, ``gamma + rho``."""
        return self.gamma + self.pull

    def target(self, u: np.ndarray) -> np.ndarray:
        """s of the equation ``lambda e^theta + (gamma + rho) theta = s``."""
        s = self.reference + u + self.gamma * self.centre
        return s + self.pull * self.tables.anchor(self.reference) if self.pull else s

    def solve(self, u: np.ndarray) -> Solved:
        """theta that maximises ``u . theta - R_n(theta)``, and its lambda. O(d)."""
        from maxmargin.formulations.generative_kernel import solve_tables

        theta, lam = np.empty(len(u)), np.empty(len(self.tables))
        solve_tables(self.tables.starts, self.target(u), self.curving, int(self.newton), theta, lam)
        return Solved(theta, lam)

    def term(self, theta: np.ndarray) -> float:
        """``gamma/2 |theta - theta^n|^2``."""
        away = theta - self.centre
        return 0.5 * float(self.gamma @ (away * away))

    def conjugate(self, u: np.ndarray, at: Solved | None = None) -> float:
        """R_n*(u), from what :meth:`solve` gave for the same u."""
        theta, lam = self.solve(u) if at is None else at
        over = lam @ (self.tables.sums(np.exp(theta)) - 1.0)  # rounding only
        own = self.tables.pulled(theta, self.reference, self.pull)
        return float((self.reference + u) @ theta) - self.term(theta) - own - float(over)

    def weights(self, u: np.ndarray) -> np.ndarray:
        """The gradient of the conjugate."""
        return self.solve(u).theta

    def curvature(self, A: np.ndarray, u: np.ndarray, at: Solved | None = None) -> np.ndarray:
        """``A H A'`` (m, m) for the rows of A (m, d), where H is the second derivative of the conjugate.

        With p = e^theta and D = 1/(lambda p + gamma), H is ``D - (Dp)(Dp)'/(p'Dp)`` in each table, and D alone where
        lambda is 0: the second term is what eliminating lambda takes away. O(m^2 d).
        """
        theta, lam = self.solve(u) if at is None else at
        p = np.exp(theta)
        D = 1.0 / (lam[self.tables.table] * p + self.curving)
        scaled = A * np.sqrt(D)
        H = scaled @ scaled.T
        binding = lam > 0
        if binding.any():
            mass = self.tables.sums(p * D * p)
            taken = self.tables.sums(A * (D * p)) * np.where(binding, 1.0 / np.sqrt(np.where(binding, mass, 1.0)), 0.0)
            H -= taken @ taken.T
        return H

    def partials(self, u: np.ndarray, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Second derivatives of ``q(mu, lambda)`` before lambda is eliminated, mu = -u.

        ``q = min_theta (mu - c) . theta + lambda 1'e^theta + gamma/2 |theta - theta^n|^2`` in each table. Returns those
        by (mu, mu) (d,), by (mu, lambda) (d,) and by (lambda, lambda) (J,); all others are 0.
        """
        spread = lam[self.tables.table]
        theta = theta_closed(self.target(u), spread, self.curving)
        p = np.exp(theta)
        D = 1.0 / (spread * p + self.curving)
        return -D, -p * D, -self.tables.sums(p * p * D)
