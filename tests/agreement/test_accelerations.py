"""Each acceleration of the dual engine alone, and all of them together, leave the optimum where it is."""

from itertools import product

import numpy as np
import pytest

from agreement.tiny import Tiny, best
from maxmargin.solvers.driver import run
from maxmargin.solvers.engine import DualEngine
from maxmargin.solvers.masters import extrapolation
from maxmargin.solvers.settings import Settings

PLAIN = {
    "selection": "permutation",
    "cached_passes": 0,
    "parts": 1,
    "batch": 1,
    "extrapolate": False,
    "master": "smo",
    "visits": 1.0,
}
FAST = {
    "selection": "gap",
    "cached_passes": 30,
    "parts": 8,
    "batch": 8,
    "extrapolate": True,
    "master": "auto",
    "visits": 0.25,
}
CASES = [
    Tiny("chain", C=1.0, seed=1),
    Tiny("chain", signed=True, cost="matrix", weighted=True, C=3.0, seed=2, n=8),
    Tiny("chain", "squared_hinge", cost="matrix", C=0.5, seed=3, n=6, ends=True),
    Tiny("multiclass", "squared_hinge", signed=True, C=1.0, seed=4, n=6),
]


@pytest.fixture(autouse=True)
def short_weights(monkeypatch):
    """Passes are extrapolated however few planes there are."""
    monkeypatch.setattr(extrapolation, "SHORT_BESIDE", 0)


def solve(tiny, **settings):
    problem = tiny.problem()
    engine = DualEngine(Settings(patience=5, cached_share=0.05, certificate_every=2.0, **settings), 0)
    return run(engine, problem, tol=1e-8, max_passes=5000)


def assert_optimal(tiny, result):
    assert result.status.code == "converged", str(result.status)
    assert result.certificate.primal == pytest.approx(best(tiny).objective, rel=1e-6)
    assert result.certificate.dual == pytest.approx(best(tiny).objective, rel=1e-6)
    assert result.weights == pytest.approx(best(tiny).weights, abs=1e-4)


@pytest.mark.parametrize("tiny", CASES, ids=str)
@pytest.mark.parametrize("name", [None, *FAST])
def test_one_by_one(name, tiny):
    """On top of the plain method, and taken away from the fast one."""
    assert_optimal(tiny, solve(tiny, **PLAIN | ({} if name is None else {name: FAST[name]})))
    assert_optimal(tiny, solve(tiny, **FAST | ({} if name is None else {name: PLAIN[name]})))


@pytest.mark.parametrize("selection", ["gap", "permutation"])
@pytest.mark.parametrize("cached_passes", [0, 30])
@pytest.mark.parametrize("parts", [1, 8])
@pytest.mark.parametrize("batch", [1, 8])
def test_all_combinations(selection, cached_passes, parts, batch):
    for extrapolate, master in product([False, True], ["smo", "auto"]):
        settings = {"extrapolate": extrapolate, "master": master, "visits": 0.5}
        settings |= {"selection": selection, "cached_passes": cached_passes, "parts": parts, "batch": batch}
        assert_optimal(CASES[1], solve(CASES[1], **settings))


@pytest.mark.parametrize("tiny", CASES, ids=str)
@pytest.mark.parametrize("blocks", ["product", 3])
def test_extrapolated_passes(blocks, tiny, monkeypatch):
    """Long runs of passes, so that many end with a jump, each of which may not let the dual fall."""
    jump, gains = extrapolation.Extrapolation.jump, []

    def watched(self):
        def dual():
            return self.ws.linear - self.regulariser.conjugate(self.u)

        before = dual()
        gains.append((jump(self), dual() - before))
        return gains[-1][0]

    monkeypatch.setattr(extrapolation.Extrapolation, "jump", watched)
    problem = tiny.problem()
    settings = Settings(blocks=blocks, cached_passes=50, extrapolate=True, patience=5, certificate_every=0.0)
    assert_optimal(tiny, run(DualEngine(settings, 0), problem, tol=1e-8, max_passes=5000))
    said, found = np.array(gains).T
    assert len(gains) > 10
    assert said == pytest.approx(found, abs=1e-12)
    assert (found > -1e-12).all()
    assert found.max() > 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 40))
def test_some_combinations_on_many_problems(seed):
    kind, loss = ["chain", "multiclass"][seed % 2], ["hinge", "squared_hinge"][seed // 2 % 2]
    cost, C = "matrix" if seed % 3 else "hamming", [0.1, 1.0, 10.0][seed % 3]
    tiny = Tiny(kind, loss, seed % 4 > 1, cost, seed % 5 > 2, C, seed, n=4 + seed % 5, K=2 + seed % 3)
    for chosen in np.random.default_rng(seed).integers(0, 2, (8, len(PLAIN))).astype(bool):
        names = [name for name, fast in zip(PLAIN, chosen, strict=True) if fast]
        assert_optimal(tiny, solve(tiny, **PLAIN | {name: FAST[name] for name in names}))
