"""The features of one token at a time, in plain Python: what the compiled path must agree with."""

from __future__ import annotations

import re

MACRO = re.compile(r'%([xXtTmM])\[([+-]?\d+),(\d+)(?:,"((?:\\.|[^"\\])*)")?\]')


def text_at(sentence, place, column):
    if place < 0:
        return f"_B-{-place}"
    if place >= len(sentence):
        return f"_B+{place - len(sentence) + 1}"
    return sentence[place][column]


def template_features(lines, sentence, t, edge=False):
    """Feature strings of token t, in the order of the lines."""
    if edge and t == 0:
        return []

    def value(match):
        command, row, column, test = match.groups()
        text = text_at(sentence, t + int(row), int(column))
        if command in "tT":
            text = "true" if find(test, text) is not None else "false"
        elif command in "mM":
            text = find(test, text) or ""
        return text.lower() if command.isupper() else text

    kinds = "B*" if edge else "U*"
    return [MACRO.sub(value, line) for line in lines if line[0] in kinds and ("%" in line or not edge)]


def find(test, text):
    """Leftmost match of a template's expression by backtracking, or None."""
    anchored = test.startswith("^")
    units = split_units(test[anchored:])
    for start in range(1 if anchored else len(text) + 1):
        end = match_units(units, text, start)
        if end is not None:
            return text[start:end]
    return None


def split_units(test):
    """(character, repetition) pairs; the character may be a class."""
    units, at = [], 0
    while at < len(test):
        if test[at] == "$" and at == len(test) - 1:
            units.append(("$", "end"))
            break
        size = 2 if test[at] == "\\" else 1
        one, at = test[at : at + size], at + size
        repeat = test[at] if at < len(test) and test[at] in "*?" else ""
        at += len(repeat)
        units.append((one, repeat))
    return units


def match_units(units, text, at):
    if not units:
        return at
    (one, repeat), rest = units[0], units[1:]
    if repeat == "end":
        return at if at == len(text) else None
    if repeat == "*":
        while True:
            end = match_units(rest, text, at)
            if end is not None:
                return end
            if at >= len(text) or not fits(one, text[at]):
                return None
            at += 1
    if at < len(text) and fits(one, text[at]):
        end = match_units(rest, text, at + 1)
        if end is not None:
            return end
    return match_units(rest, text, at) if repeat == "?" else None


def fits(one, c):
    classes = {
        "a": c.isalpha(),
        "d": c.isdecimal(),
        "l": c.islower(),
        "p": c in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~¿«»",
        "s": c.isspace(),
        "u": c.isupper(),
        "w": c.isalnum(),
    }
    if one == ".":
        return True
    if one[0] == "\\":
        name = one[1]
        if name.lower() in classes:
            return classes[name.lower()] != name.isupper()
        return c == name
    return c == one


def rows_of(matrix, names):
    """Feature strings of each row of a csr matrix."""
    return [[names[k] for k in matrix.indices[a:b]] for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)]
