"""Reports in a real browser: three widths, both themes, nothing cut off, nothing requested, nothing logged.

``MAXMARGIN_SHOTS=folder`` keeps the screenshots, to look at.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from reference.reported import MAKERS, fitted, long_history, many_labels, tagger

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the path: apt install chromium"),
]
WIDTHS, THEMES = (500, 900, 1600), ("light", "dark")
LOOK = """
function rgb(text) { return text.match(/[\\d.]+/g).map(Number); }
function light(c) {
  const part = c.slice(0, 3).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
}
const page = light(rgb(getComputedStyle(document.body).backgroundColor));
let weakest = 99, where = "";
for (const e of document.querySelectorAll("h1,h2,p,a,td,th,figcaption,caption,text")) {
  if (!e.textContent.trim() || e.classList.contains("strong")) continue;
  const style = getComputedStyle(e), own = light(rgb(e.tagName === "text" ? style.fill : style.color));
  const ratio = (Math.max(own, page) + 0.05) / (Math.min(own, page) + 0.05);
  if (ratio < weakest) { weakest = ratio; where = e.tagName + " " + e.textContent.slice(0, 30); }
}
document.title = JSON.stringify({
  inner: innerWidth, scrolled: document.documentElement.scrollWidth, weakest, where,
  pictures: document.querySelectorAll("svg,img").length, requests: performance.getEntriesByType("resource")
    .filter(entry => !entry.name.startsWith("data:")).length,
  dark: matchMedia("(prefers-color-scheme: dark)").matches,
});
"""


def long_run(folder):
    """A page about 100,000 rows of history."""
    model, test = fitted(tagger)
    model.history_ = long_history()
    return model.report(folder / "long_run.html", *test)


def many_long_labels(folder):
    """A page about 1,000 labels, with long names."""
    model, test = many_labels("a label with a rather long name, longer than most, number")
    return model.report(folder / "many_long_labels.html", *test)


def short_run(maker):
    def write(folder):
        model, test = fitted(maker)
        return model.report(folder / f"{maker.__name__}.html", *test)

    write.__name__ = maker.__name__
    return write


PAGES = [*map(short_run, MAKERS), long_run, many_long_labels]


@pytest.fixture(scope="module", params=PAGES, ids=lambda page: page.__name__)
def page(request, tmp_path_factory):
    return request.param(tmp_path_factory.mktemp("pages"))


def browse(path, width, theme, *flags):
    """What Chromium prints about a page, standard error included; the name resolver finds nothing."""
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},1400"]
    scheme = "--blink-settings=preferredColorScheme=" + ("0" if theme == "dark" else "1")
    offline = ["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0"]
    command = [str(CHROMIUM), *fixed, scheme, *offline, *flags, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


@pytest.mark.parametrize(("width", "theme"), [(500, "light"), (900, "dark"), (1600, "light")])
def test_pages_are_whole_and_readable(page, tmp_path, width, theme):
    assert page.stat().st_size < 300_000
    looked = tmp_path / "looked.html"
    looked.write_text(page.read_text().replace("</body>", f"<script>{LOOK}</script></body>"))
    done = browse(looked, width, theme, "--dump-dom")
    found = json.loads(re.search(r"<title>(.*?)</title>", done.stdout)[1].replace("&amp;", "&"))
    assert found["scrolled"] <= found["inner"] and found["pictures"] >= 1
    assert found["dark"] == (theme == "dark")
    assert found["weakest"] >= 4.5, found["where"]  # what WCAG asks of text
    assert found["requests"] == 0 and "CONSOLE" not in done.stderr


@pytest.mark.parametrize("theme", THEMES)
def test_both_themes_are_drawn(page, tmp_path, theme):
    for width in WIDTHS if "MAXMARGIN_SHOTS" in os.environ else WIDTHS[1:2]:
        name = f"{page.stem}-{width}-{theme}.png"
        shot = Path(os.environ.get("MAXMARGIN_SHOTS", tmp_path)).resolve() / name
        shot.parent.mkdir(parents=True, exist_ok=True)
        browse(page, width, theme, f"--screenshot={shot}")
        pixels = np.asarray(Image.open(shot).convert("RGB"))
        corner = pixels[5, 5].mean()
        assert corner < 60 if theme == "dark" else corner > 220
        assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20
