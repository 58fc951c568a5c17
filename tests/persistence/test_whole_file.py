"""Files that appear whole: what killed writers leave is removed, what living ones write is not."""

import os
import signal
import subprocess
import sys

import pytest

from maxmargin.persistence.whole_file import whole_file
from reference.process import SOURCES

pytestmark = pytest.mark.found("D: .part files")
WRITER = """
import sys
from pathlib import Path
from maxmargin.persistence.whole_file import whole_file
with whole_file(Path(sys.argv[1])) as file:
    file.write(b"half of it")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_writer_leaves_goes_with_the_next_save_and_not_before(tmp_path):
    command = [sys.executable, "-c", WRITER, str(tmp_path / "one")]
    environment = os.environ | {"PYTHONPATH": str(SOURCES)}
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert writer.stdout.readline() == b"writing\n"
    with whole_file(tmp_path / "two") as file:
        file.write(b"whole")
    assert sorted(path.suffix for path in tmp_path.iterdir()) == ["", ".part"]  # it lives, and so does its file
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    (tmp_path / "mine.part").write_text("not one of ours")
    with whole_file(tmp_path / "two") as file:
        file.write(b"again")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.part", "two"]


def test_an_error_or_a_lost_file_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError), whole_file(tmp_path / "one"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "one"):
        next(tmp_path.iterdir()).unlink()
