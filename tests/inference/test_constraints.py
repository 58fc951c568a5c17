"""Constraints on label sequences against a grammar of well-formed sequences."""

import itertools
import re

import numpy as np
import pytest

from maxmargin.inference.constraints import transition_mask

BIO = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]
IOBES = ["B-X", "B-Y", "E-X", "E-Y", "I-X", "I-Y", "O", "S-X", "S-Y"]


def accepts(mask, sequence):
    pairs = itertools.pairwise(sequence)
    return bool(mask.start[sequence[0]] and mask.end[sequence[-1]] and all(mask.pairs[pair] for pair in pairs))


def check(labels, scheme, well_formed, longest):
    mask = transition_mask(labels, scheme)
    pattern = re.compile(rf"(?:{well_formed})+")
    for length in range(1, longest + 1):
        for sequence in itertools.product(range(len(labels)), repeat=length):
            text = "".join(labels[i] + " " for i in sequence)
            assert accepts(mask, sequence) == bool(pattern.fullmatch(text)), text


def test_bio_accepts_exactly_the_well_formed():
    check(BIO, "bio", r"O |B-LOC (I-LOC )*|B-PER (I-PER )*", 5)


def test_iobes_accepts_exactly_the_well_formed():
    check(IOBES, "iobes", r"O |S-X |S-Y |B-X (I-X )*E-X |B-Y (I-Y )*E-Y ", 4)


def test_types_with_dashes_and_labels_without_type():
    mask = transition_mask(np.array(["B-a-b", "I-a-b", "I-a"]), "bio")
    assert mask.pairs.tolist() == [[True, True, False], [True, True, False], [True, False, True]]
    mask = transition_mask(["B", "I", "O"], "bio")
    assert mask.pairs.tolist() == [[True, True, True], [True, True, True], [True, False, True]]


@pytest.mark.parametrize("label", ["NP", "E-NP", "B_NP", "b-NP", "B-", "O-NP", "", "-NP", "OB-NP", 3, None])
def test_unparsable_label_is_named(label):
    with pytest.raises(ValueError, match=re.escape(repr(label)) + ".*'bio'.*B-TYPE"):
        transition_mask(["O", label], "bio")


def test_forbidden_pairs():
    mask = transition_mask(["a", "b", 7], [("a", "b"), (7, 7)])
    assert mask.pairs.tolist() == [[True, False, True], [True, True, True], [True, True, False]]
    assert mask.start.all()
    assert mask.end.all()
    assert not mask.pairs.all()
    np.testing.assert_array_equal(transition_mask(["a", "b", 7], {(7, 7), ("a", "b")}).pairs, mask.pairs)
    with pytest.raises(ValueError, match="names 'c', which is not a class"):
        transition_mask(["a", "b"], [("a", "c")])
    with pytest.raises(ValueError, match=r"'ab'.*not a pair"):
        transition_mask(["a", "b"], ["ab"])


def test_array_of_allowed_pairs():
    allowed = np.array([[True, False], [True, True]])
    mask = transition_mask(["a", "b"], allowed)
    np.testing.assert_array_equal(mask.pairs, allowed)
    allowed[:] = False
    assert mask.pairs[0, 0]
    with pytest.raises(ValueError, match=r"shape \(2, 2\) and type bool.*\(3, 3\)"):
        transition_mask(["a", "b", "c"], allowed)
    with pytest.raises(ValueError, match="int"):
        transition_mask(["a", "b"], np.ones((2, 2), int))


def test_nothing_and_nonsense():
    mask = transition_mask(["a", "b"])
    assert mask.start.all() and mask.end.all() and mask.pairs.all()
    with pytest.raises(ValueError, match="'biluo' is not known"):
        transition_mask(["O"], "biluo")
    with pytest.raises(TypeError, match="is a float"):
        transition_mask(["O"], 0.5)
    with pytest.raises(TypeError, match="is a dict"):
        transition_mask(["O"], {"O": "O"})
