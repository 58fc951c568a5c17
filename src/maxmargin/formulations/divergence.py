"""The regulariser of generative models: tables of log-probabilities near a reference; and with a proximal term.

    R(theta)   = c . (m - theta) + rho/2 |theta - m|^2                   with  1'e^{theta_j} <= 1 for every table j
    R_n(theta) = R(theta) + gamma/2 |theta - theta^n|^2

with ``m_j = ln(c_j / 1'c_j)``, the reference itself, where R is 0, its least value: the first term is the
Kullback-Leibler divergence from c. Without rho the conjugate is closed,

    R*(u) = sum_j H(c_j) - H(v_j),    H(v) = -v . ln(v / 1'v)        over  v = c + u >= 0,  inf elsewhere,

while that of R_n is finite everywhere: that is what the proximal term is for. With s = c + u + gamma theta^n + rho m
the maximiser of ``u . theta - R_n(theta)`` solves, entry by entry,

    lambda_j e^theta + (gamma + rho) theta = s

which is closed in Wright's omega, and lambda_j >= 0 is the root of ``1'e^{theta_j} = 1``, or 0. Yu, Bertsekas, Rousu,
section 2.3.2; their equations (23), (25) and (26) want ``lambda e^theta + gamma`` in the denominators.

Columns behind the tables belong to squared slacks; there both are ``1/2 |u|^2``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.models.base import digest
from maxmargin.models.tables import Tables

__all__ = ["Maximiser", "Proximal", "TableDivergence"]

ROUNDING = 1e-6  # of the logarithm of a table's mass
SCALES = (0.0, 0.5, 1.0)  # tried where the conjugate is finite everywhere


class Maximiser(NamedTuple):
    """theta (d,) and lambda (J,) at some u."""

    theta: np.ndarray
    lam: np.ndarray


@dataclass(frozen=True)
class TableDivergence:
    """The regulariser R."""

    tables: Tables
    reference: np.ndarray  # float64 (d,): c > 0; tables need not sum to 1: a larger sum pulls harder
    pull: float = 0.0  # rho
    start: np.ndarray | None = None  # float64 (d,): where to begin; m when missing

    traits = frozenset({"tables"})
    positive = None

    def __post_init__(self) -> None:
        c, d = np.ascontiguousarray(self.reference, np.float64), self.tables.n_weights
        if c.shape != (d,) or not np.isfinite(c).all() or (c <= 0).any():
            advice = "use reference_distribution with a floor for zeros"
            raise ValueError(f"the reference must be {d} finite numbers > 0; {advice}.")
        if not (np.isfinite(self.pull) and self.pull >= 0):
            raise ValueError(f"pull must be a finite number >= 0, got {self.pull!r}.")
        object.__setattr__(self, "reference", c)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the reference; multipliers of another pull are feasible all the same."""
        return digest(self.reference, self.tables.starts)

    def first(self) -> np.ndarray:
        """A feasible theta to begin with."""
        if self.start is None:
            return self.anchor.copy()
        start = np.array(self.start, np.float64)
        if start.shape != self.reference.shape or not np.isfinite(start).all():
            raise ValueError(f"start must be {len(self.reference)} finite log-probabilities; give zeros a floor.")
        return self.tables.feasible(start)

    def proximal(self, centre: np.ndarray, gamma: float | np.ndarray, newton: bool = False) -> Proximal:
        """R with the proximal term ``gamma/2 |theta - centre|^2``."""
        return Proximal(self, centre, np.broadcast_to(np.asarray(gamma, np.float64), self.reference.shape), newton)

    def value(self, w: np.ndarray) -> float:
        """R(theta); inf where a table has more mass than 1."""
        theta = w[: len(self.reference)]
        if (self.tables.log_mass(theta) > ROUNDING).any():
            return np.inf
        return self.apart(theta)

    def apart(self, theta: np.ndarray) -> float:
        """R(theta) wherever it is."""
        away = self.anchor - theta
        return float(self.reference @ away) + (0.5 * self.pull * float(away @ away) if self.pull else 0.0)

    @cached_property
    def anchor(self) -> np.ndarray:
        """m, the reference as log-probabilities (d,)."""
        return self.tables.anchor(self.reference)

    @cached_property
    def _entropies(self) -> np.ndarray:
        """``H(c_j)`` of each table, (J,)."""
        return self._entropies_at(self.reference)

    def _entropies_at(self, v: np.ndarray) -> np.ndarray:
        from maxmargin.formulations.generative_kernel import table_entropies

        entropies = np.empty(len(self.tables))
        table_entropies(self.tables.starts, v, entropies)
        return entropies

    def conjugate(self, u: np.ndarray) -> float:
        """R*(u); inf outside ``c + u >= 0`` unless there is a pull."""
        if self.pull:
            return self._smooth.conjugate(u)
        head, tail = self._split(u)
        # table by table, so that those that do not move add exactly nothing
        return 0.5 * float(tail @ tail) + float((self._entropies - self._entropies_at(self.reference + head)).sum())

    def weights(self, u: np.ndarray) -> np.ndarray:
        """The maximiser, ``ln(v_j / 1'v_j)`` without a pull."""
        if self.pull:
            return self._smooth.weights(u)
        head, tail = self._split(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.concatenate([self.tables.anchor(self.reference + head), tail])

    def curvature(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> np.ndarray:
        """``A R*''(u) A'``."""
        return self._smooth.curvature(A, u) if self.pull else self._second(u).matrix(A)

    def widths(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> np.ndarray:
        """Its diagonal."""
        return self._smooth.widths(A, u) if self.pull else self._second(u).diagonal(A)

    def _second(self, u: np.ndarray) -> _Second:
        v = self.reference + self._split(u)[0]
        lam = self.tables.sums(v)
        return _Second(self.tables, v / lam[self.tables.table], lam, np.zeros(len(v)))

    def feasible(self, w: np.ndarray) -> np.ndarray:
        """Given log-probabilities, as a start: a mass above 1 by rounding is divided away, a larger one is refused."""
        mass = self.tables.log_mass(w)
        if (mass > ROUNDING).any():
            j = int(np.argmax(mass))
            raise ValueError(
                f"the start is no model of log-probabilities: {self.tables.name(j)} sums to {np.exp(mass[j]):.6g}, "
                "more than 1. Give the logarithms of probabilities, such as the weights_ of a fitted model."
            )
        return self.tables.feasible(w)

    def lower_bound(self, linear: float, u: np.ndarray) -> tuple[float, float]:
        """The largest ``t linear - R*(t u)`` over t in [0, 1], and its t.

        u = 0 is inside the domain, so for t small enough t u is. O(d) a trial of t.
        """
        from maxmargin.formulations.generative_kernel import best_shrink

        if self.pull:
            return max((t * linear - self.conjugate(t * u), t) for t in SCALES)
        head, tail = self._split(u)
        scale, entropies = np.zeros(1), np.empty(len(self.tables))
        head, quadratic = np.ascontiguousarray(head), float(tail @ tail)
        value = best_shrink(self.tables.starts, self.reference, head, linear, quadratic, scale, entropies)
        return float(value) + float((entropies - self._entropies).sum()), float(scale[0])

    def estimate(self, linear: float, u: np.ndarray) -> tuple[float, int]:
        """The paper's lower *estimate*: the dual at ``max(c + u, 0)``, which no multipliers need reach.

        It can lie above the optimum; the number of tables that were outside the domain, returned with it, tells how
        little it means.
        """
        if self.pull:
            return linear - self.conjugate(u), 0
        inside = np.maximum(u, np.pad(-self.reference, (0, len(u) - len(self.reference)), constant_values=-np.inf))
        head, _ = self._split(u)
        return linear - self.conjugate(inside), len(np.unique(self.tables.table[self.reference + head < 0]))

    def _split(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return u[: len(self.reference)], u[len(self.reference) :]

    @cached_property
    def _smooth(self) -> Proximal:
        return self.proximal(np.zeros(len(self.reference)), 0.0)


@dataclass(frozen=True)
class Proximal:
    """R_n, the same with the proximal term."""

    divergence: TableDivergence  # R
    centre: np.ndarray  # float64 (d,): theta^n
    gamma: np.ndarray  # float64 (d,): one weight for each entry; the same for all in the paper
    newton: bool = False  # theta by Newton's method in place of the closed form
    _last: list = field(default_factory=list, init=False, repr=False, compare=False)

    traits = frozenset({"tables"})
    positive = None

    @property
    def fingerprint(self) -> str:
        """That of R: multipliers do not depend on the centre."""
        return self.divergence.fingerprint

    def term(self, theta: np.ndarray) -> float:
        """``gamma/2 |theta - theta^n|^2``."""
        away = theta - self.centre
        return 0.5 * float(self.gamma @ (away * away))

    def value(self, w: np.ndarray) -> float:
        """R_n(theta)."""
        return self.divergence.value(w) + self.term(w[: len(self.centre)])

    def solve(self, u: np.ndarray) -> Maximiser:
        """theta that maximises ``u . theta - R_n(theta)``, and its lambda. O(d).

        The last answer is kept, because value, gradient and curvature ask for the same u.
        """
        from maxmargin.formulations.generative_kernel import solve_tables

        head = u[: len(self.centre)]
        if not (self._last and np.array_equal(self._last[0], head)):
            theta, lam = np.empty(len(head)), np.empty(len(self.divergence.tables))
            solve_tables(self.divergence.tables.starts, self._fixed + head, self._curving, int(self.newton), theta, lam)
            self._last[:] = [head.copy(), Maximiser(theta, lam)]
        return self._last[1]

    @cached_property
    def _curving(self) -> np.ndarray:
        """Second derivative of R_n by entry, ``gamma + rho``."""
        return self.gamma + self.divergence.pull

    @cached_property
    def _fixed(self) -> np.ndarray:
        """What s is at u = 0."""
        c, pull = self.divergence.reference, self.divergence.pull
        s = c + self.gamma * self.centre
        return s + pull * self.divergence.anchor if pull else s

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What compiled code needs: where tables begin, the table of each entry, s at u = 0, and gamma + rho."""
        tables = self.divergence.tables
        return tables.starts, tables.table, self._fixed, self._curving

    def conjugate(self, u: np.ndarray) -> float:
        """R_n*(u)."""
        theta, lam = self.solve(u)
        R, d = self.divergence, len(self.centre)
        over = float(lam @ (R.tables.sums(np.exp(theta)) - 1.0))  # rounding only
        return float(u[:d] @ theta) - R.apart(theta) - self.term(theta) - over + 0.5 * float(u[d:] @ u[d:])

    def weights(self, u: np.ndarray) -> np.ndarray:
        """The gradient of the conjugate."""
        return np.concatenate([self.solve(u).theta, u[len(self.centre) :]])

    def curvature(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> np.ndarray:
        """``A H A'`` (m, m) for the rows of A, where H is the second derivative of the conjugate.

        With p = e^theta and D = 1/(lambda p + gamma + rho), H is ``D - (Dp)(Dp)'/(p'Dp)`` in each table, and D alone
        where lambda is 0: the second term is what eliminating lambda takes away. O(m^2 d).
        """
        return self._second(u).matrix(A)

    def widths(self, A: np.ndarray | sp.csr_array, u: np.ndarray) -> np.ndarray:
        """The diagonal of the same, in time of the size of A."""
        return self._second(u).diagonal(A)

    def _second(self, u: np.ndarray) -> _Second:
        theta, lam = self.solve(u)
        return _Second(self.divergence.tables, np.exp(theta), lam, self._curving)

    def feasible(self, w: np.ndarray) -> np.ndarray:
        """As R."""
        return self.divergence.feasible(w)

    def lower_bound(self, linear: float, u: np.ndarray) -> tuple[float, float]:
        """The dual itself, which is finite everywhere."""
        return linear - self.conjugate(u), 1.0


class _Second:
    """H of :meth:`Proximal.curvature` for the columns of the tables, and 1 behind them."""

    def __init__(self, tables: Tables, p: np.ndarray, lam: np.ndarray, curving: np.ndarray) -> None:
        self.tables, self.D = tables, 1.0 / (lam[tables.table] * p + curving)
        self.binding = lam > 0
        mass = tables.sums(p * self.D * p)
        # the second term is (head @ taken)^2, table by table
        self.taken = (
            self.D * p * np.where(self.binding, 1.0 / np.sqrt(np.where(self.binding, mass, 1.0)), 0.0)[tables.table]
        )

    def matrix(self, A: np.ndarray | sp.csr_array) -> np.ndarray:
        d, dense = len(self.D), A if isinstance(A, np.ndarray) else A.toarray()
        head, tail = dense[:, :d], dense[:, d:]
        scaled = head * np.sqrt(self.D)
        H = scaled @ scaled.T
        if self.binding.any():
            taken = self.tables.sums(head * self.taken)
            H -= taken @ taken.T
        return H + tail @ tail.T if tail.shape[1] else H

    def diagonal(self, A: np.ndarray | sp.csr_array) -> np.ndarray:
        d = len(self.D)
        head, tail = A[:, :d], A[:, d:]
        if isinstance(head, np.ndarray):
            taken = self.tables.sums(head * self.taken)
        else:
            taken = head @ sp.csr_array((self.taken, self.tables.table, np.arange(d + 1)), shape=(d, len(self.tables)))
        behind = np.asarray((tail * tail).sum(axis=1)) if tail.shape[1] else 0.0
        return (head * head) @ self.D - np.asarray((taken * taken).sum(axis=1)) + behind
