"""Parameters that estimators share: constructors, descriptions, checks, subclasses, and life without docstrings."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from itertools import takewhile
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import maxmargin as mm
from maxmargin.estimators.parameters import SHARED, parameters
from maxmargin.solvers.presets import SOLVERS

RING = {"edges": np.array([[0, 1], [1, 2], [2, 0]])}
MASK = np.array([[0, 0, 1], [0, 1, 1]])
WORDS, TAGS = [["a", "b"], ["b", "b", "a"]], [["x", "y"], ["y", "y", "x"]]
EXAMPLES: dict[type, tuple[Any, Any]] = {
    mm.StructuredSVM: ([np.eye(2), np.eye(2)[::-1]], [[0, 1], [1, 0]]),
    mm.SequenceTagger: (WORDS, TAGS),
    mm.MulticlassClassifier: (np.eye(3), [0, 1, 2]),
    mm.MultilabelClassifier: (np.eye(3), [{0}, {1}, {0, 1}]),
    mm.ImageSegmenter: ([MASK + 0.1, MASK - 0.1], [MASK, MASK]),
    mm.GraphLabeler: ([RING | {"node": np.eye(3)}] * 2, [[0, 1, 2]] * 2),
    mm.DiscriminativeHMM: (WORDS, TAGS),
    mm.DiscriminativeBayesNet: ({"a": [0, 1, 0, 1], "b": [0, 1, 1, 1]}, [0, 1, 0, 1]),
}
CLASSES = sorted(EXAMPLES, key=lambda cls: cls.__name__)
BUDGETS = ("max_passes", "max_oracle_calls", "max_seconds")


def make(cls: type, **options: Any) -> Any:
    return cls(mm.Chain(), **options) if cls is mm.StructuredSVM else cls(**options)


def arguments(cls: type) -> list[str]:
    return list(inspect.signature(cls).parameters)


def described(cls: type) -> list[str]:
    """Names in the section Parameters of what ``help`` shows."""
    lines = (inspect.getdoc(cls) or "").split("\n")
    begin = lines.index("Parameters") + 2
    section = takewhile(str.strip, lines[begin:])
    return [name for line in section if line[:1].strip() for name in line.split(" :")[0].split(", ")]


@pytest.mark.parametrize("cls", CLASSES)
def test_every_argument_is_described_once(cls):
    assert sorted(described(cls)) == sorted(arguments(cls))
    assert SHARED not in cls.__doc__


@pytest.mark.parametrize("cls", CLASSES)
def test_arguments_are_keywords(cls):
    kinds = {p.name: p.kind for p in inspect.signature(cls).parameters.values()}
    assert kinds.pop("model", None) == (inspect.Parameter.POSITIONAL_OR_KEYWORD if cls is mm.StructuredSVM else None)
    assert set(kinds.values()) == {inspect.Parameter.KEYWORD_ONLY}


def test_own_words_take_the_place_of_shared_ones():
    assert 'edges of "potts"' in mm.GraphLabeler.__doc__
    assert 'edges of "potts"' not in mm.SequenceTagger.__doc__
    assert '"proximal" or ProximalPoint' in mm.DiscriminativeHMM.__doc__
    assert '"cutting_plane"' not in mm.DiscriminativeHMM.__doc__
    assert 'loss : {"hinge", "squared_hinge", "ramp"} or Ramp' in mm.GraphLabeler.__doc__


@parameters
class Counting(mm.SequenceTagger):
    """A tagger with one more parameter.

    Parameters
    ----------
    least : int
        Of its own.
    C : float
        Stronger by default.
    ... and the parameters that all estimators share; see maxmargin.estimators.parameters.
    """

    least: int = 2
    C: float = 5.0


class Plain(mm.SequenceTagger):
    def __init__(self, *, C=2.0, ends=True):
        super().__init__(C=C, ends=ends)


def test_subclasses():
    assert sorted(arguments(Counting)) == sorted(["least", *arguments(mm.SequenceTagger)])
    assert sorted(described(Counting)) == sorted(arguments(Counting))
    own = clone(Counting(least=3, tol=0.5)).set_params(least=4)
    assert (own.least, own.C, own.tol) == (4, 5.0, 0.5)
    assert repr(own) == "Counting(least=4, tol=0.5)"
    assert own.fit(WORDS, TAGS).predict(WORDS) == TAGS
    plain = clone(Plain(C=3.0))
    assert plain.get_params() == {"C": 3.0, "ends": True} and plain.tol == mm.SequenceTagger().tol
    assert plain.fit(WORDS, TAGS).predict(WORDS) == TAGS


@pytest.mark.parametrize("cls", CLASSES)
def test_bad_stopping_is_refused_by_all(cls):
    for name in {"tol", *BUDGETS} & set(arguments(cls)):
        for value in ("x", -1, np.nan, [1]):
            with pytest.raises(ValueError, match=f"^{name} must be .*, got "):
                make(cls, **{name: value}).fit(*EXAMPLES[cls])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cls", CLASSES)
def test_an_unknown_solver_is_told_what_there_is(cls):
    """Exactly the solvers that the message names train this estimator; the others get the same message."""
    with pytest.raises(ValueError, match=r"^solver must be .*; got 'sdm'\.$") as refused:
        make(cls, solver="sdm").fit(*EXAMPLES[cls])
    message = str(refused.value)
    named = set(message.partition(" be ")[2].removeprefix("one of ").partition(", or a solver")[0].split(", "))
    for name in SOLVERS:
        estimator = make(cls, solver=name, max_passes=2, **({"positive": []} if cls is mm.GraphLabeler else {}))
        if name in named:
            if cls in (mm.SequenceTagger, mm.DiscriminativeHMM):
                assert len(estimator.fit(*EXAMPLES[cls]).weights_)
            continue
        with pytest.raises(ValueError) as other:
            estimator.fit(*EXAMPLES[cls])
        assert f'which solver="{name}" does not offer; use solver=' in str(other.value)
    wrong = mm.BCFW() if "proximal" in named else mm.ProximalPoint()
    with pytest.raises(ValueError, match=r"does not offer; use solver="):
        make(cls, solver=wrong).fit(*EXAMPLES[cls])


PROGRAM = """
import json, maxmargin as mm
from sklearn.base import clone
tagger = clone(mm.SequenceTagger(C=2.0, ends=True))
print(json.dumps([tagger.get_params(), repr(tagger), sorted(mm.DiscriminativeBayesNet().get_params())]))
"""


@pytest.mark.slow  # modules are compiled anew
def test_without_docstrings():
    done = subprocess.run([sys.executable, "-OO", "-c", PROGRAM], capture_output=True, text=True, check=True)
    tagger = mm.SequenceTagger(C=2.0, ends=True)
    assert json.loads(done.stdout) == [tagger.get_params(), repr(tagger), sorted(arguments(mm.DiscriminativeBayesNet))]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rescaling", ["slack", "sqrt_slack", "unit"])
@pytest.mark.parametrize("cls", [cls for cls in CLASSES if "rescaling" in arguments(cls)])
def test_other_rescalings_train(cls, rescaling):
    """To the gap where the search is exact; its bound need not close elsewhere."""
    estimator = make(cls, rescaling=rescaling, tol=1e-2)
    certificate = estimator.fit(*EXAMPLES[cls]).certificate_
    assert certificate.dual <= certificate.primal
    if cls in (mm.MulticlassClassifier, mm.MultilabelClassifier, mm.SequenceTagger):
        assert certificate.relative_gap <= 1e-2


@pytest.mark.found("B9")
@pytest.mark.parametrize("value", [0.5, -5, "many", None, True, 2**31, 10**12])
@pytest.mark.parametrize("name", ["max_cells", "message_passes", "max_branches"])
def test_limits_of_graphs_are_whole_numbers(name, value):
    most = "1000000" if name == "max_branches" else r"2\^31 - 1"
    with pytest.raises(ValueError, match=rf"{name} must be a whole number from . to {most}, got {value!r}"):
        mm.GraphLabeler(**{name: value}).fit(*EXAMPLES[mm.GraphLabeler])
