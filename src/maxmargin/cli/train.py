"""``maxmargin train``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import INTERRUPTED, fail, guarded
from maxmargin.cli.files import FileOptions, warn_of_shape
from maxmargin.cli.model import (
    FeatureOptions,
    TextTagger,
    TrainingOptions,
    fit,
    fit_features,
    fit_files,
    main_score,
    ramp_start,
    text_features,
    usable,
)  # fmt: skip
from maxmargin.cli.outputs import check_model_output, save_model, warn_of_space
from maxmargin.cli.tables import show_table
from maxmargin.features.column_files import Table

if TYPE_CHECKING:
    import numpy as np

    from maxmargin.datasets.column_format import ColumnFormat
    from maxmargin.estimators.base import Structured
    from maxmargin.estimators.sequence_tagger import SequenceTagger

__all__ = ["Stopwatch", "finish", "train"]

_ABOUT_HELD_OUT = (
    "Column file, or a share of the sentences such as 0.1, to score during training (span F1, or token accuracy where "
    "labels are not spans): training ends when the score no longer rises, and the model keeps the best weights."
)


@guarded
@o.grouped
def train(
    inputs: o.LabelledFiles,
    output: o.ModelOutput,
    feature_options: FeatureOptions = FeatureOptions(),
    word_column: o.WordColumn = None,
    label_column: o.LabelColumn = None,
    C: o.CostWeight = 1.0,
    training: TrainingOptions = TrainingOptions(),
    ramp: o.RampOption = o.RampName.cost_diminished,
    start: o.Start = "zero",
    max_rounds: o.MaxRounds = None,
    passes_per_round: o.PassesPerRound = None,
    held_out: Annotated[str | None, o.of_stopping(help=_ABOUT_HELD_OUT, metavar="FILE")] = None,
    patience: Annotated[int, o.of_stopping(min=1, help="Stop after so many scores without improvement.")] = 5,
    precision: o.PrecisionOption = o.Precision.float64,
    memory_map: o.MemoryMap = None,
    files: FileOptions = FileOptions(),
    config: o.Config = None,
    debug: o.Debug = False,
) -> None:
    """Learn a tagger from column files and write it to a model file.

    A terminal shows the progress; elsewhere one line goes to standard error at the end.

    It says why training ended, how far from optimal the weights can be (certificate), and where the time went.

    Ctrl-C ends training, and the model is written all the same. The model remembers the format of the file.

    Examples:

      maxmargin train chunks.train -t t.txt --label-column 2 -C 0.1 -o chunker.mm

      zcat words.gz | maxmargin train - --constraints bio --held-out 0.1 -o ner.mm

      maxmargin train pos.train.xz --config pos.toml --held-out pos.dev -o pos.mm

      maxmargin train en-ud-train.conllu --label-column xpos -o tagger.mm

      maxmargin train chunks.train -t t.txt --solver sharded -j 2 -o chunker.mm

      maxmargin train part-*.gz -j 8 --memory-map packed -o tagger.mm
    """
    check_model_output(output, [*inputs, held_out, feature_options.template, start, config])
    live = sys.stderr.isatty()
    watch = Stopwatch()
    if len(inputs) > 1 or memory_map is not None:
        if held_out is not None or training.loss == "ramp":
            option = "--held-out" if held_out is not None else "--loss ramp"
            raise ValueError(f"{option} needs all sentences in one file; name one file without --memory-map.")
        tagger = training.tagger(C=C, verbose=int(live))
        with watch("train"):
            fit_files(tagger, inputs, feature_options, files, word_column, label_column, memory_map)
        finish(tagger, _facts(tagger, feature_options, f"{len(inputs)} files"), watch, output, str(precision))
        return
    with watch("read"):
        table = files.source(inputs[0]).table()
        warn_of_shape(table)
        place, columns = table.place(label_column), table.format(word_column)
        table, held = _hold_out(table, held_out, files, columns, training.seed)
        labels = table.labels(place)
    with watch("features"):
        features, X = fit_features(feature_options, table, columns.word_column, place)
    tagger = training.tagger(C=C, verbose=int(live))
    if tagger.loss == "ramp":
        from maxmargin.formulations.ramp import Ramp

        tagger.loss = Ramp(str(ramp), ramp_start(start, features), max_rounds, passes_per_round)
    if tagger.weights == "all":
        warn_of_space(output, 8.0 * features.n_features_ * len({label for y in labels for label in y}))
    stopping, score_name = None, ""
    if held is not None:
        from maxmargin.callbacks.early_stopping import EarlyStopping

        tagger.features_ = features
        held_X, held_labels = usable(tagger, held), held.labels(place)
        score_name, metric = main_score(labels)

        def score(weights: np.ndarray) -> float:
            return metric(held_labels, TextTagger(tagger.layout_, weights, features).predict(held_X))

        stopping = EarlyStopping(score, patience=patience)
        tagger.callbacks = [stopping]
    with watch("train"):
        fit(tagger, X, labels, table)
    tagger.features_, tagger.label_column_, tagger.columns_ = features, place, columns
    if stopping is not None and stopping.best_weights_ is None:  # Ctrl-C came before the first score
        stopping = None
    if stopping is not None:
        stopping.restore(tagger)
    examples = f"{len(table)} sentences, {table.n_tokens} tokens"
    more = {}
    if stopping is not None:
        more["held out"] = (
            f"{score_name} {100 * stopping.best_score_:.2f}% with the weights of pass {stopping.best_pass_:.4g}, "
            f"which the model keeps; {100 * stopping.scores_[-1]:.2f}% at the end, pass {tagger.n_iter_:.4g}"
        )
    finish(tagger, _facts(tagger, feature_options, examples), watch, output, str(precision), more)


def _facts(tagger: SequenceTagger, options: FeatureOptions, examples: str) -> dict[str, str]:
    """What a trained tagger has seen and made of it."""
    features, weights = text_features(tagger), tagger.weights_
    sizes = f"{features.n_features_} features, {len(weights)} weights, {(weights != 0).sum()} not zero"
    return {
        "examples": f"{examples}, {len(tagger.classes_)} labels, {sizes}",
        "features": _features(options.template, tagger.label_column_, tagger.columns_),
    }


def finish(
    model: Structured,
    facts: dict[str, str],
    watch: Stopwatch,
    output: str,
    precision: str,
    more: dict[str, str] | None = None,
) -> None:
    """Save a trained model, say what is known of it (``facts``, how training went, ``more``), and end the command."""
    with watch("write"):
        written, problem = save_model(model, output, precision)
    facts = {
        **facts,
        "status": model.status_.sentence,
        "certificate": str(model.certificate_),
        "time": _time(watch, model.seconds_),
        **(more or {}),
    }
    size = os.path.getsize(written)
    facts["model"] = f"{written}, " + (f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB")
    if sys.stderr.isatty():
        show_table("", ["", ""], list(facts.items()), file=sys.stderr)
    else:
        texts = [f"{name}: {text.rstrip('.')}" for name, text in facts.items()]
        typer.echo(f"maxmargin: {'; '.join(texts)}.", err=True)
    if problem:
        fail(problem)
    if model.status_.code == "interrupted":
        raise typer.Exit(INTERRUPTED)


class Stopwatch(dict[str, float]):
    """Seconds by stage: ``with watch("read"): ...``."""

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self[stage] = time.perf_counter() - begin


def _hold_out(
    table: Table, held_out: str | None, files: FileOptions, columns: ColumnFormat, seed: int
) -> tuple[Table, Table | None]:
    """Training sentences, and held-out ones: a share of the sentences, or a file of its own."""
    if held_out is None:
        return table, None
    try:
        share = float(held_out)
    except ValueError:
        return table, files.source(held_out, columns).table()
    if not 0 < share < 1 or len(table) < 2:
        advice = "give a share between 0 and 1 that leaves sentences on both sides, or a file"
        raise ValueError(f"--held-out {held_out} of the {len(table)} sentences of {table.source.name}: {advice}.")
    import numpy as np

    order = np.random.default_rng(seed).permutation(len(table))
    n = min(max(1, round(share * len(table))), len(table) - 1)
    return table.take(np.sort(order[n:])), table.take(np.sort(order[:n]))


def _features(template: str | None, labels: int, columns: ColumnFormat) -> str:
    """Describe the features; the default ones leave columns unread that a template can read."""
    if template is not None:
        return template
    if columns.conllu:
        from maxmargin.datasets.column_format import FIELDS

        return f"words, affixes and shapes of {FIELDS[columns.word_column]}, labels in {FIELDS[labels]} (CoNLL-U)"
    unread = [str(column) for column in range(columns.width) if column not in (labels, columns.word_column)]
    several = "s" * (len(unread) > 1)
    advice = f"; a template (-t) can read column{several} {', '.join(unread)} too" if unread else ""
    return f"words, affixes and shapes of column {columns.word_column}{advice}"


def _time(watch: dict[str, float], seconds: dict[str, float]) -> str:
    from maxmargin.pages.time_split import time_split

    around = ", ".join(f"{stage} {passed:.2f} s" for stage, passed in watch.items() if stage != "train")
    return f"{sum(watch.values()):.2f} s: {around}, training {time_split(seconds)}"
