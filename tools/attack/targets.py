"""Small fitted estimators of every kind, with examples, verbs, and what an answer has to look like."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from tools.attack import Foreign

import maxmargin as mm
from maxmargin.estimators.base import Structured
from maxmargin.features.template import Template
from maxmargin.inference.min_cut import directions

Verb = Callable[[Any, Any, Any], object]  # of estimator, X, y
LENGTHS = (3, 1, 2, 4, 2, 3)


@dataclass
class Target:
    """An estimator with the examples it was fitted on."""

    estimator: Structured | mm.CalibratedLabels
    X: Any
    y: Any
    check: Callable[[Any, Any, object], None]  # of the estimator, X, and predictions
    verbs: dict[str, Verb] = field(default_factory=dict)


def finite(numbers: object, what: str) -> None:
    """Scores and probabilities are numbers."""
    for array in numbers if isinstance(numbers, list) else [numbers]:
        if not np.isfinite(np.asarray(array, np.float64)).all():
            raise Foreign(f"{what} are not finite: {array!r}"[:300])


def sequences_check(estimator: Any, X: Any, found: Any) -> None:
    known = set(estimator.classes_)
    if (len(found) != len(X) and not isinstance(X, dict)) or any(
        label not in known for labels in found for label in labels
    ):
        raise Foreign(f"labels that do not exist: {found!r}"[:300])


def column_check(estimator: Any, X: Any, found: Any) -> None:
    known = set(np.array(estimator.classes_, object).tolist())  # of any kinds beside each other
    if any(label not in known for label in np.array(found, object).tolist()):
        raise Foreign(f"classes that do not exist: {found!r}"[:300])


def sets_check(estimator: Any, X: Any, found: Any) -> None:
    if found.ndim != 2 or found.shape[1] != len(estimator.classes_) or not np.isin(found, (0, 1)).all():
        raise Foreign(f"no indicators of labels: {found!r}"[:300])


def masks_check(estimator: Any, X: Any, found: Any) -> None:
    for mask in found:
        if mask.dtype != np.uint8 or (mask.size and mask.max() > 1):
            raise Foreign(f"a mask with the values {np.unique(mask)[:20]}")


def links_check(estimator: Any, X: Any, found: Any) -> None:
    for x, links in zip(X, found, strict=True):
        sizes = x.shape[:2] if isinstance(x, np.ndarray) else [len(s.split() if isinstance(s, str) else s) for s in x]
        if any(not (0 <= i < sizes[0] and 0 <= j < sizes[1]) for i, j in links):
            raise Foreign(f"links of words that do not exist: {links!r}"[:300])


def lattice_check(estimator: Any, X: Any, found: Any) -> None:
    for x, text in zip(X, found, strict=True):
        said = x.words if isinstance(x, mm.Lattice) else x["words"]
        known = {word for words in said for word in (words if isinstance(words, (list, tuple)) else words.split())}
        if not set(text.split()) <= {part for word in known for part in word.split()}:
            raise Foreign(f"words that no arc says: {text!r}"[:300])


def _lattice_outputs(estimator: Any, X: Any, y: Any) -> object:
    found = estimator.predict_kbest(X, 3)
    for outputs in found:
        finite([score for _, score in outputs], "scores of outputs")
    return found


def svm_check(estimator: Any, X: Any, found: Any) -> None:
    known = set(estimator.layout_.labels.classes)
    for output in found:
        parts = output if isinstance(output, list) else [output]
        if any(part not in known for part in parts):
            raise Foreign(f"labels that do not exist: {output!r}"[:300])


def predicted(check: Callable) -> Verb:
    def verb(estimator: Any, X: Any, y: Any) -> object:
        found = estimator.predict(X)
        check(estimator, X, found)
        return found

    return verb


def scored(name: str) -> Verb:
    def verb(estimator: Any, X: Any, y: Any) -> object:
        finite(found := getattr(estimator, name)(X), name)
        return found

    return verb


def _score(estimator: Any, X: Any, y: Any) -> object:
    finite(found := estimator.score(X, y), "score")
    return found


def _fit(estimator: Any, X: Any, y: Any) -> object:
    from sklearn.base import clone

    fitted = clone(estimator).set_params(max_passes=2).fit(X, y)
    finite(fitted.certificate_.primal, "primal")
    finite(fitted.weights_, "weights")
    return fitted


def _partial_fit(estimator: Any, X: Any, y: Any) -> object:
    from sklearn.base import clone

    fitted = clone(estimator).set_params(solver="perceptron", positive=None).partial_fit(X, y)
    finite(fitted.weights_, "weights")
    return fitted


def _kbest(estimator: Any, X: Any, y: Any) -> object:
    found = estimator.predict_kbest(X, 2)
    finite([score for answers in found for _, score in answers], "scores of the k best")
    return found


def _bounds(estimator: Any, X: Any, y: Any) -> object:
    found = estimator.predict_bounds(X)
    finite([number for answer in found for number in (answer.value, answer.bound)], "bounds")
    return found


def _report(estimator: Any, X: Any, y: Any) -> object:
    path = Path(f"report-{os.getpid()}.html").absolute()
    try:
        estimator.report(path, X, y)
        if not path.read_text().endswith("</html>\n"):
            raise Foreign("a page without an end")
    finally:
        path.unlink(missing_ok=True)
    return path


def _interactive(estimator: Any, X: Any, y: Any) -> object:
    image, mask = (given[0] if isinstance(given, list) and given else given for given in (X, y))
    session = estimator.interactive(image)
    session.update(np.where(np.asarray(mask) == 1, 1, -1))
    masks_check(estimator, X, [session.mask])
    return session


def _coefficients(estimator: Any, X: Any, y: Any) -> object:
    return [getattr(estimator, name) for name in ("coef_", "transition_", "emission_") if hasattr(estimator, name)]


SEQUENCE = {
    "predict_kbest": _kbest,
    "predict_marginals": scored("predict_marginals"),
    "score": _score,
    "fit": _fit,
    "report": _report,
}


def _target(estimator: Any, X: Any, y: Any, check: Callable, **verbs: Verb) -> Target:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(X, y)
        target = Target(estimator, X, y, check, {"predict": predicted(check), **verbs})
        for verb in target.verbs.values():  # kernels that it needs are loaded now, not in every child
            verb(estimator, X, y)
    return target


@cache
def file_targets() -> dict[str, Target]:
    """Those whose model files are attacked: also estimators round others, which have no weights of their own."""
    target = targets()["sets, tree"]
    calibrated = mm.CalibratedLabels(estimator=target.estimator, folds=2)
    verbs: dict[str, Verb] = {"predict_proba": scored("predict_proba"), "score": _score}
    return {**targets(), "calibrated": _target(calibrated, target.X, target.y, sets_check, **verbs)}


def weights_of(estimator: Any) -> np.ndarray:
    """All weights, also those of the estimator inside."""
    return estimator.estimator_.weights_ if isinstance(estimator, mm.CalibratedLabels) else estimator.weights_


@cache
def targets() -> dict[str, Target]:
    """By name; made once for each process, before it forks."""
    rng = np.random.default_rng(0)
    made: dict[str, Target] = {}
    few: dict[str, Any] = {"max_passes": 4}
    words = [
        ["The", "dog", "barks"],
        ["Dogs"],
        ["a", "dog"],
        ["The", "caf\u00e9", "is", "open"],
        ["it", "is"],
        list("xyz"),
    ]
    tags = [[word[0] for word in sentence] for sentence in words]
    named = [[{"word": word, "length": len(word)} for word in sentence] for sentence in words]
    y = [[str(k) for k in rng.integers(3, size=length)] for length in LENGTHS]
    one_hot = [
        sp.csr_array(np.eye(12)[rng.integers(12, size=length)] + 0.5 * np.eye(12)[rng.integers(12, size=length)])
        for length in LENGTHS
    ]
    dense = [rng.normal(size=(length, 4)) for length in LENGTHS]
    both = [
        {"sparse": s, "dense": d, "edge": sp.csr_array(rng.normal(size=(len(d) - 1, 2)))}
        for s, d in zip(one_hot, dense, strict=True)
    ]
    stream = {**SEQUENCE, "partial_fit": _partial_fit, "coef": _coefficients}
    made["tagger dense"] = _target(mm.SequenceTagger(ends=True, **few), dense, y, sequences_check, **stream)
    made["tagger sparse"] = _target(mm.SequenceTagger(**few), one_hot, y, sequences_check, **stream)
    l1 = mm.SequenceTagger(penalty="l1", solver="recentred_dual", **few)
    made["tagger l1"] = _target(l1, one_hot, y, sequences_check, **SEQUENCE)
    options: dict[str, Any] = {
        "weights": "observed",
        "ends": True,
        "constraints": [("0", "9")],
        "classes": list("0129"),
    }
    made["tagger edges"] = _target(mm.SequenceTagger(**options, **few), both, y, sequences_check, **SEQUENCE)
    made["tagger words"] = _target(mm.SequenceTagger(**few), words, tags, sequences_check, **SEQUENCE)
    template = mm.TextFeatures(Template(["U00:%x[0,0]", "U01:%x[-1,0]/%x[0,0]", "B"]))
    made["tagger template"] = _target(mm.SequenceTagger(features=template, **few), words, tags, sequences_check)
    made["tagger dicts"] = _target(mm.SequenceTagger(**few), named, tags, sequences_check, **SEQUENCE)

    points = rng.normal(size=(24, 5)) + np.repeat(np.eye(3, 5), 8, axis=0) * 2
    classes = np.repeat(["ant", "bee", "cat"], 8)
    multiclass = {
        "decision_function": scored("decision_function"),
        "predict_marginals": scored("predict_marginals"),
        "predict_kbest": _kbest,
        "score": _score,
        "fit": _fit,
        "partial_fit": _partial_fit,
        "report": _report,
    }
    made["classes dense"] = _target(mm.MulticlassClassifier(**few), points, classes, column_check, **multiclass)
    sparse = sp.csr_array(np.where(points > 0.5, points, 0))
    made["classes sparse"] = _target(mm.MulticlassClassifier(**few), sparse, classes, column_check, **multiclass)
    sets: dict[str, Verb] = {"decision_function": scored("decision_function"), "score": _score, "fit": _fit}
    sets["report"] = _report
    for graph in (None, "tree", "full"):
        labeler = mm.MultilabelClassifier(graph=graph, **few)
        made[f"sets {graph}"] = _target(labeler, points, (points[:, :3] > 0).astype(int), sets_check, **sets)
    for name, pairs in (("tree", [(0, 1), (0, 2), (2, 3)]), ("several parents", [(0, 2), (1, 2), (2, 3)])):
        labeler = mm.MultilabelClassifier(hierarchy=pairs, **few)
        closed = mm.with_ancestors((points[:, :4] > 0.5).astype(int), pairs)
        made[f"sets, {name}"] = _target(labeler, points, closed, sets_check, predict_kbest=_kbest, **sets)

    mask = np.zeros((9, 11), int)
    mask[3:7, 2:8] = 1
    images = [mask + rng.normal(scale=0.5, size=mask.shape) for _ in range(3)]
    segmenter: dict[str, Verb] = {"score": _score, "fit": _fit, "report": _report, "interactive": _interactive}
    made["images"] = _target(mm.ImageSegmenter(**few), images, [mask] * 3, masks_check, **segmenter)
    for name, neighbours, shape in (("images 8", 8, (9, 11)), ("volumes", 6, (3, 4, 5))):
        truth = np.zeros(shape, int)
        truth[..., 1:3, 1:3] = 1
        J = len(directions(neighbours))
        X = [
            {"node": np.stack([truth + rng.normal(scale=0.4, size=shape), np.ones(shape)], -1),
             "edge": rng.random((J, *shape, 2))}
            for _ in range(3)
        ]  # fmt: skip
        own = mm.ImageSegmenter(neighbours=neighbours, **few)
        made[name] = _target(own, X, [truth] * 3, masks_check, **segmenter)

    ring = np.stack([np.arange(6), (np.arange(6) + 1) % 6], 1)
    clique = np.array([(p, q) for p in range(6) for q in range(p)])
    for name, K, edges, options in (
        ("graphs cut", 2, ring, {"pairwise": "potts"}),
        ("graphs junction", 3, ring, {}),
        ("graphs messages", 3, clique, {"max_cells": 0, "message_passes": 20, "max_branches": 5}),
        ("graphs relaxed", 3, ring, {"method": "relaxation"}),
        ("graphs factors", 2, ring[:-1], {}),
        ("graphs searched", 3, ring, {"rescaling": "slack", "slack_search": "angular"}),
    ):
        nodes = [rng.integers(K, size=6) for _ in range(4)]
        X = [{"node": np.eye(K)[y] + rng.normal(scale=0.3, size=(6, K)), "edges": edges,
              "edge": np.ones((len(edges), 1))} for y in nodes]  # fmt: skip
        if name == "graphs factors":
            for x in X:
                x["factors"] = [((0, 2, 4), [1.0, 0.5])]
        verbs: dict[str, Verb] = {"score": _score, "fit": _fit, "report": _report, "predict_bounds": _bounds}
        if name in ("graphs junction", "graphs factors"):
            verbs |= {"predict_kbest": _kbest, "predict_marginals": scored("predict_marginals")}
        made[name] = _target(mm.GraphLabeler(**options, **few), X, nodes, sequences_check, **verbs)

    sentences = [("a b c", "x y"), (["a"], ["x"]), ("b c d", "y z v w"), ("d a", "x v")]
    links = ["0-0 1-1 2?1", [(0, 0)], "0-0 1-1 2-1", "1-0"]
    made["aligner"] = _target(mm.Aligner(**few), sentences, links, links_check, score=_score, fit=_fit)
    pairs = [rng.normal(size=(n, m, 2)) for n, m in ((3, 2), (1, 1), (3, 4), (2, 2))]
    linked: dict[str, Verb] = {"score": _score, "fit": _fit, "report": _report}
    made["aligner of arrays"] = _target(mm.Aligner(**few), pairs, links, links_check, **linked)
    touching = mm.Aligner(neighbours=True, max_links=(1, 2), **few)
    made["aligner, neighbours"] = _target(touching, pairs, links, links_check, **linked)

    parts = [
        {"n_nodes": 3, "tails": [0, 0, 1, 1], "heads": [1, 1, 2, 2], "features": rng.normal(size=(4, 2)),
         "words": ["a", "b c", "", "d"]}
        for _ in range(4)
    ]  # fmt: skip
    several: dict[str, Verb] = {"predict_kbest": _lattice_outputs, "score": _score, "fit": _fit, "report": _report}
    told = ["a d", ["b c"], "a", ["x", "b c d"]]
    made["ranker"] = _target(mm.LatticeRanker(**few), parts, told, lattice_check, **several)
    good = mm.LatticeRanker(n_good=2, **few)
    made["ranker, several good"] = _target(good, parts, told, lattice_check, **several)
    costs = [rng.random(4) for _ in parts]
    made["ranker by costs"] = _target(mm.LatticeRanker(**few), parts, costs, lattice_check, **several)

    symbols = [[str(k) for k in rng.integers(4, size=length)] for length in LENGTHS]
    hmm = {**SEQUENCE, "log_likelihood": scored("log_likelihood"), "tables": _coefficients}
    made["hmm"] = _target(mm.DiscriminativeHMM(unknown="missing", **few), symbols, y, sequences_check, **hmm)

    frame = {name: [str(k) for k in rng.integers(3, size=30)] for name in "abcd"}
    net: dict[str, Verb] = {
        "predict_marginals": scored("predict_marginals"),
        "log_likelihood": scored("log_likelihood"),
        "score": _score,
        "fit": _fit,
    }
    target = np.array([str(k) for k in rng.integers(2, size=30)])
    made["bayes net"] = _target(
        mm.DiscriminativeBayesNet(structure="tan", unknown="missing", **few), frame, target, column_check, **net
    )
    shards = mm.SequenceTagger(solver=mm.Sharded(shards=2), **few)
    made["tagger in shards"] = _target(shards, dense, y, sequences_check, **SEQUENCE)
    made["svm chain"] = _target(mm.StructuredSVM(mm.Chain(), **few), dense, y, svm_check, score=_score, fit=_fit)
    made["svm classes"] = _target(
        mm.StructuredSVM(mm.Multiclass(), **few), points, classes.tolist(), svm_check, score=_score, fit=_fit
    )
    return made
