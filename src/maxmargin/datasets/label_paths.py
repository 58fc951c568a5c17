"""Hierarchies of labels in files: the attribute ``hierarchical`` of Clus, and the label files of Mulan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from xml.etree import ElementTree

from maxmargin.datasets.text_lines import Source, check_text, opened

__all__ = ["LabelPaths", "read_label_xml"]

ROOT = "root"
XML_LIMIT = 16_000_000  # bytes


@dataclass(frozen=True)
class LabelPaths:
    """Labels that are paths of a tree (``a/b/c``), or nodes of a directed acyclic graph.

    ``edges`` are pairs (parent, child); ``code`` has the number of each label.
    """

    names: list[str]
    edges: list[tuple[str, str]]
    code: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", {name: k for k, name in enumerate(self.names)})

    @staticmethod
    def of(declared: str, where: str) -> LabelPaths:
        """The labels that ``@attribute class hierarchical`` declares.

        Paths of a tree are separated by commas; what lies on the way to one is a label too. Where all are pairs and
        one of them begins with ``root/``, they are the edges ``parent/child`` of a graph, whose root is no label.
        """
        items = [item.strip() for item in declared.split(",") if item.strip()]
        parts = [item.split("/") for item in items]
        for item, path in zip(items, parts, strict=True):
            if not all(path):
                raise ValueError(f"{where}: {item[:60]!r} is no path of labels; write a/b/c.")
        if not items:
            raise ValueError(f"{where}: no labels are declared; write hierarchical a,a/b,a/c.")
        edges: dict[tuple[str, str], None] = {}  # in order
        if all(len(path) == 2 for path in parts) and any(path[0] == ROOT for path in parts):
            for parent, child in parts:
                edges[parent, child] = None
            names = dict.fromkeys(name for edge in edges for name in edge if name != ROOT)
            return LabelPaths([*names], [edge for edge in edges if edge[0] != ROOT])
        names = dict.fromkeys("/".join(path[:depth]) for path in parts for depth in range(1, len(path) + 1))
        return LabelPaths([*names], [(name.rpartition("/")[0], name) for name in names if "/" in name])

    def codes(self, text: str, where: str) -> list[int]:
        """Numbers of the labels in ``a/b@c``; the labels above them are not among them."""
        found = []
        for item in filter(None, (part.strip() for part in text.split("@"))):
            if item not in self.code:
                raise ValueError(f"{where}: the label {item[:60]!r} is not among those that the file declares; add it.")
            found.append(self.code[item])
        return found


def read_label_xml(source: Source) -> LabelPaths:
    """The labels of a Mulan label file, ``<labels><label name="a"> <label name="b"/> </label></labels>``.

    Labels inside a label are below it. Tsoumakas, Spyromitros-Xioufis, Vilcek, Vlahavas 2011, Mulan: a Java library
    for multi-label learning.
    """
    with opened(source) as (lines, name):
        text = "".join(check_text(line, name, number) for number, line in enumerate(_limited(lines, name), 1))
    if "<!" in text.replace("<!--", ""):
        raise ValueError(f"{name}: it declares entities or a document type, which label files do not need; remove it.")
    try:
        top = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ValueError(f"{name}, line {error.position[0]}: not XML ({error.msg}); correct it.") from None
    names: list[str] = []
    edges: list[tuple[str, str]] = []
    waiting: list[tuple[ElementTree.Element, str]] = [(top, "")]
    while waiting:
        element, parent = waiting.pop()
        label = element.get("name", "")
        if element.tag.rpartition("}")[2] == "label":
            if not label or label in names:
                raise ValueError(f"{name}: a label has no name, or that of another one ({label!r}); give it its own.")
            names.append(label)
            if parent:
                edges.append((parent, label))
        waiting += [(child, label) for child in reversed(element)]
    if not names:
        raise ValueError(f'{name} has no labels; write them as <labels><label name="..."></label></labels>.')
    return LabelPaths(names, edges)


def _limited(lines: Iterable[str | bytes], name: str) -> Iterable[str | bytes]:
    size = 0
    for line in lines:
        size += len(line)
        if size > XML_LIMIT:
            raise ValueError(f"{name} has more than {XML_LIMIT / 1e6:g} MB; is it a list of labels?")
        yield line
