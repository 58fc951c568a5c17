"""Bars of long work: shown on a terminal with the time left, silent elsewhere; files tell how much of them is read."""

from __future__ import annotations

import gzip
import io
import sys

import pytest

from cli.corpus import sentences, text
from maxmargin.cli.progress import in_parts, progress_bar
from maxmargin.features.column_files import Source


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("suffix", [".txt", ".gz"])
def test_a_file_tells_all_of_its_bytes(tmp_path, suffix):
    path = tmp_path / f"corpus{suffix}"
    data = text(sentences(300)).encode()
    path.write_bytes(gzip.compress(data) if suffix == ".gz" else data)
    told = []
    source = Source(str(path))
    assert sum(bool(block.rows) for block in source.blocks(told.append)) == 300
    assert sum(told) == source.size == path.stat().st_size
    assert Source("-").size is None


def test_a_bar_is_shown_on_a_terminal_only(monkeypatch):
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress_bar(10, "fits") as advance:
            for _ in range(10):
                advance(1)
        assert ("fits" in stream.getvalue() and "left" in stream.getvalue()) == shown


def test_parts_are_asked_in_their_order():
    asked = []

    def predict(part):
        asked.append(len(part))
        return [2 * example for example in part]

    assert in_parts(predict, range(7), "doubling", size=3) == [0, 2, 4, 6, 8, 10, 12]
    assert asked == [3, 3, 1]
    assert in_parts(predict, [], "doubling") == []


def test_a_refusal_counts_from_the_first_example():
    def predict(part):
        for i, example in enumerate(part):
            if example < 0:
                raise ValueError(f"example {i} is negative")
        return part

    with pytest.raises(ValueError, match="example 5 is negative"):
        in_parts(predict, [1, 2, 3, 4, 5, -6, 7], "reading", size=4)
