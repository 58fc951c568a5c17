"""Several files at once: `maxmargin train a b -o model` and `maxmargin predict model a b -o folder`."""

import gzip

import pytest

import maxmargin as mm
from cli.corpus import sentences, text
from reference.process import SOURCES


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    given = sentences(40)
    (folder / "a.txt").write_text(text(given[:25]))
    with gzip.open(folder / "b.gz", "wt") as file:
        file.write(text(given[25:]))
    (folder / "empty.txt").write_text("\n")
    return folder


def paths(parts):
    return parts / "a.txt", parts / "b.gz", parts / "empty.txt"


def test_several_files_make_the_model_of_one(files, parts, run, tmp_path):
    """The same predictions and certificate as from one file with all sentences."""
    options = ("-t", files.template, "--label-column", 2, "-C", 1)
    for k, more in enumerate([(), ("-j", 2, "--executor", "processes"), ("--memory-map", tmp_path / "packed")]):
        done = run("train", *paths(parts), *options, *more, "-o", tmp_path / f"{k}.mm")
        assert done.exit_code == 0, done.output
        assert "3 files" in done.stderr
        made, one = mm.load(tmp_path / f"{k}.mm"), mm.load(files.model)
        assert made.features_.names() == one.features_.names()
        assert made.certificate_ == one.certificate_
        assert (made.weights_ == one.weights_).all()
        assert run("predict", tmp_path / f"{k}.mm", files.test).stdout == run("predict", files.model, files.test).stdout


def test_default_features_with_other_numbers(parts, run, tmp_path):
    for more in ([], ["--min-count", 2], ["--hashing", 100]):
        done = run("train", *paths(parts)[::-1], "--label-column", 2, *more, "-o", tmp_path / "m.mm")
        assert done.exit_code == 0, done.output
    assert mm.load(tmp_path / "m.mm").features_.hashing == 100


def test_labels_of_several_files_go_to_a_folder(files, parts, run, tmp_path):
    for k, more in enumerate([(), ("-j", 2), ("--kbest", 2, "--margin")]):
        out = tmp_path / f"out-{k}"
        done = run("predict", files.model, *paths(parts), "-o", f"{out}/", *more)
        assert done.exit_code == 0, done.output
        one = more if k == 2 else ()
        assert (out / "a.txt").read_text() == run("predict", files.model, parts / "a.txt", *one).stdout
        with gzip.open(out / "b.gz", "rt") as file:
            assert file.read() == run("predict", files.model, parts / "b.gz", *one).stdout
        assert (out / "empty.txt").read_text() == "\n"
    alone = run("predict", files.model, parts / "a.txt", "-o", f"{tmp_path}/alone/")
    assert alone.exit_code == 0 and (tmp_path / "alone" / "a.txt").exists()


@pytest.mark.parametrize("executor", ["serial", "threads", "processes", pytest.param("ray", marks=pytest.mark.slow)])
def test_labels_do_not_depend_on_the_workers(files, parts, run, tmp_path, monkeypatch, executor):
    """Paths may be relative."""
    if executor == "ray":
        pytest.importorskip("ray")
        monkeypatch.setenv("PYTHONPATH", str(SOURCES))  # of the actors
    monkeypatch.chdir(parts)
    done = run("predict", files.model, "a.txt", "b.gz", "-o", f"{tmp_path}/", "-j", 2, "--executor", executor)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "a.txt").read_text() == run("predict", files.model, "a.txt").stdout
    with gzip.open(tmp_path / "b.gz", "rt") as file:
        assert file.read() == run("predict", files.model, "b.gz").stdout


def test_what_cannot_work_is_one_line(files, parts, run, tmp_path):
    a, b, _ = paths(parts)
    broken = tmp_path / "broken.gz"
    broken.write_bytes(b.read_bytes()[:40])
    (tmp_path / "a.txt").write_text("x\n")
    cases = [
        (["train", a, broken, "-o", tmp_path / "m.mm"], "broken.gz is a damaged archive"),
        (["train", a, tmp_path / "none.txt", "-o", tmp_path / "m.mm"], "there is no file"),
        (["train", a, tmp_path / "a.txt", "-o", tmp_path / "m.mm"], "has 1 columns"),
        (["train", a, a, "-o", tmp_path / "m.mm"], "is given 2 times"),
        (["train", a, b, "--held-out", ".1", "-o", tmp_path / "m.mm"], "--held-out needs all sentences in one file"),
        (["train", a, b, "--loss", "ramp", "-o", tmp_path / "m.mm"], "--loss ramp needs all sentences in one file"),
        (["train", a, "-", "-o", tmp_path / "m.mm"], "there is no file"),
        (["predict", files.model, a, b], "name it with -o"),
        (["predict", files.model, a, "-", "-o", tmp_path / "o"], "several files need names"),
        (["predict", files.model, a, tmp_path / "a.txt", "-o", tmp_path / "o"], "would both go to"),
        (["predict", files.model, a, tmp_path / "none.txt", "-o", tmp_path / "o"], "there is no file"),
        (["predict", files.model, a, broken, "-o", tmp_path / "o"], "broken.gz is a damaged archive"),
        (["predict", files.model, a, b, "-o", parts], "is the input"),
    ]
    for arguments, said in cases:
        done = run(*arguments)
        assert done.exit_code == 1 and said in " ".join(done.stderr.split()), (arguments, done.stderr)
        assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "m.mm").exists() and not (tmp_path / "o" / "broken.gz").exists()
