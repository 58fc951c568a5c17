"""What a solver, a formulation or an estimator needs is declared, and refused before the first pass.

Every pair of solver and problem is either solved or refused with a message that names both sides and what would work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.formulations.generative import Generative
from maxmargin.formulations.latent import LatentProblem
from maxmargin.formulations.references import References
from maxmargin.models.hmm import HMM
from maxmargin.needs import CAPABILITIES, TRAITS, require
from maxmargin.solvers.driver import run
from maxmargin.solvers.outer import with_outer_loops
from maxmargin.solvers.presets import SOLVERS, solver_for
from reference.problems import random_chains

X, Y = random_chains(4, 3, 2, lengths=(2, 3), seed=0)
Y = [labels.tolist() for labels in Y]
CHAIN = mm.Chain(classes=[0, 1, 2]).bind(X, Y)
HIDDEN = HMM().bind([["a", "b"], ["b", "b", "a"]], [["x", "y"], ["y", "y", "x"]])
SIGNS = np.ones(CHAIN.n_weights, bool)

PROBLEMS = {
    "hinge": lambda: mm.MarginRescaling().problem(CHAIN),
    "squared": lambda: mm.MarginRescaling("squared_hinge").problem(CHAIN),
    "signs": lambda: mm.MarginRescaling().problem(CHAIN, positive=SIGNS),
    "l1": lambda: mm.MarginRescaling(penalty="l1").problem(CHAIN),
    "signed l1": lambda: mm.MarginRescaling(penalty="l1").problem(CHAIN, positive=SIGNS),
    "several good outputs": lambda: References([[labels] for labels in Y], penalty="l2").problem(CHAIN),
    "ramp": lambda: mm.Ramp().problem(CHAIN),
    "signed ramp": lambda: mm.Ramp().problem(CHAIN, positive=SIGNS),
    "latent": lambda: LatentProblem(mm.MarginRescaling().problem(CHAIN), lambda w: CHAIN, mm.MarginRescaling().problem),
    "tables": lambda: Generative().problem(HIDDEN),
    "ramp of tables": lambda: mm.Ramp(convex=Generative()).problem(HIDDEN),
}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_pair_is_solved_or_refused_by_name(solver, problem):
    problem = PROBLEMS[problem]()
    chosen = SOLVERS["column_generation" if solver == "auto" and "l1" in problem.traits else solver]
    lacking = problem.traits - chosen.handles
    if lacking:
        able = [name for name, kind in SOLVERS.items() if problem.traits <= kind.handles]
        assert able, "no solver at all would work"
        for given in (solver, SOLVERS[solver]()):
            with pytest.raises(ValueError) as refused:
                solver_for(given, problem)
            message = str(refused.value)
            assert all(TRAITS[trait] in message for trait in lacking)
            assert ("solver=" in message and "this problem needs" in message) and f'"{able[0]}"' in message
        return
    engine = solver_for(solver, problem).engine(problem, 0)
    result = run(with_outer_loops(engine, problem, tol=0.5, refits=1), problem, tol=0.5, max_passes=60)
    assert result.certificate.dual <= result.certificate.primal + 1e-9


def test_the_driver_refuses_too():
    engine = mm.Pegasos().engine(PROBLEMS["hinge"](), 0)
    problem = PROBLEMS["tables"]()
    with pytest.raises(ValueError, match=r"this problem needs log-probabilities in tables .* PrimalEngine does not"):
        run(engine, problem)


def test_words_of_a_users_own_are_named_as_they_are():
    @dataclass(frozen=True)
    class Odd:
        traits: frozenset = frozenset({"a hat"})

    with pytest.raises(
        ValueError, match=r'this problem needs a hat, which solver="auto" does not offer; write a solver'
    ):
        solver_for("auto", Odd())


def test_require_says_nothing_when_all_is_there():
    require("x", {"exact"}, "y", {"exact", "k_best"}, "z")
    with pytest.raises(
        ValueError, match=r"^x needs an exact argmax and marginal probabilities, which y does not .*; z\.$"
    ):
        require("x", {"marginals", "exact"}, "y", {"k_best"}, "z")


def test_every_word_is_read_somewhere():
    """A capability that nothing asks for is not declared."""
    import maxmargin

    root = maxmargin.__path__[0]
    from pathlib import Path

    sources = [path.read_text() for path in Path(root).rglob("*.py") if path.name != "contracts.py"]
    for word in (*TRAITS, *CAPABILITIES):
        assert sum(f'"{word}"' in source for source in sources) >= 1, word
