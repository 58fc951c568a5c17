"""`maxmargin evaluate` and `maxmargin inspect`."""

from __future__ import annotations

import json
import re

import pytest

import maxmargin as mm
from cli.corpus import text

# counted by hand, by the rules of the script conlleval
JUDGED = """a B-NP B-NP
b I-NP I-NP
c O B-VP
d B-VP B-VP

e B-NP I-NP
f B-NP B-NP
g I-NP O
h O O
"""


def table(output, title):
    """Rows of a printed table as lists of words."""
    lines = output.split(title + "\n", 1)[1].split("\n\n")[0].splitlines()
    return [line.split() for line in lines[1:]]


def test_numbers_of_conlleval(run):
    done = run("evaluate", "--predicted", "-", input=JUDGED)
    assert done.exit_code == 0, done.output
    assert "8 tokens in 2 sentences" in done.stdout
    assert "token accuracy     62.50%" in done.stdout and "sentence accuracy  0.00%" in done.stdout
    # NP: 3 true, 3 found, 2 right (a bare I-NP opens a span); VP: 1 true, 2 found, 1 right
    assert table(done.stdout, "spans") == [
        ["NP", "66.67", "66.67", "66.67", "3", "3", "2"],
        ["VP", "50.00", "100.00", "66.67", "1", "2", "1"],
        ["all", "60.00", "75.00", "66.67", "4", "5", "3"],
    ]
    assert table(done.stdout, "most confused") == [
        ["B-NP", "I-NP", "1", "33.3%"],
        ["I-NP", "O", "1", "50.0%"],
        ["O", "B-VP", "1", "50.0%"],
    ]
    assert len(table(run("evaluate", "--predicted", "-", "--confusions", 1, input=JUDGED).stdout, "confused")) == 1


def test_labels_that_are_no_spans_have_accuracy_only(run):
    done = run("evaluate", "--predicted", "-", input="a NN NN\nb VB NN\n")
    assert done.exit_code == 0 and "50.00%" in done.stdout and "spans" not in done.stdout


def test_model_and_file_agree_with_predicted_file(files, run):
    direct = run("evaluate", files.model, files.test)
    assert direct.exit_code == 0 and direct.stderr == ""
    piped = run("evaluate", "--predicted", "-", input=run("predict", files.model, files.test).stdout)
    assert piped.stdout == direct.stdout
    columns = run(
        "evaluate", "--predicted", "-", "--label-column", 0, "--predicted-column", 1, input="B-X B-X\n"
    )  # fmt: skip
    assert "100.00%" in columns.stdout


def test_labels_never_seen_count_as_wrong(files, run):
    done = run("evaluate", files.model, "-", input="Ann N B-PER\nRome N B-ORG\n")
    assert done.exit_code == 0 and "50.00%" in done.stdout
    assert "never saw in training" in done.stderr and "B-ORG (1 tokens)" in done.stderr


@pytest.mark.parametrize("arguments", [["model"], ["model", "file", "--predicted", "x"], ["--confusions", "3"]])
def test_wrong_usage_of_evaluate(run, arguments):
    assert run("evaluate", *arguments).exit_code == 2


def test_bad_files(files, run):
    for arguments, given, message in [
        (("evaluate", files.model, "-"), "", "has no tokens"),
        (("evaluate", "--predicted", "-"), "a\nb\n", "no column -2"),
        (("evaluate", files.model, "no.txt"), None, "no file 'no.txt'"),
    ]:
        done = run(*arguments, input=given)
        assert done.exit_code == 1 and message in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.found("D: evaluate --margin")
def test_margins_behind_the_labels_are_not_taken_for_labels(files, run):
    plain = run("evaluate", "--predicted", "-", input=run("predict", files.model, files.test).stdout)
    sure = run("evaluate", "--predicted", "-", input=run("predict", files.model, files.test, "--margin").stdout)
    assert sure.exit_code == 0 and sure.stdout == plain.stdout
    assert "column 4 of <standard input> holds margins; columns 2 and 3 are compared" in sure.stderr
    numbers = "a 1 1 2.5\nb 0 1 2.5\n\nc 1 1 0.25\n"
    assert "token accuracy     66.67%" in run("evaluate", "--predicted", "-", input=numbers).stdout
    digits = "a 1 1\nb 0 1\n\nc 1 0\n"  # labels that are numbers are labels
    assert "token accuracy     33.33%" in run("evaluate", "--predicted", "-", input=digits).stdout


@pytest.mark.found("D: evaluate --margin")
def test_several_labellings_must_be_told_apart(files, run):
    for more in ([], ["--margin"]):
        given = run("predict", files.model, files.test, "--kbest", 2, *more).stdout
        done = run("evaluate", "--predicted", "-", input=given)
        assert done.exit_code == 1 and "columns 2 to 4 hold labels of one kind" in done.stderr
        assert "--label-column and --predicted-column" in done.stderr
        named = run("evaluate", "--predicted", "-", "--label-column", 2, "--predicted-column", 3, input=given)
        assert named.stdout == run("evaluate", files.model, files.test).stdout


@pytest.mark.found("D: evaluate --json")
def test_json_holds_what_the_tables_show(files, run):
    told = json.loads(run("evaluate", "--predicted", "-", "--json", input=JUDGED).stdout)
    assert (told["tokens"], told["sentences"], told["token_accuracy"]) == (8, 2, 0.625)
    assert told["sentence_accuracy"] == 0 and told["unseen_labels"] == {}
    assert told["spans"]["all"] == {
        "precision": 0.6, "recall": 0.75, "f1": pytest.approx(2 / 3), "true": 4, "predicted": 5, "right": 3,
    }  # fmt: skip
    assert set(told["spans"]) == {"NP", "VP", "all"}
    assert told["confusions"][0] == {"true": "B-NP", "predicted": "I-NP", "tokens": 1, "share": pytest.approx(1 / 3)}
    model = run("evaluate", files.model, "-", "--json", input="Ann N B-PER\nRome N B-ÖRG\n")
    assert json.loads(model.stdout)["unseen_labels"] == {"B-ÖRG": 1} and "B-ÖRG" in model.stdout
    assert json.loads(run("evaluate", "--predicted", "-", "--json", input="a NN NN\n").stdout)["spans"] == {}


# --- inspect --------------------------------------------------------------------------------------------------------


def test_a_model_is_described(files, run):
    done = run("inspect", files.model, "--top", 2)
    assert done.exit_code == 0, done.output
    tagger = mm.load(files.model)
    assert str(tagger.certificate_) in done.stdout and tagger.status_.sentence in done.stdout
    assert "4: B-LOC B-PER I-PER O" in done.stdout
    for label in tagger.classes_:
        strongest = max(
            zip(tagger.features_.names(), tagger.coef_[:, tagger.classes_.index(label)], strict=True),
            key=lambda pair: abs(pair[1]),
        )
        name, weight = table(done.stdout, f"label {label}")[0]
        assert float(weight) == pytest.approx(strongest[1], abs=1e-4) and len(table(done.stdout, f"label {label}")) == 2
        assert name in tagger.features_.names()
    grid = table(done.stdout, "transitions, from row to column")
    for row, expected in zip(grid, tagger.transition_, strict=True):
        assert [float(w) for w in row[1:]] == pytest.approx(expected.tolist(), abs=1e-4)
    one = run("inspect", files.model, "--label", "B-LOC").stdout
    assert "label B-LOC" in one and "label O" not in one
    unknown = run("inspect", files.model, "--label", "B-X")
    assert unknown.exit_code == 1 and "no label 'B-X'" in unknown.stderr


def contributions(output):
    shown = table(output, "contributions")
    return sum(float(row[-1]) for row in shown)


def test_explanations_add_up(files, run):
    words = [[row[:2] for row in s] for s in files.test_sentences]
    margins = mm.load(files.model).predict_margin(words)
    for k in (0, 5):
        for top in (2, 100):
            done = run("inspect", files.model, "--explain", files.test, "--sentence", k, "--top", top)
            assert done.exit_code == 0, done.output
            assert float(re.search(r"scores ([-+.\d]+)", done.stdout)[1]) == pytest.approx(margins[k], abs=1e-4)
            assert contributions(done.stdout) == pytest.approx(margins[k], abs=2e-3)


def test_other_labels_are_compared(files, run):
    given = "Ann N\nran V\n"
    for other in ("O O", "O,O"):
        done = run("inspect", files.model, "--explain", "-", "--other", other, input=given)
        assert done.exit_code == 0, done.output
        assert ["Ann", "B-PER", "O", "<"] in table(done.stdout, "sentence 0")
    scores = {tuple(y): s for y, s in mm.load(files.model).predict_kbest([[("Ann", "N"), ("ran", "V")]], 16)[0]}
    assert contributions(done.stdout) == pytest.approx(scores["B-PER", "O"] - scores["O", "O"], abs=2e-3)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--sentence", "99"], "has 12 sentences; there is no sentence 99"),
        (["--other", "O"], "--other has 1 labels"),
        (["--other", "X " * 40], "--other has 40 labels"),
    ],
)
def test_bad_explanations(files, run, more, message):
    done = run("inspect", files.model, "--explain", files.test, *more)
    assert done.exit_code == 1 and message in done.stderr and "test.txt" in done.stderr


def test_unknown_label_in_other(files, run):
    done = run(
        "inspect",
        files.model,
        "--explain",
        "-",
        "--other",
        "Q,Q",
        input=text([[("Ann", "N"), ("Bob", "N")]], columns=(0, 1)),
    )
    assert done.exit_code == 1 and "'Q'" in done.stderr
