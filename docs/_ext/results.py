"""Result files as parts of a page: ``{result} chunking`` shows what ``make bench-chunking`` printed, ``{result}
linear_programs/tagging`` what the experiment of that name did."""

from __future__ import annotations

import json
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]


class Result(Directive):
    """The printed lines of a result file, and when and with which command they were measured."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        *experiment, name = self.arguments[0].split("/")
        folder = ROOT.joinpath("experiments", *experiment) if experiment else ROOT / "benchmarks"
        path = folder / "results" / f"{name}.json"
        self.state.document.settings.env.note_dependency(str(path))
        result = json.loads(path.read_text(encoding="utf-8"))
        printed = [line for line in result["printed"] if not line.startswith("machine:")]
        text = "\n".join(printed).strip("\n")
        block = nodes.literal_block(text, text, language="text")
        machine = next((line for line in result["printed"] if line.startswith("machine:")), "").removeprefix(
            "machine: "
        )
        at = f"{result['date']}, commit {result['commit']}" if result["commit"] else result["date"]
        note = nodes.paragraph("", "", nodes.literal("", result["command"]), nodes.Text(f" ({at}; {machine})"))
        note["classes"].append("measured")
        return [block, note]


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the directive."""
    app.add_directive("result", Result)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
