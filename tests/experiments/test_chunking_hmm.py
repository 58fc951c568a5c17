"""The chunking experiment on made-up sentences: what is chosen and printed is what was measured."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def task(chunking):
    """States that stay or go on by one, and symbols that tell them apart only together with the one before."""
    rng = np.random.default_rng(0)

    def sentences(n):
        X, y = [], []
        for _ in range(n):
            states = [int(rng.integers(3))]
            while len(states) < 12:
                states.append((states[-1] + int(rng.random() < 0.4)) % 3)
            symbols = [s if rng.random() < 0.5 else (states[max(t - 1, 0)] + 3) for t, s in enumerate(states)]
            X.append([f"t{s}" for s in symbols])
            y.append(["BIO"[s] + ("-x" if s < 2 else "") for s in states])
        return chunking.Data(X, y)

    return chunking.Task(sentences(60), sentences(80), ["B-x", "I-x", "O"], [f"t{k}" for k in range(6)])


def test_the_chosen_value_has_the_best_accuracy_on_sentences_left_out(chunking, task):
    class Fake:
        """Right for a sentence in proportion to its constant, and never shown a sentence that it was fitted on."""

        def __init__(self, value):
            self.value = value

        def fit(self, X, y):
            self.seen = set(map(tuple, X))
            self.answer = dict(zip(map(tuple, task.train.X), task.train.y, strict=True))
            return self

        def predict(self, X):
            assert not self.seen & set(map(tuple, X)) and 0 < len(X) < len(self.seen)
            return [[a if self.value == 2.0 else "O" for a in self.answer[tuple(x)]] for x in X]

    data = task.train.take(np.unique([tuple(x) for x in task.train.X], axis=0, return_index=True)[1])
    assert chunking.cross_validated(Fake, (1.0, 2.0, 3.0), data, 0, 3) == 2.0
    assert chunking.cross_validated(lambda v: Fake(1.0), (5.0, 6.0), data, 0, 3) == 5.0  # the first of equals


@pytest.mark.slow
def test_a_run_scores_every_model_on_the_test_sentences(chunking, task):
    scores, facts = chunking.run(task, 30, 0)
    again, _ = chunking.run(task, 30, 0)
    assert set(scores) == set(chunking.MODELS) and scores == again
    assert all(0 < value <= 100 for pair in scores.values() for value in pair)
    assert facts["smoothing"] in chunking.SMOOTHING and facts["C n"] in chunking.TOTALS and facts["gap"] < 0.05
    if facts["C n"] == 0:
        assert scores["margin"] == scores["smoothed ML"]
    # at least as good as always saying the most frequent label
    labels = [label for y in task.test.y for label in y]
    assert scores["ML"][0] > 100 * max(labels.count(s) for s in task.states) / len(labels)


def test_intervals_are_those_of_student(chunking):
    mean, half = chunking.interval(np.array([1.0, 2.0, 3.0, 4.0]))
    assert mean == 2.5 and half == pytest.approx(3.182446 * np.sqrt(5 / 3) / 2, rel=1e-6)  # t_{0.975, 3} from a table
    assert np.isnan(chunking.interval(np.array([1.0]))[1])


@pytest.mark.slow
def test_what_is_printed(chunking, task, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    runs = [chunking.run(task, 20, seed) for seed in (0, 1)]
    scores = {name: np.array([s[name] for s, _ in runs]) for name in chunking.MODELS}
    chunking.print_size(20, scores, [facts for _, facts in runs])
    text = capsys.readouterr().out
    assert f"{scores['chain'][:, 0].mean():.2f}" in text and "20 sentences, 2 seeds" in text
    assert f"{(scores['margin'] - scores['ML'])[:, 0].mean():+.2f}" in text
    chunking.print_faithfulness(task, 20, task.test, tmp_path / "sub" / "picture.png")
    assert (tmp_path / "sub" / "picture.png").stat().st_size > 10_000
    assert capsys.readouterr().out.count("smoothed by 0.01") == 7
