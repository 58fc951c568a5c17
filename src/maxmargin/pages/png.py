"""Small pictures inside a page."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np

from maxmargin.pages.html import Section, figures, paragraph

__all__ = ["image", "overlay", "overlays"]

Arrays = Sequence[np.ndarray]
MOST_PIXELS = 140  # of a side; larger pictures are thinned
MOST_PICTURES = 6
MISSED, FALSE, RIGHT = (11, 92, 173), (230, 120, 20), (26, 150, 80)


def image(pixels: np.ndarray, alt: str) -> str:
    """An ``<img>`` element that holds an array (rows, columns, 3) of uint8 as PNG."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)  # filter 0 of each row
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
    return f'<img alt="{alt}" width="{2 * width}" src="data:image/png;base64,{base64.b64encode(data).decode()}">'


def overlay(picture: np.ndarray | None, true: np.ndarray, found: np.ndarray) -> np.ndarray:
    """A picture in grey with the mask that was found: right pixels green, missed ones blue, false ones orange.

    Of volumes the middle slice. ``picture`` has the shape of the masks, or channels behind it; None draws the masks
    alone. Pixels whose truth is ignored (neither 0 nor 1) keep their grey.
    """
    while true.ndim > 2:
        middle = true.shape[0] // 2
        picture, true, found = None if picture is None else picture[middle], true[middle], found[middle]
    step = max(1, -(-max(true.shape) // MOST_PIXELS))
    true, found = true[::step, ::step], found[::step, ::step]
    if picture is None:
        grey = np.full(true.shape, 0.9)
    else:
        grey = np.asarray(picture, np.float64)[::step, ::step]
        grey = grey.mean(axis=-1) if grey.ndim > 2 else grey
        low, high = float(grey.min()), float(grey.max())
        grey = (grey - low) / (high - low or 1.0)
    pixels = np.repeat(255.0 * grey[..., None], 3, axis=-1)
    for where, colour in (
        ((true == 1) & (found == 1), RIGHT),
        ((true == 1) & (found == 0), MISSED),
        ((true == 0) & (found == 1), FALSE),
    ):
        pixels[where] = 0.45 * pixels[where] + 0.55 * np.array(colour)
    return pixels.round().astype(np.uint8)


def overlays(pictures: Arrays | None, masks: Arrays, found: Arrays) -> Section:
    """The pictures whose masks are worst, by the share of pixels that are wrong, the worst first."""
    wrong = [float((np.isin(true, (0, 1)) & (true != own)).mean()) for true, own in zip(masks, found, strict=True)]
    drawn = []
    for i in np.argsort(wrong, kind="stable")[::-1][:MOST_PICTURES].tolist():
        pixels = overlay(None if pictures is None else pictures[i], masks[i], found[i])
        caption = f"Image {i}: {100 * wrong[i]:.1f} % of the pixels are wrong"
        drawn.append((image(pixels, caption), caption))
    told = "The masks with the most errors. Green: found; blue: missed; orange: false. Volumes by their middle slice."
    return Section("Pictures", [paragraph(told), figures(drawn)])
