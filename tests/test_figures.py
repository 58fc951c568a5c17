"""Every measured figure in the README and on the site stands in a result file of a benchmark or an experiment.

Commands write ``results/*.json`` beside their programs. A figure must be found in what a command printed that its
paragraph names (also in a comment), or else its section. Figures of a row of a table must stand in one line of it, or
those of a column, or of a cell.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*/README.md"))]
READMES = sorted(ROOT.glob("experiments/*/README.md"))
PAGES += [*READMES, *(ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING"))]  # are included
PAGES = [page for page in PAGES if "```{include}" not in page.read_text(encoding="utf-8")]
PAGES = [page for page in PAGES if not page.is_relative_to(ROOT / "docs" / "examples")]
SETTINGS = {"0.001", "0.01", "0.05", "0.1", "0.2", "0.3", "0.5", "3.11", "300"}  # tolerances, C, Python, kB of a page
PUBLISHED = re.compile(r"published|the paper|goal|HMCN|Clus-HMC", re.IGNORECASE)
NAMED = re.compile(r"(?:tables?|figures?|sections?|theorems?|versions?|reports an accuracy of) [\d.]+", re.IGNORECASE)
NUMBER = r"(?<![\w.])([+-])?(\d[\d,]*)?\.(\d+)(?![\w.])"
DECIMAL = re.compile(rf"{NUMBER}(?:\s*±\s*{NUMBER})?")
WHOLE = re.compile(r"(?<![\w.,])(\d[\d,]*)(?= (?:milli|processor )?seconds| MB| kB|-fold| times as)")


class Figure(NamedTuple):
    """A number as it is written: value, digits after the point, whether it has a sign; and the one behind its ±."""

    text: str
    value: float
    digits: int
    signed: bool
    spread: Figure | None = None


class Token(NamedTuple):
    """A number as a command printed it."""

    value: float
    digits: int


Line = tuple[Token, ...]


@cache
def line(text: str) -> Line:
    """The numbers of a printed line; ``1.2e-05`` and per cents have all digits."""
    found = re.findall(r"(?<![\w.])[+-]?(?:\d[\d,]*)?(?:\.\d+)?(?:e[+-]?\d+)?", text)
    kept = [number for number in found if re.search(r"\d", number)]
    return tuple(Token(float(n.replace(",", "")), 99 if "e" in n else len(n.partition(".")[2])) for n in kept)


def recipe(target: str) -> list[Path]:
    """The result files that a target of the Makefile writes."""
    (lines,) = re.findall(rf"^{target}:.*\n((?:\t.*\n?)+)", MAKEFILE, flags=re.MULTILINE)
    programs = re.findall(r"record\.py (?:--as (\w+) )?(\S+)/(\w+)\.py", lines)
    return [ROOT / folder / "results" / f"{named or program}.json" for named, folder, program in programs]


@cache
def printed(target: str) -> tuple[Line, ...]:
    """The lines of what a target of the Makefile printed, by its result files."""
    kept = [json.loads(file.read_text(encoding="utf-8"))["printed"] for file in recipe(target) if file.exists()]
    return tuple(line(text) for texts in kept for text in texts)


def sources(text: str) -> tuple[Line, ...] | None:
    """The lines of all results that a text names; None where it names none."""
    targets = re.findall(r"make\s+((?:bench|experiment|kills)-[a-z0-9-]+)", text)
    for folder in re.findall(r"`experiments/(\w+)/README\.md`", text):
        targets += re.findall(rf"^(experiment-[a-z0-9-]+):.*\n\t.*experiments/{folder}/", MAKEFILE, flags=re.MULTILINE)
    return tuple(one for target in dict.fromkeys(targets) for one in printed(target)) if targets else None


def figures(text: str) -> list[Figure]:
    """The decimal numbers of a text, and whole ones with a unit; without code, formulas and published figures."""
    text = re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)|\([^()]*published[^()]*\)|<!--.*?-->", " ", text, flags=re.DOTALL)
    text = NAMED.sub(" ", text)
    found = []
    for match in DECIMAL.finditer(text):
        written, _, behind = (part.strip() for part in match[0].partition("±"))
        spread = Figure(behind, float(behind), len(match[6]), False) if behind else None
        found.append(Figure(written, float(written.replace(",", "")), len(match[3]), match[1] is not None, spread))
    found += [Figure(match[1], float(match[1].replace(",", "")), 0, False) for match in WHOLE.finditer(text)]
    return [figure for figure in found if figure.text.lstrip("+-") not in SETTINGS]


def stands_in(figure: Figure, known: Line, per_cent: bool) -> bool:
    """Whether a number of a line, or its per cent, is this figure when rounded like it, and the next one its spread."""
    for token, behind in zip(known, (*known[1:], Token(math.nan, 0)), strict=False):
        for scale, lost in ((1.0, 0), (100.0, 2)) if per_cent else ((1.0, 0),):
            pairs = [(figure, token)] + ([(figure.spread, behind)] if figure.spread else [])
            if all(_rounds_to(one, scale * found.value, found.digits - lost) for one, found in pairs):
                return True
    return False


def _rounds_to(figure: Figure, value: float, digits: int) -> bool:
    near = value if figure.signed else abs(value)
    return digits >= figure.digits and abs(near - figure.value) <= 0.5000001 * 10.0**-figure.digits


def table(block: str, brackets: bool) -> list[list[str]]:
    """The cells of a table by row, without columns of published figures; one cell for a paragraph."""
    rows = [row.strip().strip("|").split("|") for row in block.splitlines() if row.lstrip().startswith("|")]
    kept = [k for k, cell in enumerate(rows[0]) if not PUBLISHED.search(cell)] if rows else []
    cells = [[row[k] for k in kept if k < len(row)] for row in rows] or [[block]]
    return [[re.sub(r"\([\d., ]+\)", " ", cell) if brackets else cell for cell in row] for row in cells]


def blocks(page: Path) -> Iterator[tuple[str, tuple[Line, ...], bool]]:
    """Paragraphs and tables, with the results that they may quote and whether brackets hold published figures."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"<!-- result: .*?<!-- end -->", "", text, flags=re.DOTALL)
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for section in re.split(r"^(?=#+ )", text, flags=re.MULTILINE):
        own, brackets = sources(section), "in brackets" in section
        for block in re.split(r"\n\s*\n", section):
            if block.strip():
                yield block, next((one for one in (sources(block), own) if one is not None), ()), brackets


def missing(block: str, known: tuple[Line, ...], brackets: bool) -> list[str]:
    """Figures of a block that are not found; or the rows of a table of which neither these, nor its columns, nor its
    cells stand in one printed line each."""
    per_cent = "%" in block
    flat = tuple(token for one in known for token in one)
    told = [[figures(cell) for cell in row] for row in table(block, brackets)]
    gone = [figure.text for row in told for cell in row for figure in cell if not stands_in(figure, flat, per_cent)]
    if gone or len(told) == 1:
        return gone

    def apart(groups: Iterable[Sequence[Figure]]) -> list[str]:
        together = [group for group in groups if group]
        split = [g for g in together if not any(all(stands_in(f, one, per_cent) for f in g) for one in known)]
        return [" and ".join(figure.text for figure in group) for group in split]

    rows = [[figure for cell in row for figure in cell] for row in told]
    columns = [[figure for cell in column for figure in cell] for column in zip_longest(*told, fillvalue=[])]
    pairs = [cell for row in told for cell in row]
    by_cell = apart(pairs) if all(len(cell) != 1 for cell in pairs) else rows
    return apart(rows) and apart(columns) and by_cell and apart(rows)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_figure_is_a_result(page):
    gone = [f"{text} in {block[:60]!r}" for block, *rest in blocks(page) for text in missing(block, *rest)]
    assert not gone, "\n".join(gone)


def test_every_result_on_a_page_is_kept():
    texts = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = re.findall(r"^<!-- result: (\S+) -->$", texts, flags=re.MULTILINE)
    assert named
    assert not [place for place in named if not (ROOT / place).exists()]


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_tables_of_experiments_are_those_of_their_result_files(readme):
    """Of a table below a paragraph that names a command."""
    text = re.sub(r"```.*?```", "", readme.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets: list[str] = []
    gone = []
    for block in re.split(r"\n\s*\n", text):
        if not block.lstrip().startswith("|"):
            targets = re.findall(r"make\s+(experiment-[a-z0-9-]+)", block) or targets
        elif targets:
            known = tuple(one for target in targets for one in printed(target))
            gone += [f"{figure} in {block[:60]!r}" for figure in missing(block, known, brackets=True)]
    assert not gone, "\n".join(gone)


def changed(block: str, figure: Figure, step: int) -> str:
    """A block in which a figure is off by some steps of its last digit."""
    wrong = f"{abs(abs(figure.value) + step * 10.0**-figure.digits):.{figure.digits}f}"
    return block.replace(figure.text.lstrip("+-"), wrong, 1)


def test_a_wrong_figure_is_noticed():
    """Of all figures, changed in their last digit, few may pass by chance."""
    tried = passed = 0
    for page in PAGES:
        for block, known, brackets in blocks(page):
            for figure in (f for row in table(block, brackets) for cell in row for f in figures(cell)):
                others = [changed(block, figure, step) for step in (-3, -2, -1, 1, 2, 3)]
                tried += len(others)
                passed += sum(not missing(other, known, brackets) for other in others)
    assert tried > 1000
    assert passed / tried < 0.15, f"{passed} of {tried}"
