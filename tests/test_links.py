"""Relative links of the documents at the top of the repository, and of the pages, lead to files and headings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MADE = ("examples/", "reference/")  # by the build
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def headings(path: Path) -> set[str]:
    """Anchors of the headings of a page, as both GitHub and the site make them, and those that are named."""
    text = path.read_text(encoding="utf-8")
    for include in re.findall(r"```\{include\} (\S+)", text):
        text += (path.parent / include).read_text(encoding="utf-8")
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", text, flags=re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link) or any(link.removeprefix("../").startswith(made) for made in MADE):
            continue
        place, _, anchor = link.partition("#")
        target = page if not place else page.parent / place
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in headings(target), link
