"""Readers of column files: sources, separators, what is skipped, and messages that name file and line."""

from __future__ import annotations

import gzip
import io
import lzma
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.datasets.columns import iter_conllu, iter_sentences, read_column_table, read_columns

TEXT = "-DOCSTART- -X- O\n\nHe PRP B-NP\nran\tVBD  B-VP\n\n\n# NN B-NP\n"
SENTENCES = [[("He", "PRP", "B-NP"), ("ran", "VBD", "B-VP")], [("#", "NN", "B-NP")]]


def sentences_of(table):
    return [
        list(zip(*(column[a:b] for column in table.columns), strict=True))
        for a, b in zip(table.offsets[:-1], table.offsets[1:], strict=True)
    ]


def both(source, **options):
    """The sentences, read line by line and as a whole; sources are functions, for streams are read once."""
    rows = list(iter_sentences(source(), **options))
    assert read_columns(source(), **options) == rows
    assert sentences_of(read_column_table(source(), **options)) == rows
    return rows


@pytest.mark.parametrize("ending", ["", "\n", "\n\n \n"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_streams_of_text_and_bytes(ending, newline):
    text = (TEXT.rstrip("\n") + ending).replace("\n", newline)
    assert both(lambda: io.StringIO(text)) == SENTENCES
    assert both(lambda: io.BytesIO(text.encode())) == SENTENCES
    assert both(lambda: text.splitlines()) == SENTENCES
    assert both(lambda: io.BytesIO(b"\xef\xbb\xbf" + text.encode())) == SENTENCES


@pytest.mark.parametrize(("suffix", "opener"), [("", open), (".gz", gzip.open), (".xz", lzma.open)])
def test_files_by_suffix(tmp_path, suffix, opener):
    path = tmp_path / f"train.txt{suffix}"
    with opener(path, "wb") as file:
        file.write(TEXT.encode())
    assert both(lambda: path) == SENTENCES
    assert both(lambda: str(path)) == SENTENCES


def test_standard_input(monkeypatch):
    def source():
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
        return "-"

    assert both(source) == SENTENCES


def test_only_ascii_spaces_divide_columns():
    text = "10\u00a0000 CD\n\u3000 SYM\nplain NN\n"
    assert both(lambda: io.StringIO(text)) == [[("10\u00a0000", "CD"), ("\u3000", "SYM"), ("plain", "NN")]]


def test_separator_keeps_spaces_and_empty_columns():
    text = "New York\tNNP\n\tNN\n\nx\t\n"
    assert both(lambda: io.StringIO(text), separator="\t") == [[("New York", "NNP"), ("", "NN")], [("x", "")]]


def test_comments_do_not_end_a_sentence_and_markers_do():
    text = "#begin document (x)\na A\n#begin document (y)\nb B\n-DOCSTART- -X-\nc C\n%% no\n"
    assert both(lambda: io.StringIO(text), comments=("#begin", "%%")) == [[("a", "A"), ("b", "B")], [("c", "C")]]
    assert both(lambda: io.StringIO("#doc 1\na A\n"), comments="#doc") == [[("a", "A")]]
    assert both(lambda: io.StringIO("#doctor NN\n")) == [[("#doctor", "NN")]]
    assert both(lambda: io.StringIO("-DOCSTART- O\na A\n"), document_markers=()) == [[("-DOCSTART-", "O"), ("a", "A")]]


PLAIN = ["a A", "b\t B ", "", "  ", "-DOCSTART- x", "-DOCSTART-x y", " -DOCSTART-", "#end document 3", "# H"]
LINE = st.sampled_from([*PLAIN, "é E", "c\u00a0c C", "\u2028 \x85", " \x1cd D\r"])


@given(st.lists(LINE, max_size=12))
def test_both_ways_agree(lines):
    text = "\n".join(lines)
    assert both(lambda: io.StringIO(text)) == both(lambda: [line + "\n" for line in lines])


TABBED = [
    "a\tA",
    "b \t",
    "\t",
    "",
    "  ",
    "-DOCSTART-\tx",
    "-DOCSTART-x\ty",
    " -DOCSTART-\t",
    "#end document 3\tz",
    "é\tE\r",
]


@given(st.lists(st.sampled_from(TABBED), max_size=12))
def test_both_ways_agree_on_separated_columns(lines):
    text = "\n".join(lines)
    assert both(lambda: io.StringIO(text), separator="\t") == both(
        lambda: [line + "\n" for line in lines], separator="\t"
    )


@pytest.mark.parametrize("read", [read_columns, read_column_table])
def test_errors_name_file_and_line(tmp_path, read):
    path = tmp_path / "bad.txt"
    path.write_text("-DOCSTART-\na A\n\nb B\nc\n")
    with pytest.raises(ValueError, match=r"bad\.txt, line 5 \(sentence 1\): 1 columns, but line 2 has 2: 'c'"):
        read(path)
    path.write_bytes(b"a A\n\nb \xe9\n")
    with pytest.raises(ValueError, match=r"bad\.txt, line 3: not UTF-8"):
        read(path)
    with pytest.raises(FileNotFoundError, match=r"no file .*nowhere"):
        read(tmp_path / "nowhere")
    with pytest.raises(TypeError, match="a path, '-' or a stream"):
        read(3)
    with pytest.raises(ValueError, match="separator must not be empty"):
        read(path, separator="")
    with pytest.raises(ValueError, match="empty comment prefix"):
        read(path, comments="")
    packed = tmp_path / "cut.gz"
    packed.write_bytes(gzip.compress(TEXT.encode() * 100)[:-20])
    with pytest.raises(ValueError, match=r"cut\.gz is a damaged archive"):
        read(packed)
    packed = tmp_path / "foreign.xz"
    packed.write_bytes(b"plain text")
    with pytest.raises(ValueError, match=r"foreign\.xz is a damaged archive"):
        read(packed)


def test_sentences_are_read_as_they_come():
    def lines():
        yield from ["a A\n", "\n"]
        raise AssertionError("read too far")

    assert next(iter_sentences(lines())) == [("a", "A")]


CONLLU = """# sent_id = 1
# text = Vámonos al mar
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\tV\tMood=Imp|Number=Plur\t0\troot\t0:root\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t1:obj|3:nsubj\tSpaceAfter=No

# only a comment

1\tmar\tmar\tNOUN\t_\t_\t0\troot\t_\t_
1.1\tempty\tempty\tNOUN\t_\t_\t_\t_\t0:dep\t_
"""


def test_conllu():
    sentences = list(iter_conllu(io.StringIO(CONLLU), ("form", "upos", "xpos", "feats", "head", "deps")))
    assert sentences == [
        [
            ("Vamos", "VERB", "V", "Mood=Imp|Number=Plur", "0", "0:root"),
            ("nos", "PRON", "_", "_", "1", "1:obj|3:nsubj"),
        ],
        [("mar", "NOUN", "_", "_", "0", "_")],
    ]
    with pytest.raises(ValueError, match="no field 'lemmas'"):
        list(iter_conllu(io.StringIO(CONLLU), ("lemmas",)))
    with pytest.raises(
        ValueError, match=r"line 3 \(sentence 1\): not CoNLL-U \(10 columns between tabs are needed, there are 1"
    ):
        list(iter_conllu(["1\ta" + 8 * "\t_" + "\n", "\n", "x y z\n"], ("form",)))
    with pytest.raises(ValueError, match=r"line 1 \(sentence 0\): not CoNLL-U \('one' is not the number of a word"):
        list(iter_conllu(["one\ta" + 8 * "\t_" + "\n"], ("form",)))
