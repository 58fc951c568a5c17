"""Small datasets that ship with the package, as scikit-learn bunches: no download, and enough for a first try.

All were made for this library by ``tools/small_data`` (grammars, rules and random numbers), and have its licence. Each
bunch holds the path of its file, in a format that the command line reads too; houses are made when they are asked for.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sklearn.utils import Bunch

__all__ = ["load_bitext", "load_garden", "load_houses", "load_leaves", "load_nbest", "load_recipes", "load_sentences"]

FOLDER = Path(__file__).parent / "data"
ROOMS = ("hall", "kitchen", "bath", "bedroom")
DOORS = ((0.1, 0.4, 0.1, 0.4), (0.8, 0.1, 0.05, 0.05), (0.1, 0.05, 0.05, 0.8), (0.5, 0.05, 0.4, 0.05))  # to the next


def load_sentences() -> Bunch:
    """English sentences with parts of speech and named entities, for :class:`~maxmargin.SequenceTagger`.

    400 sentences from a small grammar in which many words are ambiguous: *plans*, *walks* and *fish* are nouns and
    verbs, *Paris*, *Florence* and *Jordan* are people and places.

    Returns
    -------
    Bunch with
        ``data``, the words of each sentence; ``target``, their parts of speech; ``entities``, labels such as ``B-PER``,
        ``I-PER`` and ``O`` of people, places and companies; ``filename``; ``DESCR``.

    Examples
    --------
    >>> from maxmargin.datasets import load_sentences
    >>> sentences = load_sentences()
    >>> list(zip(sentences.data[0], sentences.target[0]))[:3]
    [('Hugo', 'PROPN'), ('Berger', 'PROPN'), ('paints', 'VERB')]
    """
    from maxmargin.datasets.columns import read_columns

    path = FOLDER / "sentences.txt"
    tokens = read_columns(path)
    words, tags, entities = ([[token[k] for token in sentence] for sentence in tokens] for k in range(3))
    return _bunch(load_sentences, data=words, target=tags, entities=entities, filename=str(path))


def load_recipes() -> Bunch:
    """Ingredients of recipes and what a cookbook prints on them, for :class:`~maxmargin.MultilabelClassifier`.

    240 recipes, 34 ingredients and 7 labels, of which ``vegan`` implies ``vegetarian``. Labels follow from the
    ingredients by rules; one label in twenty is forgotten.

    Returns
    -------
    Bunch with
        ``data`` (240, 34), 1 where a recipe takes an ingredient; ``target`` (240, 7), 1 where it has a label;
        ``feature_names``, the ingredients; ``target_names``, the labels; ``hierarchy``, label to the one above it;
        ``filename``; ``DESCR``.

    Examples
    --------
    >>> from maxmargin.datasets import load_recipes
    >>> recipes = load_recipes()
    >>> [name for name, on in zip(recipes.target_names, recipes.target[0]) if on]
    ['vegetarian', 'vegan', 'gluten-free', 'spicy']
    """
    from maxmargin.datasets.label_csv import read_label_csv

    path = FOLDER / "recipes.csv"
    read = read_label_csv(path, -7)
    return _bunch(
        load_recipes,
        data=np.asarray(read.X),
        target=read.Y,
        feature_names=read.feature_names,
        target_names=read.label_names,
        hierarchy={"vegan": "vegetarian"},
        filename=str(path),
    )


def load_leaves() -> Bunch:
    """Small pictures of leaves on the ground, for :class:`~maxmargin.ImageSegmenter`.

    20 drawn pictures of 28 x 28 pixels. Colours vary so much from pixel to pixel that single pixels are often misread.

    Returns
    -------
    Bunch with
        ``data``, arrays (28, 28, 3) of red, green and blue from 0 to 1; ``target``, masks (28, 28), 1 for leaf;
        ``filename``; ``DESCR``.

    Examples
    --------
    >>> from maxmargin.datasets import load_leaves
    >>> leaves = load_leaves()
    >>> leaves.data[0].shape, leaves.target[0].shape
    ((28, 28, 3), (28, 28))
    """
    path = FOLDER / "leaves.npz"
    with np.load(path) as file:
        images, masks = [*(file["images"] / 255.0)], [*file["masks"].astype(np.int64)]
    return _bunch(load_leaves, data=images, target=masks, filename=str(path))


def load_garden() -> Bunch:
    """A Bayesian network of a garden and observations of it, for :class:`~maxmargin.DiscriminativeBayesNet`.

    400 rows drawn from a network of seven variables. One value in ten is missing (None), but never that of ``plant``,
    the variable to predict.

    Returns
    -------
    Bunch with
        ``data``, the columns by name, ``plant`` among them; ``target``, the column of ``plant``; ``target_name``;
        ``network``, the path of the network that they were drawn from, as a BIF file; ``filename``; ``DESCR``.

    Examples
    --------
    >>> from maxmargin.datasets import load_garden
    >>> garden = load_garden()
    >>> {name: column[0] for name, column in garden.data.items() if name in ("season", "soil", "plant")}
    {'season': 'spring', 'soil': 'dry', 'plant': 'thirsty'}
    """
    path = FOLDER / "garden.csv"
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    columns = {name: [row[k] or None for row in rows] for k, name in enumerate(names)}
    network = str(FOLDER / "garden.bif")
    return _bunch(
        load_garden,
        data=columns,
        target=columns["plant"],
        target_name="plant",
        network=network,
        filename=str(path),
    )


def load_houses() -> Bunch:
    """Houses whose rooms are to be recognised, for :class:`~maxmargin.GraphLabeler`.

    120 houses of 8 rooms in a circle, with a door from each to the next. The features of a room, one number for each
    kind, say little by themselves; which kinds have doors to each other says more. Made by random numbers, always the
    same.

    Returns
    -------
    Bunch with
        ``data``, graphs: mappings with ``node`` (8, 4) and ``edges`` (8, 2); ``target``, the kind of each room;
        ``target_names``, the kinds; ``DESCR``.

    Examples
    --------
    >>> from maxmargin.datasets import load_houses
    >>> houses = load_houses()
    >>> houses.data[0]["node"].shape, houses.target_names
    ((8, 4), ['hall', 'kitchen', 'bath', 'bedroom'])
    """
    rng, n = np.random.default_rng(0), 8
    edges = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    data, target = [], []
    for _ in range(120):
        kinds = [int(rng.integers(len(ROOMS)))]
        while len(kinds) < n:
            kinds.append(int(rng.choice(len(ROOMS), p=DOORS[kinds[-1]])))
        data.append({"node": np.eye(len(ROOMS))[kinds] + rng.normal(0, 0.6, (n, len(ROOMS))), "edges": edges})
        target.append([ROOMS[kind] for kind in kinds])
    return _bunch(load_houses, data=data, target=target, target_names=list(ROOMS))


def load_bitext() -> Bunch:
    """French sentences and their English translations, some with links, for :class:`~maxmargin.Aligner`.

    60 pairs with links between words, and 240 without. Adjectives change places, negations take two words for one
    (*ne ... pas*, not), contractions one for two (*au*, at the).

    Returns
    -------
    Bunch with
        ``data``, 60 pairs of lists of words; ``target``, their :class:`~maxmargin.Links`; ``bitext``, the 240 other
        pairs; ``filenames``, the two sides and the links; ``DESCR``.

    Examples
    --------
    >>> from maxmargin.datasets import load_bitext
    >>> pairs = load_bitext()
    >>> pairs.data[0]
    (['le', 'garçon', 'vend', 'la', 'petite', 'voiture'], ['the', 'boy', 'sells', 'the', 'small', 'car'])
    >>> str(pairs.target[0])
    '0-0 1-1 2-2 3-3 4-4 5-5'
    """
    from maxmargin.datasets.bitext import read_bitext, read_links

    names = [str(FOLDER / f"aligned.{end}") for end in ("french", "english", "links")]
    bitext = read_bitext(FOLDER / "bitext.french", FOLDER / "bitext.english")
    left, right, links = names
    return _bunch(load_bitext, data=read_bitext(left, right), target=read_links(links), bitext=bitext, filenames=names)


def load_nbest() -> Bunch:
    """Lists of translations to choose from, and the right ones, for :class:`~maxmargin.LatticeRanker`.

    60 lists of 8 hypotheses in the format of Moses, with four features: a language model, a translation model, how far
    words have moved, and how many words there are. The made-up system that wrote them trusts the wrong ones.

    Returns
    -------
    Bunch with
        ``data``, a :class:`~maxmargin.Lattice` for each list; ``target``, the references; ``source``, the French
        sentences; ``scores``, those of the system; ``filename``; ``DESCR``.

    Examples
    --------
    >>> from maxmargin.datasets import load_nbest
    >>> lists = load_nbest()
    >>> lists.source[0], lists.target[0]
    ('il peint le chat bleu', 'he paints the blue cat')
    """
    from maxmargin.datasets.lattice_files import read_nbest

    path = FOLDER / "nbest.txt"
    lists = read_nbest(path)
    source, references = (
        (FOLDER / f"nbest.{end}").read_text(encoding="utf-8").splitlines() for end in ("french", "references")
    )
    return _bunch(
        load_nbest, data=lists.lattices, target=references, source=source, scores=lists.scores, filename=str(path)
    )


def _bunch(loader: object, **content: object) -> Bunch:
    """The content with the loader's docstring as its description."""
    import inspect

    from sklearn.utils import Bunch

    return Bunch(**content, DESCR=inspect.getdoc(loader))
