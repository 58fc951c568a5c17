"""A trained model and its files, made once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from cli.corpus import TEMPLATE, sentences, text
from maxmargin.cli.main import app


@pytest.fixture(scope="session")
def run():
    """Run the command line in this process: result with exit_code, stdout, stderr."""
    runner = CliRunner()

    def invoke(*arguments, input=None):
        return runner.invoke(app, [str(a) for a in arguments], input=input, env={"COLUMNS": "100", "TERM": "dumb"})

    return invoke


@pytest.fixture(scope="session")
def files(tmp_path_factory, run):
    """Paths: train, test, template, model; and the sentences of the test file."""
    folder: Path = tmp_path_factory.mktemp("corpus")
    made = SimpleNamespace(folder=folder, test_sentences=sentences(12, seed=1))
    made.train, made.test, made.template = folder / "train.txt", folder / "test.txt", folder / "t.txt"
    made.train.write_text(text(sentences(40)))
    made.test.write_text(text(made.test_sentences))
    made.template.write_text(TEMPLATE)
    made.model = folder / "model.mm"
    done = run("train", made.train, "-t", made.template, "--label-column", 2, "-C", 1, "-o", made.model)
    assert done.exit_code == 0, done.output
    made.trained = done
    return made
