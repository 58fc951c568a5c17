"""Run a benchmark, show what it prints, and keep it in a result file, from which the site is made.

    python benchmarks/record.py chunking --quick

runs ``benchmarks/chunking.py --quick`` and, when it ends well, writes ``benchmarks/results/chunking.json``: command,
date, commit, and the printed lines. The targets ``make bench-...`` run their benchmarks in this way.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
LEFT_OUT = ("picture:",)  # lines about files on the machine that ran it


def commit() -> str | None:
    """The commit of this tree, marked where files differ from it; None outside of a repository."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=HERE, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or None


def record(name: str, arguments: list[str], folder: Path = RESULTS) -> int:
    """Run a benchmark and write its result file; returns its exit code."""
    began = commit()  # before the run: what it measures
    command = [sys.executable, "-u", str(HERE / f"{name}.py"), *arguments]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if not line.startswith(LEFT_OUT):
                lines.append(line.rstrip())
    if process.returncode == 0:
        said = " ".join(["python", f"benchmarks/{name}.py", *arguments])
        result = {"command": said, "date": date.today().isoformat(), "commit": began, "printed": lines}
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return process.returncode


if __name__ == "__main__":
    if len(sys.argv) < 2 or not (HERE / f"{sys.argv[1]}.py").exists():
        raise SystemExit(__doc__)
    raise SystemExit(record(sys.argv[1], sys.argv[2:]))
