"""Reports in a real browser: three widths, both themes, nothing cut off, nothing requested, nothing logged."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image

import maxmargin as mm

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the path: apt install chromium"),
]
SIZES = "innerWidth,document.documentElement.scrollWidth,document.querySelectorAll('svg').length"
LOOK = f"<script>document.title=[{SIZES}]</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    sentences = [["the", "dog", "runs"], ["a", "cat", "sleeps", "well"], ["dogs", "run"]] * 4
    tags = [["D", "N", "V"], ["D", "N", "V", "A"], ["N", "V"]] * 4
    wrong = [list(row) for row in tags]
    wrong[0][0] = "a label with a rather long name, longer than most, and without any sense"
    return mm.SequenceTagger().fit(sentences, tags).report(tmp_path_factory.mktemp("b") / "r.html", sentences, wrong)


def browse(path, width, *flags):
    """What Chromium prints about a page, standard error included; the name resolver finds nothing."""
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},1400"]
    offline = ["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0"]
    command = [str(CHROMIUM), *fixed, *offline, *flags, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


@pytest.mark.parametrize("width", [500, 900, 1600])
def test_nothing_is_cut_off(page, tmp_path, width):
    looked = tmp_path / "looked.html"
    looked.write_text(page.read_text().replace("</body>", f"{LOOK}</body>"))
    done = browse(looked, width, "--dump-dom")
    inner, scrolled, pictures = map(int, re.search(r"<title>(\d+),(\d+),(\d+)</title>", done.stdout).groups())
    assert scrolled <= inner and pictures >= 6
    assert "CONSOLE" not in done.stderr


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_are_drawn(page, tmp_path, theme):
    shot = tmp_path / "shot.png"
    flags = ["--blink-settings=preferredColorScheme=" + ("0" if theme == "dark" else "1")]
    browse(page, 900, f"--screenshot={shot}", *flags)
    pixels = np.asarray(Image.open(shot).convert("RGB"))
    corner = pixels[5, 5].mean()
    assert corner < 60 if theme == "dark" else corner > 220
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20
