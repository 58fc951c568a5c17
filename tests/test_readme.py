"""The Python of the README and of pages runs as it stands, and prints what its comments say."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"
PAGES = {"README": README} | {name: README.parent / "docs" / f"{name}.md" for name in ("alignment", "lattices")}


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run_and_print_what_they_promise(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # they write files
    blocks = re.findall(r"```python\n(.*?)```", PAGES[page].read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 3
    code = "\n".join(blocks)
    promised = re.findall(r"print\(.*?\)\s+# (\[.*\]|True|False)$", code, flags=re.MULTILINE)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, page, "exec"), {})
    printed = out.getvalue().splitlines()
    assert len(promised) >= 3
    for line in promised:
        assert line in printed


def test_readme_names_only_commands_that_exist() -> None:
    makefile = (README.parent / "Makefile").read_text()
    for target in re.findall(r"`make ([a-z-]+)`", README.read_text()):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
