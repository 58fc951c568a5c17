"""Windows and derived values against a plain implementation, token by token."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features.naive import rows_of, text_at
from maxmargin.features.extractor import TextFeatures
from maxmargin.features.window import (
    CharNGrams,
    Ends,
    Gazetteer,
    Join,
    Lower,
    Prefix,
    Shape,
    Suffix,
    Window,
    describe,
    restore,
)

WORD = st.sampled_from(["New", "York", "new", "york", "City", "the", "a", "", "McX-12", "Ünï", "aa", "aaa"])
SENTENCE = st.lists(st.tuples(WORD, WORD), min_size=1, max_size=7)
SENTENCES = st.lists(SENTENCE, min_size=1, max_size=4)


def shape(text, short):
    out = ""
    for c in text:
        mark = "d" if c.isdigit() else "X" if c.isupper() else "x" if c.islower() else c
        if not (short and out.endswith(mark)):
            out += mark
    return out


# transform, and its value of one string in plain Python (a list: any number of features)
TRANSFORMS = [
    (None, lambda text: [text]),
    (Prefix(2), lambda text: [text[:2]] if len(text) > 1 else []),
    (Suffix(3), lambda text: [text[-3:]] if len(text) > 2 else []),
    (Lower(), lambda text: [text.lower()]),
    (Shape(), lambda text: [shape(text, False)]),
    (Shape(short=True), lambda text: [shape(text, True)]),
    (CharNGrams(2), lambda text: sorted({f"^{text}$"[i : i + 2] for i in range(len(text) + 1)})),
]
OFFSETS = st.lists(st.integers(-3, 3), max_size=4, unique=True)


@given(
    SENTENCES,
    SENTENCE,
    st.sampled_from(TRANSFORMS),
    OFFSETS,
    OFFSETS,
    OFFSETS,
    st.sampled_from(["mark", "drop"]),
    st.integers(0, 1),
)
@settings(deadline=None, max_examples=150)
def test_window_gives_the_strings_of_each_token(sentences, unseen, how, offsets, pairs, triples, outside, column):
    transform, naive = how
    if transform is not None and transform.many:
        pairs = triples = []
    window = Window(column, offsets, pairs, triples, of=transform, name="f", outside=outside)
    features = TextFeatures([window, Window(0, (0,), name="always")])
    X = features.fit_transform(sentences)

    def expected(sentence, t):
        rows = [f"always[0]={sentence[t][0]}"]
        runs = [(o,) for o in offsets] + [(o, o + 1) for o in pairs] + [(o, o + 1, o + 2) for o in triples]
        for run in runs:
            values = [""]
            for o in run:
                inside = 0 <= t + o < len(sentence)
                text = text_at(sentence, t + o, column)
                here = naive(text) if inside else [text] if outside == "mark" else []
                values = [f"{before}|{value}" for before in values for value in here]
            rows += ["|".join(f"f[{o}]" for o in run) + "=" + value[1:] for value in values]
        return sorted(rows)

    want = [expected(s, t) for s in sentences for t in range(len(s))]
    assert list(map(sorted, rows_of(X.sparse, features.names()))) == want
    known = {name for row in want for name in row}
    Z = features.transform([unseen])
    got = list(map(sorted, rows_of(Z.sparse, features.names())))
    assert got == [[name for name in expected(unseen, t) if name in known] for t in range(len(unseen))]


PHRASES = [("New", "York"), ("New", "York", "City"), ("York",), ("the", "a"), ("a", "a")]


def longest_phrases(words, lower):
    phrases = {tuple(w.lower() for w in p) if lower else p for p in PHRASES}
    words = [w.lower() for w in words] if lower else words
    marks, t = [], 0
    while t < len(words):
        sizes = [k for k in (1, 2, 3) if t + k <= len(words) and tuple(words[t : t + k]) in phrases]
        marks += ["B-place"] + ["I-place"] * (max(sizes) - 1) if sizes else [None]
        t += max(sizes, default=1)
    return marks


@given(SENTENCES, st.booleans())
@settings(deadline=None)
def test_gazetteer_finds_the_longest_phrases(sentences, lower):
    phrases = [" ".join(p) if len(p) < 3 else list(p) for p in PHRASES]
    place = Gazetteer("place", phrases, lower=lower)
    features = TextFeatures([Window(0, (0,), of=place), Window(0, (0,), name="w")])
    X = features.fit_transform(sentences)
    want = []
    for sentence in sentences:
        words = [token[0] for token in sentence]
        for word, mark in zip(words, longest_phrases(words, lower), strict=True):
            want.append(sorted([f"w[0]={word}"] + ([f"0.gazetteerplace[0]={mark}"] if mark else [])))
    assert list(map(sorted, rows_of(X.sparse, features.names()))) == want


def test_join_and_ends():
    parts = [Join((0, -1), (1, 0, Lower())), Join((0, 0), (1, 0), name="both", edge=True), Ends("<", ">")]
    features = TextFeatures(parts)
    X = features.fit_transform([[("the", "DT"), ("dog", "NN")], [("go", "VB")]])
    assert rows_of(X.sparse, features.names()) == [
        ["0[-1]|1.lower[0]=_B-1|dt", "<"],
        ["0[-1]|1.lower[0]=the|nn", ">"],
        ["0[-1]|1.lower[0]=_B-1|vb", "<", ">"],
    ]
    assert rows_of(X.edge, features.names(edge=True)) == [[], ["both=dog|NN"], []]


def test_edges_of_many_values_skip_first_tokens():
    features = TextFeatures([Window(0, (0,)), Window(0, (0, -1), of=CharNGrams(3), name="c", edge=True)])
    X = features.fit_transform([["ab", "c"], ["d"]])
    assert [sorted(row) for row in rows_of(X.edge, features.names(edge=True))] == [
        [],
        ["c[-1]=^ab", "c[-1]=ab$", "c[0]=^c$"],
        [],
    ]


@pytest.mark.parametrize("part", [*(how[0] for how in TRANSFORMS if how[0]), Gazetteer("g", ["a b", "c"], lower=True)])
def test_descriptions_come_back(part):
    window = Window(1, (0, 1), of=part, outside="drop")
    again = restore(describe(window))
    assert describe(again) == describe(window)
    assert [d.literals for d in again.definitions] == [d.literals for d in window.definitions]
    join = Join((0, 1), (1, 0, Lower()), edge=True)
    assert restore(describe([join, Ends()])) == (join, Ends())
    with pytest.raises(ValueError, match="unknown kind 'Cellar'"):
        restore({"kind": "Cellar"})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Window(-1), "column of a Window"),
        (lambda: Window(0, "ab"), "offsets of a Window"),
        (lambda: Window(0, of="lower"), "Prefix"),
        (lambda: Window(0, outside="pad"), "'mark' or 'drop'"),
        (lambda: Window(0, bigrams=(0,), of=CharNGrams(2)), "no bigrams"),
        (lambda: Window(0, edge=1), "edge of a Window must be True or False, got 1"),
        (lambda: Join((0, 0), edge="no"), "edge of a Join must be True or False, got 'no'"),
        (lambda: Join(), "one or more"),
        (lambda: Join((0, 0), (0, 1, CharNGrams(2))), "cannot be joined"),
        (lambda: Prefix(0), "Prefix needs"),
        (lambda: Gazetteer("g", "New York"), "list of phrases"),
        (lambda: Gazetteer("g", ["a", " "]), "phrase 1"),
    ],
)
def test_errors(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()
