"""Errors of the command line: one line, or a traceback with ``--debug``."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

import typer

from maxmargin.features.column_files import located

__all__ = ["BAD_INPUT", "INTERRUPTED", "fail", "fitting", "guarded", "reason"]

BAD_INPUT = 1
INTERRUPTED = 130  # 128 + SIGINT
READER_LEFT = 141  # 128 + SIGPIPE, as other tools do


def fail(message: str) -> NoReturn:
    """Exit with one line on standard error."""
    typer.echo(f"maxmargin: {' '.join(message.split())}", err=True)
    raise typer.Exit(BAD_INPUT)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn input errors of a command into one line; its option ``debug`` shows the traceback instead."""

    @functools.wraps(command)
    def wrapper(*args: object, debug: bool = False, **kwargs: object) -> None:
        try:
            command(*args, debug=debug, **kwargs)
        except BrokenPipeError:
            # the interpreter flushes standard output once more at exit
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(READER_LEFT) from None
        except KeyboardInterrupt:
            typer.echo("maxmargin: interrupted.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except (ValueError, OSError, ImportError, MemoryError) as error:
            if debug:
                raise
            fail(_sentence(error))

    return wrapper


@contextmanager
def fitting(name: str = "", line: Callable[[int, int], int | None] = lambda sentence, token: None) -> Iterator[None]:
    """Errors of a fit name the file, as :func:`located` says, if one is given; why training ended the status says."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(), located(name, line):
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def reason(error: OSError) -> str:
    """What the system says about a file, in lower case."""
    return (error.strerror or str(error)).lower()


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError) and not str(error).endswith("."):  # a sentence of ours says what to do
        return f"not enough memory ({error}); use fewer features (--min-count), --weights observed or --hashing."
    return str(error) or type(error).__name__
