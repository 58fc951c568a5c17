"""Segmenters in model files: `load` finds the kind by itself; damaged and forged files are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maxmargin import ImageSegmenter, load
from maxmargin.features.images import ImageFeatures
from persistence.test_fuzz_model_file import sign, split, truncate


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
    header, data = split(whole)
    for part, value, words in [
        ("parameters", {"depth": 3}, "no parameter 'depth'"),
        ("layout", {"rows": 3}, "s cannot be loaded"),
        ("training", {}, "'certificate' is missing"),
    ]:
        forged = {**header, "__metadata__": {**header["__metadata__"], part: json.dumps(value)}}
        path.write_bytes(sign(forged, data))
        with pytest.raises(ValueError, match=words):
            load(path)
