"""Formulas as MathML, which every browser of today shows without a script: the site works without a network."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """A formula within a line."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def display(self: HTML5Translator, node: nodes.math_block) -> None:
    """A formula of its own; ``\\\\`` begins a new line."""
    text = node.astext()
    if r"\\" in text and r"\begin" not in text:
        text = rf"\begin{{align}}{text}\end{{align}}"
    self.body.append(f'<div class="math">{convert(text, display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer and choose it."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
