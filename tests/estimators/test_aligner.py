"""The aligner from sentences and links to a saved model, as users would try it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import maxmargin as mm
from maxmargin.metrics import alignment_error_rate, alignment_report

WORDS = {
    "der": "the",
    "hund": "dog",
    "katze": "cat",
    "sieht": "sees",
    "kleine": "small",
    "alte": "old",
    "heute": "today",
}


def sentences(n, seed=0):
    """Pairs in which neighbours are sometimes swapped, and their links."""
    rng = np.random.default_rng(seed)
    pairs, links = [], []
    for _ in range(n):
        left = rng.choice(list(WORDS), size=rng.integers(2, 6), replace=False).tolist()
        order = np.arange(len(left))
        if rng.random() < 0.5:
            order[:2] = order[1::-1]
        pairs.append((" ".join(left), [WORDS[left[i]] for i in order]))
        links.append(" ".join(f"{i}-{j}" for j, i in enumerate(order)))
    return pairs, links


@pytest.fixture(scope="module")
def fitted():
    pairs, links = sentences(60)
    return mm.Aligner().fit(pairs[:30], links[:30], bitext=pairs[30:])


def test_links_are_learned_and_certified(fitted):
    pairs, links = sentences(60)
    found = fitted.predict(pairs[30:])
    assert alignment_error_rate(links[30:], found) < 0.1
    assert fitted.score(pairs[30:], links[30:]) == pytest.approx(1 - alignment_error_rate(links[30:], found))
    only = np.arange(30) == 4
    assert fitted.score(pairs[30:], links[30:], only) == fitted.score(pairs[34:35], links[34:35])
    assert fitted.certificate_.relative_gap <= 1e-3
    assert fitted.coef_.shape == (len(fitted.features_.names()),)
    left, right = fitted.prices_
    assert len(left) == 2 and left[0] == 0.0 and (np.diff(left) >= 0).all() and (np.diff(right) >= 0).all()
    assert fitted.predict([]) == []


def test_the_opinion_of_another_aligner(tmp_path):
    """What the features cannot tell, because nothing can be learned from a bitext of nonsense."""
    rng = np.random.default_rng(0)
    examples, links = [], []
    for _ in range(30):
        order = rng.permutation(4)
        links.append([(i, int(j)) for i, j in enumerate(order)])
        told = " ".join(f"{i}-{j}" for i, j in links[-1] if rng.random() < 0.9)
        examples.append((rng.choice(list("abcdefgh"), 4).tolist(), rng.choice(list("stuvwxyz"), 4).tolist(), told))
    features = mm.features.AlignmentFeatures(opinion=True)
    asked = mm.Aligner(features=features).fit(examples[:20], links[:20], bitext=[("p q", "r s")])
    alone = mm.Aligner().fit([one[:2] for one in examples[:20]], links[:20])
    assert asked.score(examples[20:], links[20:]) > 0.85 > alone.score([one[:2] for one in examples[20:]], links[20:])
    assert asked.features_.names()[-2:] == ["other aligner", "other aligner near"]
    assert dict(zip(asked.features_.names(), asked.coef_, strict=True))["other aligner"] > 0.5
    again = mm.load(asked.save(tmp_path / "m"))
    assert again.predict(examples) == asked.predict(examples)
    with pytest.raises(ValueError, match="example 0 lacks the links of the other aligner"):
        asked.predict([examples[0][:2]])
    with pytest.raises(ValueError, match=r"links of another aligner need AlignmentFeatures\(opinion=True\)"):
        alone.predict(examples)
    with pytest.raises(ValueError, match="example 1 links 0 to 9"):
        asked.predict([examples[0], (*examples[1][:2], "0-9")])
    with pytest.raises(ValueError, match="opinion is 'yes'"):
        mm.Aligner(features=mm.features.AlignmentFeatures(opinion="yes")).fit(examples, links)


def test_a_saved_aligner_predicts_the_same(fitted, tmp_path):
    pairs, _ = sentences(10, seed=3)
    again = mm.load(fitted.save(tmp_path / "aligner.mm"))
    assert again.predict(pairs) == fitted.predict(pairs)


def test_scikit_learn_tools_take_it():
    pairs, links = sentences(24)
    estimator = clone(mm.Aligner(C=0.5, max_links=(1, 2)))
    assert cross_val_score(estimator, pairs, links, cv=3).mean() > 0.7


def test_features_of_ones_own():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, m, 2)) for n, m in rng.integers(1, 6, (20, 2))]
    y = [[tuple(map(int, p)) for p in mm.inference.matching.best_matching(x[:, :, 0] - 0.5).links] for x in X]
    aligner = mm.Aligner(C=10.0, max_links=1).fit(X, y)
    assert aligner.features_ is None
    assert aligner.score(X, y) > 0.8
    with pytest.raises(ValueError, match="fitted with arrays"):
        aligner.predict([("a", "b")])
    with pytest.raises(ValueError, match="bitext is for"):
        mm.Aligner().fit(X, y, bitext=[("a", "b")])


def test_possible_links_are_neither_asked_for_nor_wrong():
    report = alignment_report(["0-0 1?1", "0-0"], [[(0, 0), (1, 1)], [(0, 1)]])
    assert (report.precision, report.recall) == (2 / 3, 0.5)
    assert report.error_rate == pytest.approx(1 - (1 + 2) / (3 + 2))
    assert alignment_error_rate(["0-0 1?1"], ["0-0"]) == 0.0


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([("a b", "c")], ["0-1"], "example 0 links 0 to 1"),
        ([("a b", "c")], ["0-0", "0-0"], "must agree"),
        ([("a b", "c"), "a"], ["0-0", "0-0"], "example 1"),
        ([], [], "empty"),
        ([("a b", "c")], ["x"], "example 0: 'x' is no link"),
        ([("a b", "c"), ("a " * 3000, "b " * 2000)], ["0-0", ""], "example 1 has sentences of 3000 and 2000 words"),
    ],
)
def test_what_is_wrong_is_named(X, y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        mm.Aligner().fit(X, y)


def test_gold_links_beyond_the_words_are_refused_in_scores(fitted):
    with pytest.raises(ValueError, match="example 1 links 5 to 0, but it has 1 and 1 words"):
        fitted.score([("das haus", "the house"), ("das", "the")], ["0-0 1-1", "5-0"])
    with pytest.raises(ValueError, match="features of example 1 are NaN or infinite"):
        mm.Aligner().fit([np.ones((1, 1, 2)), np.full((1, 1, 2), np.nan)], ["0-0", "0-0"])


def test_pairing_is_for_several_good_outputs():
    with pytest.raises(ValueError, match="pairing is 'nearest', which is for several good outputs"):
        mm.Aligner().fit([("a b", "c")], ["0-0"], pairing="nearest")


def test_runners_up_are_further_matchings(fitted):
    """The list begins with the prediction, its scores fall, and no set of links is there twice."""
    pairs, _ = sentences(5, seed=9)
    for best, ranked in zip(fitted.predict(pairs), fitted.predict_kbest(pairs, 4), strict=True):
        outputs, scores = zip(*ranked, strict=True)
        assert outputs[0] == best and len({tuple(links) for links in outputs}) == len(outputs) == 4
        assert list(scores) == sorted(scores, reverse=True)
    assert (fitted.predict_margin(pairs) >= 0.0).all()
