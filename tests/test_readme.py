"""The Python of the README and of the site runs as it stands, and prints what its comments say."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
SLOW = {"choosing", "tutorials/pictures"}
PAGES = {"README": README} | {
    path.relative_to(ROOT / "docs").with_suffix("").as_posix(): path
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if "```python" in path.read_text(encoding="utf-8")
}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page in SLOW else ()) for page in PAGES],
)
def test_blocks_run_and_print_what_they_promise(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # they write files
    blocks = re.findall(r"```python\n(.*?)```", PAGES[page].read_text(encoding="utf-8"), flags=re.DOTALL)
    code = "\n".join(blocks)
    promised = re.findall(r"print\(.*\)\s+# ([\[(].*[\])](?: [\d.]+)?|True|False)$", code, flags=re.MULTILINE)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, page, "exec"), {"__name__": page})
    printed = out.getvalue().splitlines()
    assert len(promised) >= (3 if page in ("README", "alignment", "lattices") else 1)
    for line in promised:
        assert line in printed
        printed.remove(line)  # as often as promised


@pytest.mark.parametrize("page", [README, *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda path: path.stem)
def test_pages_name_only_what_exists(page: Path) -> None:
    """Commands of the Makefile, tests, and files of the repository."""
    text = page.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make ([a-z0-9-]+)`", text):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    for file, test in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text):
        assert re.search(rf"^def {test}\(", (ROOT / file).read_text(), flags=re.MULTILINE), f"{file}::{test}"
    for file in re.findall(r"`((?:src|tests|docs|examples|experiments|benchmarks|tools)/[\w/.-]+\.\w+)`", text):
        assert (ROOT / file).exists(), file
    if page.stem == "papers":
        for file in re.findall(r"`((?:\w+/)+\w*(?:\.py)?)`", text):
            assert (ROOT / file).exists() or (ROOT / "src" / "maxmargin" / file).exists(), file
