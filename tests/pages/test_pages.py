"""Pages are whole, small, readable in both themes, and nothing that they show can act."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from maxmargin.certificate import Certificate
from maxmargin.metrics.label_sets import label_report
from maxmargin.pages import html, labels, png, run, svg


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    digits = colour.lstrip("#")
    digits = "".join(2 * d for d in digits) if len(digits) == 3 else digits
    parts = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [html.LIGHT, html.DARK])
def test_text_and_lines_have_contrast(theme):
    colours = dict(part.lstrip("-").split(":") for part in theme.split(";"))
    page = luminance(colours["page"])
    for name in ("text", "soft", "c0", "c1", "c2", "c3"):
        light, dark = sorted((page, luminance(colours[name])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, name
    light, dark = sorted((luminance(colours["on"]), luminance(colours["c0"])), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_every_picture_is_well_formed_and_keeps_to_its_frame():
    x = np.linspace(0, 10, 20)
    pictures = [
        svg.lines({"a": (x, np.exp(-x)), "b": (x, 1 + x)}, "x", "y", log=True),
        svg.lines({"<b>": ([1.0], [2.0])}, "x & y", "y"),
        svg.bars({"a": 1.5, "b & c": -3.0, "z": 0.0}, "bars"),
        svg.stacked({"a": 1.0, "b": 3.0}, "parts"),
        svg.shaded(["r", "s"], ["t", "u"], np.array([[1.0, 0.0], [0.3, 0.7]]), "cells"),
        svg.graph({"a": 0.0, "b": 2.0, "c": 1.0}, [("a", "b"), ("b", "c"), ("a", "c")], "graph"),
    ]
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for box in root.iter("rect"):
            at = [float(box.attrib[name]) for name in ("x", "y", "width", "height")]
            assert at[0] >= -1 and at[1] >= -1 and at[0] + at[2] <= width + 1 and at[1] + at[3] <= height + 1
        for line in root.iter("polyline"):
            for point in line.attrib["points"].split():
                a, b = map(float, point.split(","))
                assert 0 <= a <= width and 0 <= b <= height


def test_parents_stand_above_their_children():
    root = ElementTree.fromstring(svg.graph({"a": 0.0, "b": 2.0, "c": 1.0}, [("c", "b"), ("b", "a")], "graph"))
    heights = {text.text: float(text.attrib["y"]) for text in root.iter("text")}
    assert heights["c"] < heights["b"] < heights["a"]


def test_a_curve_without_finite_points_is_left_out():
    assert svg.lines({"gap": ([1.0, 2.0], [math.inf, math.nan])}, "x", "y") == ""
    assert html.figures([("", "nothing")]) == ""


def test_long_curves_are_thinned_and_keep_their_ends():
    n = 100_000
    history = {
        "pass": np.arange(n),
        "seconds": np.arange(n),
        "primal": 2.0 + 1 / (1.0 + np.arange(n)),
        "dual": np.ones(n),
    }
    sections = run.run_sections(run.Run({}, Certificate(2.0, 1.0), history={k: v.tolist() for k, v in history.items()}))
    text = html.page("t", "l", sections)
    assert len(text.encode()) < 100_000
    assert all(len(points.split()) <= svg.MOST_POINTS for points in re.findall(r'points="([^"]*)"', text))


def test_the_certificate_is_told_in_words():
    close = " ".join(run.certificate_in_words(Certificate(10.0, 9.9)))
    assert "is 10." in close and "less than 9.9" in close and "at most 0.1, 1 %" in close
    assert "best possible" in " ".join(run.certificate_in_words(Certificate(3.0, 3.0)))
    assert "no certificate" in run.certificate_in_words(None)[0]
    assert "no lower bound" in run.certificate_in_words(Certificate(1.0, -math.inf))[0]
    assert "not convex" in " ".join(run.certificate_in_words(Certificate(2.0, 1.0, certified=False)))


def test_text_from_outside_stays_text():
    evil = "<script>alert(1)</script>"
    counts = {(evil, "b"): 3, ("b", "b"): 1}
    text = html.page(evil, evil, [labels.label_section(counts, "tokens"), html.Section(evil, [html.paragraph(evil)])])
    assert "<script" not in text and "&lt;script&gt;" in text


def test_counts_of_labels_by_hand():
    section = labels.label_section({("a", "a"): 6, ("a", "b"): 2, ("b", "b"): 1, ("c", "a"): 1}, "tokens")
    text = "".join(section.blocks)
    assert "10 tokens, 3 labels; 70.00 % are right." in text
    rows = [re.findall(r">([^<>]+)</td>", row) for row in text.split("<tr>")[2:5]]
    by_label = {row[0]: row[1:] for row in rows}
    assert by_label["a"] == ["8", "7", "6", "0.857", "0.750"]
    assert by_label["c"] == ["1", "0", "0", "–", "0.000"]


def test_calibration_by_hand():
    likely = np.array([0.95, 0.95, 0.55, 0.55])
    text = "".join(labels.reliability(likely, np.array([1.0, 1.0, 1.0, 0.0]), calibrated=True).blocks)
    assert "differ by 0.050 on average" in text and "fit_temperature" not in text
    assert "fit_temperature" in "".join(labels.reliability(likely, np.ones(4), calibrated=False).blocks)


def test_label_sets_are_told():
    true, found = np.array([[1, 0], [1, 1]]), np.array([[1, 0], [0, 1]])
    text = "".join(labels.label_set_section(label_report(true, found, ["x", "y"]), 2).blocks)
    assert "2 label sets of 2 labels." in text and "0.5000" in text


def test_a_page_never_grows_beyond_its_limit():
    blocks = [html.paragraph("x" * 9_000) for _ in range(100)]
    text = html.page("t", "l", [html.Section("many", blocks)])
    assert len(text.encode()) <= html.LIMIT and "left out" in text


def test_an_overlay_has_the_colours_of_right_missed_and_false_pixels():
    true = np.array([[1, 1, 0, 0, 255]])
    found = np.array([[1, 0, 1, 0, 1]])
    pixels = png.overlay(np.zeros((1, 5)), true, found)[0]
    assert pixels[0].argmax() == 1 and pixels[1].argmax() == 2 and pixels[2].argmax() == 0
    assert (pixels[3] == 0).all() and (pixels[4] == 0).all()  # right background, and what is ignored


def test_pictures_are_valid_png():
    image = pytest.importorskip("PIL.Image")
    from base64 import b64decode
    from io import BytesIO

    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
    data = re.search(r"base64,([^\"]+)", png.image(pixels, "a")).group(1)
    assert np.array_equal(np.asarray(image.open(BytesIO(b64decode(data)))), pixels)


def test_large_volumes_become_small_slices():
    shape = (4, 500, 300)
    assert max(png.overlay(np.zeros(shape), np.zeros(shape), np.ones(shape)).shape[:2]) <= png.MOST_PIXELS
