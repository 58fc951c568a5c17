"""Between files and estimators: features, taggers, model files."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from maxmargin.cli.errors import located
from maxmargin.cli.files import Table, column_place

__all__ = [
    "FeatureOptions",
    "Stopwatch",
    "TrainingOptions",
    "check_writable",
    "constrain",
    "fit",
    "fit_features",
    "label_place",
    "load_text_tagger",
    "span_like",
    "usable",
]


class Stopwatch(dict):
    """Seconds by stage: ``with watch("read"): ...``."""

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self[stage] = self.get(stage, 0.0) + time.perf_counter() - begin


@dataclass(frozen=True)
class FeatureOptions:
    """What the command line says about features."""

    template: str | None
    min_count: int
    hashing: int | None


def fit_features(options: FeatureOptions, table: Table, label_column: int) -> tuple[Any, Any]:
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
            raise ValueError(
                f"{where}: reads column {labels}, which holds the labels that are to be predicted; take another "
                "column, or name the column of the labels with --label-column."
            )
    return features, X


@dataclass(frozen=True)
class TrainingOptions:
    """What the command line says about training."""

    C: float
    weights: str
    constraints: str | None
    ends: bool
    loss: str
    rescaling: str
    solver: str
    tol: float
    max_passes: float | None
    max_seconds: float | None
    n_jobs: int | None
    seed: int

    def tagger(self, **more: Any) -> Any:
        """An unfitted tagger that takes ready features."""
        from maxmargin.estimators.sequence_tagger import SequenceTagger

        given = {name: str(value) for name, value in vars(self).items() if isinstance(value, str)}
        given = {**vars(self), **given}
        return SequenceTagger(random_state=given.pop("seed"), **given, **more)


def fit(tagger: Any, X: Any, y: list[list[str]], table: Table) -> Any:
    """Fit, with errors that name the line of the table."""
    with quiet_convergence(), located(table.source.name, table.line):
        if tagger.constraints is not None:
            _check_scheme(y, tagger.constraints)
        return tagger.fit(X, y)


def _check_scheme(y: list[list[str]], scheme: str) -> None:
    """Refuse the first label that does not fit the scheme, by its place."""
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
    """Refuse a model path that cannot be written before hours of training, not after."""
    folder = os.path.dirname(path) or "."
    if path == "-":
        raise ValueError("a model cannot go to standard output; name a file with -o.")
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; name a file with -o.")
    if not os.path.isdir(folder):
        raise ValueError(f"there is no folder {folder!r} for the model {path}; make it first.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"the folder {folder!r} may not be written; choose another place with -o.")


@contextmanager
def quiet_convergence() -> Iterator[None]:
    """The status says why training ended; a warning would say it twice."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def load_text_tagger(path: str) -> Any:
    """The tagger of a model file, if it takes text."""
    from maxmargin.estimators.saving import load
    from maxmargin.features.extractor import TextFeatures

    if path == "-":
        raise ValueError("a model is read from a file of its own, not from standard input; give its path.")
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no model file {path!r}.")
    tagger = load(path)
    if not isinstance(getattr(tagger, "features_", None), TextFeatures):
        raise ValueError(
            f"{path} holds a tagger that takes features, not columns of text; use it from Python "
            f"(maxmargin.load({path!r}).predict)."
        )
    return tagger


def label_place(tagger: Any, given: int | None, width: int, name: str) -> int:
    """Column of the true labels: the one that was asked for, else that of training, else the last.

    Parameters
    ----------
    tagger : SequenceTagger
        Has ``label_column_`` when the command line trained it.
    given : int or None
        What the command line says now; a note is printed when training had another column.
    width : int
        Number of columns of the file.
    name : str
        Of the file.
    """
    learned = getattr(tagger, "label_column_", None)
    if given is None and learned is not None:
        if learned >= width:
            raise ValueError(
                f"{name}, line 1: the model learned its labels from column {learned}, but the lines have {width} "
                "columns, which count from 0; name the column of the labels with --label-column."
            )
        return learned
    place = column_place(-1 if given is None else given, width, name)
    if learned is not None and place != learned:
        typer.echo(
            f"maxmargin: labels are read from column {place} of {name}, as --label-column says; the model learned "
            f"them from column {learned}.",
            err=True,
        )
    return place


def constrain(tagger: Any, scheme: str | None) -> Any:
    """Make a fitted tagger obey a scheme too, whatever it was trained with."""
    if scheme is None:
        return tagger
    import numpy as np

    from maxmargin.inference.constraints import transition_mask

    mask, layout = transition_mask(tagger.classes_, scheme), tagger.layout_
    both = {
        name: np.where(allowed, getattr(layout, name), -np.inf)
        for name, allowed in (("start_mask", mask.start), ("end_mask", mask.end), ("pair_mask", mask.pairs))
    }
    tagger.layout_ = replace(layout, **both)
    return tagger


def usable(tagger: Any, table: Table) -> Any:
    """Features of a file as a fitted tagger takes them."""
    with located(table.source.name, table.line):
        return tagger.features_.transform(table.tokens())


def span_like(*labelled: list[list[str]]) -> bool:
    """Whether labels are those of spans: O, B-X, I-X, E-X, S-X."""
    from maxmargin.metrics import spans

    labels = {label for sentences in labelled for sentence in sentences for label in sentence}
    try:
        spans(sorted(labels))
    except ValueError:
        return False
    return labels != {"O"}
