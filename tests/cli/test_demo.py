"""``maxmargin demo``: every task runs, shows a program that runs by itself, and draws a picture."""

from __future__ import annotations

import re
import sys
import textwrap

import pytest

from maxmargin.cli.demo import TASKS, Task

BETTER_THAN = {  # a figure that the task prints, and what it has to exceed
    "tag": (r"words right +([\d.]+) %", 95.0),
    "labels": (r"micro F1 +([\d.]+) %", 90.0),
    "segment": (r"intersection over union +([\d.]+)", 0.9),
    "graphs": (r"rooms right +([\d.]+) %", 75.0),
    "network": (r"plants right +([\d.]+) %", 60.0),
    "align": (r"without them +([\d.]+) %", 5.0),
    "rerank": (r"learned choice +BLEU +([\d.]+)", 90.0),
}


def test_tasks():
    assert [*Task] == [*TASKS, "all"]


def test_without_a_task_they_are_listed(run):
    done = run("demo")
    assert done.exit_code == 0
    for name, (_, about) in TASKS.items():
        assert re.search(rf"^maxmargin demo {name} +{about}$", done.stdout, re.M)


@pytest.mark.parametrize(
    "task", [pytest.param(task, marks=pytest.mark.slow if task == "segment" else ()) for task in TASKS]
)
def test_every_task(run, task, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.png"
    done = run("demo", task, "-o", picture)
    assert done.exit_code == 0, done.output
    pattern, least = BETTER_THAN[task]
    assert float(re.search(pattern, done.stdout)[1]) > least
    assert re.search(r"^certificate  primal [\d.]+, dual [\d.]+, relative gap [\d.e-]+$", done.stdout, re.M)
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 15_000
    if task != "segment":  # takes some seconds
        program = textwrap.dedent("\n".join(re.findall(r"^(?:    .*)?$", done.stdout, re.M)))
        names: dict[str, object] = {}
        exec(program, names)
        assert "found" in names


def test_without_matplotlib_it_says_what_to_install(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.chdir(tmp_path)
    done = run("demo", "rerank")
    assert done.exit_code == 0
    assert "pip install matplotlib" in done.stdout and "learned choice" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("all", "-o", "x.png"), "leave it out, or name one task"),
        (("tag", "-o", "x.txt"), "does not end in .png"),
        (("tag", "-o", "nowhere/x.png"), "create it first"),
    ],
)
def test_pictures_that_cannot_be_are_refused_at_once(run, arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("demo", *arguments)
    assert done.exit_code == 1 and said in done.stderr
