"""Blocks of examples: which there are, their planes, and what planes alone say about the objective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from maxmargin.formulations.problem import Problem
from maxmargin.models.base import digest
from maxmargin.oracles.counting import CountingOracle
from maxmargin.planes import Planes

__all__ = ["BlockWords", "Blocks", "blocks_of", "group_planes", "natural_scale", "summed", "totals"]

ROUNDING = 1e-12  # of a loss, relative to it

BlockWords = str | int | Sequence[Sequence[int]]


class Blocks(NamedTuple):
    """A partition of the examples into blocks, each with multipliers of its own.

    ``members`` are the examples of each block, None when every example is its own. ``subsets`` are the blocks of each
    visit where those are sets of blocks, None where a visit is of one block.
    """

    members: list[np.ndarray] | None
    subsets: list[np.ndarray] | None = None

    @property
    def fingerprint(self) -> str:
        """Digest of the members: multipliers of other blocks are others."""
        return "product" if self.members is None else digest(*self.members)


def blocks_of(words: BlockWords, n: int) -> Blocks:
    """The blocks that a setting names: "product", "one", a number of groups, or subsets of a stream."""
    if isinstance(words, str) and words == "product":
        return Blocks(None)
    if isinstance(words, str) and words == "one":
        return Blocks([np.arange(n)])
    if isinstance(words, (int, np.integer)) and not isinstance(words, bool) and words >= 1:
        return Blocks(np.array_split(np.arange(n), min(int(words), max(n, 1))))
    if isinstance(words, Sequence) and not isinstance(words, str):
        return _atoms(words, n)
    raise ValueError(f'blocks must be "one", "product", a number or a list of lists of examples; got {words!r}.')


def _atoms(subsets: Sequence[Sequence[int]], n: int) -> Blocks:
    """Blocks of the examples that belong to the same subsets.

    Subsets that overlap cannot have multipliers of their own: an example would be counted twice.
    """
    inside = np.zeros((n, len(subsets)), bool)
    for t, subset in enumerate(subsets):
        examples = np.asarray(subset, np.int64).ravel()
        if len(examples) == 0:
            raise ValueError(f"subset {t} of the stream has no examples; leave it out.")
        if examples.min() < 0 or examples.max() >= n:
            raise ValueError(f"subset {t} of the stream names example {examples.max()}; there are {n} examples.")
        inside[examples, t] = True
    missing = np.flatnonzero(~inside.any(axis=1))
    if len(missing):
        raise ValueError(f"example {missing[0]} is in no subset of the stream; put every example in at least one.")
    kinds, owner = np.unique(inside, axis=0, return_inverse=True)
    members = [np.flatnonzero(owner.ravel() == kind) for kind in range(len(kinds))]
    return Blocks(members, [np.flatnonzero(kinds[:, t]) for t in range(len(subsets))])


def totals(problem: Problem, blocks: Blocks) -> np.ndarray:
    """Sum of the multipliers of each block: that of its example, or 1 for a sum of planes that carry their C_i."""
    if blocks.members is None:
        return problem.total
    bounded = np.array([np.isfinite(problem.total[m]).all() for m in blocks.members])
    empty = np.array([(problem.weight[m] == 0).all() for m in blocks.members])
    return np.where(empty, 0.0, np.where(bounded, 1.0, np.inf))


def group_planes(
    problem: Problem, oracle: CountingOracle, members: list[np.ndarray], blocks: np.ndarray, w: np.ndarray
) -> tuple[Planes, np.ndarray]:
    """One plane for each group of examples: the (weighted) sum over its members. And the losses of all examples."""
    rows, b, bound, losses = [], [], [], np.zeros(problem.n_examples)
    for block in blocks:
        examples = members[block]
        if not problem.squared:
            a, offset, losses[examples], _ = oracle.sum(w, examples, problem.weight[examples])
            bound.append(float(problem.weight[examples] @ np.maximum(losses[examples], 0.0)))
        else:
            # a ray of the cone: rays of the examples that ascend, each at its natural scale C_i loss_i
            planes = oracle.planes(w, examples)
            first = np.flatnonzero(np.diff(planes.example, prepend=-1))
            losses[examples] = loss = planes.bound[first]
            assert problem.lift is not None
            # zeta_i / C_i, which violations subtract
            present = w[problem.n_weights + examples] * problem.lift[examples]
            found = planes.violations(w[: planes.n_weights])[first] + present
            scale = np.zeros(len(planes))
            # after a step along its ray alone both are equal, and rounding must not decide
            ascends = loss - present >= -ROUNDING * np.maximum(loss, present)
            scale[first] = np.where(ascends, problem.weight[examples] * np.maximum(found, 0.0), 0.0)
            a, offset = planes.to_csr().T @ scale, float(scale @ planes.b)
            length = max(float(np.linalg.norm(a)), 1e-300)  # a cone has no scale: keep the master well conditioned
            a, offset = a / length, offset / length
            bound.append(np.inf)
        index = np.flatnonzero(a).astype(np.int32)
        rows.append((index, a[index]))
        b.append(offset)
    return Planes.from_rows(rows, np.array(b), blocks, np.array(bound), problem.n_columns), losses


def summed(planes: Planes, weight: np.ndarray, members: list[np.ndarray] | None) -> Planes:
    """Planes of examples, at most one of each, as planes of blocks: the sum over the members of each, times C_i."""
    if members is None or len(planes) == 0:
        return planes
    block = np.zeros(len(weight), np.int64)
    for i, examples in enumerate(members):
        block[examples] = i
    present, owner = np.unique(block[planes.example], return_inverse=True)
    where = owner, np.arange(len(planes))
    total = sp.csr_array((weight[planes.example], where), shape=(len(present), len(planes)))
    A = sp.csr_array(total @ planes.to_csr())
    rows = [(A.indices[i:j], A.data[i:j]) for i, j in zip(A.indptr[:-1], A.indptr[1:], strict=True)]
    return Planes.from_rows(rows, total @ planes.b, present, np.full(len(present), np.inf), planes.n_weights)


def natural_scale(
    A: sp.csr_array, b: np.ndarray, total: np.ndarray, w: np.ndarray, n_weights: int
) -> tuple[np.ndarray, np.ndarray]:
    """The multiplier that would be best for each plane alone at the weights of the model, and what it then proves.

    With violation v that is ``total`` and ``total v``; for a ray of squared slacks with extra entries e it is
    ``v / |e|^2`` and ``v^2 / (2 |e|^2)``. The largest over the planes of a block bounds from below what the block adds
    to the objective.
    """
    violation = np.maximum(b - A[:, :n_weights] @ w[:n_weights], 0.0)
    extra = A[:, n_weights:].power(2).sum(axis=1)
    ray = np.isinf(total)
    scale = np.where(ray, violation / np.maximum(extra, 1e-300), np.where(ray, 0.0, total))
    return scale, scale * violation * np.where(ray, 0.5, 1.0)
