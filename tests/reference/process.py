"""Python in a process of its own, with the package of this tree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"


def run_python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """``python arguments``; an assertion fails with what it says when it fails."""
    paths = [str(SOURCES), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done
