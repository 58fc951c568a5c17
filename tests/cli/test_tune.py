"""`maxmargin tune`: scores are those of separate fits, and the choice follows its rule."""

from __future__ import annotations

import numpy as np
import pytest

import maxmargin as mm
from cli.corpus import sentences, text
from maxmargin.metrics import span_f1


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """Some labels are wrong, so that C matters."""
    rng = np.random.default_rng(0)
    made = [[(w, p, "O" if rng.random() < 0.15 else label) for w, p, label in s] for s in sentences(45, seed=3)]
    path = tmp_path_factory.mktemp("tune") / "noisy.txt"
    path.write_text(text(made))
    return path, made


def parsed(output):
    lines = output.split("sentences\n", 1)[1].split("\n\n")[0].splitlines()
    return lines[0].split("  "), [line.split() for line in lines[1:]]


def test_scores_are_those_of_cold_fits(noisy, files, run):
    path, made = noisy
    done = run(
        "tune", path, "-t", files.template, "--C-min", 0.01, "--C-max", 1, "--steps", 3, "--folds", 3, "--tol", 1e-5,
        "--seed", 4,
    )  # fmt: skip
    assert done.exit_code == 0 and done.stderr == "", done.output
    _, rows = parsed(done.stdout)
    assert [float(row[0]) for row in rows] == pytest.approx([0.01, 0.1, 1.0])
    order = np.random.default_rng(4).permutation(len(made))
    for row in rows:
        f1 = []
        for fold in range(3):
            out = set(order[fold::3].tolist())
            inside = [made[i] for i in range(len(made)) if i not in out]
            rest = [made[i] for i in sorted(out)]
            tagger = mm.SequenceTagger(features=mm.TextFeatures(files.template), C=float(row[0]), tol=1e-5)
            tagger.fit([[r[:2] for r in s] for s in inside], [[r[2] for r in s] for s in inside])
            f1.append(span_f1([[r[2] for r in s] for s in rest], tagger.predict([[r[:2] for r in s] for s in rest])))
        assert float(row[1]) == pytest.approx(100 * np.mean(f1), abs=0.6)  # ties may fall either way
        assert float(row[3]) == pytest.approx(100 * np.std(f1, ddof=1) / np.sqrt(3), abs=0.6)
    marked = [row for row in rows if row[-1] == "*"]
    assert len(marked) == 1 and float(marked[0][1]) == max(float(row[1]) for row in rows)


def test_one_standard_error_takes_the_smallest_c_that_is_as_good(noisy, files, run, tmp_path):
    path, _ = noisy
    done = run(
        "tune", path, "-t", files.template, "--C-min", 0.001, "--C-max", 1, "--steps", 4, "--folds", 3,
        "--one-standard-error", "-o", tmp_path / "best.mm",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    _, rows = parsed(done.stdout)
    best = max(rows, key=lambda row: float(row[1]))
    expected = next(row for row in rows if float(row[1]) >= float(best[1]) - float(best[3]) - 0.02)
    (chosen,) = [row for row in rows if row[-1] == "*"]
    assert chosen == expected
    assert mm.load(tmp_path / "best.mm").C == pytest.approx(float(chosen[0]), rel=1e-3)


def test_labels_that_are_no_spans_are_scored_by_tokens(run, tmp_path):
    (tmp_path / "pos.txt").write_text(text(sentences(20), columns=(0, 1)))
    done = run("tune", tmp_path / "pos.txt", "--steps", 2, "--folds", 2)
    assert done.exit_code == 0 and "token accuracy" in done.stdout and "span F1" not in done.stdout


@pytest.mark.found("D: tune takes no development file")
def test_a_development_file_decides(noisy, files, run, tmp_path):
    path, made = noisy
    done = run(
        "tune", path, "-t", files.template, "--held-out", files.test, "--C-min", 0.001, "--C-max", 1, "--steps", 3,
        "--tol", 1e-5, "-o", tmp_path / "best.mm",
    )  # fmt: skip
    assert done.exit_code == 0 and f"12 sentences of {files.test}, trained on 45 sentences" in done.stdout, done.output
    _, rows = parsed(done.stdout)
    held = files.test_sentences
    for row in rows:
        tagger = mm.SequenceTagger(features=mm.TextFeatures(files.template), C=float(row[0]), tol=1e-5)
        tagger.fit([[r[:2] for r in s] for s in made], [[r[2] for r in s] for s in made])
        f1 = span_f1([[r[2] for r in s] for s in held], tagger.predict([[r[:2] for r in s] for s in held]))
        assert float(row[1]) == pytest.approx(100 * f1, abs=1.5)  # ties may fall either way
    (chosen,) = [row for row in rows if row[-1] == "*"]
    assert float(chosen[1]) == max(float(row[1]) for row in rows)
    best = mm.load(tmp_path / "best.mm")
    assert best.C == pytest.approx(float(chosen[0]), rel=1e-3) and best.columns_.width == 3
    assert run("tune", path, "--held-out", files.test, "--one-standard-error").exit_code == 2
    assert run("tune", path, "--held-out", tmp_path / "no.txt").exit_code == 1


@pytest.mark.found("D: tune is silent at the edge")
@pytest.mark.parametrize(("low", "high", "advice"), [(0.001, 0.01, "--C-max 0.1"), (0.1, 1, "--C-min 0.01")])
def test_a_best_value_at_the_edge_is_said(noisy, files, run, low, high, advice):
    """Small values learn too little, and large ones fit the wrong labels."""
    arguments = ["-t", files.template, "--steps", 2, "--held-out", files.test, "--tol", 1e-3]
    done = run("tune", noisy[0], *arguments, "--C-min", low, "--C-max", high)
    assert done.exit_code == 0 and len(done.stderr.splitlines()) == 1, done.output
    assert f"a better one may lie beyond; try {advice}." in done.stderr
    alone = run("tune", noisy[0], *arguments, "--C-min", 0.1, "--C-max", 0.1)
    assert alone.stderr == ""


def test_bad_requests(files, run):
    assert run("tune", files.train, "--C-min", 2, "--C-max", 1).exit_code == 2
    assert run("tune", files.train, "--folds", 1).exit_code == 2
    few = run("tune", files.train, "--folds", 50, "-t", files.template)
    assert few.exit_code == 1 and "has 40 sentences; 50 folds need at least as many" in few.stderr
