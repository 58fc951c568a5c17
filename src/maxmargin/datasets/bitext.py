"""Sentence pairs and their word alignments from text files: one sentence a line, words between spaces."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from maxmargin.datasets.folder import require
from maxmargin.datasets.links import Links
from maxmargin.datasets.text_lines import Source, decoded, opened

__all__ = ["Alignments", "load_hansards", "read_bitext", "read_links", "write_links"]

SentencePair = tuple[list[str], list[str]]
_MARKUP = re.compile(r"</?s\b[^>]*>")  # sentences of the shared tasks stand between <s snum=0001> and </s>


class Alignments(NamedTuple):
    """Sentence pairs with gold links, and further ones without."""

    pairs: list[SentencePair]
    links: list[Links]
    bitext: list[SentencePair]


def read_bitext(left: Source, right: Source) -> list[SentencePair]:
    """The sentence pairs of two files, line by line (``.gz`` and ``.xz`` too); a line may be empty on both sides."""
    sides = []
    for source in (left, right):
        with opened(source) as (lines, name):
            sides.append([_MARKUP.sub(" ", line).split() for _, line in decoded(lines, name)])
    if len(sides[0]) != len(sides[1]):
        counts = f"{left} has {len(sides[0])} lines and {right} has {len(sides[1])}"
        raise ValueError(f"{counts}; a sentence and its translation must stand in the same line.")
    return list(zip(*sides, strict=True))


def read_links(source: Source) -> list[Links]:
    """The links of a file in the format of Pharaoh, such as ``0-0 1-2 2?1``, one line for each sentence pair."""
    found = []
    with opened(source) as (lines, name):
        for number, line in decoded(lines, name):
            try:
                found.append(Links.parse(line))
            except ValueError as error:
                raise ValueError(f"{name}, line {number}: {error}.") from None
    return found


def write_links(path: str | Path, links: Iterable[Iterable[tuple[int, int]]]) -> None:
    """Write links in the format of Pharaoh, one line for each sentence pair."""
    rows = (" ".join(f"{i}-{j}" for i, j in sorted(pairs)) for pairs in links)
    Path(path).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def load_hansards() -> Alignments:
    """French and English sentences of the Canadian parliament: 447 with sure and possible links, 2,383 without.

    Mihalcea, Pedersen 2003, An evaluation exercise for word alignment.
    """
    where = "the shared task of the NAACL 2003 workshop on parallel texts; the Berkeley aligner has it as its example"
    path = {name: require(f"hansards_alignment/{name}.xz", where) for name in _HANSARDS}
    pairs = read_bitext(path["test.f"], path["test.e"])
    return Alignments(pairs, read_links(path["test.align"]), read_bitext(path["train.f"], path["train.e"]))


_HANSARDS = ("test.f", "test.e", "test.align", "train.f", "train.e")
