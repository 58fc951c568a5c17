"""A vocabulary from parts that count by themselves is that of all sentences, in numbers and names."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from features.naive import template_features
from maxmargin.features.extractor import TextFeatures, renumbered
from maxmargin.features.window import CharNGrams, Ends, Suffix, Window

LINES = ["U00:%x[0,0]", "U01:%x[-1,0]/%x[0,1]", "U02:%x[-1,1]/%x[0,1]/%x[1,1]", "B00:%x[0,1]", "B01:%x[-1,0]/%x[0,0]"]


def sentences(n=80, seed=0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 9, n)
    return [[(f"w{rng.zipf(1.6)}", f"t{rng.integers(3)}") for _ in range(size)] for size in sizes]


def in_parts(features, X, cuts):
    """The features of sentences that are cut there, as the parts make them."""
    parts = [features.count(X[a:b]) for a, b in pairwise(cuts)]
    numbers = features.fit_counts((vocabulary, made.n_tokens) for vocabulary, made in parts)
    widths = features.n_features_, features.n_edge_features_
    return [renumbered(made, own, *widths) for (_, made), own in zip(parts, numbers, strict=True)]


@pytest.mark.parametrize("min_count", [1, 2])
def test_numbers_fall_with_counts_then_follow_definitions_and_tokens(min_count):
    """The order by a loop over tokens in plain Python."""
    X = sentences()
    features = TextFeatures("\n".join(LINES) + "\n", min_count=min_count)
    in_parts(features, X, [0, 13, 13, 50, 80])
    for edge in (False, True):
        counts, first, token = Counter(), {}, 0
        for sentence in X:
            for t in range(len(sentence)):
                for line in LINES:
                    for name in template_features([line], sentence, t, edge):
                        counts[name] += 1
                        first.setdefault(name, (LINES.index(line), token))
                token += 1
        kept = [name for name in counts if counts[name] >= min_count]
        assert features.names(edge=edge) == sorted(kept, key=lambda name: (-counts[name], first[name]))


TEMPLATES = {
    "template": "\n".join(LINES) + "\n",
    "shared names": "U:%x[-1,0]\nU:%x[0,0]\nU:%x[1,0]\nB\n",
    "windows": [Window(0, bigrams=(-1, 0)), Window(0, (-1, 0, 1), of=Suffix(1), name="s"), Ends()],
    "lists": [Window(0, (-1, 0), of=CharNGrams(2), name="grams"), Window(1)],
}


@pytest.mark.parametrize("min_count", [1, 3])
@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_parts_do_not_show(template, min_count):
    X = sentences(seed=3)
    whole = TextFeatures(template, min_count=min_count)
    wanted = whole.fit_transform(X)
    for cuts in ([0, 80], [0, 0, 40, 80], [0, *range(1, 81)]):
        features = TextFeatures(template, min_count=min_count)
        made = in_parts(features, X, cuts)
        assert features.names() == whole.names()
        assert features.names(edge=True) == whole.names(edge=True)
        for kind in ("sparse", "edge"):
            wanted_rows, rows = vars(wanted)[kind], [vars(part)[kind] for part in made]
            if wanted_rows is None:
                assert rows == [None] * len(rows)
                continue
            np.testing.assert_array_equal(np.concatenate([part.indices for part in rows]), wanted_rows.indices)
            lengths = np.concatenate([np.diff(part.indptr) for part in rows])
            np.testing.assert_array_equal(lengths, np.diff(wanted_rows.indptr))
            assert {part.shape[1] for part in rows} == {wanted_rows.shape[1]}


def test_hashed_parts_have_their_numbers_already():
    X, features = sentences(), TextFeatures("U:%x[0,0]\nB:%x[0,1]\n", hashing=50)
    wanted = TextFeatures("U:%x[0,0]\nB:%x[0,1]\n", hashing=50).fit_transform(X)
    made = in_parts(features, X, [0, 30, 80])
    np.testing.assert_array_equal(np.concatenate([part.sparse.indices for part in made]), wanted.sparse.indices)
    np.testing.assert_array_equal(np.concatenate([part.edge.indices for part in made]), wanted.edge.indices)


def test_numbers_do_not_depend_on_how_many_tokens_are_read_at_once(monkeypatch):
    from maxmargin.features import extractor

    X = sentences(seed=5)
    for template in TEMPLATES.values():
        names = TextFeatures(template).fit(X).names()
        monkeypatch.setattr(extractor, "AT_ONCE", 20)
        assert TextFeatures(template).fit(X).names() == names
        monkeypatch.undo()


def test_too_rare_features_are_refused():
    features = TextFeatures("U:%x[0,0]\n", min_count=9)
    with pytest.raises(ValueError, match="no feature occurs min_count"):
        in_parts(features, [[("a", "b")], [("a", "b")]], [0, 1, 2])
