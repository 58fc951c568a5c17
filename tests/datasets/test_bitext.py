"""Sentence pairs and links from files, and what is said of files that do not fit."""

from __future__ import annotations

import lzma

import pytest

from maxmargin.datasets import Links, load_hansards, read_bitext, read_links, write_links


def test_files_are_read_line_by_line(tmp_path):
    (tmp_path / "a.fr").write_text("<s snum=1> la maison </s>\n\nun\n")
    with lzma.open(tmp_path / "a.en.xz", "wt") as file:
        file.write("the house\n\na\n")
    pairs = read_bitext(tmp_path / "a.fr", tmp_path / "a.en.xz")
    assert pairs == [(["la", "maison"], ["the", "house"]), ([], []), (["un"], ["a"])]
    (tmp_path / "a.links").write_text("0-0 1?1\n\n0-0-P\n")
    links = read_links(tmp_path / "a.links")
    assert links == [
        Links(frozenset({(0, 0)}), frozenset({(1, 1)})),
        Links(frozenset()),
        Links(frozenset(), frozenset({(0, 0)})),
    ]
    write_links(tmp_path / "b.links", [[(1, 0), (0, 0)], []])
    assert (tmp_path / "b.links").read_text() == "0-0 1-0\n\n"


def test_lines_that_do_not_fit_are_named(tmp_path):
    (tmp_path / "a").write_text("x\ny\n")
    (tmp_path / "b").write_text("x\n")
    with pytest.raises(ValueError, match="a sentence and its translation must stand"):
        read_bitext(tmp_path / "a", tmp_path / "b")
    (tmp_path / "c").write_text("0-0\n0:1\n")
    with pytest.raises(ValueError, match="line 2: '0:1' is no link"):
        read_links(tmp_path / "c")


def test_a_missing_set_says_where_it_can_be_had(tmp_path, monkeypatch):
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="Get it from the shared task"):
        load_hansards()
