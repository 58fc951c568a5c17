"""Digit words: shapes, the grammar, disjoint images, and that defacing makes single images ambiguous."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.datasets import make_digit_words


def test_shapes_and_range():
    words = make_digit_words(30, n_test_words=12, lengths=(2, 5), random_state=0)
    assert (len(words.X_train), len(words.y_train), len(words.X_test), len(words.y_test)) == (30, 30, 12, 12)
    for X, y in ((words.X_train, words.y_train), (words.X_test, words.y_test)):
        for x, digits in zip(X, y, strict=True):
            assert x.shape == (len(digits), 64)
            assert 2 <= len(digits) <= 5
            assert x.min() >= 0.0 and x.max() <= 1.0
            assert x.dtype == np.float64 and digits.dtype == np.int64


@pytest.mark.parametrize("successors", [1, 3, 10])
def test_words_obey_the_grammar(successors):
    words = make_digit_words(60, successors=successors, random_state=1)
    assert np.allclose(words.transition.sum(axis=1), 1.0)
    assert ((words.transition > 0).sum(axis=1) == successors).all()
    assert np.isclose(words.start.sum(), 1.0)
    reach = np.linalg.matrix_power(np.eye(10) + (words.transition > 0), 10)
    assert (reach > 0).all()
    for y in (*words.y_train, *words.y_test):
        assert (words.transition[y[:-1], y[1:]] > 0).all()


def test_images_are_real_and_disjoint():
    from sklearn.datasets import load_digits

    digits = load_digits()
    place = {(image / 16.0).tobytes(): i for i, image in enumerate(digits.data)}
    words = make_digit_words(300, noise=0.0, blur=0.0, random_state=2)
    train = {place[row.tobytes()] for row in np.vstack(words.X_train)}
    test = {place[row.tobytes()] for row in np.vstack(words.X_test)}
    assert not train & test
    for X, y in ((words.X_train, words.y_train), (words.X_test, words.y_test)):
        assert [digits.target[place[row.tobytes()]] for row in np.vstack(X)] == np.concatenate(y).tolist()


def test_seed_decides_everything():
    first, again, other = (make_digit_words(5, random_state=seed) for seed in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(first.X_train, again.X_train, strict=True))
    assert not np.array_equal(first.transition, other.transition)


def test_defaced_images_are_ambiguous_and_the_grammar_helps():
    from sklearn.linear_model import LogisticRegression

    words = make_digit_words(200, random_state=0)
    clean = make_digit_words(200, noise=0.0, blur=0.0, random_state=0)
    accuracy = {}
    for name, w in (("clean", clean), ("defaced", words)):
        reader = LogisticRegression(max_iter=300).fit(np.vstack(w.X_train), np.concatenate(w.y_train))
        accuracy[name] = reader.score(np.vstack(w.X_test), np.concatenate(w.y_test))
    assert accuracy["clean"] > 0.92
    assert accuracy["defaced"] < accuracy["clean"] - 0.08
    # Knowing the digit before, without reading further, must already mend a good part of the errors.
    right = total = 0
    for x, y in zip(words.X_test, words.y_test, strict=True):
        prior = np.vstack([words.start, words.transition[y[:-1]]])
        right += (np.argmax(reader.predict_proba(x) * prior, axis=1) == y).sum()
        total += len(y)
    assert right / total > accuracy["defaced"] + 0.03


@pytest.mark.parametrize(
    "wrong", [{"n_words": 0}, {"lengths": (5, 2)}, {"lengths": (0, 2)}, {"successors": 11}, {"noise": -1.0}]
)
def test_errors(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make_digit_words(**wrong)
