"""Errors of users end in one line and a code; the process itself behaves in pipes."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time

import pytest

PROGRAM = [sys.executable, "-m", "maxmargin.cli"]


def process(*arguments, **options):
    return subprocess.run([*PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("", [], "bad.txt has no tokens"),
        ("\n\n", [], "bad.txt has no tokens"),
        ("a N O\nb N\n", [], "bad.txt, line 2"),
        ("a N O\n", ["--label-column", "3"], "bad.txt, line 1: there is no column 3"),
        ("a N O\n", ["--label-column", "0"], "reads column 0, which holds the labels"),
        (
            "a N O\n\n# x y\n\nb N O\nc N I-X\n",
            ["--constraints", "bio"],
            "bad.txt, line 3: example 1, position 0: label 'y'",
        ),
        ("a N O\n\nb N B-X\nc N O\nc N I-X\n", ["--constraints", "bio"], "bad.txt, line 5: example 1, position 2"),
        ("a N NN\n", ["--constraints", "bio"], "'NN' does not fit the tag scheme"),
        ("a N O\n", ["-t", "no.txt"], "no template file"),
        ("a N O\n", ["--held-out", "no.txt"], "no file 'no.txt'"),
        ("a N O\n", ["--hashing", "10", "--min-count", "2"], "hashed features are not counted"),
    ],
)
def test_bad_training_files(run, tmp_path, text, more, message):
    (tmp_path / "bad.txt").write_text(text)
    done = run("train", tmp_path / "bad.txt", "-o", tmp_path / "m.mm", *more)
    assert done.exit_code == 1, done.output
    assert message in done.stderr and len(done.stderr.splitlines()) == 1 and "Traceback" not in done.output
    assert not (tmp_path / "m.mm").exists()


def test_templates_are_named_by_line(run, files, tmp_path):
    for line, message in (("U:%q[0,0]", "t.txt, line 2: unknown macro"), ("U:%x[0,9]", "t.txt, line 2 reads column 9")):
        (tmp_path / "t.txt").write_text(f"# mine\n{line}\n")
        done = run("train", files.train, "-t", tmp_path / "t.txt", "-o", tmp_path / "m.mm")
        assert done.exit_code == 1 and message in done.stderr and len(done.stderr.splitlines()) == 1


def test_bad_line_of_standard_input_is_named(run, tmp_path):
    given = "a N O\n\nb N B-X\nc N O\nc N I-X\n"
    done = run("train", "-", "-o", tmp_path / "m.mm", "--constraints", "bio", input=given)
    assert done.exit_code == 1 and "<standard input>, line 5" in done.stderr


def test_places_that_can_not_be_written_are_refused_before_training(run, files, tmp_path):
    for path, message in ((tmp_path / "no" / "m.mm", "there is no folder"), (tmp_path, "is a folder"), ("-", "name a")):
        done = run("train", files.train, "-o", path)
        assert done.exit_code == 1 and message in done.stderr


@pytest.mark.parametrize("command", [["predict"], ["inspect"], ["evaluate"]])
def test_broken_models(run, files, tmp_path, command):
    whole = files.model.read_bytes()
    flipped = bytearray(whole)
    flipped[-9] ^= 0xFF
    broken = {"empty": b"", "text": b"hello world", "short": whole[: len(whole) // 2], "flipped": bytes(flipped)}
    more = [files.test] if command != ["inspect"] else []
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
        done = run(*command, tmp_path / name, *more)
        assert done.exit_code == 1 and name in done.stderr and len(done.stderr.splitlines()) == 1, done.output
    missing = run(*command, tmp_path / "none.mm", *more)
    assert missing.exit_code == 1 and "no model file" in missing.stderr


def test_models_of_numbers_are_refused(run, tmp_path):
    import numpy as np

    import maxmargin as mm

    mm.SequenceTagger().fit([np.eye(2)], [["a", "b"]]).save(tmp_path / "numbers.mm")
    done = run("predict", tmp_path / "numbers.mm", input="a\n")
    assert done.exit_code == 1 and "takes features, not columns of text" in done.stderr


def test_debug_shows_the_error(run, files, tmp_path):
    done = run("train", tmp_path / "no.txt", "-o", tmp_path / "m.mm", "--debug")
    assert isinstance(done.exception, FileNotFoundError)


@pytest.mark.parametrize(
    "arguments",
    [["train", "x"], ["train", "x", "-o", "y", "--solver", "magic"], ["train", "x", "-o", "y", "--max-passes", "0"],
     ["predict"], ["predict", "m", "--kbest", "0"], ["fly"], ["train", "x", "-o", "y", "--nope"]],
)  # fmt: skip
def test_wrong_usage_has_code_two(run, arguments):
    assert run(*arguments).exit_code == 2


@pytest.mark.parametrize("command", ["train", "predict", "evaluate", "inspect", "tune"])
def test_help_has_examples(run, command):
    done = run(command, "--help")
    assert done.exit_code == 0 and f"maxmargin {command} " in done.stdout and "Examples" in done.stdout


def test_help_is_quick_and_loads_nothing_heavy():
    program = (
        "import sys, time; begin = time.process_time(); from maxmargin.cli.main import app\n"
        "try: app(['train', '--help'])\nexcept SystemExit: pass\n"
        "print(time.process_time() - begin, sorted({m.partition('.')[0] for m in sys.modules}), file=sys.stderr)"
    )
    seconds, modules = [], ""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        taken, modules = done.stderr.split(" ", 1)
        seconds.append(float(taken))
    assert min(seconds) < 0.5
    assert not {"numpy", "scipy", "sklearn", "numba", "pandas"} & set(ast.literal_eval(modules))


# --- a process of its own -------------------------------------------------------------------------------------------


def test_version_and_codes_of_the_process(tmp_path):
    assert process("--version").stdout.startswith("maxmargin ")
    done = process("predict", tmp_path / "none.mm")
    assert done.returncode == 1 and done.stderr.startswith("maxmargin: ") and "Traceback" not in done.stderr
    shown = process("predict", tmp_path / "none.mm", "--debug")
    assert shown.returncode == 1 and "Traceback" in shown.stderr


@pytest.mark.parametrize(("closed", "message"), [("<&-", "standard input is closed"), (">&-", "output is closed")])
def test_closed_streams_are_said(files, closed, message):
    command = " ".join([*PROGRAM, "predict", str(files.model), "-" if "<" in closed else str(files.test), closed])
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and message in done.stderr and len(done.stderr.splitlines()) == 1


def test_reader_that_leaves_early_is_no_error(files, tmp_path):
    """The reader takes one line of many and closes the pipe."""
    many = tmp_path / "many.txt"
    many.write_text(files.test.read_text() * 500)
    child = subprocess.Popen(
        [*PROGRAM, "predict", str(files.model), str(many), "--batch", "5"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "MAXMARGIN_QUIET": "1"},  # kernels may have to be compiled
    )
    assert child.stdout.readline()
    child.stdout.close()
    assert child.wait(timeout=60) == 141
    assert child.stderr.read() == b""
    child.stderr.close()


def test_answers_come_while_input_is_still_open(files):
    child = subprocess.Popen(
        [*PROGRAM, "predict", str(files.model), "--batch", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        child.stdin.write(b"Ann N\n\n")
        child.stdin.flush()
        begin = time.monotonic()
        assert child.stdout.readline() == b"Ann N B-PER\n"
        assert time.monotonic() - begin < 60
    finally:
        child.stdin.close()
        child.wait(timeout=60)
        child.stdout.close()
