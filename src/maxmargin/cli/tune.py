"""``maxmargin tune``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import guarded
from maxmargin.cli.files import Source, Table, column_place
from maxmargin.cli.model import FeatureOptions, TrainingOptions, check_writable, fit, fit_features, span_like, usable
from maxmargin.cli.tables import show_table

__all__ = ["progress_bar", "tune"]


@dataclass
class Score:
    """Scores of one C over the folds."""

    C: float
    main: list[float]
    accuracy: list[float]
    passes: list[float]

    @property
    def mean(self) -> float:
        return sum(self.main) / len(self.main)

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        n, mean = len(self.main), self.mean
        return (sum((s - mean) ** 2 for s in self.main) / (n - 1) / n) ** 0.5


@guarded
@o.grouped
def tune(
    file: o.LabelledFile,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Model file to train on all sentences with the chosen C.", metavar="FILE"),
    ] = None,
    C_min: Annotated[float, typer.Option("--C-min", help="Smallest C.")] = 0.01,
    C_max: Annotated[float, typer.Option("--C-max", help="Largest C.")] = 1.0,
    steps: Annotated[int, typer.Option(min=1, help="Number of values of C, in equal ratios.")] = 7,
    folds: o.Folds = 5,
    one_standard_error: Annotated[
        bool, typer.Option("--one-standard-error", help="Choose the smallest C within one standard error of the best.")
    ] = False,
    feature_options: FeatureOptions = FeatureOptions(),
    label_column: o.LabelColumn = -1,
    training: TrainingOptions = TrainingOptions(tol=1e-2),
    separator: o.Separator = None,
    comment: o.Comment = None,
    config: o.Config = None,
    debug: o.Debug = False,
) -> None:
    """Choose C by cross-validation.

    C rises, and each fit starts from the previous one. Sentences are dealt to the folds at random (--seed).

    Scores are span F1, or token accuracy where labels are not spans; +- is the standard error of the mean.

    Examples:

      maxmargin tune train.txt --label-column 2 --C-min 0.01 --C-max 1 --folds 5

      maxmargin tune train.txt --template t.txt --one-standard-error -o best.mm
    """
    if not 0 < C_min <= C_max:
        raise typer.BadParameter(f"need 0 < C-min <= C-max, got {C_min:g} and {C_max:g}.", param_hint="--C-min")
    if output is not None:
        check_writable(output)
    table = Source(file, separator, comment).table()
    labels = table.labels(label_column)
    if len(table) < folds:
        raise ValueError(f"{table.source.name} has {len(table)} sentences; {folds} folds need at least as many.")
    by_span = span_like(labels)
    values = [C_min * (C_max / C_min) ** (k / max(1, steps - 1)) for k in range(steps if C_max > C_min else 1)]
    scores = _cross_validate(table, labels, values, folds, feature_options, training, label_column, by_span)
    best = chosen = max(scores, key=lambda score: score.mean)
    if one_standard_error:
        chosen = next(score for score in scores if score.mean >= best.mean - best.error)
    name = "span F1" if by_span else "token accuracy"
    rows: list[list[str]] = []
    for score in scores:
        mean = f"{100 * score.mean:.2f} +- {100 * score.error:.2f}"
        accuracy = [f"{100 * sum(score.accuracy) / folds:.2f}"] if by_span else []
        mark = "*" if score is chosen else ""
        rows.append([f"{score.C:.4g}", mean, *accuracy, f"{sum(score.passes) / folds:.1f}", mark])
    header = ["C", name, *(["token accuracy"] if by_span else []), "passes", "chosen"]
    show_table(f"{folds}-fold cross-validation, {len(table)} sentences", header, rows)
    if output is not None:
        features, X = fit_features(feature_options, table, label_column)
        tagger = fit(training.tagger(C=chosen.C), X, labels, table)
        tagger.features_ = features
        tagger.label_column_ = column_place(label_column, len(table.columns), table.source.name)
        tagger.save(output)
        typer.echo(f"maxmargin: {tagger.status_.sentence} Wrote {output} with C = {chosen.C:.4g}.", err=True)


def _cross_validate(
    table: Table, labels: list[list[str]], values: list[float], folds: int, feature_options: FeatureOptions,
    training: TrainingOptions, label_column: int, by_span: bool,
) -> list[Score]:  # fmt: skip
    """Scores of all values of C, in rising order, on the held-out sentences of each fold."""
    import numpy as np

    from maxmargin.metrics import span_f1, token_accuracy

    order = np.random.default_rng(training.seed).permutation(len(table))
    scores = [Score(C, [], [], []) for C in values]
    with progress_bar(folds * len(values)) as advance:
        for fold in range(folds):
            out = np.sort(order[fold::folds])
            inside = np.setdiff1d(order, out)
            part, rest = table.take(inside), table.take(out)
            part_labels, rest_labels = [labels[i] for i in inside.tolist()], [labels[i] for i in out.tolist()]
            features, X = fit_features(feature_options, part, label_column)
            tagger = training.tagger(warm_start=True)
            tagger.features_ = features
            rest_X = usable(tagger, rest)
            for score in scores:
                tagger.set_params(C=score.C)
                fit(tagger, X, part_labels, part)
                guess = tagger.predict(rest_X)
                score.accuracy.append(token_accuracy(rest_labels, guess))
                score.main.append(span_f1(rest_labels, guess) if by_span else score.accuracy[-1])
                score.passes.append(tagger.n_iter_)
                advance()
    return scores


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, nothing elsewhere; gives a function that advances it."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("fits", total=total)
        yield lambda: bar.advance(task)
