"""``maxmargin evaluate``."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import guarded
from maxmargin.cli.files import FileOptions
from maxmargin.cli.model import constrain, label_place, load_text_tagger, span_like, usable
from maxmargin.cli.tables import show_table
from maxmargin.features.column_files import Table, located

__all__ = ["evaluate"]

_ABOUT_PREDICTED = "Evaluate this file of true and predicted labels (or -) instead of a model."
_ABOUT_LABELS = "Column of the true labels; by default as in training, or the one before the predicted ones"
_ABOUT_GUESSES = "Column of the predicted labels in --predicted; by default the last, or the one before the margin"

Labels = list[list[str]]


@guarded
@o.grouped
def evaluate(
    model: Annotated[str | None, typer.Argument(help="Model file.")] = None,
    file: Annotated[str | None, typer.Argument(help="Column file with labels, or - for standard input.")] = None,
    predicted: Annotated[str | None, typer.Option(help=_ABOUT_PREDICTED, metavar="FILE")] = None,
    label_column: Annotated[str | None, o.column_option(_ABOUT_LABELS)] = None,
    predicted_column: Annotated[str | None, o.column_option(_ABOUT_GUESSES)] = None,
    constraints: o.ConstraintsOption = None,
    confusions: Annotated[int, o.of_output(min=0, help="How many confused pairs of labels to show.")] = 10,
    as_json: Annotated[bool, o.of_output("--json", help="Write one JSON object; shares are from 0 to 1.")] = False,
    files: FileOptions = FileOptions(),
    debug: o.Debug = False,
) -> None:
    """Compare predictions with the truth: accuracy, spans as conlleval counts them, and confused labels.

    Takes a model and a file with true labels; or --predicted, a file that has the true and the predicted ones.

    Examples:

      maxmargin evaluate chunker.mm test.txt

      maxmargin predict chunker.mm test.txt | maxmargin evaluate --predicted -

      maxmargin evaluate chunker.mm test.txt --json > scores.json
    """
    if (predicted is None) == (model is None) or (predicted is None) != (file is not None):
        raise typer.BadParameter("give a model and a file, or --predicted and no model.")
    unseen: Counter[str] = Counter()
    if predicted is not None:
        true, guess = _two_columns(files.source(predicted).table(), label_column, predicted_column)
    else:
        tagger = constrain(load_text_tagger(str(model)), constraints)
        source = files.source(str(file), tagger.columns_)
        table = source.table()
        true = table.labels(label_place(tagger, label_column, len(table.columns), source))
        X = usable(tagger, table)
        with located(source.name, source.line):
            guess = tagger.predict(X)
        known = set(tagger.classes_)
        unseen.update(label for labels in true for label in labels if label not in known)
    scores = Scores.of(true, guess, confusions)
    if as_json:
        typer.echo(json.dumps({**asdict(scores), "unseen_labels": dict(unseen)}, ensure_ascii=False, indent=2))
    else:
        scores.show()
    if unseen:
        shown = ", ".join(f"{label} ({n} tokens)" for label, n in unseen.most_common(5))
        more = f" and {len(unseen) - 5} more" if len(unseen) > 5 else ""
        typer.echo(f"maxmargin: labels that the model never saw in training count as wrong: {shown}{more}.", err=True)


def _two_columns(table: Table, label_column: str | None, predicted_column: str | None) -> tuple[Labels, Labels]:
    """True and predicted labels of a file of ``predict``, which may have margins or several labellings at its end."""
    name, last, conllu = table.source.name, len(table.columns) - 1, bool(table.source.conllu)
    if predicted_column is not None:
        guess = table.place(predicted_column)
    elif conllu and last == 9:
        advice = "evaluate the model on a file with true labels, or write both with predict --no-replace"
        raise ValueError(f"{name}, line 1: CoNLL-U holds one label of each word; {advice}.")
    else:
        guess = last - _has_margins(table)
    if label_column is not None or conllu or guess == 0:
        true = table.place(label_column, "-1" if conllu else "-2")
    else:
        true = guess - 1
        before = set(table.columns[true - 1]) if true and predicted_column is None else {""}
        if before <= {*table.columns[true], *table.columns[guess]}:
            found = f"columns {true - 1} to {guess} hold labels of one kind (predict --kbest writes several)"
            raise ValueError(f"{name}, line 1: {found}; name two with --label-column and --predicted-column.")
    if guess < last and predicted_column is None:
        told = f"column {last} of {name} holds margins; columns {true} and {guess} are compared"
        typer.echo(f"maxmargin: {told}.", err=True)
    return table.labels(true), table.labels(guess)


def _has_margins(table: Table) -> bool:
    """Whether the last column holds margins: a number for each sentence, none of them a label."""
    *before, last = table.columns
    if not before or set(last) <= {label for column in before[-2:] for label in column}:
        return False
    with suppress(ValueError):
        values = table.labels(len(before))
        return all(float(value) >= 0 for value in set(last)) and all(len(set(value)) == 1 for value in values)
    return False


@dataclass
class SpanCounts:
    """Spans of one type, or of all."""

    precision: float
    recall: float
    f1: float
    true: int
    predicted: int
    right: int


@dataclass
class Confusion:
    """How often a label was taken for another."""

    true: str
    predicted: str
    tokens: int
    share: float  # of the tokens with the true label


@dataclass
class Scores:
    """All that is told about predictions."""

    tokens: int
    sentences: int
    token_accuracy: float
    sentence_accuracy: float
    spans: dict[str, SpanCounts]  # by type, and "all"; empty where labels are no spans
    confusions: list[Confusion]

    @staticmethod
    def of(true: Labels, guess: Labels, confusions: int) -> Scores:
        """Compare two labellings of the same sentences."""
        from maxmargin.metrics import sequence_accuracy, span_report, token_accuracy

        both = zip(true, guess, strict=True)
        pairs = Counter(pair for left, right in both for pair in zip(left, right, strict=True))
        spans = {}
        if span_like(true, guess):
            report = span_report(true, guess)
            for name, s in [*report.by_type.items(), ("all", report.overall)]:
                spans[name] = SpanCounts(s.precision, s.recall, s.f1, s.n_true, s.n_predicted, s.n_right)
        total = Counter(label for labels in true for label in labels)
        wrong = sorted(((a, b, n) for (a, b), n in pairs.items() if a != b), key=lambda item: (-item[2], item[:2]))
        confused = [Confusion(a, b, n, n / total[a]) for a, b, n in wrong[:confusions]]
        accuracy = token_accuracy(true, guess), sequence_accuracy(true, guess)
        return Scores(sum(pairs.values()), len(true), *accuracy, spans, confused)

    def show(self) -> None:
        """Print them as tables."""
        typer.echo(f"{self.tokens} tokens in {self.sentences} sentences")
        typer.echo(f"token accuracy     {100 * self.token_accuracy:.2f}%")
        typer.echo(f"sentence accuracy  {100 * self.sentence_accuracy:.2f}%\n")
        if self.spans:
            rows = []
            for name, s in self.spans.items():
                ratios = [f"{100 * ratio:.2f}" for ratio in (s.precision, s.recall, s.f1)]
                rows.append((name, *ratios, s.true, s.predicted, s.right))
            show_table("spans", ["type", "precision", "recall", "F1", "true", "predicted", "right"], rows)
        if self.confusions:
            cells = [(c.true, c.predicted, c.tokens, f"{100 * c.share:.1f}%") for c in self.confusions]
            show_table("most confused", ["true", "predicted", "tokens", "of the true"], cells)
