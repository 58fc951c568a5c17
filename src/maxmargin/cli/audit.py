"""``maxmargin audit``."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from typing import TYPE_CHECKING, Annotated, TextIO, TypedDict, cast

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import INTERRUPTED, guarded
from maxmargin.cli.files import FileOptions, warn_of_shape
from maxmargin.cli.model import FeatureOptions, TrainingOptions, fit_features
from maxmargin.cli.outputs import check_output, opened_output
from maxmargin.cli.progress import progress_bar
from maxmargin.features.column_files import Source, located

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from maxmargin.datasets.columns import Block

__all__ = ["audit"]


class Suspect(TypedDict):
    """What the audit says about one sentence."""

    example: int
    score: float
    given: Sequence[str]
    suggested: Sequence[str]
    positions: list[int]  # of the labels that change
    worst: int
    agreement: float


@guarded
@o.grouped
def audit(
    file: o.LabelledFile,
    top: Annotated[int, o.of_output(min=1, help="How many sentences to list.")] = 50,
    above: Annotated[float | None, o.of_output(help="List only those with a score above this.")] = None,
    output_filtered: Annotated[
        str | None, o.of_output(help="Write the file without the listed sentences.", metavar="FILE")
    ] = None,
    output_corrected: Annotated[
        str | None,
        o.of_output(help="Write the file with the suggested labels in the listed sentences.", metavar="FILE"),
    ] = None,
    as_json: Annotated[bool, o.of_output("--json", help="List as JSON, one object per line.")] = False,
    folds: o.Folds = 5,
    repeats: Annotated[int, typer.Option(min=1, help="How often the sentences are dealt to folds.")] = 2,
    feature_options: FeatureOptions = FeatureOptions(),
    word_column: o.WordColumn = None,
    label_column: o.LabelColumn = None,
    C: o.CostWeight = 1.0,
    training: TrainingOptions = TrainingOptions(tol=0.1),
    files: FileOptions = FileOptions(),
    config: o.Config = None,
    debug: o.Debug = False,
) -> None:
    """List the sentences whose labels look wrong, most suspicious first.

    Taggers that were trained on the other folds judge each sentence.

    Brackets after a doubtful token show its label and the suggested one, or ? where no other label is better.

    Agreement is the share of the taggers that make this suggestion. Sentences count from 0.

    Ctrl-C lists what the fits so far have judged.

    Exit codes: 0 fine, 1 bad input, 2 wrong usage, 130 interrupted.

    Examples:

      maxmargin audit train.txt --top 50

      maxmargin audit train.txt --template t.txt --label-column 2 -C 0.1 --json > suspects.jsonl

      maxmargin audit train.txt --top 200 --above 0 --output-corrected corrected.txt
    """
    outputs = [path for path in (output_filtered, output_corrected) if path is not None]
    _check_outputs(outputs, file, feature_options.template, config)
    source = files.source(file)
    table = source.table()
    warn_of_shape(table)
    place, words = table.place(label_column), table.format(word_column).word_column
    if len(table) < folds:
        raise ValueError(f"{source.name} has {len(table)} sentences; {folds} folds need at least as many.")
    begin = time.perf_counter()
    _, X = fit_features(feature_options, table, words, place)
    tagger, labels = training.tagger(C=C), table.labels(place)
    from sklearn.exceptions import ConvergenceWarning

    from maxmargin.estimators.auditing import COLUMNS
    from maxmargin.estimators.auditing import audit as judged

    judged_folds = 0
    with progress_bar(folds * repeats, "fits") as advance, located(source.name, table.line), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a Ctrl-C is told below

        def after_fold() -> None:
            nonlocal judged_folds
            judged_folds += 1
            advance(1)

        found = judged(
            tagger, X, labels, folds, repeats=repeats, tol=None, random_state=training.seed, after_fold=after_fold
        )
    columns = {name: list(found[name]) for name in COLUMNS}
    rows = cast(list[Suspect], [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
    listed = {row["example"]: row for row in rows[:top] if above is None or row["score"] > above}
    _list(source, listed, words if words != place else min(1, len(table.columns) - 1), as_json)
    if judged_folds < folds * repeats:
        what = (
            f"interrupted after {judged_folds} of {folds * repeats} fits: {len(rows)} of {len(table)} sentences judged"
        )
        typer.echo(f"maxmargin: {what}{', no file written' if outputs else ''}.", err=True)
        raise typer.Exit(INTERRUPTED)
    done = [f"{len(table)} sentences judged in {folds * repeats} fits and {time.perf_counter() - begin:.0f} s"]
    if output_filtered is not None:
        _write(output_filtered, _filtered(source, set(listed)))
        done.append(f"{output_filtered} has {len(table) - len(listed)} of them")
    if output_corrected is not None:
        _write(output_corrected, _corrected(source, listed, place))
        changed = sum(bool(row["positions"]) for row in listed.values())
        done.append(f"{output_corrected} has other labels in {changed} of them")
    typer.echo(f"maxmargin: {'; '.join(done)}.", err=True)


def _check_outputs(paths: list[str], *inputs: str | None) -> None:
    """Refuse files that cannot be written before the work, not after it."""
    for path in paths:
        if path == "-":
            raise ValueError("the list goes to standard output; name a file for the sentences.")
        check_output(path, inputs)
    if len({os.path.realpath(path) for path in paths}) < len(paths):
        raise ValueError(f"{paths[0]} is named twice; give the filtered and the corrected sentences a file each.")


def _list(
    source: Source, listed: Mapping[int, Suspect], at_word: int, as_json: bool, file: TextIO | None = None
) -> None:
    """Print the suspects in their order, in colour on a terminal."""
    blocks = {i: block for i, block in _sentences(source) if i in listed}
    out = sys.stdout if file is None else file
    for rank, (i, row) in enumerate(listed.items(), start=1):
        block = blocks[i]
        words = [columns[at_word] for columns in block.rows]
        at = row["positions"][0] if row["positions"] else max(row["worst"], 0)
        line = block.first + block.places[at]
        if as_json:
            facts = {name: value for name, value in row.items() if name != "example"}
            typer.echo(json.dumps({"sentence": i, "line": line, **facts, "tokens": words}, ensure_ascii=False), out)
            continue
        head = f"{rank}. sentence {i}, line {line}: score {row['score']:.2f}, agreement {100 * row['agreement']:.0f}%"
        pieces = list(_pieces(words, row))
        if not out.isatty():
            typer.echo(f"{head}\n   {''.join(text for text, _ in pieces)}\n", out)
            continue
        from rich.console import Console
        from rich.padding import Padding
        from rich.text import Text

        console = Console(file=out, highlight=False)
        console.print(Text(head, style="bold"))
        console.print(Padding(Text.assemble(*pieces), (0, 0, 1, 3)))


def _pieces(words: list[str], row: Suspect) -> Iterator[tuple[str, str]]:
    """The sentence in pieces of text, each with its colour."""
    changed = set(row["positions"]) or {row["worst"]}
    for t, word in enumerate(words):
        yield (" " if t else "") + word, "bold" if t in changed else ""
        if t in changed:
            given, suggested = row["given"][t], row["suggested"][t]
            yield from ((" [", "dim"), (given, "red"))
            yield from [(" ?", "dim")] if suggested == given else [(" -> ", "dim"), (suggested, "green")]
            yield "]", "dim"


def _sentences(source: Source) -> Iterator[tuple[int, Block]]:
    """The sentences with their numbers; lines after the last one have the number -1."""
    number = 0
    for block in source.blocks():
        yield (number if block.rows else -1), block
        number += bool(block.rows)


def _filtered(source: Source, left_out: set[int]) -> Iterator[str]:
    """The lines without some sentences; document markers in front of those stay, their comments do not."""
    from maxmargin.datasets.columns import COMMENTS

    marks = tuple(prefix for prefix in source.rules.comments if prefix not in COMMENTS)
    for i, block in _sentences(source):
        if i not in left_out:
            yield from block.lines
        else:
            before = block.lines[: block.places[0]]
            yield from (line for line in before if not line.startswith(marks))


def _corrected(source: Source, listed: Mapping[int, Suspect], place: int) -> Iterator[str]:
    """All lines, with the suggested labels in their column."""
    separator = source.rules.separator
    for i, block in _sentences(source):
        lines = list(block.lines)
        for t in listed[i]["positions"] if i in listed else ():
            line, columns = lines[block.places[t]], block.rows[t]
            at = 0
            for text in columns[:place]:  # keep spaces and separators as they are
                at = line.index(text, at) + len(text) + (len(separator) if separator else 0)
            at = line.index(columns[place], at)
            lines[block.places[t]] = line[:at] + str(listed[i]["suggested"][t]) + line[at + len(columns[place]) :]
        yield from lines


def _write(path: str, lines: Iterator[str]) -> None:
    with opened_output(path) as out:
        out.writelines(lines)
