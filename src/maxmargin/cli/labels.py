"""``maxmargin labels train``, ``maxmargin labels predict`` and ``maxmargin labels evaluate``."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, cast

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import fitting, guarded
from maxmargin.cli.label_files import DECLARED, Known, LabelFileOptions, hierarchy_of
from maxmargin.cli.model import check_model_input
from maxmargin.cli.outputs import check_model_output, check_output, opened_output
from maxmargin.cli.progress import in_parts
from maxmargin.cli.tables import show_table
from maxmargin.cli.train import Stopwatch, finish

if TYPE_CHECKING:
    import numpy as np

    from maxmargin.datasets.label_data import LabelData
    from maxmargin.estimators.multilabel_classifier import MultilabelClassifier, Sets

__all__ = ["labels"]

Graph = StrEnum("Graph", ["none", "tree", "full"])
Paths = StrEnum("Paths", ["multiple", "single"])
Cost = StrEnum("Cost", ["hamming", "f1", "jaccard"])
Form = StrEnum("Form", ["lists", "matrix", "scores"])

_ABOUT_FILE = "ARFF, LIBSVM or CSV file with labels, or - for standard input."
_ABOUT_GRAPH = "Pairs of labels with a weight: none, a tree by mutual information, or all (full)."
_ABOUT_HIERARCHY = (
    "Labels come with all labels above them: a file with a line parent,child for each pair, or the hierarchy that the "
    "training file declares (Clus, Mulan)."
)
_ABOUT_PATHS = "With a hierarchy: single answers with one label and those above it."
_ABOUT_LEAVES = "With a hierarchy: answers are lowest labels and those above them; no path ends earlier."
_ABOUT_COST = "What a wrong set costs: the number of wrong labels (hamming), 1 - F1 or 1 - Jaccard index."
_ABOUT_FORM = (
    "lists: the labels of each example, with commas between; matrix: CSV of 0 and 1 with a column per label; scores: "
    "the same with how much better the best set with the label is than the best without it."
)

SHARES = (
    "subset accuracy", "Jaccard accuracy", "label loss", "micro F1", "macro F1", "example F1", "average precision",
)  # fmt: skip

labels = typer.Typer(name="labels", no_args_is_help=True, help="Several labels per example, of ARFF, LIBSVM or CSV.")


@labels.command(no_args_is_help=True)
@guarded
@o.grouped
def train(
    file: Annotated[str, typer.Argument(help=_ABOUT_FILE)],
    output: o.ModelOutput,
    C: o.CostWeight = 1.0,
    graph: Annotated[Graph, o.of_training("--graph", help=_ABOUT_GRAPH)] = Graph.none,
    hierarchy: Annotated[str | None, o.of_training(help=_ABOUT_HIERARCHY, metavar="FILE|declared")] = None,
    paths: Annotated[Paths, o.of_training("--paths", help=_ABOUT_PATHS)] = Paths.multiple,
    leaves_only: Annotated[bool, o.of_training("--leaves-only", help=_ABOUT_LEAVES)] = False,
    cost: Annotated[Cost, o.of_training("--cost", help=_ABOUT_COST)] = Cost.hamming,
    penalty: o.PenaltyOption = o.Penalty.l2,
    rescaling: o.RescalingOption = None,
    slack_search: o.SearchOption = o.SlackSearch.auto,
    fit: o.FitOptions = o.FitOptions(),
    precision: o.PrecisionOption = o.Precision.float64,
    files: LabelFileOptions = LabelFileOptions(),
    config: o.Config = None,
    debug: o.Debug = False,
) -> None:
    """Learn a multi-label classifier and write it to a model file.

    A terminal shows the progress; elsewhere one line goes to standard error at the end.

    Ctrl-C ends training, and the model is written all the same.

    Examples:

      maxmargin labels train yeast.arff --labels -14 --graph full --rescaling slack -C 0.1 -o yeast.mm

      maxmargin labels train rcv1.svm.gz --graph tree -o rcv1.mm

      maxmargin labels train enron.arff --hierarchy declared -o enron.mm

      maxmargin labels train posts.csv --labels tags --label-separator ';' --skip id -o posts.mm
    """
    if hierarchy is None and (leaves_only or paths == Paths.single):
        option = "--leaves-only" if leaves_only else "--paths"
        raise typer.BadParameter("it is about a hierarchy; add --hierarchy, or leave it out.", param_hint=option)
    if slack_search != o.SlackSearch.auto and rescaling not in ("slack", "sqrt_slack"):
        advice = "it is about slack rescaling; add --rescaling slack, or leave it out."
        raise typer.BadParameter(advice, param_hint="--slack-search")
    pairs_file = None if hierarchy == DECLARED else hierarchy
    check_model_output(output, [file, files.xml, pairs_file, config])
    from maxmargin.datasets.label_data import with_hierarchy

    live = sys.stderr.isatty()
    watch, facts = Stopwatch(), {}
    with watch("read"):
        data = given = files.read(file)
        if hierarchy is not None:
            data = with_hierarchy(given, hierarchy_of(hierarchy, given))
            facts["hierarchy"] = completed(given, data)
    import numpy as np

    from maxmargin.estimators.multilabel_classifier import MultilabelClassifier

    model = MultilabelClassifier(
        C=C,
        graph=None if graph == "none" else str(graph),
        paths=str(paths),
        leaves_only=leaves_only,
        cost=str(cost),
        penalty=str(penalty),
        rescaling=None if rescaling is None else str(rescaling),
        slack_search=str(slack_search),
        verbose=int(live),
    ).set_params(**fit.parameters())
    if hierarchy is not None:
        model.set_params(hierarchy=data.hierarchy)
    with watch("train"), fitting(file, lambda example, _: data.lines[example]):
        model.fit(data.X, targets(data))
    model.feature_names_in_ = np.array(data.feature_names, dtype=object)  # so that other files are read by name
    shape = f"{len(data)} examples, {data.X.shape[1]} features, {len(data.label_names)} labels"
    facts = {"examples": f"{shape}, {len(model.edges_)} pairs of labels, {model.layout_.n_weights} weights"} | facts
    facts["inference"] = model.inference_.replace("; ", ", ")  # facts have semicolons between
    if model.fractional_:
        facts["inference"] += f", {model.fractional_} training predictions not proven to be the best"
    finish(model, facts, watch, output, str(precision))


@labels.command(no_args_is_help=True)
@guarded
@o.grouped
def predict(
    model: o.ModelFile,
    file: Annotated[str, typer.Argument(help="ARFF, LIBSVM or CSV file; its labels are not read.")],
    output: o.TextOutput = "-",
    form: Annotated[Form, o.of_output("--form", help=_ABOUT_FORM)] = Form.lists,
    files: LabelFileOptions = LabelFileOptions(),
    debug: o.Debug = False,
) -> None:
    """Write the labels of each example of a file, one line each.

    Features are found by their names in ARFF and CSV, and by their numbers in LIBSVM.

    Examples:

      maxmargin labels predict yeast.mm new.arff > labels.txt

      maxmargin labels predict rcv1.mm test.svm.gz --form matrix -o labels.csv
    """
    check_output(output, [file, model, files.xml])
    classifier, known = load(model)
    data = files.read(file, known, labelled=False)
    tell_unproven(classifier, data)
    if form == "scores":
        rows = [[f"{value:.6g}" for value in row] for row in classifier.decision_function(data.X)]
    else:
        on = predicted(classifier, data)
        flags = [[str(int(value)) for value in row] for row in on]
        rows = flags if form == "matrix" else [[known.labels[k] for k in row.nonzero()[0]] for row in on]
    with opened_output(output) as out:
        writer = csv.writer(out, lineterminator="\n")
        if form != "lists":
            writer.writerow(known.labels)
        writer.writerows(rows)


@labels.command(no_args_is_help=True)
@guarded
@o.grouped
def evaluate(
    model: o.ModelFile,
    file: Annotated[str, typer.Argument(help=_ABOUT_FILE)],
    as_json: Annotated[bool, o.of_output("--json", help="Write one JSON object; shares are from 0 to 1.")] = False,
    files: LabelFileOptions = LabelFileOptions(),
    debug: o.Debug = False,
) -> None:
    """Compare predicted label sets with the true ones of a file.

    Subset accuracy is the share of sets that are right to the last label; Jaccard accuracy the mean overlap of the two
    sets; label loss the share of wrong labels; micro F1 counts all labels of all examples together, macro F1 is the
    mean over labels (0 for one that never occurs), example F1 the mean over examples. Average precision is the area
    under the precision-recall curve of all labels of all examples, ranked together by their scores.

    Examples:

      maxmargin labels evaluate yeast.mm test.arff

      maxmargin labels evaluate rcv1.mm test.svm.gz --json > scores.json
    """
    from maxmargin.datasets.label_data import with_hierarchy
    from maxmargin.metrics import label_report

    classifier, known = load(model)
    data, names = files.read(file, known), known.labels
    tell_unproven(classifier, data)
    above = classifier.get_params(deep=False).get("hierarchy")
    if above is not None:  # of true sets that name the lowest labels only
        data = with_hierarchy(data, [(str(parent), str(child)) for parent, child in above])
    unseen = [label for label in data.label_names if label not in names]
    found = [[names[k] for k in row.nonzero()[0]] for row in predicted(classifier, data)]
    report = label_report(data.sets(), found, names + unseen)
    scores = asdict(report) | {"average_precision": average_precision(classifier, data, names + unseen)}
    if as_json:
        typer.echo(json.dumps(scores, ensure_ascii=False, indent=2))
    else:
        typer.echo(f"{len(data)} examples, {len(names)} labels")
        for name in SHARES:
            share = scores[name.lower().replace(" ", "_")]
            typer.echo(f"{name:17} {'   none' if share is None else f'{100 * share:6.2f}%'}")
        typer.echo()
        rows = []
        for label, s in report.by_label.items():
            ratios = [f"{100 * ratio:.2f}" for ratio in (s.precision, s.recall, s.f1)]
            rows.append((label, *ratios, s.n_true, s.n_predicted, s.n_right))
        show_table("labels", ["label", "precision", "recall", "F1", "true", "predicted", "right"], rows)
    if unseen:
        shown = ", ".join(unseen[:5]) + (f" and {len(unseen) - 5} more" if len(unseen) > 5 else "")
        typer.echo(f"maxmargin: labels that the model never saw in training count as missed: {shown}.", err=True)


def completed(given: LabelData, data: LabelData) -> str:
    """What a hierarchy has added to the labels of a file."""
    old = given.Y.shape[1]
    more = (data.Y[:, :old] != given.Y).any(axis=1) | (data.Y[:, old:] != 0).any(axis=1)
    return f"labels above theirs added to {int(more.sum())} examples, {data.Y.shape[1] - old} labels beyond the file's"


def load(path: str) -> tuple[MultilabelClassifier, Known]:
    """The classifier of a model file, and what it knows of its training file."""
    from maxmargin.estimators.multilabel_classifier import MultilabelClassifier

    check_model_input(path)
    model = MultilabelClassifier.load(path)
    names = vars(model).pop("feature_names_in_", None)  # the columns of a file are put in order by name when it is read
    features = None if names is None else [str(name) for name in names]
    return model, Known(int(model.n_features_in_), features, list(map(str, model.classes_)))


def average_precision(model: MultilabelClassifier, data: LabelData, names: list[str]) -> float | None:
    """Of all pairs of an example and one of the labels, those never seen in training last.

    None where no label is on, or where scores would take a search by branch and bound for each label and example.
    """
    import numpy as np

    from maxmargin.metrics import micro_average_precision
    from maxmargin.models.label_targets import LabelTargets

    on = LabelTargets.of(data.sets(), names).on
    if not on.any() or model.layout_.inference == "branch and bound":
        return None
    scores = model.decision_function(data.X)
    unseen = len(names) - scores.shape[1]
    scores = np.pad(scores, ((0, 0), (0, unseen)), constant_values=scores.min(initial=0.0) - 1.0)
    return micro_average_precision(on, scores)


def tell_unproven(model: MultilabelClassifier, data: LabelData) -> None:
    """Say of how many examples the predicted set is not proven to be the best."""
    open_ended = model.layout_.inference == "branch and bound" and int(model.unproven(data.X).sum())
    if open_ended:
        what = f"the sets of {open_ended} of {len(data)} examples are not proven to be the best"
        typer.echo(f"maxmargin: {what}: the budget of branch and bound ended.", err=True)


def predicted(model: MultilabelClassifier, data: LabelData) -> list[np.ndarray]:
    """Which labels are on, bool (n_labels,) for each example, whatever form of y the model was fitted with."""
    from maxmargin.models.label_targets import LabelTargets

    def part(rows: Sequence[int]) -> list[np.ndarray]:
        return list(LabelTargets.of(model.predict(data.X[rows[0] : rows[-1] + 1]), model.classes_).on)

    return in_parts(part, range(len(data)), "predicting")


def targets(data: LabelData) -> Sets:
    """The label sets of a file, with the order and the names of its labels."""
    from maxmargin.models.label_targets import LabelTargets
    from maxmargin.models.labels import Labels

    return cast("Sets", LabelTargets(data.Y != 0, Labels(data.label_names), "sets"))
