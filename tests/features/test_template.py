"""Templates against a plain implementation, token by token, and messages that name file and line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from features.naive import rows_of, template_features
from maxmargin.features.extractor import TextFeatures
from maxmargin.features.template import Template

CRFPP = """# the chunking template of CRF++
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U05:%x[-1,0]/%x[0,0]
U10:%x[-2,1]
U20:%x[-2,1]/%x[-1,1]/%x[0,1]

B
B01:%x[0,1]
"""

# no separators inside: then a feature is its string
WORD = st.sampled_from(["a", "b", "B", "Cd", "_B-1", "_B+1", "é1", "7", "x-y", ""])
SENTENCE = st.lists(st.tuples(WORD, WORD), min_size=1, max_size=6)
TESTS = ["^\\u", "\\d$", "^.?.?", "\\a*\\d", "-", "^\\l*$", "\\P", "a?b", "\\.", "[a]"]
MACRO = st.one_of(
    st.builds(lambda c, row, col: f"%{c}[{row},{col}]", st.sampled_from("xX"), st.integers(-3, 3), st.integers(0, 1)),
    st.builds(
        lambda c, row, col, test: f'%{c}[{row},{col},"{test}"]',
        st.sampled_from("tTmM"),
        st.integers(-2, 2),
        st.integers(0, 1),
        st.sampled_from(TESTS),
    ),
)
LINE = st.builds(
    lambda kind, name, macros: f"{kind}{name}:" + "/".join(macros),
    st.sampled_from("UUB*"),
    st.sampled_from(["", "1", "2"]),
    st.lists(MACRO, min_size=1, max_size=4),
)


@given(st.lists(LINE, min_size=1, max_size=5), st.lists(SENTENCE, min_size=1, max_size=4), SENTENCE)
@settings(deadline=None, max_examples=150)
def test_same_strings_as_one_token_at_a_time(lines, sentences, unseen):
    lines = ["U:bias", *lines]
    features = TextFeatures("\n".join(lines) + "\n")
    X = features.fit_transform(sentences)
    known = [set(), set()]
    for edge, matrix in ((False, X.sparse), (True, X.edge)):
        expected = [template_features(lines, s, t, edge) for s in sentences for t in range(len(s))]
        known[edge] = {name for row in expected for name in row}
        if matrix is None:
            assert not known[edge]
            continue
        got = rows_of(matrix, features.names(edge=edge))
        assert list(map(sorted, got)) == list(map(sorted, expected))
        assert (matrix.data == 1).all()
    Z = features.transform([unseen])
    for edge, matrix in ((False, Z.sparse), (True, Z.edge)):
        if matrix is not None:
            expected = [template_features(lines, unseen, t, edge) for t in range(len(unseen))]
            kept = [sorted(name for name in row if name in known[edge]) for row in expected]
            assert list(map(sorted, rows_of(matrix, features.names(edge=edge)))) == kept


def test_boundary_strings_of_crfpp():
    features = TextFeatures(CRFPP)
    X = features.fit_transform([[("He", "PRP"), ("ran", "VBD")]])
    first, second = rows_of(X.sparse, features.names())
    assert first == ["U00:_B-2", "U01:_B-1", "U02:He", "U05:_B-1/He", "U10:_B-2", "U20:_B-2/_B-1/PRP"]
    assert second == ["U00:_B-1", "U01:He", "U02:ran", "U05:He/ran", "U10:_B-1", "U20:_B-1/PRP/VBD"]
    assert rows_of(X.edge, features.names(edge=True)) == [[], ["B01:VBD"]]
    right = TextFeatures("U:%x[1,0]\nV".replace("V", "U1:%x[3,0]"))
    X = right.fit_transform([["a", "b"]])
    assert rows_of(X.sparse, right.names()) == [["U:b", "U1:_B+2"], ["U:_B+1", "U1:_B+3"]]


def test_lines_that_differ_in_rows_and_columns_only_share_features():
    features = TextFeatures("U:%x[-1,0]\nU:%x[0,0]\nU:%x[0,1]\n")
    X = features.fit_transform([[("a", "b"), ("b", "a"), ("b", "b")]])
    assert sorted(features.names()) == ["U:_B-1", "U:a", "U:b"]
    assert X.sparse.toarray()[2].tolist() == [3 if name == "U:b" else 0 for name in features.names()]


def test_text_comes_back(tmp_path):
    template = Template.parse(CRFPP)
    assert str(template) == CRFPP
    assert template.transitions
    assert not Template(["U:%x[0,0]"]).transitions
    path = tmp_path / "chunks.template"
    path.write_text(CRFPP)
    assert Template.parse(path) == template == Template.parse(str(path))
    assert [d.where for d in Template.parse(path).definitions][:2] == [f"{path}, line 2", f"{path}, line 3"]
    assert len({template, Template.parse(path)}) == 1
    path.write_bytes("\ufeffU00:%x[0,0]\r\n".encode())
    assert len(Template.parse(path).definitions) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("X00:%x[0,0]", "begins with U, B or"),
        ("U00:%y[0,0]", "unknown macro '%y'"),
        ("U00:100%", "unknown macro '%'"),
        ("U00:%x", "needs a row and a column"),
        ("U00:%x[0]", "needs a row and a column"),
        ("U00:%x[0,-1]", "needs a row and a column"),
        ("U00:%t[0,0]", "an expression in quotes"),
        ('U00:%x[0,0,"a"]', "no expression"),
        ('U00:%t[0,0,"a]', "needs a row and a column"),
        ('U00:%t[0,0,"*a"]', "has nothing to repeat"),
        ('U00:%m[0,0,"a**"]', "has nothing to repeat"),
        (f'U00:%t[0,0,"{"a?" * 600}"]', "has 1200 characters; the limit is 1000"),
        ("U00:%x[5000,0]", "at most 1000 tokens away"),
    ],
)
def test_errors_name_file_and_line(tmp_path, line, message):
    path = tmp_path / "bad.template"
    path.write_text(f"# comment\nU00:%x[0,0]\n\n{line}\n")
    with pytest.raises(ValueError, match=rf"bad\.template, line 4: .*{message}"):
        Template.parse(path)


def test_missing_and_foreign_files(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.template"):
        Template.parse(tmp_path / "nowhere.template")
    (tmp_path / "latin").write_bytes(b"U00:\xe9%x[0,0]\n")
    with pytest.raises(ValueError, match="not UTF-8"):
        Template.parse(tmp_path / "latin")
    with pytest.raises(TypeError, match="list of lines"):
        Template("U00:%x[0,0]")


def test_column_out_of_range_names_the_line():
    with pytest.raises(ValueError, match=r"template, line 2 reads column 1, but the tokens have 1"):
        TextFeatures("U00:%x[0,0]\nU01:%x[0,1]\n").fit([["a"]])
