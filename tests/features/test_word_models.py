"""Alignment models against enumeration of all alignments, and the features made of them."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from maxmargin.features import AlignmentFeatures
from maxmargin.features.word_models import ABSENT, learn
from maxmargin.features.word_models_kernel import REACH

PAIRS = [
    ("das haus".split(), "the house".split()),
    ("das buch".split(), "the book".split()),
    ("ein buch".split(), "a book".split()),
    ("das kleine haus".split(), "the small house".split()),
]


def enumerated(n, m, t, null, jump):
    """Posteriors of the hidden Markov model by the sum over all alignments of m words to n partners or none."""
    total, found = 0.0, np.zeros((n, m))
    for states in product(range(2 * n), repeat=m):  # k >= n: none, and k - n is remembered
        p = 1.0
        for j, k in enumerate(states):
            before = -1 if j == 0 else states[j - 1] % n
            if k >= n:
                p *= ABSENT * null[j] * (1.0 / n if j == 0 else float(k - n == before))
            else:
                row = np.array([jump[min(max(i - before, -REACH), REACH) + REACH] for i in range(n)])
                p *= (1 - ABSENT) * row[k] / row.sum() * t[k, j]
        total += p
        for j, k in enumerate(states):
            if k < n:
                found[k, j] += p
    return found / total


def test_posteriors_are_those_of_enumeration():
    models = learn(PAIRS, 2)
    bitext = models.lexicon.read(PAIRS[3:])
    right, left = models.posteriors(bitext, "markov")
    translation, jumps = models.markov
    t = [models.lexicon.of_cells(bitext, row).reshape(3, 3) for row in translation.pairs]
    none = translation.none_right[bitext.right_words], translation.none_left[bitext.left_words]
    np.testing.assert_allclose(right.reshape(3, 3), enumerated(3, 3, t[0], none[0], jumps[0]), atol=1e-10)
    np.testing.assert_allclose(left.reshape(3, 3).T, enumerated(3, 3, t[1].T, none[1], jumps[1]), atol=1e-10)
    one = models.posteriors(bitext, "one")[0].reshape(3, 3)
    t = models.lexicon.of_cells(bitext, models.one.translation.pairs[0]).reshape(3, 3)
    none = models.one.translation.none_right
    np.testing.assert_allclose(one, t / (t.sum(axis=0) + none[bitext.right_words]), atol=1e-10)


def likelihood(models, pairs):
    """Log-likelihood of the right words given the left ones by model 2, and its posteriors, word by word."""
    translation, places = models.two
    total, posteriors = 0.0, []
    for left, right in pairs:
        bitext = models.lexicon.read([(left, right)])
        n, m = len(left), len(right)
        t = models.lexicon.of_cells(bitext, translation.pairs[0]).reshape(n, m)
        found = np.zeros((n, m))
        for j in range(m):
            place = [places[0, 10 + round(10 * ((i + 0.5) / n - (j + 0.5) / m))] for i in range(n)]
            parts = [(1 - ABSENT) * place[i] / sum(place) * t[i, j] for i in range(n)]
            chance = sum(parts) + ABSENT * translation.none_right[models.lexicon.right[right[j]]]
            found[:, j] = np.array(parts) / chance
            total += np.log(chance)
        posteriors.append(found)
    return total, posteriors


def test_model_2_knows_where_partners_are():
    pairs = [*PAIRS, ("das kleine alte haus".split(), "the house".split())]
    models = learn(pairs, 3)
    bitext = models.lexicon.read(pairs)
    right, left = models.posteriors(bitext, "two")
    for s, found in enumerate(likelihood(models, pairs)[1]):
        np.testing.assert_allclose(bitext.table(right, s), found, atol=1e-9)
        assert bitext.table(left, s).sum(axis=1).max() <= 1.0
    assert models.two.places[0].argmax() == REACH  # on the diagonal


def test_directions_by_themselves_raise_the_likelihood():
    pairs = [*PAIRS * 3, ("ein kleines buch".split(), "a small book".split())]
    alone = [likelihood(learn(pairs, k, agree=False), pairs)[0] for k in range(1, 7)]
    assert (np.diff(alone) > 0.0).all()
    assert learn(pairs, 6).two.translation.pairs.tolist() != learn(pairs, 6, agree=False).two.translation.pairs.tolist()


def test_words_find_their_partners():
    models = learn(PAIRS * 3, 5)
    bitext = models.lexicon.read([PAIRS[3]])
    both = models.posteriors(bitext, "markov").prod(axis=0).reshape(3, 3)
    assert both.argmax(axis=1).tolist() == [0, 1, 2]


def test_unknown_words_and_empty_sentences_are_no_trouble():
    features = AlignmentFeatures().fit(PAIRS)
    found = features.transform([("zwei autos", "the car"), ("", "the"), ("das", "")])
    assert [x.shape[:2] for x in found] == [(2, 2), (0, 1), (1, 0)]
    assert all(np.isfinite(x).all() for x in found)
    assert found[0].shape[2] == len(features.names())


def test_features_say_what_they_are_called():
    features = AlignmentFeatures().fit(PAIRS)
    x = features.transform([("das Haus 12 !", "the Haus 12 house")])[0]
    at = {name: k for k, name in enumerate(features.names())}
    assert x[1, 1, at["same word"]] == 1.0 and x[0, 0, at["same word"]] == 0.0
    assert x[2, 2, at["both numbers"]] == 1.0
    assert x[3, 0, at["one punctuation"]] == 1.0
    assert x[1, 3, at["dice"]] == pytest.approx(1.0)  # haus and house always come together
    assert x[0, 2, at["distance"]] == pytest.approx(0.5)


def test_forms_of_a_word_share_their_beginning():
    features = AlignmentFeatures().fit(PAIRS)
    x = features.transform([("hausboot", "household")])[0][0, 0]
    at = {name: k for k, name in enumerate(features.names())}
    assert x[at["unknown pair"]] == 1.0 and x[at["unknown pair, beginnings"]] == 0.0
    assert x[at["dice"]] == 0.0 and x[at["dice, beginnings"]] == pytest.approx(1.0)
    without = AlignmentFeatures(letters=0).fit(PAIRS)
    assert without.names() == features.names()[:27]
    for a, b in zip(without.transform(PAIRS), features.transform(PAIRS), strict=True):
        np.testing.assert_array_equal(a, b[:, :, :27])
    arrays, _ = without.to_state()
    assert not any(name.startswith("beginnings") for name in arrays)
    with pytest.raises(ValueError, match="letters is -1"):
        AlignmentFeatures(letters=-1).fit(PAIRS)


def test_states_are_kept_and_damaged_ones_are_refused():
    features = AlignmentFeatures(3).fit(PAIRS)
    arrays, facts = features.to_state()
    again = AlignmentFeatures.from_state(arrays, facts)
    for a, b in zip(features.transform(PAIRS), again.transform(PAIRS), strict=True):
        np.testing.assert_array_equal(a, b)
    for name in arrays:
        with pytest.raises(ValueError, match="stored alignment features"):
            AlignmentFeatures.from_state(arrays | {name: arrays[name][:-1]}, facts)
    for name in ("one.pairs", "two.places", "left_count"):
        with pytest.raises(ValueError, match=name):
            AlignmentFeatures.from_state(arrays | {name: arrays[name] * np.nan}, facts)
    with pytest.raises(ValueError, match="word pairs"):
        AlignmentFeatures.from_state(arrays | {"keys": arrays["keys"][::-1]}, facts)
    with pytest.raises(ValueError, match="version"):
        AlignmentFeatures.from_state(arrays, facts | {"version": 1})


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "X is empty"),
        ("text", "give pairs of sentences"),
        (["das haus"], "example 0 is 'das haus'"),
        ([("a", "b"), ("a",)], "example 1"),
        ([("a", 3)], "example 0 has the sentence 3"),
        ([("a", ["b", None])], "example 0 has the word None"),
    ],
)
def test_what_is_wrong_is_named(X, message):
    with pytest.raises((TypeError, ValueError), match=message):
        AlignmentFeatures().fit(X)


def test_iterations_are_checked():
    with pytest.raises(ValueError, match="iterations is 0"):
        AlignmentFeatures(0).fit(PAIRS)


def test_the_same_text_gives_the_same_features_in_every_process():
    code = (
        "import hashlib, numpy as np\n"
        "from maxmargin.features import AlignmentFeatures\n"
        "pairs = [('der kleine hund sieht die katze', 'the small dog sees the cat'), ('die katze', 'the cat')]\n"
        "print(hashlib.sha256(AlignmentFeatures().fit(pairs).transform(pairs)[0].tobytes()).hexdigest())\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, text=True, stdout=subprocess.PIPE
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1 and len(found.pop()) == 65
