"""Several good outputs for each example: every bad one must be outscored by 1.

    P(w) = R(w) + C sum_i s_i loss_i(w)       with the losses of :mod:`maxmargin.oracles.references`

Wang, Shawe-Taylor 2009, formulations (7) and (8) with ``R(w) = |w|_1``; with one good output both are (6).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from maxmargin.contracts import BoundModel, ListingModel, Mask, SampleWeight, lists_outputs
from maxmargin.formulations.problem import Problem, example_weights
from maxmargin.formulations.rescaled_hinge import regulariser_of
from maxmargin.needs import refusal
from maxmargin.oracles.references import PAIRINGS, Closeness, ReferenceOracle, hamming
from maxmargin.parameters import Parameters

__all__ = ["References"]


@dataclass(repr=False, eq=False)
class References(Parameters):
    """Good against bad outputs, with margins of 1.

    Parameters
    ----------
    good : sequence, one entry per example
        The good outputs of each example, besides its output in y.
    pairing : {"all", "nearest"}
        Every good output must outscore every bad one by 1, or only the bad ones to which it is the nearest.
    penalty : {"l1", "l2"}
    closeness : callable (codes, codes) -> float
        Distance of a good output and a bad one, for "nearest", both by their content: codes of labels, words of
        lattices, a 1 for each linked pair of a matching. By default the number of parts in which they differ.
    """

    good: Sequence[Iterable[object]]
    pairing: str = "all"
    penalty: str = "l1"
    closeness: Closeness = hamming

    def problem(
        self, model: BoundModel, *, C: float = 1.0, sample_weight: SampleWeight = None, positive: Mask = None
    ) -> Problem:
        """The problem of fitting a bound model; see :class:`~maxmargin.contracts.Formulation`."""
        if self.pairing not in PAIRINGS:
            raise ValueError(f'pairing must be "all" or "nearest", got {self.pairing!r}.')
        if not lists_outputs(model):
            lacking = {"k_best", "outputs"} - model.capabilities
            raise refusal(
                "references=", lacking, "this model", "use a chain, a multiclass, a matching or a lattice model"
            )
        weight, _ = example_weights("hinge", C, sample_weight, model.n_examples)
        oracle = ReferenceOracle(model, coded(model, self.good), self.pairing, self.closeness)
        d = model.n_weights
        return Problem(oracle, weight, d, regulariser_of(self.penalty, positive, d, d))


def coded(model: ListingModel, good: Sequence[Iterable[object]]) -> tuple[np.ndarray, ...]:
    """The good outputs of each example as codes, none twice; errors name the example."""
    if len(good) != model.n_examples:
        raise ValueError(
            f"references has {len(good)} entries, the data {model.n_examples} examples; give one for each."
        )
    nothing, all_codes = np.zeros(model.n_weights), []
    for i, outputs in enumerate(good):
        codes = [np.asarray(model.codes(i, output), np.int32) for output in outputs]
        distinct = np.unique(np.array(codes, np.int32).reshape(len(codes), -1), axis=0)
        known = len({model.content(i, code).tobytes() for code in distinct})
        if len(model.k_best(nothing, i, known + 1)[0]) <= known:
            raise ValueError(
                f"example {i}: every output is among its references, so it has nothing to teach; leave it out."
            )
        all_codes.append(distinct)
    return tuple(all_codes)
