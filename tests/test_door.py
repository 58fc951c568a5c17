"""Arrays from outside are refused by name before any kernel sees them, wherever they come in."""

from __future__ import annotations

import json
import warnings
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin import door
from maxmargin.features.sequences import Sequences
from maxmargin.models.graph_input import checked_graphs

ROWS = np.array([[1.0, 0, 2], [0, 1, 0]])
Y = [["a", "b"], ["b", "a"]]


def broken(column: int | None = None, pointer: int | None = None, form: str = "csr") -> sp.csr_array:
    matrix = sp.csr_array(ROWS).asformat(form)
    if column is not None:
        matrix.indices[0] = column
    if pointer is not None:
        matrix.indptr[1] = pointer
    return matrix


BROKEN = {
    "far": (broken(1000), "indices\\[0\\] is 1000"),
    "negative": (broken(-1), "indices\\[0\\] is -1"),
    "next": (broken(3), "not between 0 and 2"),
    "very far": (broken(10**6), "indices\\[0\\] is 1000000"),
    "falling": (broken(pointer=7), "indptr falls from 7 to 3"),
    "columns": (broken(5, form="csc"), "not between 0 and 1"),
    "beyond the entries": (sp.csr_array(ROWS), "indptr ends with 9"),
    "coordinates": (sp.csr_array(ROWS).tocoo(), "rows of the sparse matrix\\[0\\] is 10"),
    "blocks": (sp.csr_array(ROWS).tobsr(), "data \\(6,\\)|one index and value for each entry"),
}
BROKEN["blocks"][0].data = BROKEN["blocks"][0].data.reshape(-1)
BROKEN["beyond the entries"][0].indptr[-1] = 9
BROKEN["coordinates"][0].coords[0][0] = 10
GOOD = sp.csr_array(ROWS)


@pytest.fixture(scope="module")
def tagger():
    return mm.SequenceTagger(max_passes=3).fit([GOOD, GOOD], Y)


def test_offsets_that_cannot_be_written(tagger):
    offsets = np.array([0, 1, 2])
    expected = tagger.predict(Sequences(offsets.copy(), sparse=GOOD))
    offsets.flags.writeable = False  # as in a memory map that processes share
    assert tagger.predict(Sequences(offsets, sparse=GOOD)) == expected


@pytest.mark.found("A1")
@pytest.mark.parametrize("case", BROKEN)
def test_damaged_sparse_matrices_are_refused_by_every_verb(tagger, case):
    matrix, message = BROKEN[case]
    edges = {"sparse": GOOD, "edge": matrix}
    for verb in (
        lambda: mm.SequenceTagger().fit([GOOD, matrix], Y),
        lambda: mm.SequenceTagger().fit([edges, edges], Y),
        lambda: mm.SequenceTagger(solver="perceptron").partial_fit([GOOD, matrix], Y),
        lambda: tagger.predict([matrix]),
        lambda: tagger.predict_kbest([matrix], 2),
        lambda: tagger.score([matrix], Y[:1]),
        lambda: mm.MulticlassClassifier().fit(matrix, ["a", "b"]),
        lambda: mm.StructuredSVM(mm.Chain()).fit([matrix, GOOD], Y),
    ):
        with pytest.raises(ValueError, match=message):
            verb()


@pytest.mark.found("A1")
def test_a_matrix_that_changes_after_its_check_is_checked_again(tagger):
    sequences = Sequences(np.array([0, 2]), sparse=GOOD.copy())
    assert len(tagger.predict(sequences)[0]) == 2
    sequences.sparse.indices[0] = 1000
    with pytest.raises(ValueError, match="sparse features: indices\\[0\\] is 1000"):
        tagger.predict(sequences)
    with pytest.raises(ValueError, match="indptr falls from 7 to 3"):
        Sequences(np.array([0, 2]), sparse=broken(pointer=7))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_check_agrees_with_a_plain_one(dtype):
    rng = np.random.default_rng(0)
    for _ in range(400):
        n, width = int(rng.integers(1, 6)), int(rng.integers(1, 5))
        pointers = np.sort(rng.integers(0, 1200, size=n + 1)).astype(dtype) * (rng.random() < 0.9)
        pointers[0] = 0 if rng.random() < 0.8 else 1
        columns = rng.integers(0, width, size=int(pointers[-1]) + int(rng.integers(2))).astype(dtype)
        if len(columns) and rng.random() < 0.5:
            columns[rng.integers(len(columns))] = rng.choice([-1, width, 10**6])
        if rng.random() < 0.2:
            pointers[rng.integers(n + 1)] = rng.integers(-2, 1300)
        matrix = sp.csr_array((n, width))
        matrix.indptr, matrix.indices, matrix.data = pointers, columns, np.ones(len(columns))
        used = pointers.tolist()
        fine = used[0] == 0 and all(a <= b for a, b in pairwise(used)) and used[-1] <= len(columns)
        fine = fine and all(0 <= c < width for c in columns[: used[-1]].tolist())
        try:
            door.check_compressed(matrix, "X")
            assert fine
        except ValueError:
            assert not fine


def test_the_first_number_beyond_a_limit():
    rng = np.random.default_rng(0)
    for bad in (np.nan, np.inf, -np.inf, 1e101, -1e300):
        for size in (1, 511, 512, 513, 2000):
            block = rng.normal(size=(size, 1))
            at = int(rng.integers(size))
            assert door.first_bad_row(block) == door.first_bad_row(sp.csr_array(block)) == -1
            block[at] = bad
            assert door.first_bad_row(block) == door.first_bad_row(sp.csr_array(block)) == at


COPIES = {
    np.float64: (-1, np.nan, np.inf, -np.inf, 1e101),
    np.float32: (-1, np.nan, np.inf, -np.inf),
    ">f8": (-1, np.nan, 1e101),
    np.longdouble: (-1, np.nan, 1e101),
    np.int16: (-1,),
    bool: (),
}


@pytest.mark.parametrize("dtype", COPIES)
@pytest.mark.parametrize("sizes", [(1,), (511, 1, 0), (512, 513), (2000, 3)])
def test_copies_are_checked_number_by_number(dtype, sizes):
    rng = np.random.default_rng(0)
    arrays = [rng.integers(2, size=(2, size)).astype(dtype).T for size in sizes]  # not in C order
    out = np.full(2 * sum(sizes) + 1, 7.0)
    assert door.copy_numbers(arrays, out, least=0.0) == -1
    assert out.tolist() == [float(x) for array in arrays for row in array.tolist() for x in row] + [7.0]
    for bad in COPIES[dtype]:
        at, damaged = int(rng.integers(sizes[0])), [array.copy() for array in arrays]
        damaged[0][at, 1] = damaged[-1][-1:, 1] = bad  # the first is named
        assert door.copy_numbers(damaged, out, least=0.0) == 2 * at + 1
        assert door.copy_numbers(damaged, out) == (-1 if bad == -1 else 2 * at + 1)


def test_a_negative_zero_is_no_negative_number():
    assert door.copy_numbers([np.array([0.0, -0.0, 1.0])], np.empty(3), least=0.0) == -1
    assert door.copy_numbers([np.array([0.0, -5e-324, 1.0])], np.empty(3), least=0.0) == 1


@pytest.mark.parametrize(
    "strange",
    [
        np.array([2], np.uint8), np.array([-1]), np.array([2**32 + 1]), np.array([2**64 - 1], np.uint64),
        np.array([0.5]), np.array([np.nan]), np.array(["1"]), np.array([None]),
    ],
    ids=repr,
)  # fmt: skip
def test_masks_hold_three_numbers_only(strange):
    out = np.empty(9, np.int32)
    fine = [np.array([[0, 255], [1, 1]], dtype) for dtype in (np.uint8, np.float32)]
    assert door.copy_codes(fine, out, (0, 1, 255)) == -1 and out[:8].tolist() == [0, 255, 1, 1] * 2
    assert door.copy_codes([*fine, strange], out, (0, 1, 255)) == 8
    assert (door.copy_codes([strange], out, (-1, 0, 1)) == -1) == (strange.dtype.kind == "i" and strange[0] == -1)


def test_entries_of_one_place_are_judged_by_their_sum():
    def rows(*values):
        return sp.csr_array((np.array(values), np.zeros(2, int), np.array([0, 0, 2])), shape=(2, 1))

    assert mm.MulticlassClassifier(max_passes=1, tol=1.0).fit(rows(9e99, 1.0), ["a", "b"]).coef_.shape == (2, 1)
    for values in ((9e99, 9e99), (np.inf, -np.inf), (1e308, 1e308)):
        with pytest.raises(ValueError, match="example 1 has NaN or infinite features"):
            mm.MulticlassClassifier().fit(rows(*values), ["a", "b"])


MASK = np.zeros((6, 7), int)
MASK[2:5, 2:5] = 1
GRAPH = {"node": np.eye(2)[[0, 1, 1]], "edges": np.array([[0, 1], [1, 2], [2, 0]]), "edge": np.ones((3, 1))}


@pytest.fixture(scope="module")
def fitted(tagger):
    rng = np.random.default_rng(0)
    images = [MASK + rng.normal(scale=0.4, size=MASK.shape) for _ in range(2)]
    points = rng.normal(size=(9, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "segmenter": (mm.ImageSegmenter(max_passes=3).fit(images, [MASK] * 2), images),
            "graphs": (mm.GraphLabeler(pairwise="potts", max_passes=3).fit([GRAPH] * 2, [[0, 1, 1]] * 2), [GRAPH]),
            "tagger": (tagger, [GOOD, GOOD]),
            "classes": (mm.MulticlassClassifier(max_passes=3).fit(points, np.arange(9) % 3), points),
            "sets": (mm.MultilabelClassifier(graph="full", max_passes=3).fit(points, points > 0), points),
            "hmm": (mm.DiscriminativeHMM(max_passes=3).fit([["x", "y"]] * 2, Y), [["x", "y"]]),
        }


@contextmanager
def weights_of(estimator):
    """Its weights, which are set back in the end."""
    good = estimator.weights_
    try:
        yield good
    finally:
        estimator.weights_ = good


KINDS = ["segmenter", "graphs", "tagger", "classes", "sets", "hmm"]


@pytest.mark.found("A2")
@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_users_set_are_checked(fitted, kind):
    estimator, X = fitted[kind]
    with weights_of(estimator) as good:
        for weights in (np.full_like(good, np.nan), good[:-1].copy(), good.tolist()):
            estimator.weights_ = weights
            with pytest.raises((ValueError, TypeError), match="weight"):
                estimator.predict(X)


@pytest.mark.found("A2")
@pytest.mark.parametrize("kind", KINDS)
def test_one_weight_that_is_no_number(fitted, kind):
    """Wherever it is, and whether or not it concerns the label that wins."""
    estimator, X = fitted[kind]
    with weights_of(estimator) as good:
        for place in range(len(good)):
            estimator.weights_ = good.copy()
            estimator.weights_[place] = np.nan
            with pytest.raises(ValueError, match=r"weight|log-prob"):
                estimator.predict(X)


@pytest.mark.found("A2")
@pytest.mark.parametrize("wrap", [list, Sequences.of], ids=["bound", "few"])
def test_a_nan_that_is_written_into_weights_that_were_fine(fitted, wrap):
    tagger, X = fitted["tagger"]
    good, groups = tagger.weights_.copy(), tagger.layout_.groups(np.arange(len(tagger.weights_), dtype=float))
    try:
        for place in np.concatenate([group.ravel() for group in groups.values()]).astype(int):  # each has a part in X
            tagger.predict(wrap(X))
            tagger.weights_[place] = np.nan
            with pytest.raises(ValueError, match="weight"):
                tagger.predict(wrap(X))
            tagger.weights_[:] = good
    finally:
        tagger.weights_[:] = good


@pytest.mark.found("A2")
@pytest.mark.parametrize("kind", ["segmenter", "graphs"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308, -1e200])
def test_files_with_absurd_weights_do_not_load(fitted, kind, value, tmp_path):
    from maxmargin.persistence.model_file import read_model, write_model

    path = fitted[kind][0].save(tmp_path / "m")
    header, tensors = read_model(path, mmap=False)
    weights = tensors["weights"].copy()
    weights[-1] = value
    header = {name: text for name, text in header.items() if not name.startswith(("format", "data_"))}
    write_model(path, header, {**tensors, "weights": weights})
    with pytest.raises(ValueError, match="weights"):
        mm.load(path)


@pytest.mark.found("A2")
def test_one_weight_of_an_edge(fitted):
    segmenter, images = fitted["segmenter"]
    good = segmenter.weights_.copy()
    try:
        for value, words in ((np.nan, "nan"), (1e308, "1e\\+308"), (-0.5, "negative")):
            segmenter.weights_[-1] = value
            for verb in (lambda: segmenter.predict(images), lambda: segmenter.interactive(images[0])):
                with pytest.raises(ValueError, match=words):
                    verb()
    finally:
        segmenter.weights_[:] = good


@pytest.mark.found("A4")
def test_structures_of_graphs_are_not_mixed_up(fitted):
    labeler = fitted["graphs"][0]
    node = GRAPH["node"]
    a = {"node": node, "edges": np.array([[1, 2]], np.int64), "edge": np.ones((1, 1))}
    b = {"node": node, "edges": np.array([[1, 0], [2, 0]], np.int32), "edge": np.ones((2, 1))}
    assert a["edges"].tobytes() == b["edges"].tobytes()
    first, second = checked_graphs([a, b])
    assert first.structure.edges.tolist() == [[1, 2]] and second.structure.edges.tolist() == [[1, 0], [2, 0]]
    assert labeler.predict([a, b])[1].tolist() == labeler.predict([b])[0].tolist()
    with pytest.raises(ValueError, match="graph 1: edges"):
        labeler.predict([a, {**a, "edges": np.array([[1.0, 2.0]])}])


@pytest.mark.found("A6")
@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("graphs", {"max_cells": "many"}),
        ("graphs", {"max_cells": [1]}),
        ("graphs", {"method": {"$array": "weights"}}),
        ("graphs", {"cost": {"$object": ["Auto", {}]}}),
        ("graphs", {"classes": True}),
        ("tagger", {"features": "words"}),
        ("tagger", {"warm_start": "yes"}),
        ("segmenter", {"neighbours": "four"}),
    ],
)
def test_parameters_of_another_kind_do_not_load(fitted, kind, change, tmp_path):
    header, path = forged(fitted[kind][0], tmp_path)
    header["parameters"] = json.dumps(json.loads(header["parameters"]) | change)
    refused(header, path)


@pytest.mark.found("A6")
@pytest.mark.parametrize("change", [{"dtype": "("}, {"dtype": "O"}, {"dtype": 3}, {"values": [0, 2]}, {"form": []}])
def test_targets_of_another_kind_do_not_load(change, tmp_path):
    labeler = mm.MultilabelClassifier(max_passes=50).fit(np.eye(6, 3), np.eye(6, 3, dtype=int))
    header, path = forged(labeler, tmp_path)
    header["fitted"] = json.dumps(json.loads(header["fitted"]) | change)
    refused(header, path)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, ">i4", np.float32, np.longdouble])
def test_targets_keep_their_dtype_in_files(dtype, tmp_path):
    labeler = mm.MultilabelClassifier(max_passes=50).fit(np.eye(6, 3), np.eye(6, 3).astype(dtype))
    assert mm.load(labeler.save(tmp_path / "m")).predict(np.eye(6, 3)).dtype == np.dtype(dtype)


@pytest.mark.found("A6")
@pytest.mark.parametrize("part", ["mean_", "limits_", "scale_"])
@pytest.mark.parametrize("value", [None, "x", [], [1.0, "x"], {"$float": "nan"}])
def test_features_of_pictures_of_another_kind_do_not_load(fitted, part, value, tmp_path):
    header, path = forged(fitted["segmenter"][0], tmp_path)
    if f'"{part}"' not in header["features"]:
        pytest.skip("these features have no such part")

    def change(node: object) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            if key == part:
                node[key] = value
            else:
                change(node[key])

    features = json.loads(header["features"])
    change(features)
    header["features"] = json.dumps(features)
    refused(header, path)


@pytest.mark.found("A6")
@pytest.mark.parametrize("text", ['{"a":' * 5000 + "1" + "}" * 5000, "[" * 5000 + "]" * 5000])
def test_deep_headers_are_refused(fitted, text, tmp_path):
    header, path = forged(fitted["graphs"][0], tmp_path)
    for part in ("parameters", "layout", "fitted", "training"):
        refused({**header, part: text}, path, "nested")


def forged(estimator, folder):
    from maxmargin.persistence.model_file import read_model

    path = estimator.save(folder / "m")
    header, _ = read_model(path, mmap=False)
    return {name: text for name, text in header.items() if not name.startswith(("format", "data_"))}, path


def refused(header, path, words="cannot be loaded"):
    from maxmargin.persistence.model_file import read_model, write_model

    tensors = read_model(path, mmap=False)[1]
    other = path.with_name("forged")
    write_model(other, header, tensors)
    with pytest.raises(ValueError, match=words):
        mm.load(other)
