"""`maxmargin audit`: planted mistakes are listed first, and the files it writes differ where they should."""

from __future__ import annotations

import gzip
import io
import json

import pytest

from cli.corpus import sentences, text
from maxmargin.cli.audit import _corrected, _filtered, _list
from maxmargin.features.column_files import Source

PLANTED = {7: 2, 23: 0}  # sentence -> token


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory):
    """A file with two wrong labels, and its sentences."""
    made = sentences(40)
    for i, t in PLANTED.items():
        word, tag, label = made[i][t]
        made[i][t] = (word, tag, "B-LOC" if label != "B-LOC" else "O")
    path = tmp_path_factory.mktemp("audit") / "train.txt"
    path.write_text(text(made))
    return path, made


def line_of(made, sentence, token):
    return sum(len(rows) + 1 for rows in made[:sentence]) + token + 1


def test_planted_mistakes_come_first(run, files, spoilt):
    path, made = spoilt
    done = run("audit", path, "-t", files.template, "--top", 2)
    assert done.exit_code == 0, done.output
    blocks = done.stdout.strip().split("\n\n")
    assert len(blocks) == 2 and "\x1b" not in done.stdout
    right = {i: sentences(40)[i][t][2] for i, t in PLANTED.items()}
    found = set()
    for rank, block in enumerate(blocks, start=1):
        head, body = block.split("\n")
        i = next(i for i in PLANTED if f" sentence {i}," in head)
        assert head.startswith(f"{rank}. sentence {i}, line {line_of(made, i, PLANTED[i])}: score ")
        assert head.endswith("agreement 100%")
        word, _, wrong = made[i][PLANTED[i]]
        assert f"{word} [{wrong} -> {right[i]}]" in body and body.count("[") == 1
        assert (
            body.split()
            == " ".join(
                f"{w} [{wrong} -> {right[i]}]" if t == PLANTED[i] else w for t, (w, _, _) in enumerate(made[i])
            ).split()
        )
        found.add(i)
    assert found == set(PLANTED)
    assert "40 sentences judged in 10 fits" in done.stderr


def test_json_and_files(run, files, spoilt, tmp_path):
    path, made = spoilt
    kept, mended = tmp_path / "kept.txt", tmp_path / "mended.txt.gz"
    done = run(
        "audit", path, "-t", files.template, "--top", 2, "--json", "--output-filtered", kept, "--output-corrected",
        mended, "--folds", 4, "--repeats", 1,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["sentence"] for row in rows} == set(PLANTED)
    for row in rows:
        i = row["sentence"]
        assert row["tokens"] == [w for w, _, _ in made[i]] and row["given"] == [label for _, _, label in made[i]]
        assert row["positions"] == [PLANTED[i]] and row["line"] == line_of(made, i, PLANTED[i])
        assert {"score", "suggested", "agreement", "margin", "hinge", "ramp", "violation", "worst"} <= set(row)
    assert kept.read_text() == text([rows for i, rows in enumerate(made) if i not in PLANTED])
    assert gzip.decompress(mended.read_bytes()).decode() == text(sentences(40))
    assert "kept.txt has 38 of them" in done.stderr and "other labels in 2 of them" in done.stderr


def test_standard_input_and_threshold(run, files, spoilt):
    path, _ = spoilt
    options = ["-t", files.template, "--folds", 3, "--repeats", 1]
    done = run("audit", "-", *options, "--top", 1, input=path.read_text())
    assert done.exit_code == 0 and done.stdout.startswith("1. sentence ")
    none = run("audit", path, *options, "--above", 1000)
    assert none.exit_code == 0 and none.stdout == ""


def test_same_seed_same_list(run, files, spoilt):
    path, _ = spoilt
    options = ["audit", path, "-t", files.template, "--folds", 3, "--repeats", 1, "--top", 5]
    assert run(*options).stdout == run(*options).stdout


LISTED = {1: {"positions": [1], "worst": 1, "given": ["O", "B-X"], "suggested": ["O", "O"], "score": 1.5,
              "agreement": 1.0}}  # fmt: skip


def test_lines_that_are_no_tokens_stay(tmp_path):
    given = "-DOCSTART-  O\n\n# one\na  O\n\n-DOCSTART- O\n\n# two\na\tO\n a  B-X   \n\n# three\nb O\n\n# end\n"
    path = tmp_path / "f.txt"
    path.write_text(given)
    source = Source(str(path), None, "# ")
    assert "".join(_corrected(source, LISTED, 1)) == given.replace(" a  B-X   ", " a  O   ")
    assert "".join(_filtered(source, {1})) == given.replace("# two\na\tO\n a  B-X   \n\n", "")


def test_columns_with_a_separator(tmp_path):
    path = tmp_path / "f.tsv"
    path.write_text("O\t\tO\n\nO\tx\tO\nB\tB-X\tB-X\n\n")
    assert list(_corrected(Source(str(path), "\t"), LISTED, 2))[3] == "B\tB-X\tO\n"


def test_doubt_without_a_better_label_and_colours(tmp_path):
    path = tmp_path / "f.txt"
    path.write_text("a O\n\n[b] O\nc B-X\n\n")
    unsure = {1: {**LISTED[1], "positions": [], "suggested": ["O", "B-X"]}}
    plain, drawn = io.StringIO(), Terminal()
    _list(Source(str(path)), unsure, 0, False, plain)
    assert plain.getvalue() == "1. sentence 1, line 4: score 1.50, agreement 100%\n   [b] c [B-X ?]\n\n"
    _list(Source(str(path)), LISTED, 0, False, drawn)
    assert "[b]" in drawn.getvalue() and "B-X" in drawn.getvalue()


def test_bad_requests(run, files, spoilt, tmp_path):
    path, _ = spoilt
    assert run("audit", path, "--top", 0).exit_code == 2
    assert run("audit", path, "--folds", 1).exit_code == 2
    for more, message in (
        (["--folds", 50], "has 40 sentences; 50 folds need at least as many"),
        (["--output-filtered", path], "is the input; name another file"),
        (["--output-filtered", "-"], "the list goes to standard output"),
        (["--output-corrected", tmp_path / "no" / "x.txt"], "cannot be written"),
        (["--output-corrected", tmp_path / "x", "--output-filtered", tmp_path / "x"], "is named twice"),
        (["--label-column", 5], "line 1: there is no column 5"),
        (["--loss", "hinge", "-t", tmp_path / "no.txt"], "no template file"),
    ):
        done = run("audit", path, *more)
        assert done.exit_code == 1 and message in done.stderr.replace("\n", " "), (more, done.output)
        assert len(done.stderr.splitlines()) == 1


def test_labels_that_break_the_scheme_are_named_by_line(run, files, tmp_path):
    made = sentences(20)
    made[11][1] = (*made[11][1][:2], "I-LOC")
    (tmp_path / "bad.txt").write_text(text(made))
    done = run("audit", tmp_path / "bad.txt", "-t", files.template, "--constraints", "bio")
    assert done.exit_code == 1 and f"bad.txt, line {line_of(made, 11, 1)}: " in done.stderr
    assert "example 11, position 1" in done.stderr
