"""Lines of text from files that nobody has checked: lines that are not text, too long or a trap are refused."""

from __future__ import annotations

import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["LINE_LIMIT", "UNPACKED_LIMIT", "check_text", "decoded", "opened"]

Lines = Iterable[str | bytes]
Source = str | Path | Lines

LINE_LIMIT = 1_000_000  # bytes
CHUNK = 1 << 18  # bytes that are read together
UNPACKED_LIMIT = 64_000_000  # bytes that an archive may always unpack to
UNPACKED_RATIO = 30  # and beyond that, how many times what was read of it: text hardly reaches 20, traps reach 1000

_NOT_TEXT = {
    b"\xff\xfe": "this is UTF-16; convert it with: iconv -f UTF-16 -t UTF-8",
    b"\xfe\xff": "this is UTF-16; convert it with: iconv -f UTF-16 -t UTF-8",
    b"\x1f\x8b": "this is a gzip archive; give it a name that ends in .gz, or unpack it with zcat",
    b"\xfd7zXZ": "this is an xz archive; give it a name that ends in .xz, or unpack it with xzcat",
}


class _Told(io.FileIO):
    """A file that tells how many bytes of it are read."""

    def __init__(self, path: str | Path, told: Callable[[int], None]) -> None:
        super().__init__(path)
        self._told = told

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(-1 if size is None else size)
        self._told(len(data))
        return data

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = super().readinto(buffer)
        self._told(count)
        return count


class _Unpacked(io.RawIOBase):
    """The content of an archive, refused as soon as it is much larger than what was read of the archive so far.

    So a trap of any size ends after ``limit`` bytes, and an honest archive of any size is read.
    """

    def __init__(self, file: io.FileIO, archive: gzip.GzipFile | lzma.LZMAFile, limit: int) -> None:
        self._file, self._archive, self._limit, self._count = file, archive, limit, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._archive.read(len(buffer))
        self._count += len(data)
        if self._count > max(self._limit, UNPACKED_RATIO * self._file.tell()):
            size = f"{self._count / 1e6:.4g} MB from {self._file.tell() / 1e6:.4g} MB of the archive"
            advice = "is it what you think? Raise the limit (--max-unpacked), or unpack it yourself."
            raise ValueError(f"{self._file.name} unpacks to over {UNPACKED_RATIO} times its size, {size}; {advice}")
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def opened(
    source: Source, max_unpacked: int = UNPACKED_LIMIT, told: Callable[[int], None] | None = None
) -> Iterator[tuple[Lines, str]]:
    """Lines of a source, and its name for messages.

    Archives (``.gz``, ``.xz``) may unpack to ``max_unpacked`` bytes, or to 30 times their size where that is more.
    ``told`` hears how many bytes of a file are read, packed ones of an archive, each time.
    """
    if not isinstance(source, (str, Path)):
        if not isinstance(source, Iterable):
            raise TypeError(f"need a path, '-' or a stream of lines, got {type(source).__name__}.")
        yield source, str(getattr(source, "name", "<stream>"))
    elif str(source) == "-":
        stream = getattr(sys.stdin, "buffer", sys.stdin)
        if stream is None:
            raise ValueError("standard input is closed; name a file.")
        yield stream, "<standard input>"
    else:
        suffix = Path(source).suffix
        try:
            file = io.FileIO(source) if told is None else _Told(source, told)
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no file {str(source)!r}.") from None
        with file:
            raw: io.RawIOBase = file
            if suffix in (".gz", ".xz"):
                archive = gzip.GzipFile(fileobj=file) if suffix == ".gz" else lzma.LZMAFile(file)
                raw = _Unpacked(file, archive, max_unpacked)
            try:
                yield io.BufferedReader(raw, 1 << 20), str(source)
            except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
                raise ValueError(f"{source} is a damaged archive ({error}); download or compress it again.") from None


def decoded(lines: Lines, name: str) -> Iterator[tuple[int, str]]:
    """Lines of text with their numbers, each checked as it comes; only the last one may lack its line end."""
    number = 1
    for part in _parts(lines):
        text = check_text(part, name, number)
        if number == 1:
            text = text.removeprefix("\ufeff")
        if "\0" in text:
            raise ValueError(not_text(name, number + text.count("\n", 0, text.index("\0"))))
        found = text.split("\n") if "\n" in text else [text]
        last = found.pop()
        for line in found:
            if len(line) > LINE_LIMIT:
                raise ValueError(too_long(name, number))
            yield number, line + "\n"
            number += 1
        if last or not found:
            if len(last) > LINE_LIMIT:
                raise ValueError(too_long(name, number))
            yield number, last
            number += 1


def _parts(lines: Lines) -> Iterator[str | bytes]:
    """Whole lines, many at a time where they are there; one that does not end is cut after the limit."""
    if isinstance(lines, io.TextIOBase):
        yield from iter(lambda: lines.readline(LINE_LIMIT + 2), "")
    elif not isinstance(lines, io.BufferedIOBase):
        yield from lines
    else:
        rest = b""
        while chunk := lines.read1(CHUNK):  # what there is: an answer must not wait for more input
            whole, end, begun = chunk.rpartition(b"\n")
            if end:
                yield rest + whole + end
                rest = begun
            else:
                rest += begun
            if len(rest) > LINE_LIMIT:
                break
        if rest:
            yield rest


def check_text(data: str | bytes, name: str, number: int = 1) -> str:
    """Text of some lines, of which the first has a number."""
    if isinstance(data, str):
        return data
    for mark, what in _NOT_TEXT.items():
        if number == 1 and data.startswith(mark):
            raise ValueError(f"{name}, line 1: {what}.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        number += data.count(b"\n", 0, error.start)
        advice = "convert the file, for example with: iconv -f LATIN1 -t UTF-8"
        raise ValueError(f"{name}, line {number}: not UTF-8 text ({error.reason}); {advice}.") from None


def not_text(name: str, number: int) -> str:
    return f"{name}, line {number}: a NUL byte, so this is no UTF-8 text (UTF-16, or not text at all?); convert it."


def too_long(name: str, number: int) -> str:
    return f"{name}, line {number}: more than {LINE_LIMIT} bytes; is this the right file, and the right format?"
