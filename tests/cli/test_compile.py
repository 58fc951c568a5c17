"""``maxmargin compile``: finds every kernel, prepares those that are missing, says what it did."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from maxmargin.cli import compile as command
from reference.two_kernels import two_kernels

PACKAGE = Path(command.__file__).parents[1]


@pytest.fixture
def two(monkeypatch, tmp_path):
    """Two kernels instead of all, and an empty folder; called again for a fresh process."""
    monkeypatch.setenv("MAXMARGIN_KERNEL_CACHE", str(tmp_path))

    def fresh():
        one_more, one_less = two_kernels()
        monkeypatch.setattr(command, "all_kernels", lambda: {"one_more": one_more, "one_less": one_less})

    fresh()
    return fresh


def test_it_finds_every_kernel_of_the_package():
    written = set()
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and any(ast.unparse(d)[:7] == "kernel(" for d in node.decorator_list):
                written.add(f"{module}.{node.name}")
            if isinstance(node, ast.Assign) and ast.unparse(node.value)[:7] == "kernel(":
                written.add(f"{module}.{ast.unparse(node.targets[0])}")
    assert len(written) > 50
    assert set(command.all_kernels()) == written


def test_missing_kernels_are_compiled_and_kept(two, run, tmp_path):
    assert [line.split()[0] for line in run("compile", "--list").stdout.splitlines()] == ["missing"] * 2
    done = run("compile")
    assert done.exit_code == 0
    assert "Compiled 2 of 2 kernels" in done.stdout and str(tmp_path) in done.stdout
    assert done.stderr.splitlines()[-1].startswith("2/2")
    assert len(list(tmp_path.rglob("*.kernel"))) == 2
    two()
    assert "All 2 kernels are in" in run("compile").stdout
    assert run("compile", "--list").stdout.count("on disk") == 2


def test_a_folder_that_cannot_be_written_is_an_error(two, run, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MAXMARGIN_KERNEL_CACHE", str(tmp_path / "file"))
    two()
    with pytest.warns(RuntimeWarning, match="cannot be kept"):
        done = run("compile")
    assert done.exit_code == 1 and "writable folder" in done.stderr


def test_it_shows_what_it_compiles_and_does_not_recommend_itself(two, run, monkeypatch):
    monkeypatch.setattr("maxmargin.kernel._notice.left", 1e-6)
    done = run("compile")
    assert done.exit_code == 0 and "2/2" in done.stderr and "first use" not in done.stderr
