"""The gallery of the site runs on data that ship, draws, and the reference leaves no package out."""

from __future__ import annotations

import re
import runpy
import time
import warnings
from pathlib import Path
from pkgutil import walk_packages

import pytest

import maxmargin

DOCS = Path(__file__).resolve().parent.parent / "docs"
EXAMPLES = sorted((DOCS / "gallery").glob("plot_*.py"))
QUICK = {"plot_assignment", "plot_chain_decoding", "plot_junction_tree", "plot_own_structure", "plot_rescaling"}


def test_there_are_enough_examples():
    assert len(EXAMPLES) >= 20


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_explain_themselves_and_need_no_files(path):
    text = path.read_text(encoding="utf-8")
    title, underline = re.match(r'"""\n(.+)\n(=+)\n\n\S', text).groups()
    assert len(title) == len(underline)
    assert not re.search(r"MAXMARGIN_DATA|require\(|open\(|https?://", text)


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if path.stem in QUICK else pytest.mark.slow, id=path.stem) for path in EXAMPLES],
)
def test_examples_run_and_draw(path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(str(path))
    assert time.process_time() - begin < 60  # compilation included; 20 without
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert figures and all(ax.has_data() or ax.texts for ax in figures[0].axes[:1])
    pyplot.close("all")


def test_the_reference_has_every_public_package():
    described = runpy.run_path(str(DOCS / "_ext" / "reference.py"))["PACKAGES"].keys()
    packages = {module.name for module in walk_packages(maxmargin.__path__, "maxmargin.") if module.ispkg}
    inner = {"maxmargin.cli", "maxmargin.cli.demos", "maxmargin.compat", "maxmargin.solvers.masters"}
    inner |= {"maxmargin.solvers.linear_programs", "maxmargin.pages"}
    assert packages - inner == described - {"maxmargin", "maxmargin.contracts"}
