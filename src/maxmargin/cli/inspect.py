"""``maxmargin inspect``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import guarded
from maxmargin.cli.files import FileOptions
from maxmargin.cli.model import constrain, known_labels, label_place, load_estimator, text_features
from maxmargin.cli.tables import number, show_table
from maxmargin.features.column_files import Source, located

if TYPE_CHECKING:
    from maxmargin.estimators.sequence_tagger import SequenceTagger

__all__ = ["inspect"]


@guarded
@o.grouped
def inspect(
    model: o.ModelFile,
    top: Annotated[int, typer.Option(min=1, help="Number of weights per label, or of contributions.")] = 10,
    label: Annotated[str | None, typer.Option(help="Show only the weights of this label.")] = None,
    explain: Annotated[
        str | None, typer.Option(help="Explain the decision on a sentence of this file (or -).", metavar="FILE")
    ] = None,
    sentence: Annotated[int, typer.Option(min=0, help="Which sentence to explain, from 0.")] = 0,
    other: Annotated[
        str | None,
        typer.Option(help="Labels to compare with, separated by spaces or commas; the runner-up by default."),
    ] = None,
    word_column: o.WordColumn = None,
    label_column: o.KnownLabelColumn = None,
    constraints: o.ConstraintsOption = None,
    files: FileOptions = FileOptions(),
    debug: o.Debug = False,
) -> None:
    """Look into a model: certificate, labels, sizes and strongest weights; or explain one of its decisions.

    An explanation splits the lead in score of the prediction over another labelling by features.

    Where the file has true labels, they are shown too.

    Examples:

      maxmargin inspect chunker.mm --top 5

      maxmargin inspect chunker.mm --explain test.txt --sentence 3

      maxmargin inspect chunker.mm --explain one.txt --other "B-NP I-NP O"
    """
    tagger = constrain(load_estimator(model), constraints)
    if explain is not None:
        _, known = known_labels(tagger)
        _explain(tagger, files.source(explain, known), sentence, other, top, label_column, word_column)
        return
    _facts(tagger, model)
    for name in tagger.classes_ if label is None else [label]:
        rows = [(row["feature"], number(row["weight"])) for row in tagger.coef_table(top, name)]
        show_table(f"label {name}", ["feature", "weight"], rows)
    if label is None:
        _transitions(tagger)


def _facts(tagger: SequenceTagger, path: str) -> None:
    from maxmargin.estimators.large_margin import rescaling_of
    from maxmargin.pages.time_split import time_split

    layout, features, known = tagger.layout_, text_features(tagger), vars(tagger)  # a model file may lack some
    rescaling, solver = rescaling_of(tagger.penalty, tagger.rescaling), f"solver {tagger.solver}"
    hashed = " (hashed)" if features.hashing is not None else ""
    rows = [
        ("file", f"{path}, {os.path.getsize(path)} bytes"),
        ("status", known.get("status_", "unknown")),
        ("certificate", known.get("certificate_", "none")),
        ("labels", f"{len(tagger.classes_)}: {' '.join(map(str, tagger.classes_))}"),
        ("features", f"{features.n_features_} of tokens, {features.n_edge_features_} of pairs{hashed}"),
        ("weights", f"{layout.n_weights} stored, {int((tagger.weights_ != 0).sum())} not zero"),
        ("training", f"C {tagger.C:g}, {tagger.loss}, {tagger.penalty} penalty, {rescaling} rescaling, {solver}"),
        ("constraints", str(tagger.constraints)),
    ]
    column, columns = known_labels(tagger)
    if column is not None:
        rows.insert(4, ("label column", f"{column}, from 0"))
    if columns is not None:
        marks = {"separator": columns.separator, "comment": columns.comment}
        told = [f"{name} {mark!r}" for name, mark in marks.items() if mark is not None]
        kind = "CoNLL-U" if columns.conllu else f"{columns.width} columns"
        rows.insert(4, ("format", ", ".join([kind, f"words in column {columns.word_column}", *told])))
    if known.get("seconds_"):
        rows.append(("time", time_split(tagger.seconds_)))
    show_table("", ["", ""], rows)


def _transitions(tagger: SequenceTagger) -> None:
    pair = tagger.transition_
    names = [str(name) for name in tagger.classes_]
    if len(names) <= 12:
        rows: list = [[name, *(number(w) for w in row)] for name, row in zip(names, pair.tolist(), strict=True)]
        show_table("transitions, from row to column", ["", *names], rows)
        return
    import numpy as np

    order = np.argsort(-np.abs(pair), axis=None, kind="stable")[:20]
    rows = [(names[k // len(names)], names[k % len(names)], number(pair.flat[k])) for k in order.tolist()]
    show_table("strongest transitions", ["from", "to", "weight"], rows)


def _explain(
    tagger: SequenceTagger, source: Source, sentence: int, other: str | None, top: int, label_column: str | None,
    word_column: str | None,
) -> None:  # fmt: skip
    count = 0
    for block in source.blocks():
        if block.rows and count == sentence:
            break
        count += bool(block.rows)
    else:
        raise ValueError(f"{source.name} has {count} sentences; there is no sentence {sentence} (they count from 0).")
    first, places, rows_of_text = block.first, block.places, block.rows
    width, (learned, known) = len(rows_of_text[0]), known_labels(tagger)
    true: list[list[str]] = []  # or the true labels as the only element
    if label_column is not None or (learned is not None and learned < width):
        place = label_place(tagger, label_column, width, source)
        true.append([row[place] for row in rows_of_text])
    with located(source.name, lambda i, t: first + places[t]):
        x = text_features(tagger).transform([rows_of_text])
        best = tagger.predict_kbest(x, 2)[0]
        labels = best[0][0]
        if other is not None:
            compared = other.split() if len(other.split()) > 1 else other.strip().split(",")
            if len(compared) != len(labels):
                numbers = f"{len(compared)} labels, sentence {sentence} has {len(labels)} tokens"
                raise ValueError(f"--other has {numbers}; give one each.")
        elif len(best) > 1:
            compared = best[1][0]
        else:
            raise ValueError(f"the model allows only one labelling of sentence {sentence}; nothing to compare.")
        rows = tagger.explain(x, labels, compared)
    total = sum(row["contribution"] for row in rows)
    at_word = known.word_column if known is not None and word_column is None else source.word_place(word_column, width)
    words = [row[at_word] for row in rows_of_text]
    cells = zip(words, *true, labels, compared, strict=True)
    marked = [(*known, a, b, "" if a == b else "<") for *known, a, b in cells]
    show_table(f"sentence {sentence}", ["token", *(["true"] if true else []), "predicted", "other", ""], marked)
    typer.echo(f"the prediction scores {number(total)} more than the other; the strongest contributions:\n")
    shown = []
    for row in rows[:top]:
        at, labelled = row["position"], (_text(row["label"]), _text(row["other"]))
        shown.append((str(at), words[at], row["feature"], *labelled, number(row["contribution"])))
    rest = sum(row["contribution"] for row in rows[top:])
    if len(rows) > top:
        shown.append(("", "", f"{len(rows) - top} others", "", "", number(rest)))
    show_table("contributions", ["at", "token", "feature", "predicted", "other", "contribution"], shown)


def _text(label: object) -> str:
    return " -> ".join(map(str, label)) if isinstance(label, tuple) else str(label)
