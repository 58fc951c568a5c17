"""The datasets that ship: what their descriptions say is so, and the files are those that the tools write."""

from __future__ import annotations

import doctest
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tools.small_data import garden, recipes
from tools.small_data.__main__ import main

from maxmargin.datasets import (
    load_bitext,
    load_garden,
    load_houses,
    load_leaves,
    load_nbest,
    load_recipes,
    load_sentences,
    small,
)

LOADERS = [load_bitext, load_garden, load_houses, load_leaves, load_nbest, load_recipes, load_sentences]


@pytest.mark.parametrize("loader", LOADERS, ids=lambda loader: loader.__name__)
def test_bunches_have_data_target_files_and_a_description(loader):
    bunch = loader()
    columns = bunch.data.values() if isinstance(bunch.data, dict) else [bunch.data]
    assert {len(bunch.target)} == {len(column) for column in columns}
    assert loader.__doc__.split("\n")[0] in bunch.DESCR
    files = bunch.get("filenames", [bunch["filename"]] if "filename" in bunch else [])
    assert files or loader is load_houses  # which are made on the spot
    assert all(Path(path).is_file() for path in files)


def test_houses_are_always_the_same_and_doors_tell():
    bunch, again = load_houses(), load_houses()
    assert bunch.target == again.target and np.array_equal(bunch.data[7]["node"], again.data[7]["node"])
    assert len(bunch.data) == 120 and {graph["node"].shape for graph in bunch.data} == {(8, 4)}
    following = [pair for kinds in bunch.target for pair in pairwise(kinds)]
    kitchens = [after for before, after in following if before == "kitchen"]
    assert kitchens.count("hall") > 0.7 * len(kitchens)


def test_they_are_small():
    assert sum(path.stat().st_size for path in small.FOLDER.iterdir()) < 200_000


def test_the_examples_of_their_descriptions_are_true():
    assert doctest.testmod(small).failed == 0


def test_the_files_are_those_that_the_tools_write(tmp_path):
    main(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in small.FOLDER.iterdir()}
    for path in tmp_path.iterdir():
        if path.suffix != ".npz":  # numpy may draw other numbers some day
            assert path.read_text(encoding="utf-8") == (small.FOLDER / path.name).read_text(encoding="utf-8"), path.name


def test_sentences():
    from maxmargin.metrics import spans

    bunch = load_sentences()
    for words, tags, entities in zip(bunch.data, bunch.target, bunch.entities, strict=True):
        assert len(words) == len(tags) == len(entities)
        for before, label in zip(["O", *entities], entities, strict=False):
            assert not label.startswith("I-") or before[1:] == label[1:]
    kinds = {span.type for entities in bunch.entities for span in spans(entities)}
    assert kinds == {"PER", "LOC", "ORG"}
    both = {
        tag: {
            w for ws, ts in zip(bunch.data, bunch.target, strict=True) for w, t in zip(ws, ts, strict=True) if t == tag
        }
        for tag in ("NOUN", "VERB")
    }
    assert {"plans", "walks", "fish"} <= both["NOUN"] & both["VERB"]


def test_recipes_follow_their_rules():
    bunch = load_recipes()
    vegan, vegetarian, meat = (bunch.target_names.index("vegan"), bunch.target_names.index("vegetarian"), recipes.MEAT)
    assert not np.any(bunch.target[:, vegan] > bunch.target[:, vegetarian])
    columns = [bunch.feature_names.index(name) for name in sorted(meat)]
    assert not np.any(bunch.data[:, columns].any(axis=1) & (bunch.target[:, vegetarian] == 1))


def test_the_garden_is_drawn_from_its_network():
    """The file has the tables of the tools, and frequencies are near them (chi-squared, three standard errors)."""
    from maxmargin.persistence import read_bif

    bunch = load_garden()
    network = read_bif(bunch.network)
    assert list(network.states) == list(bunch.data) == list(garden.STATES)
    assert None not in bunch.data["plant"]
    share = np.mean([value is None for name, column in bunch.data.items() for value in column if name != "plant"])
    assert 0.07 < share < 0.13
    rain, season = bunch.data["rain"], bunch.data["season"]
    for k, name in enumerate(garden.STATES["season"]):
        seen = [value == "yes" for value, when in zip(rain, season, strict=True) if when == name and value]
        p = network.tables["rain"][k][1]
        assert abs(np.mean(seen) - p) < 3 * np.sqrt(p * (1 - p) / len(seen))


def test_links_are_inside_their_sentences():
    bunch = load_bitext()
    for (left, right), links in zip(bunch.data, bunch.target, strict=True):
        assert all(0 <= i < len(left) and 0 <= j < len(right) for i, j in links.sure | links.possible)
        assert {i for i, _ in links.sure} == set(range(len(left)))  # every French word means something


def test_references_are_in_their_lists():
    bunch = load_nbest()
    for lattice, reference, scores in zip(bunch.data, bunch.target, bunch.scores, strict=True):
        assert reference in set(lattice.words)
        assert list(scores) == sorted(scores, reverse=True)
