"""The reader of CoNLL-2000 on small files, and on the real set where it is on disk."""

from __future__ import annotations

import gzip

import pytest

from maxmargin.datasets import data_home, load_conll2000


def write(folder, text):
    (folder / "conll2000").mkdir()
    with gzip.open(folder / "conll2000" / "test.txt.gz", "wt", encoding="utf-8") as file:
        file.write(text)


@pytest.mark.parametrize("ending", ["", "\n", "\n\n\n"])
def test_small_file(monkeypatch, tmp_path, ending):
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    write(tmp_path, "He PRP B-NP\nran VBD B-VP\n\n\nGo VB B-VP" + ending)
    assert load_conll2000("test") == [[("He", "PRP", "B-NP"), ("ran", "VBD", "B-VP")], [("Go", "VB", "B-VP")]]


def test_errors(monkeypatch, tmp_path):
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="'train' or 'test'"):
        load_conll2000("dev")
    with pytest.raises(FileNotFoundError, match="CoNLL-2000 shared task"):
        load_conll2000("test")
    write(tmp_path, "He PRP B-NP\n\nran VBD\n")
    with pytest.raises(ValueError, match=r"line 3 \(sentence 1\).*2 columns"):
        load_conll2000("test")


@pytest.mark.data
@pytest.mark.parametrize(("split", "sentences", "tokens"), [("train", 8936, 211727), ("test", 2012, 47377)])
def test_real_sizes(split, sentences, tokens):
    if not (data_home() / f"conll2000/{split}.txt.gz").is_file():
        pytest.skip("CoNLL-2000 is not on disk")
    loaded = load_conll2000(split)
    assert len(loaded) == sentences
    assert sum(map(len, loaded)) == tokens
