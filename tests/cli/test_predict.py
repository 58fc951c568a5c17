"""`maxmargin predict`: what is kept, what is added, and that it streams."""

from __future__ import annotations

import gzip
import math

import pytest

import maxmargin as mm
from cli.corpus import text


def rows(output):
    return [line.split() for line in output.splitlines() if line]


def words(files):
    return [[row[:2] for row in s] for s in files.test_sentences]


def test_labels_are_appended_and_lines_kept(files, run):
    done = run("predict", files.model, files.test)
    assert done.exit_code == 0, done.output
    expected = mm.load(files.model).predict(words(files))
    made = [[(*row, label) for row, label in zip(s, y, strict=True)]
            for s, y in zip(files.test_sentences, expected, strict=True)]  # fmt: skip
    assert done.stdout == text(made, columns=(0, 1, 2, 3))
    assert run("predict", files.model, input=files.test.read_text()).stdout == done.stdout
    assert run("predict", files.model, "-", "--batch", 1, input=files.test.read_text()).stdout == done.stdout


def test_everything_but_tokens_passes_through(files, run):
    given = "-DOCSTART- -X- O\n\n#begin document x\nAnn N O\n# N O\n\n\n\nRome  N\tO  \r\n#end document\n"
    out = run("predict", files.model, input=given).stdout
    lines = out.splitlines()
    assert [lines[k] for k in (0, 1, 2, 5, 6, 7, 9)] == [
        "-DOCSTART- -X- O", "", "#begin document x", "", "", "", "#end document",
    ]  # fmt: skip
    assert lines[3] == "Ann N O B-PER" and lines[4].startswith("# N O ")
    assert lines[8] == "Rome  N\tO B-LOC" and len(lines) == 10
    commented = run("predict", files.model, "--comment", "#", input=given).stdout.splitlines()
    assert commented[4] == "# N O"


def test_tabs_stay_tabs_and_unseen_words_are_no_trouble(files, run):
    assert run("predict", files.model, input="Ann\tN\nZürich\tN\n").stdout.splitlines()[0] == "Ann\tN\tB-PER"
    assert run("predict", files.model, "--separator", ",", input="Ann,N\n").stdout == "Ann,N,B-PER\n"


def test_replace_puts_the_label_in_its_place(files, run):
    out = run("predict", files.model, "--replace", "--label-column", 2, input="Ann N ? x\nSmith N ? y\n").stdout
    assert out == "Ann N B-PER x\nSmith N I-PER y\n"
    assert run("predict", files.model, "--replace", input="Ann N ?\n").stdout == "Ann N B-PER\n"
    missing = run("predict", files.model, "--replace", "--label-column", 5, input="Ann N ?\n")
    assert missing.exit_code == 1 and "no column 5" in missing.stderr


def test_kbest_and_margin_are_columns(files, run):
    tagger = mm.load(files.model)
    out = rows(run("predict", files.model, files.test, "--kbest", 3, "--margin").stdout)
    at = 0
    for sentence, best, margin in zip(
        words(files), tagger.predict_kbest(words(files), 3), tagger.predict_margin(words(files)), strict=True
    ):
        part = out[at : at + len(sentence)]
        at += len(sentence)
        for k in range(3):
            assert [row[3 + k] for row in part] == best[k][0]
        assert {float(row[6]) for row in part} == {float(f"{margin:.6g}")}
    few = rows(run("predict", files.model, "--kbest", 6, "--margin", input="Ann N\n").stdout)[0]
    assert sorted(few[2:6]) == ["B-LOC", "B-PER", "I-PER", "O"] and few[6:8] == ["_", "_"]
    assert math.isfinite(float(few[8]))


def test_constraints_bind_at_prediction(files, run):
    """Without constraints a sentence may begin inside a name, with them it may not."""
    given = "Smith N\nthe D\nJones N\n"
    free = [row[2] for row in rows(run("predict", files.model, input=given).stdout)]
    bound = [row[2] for row in rows(run("predict", files.model, "--constraints", "bio", input=given).stdout)]
    assert "I-PER" in free
    allowed = [
        (labels, score)
        for labels, score in mm.load(files.model).predict_kbest([[tuple(r.split()) for r in given.splitlines()]], 64)[0]
        if all(b != "I-PER" or a in ("B-PER", "I-PER") for a, b in zip(["O", *labels], labels, strict=False))
    ]
    assert bound == allowed[0][0]


def test_output_files(files, run, tmp_path):
    plain = run("predict", files.model, files.test).stdout
    assert run("predict", files.model, files.test, "-o", tmp_path / "out.txt").stdout == ""
    assert (tmp_path / "out.txt").read_text() == plain
    assert run("predict", files.model, files.test, "-o", tmp_path / "out.gz").exit_code == 0
    with gzip.open(tmp_path / "out.gz", "rt") as file:
        assert file.read() == plain
    copy = tmp_path / "in.txt"
    copy.write_text(files.test.read_text())
    refused = run("predict", files.model, copy, "-o", copy)
    assert refused.exit_code == 1 and "is the input" in refused.stderr
    assert copy.read_text() == files.test.read_text()


def test_empty_input_gives_empty_output(files, run):
    done = run("predict", files.model, input="")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    assert run("predict", files.model, input="\n\n").stdout == "\n\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"Ann N\n\nBob\n", "<standard input>, line 3"),
        (b"Ann\nBob\n", "reads column 1, but the tokens have 1"),
        (b"Ann N\n\xff\xfe N\n", "<standard input>, line 2: not UTF-8"),
    ],
)
def test_bad_input_is_named_by_line(files, run, given, message):
    done = run("predict", files.model, input=given)
    assert done.exit_code == 1 and message in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.found("B7")
def test_single_sentences_are_labelled_without_binding(files, run, monkeypatch):
    whole = run("predict", files.model, files.test).stdout
    monkeypatch.setattr("maxmargin.models.chain.Chain.bind", None)
    assert run("predict", files.model, files.test, "--batch", 1).stdout == whole
