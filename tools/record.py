"""Run a benchmark or an experiment, show what it prints, and keep that in a result file, from which pages are made.

    python tools/record.py benchmarks/chunking.py --quick

runs ``benchmarks/chunking.py --quick`` and, when it ends well, writes ``benchmarks/results/chunking.json``: command,
date, commit, and the printed lines. The targets ``make bench-...`` and ``make experiment-...`` run their programs so.
Where two of them run one program, the second names its file: ``--as NAME`` before the program.

Pages of ``docs`` show result files between two comments, ``<!-- result: FILE -->`` and ``<!-- end -->``. They are
filled after each run, and by ``python tools/record.py --pages``. What stands between them stays while there is no file.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from datetime import date
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# lines about files on the machine that ran it, and what Ray's processes there say of workers that have died
LEFT_OUT = re.compile(r"pictures?: |wrote |(\x1b\[\d+m)?\(raylet", flags=re.IGNORECASE)
SHOWN = re.compile(r"(<!-- result: (\S+) -->\n).*?(<!-- end -->)", flags=re.DOTALL)


def commit() -> str | None:
    """The commit of this tree, marked where files differ from it; None outside of a repository."""
    words = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or None


def record(program: Path, arguments: list[str], name: str) -> int:
    """Run a program and write its result file ``results/NAME.json``, beside it; returns its exit code."""
    began = commit()  # before the run: what it measures
    lines = []
    with subprocess.Popen([sys.executable, "-u", program, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if not LEFT_OUT.match(line):
                lines.append(line.rstrip())
    if process.returncode == 0:
        place = program.resolve()
        said = place.relative_to(ROOT).as_posix() if place.is_relative_to(ROOT) else place.name
        words = " ".join(["python", said, *arguments])
        result = {"command": words, "date": date.today().isoformat(), "commit": began, "printed": lines}
        folder = place.parent / "results"
        folder.mkdir(exist_ok=True)
        text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return process.returncode


def shown(path: Path) -> str:
    """A result file as a part of a page: the printed lines, and when and by which command they were measured."""
    result = json.loads(path.read_text(encoding="utf-8"))
    lines = "\n".join(line for line in result["printed"] if not line.startswith("machine:")).strip("\n")
    machine = [line.removeprefix("machine: ") for line in result["printed"] if line.startswith("machine:")]
    commit = [f"commit {result['commit']}"] if result["commit"] else []
    about = "; ".join([", ".join([result["date"], *commit]), *machine])
    note = f'<p class="measured"><code>{escape(result["command"])}</code> ({escape(about)})</p>'
    return f"\n```text\n{lines}\n```\n\n{note}\n\n"


def filled(page: str) -> str:
    """The text of a page with the present result files in it."""

    def fill(found: re.Match[str]) -> str:
        path = ROOT / found[2]
        return found[1] + shown(path) + found[3] if path.exists() else found[0]

    return SHOWN.sub(fill, page)


def fill_pages() -> None:
    """Put the present result files into the pages that show them."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if filled(text) != text:
            page.write_text(filled(text), encoding="utf-8")
            print(f"filled {page.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    words = sys.argv[1:]
    if words == ["--pages"]:
        raise SystemExit(fill_pages())
    named = words[1] if words[:1] == ["--as"] and len(words) > 2 else None
    words = words[2:] if named else words
    if not words or not Path(words[0]).is_file():
        raise SystemExit(__doc__)
    code = record(Path(words[0]), words[1:], named or Path(words[0]).stem)
    fill_pages()
    raise SystemExit(code)
