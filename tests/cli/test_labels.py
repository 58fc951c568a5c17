"""`maxmargin labels`: ARFF, LIBSVM and CSV in, a model, label sets and scores out."""

from __future__ import annotations

import csv
import gzip
import json
import re
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import average_precision_score, f1_score

import maxmargin as mm
from maxmargin.cli.options import SlackSearch
from maxmargin.models import label_set
from maxmargin.models.search import SLACK_SEARCHES

LABELS = ["art", "film, old", "news"]
OPTIONS = ("--graph", "full", "--rescaling", "slack", "-C", 0.5)


def arff(X, Y, unknown=False):
    lines = ["@relation 'toy: -C 3'", *(f"@attribute '{label}' {{0,1}}" for label in LABELS)]
    lines += [f"@attribute f{j} numeric" for j in range(X.shape[1])] + ["@data"]
    for x, y in zip(X, Y, strict=True):
        lines.append(",".join(["?" if unknown else str(k) for k in y] + list(map(repr, x.tolist()))))
    return "\n".join(lines) + "\n"


def table(X, Y, order=None):
    """CSV with columns in an order, and an identifier in front."""
    order = range(X.shape[1]) if order is None else order
    out = ["id," + ",".join(f"f{j}" for j in order) + ',art,"film, old",news']
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        out.append(",".join([f"row {i}", *(repr(float(x[j])) for j in order), *map(str, y)]))
    return "\n".join(out) + "\n"


@pytest.fixture(scope="module")
def toy(tmp_path_factory, run):
    folder, rng = tmp_path_factory.mktemp("labels"), np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    Y = (X @ rng.normal(size=(4, 3)) + 0.3 * rng.normal(size=(50, 3)) > 0.2).astype(int)
    made = SimpleNamespace(folder=folder, X=X, Y=Y, train=slice(0, 30), test=slice(30, 50))
    for part in ("train", "test"):
        rows = vars(made)[part]
        (folder / f"{part}.arff").write_text(arff(X[rows], Y[rows]))
        (folder / f"{part}.csv").write_text(table(X[rows], Y[rows]))
        dump_svmlight_file(X[rows], Y[rows], str(folder / f"{part}.svm"), zero_based=False, multilabel=True)
    made.model = folder / "toy.mm"
    done = run("labels", "train", folder / "train.arff", *OPTIONS, "-o", made.model)
    assert done.exit_code == 0, done.output
    made.trained = done.stderr
    sets = [{LABELS[k] for k in np.flatnonzero(row)} for row in Y[made.train]]
    made.expected = mm.MultilabelClassifier(graph="full", rescaling="slack", C=0.5).fit(X[made.train], sets)
    return made


def as_sets(text):
    return [set(row) for row in csv.reader(text.splitlines())]


def test_train_says_what_it_did(toy):
    assert "30 examples, 4 features, 3 labels, 3 pairs of labels, 18 weights" in toy.trained
    assert "inference: all sets, slack: all sets; " in toy.trained
    assert "relative gap" in toy.trained and "read 0." in toy.trained and "toy.mm" in toy.trained
    model = mm.load(toy.model)
    assert model.classes_.tolist() == LABELS and model.feature_names_in_.tolist() == ["f0", "f1", "f2", "f3"]
    np.testing.assert_allclose(model.weights_, toy.expected.weights_)


def test_predictions_in_all_forms(toy, run, tmp_path):
    expected = toy.expected.predict(toy.X[toy.test])
    done = run("labels", "predict", toy.model, toy.folder / "test.arff")
    assert done.exit_code == 0 and as_sets(done.stdout) == expected
    out = tmp_path / "out.csv.gz"
    assert run("labels", "predict", toy.model, toy.folder / "test.csv", "--form", "matrix", "-o", out).exit_code == 0
    names, *rows = csv.reader(gzip.decompress(out.read_bytes()).decode().splitlines())
    assert names == LABELS and [{LABELS[k] for k, v in enumerate(row) if v == "1"} for row in rows] == expected
    done = run("labels", "predict", toy.model, toy.folder / "test.arff", "--form", "scores")
    scores = np.array([row for row in csv.reader(done.stdout.splitlines()[1:])], float)
    np.testing.assert_allclose(scores, toy.expected.decision_function(toy.X[toy.test]), rtol=1e-4)


def test_features_are_found_by_name(toy, run, tmp_path):
    """In another order, among other columns, without labels, or with unknown ones."""
    expected, X = toy.expected.predict(toy.X[toy.test]), toy.X[toy.test]
    (tmp_path / "a.csv").write_text(table(X, toy.Y[toy.test], order=[2, 0, 3, 1]))
    bare = [line.split(",")[1:5] for line in (toy.folder / "test.csv").read_text().splitlines()]
    (tmp_path / "b.tsv").write_text("\n".join("\t".join(row) for row in bare))
    (tmp_path / "c.arff").write_text(arff(X, toy.Y[toy.test], unknown=True))
    for name in ("a.csv", "b.tsv", "c.arff"):
        done = run("labels", "predict", toy.model, tmp_path / name)
        assert done.exit_code == 0 and as_sets(done.stdout) == expected, name
    (tmp_path / "d.csv").write_text("f0,f1\n1,2\n")
    done = run("labels", "predict", toy.model, tmp_path / "d.csv")
    assert done.exit_code == 1 and "d.csv, line 1: there is no column 'f2'" in done.stderr


def test_other_formats_train_the_same_model(toy, run, tmp_path):
    for file, more in [("train.csv", ["--labels", -3, "--skip", "id"]), ("train.svm", [])]:
        done = run("labels", "train", toy.folder / file, *more, *OPTIONS, "-o", tmp_path / "m.mm")
        assert done.exit_code == 0, done.output
        np.testing.assert_allclose(mm.load(tmp_path / "m.mm").weights_, toy.expected.weights_, atol=1e-2)
    assert mm.load(tmp_path / "m.mm").classes_.tolist() == ["0", "1", "2"]
    done = run("labels", "predict", tmp_path / "m.mm", toy.folder / "test.svm", "--form", "matrix")
    expected = [[int(label in row) for label in LABELS] for row in toy.expected.predict(toy.X[toy.test])]
    found = [list(map(int, row)) for row in csv.reader(done.stdout.splitlines()[1:])]
    assert np.mean(np.array(found) == expected) > 0.97
    (tmp_path / "tags.csv").write_text("x,tags\n1,a;b\n-1,b\n2,a;b\n-2,\n")
    tags = ["--labels", "tags", "--label-separator", ";"]
    assert run("labels", "train", tmp_path / "tags.csv", *tags, "-o", tmp_path / "t.mm").exit_code == 0
    assert mm.load(tmp_path / "t.mm").classes_.tolist() == ["a", "b"]
    assert run("labels", "evaluate", tmp_path / "t.mm", tmp_path / "tags.csv", *tags).exit_code == 0


@pytest.mark.parametrize("file", ["test.arff", "test.csv"])
def test_evaluate(toy, run, file):
    found = np.array([[label in row for label in LABELS] for row in toy.expected.predict(toy.X[toy.test])])
    done = run("labels", "evaluate", toy.model, toy.folder / file, "--json")
    assert done.exit_code == 0, done.output
    scores, true = json.loads(done.stdout), toy.Y[toy.test]
    assert scores["micro_f1"] == pytest.approx(f1_score(true, found, average="micro"))
    assert scores["label_loss"] == pytest.approx((true != found).mean())
    ranked = toy.expected.decision_function(toy.X[toy.test])
    area = average_precision_score(true.ravel(), ranked.ravel())
    assert scores["average_precision"] == pytest.approx(area, abs=1e-6)
    counts = [int(on[:, 2].sum()) for on in (true, found, true & found)]
    assert list(scores["by_label"]["news"].values()) == counts
    done = run("labels", "evaluate", toy.model, toy.folder / file)
    assert f"label loss        {100 * (true != found).mean():6.2f}%" in done.stdout
    assert f"average precision {100 * area:6.2f}%" in done.stdout
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("news")]
    assert rows[0][-3:] == list(map(str, counts))


def test_labels_never_seen_count_as_missed(toy, run, tmp_path):
    (tmp_path / "train.svm").write_text("1 1:1\n2 1:-1\n")
    (tmp_path / "test.svm").write_text("1,7 1:1\n2 1:-1\n")
    assert run("labels", "train", tmp_path / "train.svm", "-C", 10, "-o", tmp_path / "m.mm").exit_code == 0
    done = run("labels", "evaluate", tmp_path / "m.mm", tmp_path / "test.svm", "--json")
    assert json.loads(done.stdout)["by_label"]["7"] == {"n_true": 1, "n_predicted": 0, "n_right": 0}
    assert "never saw in training count as missed: 7." in done.stderr


def test_clus_files_and_files_that_do_not_say_their_labels(toy, run, tmp_path):
    lines = ["@relation r", "@attribute x numeric", "@attribute class hierarchical a,a/b,c", "@data", "1,a/b", "-1,c"]
    (tmp_path / "tree.arff").write_text("\n".join(lines))
    assert run("labels", "train", tmp_path / "tree.arff", "-C", 10, "-o", tmp_path / "m.mm").exit_code == 0
    assert run("labels", "predict", tmp_path / "m.mm", tmp_path / "tree.arff").stdout == "a,a/b\nc\n"
    done = run("labels", "evaluate", tmp_path / "m.mm", tmp_path / "tree.arff", "--json")
    assert json.loads(done.stdout)["subset_accuracy"] == 1.0
    (tmp_path / "plain.arff").write_text((toy.folder / "test.arff").read_text().replace("toy: -C 3", "toy"))
    paths = (tmp_path / "plain.arff", toy.folder / "test.arff")
    plain, said = (run("labels", "evaluate", toy.model, path).stdout for path in paths)
    assert plain == said and "micro F1" in plain


@pytest.mark.skipif("hierarchy" not in mm.MultilabelClassifier().get_params(), reason="the classifier has none")
def test_hierarchies(run, tmp_path):
    """The one that a Clus file declares, or pairs in a file; labels above those of an example are added."""
    header = ["@relation r", "@attribute x numeric", "@attribute y numeric", "@attribute class hierarchical a/b,a/d,c"]
    rows = [("1", "1", "a/b"), ("1", "-1", "a/d"), ("-1", "0", "c"), ("1", "0", "a")] * 3
    (tmp_path / "tree.arff").write_text("\n".join([*header, "@data", *map(",".join, rows)]))
    (tmp_path / "rows.svm").write_text("\n".join(f"{label} 1:{x} 2:{y}" for x, y, label in rows))
    (tmp_path / "pairs.csv").write_text("a,a/b\n\na,a/d\n")
    found = []
    for file, given in (("tree.arff", "declared"), ("rows.svm", tmp_path / "pairs.csv")):
        done = run("labels", "train", tmp_path / file, "--hierarchy", given, "-C", 10, "-o", tmp_path / "m.mm")
        assert done.exit_code == 0, done.output
        added = 0 if given == "declared" else 6  # of a file that has the lowest labels only
        assert f"labels above theirs added to {added} examples, 0 labels beyond the file's" in done.stderr
        found.append(as_sets(run("labels", "predict", tmp_path / "m.mm", tmp_path / file).stdout))
        done = run("labels", "evaluate", tmp_path / "m.mm", tmp_path / file, "--json")
        assert json.loads(done.stdout)["label_loss"] == 0.0
    assert found[0] == found[1] and found[0][:3] == [{"a", "a/b"}, {"a", "a/d"}, {"c"}]
    pairs = ("--hierarchy", tmp_path / "pairs.csv", "-o", tmp_path / "m.mm")
    assert run("labels", "train", tmp_path / "rows.svm", *pairs, "--paths", "single").exit_code == 0
    assert (mm.load(tmp_path / "m.mm").paths, mm.load(tmp_path / "m.mm").inference_) == ("single", "all outputs")
    done = run("labels", "train", tmp_path / "rows.svm", *pairs, "--leaves-only")
    assert done.exit_code == 1 and "line 4: " in done.stderr and "none of its children" in done.stderr
    for text, message in [("a\n", "line 1: 'a' is not a pair parent,child"), ("\n", "has no pairs of labels")]:
        (tmp_path / "pairs.csv").write_text(text)
        done = run(
            "labels", "train", tmp_path / "rows.svm", "--hierarchy", tmp_path / "pairs.csv", "-o", tmp_path / "n"
        )
        assert done.exit_code == 1 and message in done.stderr
    done = run("labels", "train", tmp_path / "rows.svm", "--hierarchy", "declared", "-o", tmp_path / "n.mm")
    assert done.exit_code == 1 and "declares no hierarchy of labels" in done.stderr


def test_missing_features(toy, run, tmp_path):
    text = (toy.folder / "train.arff").read_text().splitlines()
    text[10] = ",".join([*text[10].split(",")[:-1], "?"])
    (tmp_path / "gaps.arff").write_text("\n".join(text))
    done = run("labels", "train", tmp_path / "gaps.arff", "-o", tmp_path / "m.mm")
    assert (
        done.exit_code == 1 and "gaps.arff, line 11: 'f3' is missing; fill it in, or use --missing zero" in done.stderr
    )
    assert run("labels", "train", tmp_path / "gaps.arff", "--missing", "zero", "-o", tmp_path / "m.mm").exit_code == 0
    done = run("labels", "predict", tmp_path / "m.mm", tmp_path / "gaps.arff")
    assert done.exit_code == 1 and "line 11" in done.stderr


def test_no_input_is_overwritten(toy, run, tmp_path, monkeypatch):
    monkeypatch.setattr("maxmargin.estimators.multilabel_classifier.MultilabelClassifier.fit", lambda *_: 1 / 0)
    for path in (toy.folder / "train.arff", toy.model):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    data, model = tmp_path / "train.arff", tmp_path / "toy.mm"
    for arguments in [
        ("train", data, "-o", data),
        ("train", data, "-o", tmp_path / "no" / "m.mm"),
        ("train", data, "-o", "-"),
        ("predict", model, data, "-o", data),
        ("predict", model, data, "-o", model),
    ]:
        done = run("labels", *arguments)
        assert done.exit_code == 1 and len(done.stderr.splitlines()) == 1, done.output
    assert data.read_bytes() == (toy.folder / "train.arff").read_bytes()
    assert model.read_bytes() == toy.model.read_bytes()


def test_errors_are_one_line(toy, run, files, tmp_path):
    (tmp_path / "bad.arff").write_text(arff(toy.X, toy.Y).replace("0,1}", "0,1", 1))
    (tmp_path / "data.bin").write_text("")
    for arguments, message in [
        (("train", tmp_path / "bad.arff", "-o", tmp_path / "m"), "bad.arff, line 2"),
        (("train", tmp_path / "data.bin", "-o", tmp_path / "m"), "say its format with --format arff, libsvm or csv"),
        (("train", toy.folder / "train.csv", "-o", tmp_path / "m"), "name the columns of the labels with --labels"),
        (("train", toy.folder / "none.csv", "--labels", 1, "-o", tmp_path / "m"), "there is no file"),
        (("predict", tmp_path / "none.mm", toy.folder / "test.arff"), "there is no model file"),
        (("predict", files.model, toy.folder / "test.arff"), "holds a SequenceTagger, not a MultilabelClassifier"),
        (("evaluate", toy.model, toy.folder / "test.csv", "--labels", "nothing"), "there is no column 'nothing'"),
    ]:
        done = run("labels", *arguments)
        assert done.exit_code == 1 and message in done.stderr, done.output
        assert len(done.stderr.splitlines()) == 1 and "Traceback" not in done.output
    done = run("predict", toy.model, files.test)
    assert done.exit_code == 1 and "use: maxmargin labels predict" in done.stderr
    for option in (("--leaves-only",), ("--paths", "single")):
        done = run("labels", "train", toy.folder / "train.arff", *option, "-o", tmp_path / "m")
        assert done.exit_code == 2 and option[0] in done.stderr and "add --hierarchy" in done.stderr
    done = run("labels", "train", toy.folder / "train.arff", "--slack-search", "golden", "-o", tmp_path / "m")
    assert done.exit_code == 2 and "--slack-search" in done.stderr and "add --rescaling slack" in done.stderr


def test_slack_searches_by_name(toy, run, tmp_path):
    assert [*SlackSearch] == [*SLACK_SEARCHES]
    done = run("labels", "train", toy.folder / "train.arff", *OPTIONS, "--slack-search", "golden", "-o", tmp_path / "m")
    assert done.exit_code == 0 and "inference: all sets, slack: golden; " in done.stderr
    model = mm.load(tmp_path / "m")
    assert model.slack_search == "golden" and model.inference_ == "all sets; slack: golden"


def test_how_many_sets_are_not_proven_is_said(run, tmp_path):
    """Of 20 labels with pairs of either sign, with no budget for branching."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(15, 2)), rng.integers(0, 2, (15, 20))
    dump_svmlight_file(X, Y, str(tmp_path / "many.svm"), zero_based=False, multilabel=True)
    options = ("--graph", "full", "-C", 1, "--max-passes", 3, "-o", tmp_path / "m.mm")
    with mock.patch.object(label_set, "MOST_WORK", 0):
        done = run("labels", "train", tmp_path / "many.svm", *options)
        left = re.search(r"inference: branch and bound, (\d+) training predictions not proven", done.stderr)
        model = mm.load(tmp_path / "m.mm")
        count = int(model.unproven(X).sum())
        assert left is not None and int(left[1]) == count > 0
        for command in ("predict", "evaluate"):
            done = run("labels", command, tmp_path / "m.mm", tmp_path / "many.svm")
            assert done.exit_code == 0 and f"the sets of {count} of 15 examples are not proven" in done.stderr


def test_help_names_the_options(run):
    for command in ("train", "predict", "evaluate"):
        done = run("labels", command, "--help")
        assert done.exit_code == 0 and "--labels" in done.stdout
