"""`maxmargin train`: what is learned, what is said, where options come from."""

from __future__ import annotations

import gzip
import lzma
import random
import re

import numpy as np
import pytest

import maxmargin as mm
from cli.corpus import sentences, text
from maxmargin.metrics import span_f1

LABELS = ["O", "B-PER", "I-PER", "B-LOC"]


def test_the_model_is_that_of_the_same_call_in_python(files):
    made = sentences(40)
    features = mm.TextFeatures(files.template)
    tagger = mm.SequenceTagger(features=features, C=1.0).fit([[row[:2] for row in s] for s in made],
                                                            [[row[2] for row in s] for s in made])  # fmt: skip
    loaded = mm.load(files.model)
    assert loaded.certificate_ == tagger.certificate_
    words = [[row[:2] for row in s] for s in files.test_sentences]
    assert loaded.predict(words) == tagger.predict(words)


def test_one_line_tells_status_certificate_and_time(files):
    assert files.trained.stdout == ""
    (line,) = files.trained.stderr.splitlines()
    for part in ("40 sentences", "Converged", "certificate: primal", "relative gap", "read ", "oracle ", "model.mm"):
        assert part in line


def test_words_alone_need_no_template(run, tmp_path):
    (tmp_path / "words.txt").write_text(text(sentences(30), columns=(0, 2)))
    assert run("train", tmp_path / "words.txt", "-o", tmp_path / "w.mm").exit_code == 0
    tagger = mm.load(tmp_path / "w.mm")
    assert "0.suffix3[0]=ris" in tagger.features_.names()


def test_columns_that_nothing_reads_are_told(files, run, tmp_path):
    done = run("train", files.train, "-o", tmp_path / "w.mm")
    assert "features: words, affixes and shapes of column 0; a template (-t) can read column 1 too" in done.stderr
    assert "can read" not in files.trained.stderr


@pytest.mark.parametrize(("suffix", "opener"), [("gz", gzip.open), ("xz", lzma.open)])
def test_packed_files(files, run, tmp_path, suffix, opener):
    packed = tmp_path / f"train.txt.{suffix}"
    with opener(packed, "wb") as file:
        file.write(files.train.read_bytes())
    assert run("train", packed, "-t", files.template, "-o", tmp_path / "m.mm").exit_code == 0
    assert mm.load(tmp_path / "m.mm").certificate_ == mm.load(files.model).certificate_


def test_standard_input_and_separators(files, run, tmp_path):
    tabs = text(sentences(40), joint="\t")
    done = run("train", "-", "-t", files.template, "--separator", "\\t", "-o", tmp_path / "m.mm", input=tabs)
    assert done.exit_code == 0, done.output
    assert mm.load(tmp_path / "m.mm").certificate_ == mm.load(files.model).certificate_


def test_labels_in_the_middle_keep_the_numbers_of_the_columns(run, tmp_path):
    (tmp_path / "m.txt").write_text(text(sentences(30), columns=(0, 2, 1)))
    (tmp_path / "t.txt").write_text("U0:%x[0,0]\nU1:%x[0,2]\n")
    arguments = ("train", tmp_path / "m.txt", "-t", tmp_path / "t.txt", "-o", tmp_path / "m.mm")
    assert run(*arguments, "--label-column", 1).exit_code == 0
    assert set(mm.load(tmp_path / "m.mm").classes_) == {"O", "B-PER", "I-PER", "B-LOC"}
    leak = run(*arguments, "--label-column", 2)
    assert leak.exit_code == 1 and "t.txt, line 2: reads column 2, which holds the labels" in leak.stderr


def test_options_reach_the_tagger(files, run, tmp_path):
    arguments = (
        "train", files.train, "-t", files.template, "-o", tmp_path / "m.mm", "-C", "0.3", "--weights", "observed",
        "--constraints", "bio", "--ends", "--tol", "0.05", "--max-passes", "50", "--max-seconds", "60", "--solver",
        "bcfw", "--loss", "squared_hinge", "--rescaling", "slack", "--n-jobs", "1", "--min-count", "2",
        "--seed", "7", "--precision", "float32",
    )  # fmt: skip
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    tagger = mm.load(tmp_path / "m.mm")
    expected = {
        "C": 0.3, "weights": "observed", "constraints": "bio", "ends": True, "tol": 0.05, "max_passes": 50.0,
        "max_seconds": 60.0, "solver": "bcfw", "loss": "squared_hinge", "rescaling": "slack",
        "n_jobs": 1, "random_state": 7,
    }  # fmt: skip
    assert {name: getattr(tagger, name) for name in expected} == expected
    assert tagger.features_.min_count == 2
    assert run(*arguments[:6], "--hashing", "100").exit_code == 0
    assert mm.load(tmp_path / "m.mm").features_.hashing == 100


def test_a_ramp_begins_where_it_is_told(files, run, tmp_path):
    base = ("train", files.train, "-t", files.template, "--tol", "0.05")
    ramp = (*base, "--loss", "ramp", "--ramp", "best_output", "--max-rounds", "3", "--passes-per-round", "20")
    first, other = tmp_path / "first.mm", tmp_path / "other.mm"
    assert run(*base, "-o", first, "--max-passes", "4").exit_code == 0
    for start in ("zero", "hinge", first):
        done = run(*ramp, "-o", tmp_path / "m.mm", "--start", start)
        assert done.exit_code == 0, done.output
    tagger = mm.load(tmp_path / "m.mm")
    loss = tagger.loss
    assert (loss.ramp, loss.max_rounds, loss.passes_per_round) == ("best_output", 3, 20.0)
    assert run(*base, "-o", other, "--min-count", "3").exit_code == 0
    refused = run(*ramp, "-o", tmp_path / "m.mm", "--start", other)
    assert refused.exit_code == 1 and "other.mm was trained on other features than this file has" in refused.stderr
    missing = run(*ramp, "-o", tmp_path / "m.mm", "--start", "hinged")
    assert missing.exit_code == 1 and "hinged" in missing.stderr


def test_held_out_file_is_watched(files, run, tmp_path):
    done = run(
        "train", files.train, "-t", files.template, "-o", tmp_path / "m.mm", "--held-out", files.test, "--tol", 0,
        "--patience", 2, "--max-passes", 200,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "held out: span F1" in done.stderr and "at the end, pass" in done.stderr


def noisy(seed):
    """Words that never come back, in part with wrong labels: what is learned last harms."""
    rng = random.Random(seed)
    return [
        [(f"{w}{rng.randint(0, 9)}", p, rng.choice(LABELS) if rng.random() < 0.3 else label) for w, p, label in s]
        for s in sentences(40, seed=seed)
    ]


@pytest.mark.found("D: --held-out watches token accuracy")
@pytest.mark.parametrize("share", [False, True])
def test_the_best_weights_on_held_out_sentences_are_saved(run, tmp_path, share):
    (tmp_path / "train.txt").write_text(text(noisy(0)))
    (tmp_path / "dev.txt").write_text(text(noisy(1)))
    model = tmp_path / "m.mm"
    done = run(
        "train", tmp_path / "train.txt", "-o", model, "-C", 100, "--tol", 1e-6, "--solver", "bcfw", "--patience", 1000,
        "--max-passes", 40, "--seed", 4, "--held-out", 0.25 if share else tmp_path / "dev.txt",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    said = re.search(
        r"held out: span F1 ([.\d]+)% with the weights of pass ([.\d]+), which the model keeps; ([.\d]+)% "
        r"at the end, pass ([.\d]+)",
        done.stderr,
    )
    best, best_pass, last, last_pass = map(float, said.groups())
    assert best > last and best_pass < last_pass
    tagger = mm.load(model)
    held = noisy(1)
    if share:
        held = [noisy(0)[i] for i in np.random.default_rng(4).permutation(40)[:10]]
        assert "examples: 30 sentences" in done.stderr
    found = tagger.predict([[row[:2] for row in s] for s in held])
    assert 100 * span_f1([[row[2] for row in s] for s in held], found) == pytest.approx(best, abs=0.006)
    # the certificate is that of the saved weights, and travels with them
    assert f"certificate: {tagger.certificate_}" in done.stderr and f"weights of pass {best_pass:.4g}" in done.stderr
    assert str(tagger.certificate_) in run("inspect", model).stdout


@pytest.mark.found("D: --held-out watches token accuracy")
def test_labels_that_are_no_spans_are_watched_by_tokens(run, tmp_path):
    (tmp_path / "pos.txt").write_text(text(sentences(20), columns=(0, 1)))
    done = run("train", tmp_path / "pos.txt", "-o", tmp_path / "m.mm", "--held-out", 0.2)
    assert done.exit_code == 0 and "held out: token accuracy" in done.stderr


@pytest.mark.parametrize("share", ["0", "1", "1.5", "-0.1", "nan"])
def test_shares_that_leave_nothing(files, run, tmp_path, share):
    done = run("train", files.train, "-o", tmp_path / "m.mm", f"--held-out={share}")
    assert done.exit_code == 1 and "give a share between 0 and 1" in done.stderr


def test_budgets_end_with_a_usable_model(files, run, tmp_path):
    done = run(
        "train", files.train, "-t", files.template, "-o", tmp_path / "m.mm", "--max-passes", 2, "--tol", 0
    )  # fmt: skip
    assert done.exit_code == 0 and "Stopped at max_passes" in done.stderr and "Warning" not in done.stderr
    assert mm.load(tmp_path / "m.mm").status_.code == "max_passes"


# --- configuration files --------------------------------------------------------------------------------------------


def test_command_line_wins_over_the_configuration(files, run, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(f'C = 0.25\nlabel-column = 2\nmax_passes = 77\nends = true\ntemplate = "{files.template}"\n')
    out = tmp_path / "m.mm"
    assert run("train", files.train, "--config", config, "-o", out).exit_code == 0
    tagger = mm.load(out)
    assert (tagger.C, tagger.max_passes, tagger.ends) == (0.25, 77.0, True)
    assert tagger.features_.names([0])[0].startswith("U")
    # wherever --config stands
    assert run("train", files.train, "-C", "0.5", "--no-ends", "--config", config, "-o", out).exit_code == 0
    tagger = mm.load(out)
    assert (tagger.C, tagger.max_passes, tagger.ends) == (0.5, 77.0, False)
    config.write_text(f'output = "{out}"\nC = 0.75\n')
    assert run("train", files.train, "--config", config).exit_code == 0
    assert mm.load(out).C == 0.75


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("C = \n", 1, "not TOML"),
        ("lable-column = 2\n", 1, "no option 'lable-column'"),
        ("C = [1, 2]\n", 1, "C must be text, a number, true or false"),
        ("C = -1\n", 2, "'-C'"),
        ('solver = "magic"\n', 2, "--solver"),
        ("label-column = 1.5\n", 2, "--label-column"),
    ],
)
def test_bad_configurations(files, run, tmp_path, text, code, message):
    (tmp_path / "c.toml").write_text(text)
    done = run("train", files.train, "--config", tmp_path / "c.toml", "-o", tmp_path / "m.mm")
    assert done.exit_code == code and message in done.stderr and "Traceback" not in done.output
    if code == 1:
        assert "c.toml" in done.stderr and len(done.stderr.splitlines()) == 1
    assert run("train", files.train, "--config", tmp_path / "no.toml", "-o", tmp_path / "m.mm").exit_code == 1


def test_the_l1_penalty_leaves_most_weights_at_zero(files, run, tmp_path):
    done = run("train", files.train, "-t", files.template, "--penalty", "l1", "-C", 5, "-o", tmp_path / "sparse.mm")
    assert done.exit_code == 0, done.stderr
    tagger, other = mm.load(tmp_path / "sparse.mm"), mm.load(files.model)
    assert (tagger.penalty, tagger.rescaling) == ("l1", None)
    share = re.search(r"(\d+) weights, (\d+) not zero", done.stderr)
    assert share is not None and int(share[2]) == (tagger.weights_ != 0).sum() < 0.5 * (other.weights_ != 0).sum()
    shown = run("inspect", tmp_path / "sparse.mm")
    assert "l1 penalty, unit rescaling" in " ".join(shown.stdout.split())
    refused = run(
        "train", files.train, "-t", files.template, "--penalty", "l1", "--loss", "ramp", "-o", tmp_path / "x.mm"
    )
    assert refused.exit_code != 0 and 'use loss="hinge"' in refused.stderr
