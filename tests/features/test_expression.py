"""Expressions of template tests against plain backtracking and against ``re``, and in linear time."""

from __future__ import annotations

import pickle
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features.naive import find
from maxmargin.features.expression import Expression
from maxmargin.features.extractor import TextFeatures

UNITS = ["a", "b", ".", "\\d", "\\a", "\\W", "\\l", "\\U", "\\p", "\\S", "\\.", "\\\\", "[", "(", "|", "é"]
EXPRESSION = st.builds(
    lambda begin, units, end: begin + "".join(units) + end,
    st.sampled_from(["", "^"]),
    st.lists(st.builds(str.__add__, st.sampled_from(UNITS), st.sampled_from(["", "", "?", "*"])), max_size=6),
    st.sampled_from(["", "$"]),
)
TEXT = st.text("aabbABé1.[(|\\ $^*-", max_size=9)


@given(EXPRESSION, TEXT)
@settings(max_examples=1000, deadline=None)
def test_matches_as_by_backtracking(expression, text):
    assert Expression(expression).search(text) == find(expression, text)


@given(st.lists(st.tuples(st.sampled_from("ab."), st.sampled_from(["", "?", "*"])), max_size=7), TEXT)
@settings(max_examples=500, deadline=None)
def test_matches_as_re_does(units, text):
    """The same units written for ``re``, where a star must be told to take little."""
    found = re.search("".join(one + repeat.replace("*", "*?") for one, repeat in units), text, re.DOTALL)
    assert Expression("".join(map("".join, units))).search(text) == (found[0] if found else None)


@pytest.mark.parametrize(
    ("expression", "text", "found"),
    [
        ("", "ab", ""),
        ("^", "ab", ""),
        ("$", "ab", ""),
        ("^$", "", ""),
        ("^$", "a", None),
        # repetitions
        ("a*", "aaa", ""),
        ("a*$", "baa", "aa"),
        ("a?", "aaa", "a"),
        ("a?a?b", "aab", "aab"),
        ("a*b", "caab", "aab"),
        # signs that stand for themselves
        ("^a$b", "a$b", "a$b"),  # inside, $ is itself
        ("a^", "a^", "a^"),
        ("\\", "a\\", "\\"),
        ("\\*\\?", "a*?", "*?"),
        ("[a]", "a[a]", "[a]"),
        # classes
        (".", "\n", "\n"),
        ("^\\u\\l*$", "Émile", "Émile"),
        ("^\\u", "émile", None),
        ("\\p", "¿", "¿"),
        ("^\\a$", "\U0001d4d0", "\U0001d4d0"),  # a letter beyond the first plane
    ],
)
def test_by_hand(expression, text, found):
    assert Expression(expression).search(text) == found


HOSTILE = {
    "two stars": "a*a*b",
    "six stars": "a*a*a*a*a*a*b",
    "stars of anything": ".*.*.*.*x$",
    "many options": "a?" * 60 + "a" * 60 + "b",
    "stars without end": "\\a*" * 300 + "\\d$",
    "as long as allowed": "^" + "\\l*" * 333,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_is_linear_in_the_text(name):
    """Ten times the text takes ten times as long; trial and error would take a hundred times, or for ever."""
    expression = Expression(HOSTILE[name])
    seconds = {}
    for n in (10_000, 100_000):
        text = "a" * n
        runs = []
        for _ in range(3):
            begin = time.process_time()
            found = expression.search(text)
            runs.append(time.process_time() - begin)
        assert found is None or found == ""
        seconds[n] = min(runs)
    assert seconds[100_000] < 40 * seconds[10_000] + 0.05 and seconds[100_000] < 5


def test_hostile_template_and_token():
    begin = time.process_time()
    features = TextFeatures('U0:%x[0,0]\nU1:%t[0,0,"a*a*a*b"]\nU2:%m[0,0,"^a*a*$"]\n')
    X = features.fit_transform([["a" * 20_000, "aab"]])
    assert X.sparse.nnz == 6 and {"U1:true", "U1:false", "U2:" + "a" * 20_000} <= set(features.names())
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("expression", ["*", "^*", "a**", "a?*", "?", "^?a"])
def test_nothing_to_repeat(expression):
    with pytest.raises(ValueError, match=r"has nothing to repeat in .*; write \\[*?] for itself"):
        Expression(expression)


def test_too_long():
    Expression("a" * 1000)
    with pytest.raises(ValueError, match="1001 characters; the limit is 1000"):
        Expression("a" * 1001)


def test_survives_pickling():
    expression = Expression("^\\p?\\u")
    assert expression.search("(A") == "(A"
    assert pickle.loads(pickle.dumps(expression)).search("-B") == "-B"
