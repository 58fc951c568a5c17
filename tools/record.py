"""Run a benchmark or an experiment, show what it prints, and keep that in a result file, from which pages are made.

    python tools/record.py benchmarks/chunking.py --quick

runs ``benchmarks/chunking.py --quick`` and, when it ends well, writes ``benchmarks/results/chunking.json``: command,
date, commit, and the printed lines. The targets ``make bench-...`` and ``make experiment-...`` run their programs so.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = ("picture:", "Picture:")  # lines about files on the machine that ran it


def commit() -> str | None:
    """The commit of this tree, marked where files differ from it; None outside of a repository."""
    words = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or None


def record(program: Path, arguments: list[str]) -> int:
    """Run a program and write its result file, in the folder ``results`` beside it; returns its exit code."""
    began = commit()  # before the run: what it measures
    lines = []
    with subprocess.Popen([sys.executable, "-u", program, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if not line.startswith(LEFT_OUT):
                lines.append(line.rstrip())
    if process.returncode == 0:
        place = program.resolve()
        said = place.relative_to(ROOT).as_posix() if place.is_relative_to(ROOT) else place.name
        words = " ".join(["python", said, *arguments])
        result = {"command": words, "date": date.today().isoformat(), "commit": began, "printed": lines}
        folder = place.parent / "results"
        folder.mkdir(exist_ok=True)
        text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{place.stem}.json").write_text(text, encoding="utf-8")
    return process.returncode


if __name__ == "__main__":
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_file():
        raise SystemExit(__doc__)
    raise SystemExit(record(Path(sys.argv[1]), sys.argv[2:]))
