"""The translation bench: every part against brute force or numbers worked out by hand."""

from __future__ import annotations

import itertools
import lzma
import math
import re
import sys
from collections import Counter

import numpy as np
import pytest

from maxmargin.metrics.translation import bleu_of, bleu_statistics


@pytest.fixture(scope="module")
def bench(experiment):
    return lambda name: experiment("translation", name)


# --- phrases ----------------------------------------------------------------------------------------------------------


def consistent_spans(links, n, m, longest):
    """Rows of all consistent pairs of spans, by the definition."""
    ends = {(-1, -1), (n, m)}
    for f1, e1 in itertools.product(range(n), range(m)):
        for f2, e2 in itertools.product(
            range(f1 + 1, min(n, f1 + longest) + 1), range(e1 + 1, min(m, e1 + longest) + 1)
        ):
            inside = [(f1 <= i < f2, e1 <= j < e2) for i, j in links]
            if not any(a and b for a, b in inside) or any(a != b for a, b in inside):
                continue
            known = set(links) | ends
            before = 0 if (f1 - 1, e1 - 1) in known else 1 if (f2, e1 - 1) in known else 2
            after = 0 if (f2, e2) in known else 1 if (f1 - 1, e2) in known else 2
            yield f1, f2, e1, e2, before, after


def test_spans_are_all_consistent_ones(bench):
    rng = np.random.default_rng(0)
    for _ in range(150):
        n, m, longest = rng.integers(1, 7), rng.integers(1, 7), int(rng.integers(1, 5))
        links = {(int(i), int(j)) for i, j in np.argwhere(rng.random((n, m)) < rng.choice([0.1, 0.25, 0.5]))}
        found = [tuple(row) for row in bench("phrases").extract_spans(links, n, m, longest).tolist()]
        assert len(found) == len(set(found))
        assert set(found) == set(consistent_spans(links, n, m, longest))


def test_phrase_table_by_hand(bench):
    bitext = [(["le", "chat"], ["the", "cat"]), (["le", "chien"], ["the", "dog"]), (["le", "chien"], ["a", "dog"])]
    table = bench("phrases").phrase_table(bitext, [{(0, 0), (1, 1)}, {(0, 0), (1, 1)}, {(0, 0), (1, 1)}])

    def row(source, target):
        (at,) = (p for p in table.pairs(source.split()) if table.targets[p] == tuple(target.split()))
        return np.exp(table.scores[at]), np.exp(table.orientations[at])

    scores, orientations = row("le", "the")
    assert scores == pytest.approx([2 / 3, 1.0, 2 / 3, 1.0])
    assert orientations[:3].sum() == pytest.approx(1.0) and orientations[0] > 0.9 > orientations[1]
    scores, _ = row("le chien", "a dog")
    assert scores == pytest.approx([1 / 2, 1.0, 1 / 3, 1.0])
    for source in table.number:
        assert np.exp(table.scores[table.pairs(source), 0]).sum() == pytest.approx(1.0)


def test_lexical_weight_of_several_links_and_of_none(bench):
    # "not" is linked to both words around "a"; "do" to nothing
    bitext = [(["ne", "va", "pas"], ["do", "not", "go"]), (["ne"], ["not"])]
    table = bench("phrases").phrase_table(bitext, [{(0, 1), (2, 1), (1, 2)}, {(0, 0)}])
    (at,) = (p for p in table.pairs(["ne", "va", "pas"]) if table.targets[p] == ("do", "not", "go"))
    # w(not | ne) = 1, w(not | pas) = 1, w(do | nothing) = 1; w(ne | not) = 2/3, w(pas | not) = 1/3
    assert np.exp(table.scores[at, 2:]) == pytest.approx([1.0, 2 / 9])


# --- language model ---------------------------------------------------------------------------------------------------


def test_language_model_by_hand(bench):
    model = bench("language_model").LanguageModel([["a"]])
    a, unknown, begin, end = model.number["a"], 0, 1, 2
    # discounts of 1/2; p(a) = 1/4 + 1/2 * 1/3, p(a | <s>) = 1/2 + 1/2 p(a), p(a | <s> <s>) = 1/2 + 1/2 p(a | <s>)
    assert np.exp(model.log_probability(begin, begin, a)) == pytest.approx(0.5 + 0.5 * (0.5 + 0.5 * 5 / 12))
    assert np.exp(model.log_probability(begin, begin, unknown)) == pytest.approx(0.5 * 0.5 * 0.5 / 3)
    assert np.exp(model.log_probability(end, unknown, a)) == pytest.approx(5 / 12)
    assert bench("language_model").discounts(np.array([1] * 4 + [2] * 3 + [3] * 2 + [4])) == pytest.approx(
        [0.4, 1.2, 2.2]
    )


def test_language_model_equals_the_formula_and_sums_to_one(bench):
    rng = np.random.default_rng(1)
    sentences = [[f"w{int(x)}" for x in np.minimum(rng.geometric(0.25, rng.integers(1, 9)), 12)] for _ in range(300)]
    model = bench("language_model").LanguageModel(sentences)
    D = bench("language_model").discounts
    c3, c2, c1 = Counter(), Counter(), Counter()
    for words in sentences:
        text = ["<s>", "<s>", *words, "</s>"]
        c3.update(zip(text, text[1:], text[2:], strict=False))
    raw = Counter()
    for (_, v, w), count in c3.items():
        raw[v, w] += count
    for v, w in raw:
        c2[v, w] = raw[v, w] if v == "<s>" else sum(key[1:] == (v, w) for key in c3)
    for _, w in c2:
        c1[w] += 1
    discount = [D(np.array(list(c.values()))) for c in (c1, c2, c3)]

    def smoothed(counts, context, w, order, lower):
        of = {key[-1]: n for key, n in counts.items() if key[:-1] == context}
        if not of:
            return lower
        left = sum(discount[order][min(n, 3) - 1] for n in of.values())
        own = of[w] - discount[order][min(of[w], 3) - 1] if w in of else 0.0
        return (own + left * lower) / sum(of.values())

    words = [word for word in model.number if word != "<s>"]
    unigrams = {(w,): n for w, n in c1.items()}
    for u, v in itertools.product([*list(model.number)[:7]], repeat=2):
        total = 0.0
        for w in words:
            p1 = smoothed(unigrams, (), w, 0, 1 / len(words))
            p = smoothed(c3, (u, v), w, 2, smoothed(c2, (v,), w, 1, p1))
            found = np.exp(model.log_probability(*(model.number[x] for x in (u, v, w))))
            assert found == pytest.approx(p)
            total += found
        assert total == pytest.approx(1.0)


# --- MERT and PRO -----------------------------------------------------------------------------------------------------


def random_lists(bench, rng, n, d):
    sizes = rng.integers(1, 8, n)
    N = int(sizes.sum())
    features = rng.integers(-3, 4, (N, d)).astype(float)  # whole numbers: equal slopes and corners that coincide
    counts = np.concatenate(
        [rng.integers(1, 9, (N, 2)), rng.integers(0, 5, (N, 4)), rng.integers(5, 9, (N, 4))], axis=1
    )
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return bench("lists").CandidateLists(features, counts.astype(float), rng.random(N), starts)


def test_line_search_finds_the_best_of_all_intervals(bench):
    mert, rng = bench("mert"), np.random.default_rng(2)
    for _ in range(60):
        lists = random_lists(bench, rng, int(rng.integers(1, 6)), 3)
        w, v = rng.normal(size=3), rng.integers(-2, 3, 3).astype(float)
        at_zero, slopes = lists.features @ w, lists.features @ v
        corners = [0.0]
        for i in range(len(lists)):
            for a, b in itertools.combinations(range(lists.starts[i], lists.starts[i + 1]), 2):
                if slopes[a] != slopes[b]:
                    corners.append((at_zero[b] - at_zero[a]) / (slopes[a] - slopes[b]))
        corners = np.unique(np.round(corners, 9))
        tried = np.concatenate([[corners[0] - 1], (corners[1:] + corners[:-1]) / 2, [corners[-1] + 1]])

        def score(t, lists=lists, at_zero=at_zero, slopes=slopes):
            chosen = lists.best(at_zero + t * slopes)
            return float(mert.bleu_of_sums(lists.statistics[chosen].sum(axis=0)[None])[0])

        step = mert.line_search(lists, at_zero, slopes, mert.bleu_of_sums)
        if len(np.unique(np.concatenate([at_zero, slopes]))) == 2 * len(
            slopes
        ):  # without ties, which may go either way
            assert step.score == pytest.approx(max(map(score, tried)))
        assert step.score >= max(map(score, tried)) - 1e-9 or not slopes.any()


def test_bleu_of_sums_is_bleu(bench):
    rng = np.random.default_rng(3)
    texts = [[f"w{x}" for x in rng.integers(0, 4, 12)] for _ in range(20)]
    counts = bleu_statistics(texts[:10], texts[10:])
    sums = np.cumsum(counts, axis=0)
    expected = [bleu_of(row, smoothing="none").score for row in sums]
    assert bench("mert").bleu_of_sums(sums) == pytest.approx(expected)


def test_pairs_of_pro_are_the_most_different_ones(bench):
    lists = random_lists(bench, np.random.default_rng(4), 1, 2)
    while lists.starts[1] < 4:
        lists = random_lists(bench, np.random.default_rng(int(lists.starts[1]) + 9), 1, 2)
    found = bench("pro").pairs(lists, kept=3)
    order = sorted(
        itertools.permutations(range(lists.starts[1]), 2), key=lambda p: lists.quality[p[1]] - lists.quality[p[0]]
    )
    expected = [lists.features[a] - lists.features[b] for a, b in order[:3]]
    assert sorted(map(tuple, found)) == sorted(map(tuple, expected))


# --- lists ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_margins_recover_weights(bench, noise):
    script = bench("hopkins_may")
    lists, truth = script.synthetic(10, noise, n_lists=80, n_candidates=30)
    assert script.cosine(script.margin(lists, 10.0, 20.0), truth) > 0.97
    assert script.cosine(bench("pro").pro(lists), truth) > 0.95
    w = bench("mert").mert(lists, lambda sums: sums[:, 0], np.ones(10), restarts=1, sweeps=5)
    assert script.mean_quality(lists, w) > 0.9 * script.mean_quality(lists, truth)


# --- decoder ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(bench):
    """A decoder of a tiny language, wide enough to keep everything."""
    rng = np.random.default_rng(6)
    french, english = "le la chat chien noir mange".split(), "the cat dog black eats it".split()
    bitext, links = [], []
    for _ in range(40):
        n = int(rng.integers(2, 6))
        words = rng.integers(0, 6, n)
        order = rng.permutation(n) if rng.random() < 0.4 else np.arange(n)
        bitext.append(([french[x] for x in words], [english[words[i]] for i in order]))
        links.append({(int(i), j) for j, i in enumerate(order) if rng.random() < 0.9})
    table = bench("phrases").phrase_table(bitext, links)
    model = bench("language_model").LanguageModel(e for _, e in bitext)
    return bench("decoder").Decoder(table, model, most_options=3, swapped=2, beam=10**6, gap_beam=10**6, threshold=1e9)


def derivations(decoder, source, options):
    """Every derivation as steps (from, to, option), by the rules: the next phrase, or two phrases in reverse."""
    longest, swapped = options.place.shape[1] - 1, decoder.swapped

    def fitting(i, k):
        return range(options.place[i, k - i - 1], options.place[i, k - i]) if k - i <= longest else ()

    def rest(i):
        if i == len(source):
            yield ()
        for k in range(i + 1, len(source) + 1):
            tails = list(rest(k))
            for o in fitting(i, k):
                yield from (((i, k, o), *tail) for tail in tails)
            for j in range(i + 1, k):
                if j - i <= swapped and k - j <= swapped:
                    for first, second in itertools.product(fitting(j, k), fitting(i, j)):
                        yield from (((j, k, first), (i, j, second), *tail) for tail in tails)

    return rest(0)


def features_of(decoder, source, options, steps):
    """The 14 features of a derivation and its words, from their definitions."""
    model, found, words = decoder.model, np.zeros(14), []
    spans = [(-1, 0), *((i, k) for i, k, _ in steps), (len(source), len(source) + 1)]
    for s, (i, k, o) in enumerate(steps):
        (before_i, before_k), (after_i, after_k) = spans[s], spans[s + 2]
        before = 0 if before_k == i else 1 if before_i == k else 2
        after = 0 if after_i == k else 1 if after_k == i else 2
        found[before] += options.orientation[o, before]
        found[3 + after] += options.orientation[o, 3 + after]
        found[7:11] += options.fixed[o, :4]
        found[11] -= len(options.text[o])
        found[12] -= 1
        words += options.text[o]
    found[13] = -sum(abs(after[0] - before[1]) for before, after in itertools.pairwise(spans))
    found[6] = model.sentence(words)
    return found, tuple(words)


def test_decoder_equals_enumeration(bench, small):
    rng = np.random.default_rng(7)
    vocabulary = "le la chat chien noir mange neuf".split()  # the last is unknown
    for trial in range(12):
        source = [vocabulary[x] for x in rng.integers(0, 7, rng.integers(1, 5))]
        w = np.abs(rng.normal(size=14))
        options = small.options(source)
        everything: dict[tuple, float] = {}
        for steps in derivations(small, source, options):
            features, words = features_of(small, source, options, steps)
            everything[words] = max(everything.get(words, -math.inf), float(features @ w))
        expected = sorted(everything.values(), reverse=True)[:20]
        outputs = small.search(source, w).k_best(w, 20)
        assert [output.score for output in outputs] == pytest.approx(expected), trial
        assert len({output.words for output in outputs}) == len(outputs)
        for output in outputs:
            assert everything[output.words] == pytest.approx(output.score)
            assert output.features @ w == pytest.approx(output.score)


def test_pruned_lattices_keep_the_best_paths(bench, small):
    w = bench("decoder").START
    graph = small.search("le chat noir mange".split(), w)
    few = graph.pruned(w, len(graph.tails) // 4)
    assert len(few.tails) < len(graph.tails) and (few.tails < few.heads).all()
    best = [output.words for output in graph.k_best(w, 3)]
    assert [output.words for output in few.k_best(w, 3)] == best
    assert all(bench("table").contains(few, words) for words in best)
    assert not bench("table").contains(few, ["dog"] * 9)


def test_sparse_features_count_what_a_path_uses(bench, small):
    w = bench("decoder").START
    graph = small.search("le chat noir".split(), w)
    features, names = graph.sparse_features(small.model)
    path = graph.k_best(w, 1)[0]
    found = {name: int(n) for name, n in zip(names, features[path.arcs].sum(axis=0), strict=True) if n}
    text = [1, 1, *small.model.ids(path.words)]
    known = Counter(t for t in zip(text, text[1:], text[2:], strict=False) if small.model.knows(*t))
    assert {name: n for name, n in found.items() if name.startswith("trigram")} == {
        f"trigram {u} {v} {x}": n for (u, v, x), n in known.items()
    }
    assert sum(n for name, n in found.items() if name.startswith("pair")) == 2 * len(path.arcs)


# --- the whole --------------------------------------------------------------------------------------------------------


@pytest.fixture
def europarl(tmp_path, monkeypatch):
    """120 sentence pairs of six words."""
    rng = np.random.default_rng(8)
    pairs = dict(zip("le chat chien noir mange dort".split(), "the cat dog black eats sleeps".split(), strict=True))
    rows = [[list(pairs)[x] for x in rng.integers(0, 6, rng.integers(2, 7))] for _ in range(120)]
    folder = tmp_path / "europarl10k"
    folder.mkdir()
    english = [[pairs[w] if rng.random() < 0.8 else "it" for w in row] for row in rows]
    texts = {"fr": rows, "en": english, "align.fr-en": [[f"{i}-{i}" for i in range(len(row))] for row in rows]}
    for name, lines in texts.items():
        (folder / f"europarl.{name}.xz").write_bytes(lzma.compress("".join(" ".join(l) + "\n" for l in lines).encode()))
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))


def test_table_runs_to_its_end(bench, europarl, monkeypatch, capsys):
    script, methods = bench("table"), ["MERT", "PRO", "margin", "LP (8)", "ramp, lattices"]
    monkeypatch.setattr(script, "N_TRAIN", 90)
    monkeypatch.setattr(sys, "argv", ["table.py", "--rounds", "1", "--best", "20", "--methods", *methods])
    script.main()
    lines = capsys.readouterr().out.splitlines()
    for method in [*methods, "LP (7), sparse"]:
        (row,) = (line for line in lines if line.startswith(f"{method:16s} ") and "round" not in line)
        assert float(row[16:].split()[1]) > 20.0


def test_costs_and_good_paths_of_lattices_are_compared(bench, europarl, monkeypatch, capsys):
    script = bench("lattices")
    monkeypatch.setattr(sys.modules["table"], "N_TRAIN", 90)
    monkeypatch.setattr(script, "N_TUNED", 8)
    script.main()
    lines = capsys.readouterr().out.splitlines()
    rows = [[float(x) for x in re.findall(r"BLEU +([0-9.]+)", line)] for line in lines]
    after = [row for row in rows if len(row) == 2]  # of tuned and of other sentences
    assert len(after) == 5 and np.min(after) > 20.0
