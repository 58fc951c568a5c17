"""Explanations add up to the difference of the scores, and tables of weights hold the weights."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from reference.problems import chain_features, random_chains

X, Y = random_chains(8, 3, 2, lengths=(2, 4), seed=5)
LABELS = ["a", "b", "c"]
NAMED = [[LABELS[k] for k in y] for y in Y]
WORDS = [["the", "dog", "ran"], ["a", "dog"], ["the", "cat", "sat", "down"]]
TAGS = [["D", "N", "V"], ["D", "N"], ["D", "N", "V", "R"]]
TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,0]\nB00:%x[0,0]\n"

KINDS = {
    "dense": (X, {}),
    "sparse": ([sp.csr_array(x) for x in X], {}),
    "both": ([{"sparse": sp.csr_array(x[:, :1]), "dense": x[:, 1:]} for x in X], {}),
    "observed": ([sp.csr_array(x) for x in X], {"weights": "observed"}),
    "observed and dense": (
        [{"sparse": sp.csr_array(x[:, :1]), "dense": x[:, 1:]} for x in X],
        {"weights": "observed"},
    ),
    "ends": (X, {"ends": True}),
    "edge": ([{"dense": x, "edge": np.abs(x[1:])} for x in X], {"ends": True}),
}


def total(rows):
    return sum(row["contribution"] for row in rows)


@pytest.fixture(scope="module", params=list(KINDS))
def fitted(request):
    inputs, options = KINDS[request.param]
    return mm.SequenceTagger(C=0.5, **options).fit(inputs, NAMED), inputs


def test_contributions_add_up_to_the_difference_of_all_pairs_of_labellings(fitted):
    tagger, inputs = fitted
    for x in inputs[:3]:
        length = x.shape[0] if not isinstance(x, dict) else next(iter(x.values())).shape[0]
        scored = tagger.predict_kbest([x], 3**length)[0]
        assert len(scored) == 3**length
        (first, top), *rest = scored
        for labels, score in rest[:: max(1, len(rest) // 12)]:
            assert total(tagger.explain(x, first, labels)) == pytest.approx(top - score, abs=1e-9)
            assert total(tagger.explain(x, labels, first)) == pytest.approx(score - top, abs=1e-9)


def test_default_is_the_prediction_against_the_runner_up(fitted):
    tagger, inputs = fitted
    for x, margin in zip(inputs, tagger.predict_margin(inputs), strict=True):
        rows = tagger.explain(x)
        assert total(rows) == pytest.approx(margin, abs=1e-9)
        sizes = [abs(row["contribution"]) for row in rows]
        assert sizes == sorted(sizes, reverse=True) and all(sizes)


@pytest.mark.parametrize("ends", [False, True])
def test_scores_are_products_with_joint_features(ends):
    tagger = mm.SequenceTagger(C=0.5, ends=ends).fit(X, Y)
    groups = tagger.layout_.groups(tagger.weights_)
    w = np.concatenate([groups[n].ravel() for n in ("dense", "transition", "start", "end") if n in groups])
    x = X[0]
    for y, other in product(product(range(3), repeat=len(x)), [(0,) * len(x), (2, *(1,) * (len(x) - 1))]):
        expected = w @ (chain_features(x, y, 3, ends=ends) - chain_features(x, other, 3, ends=ends))
        assert total(tagger.explain(x, list(y), list(other))) == pytest.approx(expected, abs=1e-9)


def test_best_other_labelling_when_the_given_one_is_not_the_best(fitted):
    tagger, inputs = fitted
    (best, top), (second, score) = tagger.predict_kbest(inputs[:1], 2)[0]
    assert total(tagger.explain(inputs[0], second)) == pytest.approx(score - top, abs=1e-9)
    assert tagger.explain(inputs[0], second, second) == [] and best != second


def test_text_is_explained_with_the_names_of_its_features(tmp_path):
    tagger = mm.SequenceTagger(features=mm.TextFeatures(TEMPLATE), C=10.0, ends=True).fit(WORDS, TAGS)
    rows = tagger.explain(WORDS[0], TAGS[0], ["D", "V", "V"])
    scores = {tuple(labels): score for labels, score in tagger.predict_kbest(WORDS[:1], 64)[0]}
    assert total(rows) == pytest.approx(scores["D", "N", "V"] - scores["D", "V", "V"], abs=1e-9)
    assert {(row["position"], row["feature"]) for row in rows} <= {
        (1, "U00:dog"),
        (1, "U01:the"),
        (1, "B00:dog"),
        (2, "B00:ran"),
        (1, "transition"),
        (2, "transition"),
    }
    assert {row["label"] for row in rows if row["feature"] == "B00:dog"} <= {("D", "N")}
    tagger.features = None  # parameters of the extractor are not stored, the extractor is
    again = mm.load(tagger.save(tmp_path / "m.mm"))
    assert again.explain(WORDS[0], TAGS[0], ["D", "V", "V"]) == rows


def test_table_holds_every_weight_that_is_not_zero(fitted):
    tagger, _ = fitted
    rows = tagger.coef_table()
    groups = tagger.layout_.groups(tagger.weights_)
    expected = {}
    for group, first in (("sparse", 0), ("dense", tagger.layout_.n_sparse)):
        if group in groups:
            block = groups[group]
            block = block.toarray() if sp.issparse(block) else block
            expected |= {(f"x{first + f}", LABELS[k]): v for (f, k), v in np.ndenumerate(block)}
    expected |= {("transition", (LABELS[i], LABELS[j])): v for (i, j), v in np.ndenumerate(groups["transition"])}
    for group in ("start", "end"):
        expected |= {(group, LABELS[k]): v for k, v in enumerate(groups.get(group, []))}
    if "edge" in groups:
        expected |= {(f"edge x{f}", (LABELS[i], LABELS[j])): v for (f, i, j), v in np.ndenumerate(groups["edge"])}
    assert {(r["feature"], r["label"]): r["weight"] for r in rows} == {k: v for k, v in expected.items() if v}
    sizes = [abs(r["weight"]) for r in rows]
    assert sizes == sorted(sizes, reverse=True)
    assert [abs(r["weight"]) for r in tagger.coef_table(top=3)] == sizes[:3]
    of_b = [r for r in rows if r["label"] == "b"]
    assert [r["weight"] for r in tagger.coef_table(label="b")] == [r["weight"] for r in of_b]
    assert tagger.coef_table(top=2, label="b") == tagger.coef_table(label="b")[:2]


def test_names_of_hashed_and_dict_features():
    hashed = mm.SequenceTagger(features=mm.TextFeatures("U:%x[0,0]\n", hashing=50)).fit(WORDS, TAGS)
    assert all(row["feature"].startswith(("x", "transition")) for row in hashed.coef_table())
    dicts = [[{"word": word} for word in sentence] for sentence in WORDS]
    tagger = mm.SequenceTagger(C=10.0).fit(dicts, TAGS)
    assert "word=dog" in {row["feature"] for row in tagger.coef_table()}
    assert total(tagger.explain(dicts[0])) == pytest.approx(tagger.predict_margin(dicts[:1])[0], abs=1e-9)


def test_errors_say_what_to_do():
    tagger = mm.SequenceTagger().fit(X, NAMED)
    with pytest.raises(ValueError, match="y has 1 labels and x has"):
        tagger.explain(X[0], ["a"])
    with pytest.raises(ValueError, match="label 'z'"):
        tagger.explain(X[0], ["z"] * len(X[0]))
    with pytest.raises(TypeError, match="one string"):
        tagger.explain(X[0], "ab")
    with pytest.raises(ValueError, match="5 features per token; the model was fitted with 2"):
        tagger.explain(np.zeros((2, 5)), ["a", "b"], ["b", "b"])
    with pytest.raises(ValueError, match="no label 'z'"):
        tagger.coef_table(label="z")
    with pytest.raises(ValueError, match="top must be"):
        tagger.coef_table(top=0)
    with pytest.raises(ValueError, match="not fitted"):
        mm.SequenceTagger().coef_table()
    single = mm.SequenceTagger().fit([np.ones((1, 1))], [["only"]])
    with pytest.raises(ValueError, match="no other labelling"):
        single.explain(np.ones((1, 1)))
