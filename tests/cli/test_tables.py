"""Tables on a terminal and elsewhere."""

from __future__ import annotations

import io

from maxmargin.cli.tables import show_table


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_plain_columns_are_aligned():
    out = io.StringIO()
    show_table("title", ["name", "n"], [("a", 5), ("longer", "-12.5%")], file=out)
    assert out.getvalue() == "title\nname         n\na            5\nlonger  -12.5%\n\n"
    out = io.StringIO()
    show_table("", ["", ""], [("a", "b c")], file=out)
    assert out.getvalue() == "a  b c\n\n"


def test_names_with_brackets_survive_on_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    out = Terminal()
    show_table("weights", ["feature", "weight"], [("0[-1]=[bold]the", "+0.5")], file=out)
    assert "0[-1]=[bold]the" in out.getvalue() and "feature" in out.getvalue()
