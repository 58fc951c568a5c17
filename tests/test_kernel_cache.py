"""The kernel cache under faults: killed writers, full and read-only disks, many processes, sources that change."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest

from maxmargin import kernel_cache
from reference.two_kernels import two_kernels

pytestmark = pytest.mark.found("A5")

SOURCE = Path(__file__).parents[1] / "src"
USE = """
    import os, signal, sys, warnings
    from pathlib import Path
    warnings.simplefilter("always")
    {before}
    from reference.two_kernels import two_kernels

    one_more, one_less = two_kernels()
    assert (one_more(1), one_less(1)) == (2, 0)
    print(*(sum(kernel.stats.cache_hits.values()) for kernel in (one_more, one_less)))
"""
KILLED_WHILE = {
    "making the folder": "Path.mkdir = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)",
    "writing": "write = Path.write_bytes\n"
    "Path.write_bytes = lambda path, content: (write(path, content[:99]), os.kill(os.getpid(), signal.SIGKILL))",
    "renaming": "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)",
}


def start(folder, before="", cache=None, **more):
    """A process that compiles or loads two kernels."""
    (folder / "use.py").write_text(textwrap.dedent(USE).format(before=before))
    environment = {
        "PYTHONPATH": os.pathsep.join([str(SOURCE), str(SOURCE.parent / "tests")]), "PATH": os.environ["PATH"],
        "MAXMARGIN_KERNEL_CACHE": str(folder / "cache" if cache is None else cache),
    }  # fmt: skip
    command = [sys.executable, str(folder / "use.py")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, **pipes, **more)


def finish(process):
    """What it printed and what it warned of; it must have ended well."""
    said, warned = process.communicate(timeout=240)
    assert process.returncode == 0, warned
    return said.strip(), warned


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_killed_writer_leaves_nothing_that_the_next_one_believes(tmp_path):
    for moment, how in KILLED_WHILE.items():
        killed = start(tmp_path, how)
        killed.communicate(timeout=240)
        assert killed.returncode == -signal.SIGKILL, moment
        assert not list(tmp_path.rglob("*.kernel"))
        assert len(list(tmp_path.rglob("*.part"))) == (moment != "making the folder"), moment
    assert finish(start(tmp_path)) == ("0 0", "")
    assert [path.suffix for path in files(tmp_path / "cache")] == [".kernel", ".kernel"]
    assert finish(start(tmp_path)) == ("1 1", "")


def test_the_file_of_a_living_process_stays(monkeypatch, tmp_path):
    monkeypatch.setenv("MAXMARGIN_KERNEL_CACHE", str(tmp_path))
    folder = two_kernels()[0]._cache.folder
    folder.mkdir()
    alive, dead, elsewhere = (
        folder / f"x-0.{here}-{pid}-01234567.part"
        for here, pid in ((kernel_cache._HERE, os.getppid()), (kernel_cache._HERE, 999_999_999), ("0" * 8, 999_999_999))
    )
    for path in (alive, dead, elsewhere):
        path.write_bytes(b"half")
    two_kernels()[0](1)
    assert alive.exists() and elsewhere.exists() and not dead.exists()


def test_many_processes_at_once_share_one_folder(tmp_path):
    for process in [start(tmp_path) for _ in range(3)]:
        finish(process)
    assert [path.suffix for path in files(tmp_path / "cache")] == [".kernel", ".kernel"]


def test_a_file_that_may_not_grow_costs_one_warning(tmp_path):
    """The operating system itself refuses the bytes, in the middle of the file."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    said, warned = finish(start(tmp_path, limit))
    assert said == "0 0" and warned.count("RuntimeWarning: compiled kernels cannot be kept") == 1
    assert files(tmp_path / "cache") == []


@pytest.fixture
def full_disk(tmp_path):
    """A file system of 32 kB, where that can be made."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run([mount, "-t", "tmpfs", "-o", "size=32k", "none", folder], check=False).returncode
    ):
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_costs_one_warning_and_leaves_nothing(full_disk, monkeypatch):
    (full_disk / "other").write_bytes(bytes(28 << 10))
    monkeypatch.setenv("MAXMARGIN_KERNEL_CACHE", str(full_disk / "cache"))
    with pytest.warns(RuntimeWarning, match="No space left") as caught:
        one_more, one_less = two_kernels()
        assert (one_more(1), one_less(1)) == (2, 0)
    assert len(caught) == 1
    assert files(full_disk) == [full_disk / "other"]


def test_two_reasons_are_one_warning(monkeypatch, tmp_path):
    monkeypatch.setenv("MAXMARGIN_KERNEL_CACHE", str(tmp_path))
    reasons = iter([OSError(28, "No space left on device"), OSError(30, "Read-only file system")])

    def fail(path, content):
        raise next(reasons)

    monkeypatch.setattr(Path, "write_bytes", fail)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one_more, one_less = two_kernels()
        assert (one_more(1), one_less(1)) == (2, 0)
    assert len(caught) == 1 and "name a writable folder in MAXMARGIN_KERNEL_CACHE" in str(caught[0].message)


def test_code_whose_source_changed_after_it_was_read_is_not_kept(monkeypatch, tmp_path):
    """Python has read the old file when the stamp reads the new one: such an entry would be stale for ever."""
    monkeypatch.setenv("MAXMARGIN_KERNEL_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "late.py"
    source.write_text('from maxmargin.kernel import kernel\n@kernel("int64(int64)")\ndef f(x):\n    return x + 1\n')
    namespace: dict = {}
    exec(compile(source.read_text(), str(source), "exec"), namespace)  # the file is younger than this process
    assert namespace["f"](1) == 2
    assert not list(tmp_path.rglob("*.kernel"))
