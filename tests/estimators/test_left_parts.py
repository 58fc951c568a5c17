"""Parts that stay with the workers: the weights of `fit`, a driver without examples, lost and changed parts."""

import gzip
import multiprocessing
import os
import signal
import tempfile
from itertools import pairwise

import numpy as np
import pytest
from tools.kills_workers import workers_of

import maxmargin as mm
from maxmargin.callbacks import Checkpoint
from maxmargin.callbacks.base import Callback
from maxmargin.estimators import left_parts
from maxmargin.estimators.file_parts import CommonNumbers, PartReader
from maxmargin.estimators.left_parts import LeftPart, stays
from maxmargin.execution import processes
from maxmargin.execution.ray_workers import Ray
from maxmargin.features import TextFeatures
from maxmargin.features.column_files import Source
from maxmargin.models import labels
from maxmargin.models.chain_elsewhere import ChainElsewhere
from maxmargin.models.labels import Labels
from reference.tagged_files import as_text, tagged_sentences

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CUTS, OTHER_CUTS = [0, 30, 30, 31, 60, 90], [0, 7, 44, 90]  # one part is empty


X, Y = tagged_sentences()


def write(path, a, b):
    with gzip.open(path, "wt") as file:
        file.write(as_text(X[a:b], Y[a:b]))


@pytest.fixture
def corpus(tmp_path):
    for name, cuts in (("part", CUTS), ("other", OTHER_CUTS)):
        for k, (a, b) in enumerate(pairwise(cuts)):
            write(tmp_path / f"{name}-{k}.gz", a, b)
    return tmp_path


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.fixture
def forked():
    """Workers know what a test has put in place of functions."""
    if multiprocessing.get_start_method() != "fork":
        pytest.skip("worker processes are not forked here")


@pytest.fixture
def not_kept(monkeypatch, forked):
    """Workers that can keep no files for each other, as on several machines."""
    monkeypatch.setattr(left_parts, "_paths", lambda folder, number: (folder / "none" / "i", folder / "none" / "f"))


def tagger(n_jobs=2, executor="processes", **words):
    words = {"C": 0.5, "max_passes": 6, "tol": 1e-4, "solver": mm.Sharded(shards=3, visits_per_round=8)} | words
    return mm.SequenceTagger(n_jobs=n_jobs, executor=executor, **words)


def whole(**words):
    return tagger(1, "auto", **words).fit(X, Y)


def same(found, wanted):
    np.testing.assert_array_equal(found.weights_, wanted.weights_)
    assert found.certificate_ == wanted.certificate_ and found.classes_ == wanted.classes_
    for column in ("oracle_calls", "argmax_calls", "primal", "dual", "proven"):
        np.testing.assert_array_equal(found.history_[column], wanted.history_[column])
    assert found.status_.code == wanted.status_.code


def stayed(found):
    return isinstance(found.state_.problem.oracle.oracle.model, ChainElsewhere)


class Stops(Callback):
    def on_certificate(self, run):
        return "stop"


class KillsAWorker(Callback):
    """Kills a worker at the first certificates."""

    def __init__(self, times):
        self.times = times

    def on_certificate(self, run):
        if self.times:
            self.times -= 1
            os.kill(workers_of("processes", os.getpid())[0], signal.SIGKILL)


SETTINGS = {
    "default": {},
    "observed": {"weights": "observed", "ends": True},
    "balanced": {"class_weight": "balanced", "cost": {"L0": 2.0}},
    "template": {"features": TextFeatures("U1:%x[0,0]\nU2:%x[0,1]/%x[-1,0]\nB:%x[0,1]\n", min_count=2)},
    "hashed": {"features": TextFeatures("U1:%x[0,0]\nU2:%x[-1,1]\n", hashing=64)},
    "constrained": {"constraints": [("rare", "rare")]},
    "slack": {"rescaling": "slack"},
    "positive": {"positive": ["transition"]},
    "one shard each": {"solver": mm.Sharded(shards=1000)},
    "pegasos": {"solver": mm.Pegasos(shards=4, batch=3, project=True)},
    "perceptron": {"solver": mm.Perceptron(shards=2)},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_parts_do_not_show(corpus, name):
    settings = SETTINGS[name]
    found = tagger(**settings).fit_files(corpus / "part-*.gz")
    assert stayed(found)
    same(found, whole(**settings))


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("kept", [True, False])
def test_neither_files_nor_workers_nor_machines_show(corpus, n_jobs, kept, request):
    if not kept:
        request.getfixturevalue("not_kept")
    wanted = whole()
    for name in ("part", "other"):
        same(tagger(n_jobs).fit_files(corpus / f"{name}-*.gz"), wanted)


def test_the_rule():
    """They stay where workers share no memory, for shards that never ask for all examples."""
    for executor in ("processes", "ray", Ray()):
        assert stays(tagger(executor=executor), 2)
        assert stays(tagger(executor=executor, solver=mm.MIRA(shards=2)), 2)
        assert stays(tagger(executor=executor, solver="sharded"), 100_000)
        assert not stays(tagger(executor=executor, solver="sharded"), 99_999)
        assert not stays(tagger(executor=executor), 1)
        for others in (
            {"solver": mm.Sharded(shards=1)}, {"solver": "auto"}, {"solver": mm.Pegasos()}, {"solver": "none such"},
            {"loss": mm.Ramp()}, {"loss": "squared_hinge"}, {"rescaling": "slack", "slack_search": "bisecting"},
        ):  # fmt: skip
            assert not stays(tagger(executor=executor, **others), 100_000)
    for executor in ("auto", "serial", "threads"):
        assert not stays(tagger(executor=executor), 100_000)


def test_squared_losses_go_the_other_way(corpus):
    found = tagger(loss="squared_hinge").fit_files(corpus / "part-*.gz")
    assert not stayed(found)
    same(found, whole(loss="squared_hinge"))


def answers(monkeypatch, run):
    """Bytes of the largest answer that any worker gives while something runs."""
    sizes, fetch = [0], processes.Pipe.fetch

    def noted(pipe):
        data = fetch(pipe)
        sizes.append(len(data))
        return data

    with monkeypatch.context() as patch:
        patch.setattr(processes.Pipe, "fetch", noted)
        run()
    return max(sizes)


def test_the_driver_gets_no_examples(tmp_path, monkeypatch, forked):
    """Neither in an answer, nor by reading or mapping parts itself."""
    for k in range(4):
        text = "".join(f"w{n % 7} {'ab'[n % 2]}\n{'' if n % 99 else chr(10)}" for n in range(30_000))
        (tmp_path / f"part-{k}.txt").write_text(text)
    features, driver = TextFeatures("U1:%x[0,0]\nU2:%x[-1,0]\nU3:%x[1,0]\n"), os.getpid()
    words = {"features": features, "max_passes": 1, "solver": mm.Sharded(shards=4, certificate_every=1.0)}
    part = 30_000 * 3 * 4  # bytes of the columns of one part alone

    def fit(**others):
        return tagger(**(words | others)).fit_files(tmp_path / "part-*.txt")

    assert answers(monkeypatch, lambda: fit(solver=mm.Pegasos())) > part  # one shard: brought together
    packed, make = LeftPart.packed, PartReader.made

    def away(function):
        def noted(*given):
            assert os.getpid() != driver
            return function(*given)

        return noted

    monkeypatch.setattr(LeftPart, "packed", away(packed))
    monkeypatch.setattr(PartReader, "made", away(make))
    found = []
    assert answers(monkeypatch, lambda: found.append(fit(solver=mm.Pegasos(shards=4)))) < part / 2
    assert stayed(found[0])
    model = found[0].state_.problem.oracle.oracle.model
    kernel = model.kernel()
    assert len(kernel.ints) + len(kernel.floats) < 100
    with pytest.raises(RuntimeError, match="with the workers"):
        model.argmax(found[0].weights_)


def test_the_limit_is_that_of_a_shard(corpus, monkeypatch, forked):
    """Entries are counted in 32 bits; here in fewer."""
    features = TextFeatures("U1:%x[0,1]\nU2:%x[0,0]\nU3:%x[-1,1]\n", hashing=16)
    wanted = whole(features=features)
    entries = sum(3 * len(x) for x in X)
    monkeypatch.setattr(labels, "MOST", entries // 2)
    with pytest.raises(ValueError, match=r"the files have \d+ entries.*leave them with their workers"):
        tagger(features=features, executor="threads").fit_files(corpus / "part-*.gz")
    same(tagger(features=features).fit_files(corpus / "part-*.gz"), wanted)
    monkeypatch.setattr(labels, "MOST", int(0.45 * entries))
    with pytest.raises(ValueError, match=r"the examples of a shard have \d+ entries.*use more shards"):
        tagger(features=features, solver=mm.Sharded(shards=2)).fit_files(corpus / "part-*.gz")


# --- lost and changed parts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["count", "leave", "pairs"])
def test_a_worker_is_killed_while_it_packs(corpus, monkeypatch, verb, forked):
    wanted, mark, work = whole(weights="observed"), corpus / "killed", getattr(PartReader, verb)

    def dies_once(reader, *given):
        found = work(reader, *given)
        if reader.number == 3 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    monkeypatch.setattr(PartReader, verb, dies_once)
    same(tagger(weights="observed").fit_files(corpus / "part-*.gz"), wanted)
    assert mark.exists()


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("solver", [mm.Sharded(shards=3), mm.Pegasos(shards=3, certificate_every=1.0)])
def test_a_worker_is_killed_while_it_trains(corpus, solver, kept, request):
    if not kept:
        request.getfixturevalue("not_kept")
    found = tagger(solver=solver, callbacks=[KillsAWorker(2)]).fit_files(corpus / "part-*.gz")
    same(found, whole(solver=solver))
    assert found.history_["workers_replaced"].max() >= 1


def test_a_part_that_has_changed_is_refused(corpus, monkeypatch, not_kept):
    """Where it has to be read again: before training, and by a worker that takes over."""
    source = Source(str(corpus / "part-0.gz"))
    counted = PartReader(0, source, None, None, None)
    part = counted.count()
    numbers = CommonNumbers(part.text, {}, 0, 0, Labels(sorted(part.labels)))
    write(corpus / "part-0.gz", 1, 30)
    assert len(counted.pairs(numbers)) > 0  # the part as it was
    with pytest.raises(ValueError, match=r"part-0\.gz has changed since its features were counted; train again"):
        PartReader(0, source, None, None, None).pairs(numbers)

    take_over = mm.SequenceTagger._take_over

    def changed(model, made):
        take_over(model, made)
        write(corpus / "part-3.gz", 0, 2)

    monkeypatch.setattr(mm.SequenceTagger, "_take_over", changed)
    with pytest.raises(ValueError, match=r"part-3\.gz has changed"):
        tagger().fit_files(corpus / "part-*.gz")


def test_unreadable_parts_are_named(corpus, monkeypatch, not_kept):
    good = sorted(corpus.glob("part-*.gz"))
    (corpus / "bad.gz").write_bytes(good[0].read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"bad\.gz.*damaged archive"):
        tagger().fit_files([*good, corpus / "bad.gz"])
    with pytest.raises(ValueError, match=r"part-4\.gz, line \d+: .*label 'rare'.* not among the classes"):
        tagger(classes=["L0", "L1", "L2"]).fit_files(good)
    with pytest.raises(ValueError, match=r"part-\d\.gz, line \d+: .*breaks the constraints"):
        tagger(constraints=[("L0", "L1")]).fit_files(good)
    take_over = mm.SequenceTagger._take_over

    def gone(model, made):
        take_over(model, made)
        good[1].unlink()  # without sentences: nobody misses it
        good[3].unlink()

    monkeypatch.setattr(mm.SequenceTagger, "_take_over", gone)
    with pytest.raises(FileNotFoundError, match=r"part-3\.gz"):
        tagger().fit_files(good)


def test_few_sentences(tmp_path):
    """Never more shards than sentences; a single one is brought here."""
    for n in (1, 2):
        (tmp_path / f"{n}.txt").write_text("w x\nv y\n\n" * n)
        (tmp_path / "none.txt").write_text("\n\n")
        found = tagger(4, solver=mm.Sharded(shards=8)).fit_files([tmp_path / "none.txt", tmp_path / f"{n}.txt"])
        wanted = tagger(1, "auto", solver=mm.Sharded(shards=8)).fit([["w", "v"]] * n, [["x", "y"]] * n)
        np.testing.assert_array_equal(found.weights_, wanted.weights_)
        assert stayed(found) == (n == 2) if n == 2 else found.n_iter_ > 0


# --- resuming, and what is left -----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [mm.Sharded(shards=3), mm.Pegasos(shards=3, certificate_every=1.0)])
def test_resuming(corpus, solver):
    """There, with other files, or on all sentences; and there from a checkpoint made on all sentences."""
    wanted, path = whole(solver=solver), corpus / "run"
    words = {"solver": solver, "callbacks": [Stops(), Checkpoint(path)]}
    tagger(**words).fit_files(corpus / "part-*.gz")
    for name in ("part", "other"):
        found = tagger(3, solver=solver).fit_files(corpus / f"{name}-*.gz", resume=path)
        assert stayed(found)
        same(found, wanted)
    same(tagger(1, "auto", solver=solver).fit(X, Y, resume=path), wanted)
    tagger(1, "auto", **words).fit(X, Y)
    same(tagger(solver=solver).fit_files(corpus / "part-*.gz", resume=path), wanted)
    write(corpus / "part-4.gz", 60, 89)
    with pytest.raises(ValueError, match="belongs to another problem"):
        tagger(solver=solver).fit_files(corpus / "part-*.gz", resume=path)


def test_warm_starts(corpus):
    found, wanted = tagger(warm_start=True), tagger(1, "auto", warm_start=True)
    for C in (0.1, 0.5):
        found.set_params(C=C).fit_files(corpus / "part-*.gz")
        wanted.set_params(C=C).fit(X, Y)
        same(found, wanted)


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_no_files_are_left(corpus, temporary, error):
    seen = []

    class Looks(Callback):
        def on_certificate(self, run):
            seen.extend(path.name for path in temporary.glob("maxmargin-*/*"))
            if error is not None:
                raise error("enough")

    fit = tagger(callbacks=[Looks()]).fit_files
    if error is ValueError:
        with pytest.raises(ValueError, match="enough"):
            fit(corpus / "part-*.gz")
    else:
        fit(corpus / "part-*.gz")
    parts = range(len(CUTS) - 1)
    assert set(seen) == {*(f"ints-{k}" for k in parts), *(f"floats-{k}" for k in parts)}
    assert not list(temporary.glob("maxmargin-*"))


def test_ctrl_c_while_packing_leaves_no_files(corpus, temporary, monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(ChainElsewhere, "of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tagger().fit_files(corpus / "part-*.gz")
    assert not list(temporary.glob("maxmargin-*"))


def test_fits_that_rounding_ends(corpus):
    """The largest number among the data is known without them; which feature it is is not."""
    words = {"C": 1e14, "max_passes": 60, "tol": 1e-9}
    found, wanted = tagger(**words).fit_files(corpus / "part-*.gz"), whole(**words)
    same(found, wanted)
    assert found.status_.code in ("badly scaled", "stalled")
    assert "the examples stay with the workers" in found.status_.sentence
