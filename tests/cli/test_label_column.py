"""The model knows in which column its labels were."""

from __future__ import annotations

import pytest

import maxmargin as mm
from cli.corpus import sentences, text
from maxmargin.persistence.model_file import read_model, write_model

MIDDLE = (0, 2, 1)  # word, label, part of speech


@pytest.fixture(scope="module")
def middle(tmp_path_factory, run):
    """A model of a file with labels in column 1 of 3, and such a file."""
    folder = tmp_path_factory.mktemp("middle")
    (folder / "train.txt").write_text(text(sentences(40), columns=MIDDLE))
    (folder / "test.txt").write_text(text(sentences(12, seed=1), columns=MIDDLE))
    (folder / "t.txt").write_text("U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nU2:%x[0,2]\n")
    done = run("train", folder / "train.txt", "-t", folder / "t.txt", "--label-column", -2, "-o", folder / "m.mm")
    assert done.exit_code == 0, done.output
    return folder


def test_it_is_stored_as_a_place_from_0(middle, files):
    assert mm.load(middle / "m.mm").label_column_ == 1
    assert mm.load(files.model).label_column_ == 2


def test_tune_stores_it_too(files, run, tmp_path):
    done = run("tune", files.train, "-t", files.template, "--steps", 1, "--folds", 2, "-o", tmp_path / "m.mm")
    assert done.exit_code == 0 and mm.load(tmp_path / "m.mm").label_column_ == 2


def test_evaluate_and_predict_use_it(middle, run):
    done = run("evaluate", middle / "m.mm", middle / "test.txt")
    assert done.exit_code == 0 and done.stderr == ""
    asked = run("evaluate", middle / "m.mm", middle / "test.txt", "--label-column", 1)
    assert asked.stdout == done.stdout and asked.stderr == ""
    replaced = run("predict", middle / "m.mm", "--replace", input="Ann ? N\nSmith ? N\n")
    assert replaced.stdout == "Ann B-PER N\nSmith I-PER N\n" and replaced.stderr == ""


def test_columns_behind_do_not_disturb(middle, run):
    """A file with predictions behind its columns is judged by its labels, not by the predictions."""
    right = run("predict", middle / "m.mm", middle / "test.txt").stdout
    spoilt = right.replace(" B-PER N ", " O N ")
    accuracy = 1 - right.count(" B-PER N ") / sum(map(len, sentences(12, seed=1)))
    done = run("evaluate", middle / "m.mm", "-", input=spoilt)
    assert f"token accuracy     {100 * accuracy:.2f}%" in done.stdout and accuracy < 0.9


def test_inspect_tells_it_and_shows_true_labels(middle, run):
    assert "label column  1, from 0" in run("inspect", middle / "m.mm").stdout
    shown = run("inspect", middle / "m.mm", "--explain", "-", input="Ann O N\nran O V\n").stdout
    assert ["token", "true", "predicted", "other"] in [line.split() for line in shown.splitlines()]
    assert ["Ann", "O", "B-PER"] in [line.split()[:3] for line in shown.splitlines()]


def test_a_file_without_labels_can_be_explained(files, run):
    shown = run("inspect", files.model, "--explain", "-", input="Ann N\nran V\n")
    assert shown.exit_code == 0 and "true" not in shown.stdout


@pytest.mark.parametrize(
    "arguments",
    [("evaluate", "-"), ("predict", "-"), ("predict", "-", "--replace"), ("inspect", "--explain", "-")],
    ids=" ".join,
)
def test_another_column_is_taken_but_said(middle, run, arguments):
    command, *rest = arguments
    done = run(command, middle / "m.mm", *rest, "--label-column", -1, input="Ann B-PER N\nSmith I-PER N\n")
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith(
        "maxmargin: labels are read from column 2 of <standard input>, as --label-column says; the model learned them "
        "from column 1."
    )


def test_a_file_that_lacks_the_column_is_refused(files, run):
    for arguments in (("evaluate", files.model, "-"), ("predict", files.model, "--replace")):
        done = run(*arguments, input="Ann N\n")
        assert done.exit_code == 1 and "learned its labels from column 2, but the lines have 2" in done.stderr
        assert "--label-column" in done.stderr and len(done.stderr.splitlines()) == 1


def rewritten(model, path, change):
    header, tensors = read_model(model, mmap=False)
    plain = {name: entry for name, entry in header.items() if not name.startswith(("format", "data_"))}
    write_model(path, {**plain, "training": change(plain["training"])}, tensors)
    return path


def test_files_without_it_take_the_last_column(files, run, tmp_path):
    old = rewritten(files.model, tmp_path / "old.mm", lambda text: text.replace(', "label_column": 2', ""))
    assert not hasattr(mm.load(old), "label_column_")
    assert run("evaluate", old, files.test).stdout == run("evaluate", files.model, files.test).stdout
    assert "label column" not in run("inspect", old).stdout
    assert run("predict", old, "--replace", input="Ann N ?\n").stdout == "Ann N B-PER\n"


@pytest.mark.parametrize("value", ["-1", '"2"', "2.0", "true", "[]"])
def test_nonsense_is_refused(files, tmp_path, value):
    bad = rewritten(files.model, tmp_path / "bad.mm", lambda text: text.replace('column": 2', f'column": {value}'))
    with pytest.raises(ValueError, match="its label column is"):
        mm.load(bad)


@pytest.mark.found("D: --comment and --separator are not remembered")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"word_column": 0', '"word_column": 3'),
        ('"word_column": 0', '"word_column": -1'),
        ('"word_column": 0', '"word_column": true'),
        ('"width": 3', '"width": 1e400'),
        ('"width": 3', '"width": "3"'),
        ('"separator": null', '"separator": ""'),
        ('"separator": null', '"separator": 7'),
        ('"comment": null', '"comment": ["#"]'),
        ('"comment": null, ', ""),
    ],
)
def test_nonsense_about_columns_is_refused(files, run, tmp_path, old, new):
    bad = rewritten(files.model, tmp_path / "bad.mm", lambda text: text.replace(old, new))
    done = run("predict", bad, files.test)
    assert done.exit_code == 1 and "bad.mm cannot be loaded" in done.stderr and len(done.stderr.splitlines()) == 1
    with pytest.raises(ValueError, match="cannot be loaded"):
        mm.load(bad)
