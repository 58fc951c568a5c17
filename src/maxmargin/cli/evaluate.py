"""``maxmargin evaluate``."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import guarded, located
from maxmargin.cli.files import Source
from maxmargin.cli.model import constrain, label_place, load_text_tagger, span_like, usable
from maxmargin.cli.tables import show_table

__all__ = ["evaluate"]

_ABOUT_LABELS = "Column of the true labels, from 0; by default as in training, or the last but one of --predicted."


@guarded
def evaluate(
    model: Annotated[str | None, typer.Argument(help="Model file.")] = None,
    file: Annotated[str | None, typer.Argument(help="Column file with labels, or -.")] = None,
    predicted: Annotated[
        str | None,
        typer.Option(help="Evaluate this file of true and predicted labels (or -) instead of a model.", metavar="FILE"),
    ] = None,
    label_column: Annotated[int | None, o.of_files(help=_ABOUT_LABELS)] = None,
    predicted_column: Annotated[int, o.of_files(help="Column of the predicted labels in --predicted.")] = -1,
    constraints: o.ConstraintsOption = None,
    confusions: Annotated[int, typer.Option(min=0, help="How many confused pairs of labels to show.")] = 10,
    separator: o.Separator = None,
    comment: o.Comment = None,
    debug: o.Debug = False,
) -> None:
    """Compare predictions with the truth: accuracy, spans as conlleval counts them, and confused labels.

    Examples:

      maxmargin evaluate chunker.mm test.txt

      maxmargin predict chunker.mm test.txt | maxmargin evaluate --predicted -
    """
    if (predicted is None) == (model is None) or (predicted is None) != (file is not None):
        raise typer.BadParameter("give a model and a file, or --predicted and no model.")
    source = Source(predicted if predicted is not None else str(file), separator, comment)
    unseen: Counter[str] = Counter()
    if predicted is not None:
        table = source.table()
        true = table.labels(-2 if label_column is None else label_column)
        guess = table.labels(predicted_column)
    else:
        tagger = constrain(load_text_tagger(str(model)), constraints)
        table = source.table()
        true = table.labels(label_place(tagger, label_column, len(table.columns), source.name))
        X = usable(tagger, table)
        with located(source.name, source.line):
            guess = [list(map(str, labels)) for labels in tagger.predict(X)]
        known = set(map(str, tagger.classes_))
        unseen.update(label for labels in true for label in labels if label not in known)
    _report(true, guess, confusions)
    if unseen:
        shown = ", ".join(f"{label} ({n} tokens)" for label, n in unseen.most_common(5))
        more = f" and {len(unseen) - 5} more" if len(unseen) > 5 else ""
        typer.echo(f"maxmargin: labels that the model never saw in training count as wrong: {shown}{more}.", err=True)


def _report(true: list[list[str]], guess: list[list[str]], confusions: int) -> None:
    from maxmargin.metrics import sequence_accuracy, span_report, token_accuracy

    pairs = Counter((a, b) for left, right in zip(true, guess, strict=True) for a, b in zip(left, right, strict=True))
    wrong = {pair: n for pair, n in pairs.items() if pair[0] != pair[1]}
    typer.echo(f"{sum(pairs.values())} tokens in {len(true)} sentences")
    typer.echo(f"token accuracy     {100 * token_accuracy(true, guess):.2f}%")
    typer.echo(f"sentence accuracy  {100 * sequence_accuracy(true, guess):.2f}%\n")
    if span_like(true, guess):
        report = span_report(true, guess)
        rows = []
        for name, s in [*report.by_type.items(), ("all", report.overall)]:
            ratios = [f"{100 * ratio:.2f}" for ratio in (s.precision, s.recall, s.f1)]
            rows.append((name, *ratios, s.n_true, s.n_predicted, s.n_right))
        show_table("spans", ["type", "precision", "recall", "F1", "true", "predicted", "right"], rows)
    if wrong and confusions:
        total = Counter(label for labels in true for label in labels)
        ordered = sorted(wrong.items(), key=lambda item: (-item[1], item[0]))[:confusions]
        rows = [(a, b, n, f"{100 * n / total[a]:.1f}%") for (a, b), n in ordered]
        show_table("most confused", ["true", "predicted", "tokens", "of the true"], rows)
