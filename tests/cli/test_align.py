"""The align commands from text files to links, and their messages."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from maxmargin.cli.main import app

WORDS = {"der": "the", "hund": "dog", "katze": "cat", "sieht": "sees"}
SENTENCES = ["der hund", "der katze", "katze sieht", "hund sieht der katze", "sieht der hund"]


def run(*words):
    return CliRunner().invoke(app, ["align", *map(str, words)])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("align")
    texts = {
        "de": SENTENCES,
        "en": [" ".join(WORDS[word] for word in sentence.split()) for sentence in SENTENCES],
        "links": [" ".join(f"{i}-{i}" for i in range(len(sentence.split()))) for sentence in SENTENCES],
    }
    for name, lines in texts.items():
        (folder / f"few.{name}").write_text("".join(line + "\n" for line in lines * 4))
    result = run("train", *(folder / f"few.{name}" for name in texts), "--bitext", folder / "few.de", folder / "few.en",
                 "-o", folder / "model.mm")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "20 sentence pairs" in result.stderr and "gap" in result.stderr
    return folder


def test_links_are_written_and_judged(files):
    result = run("predict", files / "model.mm", files / "few.de", files / "few.en", "-o", files / "found.links")
    assert result.exit_code == 0, result.output
    found = (files / "found.links").read_text().splitlines()
    assert len(found) == 20 and found[0] == "0-0 1-1"
    result = run("evaluate", files / "model.mm", files / "few.de", files / "few.en", files / "few.links", "--json")
    assert json.loads(result.stdout)["error_rate"] < 0.1
    assert (
        "error rate"
        in run("evaluate", files / "model.mm", files / "few.de", files / "few.en", files / "few.links").stdout
    )


def test_bonuses_for_links_that_touch(files):
    given = files / "few.de", files / "few.en"
    result = run("train", *given, files / "few.links", "--neighbours", "-o", files / "touching.mm")
    assert result.exit_code == 0, result.output
    assert run("predict", files / "touching.mm", *given).stdout.splitlines()[0] == "0-0 1-1"


def test_the_opinion_of_another_aligner(files):
    given, opinion = (files / "few.de", files / "few.en"), ("--opinion", files / "few.links")
    result = run("train", *given, files / "few.links", *opinion, "-o", files / "asked.mm")
    assert result.exit_code == 0, result.output
    result = run("predict", files / "asked.mm", *given, *opinion)
    assert result.stdout.splitlines()[0] == "0-0 1-1"
    result = run("evaluate", files / "asked.mm", *given, files / "few.links", *opinion, "--json")
    assert json.loads(result.stdout)["error_rate"] < 0.1
    result = run("predict", files / "asked.mm", *given)
    assert result.exit_code != 0 and "was trained with --opinion; give --opinion FILE" in " ".join(
        result.output.split()
    )
    result = run("predict", files / "model.mm", *given, *opinion)
    assert result.exit_code != 0 and "was trained without --opinion" in " ".join(result.output.split())


def test_files_that_do_not_fit_are_named(files):
    (files / "short.en").write_text("the dog\n")
    (files / "short.links").write_text("0-0\n")
    (files / "bad.links").write_text("0-0 1-1\n" * 19 + "0-9\n")
    given = files / "few.de", files / "few.en"
    for words, message in (
        ((files / "few.de", files / "short.en", files / "few.links"), "must stand in the same line"),
        ((*given, files / "short.links"), "has 20 lines"),
        ((*given, files / "bad.links"), "line 20: example 19 links 0 to 9"),
        ((files / "none", files / "few.en", files / "few.links"), "there is no file"),
    ):
        result = run("train", *words, "-o", files / "other.mm")
        assert result.exit_code == 1 and message in result.stderr.replace("\n", ""), result.stderr
        assert not (files / "other.mm").exists()
    where = "bad.links, line 20: example 19 links 0 to 9"
    result = run("evaluate", files / "model.mm", *given, files / "bad.links")
    assert result.exit_code == 1 and where in result.stderr.replace("\n", "")
    result = run("train", *given, files / "few.links", "--opinion", files / "bad.links", "-o", files / "other.mm")
    assert result.exit_code == 1 and where in result.stderr.replace("\n", "")
    result = run("train", *given, files / "few.links", "-o", files / "few.links")
    assert result.exit_code == 1 and "input" in result.stderr
