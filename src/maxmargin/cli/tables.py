"""Tables: drawn on a terminal, plain columns elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

__all__ = ["number", "show_table"]


def show_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]], file: TextIO | None = None) -> None:
    """Write a table, text aligned left and numbers right; no header when all its names are empty."""
    out = sys.stdout if file is None else file
    cells = [[str(cell) for cell in row] for row in rows]
    right = [all(_numeric(row[j]) for row in cells) and bool(cells) for j in range(len(header))]
    if out.isatty():
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, show_header=any(header))
        for name, numeric in zip(header, right, strict=True):
            table.add_column(Text(name), justify="right" if numeric else "left")
        for row in cells:
            table.add_row(*map(Text, row))  # as Text, brackets in names are not markup
        Console(file=out).print(table)
        return
    widths = [max(len(row[j]) for row in [list(header), *cells]) for j in range(len(header))]
    lines = [title] if title else []
    for row in [list(header), *cells] if any(header) else cells:
        columns = zip(row, widths, right, strict=True)
        lines.append("  ".join(cell.rjust(w) if numeric else cell.ljust(w) for cell, w, numeric in columns).rstrip())
    out.write("\n".join(lines) + "\n\n")


def number(value: float) -> str:
    """A weight or a score, short and aligned."""
    return f"{value:+.4f}"


def _numeric(cell: str) -> bool:
    try:
        float(cell.split(" ")[0].rstrip("%") or "0")
    except ValueError:
        return False
    return True
