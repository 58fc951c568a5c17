"""The planes that a linear program has so far, with their multipliers: rows come when they are violated, and leave."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.formulations.problem import Problem
from maxmargin.planes import Planes
from maxmargin.solvers.linear_programs.program import Program

__all__ = ["Known", "ProgramState", "Rows"]

VIOLATED = 1e-10  # by which a row must lie above the loss of its example, relative to its size


class Known(NamedTuple):
    """What a run knows about a linear program: planes with their multipliers, weights, and those that take part."""

    planes: Planes
    alpha: np.ndarray
    idle: np.ndarray  # rounds for which a plane has had no multiplier
    w: np.ndarray
    out: np.ndarray  # weights that go with the multipliers
    columns: np.ndarray  # bool


class ProgramState(ABC):
    """A state from which column generation may begin."""

    problem: Problem

    @property
    @abstractmethod
    def known(self) -> Known:
        """Rows and columns at hand."""


@dataclass(frozen=True)
class Rows:
    """Planes in CSR form with two sets of multipliers; a value: other rows make another object.

    ``alpha`` (m,) are the multipliers at hand, ``proof`` (m,) the feasible ones that have proven most, and ``idle``
    (m,) counts the rounds for which a row has had neither. ``basic`` (m,) are the rows of a simplex method's basis.
    """

    planes: Planes
    alpha: np.ndarray
    proof: np.ndarray
    idle: np.ndarray
    basic: np.ndarray
    weight: np.ndarray  # C_i of all examples
    positive: np.ndarray | None
    keys: tuple[bytes, ...] = field(repr=False)  # digests of the planes

    @staticmethod
    def of(
        problem: Problem, planes: Planes, alpha: np.ndarray, proof: np.ndarray, idle: np.ndarray,
        basic: np.ndarray | None = None,
    ) -> Rows:  # fmt: skip
        """Rows of a problem."""
        basic = np.ones(len(planes), bool) if basic is None else basic
        return Rows(planes, alpha, proof, idle, basic, problem.weight, problem.positive, tuple(_keys(planes)))

    @staticmethod
    def none(problem: Problem) -> Rows:
        """No rows yet."""
        planes = Planes.from_rows([], np.empty(0), np.empty(0), np.empty(0), problem.n_columns)
        return Rows.of(problem, planes, np.zeros(0), np.zeros(0), np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.planes)

    @cached_property
    def program(self) -> Program:
        """The linear program over all columns."""
        return Program(self.planes.to_csr(), self.planes.b, self.planes.example, self.weight, self.positive)

    def over(self, columns: np.ndarray) -> Program:
        """The linear program over some columns, the other weights 0."""
        whole = self.program
        positive = None if whole.positive is None else whole.positive[columns]
        return Program(whole.A[:, columns], whole.b, whole.owner, whole.weight, positive)

    def with_multipliers(self, alpha: np.ndarray, basic: np.ndarray | None = None) -> Rows:
        """Other multipliers; they become the proof when they prove more than the one at hand."""
        feasible = self.program.feasible(alpha)
        proof = feasible if self.program.b @ feasible > self.program.b @ self.proof else self.proof
        idle = np.where((alpha > 0.0) | (proof > 0.0), 0, self.idle + 1)
        basic = self.basic if basic is None else basic
        same = Rows(self.planes, alpha, proof, idle, basic, self.weight, self.positive, self.keys)
        same.__dict__["program"] = self.program
        return same

    def with_violated(self, found: Planes, w: np.ndarray) -> Rows:
        """With those of the planes found that lie above the losses that the rows at hand have at w, each once."""
        matrix = found.to_csr()
        value = found.b - matrix @ w
        least = self.program.losses(w)[found.example]
        worth = (value > least + VIOLATED * (1.0 + np.abs(least))) & (self.weight[found.example] > 0.0)
        return self.with_planes(found.take(np.flatnonzero(worth)))

    def with_planes(self, found: Planes) -> Rows:
        """With further planes, each once."""
        seen, new = set(self.keys), dict[bytes, int]()
        for row, key in enumerate(_keys(found)):
            if key not in seen:
                new.setdefault(key, row)
        if not new:
            return self
        more = found.take(np.array(list(new.values())))
        zeros = np.zeros(len(more))
        planes = Planes.concatenate([self.planes, more])
        idle = np.concatenate([self.idle, zeros.astype(np.int64)])
        alpha, proof = np.concatenate([self.alpha, zeros]), np.concatenate([self.proof, zeros])
        basic = np.append(self.basic, np.ones(len(more), bool))
        return Rows(planes, alpha, proof, idle, basic, self.weight, self.positive, (*self.keys, *new))

    def without_idle(self, patience: int) -> Rows:
        """Without the rows that have had no multiplier for more than so many rounds."""
        kept = np.flatnonzero(self.idle <= patience)
        if len(kept) == len(self):
            return self
        planes = self.planes.take(kept)
        keys = tuple(self.keys[row] for row in kept.tolist())
        alpha, proof, idle, basic = (x[kept] for x in (self.alpha, self.proof, self.idle, self.basic))
        return Rows(planes, alpha, proof, idle, basic, self.weight, self.positive, keys)

    def prices(self) -> np.ndarray:
        """``|sum alpha a|`` of all columns at the multipliers at hand: beyond 1 a weight wants to leave 0."""
        return self.program.prices(self.alpha)


def _keys(planes: Planes) -> list[bytes]:
    """A digest of each plane and its example."""
    A = sp.csr_array((planes.data.copy(), planes.indices.copy(), planes.indptr), shape=(len(planes), planes.n_weights))
    A.sort_indices()
    indices, data, b, owner = A.indices.astype(np.int64), A.data, planes.b, planes.example
    keys = []
    for row, (begin, end) in enumerate(zip(planes.indptr[:-1], planes.indptr[1:], strict=True)):
        state = hashlib.blake2b(indices[begin:end].tobytes(), digest_size=16)
        state.update(data[begin:end].tobytes())
        state.update(b[row : row + 1].tobytes() + owner[row : row + 1].tobytes())
        keys.append(state.digest())
    return keys
