"""Columns of tokens: round trips, slices, frames, and messages that name sentence and token."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.features.tokens import Column, Tokens

WORD = st.sampled_from(["a", "b", "", "é", "_B-1", "long word"])
SENTENCES = st.lists(st.lists(st.tuples(WORD, WORD), max_size=5), max_size=6)


@given(SENTENCES)
def test_sentences_come_back(sentences):
    tokens = Tokens.from_sentences(sentences)
    assert len(tokens) == len(sentences)
    if tokens.n_tokens:
        assert [tokens[i] for i in range(len(tokens))] == sentences
        for column in tokens.columns:
            first = np.unique(column.codes, return_index=True)[1]
            assert (np.diff(first) > 0).all()
            assert len(first) == len(column.strings) == len(set(column.strings))


@given(SENTENCES, st.data())
def test_subsets_are_those_of_the_list(sentences, data):
    tokens = Tokens.from_sentences([*sentences, [("x", "y")]])
    sentences = [*sentences, [("x", "y")]]
    chosen = data.draw(st.lists(st.integers(0, len(sentences) - 1), max_size=8))
    part = tokens[np.array(chosen, dtype=int)]
    assert [part[i] for i in range(len(part))] == [sentences[i] for i in chosen]
    part = tokens[1::2]
    assert [part[i] for i in range(len(part))] == sentences[1::2]
    assert tokens[-1] == [("x", "y")]
    used = {token[0] for sentence in sentences[1::2] for token in sentence}
    assert set(part.columns[0].strings) == used  # nothing of the others stays behind


def test_plain_strings_make_one_column():
    tokens = Tokens.from_sentences([["the", "dog"], [], np.array(["the"])])
    assert tokens[0] == [("the",), ("dog",)]
    assert tokens[1] == []
    assert tokens.offsets.tolist() == [0, 2, 2, 3]
    assert all(type(text) is str for text in tokens.columns[0].strings)


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ("the dog", "list of sentences"),
        (["the dog"], "sentence 0 is one string"),
        ([["a"], 3], "sentence 1 is a int"),
        ([["a"], ["b", 3]], "sentence 1, token 1, column 0 is 3"),
        ([["a"], ["b", ["c"]]], "sentence 1, token 1, column 0 is"),
        ([[("a", "b")], [("a", "b"), ("c",)]], "sentence 1, token 1 has 1 columns; sentence 0, token 0 has 2"),
        ([[("a", "b")], ["ab"]], "sentence 1, token 0 is 'ab'"),
        ([[("a", None)]], "sentence 0, token 0, column 1 is None"),
        ([[()]], r"sentence 0, token 0 is \(\)"),
    ],
)
def test_messages_name_the_place(sentences, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Tokens.from_sentences(sentences)


def test_columns_must_fit_the_offsets():
    with pytest.raises(ValueError, match="column 1 has 1 tokens"):
        Tokens.from_columns([["a", "b"], ["c"]], [0, 2])
    with pytest.raises(ValueError, match="offsets must not fall, but sentence 1 goes from 2 to 1"):
        Tokens.from_columns([["a", "b"]], [0, 2, 1])
    with pytest.raises(ValueError, match="at least one column"):
        Tokens.from_columns([], [0])
    assert Column.of(["b", "a", "b"]).codes.tolist() == [0, 1, 0]
    offsets = np.array([0, 1, 2])
    offsets.flags.writeable = False  # as those of a memory-mapped file: kernels need their own
    assert Tokens.from_columns([["a", "b"]], offsets).offsets.flags.writeable


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"sentence": [7, 7, 3], "w": ["the", "dog", "go"], "pos": ["D", "N", "V"]})
    tokens = Tokens.of(frame)
    assert [tokens[i] for i in range(2)] == [[("the", "D"), ("dog", "N")], [("go", "V")]]
    assert Tokens.from_frame(frame, columns=["pos"])[0] == [("D",), ("N",)]
    with pytest.raises(ValueError, match="no column 'id'; it has sentence, w, pos"):
        Tokens.from_frame(frame, sentence="id")
    again = frames.DataFrame({"sentence": ["a", "b", "a"], "w": ["x", "y", "z"]})
    with pytest.raises(ValueError, match="row 2 returns to sentence 'a'"):
        Tokens.of(again)
    with pytest.raises(ValueError, match="row 1 has no 'sentence'"):
        Tokens.of(frames.DataFrame({"sentence": ["a", None], "w": ["x", "y"]}))
    with pytest.raises(TypeError, match="sentence 1, token 0, column 0 is"):
        Tokens.of(frames.DataFrame({"sentence": ["a", "b"], "w": ["x", None]}))
    with pytest.raises(ValueError, match="no rows"):
        Tokens.of(frame[:0])


def test_index_errors():
    with pytest.raises(IndexError, match="sentence 5 of 1"):
        Tokens.from_sentences([["a"]])[5]
