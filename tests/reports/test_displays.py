"""Displays hold the numbers that predictions and fits have, and draw all of them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import confusion_matrix

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

import maxmargin as mm  # noqa: E402
from maxmargin.datasets import load_bitext, load_sentences  # noqa: E402
from maxmargin.reports import (  # noqa: E402
    AlignmentDisplay,
    ConfusionDisplay,
    GapDisplay,
    LatticeDisplay,
    WeightsDisplay,
)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def data():
    sentences = load_sentences()
    return sentences.data[:60], sentences.target[:60]


@pytest.fixture(scope="module")
def tagger(data):
    return mm.SequenceTagger(C=0.1, max_passes=3, tol=0.2).fit(*data)


def test_gaps_are_those_of_the_history(tagger):
    shown = GapDisplay.from_estimator(tagger, against="seconds")
    assert shown.ax_.lines[0].get_ydata() == pytest.approx(np.asarray(tagger.history_["relative_gap"]))
    assert shown.ax_.lines[0].get_xdata() == pytest.approx(np.asarray(tagger.history_["seconds"]))
    assert shown.tol == 0.2
    both = GapDisplay.from_estimator(tagger, tagger, names=["one", "two"], ax=shown.ax_)
    assert both.ax_ is shown.ax_ and {"one", "two"} <= {line.get_label() for line in shown.ax_.lines}
    with pytest.raises(NotFittedError):
        GapDisplay.from_estimator(mm.SequenceTagger())


def test_confusions_are_those_of_scikit_learn(tagger, data):
    X, y = data
    shown = ConfusionDisplay.from_estimator(tagger, X, y)
    flat = [label for labels in y for label in labels], [label for labels in tagger.predict(X) for label in labels]
    assert (shown.matrix == confusion_matrix(*flat, labels=shown.labels)).all()
    assert [tick.get_text() for tick in shown.ax_.get_yticklabels()] == [str(label) for label in shown.labels]
    drawn = sorted(int(text.get_text()) for text in shown.ax_.texts)
    assert drawn == sorted(shown.matrix[shown.matrix > 0].tolist())


def test_many_labels_are_cut_to_those_with_the_most_errors():
    true = [[f"l{k}" for k in range(100)]]
    found = [[f"l{k}" if k != 70 else "l71" for k in range(100)]]
    shown = ConfusionDisplay.from_predictions(true, found)
    assert shown.matrix.shape == (30, 30) and {"l70", "l71"} <= set(shown.labels)


def test_what_has_no_labels_is_refused():
    pairs = [("das Haus", "the house"), ("ein Buch", "a book")]
    aligner = mm.Aligner().fit(pairs, ["0-0 1-1"] * 2)
    with pytest.raises(ValueError, match="outputs of a Aligner are not one label"):
        ConfusionDisplay.from_estimator(aligner, pairs, ["0-0 1-1"] * 2)
    with pytest.raises(ValueError, match="example 1 has 2 true labels and 1"):
        ConfusionDisplay.from_predictions([["a"], ["a", "b"]], [["a"], ["a"]])


def test_weights_are_the_strongest(tagger):
    shown = WeightsDisplay.from_estimator(tagger, top=7)
    assert len(shown.weights) == 7 and len(shown.ax_.patches) == 7
    assert max(map(abs, shown.weights.values())) == pytest.approx(np.abs(tagger.weights_).max())


def test_links_are_those_of_the_aligner():
    text = load_bitext()
    aligner = mm.Aligner().fit(text.data[:20], text.target[:20])
    shown = AlignmentDisplay.from_estimator(aligner, text.data[30], text.target[30])
    found = aligner.predict(text.data[30:31])[0]
    dots = [tuple(dot.get_offsets()[0]) for dot in shown.ax_.collections]
    assert sorted(dots[: len(found)]) == sorted((float(j), float(i)) for i, j in found)
    assert len(dots) == len(found) + len(mm.Links.parse(str(text.target[30])).sure if isinstance(text.target[30], str)
                                         else text.target[30].sure)  # fmt: skip


def test_the_best_path_of_a_lattice_is_marked():
    words, ends = ["the", "small", "little", "house", "cottage"], ([0, 1, 1, 2, 1], [1, 2, 2, 3, 3])
    lattice = mm.Lattice(4, *ends, np.array([[1.0], [0.5], [2.0], [1.0], [-3.0]]), words)
    ranker = mm.LatticeRanker(C=10.0).fit([lattice], ["the little house"])
    shown = LatticeDisplay.from_estimator(ranker, lattice)
    assert lattice.text(shown.path) == ranker.predict([lattice])[0] == "the little house"
    bold = [text.get_text() for text in shown.ax_.texts if text.get_weight() == "bold"]
    assert bold == ["little", "house"] or sorted(bold) == ["house", "little", "the"]
    flat = mm.Lattice.from_nbest([f"h{k}" for k in range(300)], np.zeros((300, 1)))
    with pytest.raises(ValueError, match="300 arcs"):
        LatticeDisplay(flat).plot()
