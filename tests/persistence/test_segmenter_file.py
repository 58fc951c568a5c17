"""Segmenters in model files: `load` finds the kind by itself; damaged and forged files are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maxmargin import ImageSegmenter, load
from maxmargin.features.images import ImageFeatures
from persistence.forging import forge, forge_tensor, plain
from persistence.test_fuzz_model_file import truncate


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    masks = [np.zeros((8, 9), int) for _ in range(3)]
    for i, mask in enumerate(masks):
        mask[1 + i : 5 + i, 2:7] = 1
    images = [mask[..., None] + rng.normal(scale=0.4, size=(8, 9, 3)) for mask in masks]
    return ImageSegmenter(features=ImageFeatures(mixture=1)).fit(images, masks), images


def test_load_finds_the_kind(fitted, tmp_path):
    segmenter, images = fitted
    loaded = load(segmenter.save(tmp_path / "s"))
    assert type(loaded) is ImageSegmenter and loaded.certificate_ == segmenter.certificate_
    for ours, theirs in zip(segmenter.predict(images), loaded.predict(images), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_damaged_and_forged(fitted, tmp_path):
    path = fitted[0].save(tmp_path / "s")
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for _ in range(30):
        path.write_bytes(truncate(whole, rng))
        with pytest.raises(ValueError, match="/s"):
            load(path)
    for part, change, words in [
        ("parameters", lambda f: f.update(depth=3), "no parameter 'depth'"),
        ("parameters", lambda f: f.update(neighbours=8), "weights are for 4 neighbours"),
        ("layout", lambda f: f.update(neighbours=5), "its 'neighbours' must be"),
        ("layout", lambda f: f.update(n_node=2**40), "its 'n_node' must be a whole number"),
        ("layout", lambda f: f.update(n_edge=99), "does not have one bit for each of"),
        ("layout", lambda f: f.update(class_cost=[1.0]), "its 'class_cost' is not a pair"),
        ("layout", lambda f: f.update(class_cost=[1.0, -1.0]), "its 'of foreground' must be a finite number"),
        ("layout", lambda f: f.update(width=0.0), "its 'width' must be"),
        ("training", lambda f: f.clear(), "'certificate' is missing"),
        ("training", lambda f: f["seconds"].update(total="long"), "the seconds are not all numbers"),
        ("features", lambda f: f.update(kind="TextFeatures"), "TextFeatures is not one for a GridLayout"),
        ("features", lambda f: f["state"]["$tuple"][1].update(largest_=-1.0), "largest_"),
        ("features", lambda f: f["state"]["$tuple"][1].update(n_channels_=2), "its limits_ are not numbers of shape"),
    ]:
        path.write_bytes(whole)
        with pytest.raises(ValueError, match=words):
            load(forge(path, part, change))


SPOILT = {"cut": lambda a: a[:-1], "nan": lambda a: a * np.nan, "sign": lambda a: -a - 2}


@pytest.mark.parametrize("name", ["steps_", "mean_", "scale_", "beta_", "place_", "limits_"])
@pytest.mark.parametrize("case", SPOILT)
def test_forged_features(fitted, tmp_path, name, case):
    path = fitted[0].save(tmp_path / "s")
    learned = json.loads(plain(path)[0]["features"])["state"]["$tuple"][1]
    forge_tensor(path, learned[name]["$array"], SPOILT[case])
    if (name, case) in {("mean_", "sign"), ("place_", "cut")}:  # any finite mean, and any map, may have been learned
        load(path)
        return
    with pytest.raises(ValueError, match=r"s cannot be loaded: its "):
        load(path)


@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize("spoil", [lambda a: a[:0], lambda a: a * np.nan], ids=["cut", "nan"])
def test_forged_mixtures(fitted, tmp_path, part, spoil):
    path = fitted[0].save(tmp_path / "s")
    learned = json.loads(plain(path)[0]["features"])["state"]["$tuple"][1]
    forge_tensor(path, learned["mixtures_"][1][0]["$tuple"][part]["$array"], spoil)
    with pytest.raises(ValueError, match="s cannot be loaded: a mixture of its mixtures_"):
        load(path)


@pytest.mark.parametrize(("value", "words"), [(np.nan, "NaN or infinite"), (-0.1, "weights of edges are negative")])
def test_forged_weights(fitted, tmp_path, value, words):
    segmenter, _ = fitted
    path = segmenter.save(tmp_path / "s")

    def change(values: np.ndarray) -> np.ndarray:
        values[-1] = value
        return values

    segmenter = load(path)
    assert segmenter.edge_coef_.any()  # the last number stored is that of an edge
    with pytest.raises(ValueError, match=words):
        load(forge_tensor(path, "weights", change))
    segmenter.weights_[-1] = value
    with pytest.raises(ValueError, match=words):
        segmenter.save(tmp_path / "t")
