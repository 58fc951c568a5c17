"""Tagged sentences for many files."""

import numpy as np


def tagged_sentences(seed=0):
    """90 sentences of words and tags, and their labels; the label "rare" is in the last one only."""
    rng = np.random.default_rng(seed)
    X = [[(f"w{rng.zipf(1.6)}", f"t{rng.integers(3)}") for _ in range(rng.integers(1, 9))] for _ in range(90)]
    Y = [[f"L{tag[1:]}" for _, tag in sentence] for sentence in X]
    Y[-1][0] = "rare"
    return X, Y


def as_text(X, Y):
    """The columns of a file: word, tag and label."""
    sentences = ("".join(f"{w} {t} {y}\n" for (w, t), y in zip(x, ys, strict=True)) for x, ys in zip(X, Y, strict=True))
    return "".join(text + "\n" for text in sentences)
