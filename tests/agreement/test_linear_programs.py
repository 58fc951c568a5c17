"""One good output (6), each bad one against its nearest good one (7), all against all (8): every way to solve the
linear program against a general solver with all rows, to six digits, with bounds around the optimum at every round."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.solvers.linear_programs.extragradient import Extragradient
from maxmargin.solvers.linear_programs.highs import Highs, has_highspy
from maxmargin.solvers.linear_programs.primal_dual import PrimalDual
from reference.linear_programs import all_rows, chains_with_references, lp_optimum

HIGHS = [Highs("simplex"), Highs("ipm"), *([Highs("pdlp")] if has_highspy() else [])]
MASTERS = ["auto", *HIGHS, PrimalDual(), Extragradient(), Extragradient("frobenius")]
SOLVERS = [*map(mm.ColumnGeneration, MASTERS), mm.RecentredDual()]


def program(pairing, seed):
    """Chains and their good outputs; one each for (6)."""
    X, good = chains_with_references(seed=seed)
    return X, [outputs[:1] for outputs in good] if pairing is None else good


@pytest.mark.parametrize("positive", [None, True], ids=["free", "positive"])
@pytest.mark.parametrize("pairing", [None, "nearest", "all"], ids=["(6)", "(7)", "(8)"])
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_all_masters_agree_with_all_rows(solver, pairing, positive):
    for seed in range(2):
        X, good = program(pairing, seed)
        best = lp_optimum(all_rows(X, good, pairing), 2.0, None if positive is None else np.ones(21, bool))
        given = {"penalty": "l1", "C": 2.0, "tol": 9e-7, "positive": positive, "solver": solver, "random_state": 0}
        svm = mm.StructuredSVM(mm.Chain(classes=[0, 1, 2]), **given)
        if pairing is None:
            svm.fit(X, [outputs[0] for outputs in good])
        else:
            svm.fit(X, None, references=good, pairing=pairing)
        assert svm.certificate_.primal == pytest.approx(best, rel=1e-6) and svm.status_.converged
        assert (svm.history_["dual"] <= best * (1 + 1e-9)).all()
        assert (svm.history_["primal"] >= best * (1 - 1e-9)).all()
        assert positive is None or (svm.weights_ >= 0).all()
