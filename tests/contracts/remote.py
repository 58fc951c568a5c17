"""Rehearsal: an oracle whose examples live in other processes and keep their state there. New files only."""

from __future__ import annotations

import numpy as np

from maxmargin.contracts import Executor, Fused, Sum
from maxmargin.models.base import digest
from maxmargin.oracles.oracle import ModelOracle, reduced
from maxmargin.planes import Planes


class Shard:
    """Some examples of a problem, bound and asked where they live; it counts how often."""

    def __init__(self, model, X, Y, layout, first: int) -> None:
        self.model, self.X, self.Y, self.layout, self.first = model, X, Y, layout, first
        self.oracle: ModelOracle | None = None
        self.asked = 0

    def planes(self, w: np.ndarray, examples: np.ndarray, most: int) -> Planes:
        if self.oracle is None:  # bound here, at the first question
            self.oracle = ModelOracle(self.model.bind(self.X, self.Y, layout=self.layout))
        self.asked += len(examples)
        found = self.oracle.planes(w, examples - self.first, most)
        return Planes(
            found.indptr, found.indices, found.data, found.b, found.example + self.first, found.bound, found.n_weights
        )

    def count(self) -> int:
        return self.asked


class RemoteOracle:
    """Sends each example's question to the process that owns it.

    Parameters
    ----------
    shards : list of Shard
        Of consecutive examples.
    executor : Executor
        Gives each shard a home.
    """

    def __init__(self, shards: list[Shard], executor: Executor) -> None:
        self.executor, self.homes = executor, executor.start(shards)
        self.begins = np.array([shard.first for shard in shards])
        self.n_examples = sum(len(shard.X) for shard in shards)
        self.n_columns = self.longest = shards[0].layout.n_weights
        self.batch_hint = self.n_examples  # a question costs a journey

    @property
    def fingerprint(self) -> str:
        return "remote " + digest(self.begins)

    def fused(self) -> Fused | None:
        """A compiled loop cannot reach another process."""
        return None

    def spread(self) -> None:
        """Its examples have homes of their own already."""

    def predicting(self) -> RemoteOracle:
        raise ValueError("this oracle has no predictions; use a solver that asks for the most violating outputs.")

    def planes(self, w: np.ndarray, examples: np.ndarray, most: int = 1) -> Planes:
        owner = np.searchsorted(self.begins, examples, side="right") - 1
        shards = np.unique(owner)
        calls = [(self.homes[shard], (w, examples[owner == shard], most)) for shard in shards]
        found = Planes.concatenate(self.executor.call("planes", calls))
        place = {int(i): p for p, i in enumerate(examples)}
        return found.take(np.argsort([place[int(i)] for i in found.example], kind="stable"))

    def sum(self, w: np.ndarray, examples: np.ndarray, scale: np.ndarray) -> Sum:
        return reduced(self.planes(w, examples), scale, w)

    def asked(self) -> list[int]:
        """How often each shard was asked, by its own account."""
        return self.executor.call("count", [(home, ()) for home in self.homes])
