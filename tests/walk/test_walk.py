"""A newcomer's walk, from the text of the README alone: install, then every task to a model, a prediction and a report.

The environment is new and has the package without development tools; every task compiles all it needs. Seconds by the
clock and of the processor are printed (``pytest -s``). By the clock every task must end within five minutes, with
installation.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
import venv
from pathlib import Path

import pytest

resource = pytest.importorskip("resource", reason="needs a system with processor times of other programs")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_SECONDS = 300
TASKS = {
    title: block
    for title, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", README, flags=re.MULTILINE | re.DOTALL)
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
}
SHELL = [
    line.partition("#")[0].strip() for line in re.findall(r"```\n(.*?)```", README, flags=re.DOTALL)[0].splitlines()
]


class Watch:
    """Seconds by the clock, and of the processor in programs that have ended, since it was made."""

    def __init__(self) -> None:
        self._clock, self._used = time.perf_counter(), self._children()

    @staticmethod
    def _children() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def read(self) -> tuple[float, float]:
        return time.perf_counter() - self._clock, self._children() - self._used


class Newcomer:
    """Someone with a clone of the repository and a new virtual environment."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "environment"
        watch = Watch()
        venv.create(self.home, with_pip=True)
        (install,) = (line for line in SHELL if line.startswith("pip install"))
        self.run(install.split(), ROOT)
        self.clock, seconds = watch.read()
        print(f"\n{install:32} {self.clock:6.1f} s by the clock, {seconds:6.1f} s of the processor")

    def run(self, command: list[str], folder: Path) -> str:
        """Run a command of the environment, without anything of this one, and with nothing compiled."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MAXMARGIN"))}
        path = os.pathsep.join([str(self.home / "bin"), kept["PATH"]])
        more = {"PATH": path, "MAXMARGIN_KERNEL_CACHE": str(folder / "kernels"), "VIRTUAL_ENV": str(self.home)}
        program = self.home / "bin" / command[0]
        done = subprocess.run(
            [str(program), *command[1:]], cwd=folder, env=kept | more, capture_output=True, text=True, timeout=900
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory):
    return Newcomer(tmp_path_factory.mktemp("newcomer"))


def test_the_readme_has_every_task():
    assert len(TASKS) == 8
    for title, block in TASKS.items():
        assert re.search(r"\.save\(", block) and re.search(r"\.report\(", block) and "predict(" in block, title


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_done_in_five_minutes(newcomer, task, tmp_path):
    (tmp_path / "task.py").write_text(TASKS[task], encoding="utf-8")
    watch = Watch()
    printed = newcomer.run(["python", "task.py"], tmp_path).splitlines()
    clock, seconds = watch.read()
    both = newcomer.clock + clock
    print(f"\n{task:32} {clock:6.1f} s by the clock, {both:6.1f} with installation; {seconds:6.1f} s of the processor")
    for line in re.findall(r"print\(.*\)\s+# ([\[(].*[\])]|True)", TASKS[task]):
        assert line in printed
    for name in re.findall(r'\.(?:save|report)\("(.+?)"', TASKS[task]):
        assert (tmp_path / name).stat().st_size > 500
    assert both < MOST_SECONDS


def test_the_demos_of_the_readme(newcomer, tmp_path):
    for command in SHELL:
        if command.startswith("maxmargin"):
            watch = Watch()
            assert "certificate" in newcomer.run(command.split(), tmp_path)
            print(f"\n{command:32} {watch.read()[0]:6.1f} s by the clock, {watch.read()[1]:6.1f} s of the processor")
