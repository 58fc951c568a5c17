"""One page of HTML in one file: no network, no script, light and dark, and never larger than a limit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import NewType

__all__ = ["LIMIT", "Html", "Section", "card", "figures", "page", "paragraph", "table"]

Html = NewType("Html", str)
LIMIT = 300_000  # bytes of a page
CARD_RULES = ("p{", "figure{", "svg{", ".figures{", ".tick{", ".axis{", ".grid{", ".curve{")
NUMBER = re.compile(r"[+-]?\d[\d,.]*|–")
CELL = 160  # characters of a cell of a table; longer ones are cut

LIGHT = (
    "--page:#fff;--text:#1b1f24;--soft:#57606a;--rule:#d0d7de;--band:#f6f8fa;"
    "--c0:#0b5cad;--c1:#b0500d;--c2:#1a7f4b;--c3:#7a4fb5;--on:#fff"
)
DARK = (
    "--page:#14171a;--text:#e6e8ea;--soft:#a4adb6;--rule:#3a4047;--band:#1d2126;"
    "--c0:#6cb2ff;--c1:#ffb066;--c2:#63d297;--c3:#c5a3f5;--on:#14171a"
)
STYLE = (
    f":root{{{LIGHT}}}@media (prefers-color-scheme:dark){{:root{{{DARK}}}}}@media print{{:root{{{LIGHT}}}}}"
    + """
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 system-ui,sans-serif}
main{max-width:960px;margin:0 auto;padding:24px 16px 64px}
section{break-inside:avoid-page}
h1{font-size:1.6rem;margin:0 0 4px}
h2{font-size:1.2rem;margin:36px 0 8px;border-bottom:1px solid var(--rule);padding-bottom:4px}
p{margin:8px 0;max-width:46rem}
.lead{font-size:1.05rem}
.soft,figcaption,caption{color:var(--soft)}
nav a{display:inline-block;margin:0 14px 4px 0;color:var(--c0)}
.figures{display:flex;flex-wrap:wrap;gap:16px}
figure{margin:8px 0;flex:1 1 300px;min-width:0}
figcaption{font-size:.9rem}
svg{width:100%;height:auto;display:block}
img{max-width:100%;image-rendering:pixelated}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.92rem;margin:8px 0}
caption{text-align:left;padding:4px 0}
th,td{text-align:left;padding:3px 12px 3px 0;border-bottom:1px solid var(--rule);vertical-align:top}
td{overflow-wrap:anywhere}
th{font-weight:600}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;overflow-wrap:normal}
.tick{font-size:11px;fill:var(--soft)}
.axis{font-size:12px;fill:var(--text)}
.count{font-size:10px;fill:var(--text)}
.count.strong{fill:var(--on)}
.grid{stroke:var(--rule);stroke-width:1}
.curve{fill:none;stroke-width:2;stroke:var(--c0)}
.curve.c1{stroke:var(--c1)}.curve.c2{stroke:var(--c2)}.curve.c3{stroke:var(--c3)}
.fill.c0{fill:var(--c0)}.fill.c1{fill:var(--c1)}.fill.c2{fill:var(--c2)}.fill.c3{fill:var(--c3)}
.cell{fill:var(--c0);stroke:var(--rule)}
.node{fill:var(--band);stroke:var(--c0)}
.edge{stroke:var(--soft);fill:none}
"""
)


@dataclass(frozen=True)
class Section:
    """A title and what stands below it; a section without blocks is left out."""

    title: str
    blocks: Sequence[Html]


def paragraph(text: str, kind: str = "") -> Html:
    """Words; ``kind`` is "", "lead" or "soft"."""
    return Html(f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>")


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> Html:
    """A table; columns whose cells are all numbers are flushed right."""
    cells = [[value for value in row] for row in rows]
    if not cells:
        return Html("")
    numeric = [all(_is_number(row[k]) for row in cells) for k in range(len(headers))]
    kinds = [' class="n"' if right else "" for right in numeric]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(headers, kinds, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{_cell(value)}</td>" for value, kind in zip(row, kinds, strict=True)) + "</tr>"
        for row in cells
    )
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    return Html(f'<div class="wide"><table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>')


def _is_number(value: object) -> bool:
    """A number, one that is written out, or the dash in its place."""
    return isinstance(value, (int, float)) or (isinstance(value, str) and NUMBER.fullmatch(value) is not None)


def figures(pictures: Iterable[tuple[str, str]]) -> Html:
    """Pictures (SVG or img elements) with captions, side by side where there is room; empty ones are left out."""
    drawn = [f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>" for svg, caption in pictures if svg]
    return Html(f'<div class="figures">{"".join(drawn)}</div>' if drawn else "")


def card(title: str, blocks: Iterable[Html]) -> str:
    """A piece of a page of others, such as a notebook: its style reaches nothing outside of it."""
    look = f".maxmargin-card{{{LIGHT}}}@media (prefers-color-scheme:dark){{.maxmargin-card{{{DARK}}}}}"
    rules = [rule for rule in STYLE.split("\n") if rule.startswith(CARD_RULES)]
    scoped = "".join(f".maxmargin-card {rule}" for rule in rules)
    frame = ".maxmargin-card{background:var(--page);color:var(--text);border:1px solid var(--rule);padding:8px 14px;"
    frame += "max-width:720px;font:14px/1.5 system-ui,sans-serif}"
    body = f"<strong>{escape(title)}</strong>{''.join(blocks)}"
    return f'<div class="maxmargin-card"><style>{look}{frame}{scoped}</style>{body}</div>'


def page(title: str, lead: str, sections: Iterable[Section], limit: int = LIMIT) -> str:
    """The whole page. Blocks that would make it larger than ``limit`` bytes are left out, and the page says so."""
    kept: list[tuple[str, str]] = []
    left_out = 0
    room = limit - len(STYLE) - 4_000 - len(escape(lead).encode())
    for section in sections:
        blocks = []
        for block in section.blocks:
            size = len(block.encode())
            if block and size <= room:
                blocks.append(block)
                room -= size
            else:
                left_out += bool(block)
        if blocks:
            kept.append((section.title, "".join(blocks)))
            room -= 2 * len(section.title.encode()) + 100
    links = "".join(f'<a href="#s{k}">{escape(name)}</a>' for k, (name, _) in enumerate(kept))
    body = "".join(f'<section id="s{k}"><h2>{escape(name)}</h2>{text}</section>' for k, (name, text) in enumerate(kept))
    if left_out:
        body += paragraph(f"{left_out} parts were left out to keep this page below {limit // 1000} kB.", "soft")
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
    meta += '<meta name="color-scheme" content="light dark">'
    head = f"<head>{meta}<title>{escape(title)}</title><style>{STYLE}</style></head>"
    top = f'<h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p><nav aria-label="Sections">{links}</nav>'
    return f'<!DOCTYPE html>\n<html lang="en">{head}<body><main>{top}{body}</main></body></html>\n'


def _cell(value: object) -> str:
    if isinstance(value, float):
        return escape(f"{value:.4g}")
    text = str(value)
    return escape(text if len(text) <= CELL else text[: CELL - 1] + "…")
