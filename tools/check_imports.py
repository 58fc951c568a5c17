"""Check that the imports of the package point in one direction.

Reads the syntax tree of every module, so imports inside functions count like those at the top. Usage::

    python tools/check_imports.py [package folder]

Prints one line per offending import and exits with 1; exits with 0 if there is none.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "maxmargin"

# A room may import itself and the rooms of earlier lines.
LINE: list[set[str]] = [
    {"kernel_cache", "lazy"},
    {"kernel", "parameters", "certificate", "prefetch", "team", "needs"},
    {"lanes"},
    {"door"},
    {"planes"},
    {"contracts"},
    {"datasets"},
    {"features"},
    {"costs", "inference"},
    {"models"},
    {"oracles"},
    {"formulations"},
    {"execution"},
    {"solvers"},
    {"pages"},
    {"estimators"},
    {"compat"},
    {"reports"},
    {"cli"},
]

# Rooms beside the line: what each may import. Rooms of the line from `SIDE_SEEN_FROM` on may import them.
SIDE: dict[str, set[str]] = {
    "metrics": {"kernel", "datasets"},
    "persistence": {"kernel", "lazy", "door", "planes"},
    "callbacks": {"kernel", "certificate", "metrics"},
}
SIDE_SEEN_FROM = "execution"

# The checks offered to authors of models may import anything but the command line; only that may import them.
FREE = "testing"


def allowed_imports() -> dict[str, set[str]]:
    """Room -> rooms it may import (itself included)."""
    allowed: dict[str, set[str]] = {room: rooms | {room} for room, rooms in SIDE.items()}
    earlier: set[str] = set()
    for rooms in LINE:
        if SIDE_SEEN_FROM in rooms:
            earlier |= set(SIDE)
        for room in rooms:
            allowed[room] = earlier | {room}
        earlier |= rooms
    allowed[FREE] = (earlier | {FREE}) - {"cli"}
    allowed["cli"].add(FREE)
    return allowed


def room_of(parts: list[str]) -> str:
    """Room of a dotted name; a kernel file belongs to what it serves, ``planes_kernel`` to ``planes``."""
    return parts[1].removesuffix("_kernel") if len(parts) > 1 else ""


def imported_modules(tree: ast.AST, package: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, dotted parts) of each import in a module that lives in ``package``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.split(".")
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            for alias in node.names:  # `from maxmargin import planes` names the room only in the alias
                yield node.lineno, [*base, alias.name]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in {"import_module", "__import__"} and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value.split(".")


def offences(root: Path) -> list[str]:
    """Sentences about every import of the package in folder ``root`` that points the wrong way."""
    allowed = allowed_imports()
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = [PACKAGE, *path.relative_to(root).with_suffix("").parts]
        if parts == [PACKAGE, "__init__"]:
            continue  # the public face gathers names from every room
        room, source = room_of(parts), path.read_text(encoding="utf-8")
        lines = source.splitlines()
        if room not in allowed:
            found.append(f"{path}:1: room '{room}' is unknown: give it a place in tools/check_imports.py")
            continue
        seen: set[tuple[int, str]] = set()
        for number, target in imported_modules(ast.parse(source, str(path)), parts[:-1]):
            if target[0] != PACKAGE:
                continue
            other = room_of(target)
            if other in allowed[room] or (number, other) in seen or (other not in allowed and room == FREE):
                continue
            seen.add((number, other))
            what = f"'{other}'" if other in allowed else "an unknown room (the top level of the package?)"
            found.append(f"{path}:{number}: room '{room}' may not import {what}: {lines[number - 1].strip()}")
    return found


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).parents[1] / "src" / PACKAGE
    if not root.is_dir():
        print(f"no package folder at {root}")
        return 2
    found = offences(root)
    print("\n".join(found) or "imports: all point in one direction")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
