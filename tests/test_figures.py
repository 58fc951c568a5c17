"""Every measured figure in the README and on the site stands in a result file of a benchmark or an experiment.

Commands write ``results/*.json`` beside their programs; earlier runs have tables of what they printed in a README. A
figure must be found in a file of a command that its paragraph names, or else its section, or else its page.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "```{include}" not in page.read_text(encoding="utf-8")]
PAGES = [page for page in PAGES if not page.is_relative_to(ROOT / "docs" / "examples")]
SETTINGS = {"0.1", "0.01", "0.001", "0.5", "3.11"}  # tolerances, C, Python: chosen, not measured
NUMBER = re.compile(r"(?<![\w.])(\d[\d,]*)?(?:\.(\d+))?(?![\w])")
PUBLISHED = re.compile(r"published|the paper|goal|HMCN|Clus-HMC", re.IGNORECASE)
NAMED = re.compile(
    r"(?:tables?|figures?|sections?|theorems?|versions?|reports an accuracy of) [\d.]+|\((?:\.?\d[\d.]*(?:, )?)+\)"
)


@cache
def result(program: str) -> tuple[float, ...]:
    """The numbers of the result file of a program, by its path without suffix, or else of its section in the README."""
    path = ROOT / program
    kept = path.parent / "results" / f"{path.name}.json"
    if kept.exists():
        return numbers("\n".join(json.loads(kept.read_text(encoding="utf-8"))["printed"]))
    (target,) = re.findall(rf"^([a-z0-9-]+):.*\n\t.*{program}\.py", MAKEFILE, flags=re.MULTILINE)
    sections = re.split(r"^## ", (path.parent / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return tuple(number for section in sections if f"make {target}`" in section for number in numbers(section))


@cache
def experiment(folder: str) -> tuple[float, ...]:
    """The numbers in the README and in the result files of an experiment."""
    path = ROOT / "experiments" / folder
    readme = numbers((path / "README.md").read_text(encoding="utf-8")) if (path / "README.md").exists() else ()
    kept = [result(f"experiments/{folder}/{file.stem}") for file in path.glob("results/*.json")]
    return tuple(number for one in (readme, *kept) for number in one)


def numbers(text: str) -> tuple[float, ...]:
    return tuple(float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*\.?\d*(?:e-?\d+)?|\.\d+", text))


def sources(text: str) -> tuple[float, ...] | None:
    """The numbers of all results that a text refers to; None where it refers to none."""
    found: list[tuple[float, ...]] = []
    for target in re.findall(r"make\s+((?:bench|experiment)-[a-z0-9-]+)", text):
        for script in re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE):
            found += [result(f"benchmarks/{name}") for name in re.findall(r"benchmarks/(\w+)\.py", script)]
            found += [experiment(folder) for folder in re.findall(r"experiments/(\w+)/", script)]
    found += [experiment(folder) for folder in re.findall(r"experiments/(\w+)(?:/README)?\.md", text)]
    if re.search(r"\]\((?:\.\./)*(?:docs/)?benchmarks\.md\)", text):
        found += [result(f"benchmarks/{path.stem}") for path in (ROOT / "benchmarks").glob("results/*.json")]
        found.append(numbers((ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")))
    if re.search(r"\]\((?:\.\./)*(?:docs/)?papers\.md\)", text):
        found += [experiment(path.name) for path in (ROOT / "experiments").iterdir()]
    return tuple(number for one in found for number in one) if found else None


def quoted(block: str) -> list[str]:
    """The decimal numbers of a paragraph or table, without code, formulas, names and published figures."""
    lines = block.splitlines()
    if "|" in lines[0] and PUBLISHED.search(lines[0]):
        kept = [k for k, cell in enumerate(lines[0].split("|")) if not PUBLISHED.search(cell)]
        lines = ["|".join(cell for k, cell in enumerate(line.split("|")) if k in kept) for line in lines]
    text = re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)|\([^()]*published[^()]*\)", " ", "\n".join(lines))
    text = NAMED.sub(" ", text)
    return [f"{found[1] or ''}.{found[2]}" for found in NUMBER.finditer(text) if found[2] is not None]


def is_found(figure: str, known: tuple[float, ...]) -> bool:
    """Whether a number of a result, or its per cent, is this figure when rounded like it."""
    value, digits = float(figure.replace(",", "")), len(figure.partition(".")[2])
    most = 0.5000001 * 10.0**-digits
    return any(abs(number - value) <= most or abs(100 * number - value) <= most for number in known)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_figure_is_a_result(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    whole, missing = sources(text), []
    for section in re.split(r"^(?=#+ )", text, flags=re.MULTILINE):
        own = sources(section)
        blocks = [block for block in re.split(r"\n\s*\n", section) if block.strip()]
        for block in blocks:
            figures = [figure for figure in quoted(block) if figure not in SETTINGS]
            known = next((one for one in (sources(block), own, whole) if one is not None), ())
            missing += [f"{figure} in {block[:60]!r}" for figure in figures if not is_found(figure, known)]
    assert not missing, "\n".join(missing)
