"""Hostile column files and pictures: bombs, dimensions without end, bytes that are no text."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
from tools.attack import Foreign, in_turn
from tools.attack.targets import targets

from maxmargin.datasets.columns import iter_sentences, read_column_table

NUMBER = 520
TEXT = "Zo\u00eb NNP\nsaw VBD\nthe DT\n\nShe PRP\nate VBD\n3.50 CD\n\nRun VB\n".encode()
PIECES = [
    b"\0", b"\n\n", b"\r", b"\r\n", b"\t", b"\x0b", b"\x1c", b"\x85", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80",
    b"\xc3", b"\xf4\x90\x80\x80", "\u2028".encode(), b"#", b"-DOCSTART-", b"x" * 3_000_000, b"x " * 200_000,
    b"\0" * 100_000, b"\n" * 300_000, b"1-2\tzum\t_\n", b"1.1 x\n",
]  # fmt: skip
SIDES = [0, 1, 2, 7, 2**15, 2**16, 2**31 - 1, 2**32 - 1]


def cases(rng: np.random.Generator, number: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Kinds of files in turn."""
    makers = [*COLUMNS, *PICTURES]
    good = Path("good.txt").absolute()
    good.write_bytes(TEXT)
    commanded(good, targets()["tagger words"].estimator)  # kernels that it needs are loaded now, not in every child
    for make, seed in in_turn(makers, rng, number):
        use = columns if make in COLUMNS else picture
        yield f"{make.__name__}, seed {seed}", lambda make=make, seed=seed, use=use: use(make, seed)


@contextmanager
def hostile_file(name: str, make: Callable, seed: int) -> Iterator[tuple[Path, int]]:
    """A file of its own for this process, and which of three ways it takes."""
    rng = np.random.default_rng(seed)
    suffix, data = make(rng)
    path = Path(f"{name}-{os.getpid()}{suffix}").absolute()
    path.write_bytes(data)
    try:
        yield path, int(rng.integers(3))
    finally:
        path.unlink()


def columns(make: Callable, seed: int) -> None:
    """From the file to labels: by the library, as a stream, and by the command line."""
    target = targets()["tagger words"]
    with hostile_file("columns", make, seed) as (path, way):
        if way == 0:
            table = read_column_table(path)
            words = table.columns[0] if table.columns else []
            sentences = [words[a:b] for a, b in zip(table.offsets[:-1], table.offsets[1:], strict=True)]
            target.check(target.estimator, sentences, target.estimator.predict(sentences))
        elif way == 1:
            for sentence in islice(iter_sentences(path), 1000):  # a stream may be read as far as one likes
                words = [row[0] for row in sentence]
                target.check(target.estimator, [words], target.estimator.predict([words]))
        else:
            commanded(path, target.estimator)


def commanded(path: Path, estimator: object, command: Sequence[str] = ("predict",), *options: str) -> None:
    """``maxmargin predict``, or another such command; a refusal is a code and a sentence on standard error."""
    from typer.testing import CliRunner

    from maxmargin.cli.main import app

    model = Path(f"{'-'.join(command)}-{os.getpid()}.mm").absolute()
    if not model.exists():
        estimator.save(model)
    output = path.with_suffix(".out")
    done = CliRunner().invoke(app, [*command, str(model), str(path), *options, "-o", str(output)])
    if isinstance(done.exception, MemoryError):
        raise done.exception
    if done.exit_code and not isinstance(done.exception, SystemExit):
        raise Foreign(f"the command ended with {done.exception!r}"[:300])
    if done.exit_code and not done.stderr.strip():
        raise Foreign("the command ended without a word")
    if done.exit_code and output.exists():
        raise Foreign("the command failed and left an output")
    output.unlink(missing_ok=True)


def picture(make: Callable, seed: int) -> None:
    """As an image, as a mask or as scribbles."""
    target = targets()["images"]
    with hostile_file("picture", make, seed) as (path, way):
        if way == 0:
            target.check(target.estimator, [path], target.estimator.predict([path]))
        elif way == 1:
            target.check(target.estimator, target.X[:1], target.estimator.predict(target.X[:1], scribbles=[path]))
        else:
            target.estimator.score(target.X[:1], [path])


# --- column files -----------------------------------------------------------------------------------------------------


def damaged_text(rng: np.random.Generator) -> tuple[str, bytes]:
    data = TEXT
    for _ in range(int(rng.integers(1, 4))):
        at, action = int(rng.integers(len(data) + 1)), rng.integers(4)
        if action == 0:
            data = data[:at] + rng.bytes(int(rng.integers(1, 30))) + data[at:]
        elif action == 1:
            data = data[:at]
        else:
            data = data[:at] + PIECES[rng.integers(len(PIECES))] + data[at:]
    return ".txt", data


def giant_line(rng: np.random.Generator) -> tuple[str, bytes]:
    unit = [b"x", b"x ", b"\0", "\u00e9".encode(), b"\t", b"\xff"][rng.integers(6)]
    return ".txt", TEXT + unit * int(rng.choice([10**5, 10**6, 2 * 10**7])) + b"\n" * int(rng.integers(2))


def damaged_archive(rng: np.random.Generator) -> tuple[str, bytes]:
    suffix, pack = [(".gz", gzip.compress), (".xz", lzma.compress)][rng.integers(2)]
    data = bytearray(pack(TEXT * 50))
    for at in rng.integers(len(data), size=int(rng.integers(1, 6))):
        data[at] = int(rng.integers(256))
    return suffix, bytes(data[: rng.integers(1, len(data) + 1)] if rng.random() < 0.5 else data)


def archive_bomb(rng: np.random.Generator) -> tuple[str, bytes]:
    """From a gigabyte in a megabyte to 64 in 64, alone or behind honest text; or all of it in a few kilobytes."""
    unit = [b"\0", b"x NN\n", b"\n", b"x", b"x NN\n\n"][rng.integers(5)] * 2**20
    inner = gzip.compress(unit[: 2**20] * 16, 9) * int(rng.choice([64, 64, 1024, 4096]))
    if rng.random() < 0.2:
        return ".gz", gzip.compress(inner, 9)
    honest = "".join(f"{word:x} NN\n\n" for word in rng.integers(2**62, size=int(rng.choice([0, 10**5]))))
    return ".gz", gzip.compress(honest.encode()) + inner


def no_text(rng: np.random.Generator) -> tuple[str, bytes]:
    encodings = ["utf-16", "utf-16-le", "utf-32", "latin-1", "cp500", "utf-7"]
    kinds = [TEXT.decode().encode(encodings[rng.integers(len(encodings))]), rng.bytes(3000), b"", b"\0" * 5000]
    return [".txt", ".gz", ".xz"][rng.integers(3)], kinds[rng.integers(len(kinds))]


# --- pictures ---------------------------------------------------------------------------------------------------------


def png(rng: np.random.Generator) -> tuple[str, bytes]:
    """A header that promises any size, with the right checksums and little behind it."""
    width, height = (SIDES[rng.integers(len(SIDES))] for _ in range(2))
    depth, colour = [(8, 0), (8, 2), (16, 6), (1, 0), (8, 3), (3, 9)][rng.integers(6)]
    rows = zlib.compress(bytes(int(rng.choice([0, 100, 2**24]))))
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)),
        (b"IDAT", rows),
        (b"IEND", b""),
    ]
    if rng.random() < 0.3:
        chunks.insert(1, (b"zTXt", b"a\0\0" + zlib.compress(bytes(2**26))))
    body = b"".join(struct.pack(">I", len(c)) + n + c + struct.pack(">I", zlib.crc32(n + c)) for n, c in chunks)
    return ".png", b"\x89PNG\r\n\x1a\n" + body


def damaged_png(rng: np.random.Generator) -> tuple[str, bytes]:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(rng.integers(256, size=(9, 11, 3), dtype=np.uint8)).save(
        file, ["PNG", "BMP", "TIFF", "GIF"][rng.integers(4)]
    )
    data = bytearray(file.getvalue())
    for at in rng.integers(len(data), size=int(rng.integers(1, 8))):
        data[at] = int(rng.integers(256))
    return [".png", ".bmp", ".tif", ".gif", ".jpg"][rng.integers(5)], bytes(data)


def numpy_file(rng: np.random.Generator) -> tuple[str, bytes]:
    """Any shape and dtype over a few bytes."""
    shapes = [
        "(9, 11)", "(9, 11, 3)", "()", "(0,)", "(1000000, 1000000)", "(-1, 3)", "(4294967296, 4294967296)", "(9,) * 11",
        "(2,)*64",
    ]  # fmt: skip
    dtypes = ["<f8", "<i4", "|u1", "|b1", "|O", "<U3", "<c16", "<M8[s]", "|V4", ">f8"]
    text = f"{{'descr': '{dtypes[rng.integers(10)]}', 'fortran_order': False, 'shape': {shapes[rng.integers(9)]}, }}"
    header = text.encode() + b" " * (-(len(text) + 11) % 64) + b"\n"
    length = len(header) if rng.random() < 0.8 else int(rng.integers(65536))
    return ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + header + rng.bytes(
        int(rng.choice([0, 99, 792, 5000]))
    )


def nifti(rng: np.random.Generator) -> tuple[str, bytes]:
    """A volume that is larger than it says, packed or not."""
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    sides = [int(rng.choice([1, 5, 300, 32767])) for _ in range(3)]
    struct.pack_into("<8h", header, 40, 3, *sides, 1, 1, 1, 1)
    struct.pack_into("<hh", header, 70, int(rng.choice([2, 4, 16, 64, 999])), int(rng.choice([8, 16, 32, 64, 7])))
    struct.pack_into("<f", header, 108, 352.0)
    struct.pack_into("<ff", header, 112, float(rng.choice([0.0, 1.0, np.nan, 1e38])), 0.0)
    header[344:348] = b"n+1\0"
    data = bytes(header) + bytes(int(rng.choice([0, 125, 1000])))
    for at in rng.integers(len(data), size=int(rng.integers(0, 3))):
        data = data[:at] + bytes([int(rng.integers(256))]) + data[at + 1 :]
    if rng.random() < 0.5:
        return ".nii", data
    return ".nii.gz", gzip.compress(data, 1) + gzip.compress(bytes(2**24), 1) * int(rng.choice([0, 250]))


def other_bytes(rng: np.random.Generator) -> tuple[str, bytes]:
    suffix = [".png", ".jpg", ".npy", ".nii", ".nii.gz", ".tif", ".webp", ".svg", ""][rng.integers(9)]
    return suffix, [b"", b"\0" * 3000, rng.bytes(3000), TEXT, b"GIF89a\xff\xff\xff\xff\0\0\0"][rng.integers(5)]


COLUMNS: list[Callable] = [damaged_text, giant_line, damaged_archive, archive_bomb, no_text]
PICTURES: list[Callable] = [png, damaged_png, numpy_file, nifti, other_bytes]
