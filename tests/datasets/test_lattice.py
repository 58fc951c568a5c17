"""Lattices and what is refused of them, by name; n-best lists and PLF from files."""

from __future__ import annotations

import gzip
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.datasets import Lattice, read_nbest, read_plf

HOUSE = ([0, 1, 1, 1, 2], [1, 2, 2, 3, 3], np.arange(10.0).reshape(5, 2))
WORDS = ["the", "small", "little", "cottage", "house"]


def test_a_lattice_holds_what_it_was_given():
    lattice = Lattice(4, *HOUSE, ["the", " small ", "little", ["cottage"], "house"], names=["lm", "tm"])
    assert lattice.words == tuple(WORDS)
    assert (lattice.n_arcs, len(lattice), lattice.flat, lattice.n_dense) == (5, 5, False, 2)
    assert lattice.text([0, 1, 4]) == "the small house"
    np.testing.assert_array_equal(lattice.features.toarray(), HOUSE[2])
    assert repr(lattice) == "Lattice(4 nodes, 5 arcs, 2 features)"
    again = pickle.loads(pickle.dumps(lattice))
    assert again.words == lattice.words and again.names == ("lm", "tm")


def test_a_lattice_does_not_change():
    features = HOUSE[2].copy()
    lattice = Lattice(4, HOUSE[0], HOUSE[1], features, WORDS)
    features[:] = 0
    assert lattice.features.toarray()[1, 1] == 3
    with pytest.raises(AttributeError):
        lattice.n_nodes = 5
    with pytest.raises(ValueError, match="read-only"):
        lattice.tails[0] = 1


def test_features_in_dicts():
    lattice = Lattice.from_nbest(["a", "b"], [{"x": 1, "y": 2.5}, {"y": -1}])
    assert lattice.names == ("x", "y") and lattice.n_dense == 0 and lattice.flat
    np.testing.assert_array_equal(lattice.features.toarray(), [[1, 2.5], [0, -1]])


def test_paths_by_what_they_say():
    lattice = Lattice(4, *HOUSE, WORDS)
    assert lattice.path_of("the little  house") == [0, 2, 4]
    assert lattice.path_of("the cottage") == [0, 3]
    assert lattice.path_of("the house") is None
    silent = Lattice(3, [0, 0, 1], [1, 1, 2], np.zeros((3, 1)), ["a b", "a", ""])
    assert silent.path_of("a") == [1, 2] and silent.path_of("") is None


def test_nodes_without_a_path_are_left_out_on_demand():
    tails, heads = [0, 1, 0, 2, 1], [1, 4, 3, 4, 2]
    with pytest.raises(ValueError, match="node 3 does not lead to node 4"):
        Lattice(5, tails, heads, np.eye(5), list("abcde"))
    lattice = Lattice(5, tails, heads, np.eye(5), list("abcde"), trim=True)
    assert (lattice.n_nodes, lattice.words) == (4, ("a", "b", "d", "e"))
    np.testing.assert_array_equal(lattice.features.toarray(), np.eye(5)[[0, 1, 3, 4]])
    with pytest.raises(ValueError, match="no path"):
        Lattice(3, [0], [1], [[1.0]], ["a"], trim=True)


ONE = [[1.0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (3, [0, 1, 2], [1, 2, 1], np.eye(3), list("abc")),
            "is on a cycle of 1, 2; a lattice has none: remove an arc of it",
        ),
        ((3, [0, 1, 1], [1, 1, 2], np.eye(3), list("abc")), "goes round a cycle"),
        ((3, [0, 2, 1], [2, 1, 2], np.eye(3), list("abc")), "cycle"),
        ((4, [0, 2, 1], [2, 1, 3], np.eye(3), list("abc")), "arc 1 goes from 2 to 1; number the nodes"),
        ((4, [0, 1, 2], [3, 3, 3], np.eye(3), list("abc")), "node 1 cannot be reached from node 0"),
        ((4, [0, 0, 0], [1, 2, 3], np.eye(3), list("abc")), "node 1 does not lead to node 3"),
        ((3, [0], [1], ONE, ["a"]), "no path from node 0 to node 2"),
        ((2, [], [], np.zeros((0, 1)), []), "no path"),
        ((1, [0], [1], ONE, ["a"]), "n_nodes is 1"),
        ((2, [0], [2], ONE, ["a"]), r"heads\[0\] is 2"),
        ((2, [0, 0], [1], ONE, ["a"]), "one number for each arc"),
        ((2, [0], [1], [[1.0], [2.0]], ["a"]), "1 arcs and 2 rows of features"),
        ((2, [0], [1], ONE, ["a", "b"]), "1 arcs and 2 texts"),
        ((2, [0], [1], [[np.nan]], ["a"]), "arc 0 has features that are NaN"),
        ((2, [0], [1], [{"x": "1"}], ["a"]), "arc 0 has the feature 'x'"),
        ((2, [0, 0], [1, 1], [{"x": 1}, 3], ["a", "b"]), "arc 1 has a int"),
        ((2, [0], [1], ONE, "a"), "one text for each arc"),
        ((2, [0], [1], ONE, [3]), "arc 0 says 3"),
        ((2, [0], [1], ONE, ["a"], ["x", "y"]), "2 names for 1 columns"),
        ((2, [0], [1], [[1.0, 2.0]], ["a"], ["x", "x"]), "none twice"),
        ((2, [0], [1], ONE, ["a"], None, 2), "n_dense is 2"),
    ],
)
def test_what_is_wrong_is_named(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Lattice(*arguments)


def test_an_empty_list_is_refused():
    with pytest.raises(ValueError, match="no hypothesis"):
        Lattice.from_nbest([], np.zeros((0, 1)))


NBEST = """0||| a small house  ||| d: 0 -1.5 lm: -4 w: -3 ||| -1.5
0 ||| a house ||| lm: -5 d: 1 -2 w: -2 big= 0.5 pair= 1 2 ||| -2.5 ||| 0-0 1-1
7 ||| he ||| d: 0 0 lm: -1 w: -1 ||| 0
"""


def test_n_best_lists(tmp_path):
    path = tmp_path / "lists.gz"
    path.write_bytes(gzip.compress(NBEST.encode()))
    found = read_nbest(path)
    assert found.ids == [0, 7] and found.lines == [1, 3]
    assert [scores.tolist() for scores in found.scores] == [[-1.5, -2.5], [0.0]]
    first, second = found.lattices
    assert first.words == ("a small house", "a house")
    assert first.names == ("d0", "d1", "lm0", "w0", "big", "pair0", "pair1") and first.n_dense == 4
    np.testing.assert_array_equal(first.features.toarray(), [[0, -1.5, -4, -3, 0, 0, 0], [1, -2, -5, -2, 0.5, 1, 2]])
    assert second.names == ("d0", "d1", "lm0", "w0")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 ||| a ||| d: 0 lm: -1 w: 1 ||| 0", "line 4: the feature 'd' has 1 numbers, and 2 in line 1"),
        ("1 ||| a ||| d: 0 0 w: 1 ||| 0", "line 4: the feature 'lm' has 0 numbers"),
        ("1 ||| a ||| d: 0 0 lm: -1 w: 1 tm: 3 ||| 0", "line 4: the feature 'tm' is not in line 1"),
        ("1 ||| a ||| d: 0 0 lm: -1 w: 1 d: 0 0 ||| 0", "line 4: the feature 'd:' comes twice"),
        ("1 ||| a ||| d: 0 0 lm: x w: 1 ||| 0", "line 4: a number of the feature 'lm:' is 'x'; give a finite number"),
        ("1 ||| a ||| d: 0 0 lm: nan w: 1 ||| 0", "line 4: a number of the feature 'lm:' is 'nan'"),
        ("1 ||| a ||| 0 0 ||| 0", "line 4: the features begin with '0'"),
        ("1 ||| a ||| d: 0 0 lm: w: 1 ||| 0", "line 4: the feature 'lm:' has no number"),
        ("1 ||| a", "line 4: 2 fields"),
        ("x ||| a ||| d: 0 0 lm: -1 w: 1 ||| 0", "line 4: the first field is 'x'"),
        ("-1 ||| a ||| d: 0 0 lm: -1 w: 1 ||| 0", "line 4: the first field is '-1'; give whole numbers"),
        ("1.5 ||| a ||| d: 0 0 lm: -1 w: 1 ||| 0", "line 4: the first field is '1.5'; give whole numbers"),
        ("1 ||| a ||| d: 0 0 lm: -1 w: 1 ||| inf", "line 4: the score is 'inf'"),
        ("0 ||| a ||| d: 0 0 lm: -1 w: 1 ||| 0", "line 4: list 0 goes on after another one"),
    ],
)
def test_lines_that_are_no_hypotheses_are_refused_by_number(tmp_path, line, message):
    path = tmp_path / "lists"
    path.write_text(NBEST + line + "\n")
    with pytest.raises(ValueError, match=message):
        read_nbest(path)


@pytest.mark.parametrize(
    ("parts", "clash"),
    [
        (["a0= 1", "a= 2"], None),
        (["a1= 1", "a= 2 3"], "a1"),
        (["lm: 1 2", "lm0= 5"], "lm0"),
        (["a= 1 2", "a0= 3"], "a0"),
        (["a: 1 2 3 4 5 6 7 8 9 10 11", "a1: 3"], "a10"),
        (["a= 1", "b: 2", "a= 3 4"], "'a='"),
    ],
)
def test_names_that_clash_are_refused_in_any_order(tmp_path, parts, clash):
    for order in (parts, parts[::-1]):
        path = tmp_path / "lists"
        path.write_text(f"0 ||| x ||| {' '.join(order)} ||| 0\n")
        if clash is None:
            assert sorted(read_nbest(path).lattices[0].names) == ["a", "a0"]
        else:
            check_refused(read_nbest, path, path.read_text(), f"line 1: .*{clash}")


def check_refused(read, path, text, message):
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read(path)


def test_a_file_without_lists_is_refused(tmp_path):
    check_refused(read_nbest, tmp_path / "lists", "\n", "no hypotheses")


def test_plf(tmp_path):
    path = tmp_path / "lattices.plf"
    first = "((('ein',1.0,1),),(('Haus',0.5, 2),('Wohn\\'s',.25,1),),((\"haus\",-1e-1,1),),)"
    path.write_text(f"{first}\n((('*EPS*',0,1),),(('a',2,1)))\n")
    first, second = read_plf(path)
    assert first.words == ("ein", "Haus", "Wohn's", "haus")
    assert first.tails.tolist() == [0, 1, 1, 2] and first.heads.tolist() == [1, 3, 2, 3]
    np.testing.assert_array_equal(first.features.toarray().ravel(), [1, 0.5, 0.25, -0.1])
    assert first.names == ("score0",) and second.words == ("", "a")
    path.write_text("((('a',1.0,2),),(('b',1.0,1),),)\n")  # node 1 cannot be reached
    assert read_plf(path, trim=True)[0].words == ("a",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("((('a',1.0,1),),__import__('os'),)", "line 1: at character 17"),
        ("((('a',1.0,2),),)", r"line 1: an arc of node 0 is \('a', 1.0, 2.0\)"),
        ("((('a',1.0,0),),)", "line 1: an arc of node 0"),
        ("((('a',1.0,1.5),),)", "line 1: an arc of node 0"),
        ("((('a',1.0,1e999),),)", "line 1: an arc of node 0"),
        ("(((1.0,'a',1),),)", "line 1: an arc of node 0"),
        ("((('a',1.0,1),('b',1)),)", "line 1: an arc of node 0"),
        ("((('a',1.0,1),),", "line 1: a parenthesis is not closed"),
        ("((('a',1.0,1),),) x", "line 1: text follows"),
        ("((('a',1.0,1),),) ()", "line 1: text follows"),
        ("(((('a',1.0,1),),),)", "line 1: parentheses are 4 deep"),
        ("'a'", "line 1: \"'a'\" stands outside"),
        ("", "line 1: there is no node"),
        ("()", "line 1: there is no node"),
        ("((('a',1.0,2),),(('b',1.0,1),),)", "line 1: node 1 cannot be reached"),
        ("(" * 100_000, "line 1: parentheses"),
        ("((('a',1.0,1),),)\n((('a',1),),)", "line 2: arcs have 0 scores, those of line 1 1"),
    ],
)
def test_lines_that_are_no_lattice_are_refused_by_number(tmp_path, line, message):
    check_refused(read_plf, tmp_path / "lattices.plf", line + "\n", message)


def test_lattices_of_a_file_have_the_same_scores(tmp_path):
    path, text = tmp_path / "lattices.plf", "((('a',1),),)\n((('a',0.5,1),),)\n"
    check_refused(read_plf, path, text, "line 2: arcs have 1 scores, those of line 1 0")
    check_refused(read_plf, path, "", "has no lattice")


def test_sparse_features_keep_their_columns():
    matrix = sp.coo_array(([1.0, 2.0, 3.0], ([0, 1, 1], [2, 0, 0])), shape=(2, 3))
    lattice = Lattice.from_nbest(["a", "b"], matrix, ["x", "y", "z"], n_dense=1)
    np.testing.assert_array_equal(lattice.features.toarray(), [[0, 0, 1], [5, 0, 0]])


PLF = "((('ein',1.0,1),),(('Haus',0.5,2),('Wohn',.25,1),),(('haus',-0.1,1),),)\n"


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([NBEST, PLF]), st.data())
def test_edited_files_are_read_or_refused_with_their_line(text, data):
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(at, min(at + 4, len(text))))
        text = text[:at] + data.draw(st.text(alphabet="()',|:= \\\"-+.0123456789einfa\n\t", max_size=4)) + text[end:]
    lines = text.encode().splitlines(keepends=True)
    for read in (read_nbest, read_plf):
        try:
            found = read(lines)
        except ValueError as error:
            assert "line" in str(error) or "no hypotheses" in str(error)
        else:
            assert all(
                isinstance(lattice, Lattice) for lattice in (found if isinstance(found, list) else found.lattices)
            )
