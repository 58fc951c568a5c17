"""``maxmargin compile``: all kernels made before their first use, for images of containers and impatient people."""

from __future__ import annotations

import re
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from maxmargin.kernel import Kernel

__all__ = ["all_kernels", "compile_kernels"]


def all_kernels() -> dict[str, Kernel]:
    """Every kernel at the top level of a module of the package, by its full name."""
    from maxmargin.kernel import Kernel

    package = Path(__file__).parents[1]
    found = {}
    for path in sorted(package.rglob("*.py")):
        if re.search(rb"^from maxmargin\.kernel import .*\bkernel\b", path.read_bytes(), re.MULTILINE):
            module = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            for name, thing in vars(import_module(module)).items():
                if isinstance(thing, Kernel) and thing.py_func.__module__ == module:
                    found[f"{module}.{name}"] = thing
    return found


def compile_kernels(
    listing: Annotated[bool, typer.Option("--list", help="Only list the kernels, with those on disk marked.")] = False,
) -> None:
    """Compile all kernels and keep them on disk, so that no first use has to wait.

    This takes a minute or two the first time. MAXMARGIN_KERNEL_CACHE names the folder.
    """
    from rich.console import Console
    from rich.progress import track

    from maxmargin.kernel import omit_notice
    from maxmargin.kernel_cache import cache_folder

    omit_notice()
    kernels = all_kernels()
    if listing:
        for name, one in kernels.items():
            typer.echo(f"{'on disk' if one.on_disk() else 'missing'}  {name}")
        return
    missing = [(name, one) for name, one in kernels.items() if not one.on_disk()]
    begin = time.perf_counter()
    if not missing:
        typer.echo(f"All {len(kernels)} kernels are in {cache_folder()} already.")
        return
    console = Console(stderr=True)
    steps = track(missing, "Compiling", console=console) if console.is_terminal else missing
    for number, (name, one) in enumerate(steps, 1):
        one.prepare()
        if not console.is_terminal:
            typer.echo(f"{number}/{len(missing)}  {name}", err=True)
    done = f"Compiled {len(missing)} of {len(kernels)} kernels in {time.perf_counter() - begin:.0f} s"
    typer.echo(f"{done} and kept them in {cache_folder()}.")
    if not all(one.on_disk() for _, one in missing):
        typer.echo("Some could not be written; name a writable folder in MAXMARGIN_KERNEL_CACHE.", err=True)
        raise typer.Exit(1)
