"""The rerank commands from n-best files to chosen hypotheses, and their messages."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from maxmargin.cli.main import app
from maxmargin.metrics import bleu

WORDS = "a b c d e".split()


def run(*words):
    return CliRunner().invoke(app, ["rerank", *map(str, words)])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("rerank"), np.random.default_rng(0)
    lines, references = [], []
    for key in range(30):
        truth = rng.choice(WORDS, 5).tolist()
        references.append(" ".join(truth))
        for _ in range(6):
            words = [word if rng.random() < 0.7 else "x" for word in truth]
            noise = rng.normal(size=2)
            lines.append(
                f"{key} ||| {' '.join(words)} ||| d: {words.count('x')} {noise[0]:.3f} lm: 1 ||| {noise[1]:.3f}"
            )
    (folder / "nbest").write_text("".join(line + "\n" for line in lines))
    (folder / "text").write_text("".join(line + "\n" for line in references))
    result = run("train", folder / "nbest", folder / "text", "-o", folder / "model.mm")
    assert result.exit_code == 0, result.output
    assert "30 lists, 180 hypotheses, 3 features" in result.stderr and "gap" in result.stderr
    return folder


def test_hypotheses_are_chosen_and_judged(files):
    result = run("predict", files / "model.mm", files / "nbest", "-o", files / "found")
    assert result.exit_code == 0, result.output
    found = (files / "found").read_text().splitlines()
    truth = (files / "text").read_text().splitlines()
    expected = bleu([line.split() for line in found], [[line.split()] for line in truth]).score
    report = json.loads(run("evaluate", files / "model.mm", files / "nbest", files / "text", "--json").stdout)
    assert report["reranked"] == pytest.approx(expected)
    assert report["score_in_the_file"] + 10 < report["reranked"] <= report["oracle"]
    assert "reranked" in run("evaluate", files / "model.mm", files / "nbest", files / "text", files / "text").stdout
    several = run("predict", files / "model.mm", files / "nbest", "--k", "2").stdout.splitlines()
    assert several[0].startswith(f"0 ||| {found[0]} ||| ")


def test_several_good_hypotheses(files):
    words = ("--pairing", "nearest", "--n-good", "2", "--penalty", "l1", "-o", files / "several.mm")
    result = run("train", files / "nbest", files / "text", *words)
    assert result.exit_code == 0, result.output


def test_files_that_do_not_fit_are_named(files):
    (files / "short").write_text("a\n")
    (files / "bad").write_text((files / "nbest").read_text() + "30 ||| a ||| d: 1 ||| 0\n")
    (files / "other").write_text("0 ||| a ||| lm: 1 ||| 0\n")
    (files / "more").write_text("3 ||| a ||| d: 0 0 lm: 1 tm: 2 ||| 0\n")
    for words, message in (
        (("train", files / "nbest", files / "short", "-o", files / "m"), "has 1 lines"),
        (("train", files / "bad", files / "text", "-o", files / "m"), "line 181: the feature 'd' has 1 numbers"),
        (("train", files / "none", files / "text", "-o", files / "m"), "there is no file"),
        (("train", files / "nbest", files / "text", "--pairing", "nearest", "-o", files / "m"), "--n-good"),
        (("predict", files / "model.mm", files / "other"), "other, line 1: example 0 lacks the feature 'd0'"),
        (
            ("evaluate", files / "model.mm", files / "more", files / "text"),
            "more, line 1: example 0 has the feature 'tm0'",
        ),
        (("predict", files / "nbest", files / "nbest"), "nbest"),
    ):
        result = run(*words)
        assert result.exit_code != 0 and message in result.output, result.output
