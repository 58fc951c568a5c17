"""From files to estimators: features, taggers, model files."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import located
from maxmargin.cli.files import Table, column_place

if TYPE_CHECKING:
    from maxmargin.estimators.sequence_tagger import SequenceTagger
    from maxmargin.features.extractor import TextFeatures
    from maxmargin.features.sequences import Sequences

__all__ = [
    "FeatureOptions", "TrainingOptions", "check_writable", "constrain", "fit", "fit_features",
    "label_place", "learned_column", "load_text_tagger", "ramp_start", "span_like", "text_features", "usable",
]  # fmt: skip


@dataclass(frozen=True)
class FeatureOptions:
    """The options about features."""

    template: o.Template = None
    min_count: o.MinCount = 1
    hashing: o.Hashing = None


def fit_features(options: FeatureOptions, table: Table, label_column: int) -> tuple[TextFeatures, Sequences]:
    """A fitted extractor that does not read the labels, and the features of the table."""
    from maxmargin.features.choose import default_words
    from maxmargin.features.extractor import TextFeatures
    from maxmargin.features.template import Template

    template = default_words().template if options.template is None else Template.parse(Path(options.template))
    features = TextFeatures(template, min_count=options.min_count, hashing=options.hashing)
    with located(table.source.name, table.line):
        X = features.fit_transform(table.tokens())
    labels = column_place(label_column, len(table.columns), table.source.name)
    for definition in features.definitions_:
        if any(source.column == labels for source, _ in definition.slots):
            where = definition.where if options.template is not None else "the default features"
            advice = "use another column, or name the column of the labels with --label-column"
            raise ValueError(f"{where}: reads column {labels}, which holds the labels to predict; {advice}.")
    return features, X


@dataclass(frozen=True)
class TrainingOptions:
    """The options about training."""

    weights: o.WeightsOption = o.Weights.all
    constraints: o.ConstraintsOption = None
    ends: o.Ends = False
    loss: o.LossOption = o.Loss.hinge
    rescaling: o.RescalingOption = o.Rescaling.margin
    solver: o.SolverOption = o.Solver.auto
    tol: o.Tol = 1e-3
    max_passes: o.MaxPasses = 1000
    max_seconds: o.MaxSeconds = None
    n_jobs: o.Jobs = None
    seed: o.Seed = 0

    def tagger(self, **more: object) -> SequenceTagger:
        """An unfitted tagger that takes ready features."""
        from maxmargin.estimators.sequence_tagger import SequenceTagger

        plain = {name: str(value) if isinstance(value, str) else value for name, value in vars(self).items()}
        return SequenceTagger().set_params(random_state=plain.pop("seed"), **plain, **more)


def fit(tagger: SequenceTagger, X: Sequences, y: list[list[str]], table: Table) -> SequenceTagger:
    """Fit; errors name the line of the file."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(), located(table.source.name, table.line):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status already says why training ended
        if isinstance(tagger.constraints, str):
            _check_scheme(y, tagger.constraints)
        return tagger.fit(X, y)


def _check_scheme(y: list[list[str]], scheme: str) -> None:
    """Raise an error that names the first label outside the scheme and its position."""
    from maxmargin.inference.constraints import transition_mask

    fine: set[str] = set()
    for i, labels in enumerate(y):
        for t, label in enumerate(labels):
            if label not in fine:
                try:
                    transition_mask([label], scheme)
                except ValueError as error:
                    raise ValueError(f"example {i}, position {t}: {error}") from None
                fine.add(label)


def check_writable(path: str) -> None:
    """Refuse a model path that cannot be written before hours of training, not after them."""
    folder = os.path.dirname(path) or "."
    if path == "-":
        raise ValueError("a model cannot go to standard output; name a file with -o.")
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; name a file with -o.")
    if not os.path.isdir(folder):
        raise ValueError(f"there is no folder {folder!r} for the model {path}; create it first.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"the folder {folder!r} is not writable; choose another with -o.")


def load_text_tagger(path: str) -> SequenceTagger:
    """The tagger of a model file; one that does not take text is an error."""
    from maxmargin.estimators.model_files import load
    from maxmargin.estimators.sequence_tagger import SequenceTagger
    from maxmargin.features.extractor import TextFeatures

    if path == "-":
        raise ValueError("a model cannot be read from standard input; give the path of its file.")
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no model file {path!r}.")
    tagger = load(path)
    if not isinstance(tagger, SequenceTagger) or not isinstance(tagger.features_, TextFeatures):
        use = f"use it from Python (maxmargin.load({path!r}).predict)"
        raise ValueError(f"{path} holds a tagger that takes features, not columns of text; {use}.")
    return tagger


def text_features(tagger: SequenceTagger) -> TextFeatures:
    """The features of a tagger of the command line."""
    from maxmargin.features.extractor import TextFeatures

    assert isinstance(tagger.features_, TextFeatures)
    return tagger.features_


def ramp_start(start: str, features: TextFeatures) -> str | SequenceTagger:
    """Where a ramp fit begins: the word itself, or the tagger of a model file."""
    if start in ("zero", "hinge"):
        return start
    model = load_text_tagger(start)
    own = text_features(model)
    if own.hashing is None and features.hashing is None and own.names() != features.names():
        advice = "train it on the same file with the same template, or use --start hinge"
        raise ValueError(f"{start} was trained on other features than this file has; {advice}.")
    return model


def learned_column(tagger: SequenceTagger) -> int | None:
    """The column that training read labels from; None for a tagger that was not trained by the command line."""
    return vars(tagger).get("label_column_")


def label_place(tagger: SequenceTagger, given: int | None, width: int, name: str) -> int:
    """Column of the true labels in a file of ``width`` columns: the given one, else the one of training, else the last.

    A note is printed when training used another column than the given one.
    """
    learned = learned_column(tagger)
    if given is None and learned is not None:
        if learned >= width:
            found = f"the model learned its labels from column {learned}, but the lines have {width} columns"
            advice = "counted from 0; name the column of the labels with --label-column"
            raise ValueError(f"{name}, line 1: {found}, {advice}.")
        return learned
    place = column_place(-1 if given is None else given, width, name)
    if learned is not None and place != learned:
        read = f"labels are read from column {place} of {name}, as --label-column says"
        typer.echo(f"maxmargin: {read}; the model learned them from column {learned}.", err=True)
    return place


def constrain(tagger: SequenceTagger, scheme: str | None) -> SequenceTagger:
    """Make a fitted tagger also obey a scheme."""
    if scheme is None:
        return tagger
    import numpy as np

    from maxmargin.inference.constraints import transition_mask

    mask, layout = transition_mask(tagger.classes_, scheme), tagger.layout_
    tagger.layout_ = replace(
        layout,
        start_mask=np.where(mask.start, layout.start_mask, -np.inf),
        end_mask=np.where(mask.end, layout.end_mask, -np.inf),
        pair_mask=np.where(mask.pairs, layout.pair_mask, -np.inf),
    )
    return tagger


def usable(tagger: SequenceTagger, table: Table) -> Sequences:
    """The features of a file, for a fitted tagger."""
    with located(table.source.name, table.line):
        return text_features(tagger).transform(table.tokens())


def span_like(*labelled: list[list[str]]) -> bool:
    """Whether all labels describe spans: O, B-X, I-X, E-X, S-X."""
    from maxmargin.metrics import spans

    labels = {label for sentences in labelled for sentence in sentences for label in sentence}
    try:
        spans(sorted(labels))
    except ValueError:
        return False
    return labels != {"O"}
