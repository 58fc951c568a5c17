"""``maxmargin predict``."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import guarded, located
from maxmargin.cli.files import Block, Source, opened_output
from maxmargin.cli.model import constrain, label_place, load_text_tagger, text_features

if TYPE_CHECKING:
    from collections.abc import Iterator

    from maxmargin.estimators.sequence_tagger import SequenceTagger

__all__ = ["predict"]

MOST_TOKENS = 50_000  # per batch, however few sentences they make


@guarded
def predict(
    model: o.ModelFile,
    file: Annotated[str, typer.Argument(help="Column file, or - for standard input.")] = "-",
    output: Annotated[str, typer.Option("--output", "-o", help="Where to write; - is standard output.")] = "-",
    replace: Annotated[bool, typer.Option("--replace", help="Replace the label column by the prediction.")] = False,
    label_column: o.KnownLabelColumn = None,
    kbest: Annotated[
        int, typer.Option(min=1, help="Write the k best labellings, one column each; _ where there are fewer.")
    ] = 1,
    margin: Annotated[
        bool, typer.Option("--margin", help="Add a column: the lead of the sentence's best labelling over the next.")
    ] = False,
    constraints: o.ConstraintsOption = None,
    batch: Annotated[int, typer.Option(min=1, help="Sentences per batch; 1 answers each sentence at once.")] = 500,
    separator: o.Separator = None,
    comment: o.Comment = None,
    debug: o.Debug = False,
) -> None:
    """Label the tokens of a column file, batch by batch.

    Every line is written unchanged, followed by the predicted label. Blank lines and comments stay.

    Columns must be in the same order as in training; a label column at the end is optional.

    Examples:

      maxmargin predict chunker.mm < in.txt > out.txt

      maxmargin predict chunker.mm test.gz --constraints bio --margin -o out.gz

      maxmargin predict chunker.mm test.txt --replace | less
    """
    tagger = constrain(load_text_tagger(model), constraints)
    source = Source(file, separator, comment)
    with opened_output(output, file) as out:
        joint, place = None, None
        for blocks in _batches(source, batch):
            full = [block for block in blocks if block.rows]
            rows = [block.rows for block in full]
            if rows and joint is None:
                joint = source.separator or ("\t" if "\t" in full[0].lines[full[0].places[0]] else " ")
                if replace or label_column is not None:
                    place = label_place(tagger, label_column, len(rows[0][0]), source.name)
            with located(source.name, partial(_line, full)):
                columns = iter(_labels(tagger, rows, kbest, margin) if rows else [])
            for block in blocks:
                if block.rows:
                    _add(block, next(columns), joint or " ", place if replace else None)
                out.write("".join(f"{line}\n" for line in block.lines))
            out.flush()


def _line(blocks: list[Block], sentence: int, token: int) -> int:
    return blocks[sentence].first + blocks[sentence].places[token]


def _batches(source: Source, size: int) -> Iterator[list[Block]]:
    held: list[Block] = []
    tokens = 0
    for block in source.blocks():
        held.append(block)
        tokens += len(block.rows)
        if len(held) >= size or tokens >= MOST_TOKENS:
            yield held
            held, tokens = [], 0
    if held:
        yield held


def _labels(
    tagger: SequenceTagger, rows: list[list[tuple[str, ...]]], kbest: int, margin: bool
) -> list[list[tuple[str, ...]]]:
    """The new columns of each token of each sentence."""
    X = text_features(tagger).transform(rows)
    if kbest == 1 and not margin:
        return [[(str(label),) for label in labels] for labels in tagger.predict(X)]
    answers = tagger.predict_kbest(X, max(kbest, 2 if margin else 1))
    made = []
    for sentence, best in zip(rows, answers, strict=True):
        columns = [list(map(str, labels)) for labels, _ in best[:kbest]]
        columns += [["_"] * len(sentence)] * (kbest - len(columns))
        if margin:
            gap = best[0][1] - best[1][1] if len(best) > 1 else math.inf
            columns.append([f"{gap:.6g}"] * len(sentence))
        made.append(list(zip(*columns, strict=True)))
    return made


def _add(block: Block, columns: list[tuple[str, ...]], joint: str, replaced: int | None) -> None:
    """Append the new columns to the tokens of a block; the first one may replace an old column."""
    for place, row, new in zip(block.places, block.rows, columns, strict=True):
        if replaced is None:
            block.lines[place] = joint.join((block.lines[place].rstrip(" \t"), *new))
        else:
            block.lines[place] = joint.join((*row[:replaced], new[0], *row[replaced + 1 :], *new[1:]))
