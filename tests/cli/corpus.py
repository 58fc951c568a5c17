"""A tiny corpus of spans: capitalised words are names, and what follows them belongs to the name."""

from __future__ import annotations

import random

TEMPLATE = "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nU02:%x[0,1]\nB\n"
WORDS = {
    "O": [("the", "D"), ("ran", "V"), ("saw", "V"), ("of", "P")],
    "B-PER": [("Ann", "N"), ("Bob", "N")],
    "I-PER": [("Smith", "N"), ("Jones", "N")],
    "B-LOC": [("Paris", "N"), ("Rome", "N")],
}


def sentences(n, seed=0):
    """Sentences of (word, part of speech, label)."""
    rng = random.Random(seed)
    made = []
    for _ in range(n):
        labels: list[str] = []
        while len(labels) < 5:
            labels += rng.choice([["O"], ["O", "O"], ["B-PER"], ["B-PER", "I-PER"], ["B-LOC"]])
        made.append([(*rng.choice(WORDS[label]), label) for label in labels])
    return made


def text(made, joint=" ", columns=(0, 1, 2)):
    return "".join("".join(joint.join(row[c] for c in columns) + "\n" for row in rows) + "\n" for rows in made)
