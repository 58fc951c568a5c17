"""Bars for long work, with the time that is left; on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["in_parts", "progress_bar"]

Advance = Callable[[int], None]
Example = TypeVar("Example")
Answer = TypeVar("Answer")
PART = 500  # examples between two steps of a bar


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


def in_parts(
    predict: Callable[[Sequence[Example]], Sequence[Answer]], examples: Sequence[Example], what: str, size: int = PART
) -> list[Answer]:
    """What ``predict`` answers for all examples, asked part by part under a bar.

    A part that is refused is asked again together with all others, so that messages count examples from the first one.
    """
    answers: list[Answer] = []
    try:
        with progress_bar(len(examples), what) as advance:
            for begin in range(0, len(examples), size):
                part = examples[begin : begin + size]
                answers += predict(part)
                advance(len(part))
    except (TypeError, ValueError):
        return list(predict(examples))
    return answers
