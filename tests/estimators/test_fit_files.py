"""Taggers trained on many files: as on all sentences at once, in memory or mapped, and errors that name the file."""

import gzip
import os
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.features import TextFeatures
from maxmargin.persistence.mapped import open_array
from reference.tagged_files import as_text, tagged_sentences

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CUTS = [0, 30, 30, 31, 60, 90]  # one part is empty


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    X, Y = tagged_sentences()
    for k, (a, b) in enumerate(pairwise(CUTS)):
        with gzip.open(folder / f"part-{k}.gz", "wt") as file:
            file.write(as_text(X[a:b], Y[a:b]))
    return folder, X, Y


SETTINGS = {
    "default": {},
    "observed": {"weights": "observed", "ends": True},
    "balanced": {"class_weight": "balanced", "cost": {"L0": 2.0}},
    "template": {"features": TextFeatures("U1:%x[0,0]\nU2:%x[0,1]/%x[-1,0]\nB:%x[0,1]\n", min_count=2)},
    "hashed": {"features": TextFeatures("U1:%x[0,0]\nU2:%x[-1,1]\n", hashing=64)},
    "constrained": {"constraints": [("rare", "rare")]},
    "sharded": {"solver": mm.Sharded(shards=2)},
    "mixed": {"solver": mm.Pegasos(shards=2, batch=3)},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_parts_do_not_show(corpus, tmp_path, name):
    """Weights, names and labels to the last bit, from memory and from a folder, made and found again."""
    folder, X, Y = corpus
    settings = {"max_passes": 4, "C": 0.5, **SETTINGS[name]}
    whole = mm.SequenceTagger(**settings).fit(X, Y)
    for memory_map in (None, tmp_path / "packed", tmp_path / "packed"):
        tagger = mm.SequenceTagger(**settings).fit_files(folder / "part-*.gz", memory_map=memory_map)
        np.testing.assert_array_equal(tagger.weights_, whole.weights_)
        assert tagger.classes_ == whole.classes_ and "rare" in tagger.classes_
        if name != "hashed":
            assert tagger.features_.names() == whole.features_.names()
        assert tagger.certificate_ == whole.certificate_
    assert list(chain(*tagger.predict_files(str(folder / "part-*.gz")))) == list(whole.predict(X))


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_workers_do_not_show(corpus, tmp_path, executor):
    folder, X, Y = corpus
    whole = mm.SequenceTagger(max_passes=3, weights="observed").fit(X, Y)
    for n_jobs in (1, 2, 3):
        workers = {"n_jobs": n_jobs, "executor": executor}
        for memory_map in (None, tmp_path / f"packed-{n_jobs}"):
            tagger = mm.SequenceTagger(max_passes=3, weights="observed", **workers)
            tagger.fit_files(folder / "part-*.gz", memory_map=memory_map)
            np.testing.assert_array_equal(tagger.weights_, whole.weights_)
        parts = tagger.predict_files([folder / f"part-{k}.gz" for k in range(5)])
        assert [len(part) for part in parts] == np.diff(CUTS).tolist()


def test_models_of_files_know_their_columns(corpus, tmp_path):
    folder, X, _ = corpus
    tagger = mm.SequenceTagger(max_passes=3).fit_files(folder / "part-*.gz", label_column=-1)
    tagger.save(tmp_path / "model.mm")
    loaded = mm.load(tmp_path / "model.mm")
    assert (loaded.label_column_, loaded.columns_.width, loaded.columns_.word_column) == (2, 3, 0)
    assert list(loaded.predict(X)) == list(tagger.predict(X))
    assert list(chain(*loaded.predict_files(folder / "part-*.gz"))) == list(tagger.predict(X))


def test_conllu(tmp_path):
    line = "{}\t{}\t_\t{}\t_\t_\t0\t_\t_\t_\n"
    sentences = [[("dogs", "NOUN"), ("bark", "VERB")], [("cats", "NOUN")]]
    for k, sentence in enumerate(sentences):
        rows = "".join(line.format(t + 1, word, tag) for t, (word, tag) in enumerate(sentence))
        (tmp_path / f"{k}.conllu").write_text(f"# text\n{rows}\n")
    tagger = mm.SequenceTagger().fit_files(tmp_path / "*.conllu")
    assert tagger.classes_ == ["NOUN", "VERB"] and tagger.columns_.conllu and tagger.label_column_ == 3
    words = [[word for word, _ in sentence] for sentence in sentences]
    whole = mm.SequenceTagger().fit(words, [[tag for _, tag in sentence] for sentence in sentences])
    np.testing.assert_array_equal(tagger.weights_, whole.weights_)
    by_name = mm.SequenceTagger().fit_files(tmp_path / "*.conllu", word_column="form", label_column="upos")
    np.testing.assert_array_equal(tagger.weights_, by_name.weights_)


def pack_of(folder):
    return folder / "pack"


def test_packs_are_mapped_and_found_again(corpus, tmp_path, monkeypatch):
    from maxmargin.estimators import file_parts

    folder, *_ = corpus
    first = mm.SequenceTagger(max_passes=3).fit_files(folder / "part-*.gz", memory_map=tmp_path)
    arrays = first.state_.problem.oracle.fused().kernel
    size = (pack_of(tmp_path) / "ints").stat().st_size // 4
    assert np.shares_memory(arrays.ints, arrays.ints) and isinstance(arrays.ints.base, np.memmap)
    np.testing.assert_array_equal(arrays.ints, open_array(pack_of(tmp_path) / "ints", np.int32, size))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "pack"]
    assert sorted(path.name for path in pack_of(tmp_path).iterdir()) == ["facts.mm", "floats", "ints"]

    def never(*given):
        raise AssertionError("files were read again")

    monkeypatch.setattr(file_parts.PartReader, "count", never)
    again = mm.SequenceTagger(max_passes=3, C=1.0).fit_files(folder / "part-*.gz", memory_map=tmp_path)
    np.testing.assert_array_equal(first.weights_, again.weights_)
    with pytest.raises(AssertionError, match="read again"):  # other features, another pack
        mm.SequenceTagger(features=TextFeatures("U:%x[0,0]\n")).fit_files(folder / "part-*.gz", memory_map=tmp_path)


def test_changed_files_are_packed_anew(tmp_path):
    X, Y = tagged_sentences()
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path, half in zip(paths, (slice(0, 40), slice(40, 90)), strict=True):
        path.write_text(as_text(X[half], Y[half]))
    tagger = mm.SequenceTagger(max_passes=3)
    tagger.fit_files(paths, memory_map=tmp_path / "packed")
    paths[1].write_text(as_text(X[40:60], Y[40:60]))
    changed = tagger.fit_files(paths, memory_map=tmp_path / "packed").weights_
    np.testing.assert_array_equal(changed, mm.SequenceTagger(max_passes=3).fit(X[:60], Y[:60]).weights_)
    os.utime(paths[0], ns=(1, 1))
    np.testing.assert_array_equal(tagger.fit_files(paths, memory_map=tmp_path / "packed").weights_, changed)


@pytest.mark.parametrize("name", ["ints", "floats", "facts.mm"])
@pytest.mark.parametrize("damage", ["byte", "shorter", "gone"])
def test_damaged_packs_are_made_again(corpus, tmp_path, name, damage):
    folder, *_ = corpus
    tagger = mm.SequenceTagger(max_passes=2)
    wanted = tagger.fit_files(folder / "part-*.gz", memory_map=tmp_path).weights_
    path = pack_of(tmp_path) / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()
    if damage != "gone":
        path.write_bytes(data if damage == "byte" else data[:-5])
    np.testing.assert_array_equal(tagger.fit_files(folder / "part-*.gz", memory_map=tmp_path).weights_, wanted)


def test_what_killed_processes_leave_is_removed(corpus, tmp_path):
    folder, *_ = corpus
    (tmp_path / ".packing-abc").mkdir()
    (tmp_path / ".packing-abc" / "ints").write_bytes(b"half")
    mm.SequenceTagger(max_passes=2).fit_files(folder / "part-*.gz", memory_map=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "pack"]


def test_failures_leave_no_pack(tmp_path):
    (tmp_path / "a.txt").write_text("w x\n\n")
    (tmp_path / "b.txt").write_text("w x y\n\n")
    with pytest.raises(ValueError, match="columns"):
        mm.SequenceTagger().fit_files(tmp_path / "*.txt", memory_map=tmp_path / "packed")
    assert [path.name for path in (tmp_path / "packed").iterdir()] == [".lock"]


# --- errors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_unreadable_parts_are_named(corpus, tmp_path, n_jobs):
    folder, *_ = corpus
    good, bad = folder / "part-0.gz", tmp_path / "bad.gz"
    tagger = mm.SequenceTagger(n_jobs=n_jobs)
    whole = Path(folder / "part-4.gz").read_bytes()
    for data, said in ((whole[: len(whole) // 2], "damaged archive"), (b"no archive", "damaged archive")):
        bad.write_bytes(data)
        with pytest.raises(ValueError, match=rf"bad\.gz.*{said}"):
            tagger.fit_files([good, bad])
        with pytest.raises(ValueError, match=rf"bad\.gz.*{said}"):
            mm.SequenceTagger(max_passes=1, n_jobs=n_jobs).fit_files(good).predict_files([good, bad])
    for text, said in (("a b c\nd e\n\n", r"line 2 .*2 columns"), ("\ud800 b c\n", "not UTF-8")):
        (tmp_path / "bad.txt").write_text(text, errors="surrogatepass")
        with pytest.raises(ValueError, match=rf"bad\.txt, line .*{said}|bad\.txt, {said}"):
            tagger.fit_files([good, tmp_path / "bad.txt"])
    (tmp_path / "two.txt").write_text("a b\n\n")
    with pytest.raises(ValueError, match=r"two\.txt has 2 columns, but .*part-0\.gz has 3"):
        tagger.fit_files([good, tmp_path / "two.txt"])


def test_missing_files_and_patterns_are_named(corpus, tmp_path):
    folder, *_ = corpus
    tagger = mm.SequenceTagger()
    with pytest.raises(FileNotFoundError, match=r"no file matches '.*none-\*\.gz'"):
        tagger.fit_files([folder / "part-0.gz", tmp_path / "none-*.gz"])
    with pytest.raises(FileNotFoundError, match=r"there is no file '.*none\.gz'"):
        tagger.fit_files([folder / "part-0.gz", tmp_path / "none.gz"])
    with pytest.raises(ValueError, match="there are no files"):
        tagger.fit_files([])
    with pytest.raises(ValueError, match="is given 2 times"):
        tagger.fit_files([folder / "part-0.gz", folder / "part-*.gz"])
    with pytest.raises(ValueError, match="is a folder"):
        tagger.fit_files(folder)


def test_odd_parts(corpus, tmp_path):
    folder, *_ = corpus
    tagger, good = mm.SequenceTagger(max_passes=1), folder / "part-0.gz"
    (tmp_path / "empty.txt").write_text("\n\n")
    tagger.fit_files([tmp_path / "empty.txt", good])  # an empty part does no harm
    with pytest.raises(ValueError, match=r"no file has tokens .*empty\.txt"):
        tagger.fit_files(tmp_path / "empty.txt")
    with pytest.raises(ValueError, match=r"part-4\.gz, line \d+: .*label 'rare'.* not among the classes"):
        mm.SequenceTagger(classes=["L0", "L1", "L2"]).fit_files(folder / "part-*.gz")
    with pytest.raises(ValueError, match=r"part-\d\.gz, line \d+: .*breaks the constraints"):
        mm.SequenceTagger(constraints=[("L0", "L1")]).fit_files(folder / "part-*.gz")
    with pytest.raises(ValueError, match=r"reads column 2, which holds the labels"):
        mm.SequenceTagger(features=TextFeatures("U:%x[0,2]\n")).fit_files(good)
    with pytest.raises(ValueError, match="there is no column 7"):
        tagger.fit_files(good, label_column=7)
    with pytest.raises(ValueError, match="a column must be a number"):
        tagger.fit_files(good, label_column="tags")
    with pytest.raises(ValueError, match="format must be one of"):
        tagger.fit_files(good, format="tables")
    with pytest.raises(TypeError, match="files hold text"):
        mm.SequenceTagger(features=mm.features.DictFeatures()).fit_files(good)
    arrays = mm.SequenceTagger(max_passes=1).fit([np.eye(2)], [["a", "b"]])
    with pytest.raises(TypeError, match="not fitted on text"):
        arrays.predict_files(good)
