"""Damaged column files and templates: labels for every token, or an error that names the file and the line.

Each case damages a good file in one to three ways, at random but the same in every run, and goes all the way from the
file to predicted labels. Nothing else may happen: no other kind of exception, no label too many or too few, no hang.
"""

from __future__ import annotations

import re
import time
from collections import Counter

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.datasets.columns import read_column_table, read_columns
from maxmargin.features.template import Template
from maxmargin.features.tokens import Tokens

DATA = """#begin document (letters)
-DOCSTART- -X-

Zoë NNP
saw VBD
the DT
naïve JJ
dog NN
. .

She PRP
ate VBD
3.50 CD
crêpes NNS

Run VB
"""
TEMPLATE = """# words
U00:%x[-1,0]
U01:%x[0,0]
U02:%x[-1,0]/%x[0,1]
U03:%m[0,0,"^.?.?"]
U04:%t[1,0,"\\d"]
*05:%X[0,0]

B06:%x[0,1]
B
"""
SENTENCES = [
    [("Zoë", "NNP"), ("saw", "VBD"), ("the", "DT"), ("naïve", "JJ"), ("dog", "NN")],
    [("She", "PRP"), ("ate", "VBD"), ("crêpes", "NNS")],
]
LABELS = [["B-X", "O", "B-X", "I-X", "I-X"], ["B-X", "O", "B-X"]]
MARK = b"\xef\xbb\xbf"  # of byte order
LONGEST = 10.0  # seconds a case may take; a hang is ended by the time limit of the test

PIECES = [
    b"\0", b"\n", b"\n\n", b"\r", b"\r\n", b"\t", b" ", b"\x0b", b"\x0c", b"\x1c", b"\x85", b"\xa0", b"\xff\xfe",
    b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc3", b"\xf4\x90\x80\x80", "\u2028".encode(), "\u00a0".encode(),
    "\u0085".encode(), "\U0001f600".encode(), "e\u0301".encode(), b"#", b"-DOCSTART-", b"#begin document", b"%",
    b"%x", b"%x[", b"%x[0,0]", b"%q[0,0]", b"%x[0]", b"%x[0,7]", b"%x[5000,0]", b"%x[-3,1]", b'%t[0,0,"*"]',
    b'%m[0,1,"\\u\\l*$"]', b'%t[0,0,"', b"U", b"B", b"*", b"X", b"U07:", b"\nU08:%x[0,0]\n", b"\nnot a feature\n",
    b"%x[" + b"9" * 30 + b",0]", b"%x[0," + b"9" * 5000 + b"]", "%x[\u0663,0]".encode(),
]  # fmt: skip


# --- damage: bytes in, bytes out --------------------------------------------------------------------------------------


def flip(rng, data):
    """Some bytes become others."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4) if data else 0):
        data[rng.integers(len(data))] = rng.integers(256)
    return bytes(data)


def insert(rng, data):
    """A piece with a meaning, or none, somewhere."""
    at = rng.integers(len(data) + 1)
    return data[:at] + PIECES[rng.integers(len(PIECES))] + data[at:]


def cut(rng, data):
    """A stretch is missing."""
    a, b = sorted(rng.integers(0, len(data) + 1, 2).tolist())
    return data[:a] + data[b:]


def repeat(rng, data):
    """A stretch stands there again."""
    a, b = sorted(rng.integers(0, len(data) + 1, 2).tolist())
    return data[:b] + data[a:b] * int(rng.integers(1, 4)) + data[b:]


def truncate(rng, data):
    return data[: rng.integers(len(data) + 1)]


def noise(rng, data):
    """Nothing but random bytes."""
    return rng.bytes(int(rng.integers(200)))


def empty(rng, data):
    return [b"", b"\n", b"\n \n\t\n", b"\xef\xbb\xbf", b"#\n", b"\0"][rng.integers(6)]


def ragged(rng, data):
    """A line loses a column, or gets more."""
    lines = data.split(b"\n")
    k = rng.integers(len(lines))
    lines[k] = lines[k].split(b" ")[0] if rng.random() < 0.5 else lines[k] + b" more" * int(rng.integers(1, 2000))
    return b"\n".join(lines)


def huge(rng, data):
    """A line, a token or a column without end."""
    at = rng.integers(len(data) + 1)
    unit = [b"x", b"9", b"x ", "é".encode(), b"%", b"\0", b"\xff"][rng.integers(7)]
    return data[:at] + unit * int(rng.integers(10_000, 50_000)) + data[at:]


def encoded(rng, data):
    """The same text in another encoding."""
    name = ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32", "utf-7", "utf-8-sig", "cp500"][rng.integers(8)]
    return data.decode("utf-8", "replace").encode(name, "replace")


def ends(rng, data):
    """Other ends of lines."""
    return data.replace(b"\n", [b"\r\n", b"\r", b"\n\r", b"\x0b", "\u2028".encode()][rng.integers(5)])


DAMAGE = [flip, insert, insert, cut, repeat, truncate, noise, empty, ragged, huge, encoded, ends]


def damaged(rng, text):
    data = text.encode()
    for _ in range(rng.integers(1, 4)):
        data = DAMAGE[rng.integers(len(DAMAGE))](rng, data)
    return data


# --- what may come of it ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tagger():
    return mm.SequenceTagger(features=mm.TextFeatures(TEMPLATE), tol=0.1).fit(SENTENCES, LABELS)


def outcome(run):
    """The result of a call, or the error it may end with; any other exception goes through."""
    try:
        return run(), None
    except (ValueError, OSError) as error:
        return None, error


def check_error(error, path):
    """The message names the file and a line that it has, and is short enough to read."""
    message = str(error)
    place = re.search(rf"{re.escape(str(path))}, line (\d+)", message)
    assert place, f"names no place: {message[:300]!r}"
    assert 1 <= int(place[1]) <= len(re.split(rb"\r\n|\n|\r", path.read_bytes())), message[:300]
    assert len(message) < 1000, f"{len(message)} characters: {message[:300]!r}"


def check_template_error(error, path):
    """As above, but for a template without any feature of a token, where no line is to blame."""
    if not str(error).startswith("the template has no token features"):
        check_error(error, path)


def check_case(seed, folder, tagger):
    """Damage a column file, a template, or both; follow them to the labels."""
    rng = np.random.default_rng([seed, 2026])
    data_path, template_path = folder / "data.txt", folder / "template.txt"
    which = rng.integers(3)
    data_path.write_bytes(damaged(rng, DATA) if which != 1 else DATA.encode())
    template_path.write_bytes(damaged(rng, TEMPLATE) if which != 0 else TEMPLATE.encode())

    sentences, error = outcome(lambda: read_columns(data_path))
    table, table_error = outcome(lambda: read_column_table(data_path))
    if error is not None:
        # with two faults in a file, the reader of whole files finds a wrong encoding before a ragged line
        check_error(error, data_path)
        check_error(table_error, data_path)
        return "column file refused"
    assert table_error is None
    n_tokens = sum(map(len, sentences))
    assert table.offsets.tolist() == np.cumsum([0, *map(len, sentences)]).tolist()
    assert table.columns == [list(column) for column in zip(*(row for s in sentences for row in s), strict=True)]

    template, error = outcome(lambda: Template.parse(template_path))
    if error is not None:
        check_template_error(error, template_path)
        return "template refused"
    features = mm.TextFeatures(template)
    _, error = outcome(lambda: features.fit(SENTENCES))
    if error is not None:
        check_template_error(error, template_path)
        return "template refused"
    X, error = outcome(lambda: features.transform(sentences))
    if error is not None:
        check_template_error(error, template_path)
        assert "reads column" in str(error)
        return "columns too few"
    assert X.sparse.shape == (n_tokens, features.n_features_)

    labels, error = outcome(lambda: tagger.predict(sentences))
    if error is not None:
        assert re.match(r"template, line \d+ reads column 1, but the tokens have 1 ", str(error)), str(error)[:300]
        return "columns too few"
    assert [len(y) for y in labels] == [len(s) for s in sentences]
    assert {label for y in labels for label in y} <= set(tagger.classes_)
    if sentences:
        assert tagger.predict(Tokens.from_columns(table.columns, table.offsets)) == labels
        return "labelled"
    return "no sentence"


def run(seeds, folder, tagger):
    counts, longest = Counter(), 0.0
    for seed in seeds:
        begin = time.perf_counter()
        try:
            counts[check_case(seed, folder, tagger)] += 1
        except Exception as error:
            error.add_note(f"case {seed}")
            raise
        longest = max(longest, time.perf_counter() - begin)
    print(f"{counts.total()} damaged inputs: {dict(counts.most_common())}; longest {longest:.2f} s")
    assert longest < LONGEST
    return counts


def check_counts(counts, n):
    """Every way out is taken often enough to mean something."""
    assert counts.total() == n
    least = {"column file refused": 0.2, "template refused": 0.1, "labelled": 0.1, "no sentence": 0.02}
    assert {name: counts[name] >= share * n for name, share in least.items()} == dict.fromkeys(least, True), counts
    assert counts["columns too few"] > 0


def test_damaged_input(tmp_path, tagger):
    check_counts(run(range(300), tmp_path, tagger), 300)


@pytest.mark.slow
def test_much_damaged_input(tmp_path, tagger):
    check_counts(run(range(300, 10_300), tmp_path, tagger), 10_000)


def test_good_input_is_labelled(tmp_path, tagger):
    """The files before the damage, so that refusals come from it."""
    data, template = tmp_path / "data.txt", tmp_path / "template.txt"
    data.write_text(DATA, encoding="utf-8")
    template.write_text(TEMPLATE, encoding="utf-8")
    sentences = read_columns(data)
    assert [len(s) for s in sentences] == [6, 4, 1]
    assert [len(y) for y in tagger.predict(sentences)] == [6, 4, 1]
    X = mm.TextFeatures(Template.parse(template)).fit(SENTENCES).transform(sentences)
    assert X.sparse.shape[0] == 11


@pytest.mark.parametrize(
    ("data", "line"),
    [
        pytest.param(b"U00:%x[0,0]\nU01:\xff\n", 2, id="encoding"),
        pytest.param(b"\nU00:%x[" + b"9" * 5000 + b",0]\n", 2, id="digits"),
        pytest.param(b"# page\x0c# one\nU00:%x\n", 2, id="form feed"),
        pytest.param(b"q" * 5000 + b"\n", 1, id="long line"),
    ],
)
def test_errors_of_templates_name_the_line(tmp_path, data, line):
    path = tmp_path / "template.txt"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=rf"template\.txt, line {line}\b") as caught:
        Template.parse(path)
    check_error(caught.value, path)


def test_both_readers_drop_one_mark_of_byte_order(tmp_path):
    path = tmp_path / "data.txt"
    path.write_bytes(2 * MARK + b"#begin document\ndog NN\nran VBD in\n")  # ragged, so that lines are read one by one
    _, error = outcome(lambda: read_columns(path))
    _, table_error = outcome(lambda: read_column_table(path))
    assert str(error) == str(table_error)
