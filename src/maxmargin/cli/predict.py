"""``maxmargin predict``."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import guarded
from maxmargin.cli.files import FileOptions
from maxmargin.cli.model import Rows, TextTagger, constrain, label_place, load_text_tagger
from maxmargin.cli.outputs import check_output, opened_output
from maxmargin.cli.progress import progress_bar
from maxmargin.features.column_files import Source, located

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from maxmargin.datasets.columns import Block

__all__ = ["predict"]

MISC = 9  # the last field of CoNLL-U

MOST_TOKENS, MOST_BYTES = 50_000, 2**25  # per batch, however few sentences they make

_ABOUT_JOBS = "Number of workers that label several files; -1 for all cores."
_ABOUT_EXECUTOR = "What these workers are; auto: processes. ray: actors of a Ray cluster, which must see the files."
_ABOUT_REPLACE = "Whether the prediction replaces the label column; by default in CoNLL-U only."


@guarded
@o.grouped
def predict(
    model: o.ModelFile,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(help="Column file, or - for standard input; with several, -o is a folder.", metavar="[FILE]..."),
    ] = None,
    output: o.TextOutput = "-",
    replace: Annotated[bool | None, typer.Option("--replace/--no-replace", help=_ABOUT_REPLACE)] = None,
    label_column: o.KnownLabelColumn = None,
    kbest: Annotated[
        int, typer.Option(min=1, help="Write the k best labellings, one column each; _ where there are fewer.")
    ] = 1,
    margin: Annotated[
        bool, typer.Option("--margin", help="Add a column: the lead of the sentence's best labelling over the next.")
    ] = False,
    constraints: o.ConstraintsOption = None,
    batch: Annotated[int, typer.Option(min=1, help="Sentences per batch; 1 answers each sentence at once.")] = 500,
    n_jobs: Annotated[int | None, typer.Option("--n-jobs", "-j", help=_ABOUT_JOBS)] = None,
    executor: Annotated[o.Executor, typer.Option("--executor", help=_ABOUT_EXECUTOR)] = o.Executor.auto,
    files: FileOptions = FileOptions(),
    debug: o.Debug = False,
) -> None:
    """Label the tokens of a column file, batch by batch.

    Every line is written as it is, followed by the predicted label. Blank lines, comments and line ends stay.

    In CoNLL-U, the label is put in its field, such as upos, and --kbest and --margin add to misc.

    Columns must be in the same order as in training; a label column at the end is optional.

    A file that is named with -o appears when all of it is written. Several files are labelled by several workers
    (--n-jobs), each into a file of its name in the folder that -o names.

    Examples:

      maxmargin predict chunker.mm < in.txt > out.txt

      maxmargin predict chunker.mm test.gz --constraints bio --margin -o out.gz

      maxmargin predict chunker.mm test.txt --replace | less

      maxmargin predict chunker.mm part-*.gz -j 8 -o labelled/
    """
    outputs = _outputs(inputs or ["-"], output, model)
    tagger = constrain(load_text_tagger(model), constraints)
    labeller = Labeller(tagger, files, replace, label_column, kbest, margin, batch)
    if len(outputs) == 1:
        with progress_bar(files.source(outputs[0][0]).size, "predicting") as advance:
            labeller.label(*outputs[0], advance)
        return
    from maxmargin.execution.executors import make_executor

    workers = make_executor(n_jobs, compiled=False, executor=executor.value)
    sizes = {both: os.path.getsize(both[0]) for both in outputs}
    largest_first = sorted(outputs, key=sizes.__getitem__, reverse=True)  # files of one wave take about as long
    try:
        homes = workers.start([labeller] * min(workers.n_workers, len(outputs)))
        with progress_bar(sum(sizes.values()), "predicting") as advance:
            for begin in range(0, len(outputs), len(homes)):
                wave = largest_first[begin : begin + len(homes)]
                workers.call("label", list(zip(homes, wave, strict=False)))
                advance(sum(sizes[both] for both in wave))
    finally:
        workers.close()


def _outputs(inputs: list[str], output: str, model: str) -> list[tuple[str, str]]:
    """Each input with the file that its labels go to, checked before the work."""
    if len(inputs) == 1 and not (output.endswith(os.sep) or os.path.isdir(output)):
        check_output(output, [*inputs, model])
        return [(inputs[0], output)]
    if output == "-" or "-" in inputs:
        raise ValueError("several files need names, and a folder for their labels; name it with -o.")
    os.makedirs(output, exist_ok=True)
    pairs = [(path, os.path.join(output, os.path.basename(path))) for path in inputs]
    for (path, made), (other, same) in pairwise(sorted(pairs, key=itemgetter(1))):
        if made == same:
            raise ValueError(f"the labels of {path} and {other} would both go to {made}; label them in two calls.")
    for path, made in pairs:
        if not os.path.exists(path):
            raise FileNotFoundError(f"there is no file {path!r}.")
        check_output(made, [*inputs, model])
    return pairs


@dataclass(frozen=True)
class Labeller:
    """Labels whole files; a resident of an executor."""

    tagger: TextTagger
    files: FileOptions
    replace: bool | None
    label_column: str | None
    kbest: int
    margin: bool
    batch: int

    def label(self, path: str, output: str, told: Callable[[int], None] | None = None) -> None:
        """Write a file with its labels; ``told`` hears how many bytes of the file are read, each time."""
        tagger, source = self.tagger, self.files.source(path, self.tagger.columns_)
        writer: Writer | None = None
        with opened_output(output) as out:
            for blocks in _batches(source, self.batch, told):
                full = [block for block in blocks if block.rows]
                rows = [block.rows for block in full]
                if rows and writer is None:
                    writer = self._writer(full[0], source)
                with located(source.name, partial(_line, full)):
                    columns = iter(_labels(tagger, rows, self.kbest, self.margin) if rows else [])
                for block in blocks:
                    if block.rows and writer is not None:
                        writer.add(block, next(columns))
                    out.write("".join(block.lines))
                out.flush()

    def _writer(self, first: Block, source: Source) -> Writer:
        width, column = len(first.rows[0]), self.label_column
        _warn_of_width(self.tagger, width, source)
        inside = bool(source.conllu) if self.replace is None else self.replace
        place = label_place(self.tagger, column, width, source) if inside or column is not None else None
        tabs = source.conllu or "\t" in first.lines[first.places[0]]
        joint = source.separator or ("\t" if tabs else " ")
        return Writer(joint, place if inside else None, bool(source.conllu), self.kbest)


def _warn_of_width(tagger: TextTagger, width: int, source: Source) -> None:
    """Say so when lines have more columns than in training: a whole sentence on a line, maybe."""
    known = tagger.columns_
    most = (
        known.width
        if known is not None
        else max(s.column for d in tagger.features_.definitions_ for s, _ in d.slots) + 2
    )
    if width > most:
        found = f"the lines of {source.name} have {width} columns, those of the training had {most}"
        advice = "the further ones are not read; if a line is a whole sentence, write one token per line"
        typer.echo(f"maxmargin: {found}; {advice}.", err=True)


def _line(blocks: list[Block], sentence: int, token: int) -> int:
    return blocks[sentence].first + blocks[sentence].places[token]


def _batches(source: Source, size: int, told: Callable[[int], None] | None) -> Iterator[list[Block]]:
    held: list[Block] = []
    tokens = taken = 0
    for block in source.blocks(told):
        held.append(block)
        tokens, taken = tokens + len(block.rows), taken + block.size
        if len(held) >= size or tokens >= MOST_TOKENS or taken >= MOST_BYTES:
            yield held
            held, tokens, taken = [], 0, 0
    if held:
        yield held


def _labels(tagger: TextTagger, rows: Rows, kbest: int, margin: bool) -> list[list[tuple[str, ...]]]:
    """The new columns of each token of each sentence."""
    if kbest == 1 and not margin:
        return [[(label,) for label in labels] for labels in tagger.predict(rows)]
    answers = tagger.predict_kbest(rows, max(kbest, 2 if margin else 1))
    made = []
    for sentence, best in zip(rows, answers, strict=True):
        columns = [labels for labels, _ in best[:kbest]]
        columns += [["_"] * len(sentence)] * (kbest - len(columns))
        if margin:
            gap = best[0][1] - best[1][1] if len(best) > 1 else math.inf
            columns.append([f"{gap:.6g}"] * len(sentence))
        made.append(list(zip(*columns, strict=True)))
    return made


@dataclass(frozen=True)
class Writer:
    """Where the new columns of a token go: behind its line, or the first one in place of an old column."""

    joint: str
    replaced: int | None
    conllu: bool
    kbest: int

    def add(self, block: Block, columns: list[tuple[str, ...]]) -> None:
        """Give the tokens of a block their new columns."""
        new = dict(zip(block.places, zip(block.rows, columns, strict=True), strict=True))
        for place, line in enumerate(block.lines):
            text = line.rstrip("\r\n")
            if place in new:
                block.lines[place] = self._joined(text, *new[place]) + line[len(text) :]
            elif self.conllu and self.replaced is None and text[:1].isdigit():  # a range of words, or an empty node
                block.lines[place] = self.joint.join((text, *["_"] * len(columns[0]))) + line[len(text) :]

    def _joined(self, text: str, row: tuple[str, ...], new: tuple[str, ...]) -> str:
        if self.replaced is None:
            return self.joint.join((text if self.conllu else text.rstrip(" \t"), *new))
        fields = [*row[: self.replaced], new[0], *row[self.replaced + 1 :]]
        if not self.conllu:
            return self.joint.join((*fields, *new[1:]))
        names = [f"Label{k}" for k in range(2, self.kbest + 1)] + ["Margin"]
        misc = [f"{name}={value}" for name, value in zip(names, new[1:], strict=False)]
        fields[MISC] = "|".join([*misc] if fields[MISC] == "_" and misc else [fields[MISC], *misc])
        return self.joint.join(fields)
