"""BIF: files of others, our own read back exactly, and every kind of wrong or hostile text."""

import random
import time
import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.persistence import bif as module
from maxmargin.persistence.bif import Bif, bif_text, parse_bif, read_bif, write_bif

# as the format's own examples write it: quotes, no commas, no bar, the variable first in a table
DOG = """// Bayesian network
network "Dog problem" { //2 variables
  property "credal-set constant-density-bounded 1.1; {odd}" ;
}
variable  "light-on" { //2 values
  type discrete[2] {  "true"  "false" };
  property "position = (218, 195)" ;
}
variable "family-out" {
  type discrete[2] { "true" "false" };
}
probability ( "light-on"  "family-out" ) { //2 variables and 4 values
  table
    0.6 0.05
    0.4 0.95 ;
}
probability (  "family-out" ) { /* a root
  over two lines */ table 0.15 8.5e-1 ; }
"""
# as repositories of networks have it: a row for each configuration, and a default
SPRINKLER = """network unknown {
}
variable rain { type discrete [ 3 ] { none, <5mm, 5-20mm }; property weather = yes ; }
variable on { type discrete [ 2 ] { no, yes }; }
variable wet { type discrete [ 2 ] { no, yes }; }
probability ( rain ) { table .5, .3, .2; }
probability ( on | rain ) { (none) 0.5, 0.5; default 1.0, 0.0; }
probability ( wet | rain, on ) {
  property checked = "by hand; twice" ;
  (none, no) 0.99, 0.01;
  (none, yes) 0.1, 0.9;
  (5-20mm, no) 0.2, 0.8;
  (<5mm, no) 0.3, 0.7;
  (<5mm, yes) 0.05, 0.95;
  (5-20mm, yes) 0, 1;
}
"""


def test_the_first_form():
    bif = parse_bif(DOG)
    assert bif.name == "Dog problem" and bif.parents == {"light-on": ["family-out"], "family-out": []}
    assert bif.states["light-on"] == ["true", "false"]
    # lights are on with 0.6 when the family is out, with 0.05 when it is not
    assert bif.tables["light-on"].tolist() == [[0.6, 0.4], [0.05, 0.95]]
    assert bif.tables["family-out"].tolist() == [0.15, 0.85]


def test_the_usual_form(tmp_path):
    (tmp_path / "s.bif").write_text("\ufeff" + SPRINKLER, encoding="utf-8")
    bif = read_bif(tmp_path / "s.bif")
    assert bif.states["rain"] == ["none", "<5mm", "5-20mm"]
    assert bif.tables["on"].tolist() == [[0.5, 0.5], [1.0, 0.0], [1.0, 0.0]]
    assert bif.tables["wet"][1].tolist() == [[0.3, 0.7], [0.05, 0.95]]
    assert bif.tables["wet"][2, 1].tolist() == [0.0, 1.0] and bif.tables["wet"].shape == (3, 2, 2)


@pytest.mark.parametrize("library", ["pyagrum", "pgmpy"])
def test_others_read_what_we_write_and_we_what_they_write(library, tmp_path):
    peer = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    states = {"a": ["x", "y"], "b_1": ["0", "1", "2"], "c": ["no", "yes"]}
    tables = {"a": rng.dirichlet([1, 1]), "b_1": rng.dirichlet([1, 1, 1], 2), "c": rng.dirichlet([1, 1], (3, 2))}
    ours = Bif("n", states, {"a": [], "b_1": ["a"], "c": ["b_1", "a"]}, tables)
    path = write_bif(tmp_path / "ours.bif", ours)
    if library == "pyagrum":
        net = peer.loadBN(str(path))
        theirs = net.cpt("c")[{"a": "y", "b_1": "2"}]
        peer.saveBN(net, str(tmp_path / "theirs.bif"))
    else:
        from pgmpy.readwrite import BIFReader, BIFWriter

        net = BIFReader(str(path)).get_model()
        cpd = net.get_cpds("c")
        theirs = [cpd.get_value(c=value, a="y", b_1="2") for value in ("no", "yes")]
        BIFWriter(net).write(str(tmp_path / "theirs.bif"))
    np.testing.assert_allclose(theirs, tables["c"][2, 1], atol=1e-6)
    back = read_bif(tmp_path / "theirs.bif")
    assert back.states == states
    axes = [back.parents["c"].index(name) for name in ("b_1", "a")]
    np.testing.assert_allclose(np.transpose(back.tables["c"], [*axes, 2]), tables["c"], atol=1e-6)


def test_names_of_characters_that_codes_have():
    """All short ones: a name must not turn into another where its own ``_x`` meets the code of the next character."""
    names = ["".join(name) for length in range(1, 6) for name in product("_x{0-", repeat=length)]
    text = bif_text(Bif("all", {"a": names}, {"a": []}, {"a": np.full(len(names), 1 / len(names))}))
    assert parse_bif(text).states["a"] == names


NAMES = st.text(st.characters(codec="utf-8", min_codepoint=32, exclude_characters='"'), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_round_trip_of_any_names_and_numbers(data):
    names = data.draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    states = {name: data.draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)) for name in names}
    parents, tables = {}, {}
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    for v, name in enumerate(names):
        parents[name] = data.draw(st.permutations(names[:v]))[: data.draw(st.integers(0, v))]
        shape = [len(states[u]) for u in parents[name]]
        tables[name] = rng.dirichlet(np.full(len(states[name]), 0.3), shape or None) * rng.choice([1.0, 0.7, 1e-30])
    text = bif_text(Bif(data.draw(NAMES), states, parents, tables))
    back = parse_bif(text)
    assert (back.states, back.parents) == (states, parents)
    assert all((back.tables[name] == tables[name]).all() for name in names)
    assert bif_text(back) == text


def replaced(old, new, text=SPRINKLER):
    assert text.count(old) == 1
    return text.replace(old, new)


WRONG = {
    "unknown block": ("network unknown {\n}", "net unknown { }", 1, "found 'net'"),
    "type": ("variable on { type discrete", "variable on { type continuous", 4, "'continuous'; only discrete"),
    "number of states": ("discrete [ 3 ]", "discrete [ 4 ]", 3, "has 4 states by its type, and 3 are listed"),
    "absurd number": ("discrete [ 3 ]", "discrete [ 99999999999999999999 ]", 3, "3 are listed"),
    "state twice": ("{ none, <5mm, 5-20mm }", "{ none, none, 5-20mm }", 3, "'rain' has a state twice"),
    "no states": ("type discrete [ 3 ] { none, <5mm, 5-20mm };", "", 4, "'rain' before has no states"),
    "variable twice": ("variable on {", "variable rain {", 4, "declared twice"),
    "unknown parent": ("( wet | rain, on )", "( wet | sun, on )", 8, "'sun' is not declared"),
    "own parent": ("( wet | rain, on )", "( wet | rain, wet )", 8, "occurs twice"),
    "block twice": ("( on | rain )", "( rain )", 7, "given twice"),
    "unknown state": ("(none, yes)", "(none, maybe)", 11, "'on' has no state 'maybe'"),
    "entry twice": ("(none, yes)", "(none, no)", 11, "same entry twice"),
    "short configuration": ("(none, yes)", "(none)", 11, "1 states for 2 parents"),
    "empty configuration": ("(none, yes)", "()", 11, "without states"),
    "missing configuration": ("(none, yes) 0.1, 0.9;", "", 8, r"for \(none, yes\), and no default"),
    "too few numbers": ("0.99, 0.01", "0.99", 10, "1 probabilities of 'wet' where 2 are needed"),
    "too many numbers": ("0.99, 0.01", "0.9, 0.05, 0.05", 10, "3 probabilities"),
    "a word": ("0.99, 0.01", "0.99, rest", 10, "'rest'"),
    "code": ("0.99, 0.01", "0.99, __import__", 10, "'__import__'"),
    "nan": ("0.99, 0.01", "nan, 0.01", 10, "'nan'"),
    "negative": ("0.99, 0.01", "-0.01, 0.99", 10, "-0.01 is no probability"),
    "infinite": ("0.99, 0.01", "1e999, 0.01", 10, "1e999 is no probability"),
    "sum": ("0.99, 0.01", "0.99, 0.51", 8, "sum to 1.5, more than 1"),
    "no semicolon": ("0.99, 0.01;", "0.99, 0.01", 11, "found '\\('"),
    "property": ('property checked = "by hand; twice" ;', "property checked }", 9, "semicolon"),
    "quotation mark": ("<5mm, 5-20mm }", '<5mm, "5-20mm }', 3, "a quotation mark is opened"),
    "comment": ("(none, yes)", "/* (none, yes)", 11, "comment is opened and not closed"),
    "brace": ("variable on {", "variable on ", 4, "expected '{'"),
    "no name": ("variable on {", "variable {", 4, "the name of a variable"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_name_the_file_and_the_line(case, tmp_path):
    old, new, line, words = WRONG[case]
    (tmp_path / "net.bif").write_text(replaced(old, new))
    with pytest.raises(ValueError, match=rf"net\.bif.*({words})") as caught:
        read_bif(tmp_path / "net.bif")
    assert f"net.bif, line {line}:" in str(caught.value)


def test_whole_files_that_are_wrong(tmp_path, monkeypatch):
    for text, words in [("", "no variable"), ("// nothing\n", "no variable"), ("network n { }", "no variable")]:
        with pytest.raises(ValueError, match=words):
            parse_bif(text)
    with pytest.raises(ValueError, match="no probability block for the variable 'on'"):
        parse_bif(replaced("probability ( on | rain ) { (none) 0.5, 0.5; default 1.0, 0.0; }", ""))
    (tmp_path / "n.bif").write_bytes(b"network \xff\xfe { }")
    with pytest.raises(ValueError, match=r"n\.bif is no UTF-8 text \(byte 8\)"):
        read_bif(tmp_path / "n.bif")
    monkeypatch.setattr(module, "FILE_LIMIT", 10)
    with pytest.raises(ValueError, match="more than 10"):
        read_bif(tmp_path / "n.bif")
    with pytest.raises(FileNotFoundError):
        read_bif(tmp_path / "none.bif")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["n.bif"]


def test_a_text_that_is_cut_anywhere_is_refused_or_whole():
    whole = parse_bif(SPRINKLER)
    for end in range(len(SPRINKLER)):
        try:
            cut = parse_bif(SPRINKLER[:end])
        except ValueError:
            continue
        assert cut.states == whole.states


def test_damaged_texts_give_networks_or_value_errors():
    rng = random.Random(0)
    for _ in range(1500):
        text = list(rng.choice([DOG, SPRINKLER]))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text))
            text[at : at + rng.randint(0, 3)] = rng.choice(
                ["", "{", "}", '"', ";", "(", ")", "|", "/*", "9", "e9", "\0"]
            )
        try:
            bif = parse_bif("".join(text))
        except ValueError:
            continue
        assert all(np.isfinite(table).all() for table in bif.tables.values())


@pytest.mark.parametrize(
    "text",
    [
        "/*" * 300_000,
        "// \n" * 300_000,
        '"' * 300_001,
        "network n {" + "property a;" * 100_000,
        "(" * 500_000,
        "variable a { type discrete [1] { " + "b " * 200_000,
    ],
    ids=["comments", "lines", "quotes", "properties", "brackets", "states"],
)
def test_long_nonsense_takes_linear_time(text):
    begin = time.process_time()
    with pytest.raises(ValueError, match="the text"):
        parse_bif(text)
    assert time.process_time() - begin < 3


def test_a_small_text_can_not_ask_for_a_huge_table():
    names = [f"v{k}" for k in range(25)]
    values = ", ".join(f"s{k}" for k in range(8))
    text = "".join(f"variable {n} {{ type discrete [8] {{ {values} }}; }}\n" for n in names)
    text += "".join(f"probability ( {n} ) {{ default .1 .1 .1 .1 .1 .1 .2 .2; }}\n" for n in names[:-1])
    text += f"probability ( v24 | {', '.join(names[:-1])} ) {{ default .1 .1 .1 .1 .1 .1 .2 .2; }}\n"
    tracemalloc.start()
    with pytest.raises(ValueError, match="line 50: the tables up to here have more than"):
        parse_bif(text)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
