"""`maxmargin report`."""

from __future__ import annotations

import numpy as np

import maxmargin as mm


def test_a_page_about_a_model_and_a_file(run, files, tmp_path):
    page = tmp_path / "page.html"
    done = run("report", files.model, "--data", files.test, "-o", page)
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert "SequenceTagger" in text and "Labels" in text and "Progress" in text and "Strongest weights" in text
    assert str(page) in done.stderr


def test_models_of_other_kinds_have_pages_too(run, tmp_path):
    path = mm.MulticlassClassifier().fit(np.eye(3), [0, 1, 2]).save(tmp_path / "m.mm")
    assert run("report", path, "-o", tmp_path / "m.html").exit_code == 0
    refused = run("report", path, "--data", path, "-o", tmp_path / "m.html")
    assert refused.exit_code == 1 and "not a tagger" in refused.stderr


def test_an_output_that_cannot_be_written_is_refused_before_the_work(run, files, tmp_path):
    for output, word in ((tmp_path, "folder"), (files.model, "input"), (tmp_path / "no" / "x.html", "folder")):
        refused = run("report", files.model, "-o", output)
        assert refused.exit_code == 1 and word in refused.stderr, refused.stderr
    missing = run("report", tmp_path / "none.mm")
    assert missing.exit_code == 1 and "none.mm" in missing.stderr
