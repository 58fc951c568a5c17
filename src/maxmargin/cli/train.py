"""``maxmargin train``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import guarded
from maxmargin.cli.files import Source, Table, column_place
from maxmargin.cli.model import FeatureOptions, TrainingOptions, check_writable, fit, fit_features, ramp_start, usable
from maxmargin.cli.tables import show_table

__all__ = ["train"]

_ABOUT_HELD_OUT = (
    "Column file, or a share of the sentences such as 0.1, to score during training: training ends when the accuracy "
    "no longer rises, and the model keeps the best weights."
)


@guarded
@o.grouped
def train(
    file: o.LabelledFile,
    output: Annotated[str, typer.Option("--output", "-o", help="Model file to write.", metavar="FILE")],
    feature_options: FeatureOptions = FeatureOptions(),
    label_column: o.LabelColumn = -1,
    C: o.CostWeight = 1.0,
    training: TrainingOptions = TrainingOptions(),
    ramp: o.RampOption = o.RampName.cost_diminished,
    start: o.Start = "zero",
    max_rounds: o.MaxRounds = None,
    passes_per_round: o.PassesPerRound = None,
    held_out: Annotated[str | None, o.of_stopping(help=_ABOUT_HELD_OUT, metavar="FILE")] = None,
    patience: Annotated[int, o.of_stopping(min=1, help="Scores on --held-out without improvement.")] = 5,
    precision: Annotated[
        o.Precision, o.of_files(help="Of the stored weights; float32 takes half the space.")
    ] = o.Precision.float64,
    separator: o.Separator = None,
    comment: o.Comment = None,
    config: o.Config = None,
    debug: o.Debug = False,
) -> None:
    """Learn a tagger from a column file and write it to a model file.

    A terminal shows progress; elsewhere one line goes to standard error at the end.

    It says why training ended, how far from optimal the weights can be (certificate), and where the time went.

    Examples:

      maxmargin train chunks.train -t t.txt --label-column 2 -C 0.1 -o chunker.mm

      zcat words.gz | maxmargin train - --constraints bio --held-out 0.1 -o ner.mm

      maxmargin train pos.train.xz --config pos.toml --held-out pos.dev -o pos.mm
    """
    check_writable(output)
    live = sys.stderr.isatty()
    watch = Stopwatch()
    with watch("read"):
        table = Source(file, separator, comment).table()
        place = column_place(label_column, len(table.columns), table.source.name)
        table, held = _hold_out(table, held_out, training.seed)
        labels = table.labels(place)
    with watch("features"):
        features, X = fit_features(feature_options, table, label_column)
    tagger = training.tagger(C=C, verbose=int(live))
    if tagger.loss == "ramp":
        from maxmargin.formulations.ramp import Ramp

        tagger.loss = Ramp(str(ramp), ramp_start(start, features), max_rounds, passes_per_round)
    stopping = None
    if held is not None:
        from maxmargin.callbacks.early_stopping import EarlyStopping

        tagger.features_ = features
        stopping = EarlyStopping((usable(tagger, held), held.labels(place)), patience=patience)
        tagger.callbacks = [stopping]
    with watch("train"):
        fit(tagger, X, labels, table)
    tagger.features_, tagger.label_column_ = features, place
    if stopping is not None and stopping.best_weights_ is None:  # Ctrl-C came before the first score
        stopping = None
    if stopping is not None:
        stopping.restore(tagger)
    with watch("write"):
        tagger.save(output, precision=str(precision))
    facts = {
        "examples": f"{len(table)} sentences, {table.n_tokens} tokens, {len(tagger.classes_)} labels, "
        f"{features.n_features_} features, {tagger.layout_.n_weights} weights",
        "features": _features(feature_options.template, place, len(table.columns)),
        "status": tagger.status_.sentence,
        "certificate": str(tagger.certificate_),
        "time": _time(watch, tagger.seconds_),
    }
    if stopping is not None:
        facts["held out"] = (
            f"token accuracy {100 * stopping.best_score_:.2f}% with the weights of pass {stopping.best_pass_:.4g}, "
            f"which the model keeps; {100 * stopping.scores_[-1]:.2f}% at the end, pass {tagger.n_iter_:.4g}"
        )
    size = os.path.getsize(output)
    facts["model"] = f"{output}, " + (f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB")
    if live:
        show_table("", ["", ""], list(facts.items()), file=sys.stderr)
    else:
        texts = [f"{name}: {text.rstrip('.')}" for name, text in facts.items()]
        typer.echo(f"maxmargin: {'; '.join(texts)}.", err=True)


class Stopwatch(dict[str, float]):
    """Seconds by stage: ``with watch("read"): ...``."""

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self[stage] = time.perf_counter() - begin


def _hold_out(table: Table, held_out: str | None, seed: int) -> tuple[Table, Table | None]:
    """Training sentences, and held-out ones: a share of the sentences, or a file of its own."""
    if held_out is None:
        return table, None
    try:
        share = float(held_out)
    except ValueError:
        return table, Source(held_out, table.source.separator, table.source.comment).table()
    if not 0 < share < 1 or len(table) < 2:
        advice = "give a share between 0 and 1 that leaves sentences on both sides, or a file"
        raise ValueError(f"--held-out {held_out} of the {len(table)} sentences of {table.source.name}: {advice}.")
    import numpy as np

    order = np.random.default_rng(seed).permutation(len(table))
    n = min(max(1, round(share * len(table))), len(table) - 1)
    return table.take(np.sort(order[n:])), table.take(np.sort(order[:n]))


def _features(template: str | None, labels: int, width: int) -> str:
    """Describe the features; the default ones leave columns unread that a template can read."""
    if template is not None:
        return template
    unread = [str(column) for column in range(1, width) if column != labels]
    advice = f"; a template (-t) can read column {' and '.join(unread)} too" if unread else ""
    return f"words, affixes and shapes of column 0{advice}"


def _time(watch: dict[str, float], seconds: dict[str, float]) -> str:
    from maxmargin.reports.time_split import time_split

    around = ", ".join(f"{stage} {watch[stage]:.2f} s" for stage in ("read", "features", "write"))
    return f"{sum(watch.values()):.2f} s: {around}, training {time_split(seconds)}"
