"""``maxmargin demo``."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import guarded
from maxmargin.cli.outputs import check_output

if TYPE_CHECKING:
    from maxmargin.cli.demos.outcome import Outcome

__all__ = ["TASKS", "Task", "demo"]

TASKS = {  # name: module, and what it shows
    "tag": ("tagging", "parts of speech of words"),
    "labels": ("labels", "label sets of recipes"),
    "segment": ("pictures", "masks of leaves in pictures"),
    "graphs": ("graphs", "rooms of houses that have doors to each other"),
    "network": ("network", "what ails a plant, by a Bayesian network"),
    "align": ("alignment", "links between French words and English ones"),
    "rerank": ("reranking", "the best of several translations"),
}
Task = StrEnum("Task", ["tag", "labels", "segment", "graphs", "network", "align", "rerank", "all"])

_ABOUT_TASK = "What to show; without it the tasks are listed."
_ABOUT_OUTPUT = "Where the picture goes (.png, .svg or .pdf); by default maxmargin-TASK.png in this folder."


@guarded
def demo(
    task: Annotated[Task | None, typer.Argument(help=_ABOUT_TASK)] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help=_ABOUT_OUTPUT, metavar="FILE")] = None,
    debug: o.Debug = False,
) -> None:
    """Learn from a small dataset that ships with the package: the program, what came out, and a picture.

    Takes seconds, and needs no files. The first use of a task compiles for some seconds more.

    Examples:

      maxmargin demo tag

      maxmargin demo all
    """
    if task is None:
        for name, (_, about) in TASKS.items():
            typer.echo(f"maxmargin demo {name:8}  {about}")
        typer.echo(f"maxmargin demo {'all':8}  all of them")
        return
    if output is not None and task == "all":
        raise ValueError("-o names one picture; leave it out, or name one task.")
    wanted = [*TASKS] if task == "all" else [str(task)]
    pictures = {name: output or f"maxmargin-{name}.png" for name in wanted}
    for path in pictures.values():
        check_output(path, [])
        if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
            raise ValueError(f"{path} does not end in .png, .svg or .pdf; give the picture such a name.")
    for name in wanted:
        show(name, pictures[name])


def show(name: str, path: str) -> None:
    """Run one demo: print its program and what came out, and draw the picture if matplotlib is there."""
    module = import_module(f"maxmargin.cli.demos.{TASKS[name][0]}")
    typer.echo(f"\n{TASKS[name][1][0].upper() + TASKS[name][1][1:]}\n")
    typer.echo("\n".join(f"    {line}" for line in program(module.run)) + "\n")
    begin = time.perf_counter()
    outcome: Outcome = module.run()
    typer.echo(f"seconds      {time.perf_counter() - begin:.1f}")
    typer.echo(f"certificate  {outcome.model.certificate_}")
    for line in outcome.lines():
        typer.echo(line)
    try:
        import matplotlib
    except ImportError:
        typer.echo("For a picture, install matplotlib: pip install matplotlib")
        return
    matplotlib.use("Agg")  # a file, not a window
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    outcome.draw(figure)
    figure.savefig(path, dpi=130)
    typer.echo(f"picture      {Path(path).resolve()}")


def program(run: Callable[[], Outcome]) -> list[str]:
    """A demo as a program to copy: its imports, and its function without head, docstring and last line."""
    import ast
    import inspect
    import textwrap

    source = textwrap.dedent(inspect.getsource(run))
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    statements = function.body[1:-1]
    names = {node.id for one in statements for node in ast.walk(one) if isinstance(node, ast.Name)}
    places = {"sklearn.model_selection": ["train_test_split"]}
    places |= {package: import_module(package).__all__ for package in ("maxmargin", "maxmargin.datasets")}
    used = {place: sorted(names & {*known}) for place, known in places.items()}
    imports = [f"from {place} import {', '.join(some)}" for place, some in used.items() if some]
    lines = source.splitlines()[statements[0].lineno - 1 : statements[-1].end_lineno]
    return [*imports, "", *textwrap.dedent("\n".join(lines)).splitlines()]
