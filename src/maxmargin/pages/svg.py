"""Pictures as SVG text: lines, bars, shaded tables. Colours come from the style sheet of the page, so both themes fit.

Every function takes plain numbers and returns one ``<svg>`` element that scales with its column.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

__all__ = ["Curve", "bars", "graph", "lines", "number", "shaded", "stacked"]

WIDTH, HEIGHT = 360, 230
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 28, 40  # margins round a plot; names of curves are above it
MOST_POINTS = 300  # of a curve: more cannot be told apart
FLOOR = 1e-16  # stands for 0 on a logarithmic axis
MOST_NODES = 60  # of a graph
MOST_SERIES = 4  # colours in the style sheet
Curve = tuple[Sequence[float], Sequence[float]]


def lines(curves: Mapping[str, Curve], x_label: str, y_label: str, *, log: bool = False) -> str:
    """Curves ``{name: (x, y)}``; points that are not finite are left out. With ``log``, y is logarithmic."""
    points = {name: _thinned(*curve, log) for name, curve in curves.items()}
    x = np.concatenate([curve[0] for curve in points.values()])
    y = np.concatenate([curve[1] for curve in points.values()])
    if len(x) == 0:
        return ""
    across, up = _Axis.of(x, LEFT, WIDTH - RIGHT), _Axis.of(y, HEIGHT - BOTTOM, TOP, log)
    drawn = []
    for value, words in up.ticks():
        at = up.place(value)
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        drawn.append(_text(LEFT - 6, at + 4, words, anchor="end"))
    for value, words in across.ticks():
        drawn.append(_text(across.place(value), HEIGHT - BOTTOM + 16, words, anchor="middle"))
    for k, (xs, ys) in enumerate(points.values()):
        places = [(across.place(a), up.place(b)) for a, b in zip(xs, ys, strict=True)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        drawn.append(f'<polyline class="curve {_colour(k)}" points="{path}"/>')
        if len(places) == 1:
            drawn.append(_dot(*places[0], k, 3))
    drawn.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x_label, "axis", "middle"))
    drawn.append(_text(-(TOP + HEIGHT - BOTTOM) / 2, 12, y_label, "axis", "middle", 'transform="rotate(-90)"'))
    if len(points) > 1:
        for k, name in enumerate(points):
            at = LEFT + 100 * k
            drawn.append(f'<line class="curve {_colour(k)}" x1="{at}" x2="{at + 16}" y1="12" y2="12"/>')
            drawn.append(_text(at + 21, 16, _short(name, 14)))
    return _svg(WIDTH, HEIGHT, f"{y_label} against {x_label}", drawn)


def bars(values: Mapping[str, float], title: str) -> str:
    """Horizontal bars, one line for each name; negative values go to the left of the axis."""
    if not values:
        return ""
    low, high = min(0.0, *values.values()), max(0.0, *values.values())
    row, label, room, span = 20, 190, 230, high - low or 1.0
    zero, drawn = label + room * -low / span, []
    for k, (name, size) in enumerate(values.items()):
        y, length = k * row + 4, abs(size) / span * room
        drawn.append(_text(label - 6, y + 11, _short(name, 30), anchor="end"))
        kind, begin = ("fill c0", zero) if size >= 0 else ("fill c1", zero - length)
        drawn.append(_box(begin, y, max(length, 0.5), 13, kind))
        drawn.append(_text(label + room + 6, y + 11, number(size)))
    return _svg(label + room + 70, len(values) * row + 6, title, drawn)


def stacked(sizes: Mapping[str, float], title: str, unit: str = "s") -> str:
    """One bar that is split in proportion, with its parts named below."""
    total = sum(sizes.values())
    if total <= 0:
        return ""
    width, at, drawn = 460.0, 0.0, []
    for k, (name, size) in enumerate(sizes.items()):
        length, x, y = width * size / total, 230 * (k % 2), 34 + 20 * (k // 2)
        drawn.append(_box(at, 2, length, 22, f"fill {_colour(k)}"))
        drawn.append(_box(x, y, 11, 11, f"fill {_colour(k)}"))
        drawn.append(_text(x + 17, y + 10, f"{name} {number(size)} {unit} ({100 * size / total:.0f} %)"))
        at += length
    return _svg(width, 40 + 20 * ((len(sizes) + 1) // 2), title, drawn)


def shaded(rows: Sequence[str], columns: Sequence[str], shares: np.ndarray, title: str) -> str:
    """A table of cells that are the darker the larger their share (0 to 1), with the per cents in them."""
    cell, line, label, head, drawn = 34, 24, 110, 74, []
    for j, name in enumerate(columns):
        turned = f'transform="translate({label + (j + 0.5) * cell + 4:.0f} {head - 6}) rotate(-50)"'
        drawn.append(_text(0, 0, _short(name, 12), extra=turned))
    for i, name in enumerate(rows):
        y = head + i * line
        drawn.append(_text(label - 6, y + 16, _short(name, 17), anchor="end"))
        for j, share in enumerate(shares[i].tolist()):
            x = label + j * cell
            drawn.append(_box(x, y, cell - 2, line - 2, "cell", f'fill-opacity="{share:.2f}"'))
            if share >= 0.005:
                kind = "count strong" if share > 0.5 else "count"
                drawn.append(_text(x + 16, y + 15, f"{100 * share:.0f}", kind, "middle"))
    return _svg(label + len(columns) * cell + 40, head + len(rows) * line + 4, title, drawn)


def graph(strength: Mapping[str, float], edges: Sequence[tuple[str, str]], title: str) -> str:
    """A directed acyclic graph, parents above children; the stronger a node, the darker. None beyond MOST_NODES."""
    if not 0 < len(strength) <= MOST_NODES:
        return ""
    level = dict.fromkeys(strength, 0)
    for _ in strength:  # at most as many rounds as there are nodes
        for parent, child in edges:
            level[child] = max(level[child], level[parent] + 1)
    rows: dict[int, list[str]] = {}
    for name, row in level.items():
        rows.setdefault(row, []).append(name)
    box, gap, drawn = 104, 70, []
    width = max(map(len, rows.values())) * (box + 14) + 14
    place: dict[str, tuple[float, float]] = {}
    for row, names in rows.items():
        place |= {name: (width * (k + 0.5) / len(names), 20 + gap * row) for k, name in enumerate(names)}
    for parent, child in edges:
        (x, y), (u, v) = place[parent], place[child]
        drawn.append(f'<path class="edge" d="M{x:.0f} {y + 12:.0f} L{u:.0f} {v - 12:.0f}"/>')
        drawn.append(_dot(u, v - 13, 0, 2.5))
    most = max(max(strength.values()), 1e-12)
    for name, (x, y) in place.items():
        share = max(0.0, strength[name]) / most
        drawn.append(_box(x - box / 2, y - 12, box, 24, "node"))
        drawn.append(_box(x - box / 2, y - 12, box, 24, "cell", f'fill-opacity="{share:.2f}"'))
        drawn.append(_text(x, y + 4, _short(name, 17), "count strong" if share > 0.5 else "count", "middle"))
    return _svg(width, 40 + gap * max(rows), title, drawn)


def number(value: float) -> str:
    """A number as a person would write it: four digits, no exponent where it can be helped."""
    value = float(value)
    if not math.isfinite(value):
        return str(value)
    if value == round(value) and abs(value) < 1e7:
        return str(int(value))
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.5g}"


class _Axis:
    """From values to places of a plot."""

    def __init__(self, low: float, high: float, begin: float, end: float, log: bool) -> None:
        self.low, self.high, self.begin, self.end, self.log = low, high, begin, end, log

    @classmethod
    def of(cls, values: np.ndarray, begin: float, end: float, log: bool = False) -> _Axis:
        low, high = float(values.min()), float(values.max())
        if log:
            low, high = math.floor(math.log10(low)), math.ceil(math.log10(high))
        if high <= low:
            low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
        return cls(low, high, begin, end, log)

    def place(self, value: float) -> float:
        value = math.log10(value) if self.log else value
        return self.begin + (self.end - self.begin) * (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        if self.log:
            every = max(1, math.ceil((self.high - self.low) / 5))
            powers = range(math.ceil(self.low), math.floor(self.high) + 1, every)
            return [(10.0**power, f"1e{power}" if abs(power) > 2 else f"{10.0**power:g}") for power in powers]
        rough = (self.high - self.low) / 4
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(size * k for k in (1, 2, 5, 10) if size * k >= rough)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [(k * step, f"{k * step:.6g}") for k in range(first, last + 1)]


def _thinned(x: Sequence[float], y: Sequence[float], log: bool) -> tuple[np.ndarray, np.ndarray]:
    """The finite points of a curve, at most MOST_POINTS of them, the first and the last included."""
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    fine = np.isfinite(xs) & np.isfinite(ys)
    xs, ys = xs[fine], ys[fine]
    if len(xs) > MOST_POINTS:
        kept = np.unique(np.linspace(0, len(xs) - 1, MOST_POINTS).round().astype(int))
        xs, ys = xs[kept], ys[kept]
    return xs, np.maximum(ys, FLOOR) if log else ys


def _text(x: float, y: float, words: str, kind: str = "tick", anchor: str = "start", extra: str = "") -> str:
    return f'<text class="{kind}" text-anchor="{anchor}" x="{x:.1f}" y="{y:.1f}" {extra}>{escape(words)}</text>'


def _box(x: float, y: float, width: float, height: float, kind: str, extra: str = "") -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {extra}/>'


def _dot(x: float, y: float, k: int, radius: float) -> str:
    return f'<circle class="fill {_colour(k)}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>'


def _colour(k: int) -> str:
    return f"c{k % MOST_SERIES}"


def _short(text: str, most: int) -> str:
    """A text that is cut in the middle: names often differ at their ends."""
    end = most // 3
    return text if len(text) <= most else text[: most - end - 1] + "…" + text[-end:]


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    size = f'viewBox="0 0 {width:g} {height:g}" style="max-width:{width:g}px"'
    return f'<svg role="img" aria-label="{escape(title)}" {size}>{"".join(parts)}</svg>'
