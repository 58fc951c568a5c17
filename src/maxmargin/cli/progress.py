"""Bars for long work, with the time that is left; on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]

Advance = Callable[[int], None]


@contextmanager
def progress_bar(total: int | None, what: str) -> Iterator[Advance]:
    """A bar that counts up to ``total`` (None: not known), nothing elsewhere; gives a function that advances it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    left = TimeRemainingColumn(), TextColumn("left")
    with Progress(*columns, *left, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
