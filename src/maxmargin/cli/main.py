"""``maxmargin``: taggers for column files (train, predict, evaluate, inspect, tune, audit), label sets, images, links.

Only typer is imported here; each command imports what it needs when it runs, so ``--help`` is quick.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from maxmargin.cli.align import align
from maxmargin.cli.audit import audit
from maxmargin.cli.compile import compile_kernels
from maxmargin.cli.demo import demo
from maxmargin.cli.evaluate import evaluate
from maxmargin.cli.inspect import inspect
from maxmargin.cli.labels import labels
from maxmargin.cli.predict import predict
from maxmargin.cli.report import report
from maxmargin.cli.rerank import rerank
from maxmargin.cli.segment import segment
from maxmargin.cli.train import train
from maxmargin.cli.tune import tune

__all__ = ["app", "main"]

app = typer.Typer(
    name="maxmargin",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"maxmargin {sys.modules['maxmargin'].__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Large-margin taggers for column files and CoNLL-U: one token per line, a blank line after each sentence.

    Files ending in .gz or .xz are compressed; - is standard input or output.

    Exit codes: 0 fine, 1 bad input (a line on standard error says what and where), 2 wrong usage, 130 interrupted.
    """


for command in (train, predict, evaluate, inspect, tune, audit, report):
    app.command(no_args_is_help=True)(command)
app.add_typer(labels)
app.add_typer(segment)
app.add_typer(align)
app.add_typer(rerank)
app.command()(demo)
app.command("compile")(compile_kernels)


def main() -> None:
    """Entry point of the console script."""
    app()
