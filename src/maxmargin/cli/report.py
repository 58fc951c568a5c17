"""``maxmargin report``."""

from __future__ import annotations

from typing import Annotated

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import guarded
from maxmargin.cli.files import FileOptions
from maxmargin.cli.model import check_model_input, known_labels, label_place, load_estimator, usable
from maxmargin.cli.outputs import check_output
from maxmargin.features.column_files import located

__all__ = ["report"]

_ABOUT_DATA = "Column file with true labels (taggers): how good the predictions are on it."


@guarded
@o.grouped
def report(
    model: o.ModelFile,
    output: Annotated[str, typer.Option("--output", "-o", help="HTML file to write.", metavar="FILE")] = "report.html",
    data: Annotated[str | None, typer.Option(help=_ABOUT_DATA, metavar="FILE")] = None,
    label_column: o.KnownLabelColumn = None,
    files: FileOptions = FileOptions(),
    debug: o.Debug = False,
) -> None:
    """Write one page about a model: certificate, progress of training, time, strongest weights; open it in a browser.

    Works for every kind of model file. With --data, taggers also show labels, confusions, hard sentences, calibration.

    Examples:

      maxmargin report chunker.mm

      maxmargin report chunker.mm --data test.txt --output chunker.html
    """
    check_output(output, [model, data])
    check_model_input(model)
    if data is None:
        from maxmargin.estimators.model_files import load

        written = load(model).report(output)
    else:
        tagger = load_estimator(model)
        source = files.source(data, known_labels(tagger)[1])
        table = source.table()
        true = table.labels(label_place(tagger, label_column, len(table.columns), source))
        with located(source.name, source.line):
            written = tagger.report(output, usable(tagger, table), true)
    typer.echo(f"wrote {written}", err=True)
