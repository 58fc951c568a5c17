"""``maxmargin tune``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import INTERRUPTED, fail, guarded
from maxmargin.cli.files import FileOptions, warn_of_shape
from maxmargin.cli.model import FeatureOptions, Metric, TrainingOptions, fit, fit_features, main_score, usable
from maxmargin.cli.outputs import check_model_output, save_model
from maxmargin.cli.progress import progress_bar
from maxmargin.cli.tables import show_table
from maxmargin.features.column_files import Table

if TYPE_CHECKING:
    from maxmargin.estimators.sequence_tagger import SequenceTagger

__all__ = ["tune"]

_ABOUT_HELD_OUT = "Development file to score on, instead of folds; each C is trained on all sentences."


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
        return math.nan if n == 1 else (sum((s - mean) ** 2 for s in self.main) / (n - 1) / n) ** 0.5


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
    held_out: Annotated[str | None, typer.Option(help=_ABOUT_HELD_OUT, metavar="FILE")] = None,
    one_standard_error: Annotated[
        bool, typer.Option("--one-standard-error", help="Choose the smallest C within one standard error of the best.")
    ] = False,
    feature_options: FeatureOptions = FeatureOptions(),
    word_column: o.WordColumn = None,
    label_column: o.LabelColumn = None,
    training: TrainingOptions = TrainingOptions(tol=1e-2),
    files: FileOptions = FileOptions(),
    config: o.Config = None,
    debug: o.Debug = False,
) -> None:
    """Choose C by cross-validation, or by the scores on a development file (--held-out).

    C rises, and each fit starts from the previous one. Sentences are dealt to the folds at random (--seed).

    Scores are span F1, or token accuracy where labels are not spans; +- is their standard error over the folds.

    Ctrl-C shows the scores of the folds that are complete.

    Examples:

      maxmargin tune train.txt --label-column 2 --C-min 0.01 --C-max 1 --folds 5

      maxmargin tune train.txt --template t.txt --one-standard-error -o best.mm

      maxmargin tune train.txt --held-out dev.txt --C-max 10 -o best.mm
    """
    if not 0 < C_min <= C_max:
        raise typer.BadParameter(f"need 0 < C-min <= C-max, got {C_min:g} and {C_max:g}.", param_hint="--C-min")
    if held_out is not None and one_standard_error:
        raise typer.BadParameter("one development file has no standard error; leave it out, or leave out --held-out.")
    if output is not None:
        check_model_output(output, [file, held_out, feature_options.template, config])
    table = files.source(file).table()
    warn_of_shape(table)
    place, columns = table.place(label_column), table.format(word_column)
    if held_out is None and len(table) < folds:
        raise ValueError(f"{table.source.name} has {len(table)} sentences; {folds} folds need at least as many.")
    held = None if held_out is None else files.source(held_out, columns).table()
    labels = table.labels(place)
    name, metric = main_score(labels)
    values = [C_min * (C_max / C_min) ** (k / max(1, steps - 1)) for k in range(steps if C_max > C_min else 1)]
    scores = [Score(C, [], [], []) for C in values]
    splits = _folds(table, folds, training.seed) if held is None else iter([(table, held)])
    rounds, interrupted = folds if held is None else 1, False
    with progress_bar(rounds * len(values), "fits") as advance:
        try:
            for part, rest in splits:
                fits = training.tagger(warm_start=True), feature_options, columns.word_column, place
                _score_fold(scores, part, rest, metric, *fits, advance)
        except KeyboardInterrupt:
            if not scores[0].main:
                raise
            interrupted = True
    best = chosen = max(scores, key=lambda score: score.mean)
    if one_standard_error and not math.isnan(best.error):
        chosen = next(score for score in scores if score.mean >= best.mean - best.error)
    _show(scores, chosen, name, len(table), held)
    if interrupted:
        typer.echo(f"maxmargin: interrupted after {len(best.main)} of {rounds} folds.", err=True)
        raise typer.Exit(INTERRUPTED)
    _warn_of_edge([score.C for score in scores if score.mean == best.mean], values)
    if output is not None:
        features, X = fit_features(feature_options, table, columns.word_column, place)
        tagger = fit(training.tagger(C=chosen.C), X, labels, table)
        tagger.features_, tagger.label_column_, tagger.columns_ = features, place, columns
        written, problem = save_model(tagger, output)
        typer.echo(f"maxmargin: {tagger.status_.sentence} Wrote {written} with C = {chosen.C:.4g}.", err=True)
        if problem:
            fail(problem)


def _show(scores: list[Score], chosen: Score, name: str, n_sentences: int, held: Table | None) -> None:
    """Print the scores of all values of C."""
    rows: list[list[str]] = []
    rounds, by_span = len(scores[0].main), name != "token accuracy"
    for score in scores:
        mean = f"{100 * score.mean:.2f}" + ("" if rounds == 1 else f" +- {100 * score.error:.2f}")
        accuracy = [f"{100 * sum(score.accuracy) / rounds:.2f}"] if by_span else []
        rows.append([f"{score.C:.4g}", mean, *accuracy, f"{sum(score.passes) / rounds:.1f}", "*" * (score is chosen)])
    header = ["C", name, *(["token accuracy"] if by_span else []), "passes", "chosen"]
    how = f"{rounds}-fold cross-validation" if held is None else f"{len(held)} sentences of {held.source.name}"
    show_table(
        f"{how}, trained on {n_sentences} sentences" if held else f"{how}, {n_sentences} sentences", header, rows
    )


def _warn_of_edge(equally_good: list[float], values: list[float]) -> None:
    """Say so when the best C may lie beyond the values that were tried."""
    best, *others = equally_good
    if others or len(values) == 1 or best not in (values[0], values[-1]):
        return
    word, option, further = (
        ("smallest", "--C-min", best / 10) if best == values[0] else ("largest", "--C-max", 10 * best)
    )
    found = f"the best C, {best:.4g}, is the {word} that was tried, and a better one may lie beyond"
    typer.echo(f"maxmargin: {found}; try {option} {further:.4g}.", err=True)


def _folds(table: Table, folds: int, seed: int) -> Iterator[tuple[Table, Table]]:
    """The sentences inside and outside of each fold."""
    import numpy as np

    order = np.random.default_rng(seed).permutation(len(table))
    for fold in range(folds):
        out = np.sort(order[fold::folds])
        yield table.take(np.setdiff1d(order, out)), table.take(out)


def _score_fold(
    scores: list[Score], part: Table, rest: Table, metric: Metric, tagger: SequenceTagger,
    feature_options: FeatureOptions, words: int, place: int, advance: Callable[[int], None],
) -> None:  # fmt: skip
    """Train on one part with each C, in rising order, and score on the rest; all scores are added, or none."""
    from maxmargin.metrics import token_accuracy

    features, X = fit_features(feature_options, part, words, place)
    tagger.features_ = features
    rest_X, rest_labels, labels = usable(tagger, rest), rest.labels(place), part.labels(place)
    found = []
    for score in scores:
        tagger.set_params(C=score.C)
        fit(tagger, X, labels, part)
        if tagger.status_.code == "interrupted":
            raise KeyboardInterrupt
        guess = [list(map(str, y)) for y in tagger.predict(rest_X)]
        found.append((metric(rest_labels, guess), token_accuracy(rest_labels, guess), tagger.n_iter_))
        advance(1)
    for score, (main, accuracy, passes) in zip(scores, found, strict=True):
        score.main.append(main)
        score.accuracy.append(accuracy)
        score.passes.append(passes)
