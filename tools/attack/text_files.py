"""Hostile n-best lists, lattices, links and label files: read by the library and by the commands that take them."""

from __future__ import annotations

import gzip
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from tools.attack import attacks_in_turn
from tools.attack.data_files import PIECES, commanded
from tools.attack.targets import lattice_check, links_check, targets

import maxmargin as mm
from maxmargin.datasets import read_arff, read_bitext, read_label_csv, read_libsvm, read_links, read_nbest, read_plf

NUMBER = 500
NUMBERS = [b"nan", b"inf", b"-inf", b"1e400", b"1e308", b"1e-400", b"-1", b"9" * 20, b"0x1", b"1_000", b"", b"?"]
MARKS = [b"|||", b" ||| ", b":", b"=", b"((", b"))", b"',", b"\\", b'"', b"(" * 5000, b"-", b"{", b"}", b",,"]


@dataclass(frozen=True)
class Kind:
    """A format: a good file, and what is done with one."""

    suffix: str
    text: bytes
    use: Callable[[Path], object]


def cases(rng: np.random.Generator, number: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Formats in turn."""
    names = list(kinds())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:  # kernels that they need are loaded now, not in every child
            attack(name, 0, spoilt=False)
    yield from attacks_in_turn(attack, names, rng, number)


def attack(name: str, seed: int, spoilt: bool = True) -> None:
    rng, kind = np.random.default_rng(seed), kinds()[name]
    data = damaged(kind.text, rng) if spoilt else kind.text
    packed = spoilt and rng.random() < 0.15
    path = Path(f"text-{os.getpid()}{kind.suffix}{'.gz' * packed}").absolute()
    path.write_bytes(gzip.compress(data) if packed else data)
    try:
        kind.use(path)
    finally:
        path.unlink()


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """One to three places where bytes come, go or change, most of them such as mean something in these formats."""
    for _ in range(int(rng.integers(1, 4))):
        at, action = int(rng.integers(len(data) + 1)), rng.integers(8)
        if action == 0:
            data = data[:at]
        elif action == 1:
            data = data[:at] + rng.bytes(int(rng.integers(1, 30))) + data[at:]
        elif action == 2:
            data = data[:at] + PIECES[rng.integers(len(PIECES))] + data[at:]
        elif action == 3:
            data = data[:at] + MARKS[rng.integers(len(MARKS))] + data[at:]
        elif action == 4:
            data = data[:at] + data[at + int(rng.integers(1, 9)) :]
        elif action == 5:
            lines = data.split(b"\n")
            data = b"\n".join(lines[k] for k in rng.integers(len(lines), size=len(lines)))
        else:
            data = _other_number(data, rng)
    return data


def _other_number(data: bytes, rng: np.random.Generator) -> bytes:
    """A number of the file becomes another."""
    begins = [k for k in range(len(data)) if data[k : k + 1].isdigit() and not data[k - 1 : k].isdigit()]
    if not begins:
        return data
    begin = end = begins[rng.integers(len(begins))]
    while data[end : end + 1] in {bytes([c]) for c in b"0123456789."}:
        end += 1
    return data[:begin] + NUMBERS[rng.integers(len(NUMBERS))] + data[end:]


@cache
def kinds() -> dict[str, Kind]:
    """By name."""
    hypotheses = ((0, "a b", 1.5, "x= 1"), (0, "b", -2.0, ""), (1, "c d e", 0.25, ""), (1, "a", 3.0, "y= 2 z= 1"))
    nbest = "".join(f"{k} ||| {text} ||| lm: {v} 2 tm: 1 {s} ||| {v}\n" for k, text, v, s in hypotheses)
    plf = "((('a',0.5,1),('b c',0.3,2),),(('d',1.0,1),),)\n((('a',0.25,1),),)\n"
    arff = (
        "@relation x\n@attribute a numeric\n@attribute b {red,green}\n@attribute l1 {0,1}\n@attribute l2 {0,1}\n@data\n"
        "1.5,red,0,1\n2,green,1,1\n3.5,'green',0,0\n4,red,1,0\n"
    )
    libsvm, csv = "0,1 1:0.5 3:2\n1 2:1.5\n 1:3\n0 3:1 # end\n", "a,b,l1,l2\n1,2,0,1\n3,4,1,1\n5,-1,0,0\n"
    ranker = mm.LatticeRanker(max_passes=4, random_state=0).fit(
        read_nbest(nbest.splitlines(keepends=True)).lattices, ["a b", "c d"]
    )
    aligner = targets()["aligner"].estimator

    def lattices(found: list) -> None:
        fitted = mm.LatticeRanker(max_passes=2).fit(found, ["a b"] * len(found))
        lattice_check(fitted, found, fitted.predict(found))

    def label_data(found) -> None:  # type: ignore[no-untyped-def]
        fitted = mm.MultilabelClassifier(max_passes=2).fit(found.X, found.Y)
        fitted.predict(found.X)

    def aligned(path: Path) -> None:
        pairs = read_bitext(path, path)
        links_check(aligner, pairs, aligner.predict(pairs))

    return {
        "n-best lists": Kind(".nbest", nbest.encode(), lambda path: lattices(read_nbest(path).lattices)),
        "rerank predict": Kind(
            ".nbest", nbest.encode(), lambda path: commanded(path, ranker, ["rerank", "predict"], "--k", "2")
        ),
        "PLF": Kind(".plf", plf.encode(), lambda path: lattices(read_plf(path))),
        "links": Kind(".links", b"0-0 1-2 2?1\n\n3-0\n", read_links),
        "bitext": Kind(".text", b"a b c\nd a\n\nb d\n", aligned),
        "align predict": Kind(
            ".text", b"a b c\nd a\n\nb d\n", lambda path: commanded(path, aligner, ["align", "predict"], str(path))
        ),
        "ARFF": Kind(".arff", arff.encode(), lambda path: label_data(read_arff(path, -2))),
        "LIBSVM": Kind(".svm", libsvm.encode(), lambda path: label_data(read_libsvm(path))),
        "CSV": Kind(".csv", csv.encode(), lambda path: label_data(read_label_csv(path, -2))),
    }
