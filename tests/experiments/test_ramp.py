"""The experiments on the ramp loss: their noise and counts are what they say, and each script runs to its end."""

from __future__ import annotations

import gzip
import importlib
import lzma
import re
import sys
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).parents[2]
NAMES = ("common", "table_5_1", "figure_4_1", "figure_5_1")
WORDS = {"DT": ("the", "a", "no"), "NN": ("dog", "cat", "house", "tree"), "VB": ("sees", "likes", "has")}
CHUNKS = {"DT": "B-NP", "NN": "I-NP", "VB": "B-VP"}


@pytest.fixture
def scripts(monkeypatch, tmp_path):
    """The modules of the experiments, with tiny corpora as their data."""
    rng = np.random.default_rng(0)
    for half, n in (("train", 40), ("test", 10)):
        path = tmp_path / "conll2000" / f"{half}.txt.gz"
        path.parent.mkdir(exist_ok=True)
        sentences = [sentence(rng) for _ in range(n)]
        path.write_bytes(
            gzip.compress("\n".join("".join(f"{w} {t} {CHUNKS[t]}\n" for w, t in s) for s in sentences).encode())
        )
    documents = [f"#doc {d} news\n" + "\n".join(tokens(rng) for _ in range(4)) + "\n" for d in range(20)]
    (tmp_path / "brown").mkdir()
    (tmp_path / "brown" / "brown.tsv.xz").write_bytes(lzma.compress("".join(documents).encode()))
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    monkeypatch.syspath_prepend(REPOSITORY / "experiments" / "ramp")
    for name in (*NAMES, "brown"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield {name: importlib.import_module(name) for name in NAMES}
    for name in (*NAMES, "brown"):
        sys.modules.pop(name, None)


def sentence(rng):
    tags = ["DT", "NN", "VB", "DT", "NN"][: rng.integers(2, 6)]
    return [(str(rng.choice(WORDS[tag])), tag) for tag in tags]


def tokens(rng):
    return "".join(f"{word}\t{tag}\n" for word, tag in sentence(rng))


def test_outliers_are_as_many_as_asked_for_and_uniform(scripts):
    y = [["A", "B", "C", "D"][i % 4 :] for i in range(4000)]
    noisy = scripts["common"].with_outliers(y, 0.25, 3)
    changed = [i for i in range(len(y)) if noisy[i] != y[i]]
    assert [len(s) for s in noisy] == [len(s) for s in y]
    assert 0.25 * 4000 * (1 - 0.25) <= len(changed) <= 0.25 * 4000  # short ones may fall on their old labels
    drawn = [label for i in changed if len(y[i]) == 4 for label in noisy[i]]
    shares = [drawn.count(label) / len(drawn) for label in "ABCD"]
    assert shares == pytest.approx([0.25] * 4, abs=0.05)
    assert scripts["common"].with_outliers(y, 0.25, 3) == noisy
    assert scripts["common"].with_outliers(y, 0.25, 4) != noisy
    assert scripts["common"].with_outliers(y, 0.0, 3) == y


def test_interval_is_that_of_scipy(scripts):
    from scipy.stats import ttest_1samp

    gains = np.array([0.1, 0.3, 0.2, 0.25, 0.05])
    mean, half = scripts["common"].interval(gains)
    low, high = ttest_1samp(gains, 0.0).confidence_interval(0.95)
    assert (mean - half, mean + half) == pytest.approx((low, high))


@pytest.mark.parametrize("method", ["SDM", "Pegasos", "Pegasos-WP"])
def test_fits_have_the_passes_they_are_asked_for(scripts, method):
    common = scripts["common"]
    corpus = common.chunking()
    hinge = common.fit(common.Setting(method, "hinge", 0.1, 6), corpus, every=2, watch=True)
    assert [point.passes for point in hinge.points] == [2, 4, 6]
    extra = 1 if method == "Pegasos" else 0  # the radius of the ball needs the largest costs
    assert hinge.tagger.n_iter_ == 6 + 3 + extra
    ramp = common.fit(common.Setting(method, "ramp", 0.1, 3, 2), corpus, watch=True)
    assert ramp.points[-1].rounds == 2
    assert ramp.points[-1].passes >= 6 - extra


def test_folds_are_apart_and_lambda_is_one_over_Cn(scripts):
    common = scripts["common"]
    corpus = common.chunking()
    folds = [corpus.fold(k, 5) for k in range(5)]
    assert sum(len(fold.y_test) for fold in folds) == len(corpus) == 40
    assert all(len(fold) == len(fold.X) == 32 and len(fold.X_test) == 8 for fold in folds)
    assert folds[0].y_test + folds[0].y != corpus.y and sorted(folds[0].y_test + folds[0].y) == sorted(corpus.y)
    assert common.Setting("Pegasos", "hinge", 0.5, 1).C(40) == pytest.approx(1 / (0.5 * 40))
    assert common.Setting("SDM", "hinge", 0.5, 1).C(40) == 0.5


def test_table(scripts, capsys):
    scripts["table_5_1"].main(["--quick", "--share", "1"])
    printed = capsys.readouterr().out
    assert re.search(r"chunking: 40 \+ 10 sentences, 3 labels", printed)
    assert re.search(r"tagging: 72 \+ 8 sentences, 3 labels", printed)
    rows = re.findall(r"^(SDM|Pegasos|Pegasos-WP) +(hinge|ramp) .* 9[56]\.\d{3}  (?:C|lambda) ", printed, re.M)
    assert len(rows) == 12 and len(set(rows)) == 6
    assert "in the paper -0.008" in printed


def test_passes(scripts, capsys, tmp_path):
    scripts["figure_4_1"].main(["--quick", "--share", "1", "--passes", "10", "--outputs", str(tmp_path)])
    printed = capsys.readouterr().out
    assert len(re.findall(r"^(?:SDM|Pegasos|Pegasos-WP) +(?:hinge|ramp) +[\d.]+ +[\d.]+ ", printed, re.M)) == 12
    assert (tmp_path / "ramp_passes.png").read_bytes().startswith(b"\x89PNG")


def test_outliers(scripts, capsys, tmp_path):
    arguments = ["--quick", "--tune", "--methods", "SDM", "auto", "Pegasos-WP", "--outputs", str(tmp_path)]
    scripts["figure_5_1"].main(arguments)
    printed = capsys.readouterr().out
    for method in ("SDM", "auto", "Pegasos-WP"):
        rows = re.findall(rf"^{method} +(0|20) %   hinge [\d.]+ \([\d.]+\).*early [\d.]+ ", printed, re.M)
        assert rows == ["0", "20"] * 2  # at the published strength, and tuned
        assert len(re.findall(rf"^{method}, early against hinge: without outliers .*; 20 % ", printed, re.M)) == 2
    assert (tmp_path / "ramp_outliers.png").read_bytes().startswith(b"\x89PNG")
