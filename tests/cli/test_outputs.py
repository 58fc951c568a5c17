"""What is written: checked before the work, never over an input, whole or not at all, and not lost."""

from __future__ import annotations

import errno
import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import maxmargin as mm
from cli.corpus import sentences, text
from cli.test_errors import PROGRAM, process

# --- an output that names an input ----------------------------------------------------------------------------------


@pytest.fixture(params=["itself", "symbolic link", "hard link", "other spelling"])
def alias(request):
    """Another name of a file."""

    def made(path):
        other = path.with_name(f"other-{path.name}")
        if request.param == "symbolic link":
            other.symlink_to(path)
        elif request.param == "hard link":
            os.link(path, other)
        return {"itself": path, "other spelling": path.parent / "." / path.name}.get(request.param, other)

    return made


def copied(path, folder):
    (folder / path.name).write_bytes(path.read_bytes())
    return folder / path.name


@pytest.mark.found("D: train x -o x")
@pytest.mark.parametrize("command", ["train", "tune", "audit"])
def test_the_training_file_is_not_overwritten(files, run, tmp_path, alias, command):
    train = copied(files.train, tmp_path)
    option = "--output-filtered" if command == "audit" else "-o"
    done = run(command, train, "-t", files.template, option, alias(train))
    assert done.exit_code == 1 and "is the input" in done.stderr and "name another file" in done.stderr
    assert train.read_bytes() == files.train.read_bytes()


@pytest.mark.found("D: train x -o x")
@pytest.mark.parametrize("option", ["--held-out", "-t", "--config", "--start"])
def test_no_other_input_of_training_is_overwritten(files, run, tmp_path, option):
    given = {"-t": files.template, "--start": files.model}.get(option, files.test)
    other = copied(given, tmp_path)
    if option == "--config":
        other.write_text("C = 0.5\n")
    before = other.read_bytes()
    done = run("train", files.train, option, other, "-o", other)
    assert done.exit_code == 1 and "is the input" in done.stderr and other.read_bytes() == before


@pytest.mark.found("D: predict m.mm x -o m.mm")
def test_neither_the_model_nor_the_text_is_overwritten(files, run, tmp_path, alias):
    for which in ("model", "test"):
        paths = {"model": copied(files.model, tmp_path), "test": copied(files.test, tmp_path)}
        done = run("predict", paths["model"], paths["test"], "-o", alias(paths[which]))
        assert done.exit_code == 1 and "is the input" in done.stderr
        assert paths["model"].read_bytes() == files.model.read_bytes()
        assert paths["test"].read_bytes() == files.test.read_bytes()


# --- places that cannot be written ----------------------------------------------------------------------------------


@pytest.mark.found("D: -o '' or an unwritable place")
@pytest.mark.parametrize("place", ["", " ", "no/m.mm", ".", "/dev/full", "locked.mm", "x" * 250])
def test_such_places_are_refused_before_training(files, run, tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "locked.mm").write_text("")
    (tmp_path / "locked.mm").chmod(0o400)
    monkeypatch.setattr("maxmargin.cli.train.fit", lambda *_: pytest.fail("it trained"))
    monkeypatch.setattr(os, "access", lambda path, mode: path != "locked.mm")  # root may write anywhere
    done = run("train", files.train, "-t", files.template, "-o", place)
    assert done.exit_code == 1 and len(done.stderr.splitlines()) == 1, done.output
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.found("D: -o '' or an unwritable place")
def test_a_full_disk_is_seen_before_training(files, run, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr("maxmargin.cli.train.fit", lambda *_: pytest.fail("it trained"))
    done = run("train", files.train, "-o", tmp_path / "m.mm")
    assert done.exit_code == 1 and "m.mm cannot be written (no space left on device)" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.found("D: -o '' or an unwritable place")
def test_little_space_is_said_before_training(files, run, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 100}))
    done = run("train", files.train, "-t", files.template, "-o", tmp_path / "m.mm")
    assert done.exit_code == 0 and "MB are free for" in done.stderr.splitlines()[0]


@pytest.mark.found("D: a model that does not fit on the disk")
def test_a_model_that_does_not_fit_is_saved_elsewhere(files, run, tmp_path, monkeypatch):
    (tmp_path / "full").mkdir()
    (tmp_path / "spare").mkdir()
    real = os.replace

    def replace(source, target):
        if Path(target).parent.name == "full":
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spare"))
    for command in ("train", "tune"):
        more = ["--steps", 1, "--folds", 2] if command == "tune" else []
        done = run(command, files.train, "-t", files.template, "-o", tmp_path / "full" / "m.mm", *more)
        assert done.exit_code == 1 and "could not be written (no space left on device); the model is in" in done.stderr
        (saved,) = (tmp_path / "spare").iterdir()
        assert str(saved) in done.stderr and not list((tmp_path / "full").iterdir())
        words = [[row[:2] for row in s] for s in files.test_sentences]
        assert mm.load(saved).predict(words) == mm.load(files.model).predict(words)
        saved.unlink()


# --- whole or not at all --------------------------------------------------------------------------------------------


@pytest.mark.found("D: a failed predict leaves a partial output")
@pytest.mark.parametrize("suffix", ["txt", "gz", "xz"])
def test_a_failed_predict_leaves_what_was_there(files, run, tmp_path, suffix):
    (tmp_path / "bad.txt").write_text(files.test.read_text() * 20 + "one too many columns\n")
    out = tmp_path / f"out.{suffix}"
    done = run("predict", files.model, tmp_path / "bad.txt", "-o", out, "--batch", 1)
    assert done.exit_code == 1 and not out.exists()
    out.write_text("before")
    assert run("predict", files.model, tmp_path / "bad.txt", "-o", out, "--batch", 1).exit_code == 1
    assert out.read_text() == "before" and len(list(tmp_path.iterdir())) == 2


@pytest.mark.found("D: a failed predict leaves a partial output")
def test_links_and_devices_are_written_through(files, run, tmp_path):
    (tmp_path / "real.txt").write_text("")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    assert run("predict", files.model, files.test, "-o", tmp_path / "link.txt").exit_code == 0
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == run("predict", files.model, files.test).stdout
    assert run("predict", files.model, files.test, "-o", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.found("D: .part files of killed runs stay")
def test_a_killed_run_is_cleared_away_by_the_next(files, run, tmp_path):
    out = tmp_path / "out.txt"
    child = subprocess.Popen(
        [*PROGRAM, "predict", str(files.model), "-o", str(out), "--batch", "1"], stdin=subprocess.PIPE
    )  # fmt: skip
    child.stdin.write(b"Ann N\n\n")
    child.stdin.flush()
    end = time.monotonic() + 60
    while not [path for path in tmp_path.iterdir() if path.stat().st_size in (12, 13)] and time.monotonic() < end:
        time.sleep(0.02)
    (left,) = tmp_path.iterdir()
    assert left.read_text() == "Ann N B-PER\n" or left.read_text() == "Ann N B-PER\n\n"
    (tmp_path / "out.txt.mine.part").write_text("not ours")
    os.utime(left, (0, 0))
    assert run("predict", files.model, files.test, "-o", out).exit_code == 0
    assert left.exists()  # its writer lives
    child.kill()
    child.wait()
    child.stdin.close()
    assert run("predict", files.model, files.test, "-o", out).exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"out.txt", "out.txt.mine.part"}


# --- line ends ------------------------------------------------------------------------------------------------------


@pytest.mark.found("D: CRLF comes out as LF")
def test_line_ends_stay(files, run, tmp_path):
    lines = [b"Ann N\r\n", b"ran V\r\n", b"\r\n", b"# N\n", b"Rome N"]
    (tmp_path / "mixed.txt").write_bytes(b"".join(lines))
    run("predict", files.model, tmp_path / "mixed.txt", "-o", tmp_path / "out.txt")
    out = (tmp_path / "out.txt").read_bytes().splitlines(keepends=True)
    assert [line[-2:] == b"\r\n" for line in out] == [True, True, True, False, False]
    assert out[0] == b"Ann N B-PER\r\n" and out[2] == b"\r\n" and out[-1] == b"Rome N B-LOC\n"
    (tmp_path / "dos.txt").write_bytes(b"Ann N ?\r\nran V ?")
    replaced = process("predict", files.model, tmp_path / "dos.txt", "--replace", "-o", tmp_path / "dos.gz")
    assert replaced.returncode == 0
    assert gzip.decompress((tmp_path / "dos.gz").read_bytes()) == b"Ann N B-PER\r\nran V O\r\n"


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------


def interrupted(*arguments, when):
    """Run a process until something appears on its standard error, then press Ctrl-C."""
    code = "import sys; from maxmargin.cli.main import app\n" + when + "\napp()"
    child = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    out, err = child.communicate(timeout=120)
    return child.returncode, out, err


AT_PASS_3 = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it, and so would this
from maxmargin.solvers.engine import DualEngine
step, count = DualEngine.step, [0]
def stepped(self, state):
    count[0] += 1
    if count[0] == {}:
        os.kill(os.getpid(), signal.SIGINT)
    return step(self, state)
DualEngine.step = stepped
"""


@pytest.mark.found("D: Ctrl-C loses nothing")
def test_ctrl_c_ends_training_with_a_model(files, tmp_path):
    arguments = ["train", files.train, "-t", files.template, "-o", tmp_path / "m.mm", "--tol", "0"]
    code, _, err = interrupted(*arguments, when=AT_PASS_3.format(3))
    assert code == 130 and "Interrupted" in err and "Traceback" not in err
    assert mm.load(tmp_path / "m.mm").status_.code == "interrupted"


@pytest.mark.found("D: Ctrl-C loses nothing")
def test_ctrl_c_shows_the_folds_that_are_complete(files, tmp_path):
    (tmp_path / "t.txt").write_text(text(sentences(12)))
    arguments = ["tune", tmp_path / "t.txt", "-t", files.template, "--folds", 3, "--steps", 1, "-o", tmp_path / "m.mm"]
    counted = (
        AT_PASS_3.format(-1).replace("from maxmargin.solvers.engine import DualEngine", "").split("step, count")[0]
    )
    counted += (
        "from maxmargin.cli import tune\nfit, count = tune.fit, [0]\n"
        "def fitted(*given):\n    count[0] += 1\n"
        "    if count[0] == 3: os.kill(os.getpid(), signal.SIGINT)\n    return fit(*given)\ntune.fit = fitted\n"
    )
    code, out, err = interrupted(*arguments, when=counted)
    assert code == 130 and "2-fold cross-validation" in out and "interrupted after 2 of 3 folds" in err
    assert not (tmp_path / "m.mm").exists()


@pytest.mark.found("D: Ctrl-C loses nothing")
def test_ctrl_c_lists_the_sentences_that_are_judged(files, tmp_path):
    (tmp_path / "t.txt").write_text(text(sentences(12)))
    arguments = ["audit", tmp_path / "t.txt", "-t", files.template, "--folds", 3, "--repeats", 1, "--json"]
    counted = (
        "import os, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from maxmargin import SequenceTagger\nfit, count = SequenceTagger.fit, [0]\n"
        "def fitted(*given):\n    count[0] += 1\n"
        "    if count[0] == 3: os.kill(os.getpid(), signal.SIGINT)\n"
        "    return fit(*given)\nSequenceTagger.fit = fitted\n"
    )
    code, out, err = interrupted(*arguments, "--output-corrected", tmp_path / "c.txt", when=counted)
    assert code == 130 and "interrupted after 2 of 3 fits: 8 of 12 sentences judged, no file written" in err
    assert len({json.loads(line)["sentence"] for line in out.splitlines()}) == 8
    assert not (tmp_path / "c.txt").exists()
