"""The commands of the README and of the site run as they stand, on small files with the names that the pages use."""

from __future__ import annotations

import gzip
import re
import shlex
from importlib.resources import files as packaged
from pathlib import Path

import numpy as np
import pytest

from maxmargin.datasets import load_leaves, load_recipes, load_sentences

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
DATA = packaged("maxmargin.datasets") / "data"
CODE = re.compile(r"^```\n(.*?)^```|^((?: {4}.*\n)+)", flags=re.MULTILINE | re.DOTALL)
OTHER = re.compile(r"<!-- result: .*?<!-- end -->|^```[^\n`]+\n.*?^```", flags=re.MULTILINE | re.DOTALL)
VERBS = "train|predict|evaluate|inspect|tune|audit|report|labels|segment|align|rerank"
COMMAND = re.compile(rf"(?:^|\s)maxmargin ((?:{VERBS}) .*)$")


def commands(page: Path) -> list[str]:
    """The commands of the code blocks of a page, in their order, without what they are piped into."""
    text = OTHER.sub("", page.read_text(encoding="utf-8"))
    lines = [line for block in CODE.finditer(text) for line in (block[1] or block[2]).splitlines()]
    return [found[1].partition("|")[0].strip() for line in lines if (found := COMMAND.search(line))]


PAGES = {page: commands(page) for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]}
PAGES = {page: lines for page, lines in PAGES.items() if lines and "docs/examples" not in page.as_posix()}


def columns(examples: slice) -> str:
    """Sentences as a column file."""
    shipped = load_sentences()
    both = zip(shipped.data[examples], shipped.target[examples], strict=True)
    return "".join("".join(f"{w} {t}\n" for w, t in zip(*pair, strict=True)) + "\n" for pair in both)


def arff(rows: np.ndarray) -> str:
    """Recipes as an ARFF file whose last 14 attributes are labels."""
    recipes = load_recipes()
    n_features, labels = recipes.data.shape[1], np.tile(recipes.target, 2)
    head = [f"@attribute x{k} numeric" for k in range(n_features)] + [f"@attribute y{k} {{0,1}}" for k in range(14)]
    values = np.concatenate([recipes.data, labels], axis=1)[rows].astype(int)
    return "\n".join(["@relation recipes", *head, "@data", *(",".join(map(str, row)) for row in values), ""])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with every file that a page names."""
    image = pytest.importorskip("PIL.Image")
    texts = {"train.txt": columns(slice(0, 60)), "test.txt": columns(slice(60, 80)), "template": "U00:%x[0,0]\nB\n"}
    texts |= {"template.txt": texts["template"], "t.txt": texts["template"]}
    texts |= {"yeast-train.arff": arff(np.arange(60)), "yeast-test.arff": arff(np.arange(60, 80))}
    for name, source in {"few.fr": "french", "few.en": "english", "few.links": "links"}.items():
        lines = (DATA / f"aligned.{source}").read_text(encoding="utf-8").splitlines(keepends=True)
        texts |= {name: "".join(lines[:40]), name.replace("few", "test"): "".join(lines[40:])}
    references = (DATA / "nbest.references").read_text(encoding="utf-8")
    zipped = {f"{name}.nbest.gz": (DATA / "nbest.txt").read_text(encoding="utf-8") for name in ("tune", "test")}
    zipped |= {"much.fr.gz": (DATA / "bitext.french").read_text(encoding="utf-8")}
    zipped |= {"much.en.gz": (DATA / "bitext.english").read_text(encoding="utf-8")}
    zipped |= {"part-1.gz": columns(slice(0, 30)), "part-2.gz": columns(slice(30, 60)), "new-1.gz": texts["test.txt"]}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name, text in zipped.items():
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    (tmp_path / "tune.en").write_text(references, encoding="utf-8")
    leaves = load_leaves()
    for name, pictures in {"images": leaves.data[:6], "masks": leaves.target[:6], "new": leaves.data[6:8]}.items():
        (tmp_path / name).mkdir()
        for k, pixels in enumerate(pictures):
            image.fromarray(np.asarray(pixels, np.uint8)).save(tmp_path / name / f"{k}.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_page_with_files_has_commands():
    assert {page.stem for page in PAGES} >= {"tagging", "labels", "pictures", "alignment", "lattices", "audit", "scale"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_run(run, folder, page):
    if page.stem == "lattices":  # its references; elsewhere test.en is a side of a bitext
        (folder / "test.en").write_bytes((folder / "tune.en").read_bytes())
    if page.stem == "reports":
        assert run("train", "train.txt", "-o", "tagger.mm").exit_code == 0
    for line in PAGES[page]:
        if "--executor ray" in line:
            pytest.importorskip("ray")
        words, _, output = line.replace("--n-jobs 8", "--n-jobs 2").partition(" > ")
        arguments: list[str | Path] = []
        for word in shlex.split(words):
            arguments += sorted(folder.glob(word)) if "*" in word else [word]
        done = run(*arguments)
        assert done.exit_code == 0, f"{line}\n{done.output}"
        if output:
            (folder / output).write_text(done.stdout, encoding="utf-8")
