"""CoNLL-U: words, not their numbers, are learned from, and what is written is CoNLL-U again."""

from __future__ import annotations

import json

import pytest

import maxmargin as mm
from cli.corpus import WORDS, sentences, text

pytestmark = pytest.mark.found("D: CoNLL-U")
TAGS = {"D": "DET", "V": "VERB", "P": "ADP", "N": "NOUN"}


def treebank(made):
    """Sentences of the corpus in CoNLL-U, with a range of words and an empty node in each."""
    blocks = []
    for i, rows in enumerate(made):
        lines = [f"# sent_id = {i}", f"# text = {' '.join(word for word, _, _ in rows)}", row("1-2", "a_b")]
        lines += [row(t, word, TAGS[tag], tag) for t, (word, tag, _) in enumerate(rows, 1)]
        blocks.append("\n".join([*lines, row("2.1", "gap")]) + "\n\n")
    return "".join(blocks)


def row(number, form, upos="_", xpos="_", misc="_"):
    return "\t".join([str(number), form, "_", upos, xpos, "_", "_", "_", "_", misc])


@pytest.fixture(scope="module")
def bank(tmp_path_factory, run):
    folder = tmp_path_factory.mktemp("conllu")
    (folder / "train.conllu").write_text(treebank(sentences(30)))
    (folder / "test.conllu").write_text(treebank(sentences(8, seed=1)))
    done = run("train", folder / "train.conllu", "-o", folder / "m.mm")
    assert done.exit_code == 0, done.output
    assert "words, affixes and shapes of form, labels in upos (CoNLL-U)" in done.stderr
    return folder


def test_words_and_tags_are_learned(bank, run):
    tagger = mm.load(bank / "m.mm")
    assert set(tagger.classes_) == set(TAGS.values())
    assert "1[0]=Paris" in tagger.features_.names() and "1[0]=a_b" not in tagger.features_.names()
    done = run("evaluate", bank / "m.mm", bank / "test.conllu", "--json")
    scores = json.loads(done.stdout)
    assert scores["sentences"] == 8 and scores["tokens"] == sum(map(len, sentences(8, seed=1)))
    assert scores["token_accuracy"] == 1.0


def test_the_label_takes_its_place_and_all_else_stays(bank, run):
    given = (bank / "test.conllu").read_text()
    for tag in TAGS.values():
        given = given.replace(f"\t{tag}\t", "\t_\t")
    done = run("predict", bank / "m.mm", "-", input=given)
    assert done.exit_code == 0 and done.stderr == ""
    assert done.stdout == (bank / "test.conllu").read_text()
    sure = run("predict", bank / "m.mm", "--margin", "--kbest", 2, input=row(1, "Paris", misc="SpaceAfter=No") + "\n")
    fields = sure.stdout.rstrip("\n").split("\t")
    assert len(fields) == 10 and fields[3] == "NOUN"
    kept, second, margin = fields[9].split("|")
    assert kept == "SpaceAfter=No" and second.startswith("Label2=") and float(margin.removeprefix("Margin=")) > 0


def test_both_labels_can_be_written_and_compared(bank, run):
    both = run("predict", bank / "m.mm", bank / "test.conllu", "--no-replace").stdout
    assert {len(line.split("\t")) for line in both.splitlines() if "\t" in line} == {11}
    assert "1-2\ta_b" + 8 * "\t_" + "\t_\n" in both
    judged = run("evaluate", "--predicted", "-", "--format", "conllu", input=both)
    assert judged.exit_code == 0 and "token accuracy     100.00%" in judged.stdout
    alone = run("evaluate", "--predicted", bank / "test.conllu")
    assert alone.exit_code == 1 and "one label of each word" in alone.stderr and "--no-replace" in alone.stderr


@pytest.mark.parametrize("column", ["xpos", "XPOS", "4"])
def test_columns_have_names(bank, run, tmp_path, column):
    done = run("train", bank / "train.conllu", "-o", tmp_path / "m.mm", "--label-column", column)
    assert done.exit_code == 0 and set(mm.load(tmp_path / "m.mm").classes_) == set(TAGS)
    assert mm.load(tmp_path / "m.mm").columns_.word_column == 1


def test_other_commands_read_it_too(bank, run, tmp_path):
    tuned = run("tune", bank / "train.conllu", "--steps", 1, "--folds", 2, "-o", tmp_path / "t.mm")
    assert tuned.exit_code == 0 and mm.load(tmp_path / "t.mm").columns_.conllu
    shown = run("inspect", bank / "m.mm", "--explain", bank / "test.conllu").stdout
    assert sentences(8, seed=1)[0][0][0] in shown.splitlines()[2]
    wrong = sentences(30)
    wrong[4][1] = (wrong[4][1][0], "V" if wrong[4][1][1] != "V" else "D", "")
    (tmp_path / "bad.conllu").write_text(treebank(wrong))
    arguments = ["--folds", 3, "--repeats", 1, "--top", 1, "--output-corrected", tmp_path / "c.conllu"]
    listed = run("audit", tmp_path / "bad.conllu", *arguments)
    assert listed.exit_code == 0 and "sentence 4," in listed.stdout and wrong[4][1][0] in listed.stdout
    assert (tmp_path / "c.conllu").read_text().count("\n") == treebank(wrong).count("\n")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("Paris\n", "line 1 (sentence 0): not CoNLL-U (10 columns between tabs are needed, there are 1)"),
        (row(1, "a") + "\n" + row("two", "b") + "\n", "line 2 (sentence 0): not CoNLL-U ('two' is not the number"),
    ],
)
def test_a_model_of_conllu_says_so_when_it_gets_another_format(bank, run, given, message):
    done = run("predict", bank / "m.mm", input=given)
    assert done.exit_code == 1 and message in done.stderr and done.stdout == ""


@pytest.mark.found("D: --word-column")
def test_words_in_another_column(run, tmp_path):
    numbered = [[(str(t), *r) for t, r in enumerate(s, 1)] for s in sentences(30)]
    (tmp_path / "n.txt").write_text(text(numbered, columns=(0, 1, 3)))
    plain = run("train", tmp_path / "n.txt", "-o", tmp_path / "m.mm")
    assert "column 0" in plain.stderr and "holds the numbers of the tokens" in plain.stderr
    done = run("train", tmp_path / "n.txt", "-o", tmp_path / "m.mm", "--word-column", 1)
    assert done.exit_code == 0 and len(done.stderr.splitlines()) == 1 and "shapes of column 1;" in done.stderr
    word = WORDS["B-LOC"][0][0]
    assert f"1[0]={word}" in mm.load(tmp_path / "m.mm").features_.names()
    assert run("predict", tmp_path / "m.mm", input=f"1 {word}\n").stdout == f"1 {word} B-LOC\n"
    named = run("train", tmp_path / "n.txt", "-o", tmp_path / "m.mm", "--word-column", "form")
    assert named.exit_code == 1 and "columns have names in CoNLL-U only" in named.stderr
    assert run("train", tmp_path / "n.txt", "-o", tmp_path / "m.mm", "--word-column", "first").exit_code == 2


def test_a_file_is_taken_for_conllu_only_if_it_is(run, tmp_path):
    rows = [["x", *"abcdefgh", "L"], ["y", *"abcdefgh", "M"]]
    (tmp_path / "wide.txt").write_text("\n".join("\t".join(r) for r in rows) + "\n")
    assert run("train", tmp_path / "wide.txt", "-o", tmp_path / "m.mm").exit_code == 0
    assert not mm.load(tmp_path / "m.mm").columns_.conllu and set(mm.load(tmp_path / "m.mm").classes_) == {"L", "M"}
    forced = run("train", tmp_path / "wide.txt", "-o", tmp_path / "m.mm", "--format", "conllu")
    assert forced.exit_code == 1 and "'x' is not the number of a word" in forced.stderr
