"""The ranker from lattices and reference sentences to a saved model, as users would try it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import maxmargin as mm
from maxmargin.datasets import Lattice
from maxmargin.estimators.lattice_sentences import arc_shares, bleu_cost, judged, n_gram_distance
from maxmargin.metrics import bleu, sentence_bleu
from reference.lattices import paths_of

WORDS = "a b c d e f g h".split()


def lists(n, seed=0, size=12):
    """n-best lists whose first feature is BLEU, with noise, and the references."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        truth = rng.choice(WORDS, 6).tolist()
        texts = []
        for _ in range(size):
            keep = rng.random(6) < rng.random()
            texts.append(" ".join(word if k else rng.choice(WORDS) for word, k in zip(truth, keep, strict=True)))
        right = np.array([sentence_bleu(text.split(), [truth]) for text in texts]) / 20
        noise = rng.normal(size=(size, 2))
        X.append(Lattice.from_nbest(texts, np.column_stack([right + 0.3 * noise[:, 0], noise[:, 1]])))
        y.append(" ".join(truth))
    return X, y


def sausages(n, seed=0):
    """Lattices with one right word in every place, whose feature says so, with noise."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        truth = rng.choice(WORDS, 5).tolist()
        tails = np.repeat(np.arange(5), 3)
        words = [word for true in truth for word in (true, *rng.choice(WORDS, 2))]
        right = np.tile([1.0, 0.0, 0.0], 5)
        order = rng.permutation(15)
        features = np.column_stack([right + rng.normal(scale=0.2, size=15), rng.normal(size=15)])
        X.append(Lattice(6, tails[order], tails[order] + 1, features[order], [words[e] for e in order]))
        y.append([" ".join(truth)])
    return X, y


SETTINGS = [
    {}, {"rescaling": "slack"}, {"rescaling": "unit"}, {"loss": "squared_hinge"}, {"loss": "ramp"}, {"penalty": "l1"},
    {"penalty": "l1", "n_good": 3}, {"penalty": "l1", "pairing": "nearest", "n_good": 3}, {"n_good": 2},
]  # fmt: skip


@pytest.mark.parametrize("words", SETTINGS, ids=str)
def test_every_formulation_learns_from_lists(words):
    X, y = lists(60)
    own = {name: value for name, value in words.items() if name != "pairing"}
    ranker = mm.LatticeRanker(tol=1e-2, **own).fit(X[:40], y[:40], pairing=words.get("pairing", "all"))
    assert ranker.certificate_.relative_gap <= 1e-2 or ranker.status_.code == "finished"
    first = bleu([x.words[0].split() for x in X[40:]], [[text.split()] for text in y[40:]]).score
    assert ranker.score(X[40:], y[40:]) > first + 15
    assert ranker.coef_[0] > abs(ranker.coef_[1])


@pytest.mark.parametrize("words", [{}, {"loss": "ramp"}, {"penalty": "l1", "rescaling": "margin"},
                                   {"penalty": "l1", "n_good": 1}], ids=str)  # fmt: skip
def test_lattices_are_learned(words):
    X, y = sausages(40)
    ranker = mm.LatticeRanker(tol=1e-2, **words).fit(X[:25], y[:25])
    assert ranker.score(X[25:], y[25:]) > 70
    text = ranker.predict(X[25:26])[0]
    (first, score), *others = ranker.predict_kbest(X[25:26], 7)[0]
    assert first == text and len({text, *(other for other, _ in others)}) == 7
    assert ranker.predict_margin(X[25:26])[0] == pytest.approx(score - others[0][1])


@pytest.fixture(scope="module")
def fitted():
    return mm.LatticeRanker().fit(*lists(30))


def test_a_saved_ranker_predicts_the_same(fitted, tmp_path):
    X, y = lists(10, seed=3)
    again = mm.load(fitted.save(tmp_path / "ranker.mm"))
    assert again.predict(X) == fitted.predict(X) and again.score(X, y) == fitted.score(X, y)


def test_a_cost_function_is_asked_for_again_after_loading(tmp_path):
    X, y = lists(10, seed=3)
    own = mm.LatticeRanker(cost=lambda words, right: float(len(words))).fit(X, y)
    again = mm.load(own.save(tmp_path / "own.mm"))
    assert again.predict(X) == own.predict(X) and again.score(X, y) == own.score(X, y)
    with pytest.raises(ValueError, match=r"give it again with set_params"):
        again.fit(X, y)
    again.set_params(cost=own.cost).fit(X, y)
    np.testing.assert_allclose(again.coef_, own.coef_)


def test_scores_are_bleu_and_weights_are_repetitions(fitted):
    X, y = lists(10, seed=4)
    found = [text.split() for text in fitted.predict(X)]
    assert fitted.score(X, y) == pytest.approx(bleu(found, [[text.split()] for text in y]).score)
    weight = np.arange(10) % 3
    again = [i for i in range(10) for _ in range(weight[i])]
    assert fitted.score(X, y, weight) == pytest.approx(fitted.score([X[i] for i in again], [y[i] for i in again]))
    assert fitted.predict([]) == [] and fitted.predict_kbest([], 3) == []


def test_scikit_learn_tools_take_it():
    X, y = lists(24)
    assert cross_val_score(clone(mm.LatticeRanker(C=0.5)), X, y, cv=3).mean() > 30


def test_sample_weights_are_repetitions():
    X, y = lists(12)
    weight = np.arange(12) % 3
    again = [i for i in range(12) for _ in range(weight[i])]
    for words in ({}, {"n_good": 2}):
        one = mm.LatticeRanker(tol=1e-7, **words).fit(X, y, weight)
        two = mm.LatticeRanker(tol=1e-7, **words).fit([X[i] for i in again], [y[i] for i in again])
        assert one.certificate_.primal == pytest.approx(two.certificate_.primal, rel=1e-6)


def test_a_cost_of_ones_own():
    X, _ = lists(20)
    ranker = mm.LatticeRanker(cost=lambda words, references: float(words[0] != "a"), C=10.0)
    ranker.fit(X, ["a"] * 20)
    target = judged(X[0], [["a"]], lambda words, references: float(words[0] != "a"), 1, 0).target
    np.testing.assert_array_equal(target.costs, [float(text[0] != "a") for text in X[0].words])


def test_costs_of_arcs_and_good_paths_are_targets_too():
    X, y = lists(20)
    costs = [
        np.array([bleu_cost(text.split(), [ref.split()]) for text in x.words]) for x, ref in zip(X, y, strict=True)
    ]
    by_costs, by_text = mm.LatticeRanker(tol=1e-6).fit(X, costs), mm.LatticeRanker(tol=1e-6).fit(X, y)
    assert by_costs.certificate_.primal == pytest.approx(by_text.certificate_.primal, rel=1e-5)
    assert -1.0 <= by_costs.score(X, costs) <= 0.0
    lattices, refs = sausages(20)
    paths = [x.path_of(ref[0]) for x, ref in zip(lattices, refs, strict=True)]
    assert mm.LatticeRanker().fit(lattices, paths).score(lattices, refs) > 70
    assert mm.LatticeRanker().fit(lattices, [set(path) for path in paths]).score(lattices, refs) > 70


def test_costs_of_the_score_are_those_of_training():
    """A list of floats is costs of arcs, not arcs; texts, paths and costs may stand side by side."""
    ladder = Lattice(3, [0, 0, 1, 1], [1, 1, 2, 2], np.eye(4)[:, :2] + 1.0, list("abcd"))
    ranker = mm.LatticeRanker().fit([ladder] * 2, [[0, 2]] * 2)
    chosen = ladder.path_of(ranker.predict([ladder])[0])
    costs = np.array([0.5, 2.0, 1.0, 3.0])
    expected = costs[chosen].sum() - 1.5
    assert ranker.score([ladder], [costs]) == ranker.score([ladder], [costs.tolist()]) == -expected
    assert ranker.score([ladder], [mm.models.lattice_targets.Target(costs, np.array([0, 2]))]) == -expected
    apart = len(set(chosen) - {1, 3})
    for target in ([1, 3], np.array([1, 3]), [[1, 3]], [np.array([1, 3])], {1, 3}):
        assert ranker.score([ladder], [target]) == -apart
    mixed = ranker.score([ladder] * 3, [costs, [1, 3], "a c"])
    arcs = judged(ladder, [["a", "c"]], bleu_cost, 1, 2).target.costs
    text = arcs[chosen].sum() - arcs[[0, 2]].sum()
    assert mixed == pytest.approx(-(expected + apart + text) / 3)
    mm.LatticeRanker().fit([ladder] * 3, [costs, [1, 3], "a c"])
    for target in ([[0, [2]]], [[0, 2], 3], [[0.5, 1.0]], np.zeros((2, 2))):
        with pytest.raises(TypeError, match="the target of example 1 is"):
            ranker.score([ladder] * 2, [[0, 2], target])


def test_several_good_outputs_are_found_or_given():
    """The outputs of least cost, whatever the kind of target; further ones are references, as in other estimators."""
    X, y = lists(20)
    costs = [
        np.array([bleu_cost(text.split(), [ref.split()]) for text in x.words]) for x, ref in zip(X, y, strict=True)
    ]
    found = mm.LatticeRanker(n_good=2, tol=1e-6).fit(X, y).certificate_.primal
    assert mm.LatticeRanker(n_good=2, tol=1e-6).fit(X, costs).certificate_.primal == pytest.approx(found, rel=1e-5)
    good = []
    for x, cost in zip(X, costs, strict=True):
        ranked = dict.fromkeys(x.words[e] for e in np.argsort(cost, kind="stable"))
        good.append(list(ranked)[:2])
    paths = [x.path_of(texts[0]) for x, texts in zip(X, good, strict=True)]
    for references in ([texts[1:] for texts in good], [[x.path_of(t[1])] for x, t in zip(X, good, strict=True)]):
        for first in (paths, [np.array(path) for path in paths]):
            given = mm.LatticeRanker(tol=1e-6).fit(X, first, references=references)
            assert given.certificate_.primal == pytest.approx(found, rel=1e-5)
    with pytest.raises(ValueError, match="20 lattices and references has 19"):
        mm.LatticeRanker().fit(X, y, references=[[]] * 19)


def test_a_function_is_no_cost_of_the_arcs_of_a_lattice():
    X, y = sausages(6)
    own = mm.LatticeRanker(cost=lambda words, right: sum(w not in right[0] for w in words))
    with pytest.raises(ValueError, match="example 0 is no list"):
        own.fit(X, y)
    assert own.set_params(n_good=1).fit(X, y).score(X, y) > 50


def test_too_many_best_outputs_are_refused(fitted):
    X, _ = lists(1)
    with pytest.raises(ValueError, match="ask for a smaller k"):
        fitted.predict_kbest(X, 2**40)


# --- from references to costs ----------------------------------------------------------------------------------------


def test_costs_of_lists_are_those_of_their_texts():
    X, y = lists(5)
    for x, ref in zip(X, y, strict=True):
        found = judged(x, [ref.split(), ["a"]], bleu_cost, 3, 0)
        expected = [1 - sentence_bleu(text.split(), [ref.split(), ["a"]]) / 100 for text in x.words]
        np.testing.assert_allclose(found.target.costs, expected)
        texts = [x.text(path.tolist()) for path in found.good]
        assert len(set(texts)) == 3
        ranked = sorted(dict(zip(x.words, expected, strict=True)).values())
        np.testing.assert_allclose([expected[path[0]] for path in found.good], ranked[:3])


def test_a_reference_in_the_lattice_is_the_good_path_and_costs_nothing():
    X, y = sausages(10)
    for x, refs in zip(X, y, strict=True):
        found = judged(x, [refs[0].split()], bleu_cost, 1, 0)
        assert x.text(found.target.path.tolist()) == refs[0]


def test_a_wrong_word_too_many_costs_as_much_as_one_that_is_missing():
    """By hand: of the words of the good path all n-grams are right, price 1/2; or 4/3 of 4, price 1/6."""
    x = Lattice(
        5, [0, 1, 2, 3, 3, 2, 2], [1, 2, 3, 4, 4, 4, 3], np.ones((7, 1)), ["a", "b", "c", "d", "x", "c x", ""]
    )  # fmt: skip
    for right, costs in (
        ("a b c d", np.array([-1 / 2, -1 / 2, -1 / 2, -1 / 2, 1 / 2, 0, 0]) / 4),
        ("a q c e q f", np.array([1 / 6 - 1, 1 / 6, 1 / 6 - 1 / 3, 1 / 6, 1 / 6, 0, 0]) / 6),
    ):
        target = judged(x, [right.split()], bleu_cost, 1, 0).target
        np.testing.assert_allclose(target.costs, costs, atol=1e-15)
        n, own = len(x.text(target.path.tolist()).split()), -target.costs[target.path].sum()
        assert n == 4 and own / n == pytest.approx(costs[4])


def test_shares_count_the_n_grams_as_far_back_as_all_paths_agree():
    """By the definition, over all paths: what is known before an arc is the common end of all paths to it."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        x = sausages(1, seed)[0][0] if seed % 2 else Lattice(
            4, [0, 0, 1, 2, 1], [1, 2, 3, 3, 3], rng.normal(size=(5, 1)), ["a b", "c b", "c", "d b", "a b c"]
        )  # fmt: skip
        references = [rng.choice(WORDS[:4], 6).tolist() for _ in range(2)]
        grams = {tuple(r[i:j]) for r in references for i in range(6) for j in range(i + 1, 7) if j - i <= 4}
        before = {}
        for path in paths_of(x):
            for p, e in enumerate(path):
                before.setdefault(e, []).append(" ".join(x.words[a] for a in path[:p]).split())
        shares = arc_shares(x, references)
        for e, cost in enumerate(shares.costs(0.3)):
            common = []
            for column in zip(*(words[::-1][:3] for words in before[e]), strict=False):
                if len(set(column)) > 1:
                    break
                common.insert(0, column[0])
            said, expected = common + x.words[e].split(), 0.0
            for end in range(len(common) + 1, len(said) + 1):
                sizes = range(1, min(4, end) + 1)
                expected += sum(tuple(said[end - n : end]) in grams for n in sizes) / len(sizes) - 0.3
            assert cost == pytest.approx(-expected / 6, abs=1e-12)


def test_distance_of_outputs():
    assert n_gram_distance(np.array([1, 2, 3]), np.array([1, 2, 3])) == 0.0
    assert n_gram_distance(np.array([1, 2]), np.array([3])) == 1.0
    assert n_gram_distance(np.array([1, 2]), np.array([2, 1])) == pytest.approx(1 - 4 / 6)
    assert n_gram_distance(np.array([], int), np.array([], int)) == 0.0


# --- what is wrong ---------------------------------------------------------------------------------------------------

ONE = Lattice.from_nbest(["a", "b"], [[1.0], [2.0]])


@pytest.mark.parametrize(
    ("words", "X", "y", "message"),
    [
        ({}, [ONE], ["a", "b"], "1 lattices and y has 2"),
        ({}, [ONE], "a", "give the target of each lattice"),
        ({}, ONE, ["a"], "give a list of lattices"),
        ({}, [ONE, "x"], ["a", "b"], "example 1 is a str"),
        ({}, [ONE], [[]], "example 0 has no right sentence"),
        ({}, [ONE], [None], "the target of example 0 is None"),
        ({}, [ONE], [set()], "example 0 has no good path"),
        ({"cost": "ter"}, [ONE], ["a"], "cost is 'ter'"),
        ({"cost": lambda words, references: "x"}, [ONE], ["a"], "example 0: the cost of 'a' is 'x'"),
        ({"cost": lambda words, references: np.nan}, [ONE], ["a"], "example 0: the cost"),
        ({"n_good": 0}, [ONE], ["a"], "n_good is 0"),
        ({"n_good": 1, "pairing": "some"}, [ONE], ["a"], "pairing must be"),
        ({"pairing": "nearest"}, [ONE], ["a"], "pairing is 'nearest', which is for several good outputs"),
        ({"n_good": 1, "loss": "ramp"}, [ONE], ["a"], "margins of 1"),
        ({"n_good": 1}, [Lattice.from_nbest(["a", "a"], [[1.0], [2.0]])], ["a"], "nothing to learn"),
        ({"loss": "ramp", "penalty": "l1"}, [ONE], ["a"], "linear program"),
    ],
)
def test_what_is_wrong_is_named(words, X, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        mm.LatticeRanker(**{n: v for n, v in words.items() if n != "pairing"}).fit(
            X, y, pairing=words.get("pairing", "all")
        )


def test_lattices_with_other_features_are_refused(fitted):
    with pytest.raises(ValueError, match="example 0 lacks the feature '1'"):
        fitted.predict([ONE])
    with pytest.raises(ValueError, match="k must be"):
        fitted.predict_kbest([ONE], 0)
