"""Edited checkpoints: every array that a compiled loop would read is refused by name when it is wrong."""

import zipfile

import numpy as np
import pytest
from sklearn.base import clone
from tools.attack.checkpoints import _case as attacked
from tools.attack.checkpoints import bases, forge

import maxmargin as mm
from maxmargin.callbacks import Callback
from maxmargin.formulations.ramp import Ramp
from maxmargin.persistence.checkpoint import load_checkpoint, save_checkpoint

pytestmark = [
    pytest.mark.found("A3"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(T, 2)) for T in (1, 3, 2, 4, 2, 3)]
Y = [RNG.integers(0, 3, len(x)).tolist() for x in X]
WORDS = [["ab"[a] for a in RNG.integers(0, 2, 4)] for _ in range(6)]
STATES = [RNG.integers(0, 2, 4).tolist() for _ in range(6)]
HARD = {"tol": 1e-9, "max_passes": 20, "random_state": 0}
FITS = {
    "auto": (mm.SequenceTagger(**HARD), X, Y),
    "bcfw": (mm.SequenceTagger(solver=mm.BCFW(averaging="tail", sampling="gap", certificate_every=1.0), **HARD), X, Y),
    "shards": (mm.SequenceTagger(solver=mm.Sharded(shards=2, visits_per_round=2, averaging="tail"), **HARD), X, Y),
    "pegasos": (mm.SequenceTagger(solver=mm.Pegasos(certificate_every=1.0), **HARD), X, Y),
    "ramp": (mm.SequenceTagger(loss=Ramp("best_output"), **HARD), X, Y),
    "hmm": (mm.DiscriminativeHMM(C=0.1, **HARD), WORDS, STATES),
}


class Save(Callback):
    def on_begin(self, run):
        self.problem = run.problem

    def on_certificate(self, run):
        if len(run.history) == 2:
            self.arrays = run.to_arrays()


@pytest.fixture(scope="module")
def saved():
    """Arrays of each fit at its second certificate, and the problems."""
    found = {"problems": {}}
    for name, (estimator, inputs, outputs) in FITS.items():
        save = Save()
        type(estimator)(**estimator.get_params(deep=False) | {"callbacks": [save]}).fit(inputs, outputs)
        found[name], found["problems"][name] = save.arrays, save.problem
    return found


def put(place, value):
    def edit(array):
        array.reshape(-1)[place] = value
        return array

    return edit


EDITS = [
    ("auto", "state/set/size", put(0, 1000)),
    ("auto", "state/set/size", put(1, 3)),
    ("auto", "state/set/held", put(0, 7)),
    ("auto", "state/set/held", put(0, -1)),
    ("auto", "state/set/start", put(slice(None), 10**6)),
    ("auto", "state/set/start", put(slice(None), 0)),
    ("auto", "state/set/length", put(slice(None), -3)),
    ("auto", "state/set/slots", put(slice(None), 10**6)),
    ("auto", "state/set/columns", put(0, -1)),
    ("auto", "state/set/columns", put(slice(None), 1)),
    ("auto", "state/set/entries", put(0, np.nan)),
    ("auto", "state/set/free", put(0, 10**6)),
    ("auto", "state/set/alpha", lambda a: a + 1.0),
    ("auto", "state/set/alpha", lambda a: np.where(a > 0, np.nan, a)),
    ("auto", "state/set/origin", lambda a: a - 0.1),
    ("auto", "state/set/b", lambda a: a + 1.0),
    ("auto", "state/set/gram", lambda a: a + 1.0),
    ("auto", "state/set/linear", lambda a: a + 1.0),
    ("auto", "state/set/gap", put(0, np.nan)),
    ("auto", "state/set/iterate", lambda a: a + 1),
    ("auto", "state/set/pool", lambda a: a * 0),
    ("auto", "state/set/pool", lambda a: a * 0 + 2**50),
    ("auto", "state/set/shape", put(3, 1)),
    ("auto", "state/set/moment", put(0, 1.0)),
    ("auto", "state/u", lambda a: a * 1.01),
    ("auto", "state/u", lambda a: a.astype(np.float32)),
    ("auto", "state/cursor", lambda a: np.zeros(9, np.int64)),
    ("auto", "state/numbers", put(4, np.nan)),
    ("auto", "state/counts", put(0, -1.0)),
    ("auto", "state/rng", lambda a: np.array('{"bit_generator": "PCG64"}')),
    ("auto", "state/rng", lambda a: np.array("[" * 100_000)),
    ("auto", "state/pending/indices", put(0, 10**6)),
    ("auto", "state/pending/indices", put(0, -1)),
    ("auto", "state/pending/indptr", put(1, 10**6)),
    ("auto", "state/pending/example", put(0, 6)),
    ("auto", "state/pending/b", lambda a: a + 10.0),
    ("auto", "history/primal", put(-1, 0.0)),
    ("auto", "history/dual", put(-1, 1e9)),
    ("auto", "history/extras", lambda a: np.array('[{"primal": 0.0}, {}]')),
    ("auto", "run/seconds", lambda a: a * np.nan),
    ("bcfw", "state/set/mean", lambda a: a[:-1]),
    ("bcfw", "state/set/moment", put(3, 1e9)),
    ("bcfw", "state/set/moment", put(1, -1.0)),
    ("bcfw", "state/set/moment", put(1, 1e-300)),
    ("shards", "state/set/mean", lambda a: a[:-1]),
    ("shards", "state/set/mean", put(0, np.inf)),
    ("shards", "state/set/mean", lambda a: a + 1e9),
    ("shards", "state/set/moment", put(0, 2.0)),
    ("shards", "state/set/moment", put(1, -1.0)),
    ("shards", "state/set/moment", put(2, np.nan)),
    ("shards", "state/set/moment", put(3, 0.1)),
    ("shards", "state/earlier/u", lambda a: a[:-1]),
    ("shards", "state/earlier/numbers", put(0, 0.0)),
    ("shards", "state/earlier/numbers", put(1, 1e9)),
    ("shards", "state/sharded", put(0, -1)),
    ("pegasos", "state/vector", lambda a: a * 1e300),
    ("pegasos", "state/vector", lambda a: a + 1.0),
    ("pegasos", "state/numbers", put(0, 0.0)),
    ("pegasos", "state/largest", lambda a: -1.0 - a),
    ("ramp", "state/present/indices", lambda a: a + 1000),
    ("ramp", "state/next/example", lambda a: a[::-1].copy()),
    ("ramp", "state/best/weights", lambda a: a + 1.0),
    ("ramp", "state/best/certificate", put(0, 0.0)),
    ("ramp", "state/inner/set/held", put(0, 7)),
    ("hmm", "state/best", lambda a: a + 1.0),
    ("hmm", "state/best", lambda a: a - 1.0),
    ("hmm", "state/centre", put(0, np.nan)),
    ("hmm", "state/numbers", put(1, 0.0)),
    ("hmm", "state/numbers", put(2, 1.0)),
    ("hmm", "state/bound/linear", lambda a: a + 1.0),
    ("hmm", "state/trace", lambda a: a[:, 1:].copy()),
    ("hmm", "state/inner/set/size", put(0, 1000)),
]


@pytest.mark.parametrize(("fit", "name", "edit"), EDITS, ids=lambda value: value if isinstance(value, str) else "")
def test_an_edited_array_is_refused_by_name(fit, name, edit, saved, tmp_path):
    estimator, inputs, outputs = FITS[fit]
    changed = saved[fit] | {name: np.asarray(edit(saved[fit][name].copy()))}
    assert changed[name].dtype != saved[fit][name].dtype or not np.array_equal(changed[name], saved[fit][name])
    path = save_checkpoint(tmp_path / "run", changed)  # with a digest that fits
    part = name.rpartition("/")[0]  # arrays that belong together are compared: any of them may be named
    with pytest.raises(ValueError, match=rf"(?:{part}|history)/\S+ of the checkpoint .*fit without resume"):
        estimator.fit(inputs, outputs, resume=path)


@pytest.mark.parametrize("fit", ["auto", "hmm"])
def test_a_forged_plane_cannot_prove_what_is_false(fit, saved):
    """Tilted planes are lifted until they touch the losses where a resumed run looks first; all sums are right."""
    estimator, inputs, outputs = FITS[fit]
    optimum = clone(estimator).set_params(tol=1e-8, max_passes=3000).fit(inputs, outputs).certificate_.primal
    refused = 0
    for seed in range(16):
        arrays = dict(saved[fit])
        forge(arrays, saved["problems"][fit], np.random.default_rng(seed))
        try:
            dual = clone(estimator).fit(inputs, outputs, resume=arrays).certificate_.dual
            assert dual <= optimum * (1 + 1e-6), f"seed {seed}"
        except ValueError as error:
            assert "of the checkpoint" in str(error), f"seed {seed}"
            refused += "above the losses" in str(error)
    assert refused >= 3


@pytest.mark.parametrize("fit", FITS)
def test_a_missing_array_is_named(fit, saved):
    estimator, inputs, outputs = FITS[fit]
    for name in ("weight", "u", "vector", "rounds", "centre"):
        if f"state/{name}" in saved[fit]:
            less = {key: array for key, array in saved[fit].items() if key != f"state/{name}"}
            with pytest.raises(ValueError, match=f"resume holds no '{name}'"):
                estimator.fit(inputs, outputs, resume=less)


@pytest.mark.parametrize("fit", FITS)
def test_checkpoints_of_version_1_resume_to_the_same_weights(fit, saved, tmp_path):
    """They have no digest; every array is checked all the same."""
    estimator, inputs, outputs = FITS[fit]
    np.savez(tmp_path / "old.npz", maxmargin_checkpoint=np.array(1), **saved[fit])
    old = estimator.fit(inputs, outputs, resume=tmp_path / "old.npz").weights_
    np.testing.assert_array_equal(old, estimator.fit(inputs, outputs, resume=saved[fit]).weights_)


def test_a_changed_byte_is_seen_even_where_the_archive_is_repaired(saved, tmp_path):
    path = save_checkpoint(tmp_path / "run", saved["auto"])
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    entries["state/u.npy"] = entries["state/u.npy"][:-1] + b"\x00"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match="do not match their checksum"):
        load_checkpoint(path)


def test_a_small_file_cannot_claim_much_memory(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("state/u.npy", bytes(10**7))
    header = b"\x93NUMPY\x01\x00v\x00" + repr({"descr": "<f8", "fortran_order": False, "shape": (10**12,)}).encode()
    with zipfile.ZipFile(tmp_path / "shape", "w") as archive:
        archive.writestr("state/u.npy", header.ljust(127) + b"\n")
    for name in ("bomb", "shape"):
        with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
            load_checkpoint(tmp_path / name)


@pytest.mark.found("A3")
def test_opposite_planes_that_cancel_are_seen_at_zero_weights():
    """Two planes a and -a hold the weights at rounding of 0, where a step of their length leads nowhere."""
    base = next(base for base in bases() if base.name == "cutting plane")
    _, resume = attacked(base, 1, "", 3323716437)
    with pytest.raises(ValueError, match="above the losses"):
        resume()
