"""Thousands of damaged and forged model files: each is refused with a ValueError, or gives a model that predicts.

A damaged file has bytes changed, lost or added. A forged one has contents changed by someone who knows the format and
makes the checksums agree again, so that the checks behind them are reached.
"""

from __future__ import annotations

import json
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from tools.attack.edits import change, change_text, fill, sign, split

from maxmargin import BCFW, MatrixCost, SequenceTagger, load
from maxmargin.features.extractor import TextFeatures
from maxmargin.features.template import Template


def flip(whole: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(whole)
    for at in rng.integers(len(whole), size=rng.integers(1, 5)):
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def truncate(whole: bytes, rng: np.random.Generator) -> bytes:
    return whole[: rng.integers(len(whole))]


def insert(whole: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(whole) + 1))
    return whole[:at] + rng.bytes(int(rng.integers(1, 20))) + whole[at:]


def remove(whole: bytes, rng: np.random.Generator) -> bytes:
    at = int(rng.integers(len(whole)))
    return whole[:at] + whole[at + int(rng.integers(1, 20)) :]


def repeat(whole: bytes, rng: np.random.Generator) -> bytes:
    low, high = sorted(rng.integers(len(whole), size=2))
    at = int(rng.integers(len(whole)))
    return whole[:at] + whole[low:high] + whole[at + high - low :]


def edit_header_text(whole: bytes, rng: np.random.Generator) -> bytes:
    """Damage inside the header only, where a blind flip seldom lands in large files."""
    length = int.from_bytes(whole[:8], "little")
    changed = bytearray(whole)
    at = int(rng.integers(8, 8 + length))
    changed[at] = int(rng.choice(list(b'0123456789{}[]",:\\ a-\xff')))
    return bytes(changed)


def forge_data(whole: bytes, rng: np.random.Generator) -> bytes:
    header, data = split(whole)
    return sign(header, flip(data, rng))


def forge_tensor(whole: bytes, rng: np.random.Generator) -> bytes:
    return sign(*fill(*split(whole), rng))


def forge_header(whole: bytes, rng: np.random.Generator) -> bytes:
    """Values anywhere in the header replaced, removed, moved; also inside the JSON texts of the metadata."""
    header, data = split(whole)
    for _ in range(rng.integers(1, 3)):
        if rng.random() < 0.6:
            header = change_text(header, rng)
        else:
            change(header, rng)
    return sign(header, data)


DAMAGE: list[Callable] = [flip, truncate, insert, remove, repeat, edit_header_text]
FORGERY: list[Callable] = [forge_data, forge_tensor, forge_header, forge_header]


@contextmanager
def little_memory(room: int = 3 << 30) -> Iterator[None]:
    """A MemoryError for whoever asks for gigabytes, instead of a machine without memory."""
    try:
        import resource

        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        pytest.skip("the memory of a process cannot be limited here")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def chains(folder: Path) -> list[tuple[bytes, list]]:
    """Model files of different chains, with examples for each."""
    rng = np.random.default_rng(0)
    labels = [f"label {k}" for k in range(70)]
    made = []
    for kind, names, options in (
        ("dense", [1, 2.5, None], {"ends": True, "cost": MatrixCost(1.0 - np.eye(3)), "classes": [1, 2.5, None]}),
        ("sparse", ["a", ("b", 1)], {"constraints": [("a", "a")], "classes": ["a", ("b", 1)], "solver": BCFW()}),
        ("edge", ["x", "y", "z"], {"weights": "observed", "ends": True, "positive": ["transition"]}),
        ("wide", labels, {"weights": "observed", "classes": labels}),
    ):
        X, Y = [], []
        for length in (3, 1, 2, 4, 2):
            codes = rng.integers(len(names), size=length)
            if kind == "sparse":
                codes = np.arange(length) % 2
            shape = (length, 30_000 if kind == "wide" else 12)
            features = sp.csr_array((np.ones(length), (np.arange(length), codes % 12)), shape=shape)
            x: object = features.toarray() if kind == "dense" else features
            if kind == "edge":
                x = {
                    "sparse": features,
                    "dense": rng.normal(size=(length, 2)),
                    "edge": sp.csr_array(np.ones((length - 1, 2))),
                }
            X.append(x)
            Y.append([names[k] for k in codes])
        made.append((trained(X, Y, options).save(folder / kind).read_bytes(), X))
    return made


def texts(folder: Path) -> list[tuple[bytes, list]]:
    """Model files with feature extractors, with sentences for each."""
    made = []
    words = [["The", "dog", "barks"], ["Dogs"], ["a", "dog"], ["The", "caf\u00e9", "is", "open"], ["it", "is"]]
    tags = [[word[0] for word in sentence] for sentence in words]
    named = [[{"word": word, "length": len(word)} for word in sentence] for sentence in words]
    template = TextFeatures(Template(["U00:%x[0,0]", "U01:%x[-1,0]/%x[0,0]", "B"]))
    for kind, X, options in (("words", words, {}), ("template", words, {"features": template}), ("named", named, {})):
        made.append((trained(X, tags, options).save(folder / kind).read_bytes(), X))
    return made


def trained(X: list, Y: list, options: dict) -> SequenceTagger:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SequenceTagger(max_passes=5, **options).fit(X, Y)


def fuzz(folder: Path, sources: list[tuple[bytes, list]], n_files: int, seed: int) -> Counter:
    rng = np.random.default_rng(seed)
    path = folder / "fuzzed"
    seen: Counter = Counter()
    for whole, X in sources:  # everything that loads once and stays is loaded now
        path.write_bytes(whole)
        load(path).predict(X)
    tracemalloc.start()
    try:
        for number in range(n_files):
            whole, X = sources[rng.integers(len(sources))]
            forged = rng.random() < 0.5
            kinds = FORGERY if forged else DAMAGE
            mutate = kinds[rng.integers(len(kinds))]
            content = mutate(whole, rng)
            path.write_bytes(content)
            tracemalloc.reset_peak()
            before, begin = tracemalloc.get_traced_memory()[0], time.perf_counter()
            try:
                loaded = load(path)
            except ValueError as error:
                assert "fuzzed" in str(error) and len(str(error)) < 2_000, f"file {number}: {error}"
                loaded = None
            taken = tracemalloc.get_traced_memory()[1] - before
            room = 10 * len(content) + 500_000
            if loaded is not None and loaded.layout_.pair_rows is None:
                room += 8 * loaded.layout_.n_weights  # all pairs have a weight in memory, those of zero not in the file
            assert taken < room, f"file {number}, {mutate.__name__}: {taken} bytes"
            assert time.perf_counter() - begin < 20, f"file {number}, {mutate.__name__}"
            if loaded is None:
                seen[mutate.__name__, "refused"] += 1
            elif not forged:
                assert content == whole, f"file {number}: {mutate.__name__} went unnoticed"
                seen[mutate.__name__, "unchanged"] += 1
            else:
                seen[mutate.__name__, check_predicts(loaded, X)] += 1
    finally:
        tracemalloc.stop()
    return seen


def check_predicts(loaded: SequenceTagger, X: list) -> str:
    """Labels of the model for every token; or a ValueError, as when all labels were forbidden by the forger."""
    assert np.isfinite(loaded.weights_).all() and len(loaded.weights_) == loaded.layout_.n_weights
    try:
        found = loaded.predict(X)
    except ValueError:
        return "predicts nothing"
    assert [len(labels) for labels in found] == [3, 1, 2, 4, 2]
    assert {label for labels in found for label in labels} <= set(loaded.classes_)
    return "predicts"


@pytest.mark.parametrize(
    ("sources", "n_files", "seed"),
    [
        (chains, 500, 0),
        (texts, 250, 0),
        pytest.param(chains, 10_000, 1, marks=pytest.mark.slow),
        pytest.param(texts, 5_000, 1, marks=pytest.mark.slow),
    ],
)
def test_fuzz(tmp_path, sources, n_files, seed):
    made = sources(tmp_path)
    with little_memory():
        seen = fuzz(tmp_path, made, n_files, seed)
    print(dict(sorted(seen.items())))
    assert sum(seen.values()) == n_files
    for mutate in {*DAMAGE, *FORGERY}:  # each kind has been tried, and the deep checks have been reached
        assert sum(count for (name, _), count in seen.items() if name == mutate.__name__) >= n_files / 40
    assert seen["forge_data", "predicts"] > n_files / 100 and seen["forge_header", "refused"] > n_files / 20


def test_a_window_that_reaches_far_is_refused(tmp_path):
    whole, X = texts(tmp_path)[0]
    header, data = split(whole)
    state = json.loads(header["__metadata__"]["features"])
    window = next(part for part in state["state"]["$tuple"][1]["features"] if part["kind"] == "Window")
    window["offsets"][-1] = 2**31  # as many windows as before, so that nothing else is amiss
    header["__metadata__"]["features"] = json.dumps(state)
    path = tmp_path / "forged"
    path.write_bytes(sign(header, data))
    with little_memory(), pytest.raises(ValueError):
        load(path).predict(X)


def test_signing_an_unchanged_file_gives_the_same_file(tmp_path):
    for whole, _ in chains(tmp_path) + texts(tmp_path):
        assert sign(*split(whole)) == whole
