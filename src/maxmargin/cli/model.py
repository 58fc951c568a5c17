"""From files to estimators: features, taggers, model files."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import fitting
from maxmargin.features.column_files import Source, Table, located

if TYPE_CHECKING:
    import numpy as np

    from maxmargin.cli.files import FileOptions
    from maxmargin.datasets.column_format import ColumnFormat
    from maxmargin.estimators.sequence_tagger import SequenceTagger
    from maxmargin.features.extractor import TextFeatures
    from maxmargin.features.sequences import Sequences
    from maxmargin.models.chain import ChainBound, ChainLayout

__all__ = [
    "FeatureOptions", "TextTagger", "TrainingOptions", "check_model_input", "constrain", "fit", "fit_features",
    "fit_files", "known_labels", "label_place", "load_estimator", "load_text_tagger", "main_score", "ramp_start",
    "span_like",
    "text_features", "usable",
]  # fmt: skip


AnyTagger = TypeVar("AnyTagger", "SequenceTagger", "TextTagger")
Rows = list[list[tuple[str, ...]]]  # sentences as columns of their tokens


@dataclass(frozen=True)
class FeatureOptions:
    """The options about features."""

    template: o.Template = None
    min_count: o.MinCount = 1
    hashing: o.Hashing = None

    def extractor(self, words: int) -> TextFeatures:
        """Unfitted features, of the words in a column where there is no template."""
        from maxmargin.features.choose import default_words
        from maxmargin.features.extractor import TextFeatures
        from maxmargin.features.template import Template

        given = self.template
        features = default_words(words) if given is None else TextFeatures(Template.parse(Path(given)))
        return features.set_params(min_count=self.min_count, hashing=self.hashing)


def fit_features(options: FeatureOptions, table: Table, words: int, labels: int) -> tuple[TextFeatures, Sequences]:
    """A fitted extractor that does not read the column of the labels, and the features of the table."""
    if options.template is None:
        _warn_of_numbers(table, words)
    features = options.extractor(words)
    with located(table.source.name, table.line):
        X = features.fit_transform(table.tokens())
    features.check_unread(labels, "--label-column", None if options.template is not None else "the default features")
    return features, X


def _warn_of_numbers(table: Table, words: int) -> None:
    """Say so when the words are the numbers of the tokens: 1, 2, 3, ..."""
    sentences = table.labels(words)
    if all(list(map(str, range(1, len(column) + 1))) == column for column in sentences) and table.n_tokens > len(table):
        found = f"column {words} of {table.source.name}, which is read as the words, holds the numbers of the tokens"
        typer.echo(f"maxmargin: {found}; name the column of the words with --word-column.", err=True)


@dataclass(frozen=True)
class TrainingOptions(o.FitOptions):
    """The options about training a tagger."""

    weights: o.WeightsOption = o.Weights.all
    constraints: o.ConstraintsOption = None
    ends: o.Ends = False
    penalty: o.PenaltyOption = o.Penalty.l2
    rescaling: o.RescalingOption = None

    def tagger(self, **more: object) -> SequenceTagger:
        """An unfitted tagger that takes ready features."""
        from maxmargin.estimators.sequence_tagger import SequenceTagger

        return SequenceTagger().set_params(**self.parameters(), **more)


def fit(tagger: SequenceTagger, X: Sequences, y: list[list[str]], table: Table) -> SequenceTagger:
    """Fit; errors name the line of the file."""
    with fitting(table.source.name, table.line):
        if isinstance(tagger.constraints, str):
            _check_scheme(y, tagger.constraints)
        return tagger.fit(X, y)


def fit_files(
    tagger: SequenceTagger,
    paths: list[str],
    options: FeatureOptions,
    files: FileOptions,
    word_column: str | None,
    label_column: str | None,
    memory_map: str | None,
) -> SequenceTagger:
    """Fit on several files; errors name file and line."""
    if options.template is not None:
        tagger.features = options.extractor(0)
    elif options != FeatureOptions():  # default features with other numbers: of which column, the first file says
        tables = (files.source(path).table(may_be_empty=True) for path in paths)
        words = next((table.format(word_column).word_column for table in tables if table.columns), 0)
        tagger.features = options.extractor(words)
    source = files.source(paths[0])
    with fitting():
        return tagger.fit_files(
            paths,
            format=str(files.format),
            separator=source.separator,
            comment=source.comment,
            word_column=word_column,
            label_column=label_column,
            max_unpacked=files.max_unpacked,
            memory_map=memory_map,
        )


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


@dataclass
class TextTagger:
    """What it takes to label text: a model file without its training, which loads in no time."""

    layout_: ChainLayout
    weights: np.ndarray
    features_: TextFeatures
    label_column_: int | None = None
    columns_: ColumnFormat | None = None

    @property
    def classes_(self) -> list[str]:
        return list(map(str, self.layout_.labels.classes))

    def predict(self, X: Sequences | Rows) -> list[list[str]]:
        """The best labels of each sentence."""
        from maxmargin.models.chain_few import best_of_few, few_examples

        few = few_examples(self.layout_, self.features_, X)
        if few is not None:
            outputs = best_of_few(self.layout_, few, self.weights)
        else:
            outputs = self._bound(X).argmax(self.weights).outputs
        return [list(map(str, self.layout_.output(codes))) for codes in outputs]

    def predict_kbest(self, X: Sequences | Rows, k: int) -> list[list[tuple[list[str], float]]]:
        """The k best labellings of each sentence with their scores, best first; fewer when there are no more."""
        bound, layout, answers = self._bound(X), self.layout_, []
        for i in range(bound.n_examples):
            best = zip(*bound.k_best(self.weights, i, k), strict=True)
            answers.append([(list(map(str, layout.output(codes))), float(score)) for codes, score in best])
        return answers

    def _bound(self, X: Sequences | Rows) -> ChainBound:
        from maxmargin.models.chain import Chain

        return Chain().bind(self.features_.transform(X) if isinstance(X, list) else X, layout=self.layout_)


def load_text_tagger(path: str) -> TextTagger:
    """The tagger of a model file, to predict with; one that does not take text is an error."""
    from maxmargin.lazy import load_when_used

    load_when_used("scipy.sparse")  # a fifth of a second
    from maxmargin.datasets.column_format import ColumnFormat
    from maxmargin.estimators.model_files import fitted_of
    from maxmargin.features.extractor import TextFeatures

    fitted, training = fitted_of(path, *_read_tagger(path))
    if not isinstance(fitted.features, TextFeatures):
        raise ValueError(_takes_no_text(path))
    column, columns = training.get("label_column_"), training.get("columns_")
    assert column is None or isinstance(column, int)
    assert columns is None or isinstance(columns, ColumnFormat)
    return TextTagger(cast("ChainLayout", fitted.layout), fitted.weights, fitted.features, column, columns)


def load_estimator(path: str) -> SequenceTagger:
    """The tagger of a model file with all that is known of its training; one that does not take text is an error."""
    from maxmargin.estimators.sequence_tagger import SequenceTagger
    from maxmargin.features.extractor import TextFeatures

    _read_tagger(path)
    tagger = SequenceTagger.load(path, verify=False)
    if not isinstance(tagger.features_, TextFeatures):
        raise ValueError(_takes_no_text(path))
    return tagger


def _read_tagger(path: str) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """A model file, if it holds a tagger."""
    from maxmargin.persistence.model_file import read_model

    check_model_input(path)
    header, tensors = read_model(path)
    kind = header.get("kind", "model of no kind")[:80]
    if kind == "ImageSegmenter":
        raise ValueError(f"{path} holds a segmenter of images; use: maxmargin segment predict {path} IMAGES")
    if kind == "MultilabelClassifier":
        raise ValueError(f"{path} holds a classifier of label sets; use: maxmargin labels predict {path} FILE")
    if kind != "SequenceTagger":
        use = f"use it from Python (maxmargin.load({path!r}).predict)"
        raise ValueError(f"{path} holds a {kind}, not a tagger of text; {use}.")
    return header, tensors


def check_model_input(path: str) -> None:
    """Refuse anything but a file."""
    if path == "-":
        raise ValueError("a model cannot be read from standard input; give the path of its file.")
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no model file {path!r}.")


def _takes_no_text(path: str) -> str:
    use = f"use it from Python (maxmargin.load({path!r}).predict)"
    return f"{path} holds a tagger that takes features, not columns of text; {use}."


def text_features(tagger: SequenceTagger | TextTagger) -> TextFeatures:
    """The features of a tagger of the command line."""
    from maxmargin.features.extractor import TextFeatures

    assert isinstance(tagger.features_, TextFeatures)
    return tagger.features_


def ramp_start(start: str, features: TextFeatures) -> str | SequenceTagger:
    """Where a ramp fit begins: the word itself, or the tagger of a model file."""
    if start in ("zero", "hinge"):
        return start
    model = load_estimator(start)
    own = text_features(model)
    if own.hashing is None and features.hashing is None and own.names() != features.names():
        advice = "train it on the same file with the same template, or use --start hinge"
        raise ValueError(f"{start} was trained on other features than this file has; {advice}.")
    return model


def known_labels(tagger: SequenceTagger | TextTagger) -> tuple[int | None, ColumnFormat | None]:
    """The column that training read labels from, and its format; None if the command line did not train the tagger."""
    return vars(tagger).get("label_column_"), vars(tagger).get("columns_")


def label_place(tagger: SequenceTagger | TextTagger, given: str | None, width: int, source: Source) -> int:
    """Column of the true labels in a file of ``width`` columns: the given one, else the one of training, else the last.

    A note is printed when training used another column than the given one.
    """
    learned, _ = known_labels(tagger)
    if given is None and learned is not None:
        if learned >= width:
            found = f"the model learned its labels from column {learned}, but the lines have {width} columns"
            advice = "counted from 0; name the column of the labels with --label-column"
            raise ValueError(f"{source.name}, line 1: {found}, {advice}.")
        return learned
    place = source.place(given, width, "-1")
    if learned is not None and place != learned:
        read = f"labels are read from column {place} of {source.name}, as --label-column says"
        typer.echo(f"maxmargin: {read}; the model learned them from column {learned}.", err=True)
    return place


def constrain(tagger: AnyTagger, scheme: str | None) -> AnyTagger:
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


def usable(tagger: SequenceTagger | TextTagger, table: Table) -> Sequences:
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


Metric = Callable[[list[list[str]], list[list[str]]], float]


def main_score(labels: list[list[str]]) -> tuple[str, Metric]:
    """What decides which model is better: span F1, or token accuracy where labels are not spans; its name too."""
    from maxmargin.metrics import span_f1, token_accuracy

    return ("span F1", span_f1) if span_like(labels) else ("token accuracy", token_accuracy)
