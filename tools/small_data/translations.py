"""French sentences with their English translations, word by word, and n-best lists of a made-up translation system.

Adjectives change places (*la maison bleue*, the blue house), negations take two words for one (*ne ... pas*, not),
contractions one for two (*au marché*, to the market).
"""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path
from typing import NamedTuple

NOUNS = {  # French, English, gender
    "maison": ("house", "f"), "fleur": ("flower", "f"), "voiture": ("car", "f"), "porte": ("door", "f"),
    "lettre": ("letter", "f"), "pomme": ("apple", "f"), "livre": ("book", "m"), "jardin": ("garden", "m"),
    "chien": ("dog", "m"), "chat": ("cat", "m"), "pain": ("bread", "m"), "bateau": ("boat", "m"),
}  # fmt: skip
PEOPLE = {"femme": ("woman", "f"), "fille": ("girl", "f"), "garçon": ("boy", "m"), "voisin": ("neighbour", "m")}
AFTER = {"bleu": ("bleue", "blue"), "vert": ("verte", "green"), "noir": ("noire", "black"), "neuf": ("neuve", "new")}
BEFORE = {"petit": ("petite", "small"), "grand": ("grande", "big"), "vieux": ("vieille", "old")}
VERBS = {  # French, English third person, English infinitive
    "voit": ("sees", "see"), "cherche": ("seeks", "seek"), "trouve": ("finds", "find"), "vend": ("sells", "sell"),
    "porte": ("carries", "carry"), "garde": ("keeps", "keep"), "aime": ("loves", "love"), "peint": ("paints", "paint"),
}  # fmt: skip
PLACES = {"marché": "market", "parc": "park", "port": "harbour", "village": "village"}
PERSONS = {"il": "he", "elle": "she", "Marie": "Marie", "Paul": "Paul"}


class Piece(NamedTuple):
    """Words on both sides, and their links from the start of the piece."""

    french: list[str]
    english: list[str]
    links: list[tuple[int, int, str]]  # with - or ?

    def __add__(self, other: Piece) -> Piece:  # type: ignore[override]
        i, j = len(self.french), len(self.english)
        moved = [(a + i, b + j, mark) for a, b, mark in other.links]
        return Piece(self.french + other.french, self.english + other.english, self.links + moved)


def with_an(piece: Piece) -> Piece:
    """The piece with "an" where English says so."""
    after = [*piece.english[1:], ""]
    both = zip(piece.english, after, strict=True)
    return piece._replace(english=["an" if word == "a" and next_[:1] in set("aeiou") else word for word, next_ in both])


def noun_phrase(rng: random.Random, nouns: dict[str, tuple[str, str]]) -> Piece:
    """An article and a noun, perhaps with an adjective before or after it."""
    noun = rng.choice(list(nouns))
    english, gender = nouns[noun]
    article = rng.choice((("la", "the"), ("une", "a")) if gender == "f" else (("le", "the"), ("un", "a")))
    start = Piece([article[0]], [article[1]], [(0, 0, "-")])
    kind = rng.random()
    if kind < 0.3 and nouns is not PEOPLE:
        masculine, (feminine, adjective) = rng.choice(list(AFTER.items()))
        french = feminine if gender == "f" else masculine
        return start + Piece([noun, french], [adjective, english], [(0, 1, "-"), (1, 0, "-")])
    if kind < 0.5:
        masculine, (feminine, adjective) = rng.choice(list(BEFORE.items()))
        french = feminine if gender == "f" else masculine
        start = start + Piece([french], [adjective], [(0, 0, "-")])
    return start + Piece([noun], [english], [(0, 0, "-")])


def sentence(rng: random.Random) -> Piece:
    """A subject, a verb, an object, perhaps a place."""
    if rng.random() < 0.5:
        who = rng.choice(list(PERSONS))
        subject = Piece([who], [PERSONS[who]], [(0, 0, "-")])
    else:
        subject = noun_phrase(rng, PEOPLE)
    verb = rng.choice(list(VERBS))
    third, base = VERBS[verb]
    if rng.random() < 0.35:
        links = [(0, 1, "-"), (2, 1, "-"), (1, 2, "-"), (1, 0, "?")]
        middle = Piece(["ne", verb, "pas"], ["does", "not", base], links)
    else:
        middle = Piece([verb], [third], [(0, 0, "-")])
    found = subject + middle + noun_phrase(rng, NOUNS)
    if rng.random() < 0.35:
        place = rng.choice(list(PLACES))
        found += Piece(["au", place], ["at", "the", PLACES[place]], [(0, 0, "-"), (0, 1, "-"), (1, 2, "-")])
    return with_an(found)


def write_bitext(folder: Path, rng: random.Random) -> list[Piece]:
    """``aligned.*``: 60 pairs with links; ``bitext.*``: 240 without."""
    pieces = [sentence(rng) for _ in range(300)]
    for name, some in {"aligned": pieces[:60], "bitext": pieces[60:]}.items():
        for side in ("french", "english"):
            lines = (" ".join(piece.french if side == "french" else piece.english) for piece in some)
            (folder / f"{name}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    links = (" ".join(f"{i}{mark}{j}" for i, j, mark in sorted(piece.links)) for piece in pieces[:60])
    (folder / "aligned.links").write_text("\n".join(links) + "\n", encoding="utf-8")
    return pieces


MISTAKES = {"the": "a", "a": "the", "sees": "looks", "seeks": "searches", "house": "home", "does": "is", "at": "to"}


def spoiled(words: list[str], rng: random.Random) -> tuple[list[str], int]:
    """A worse translation, and how many words moved."""
    words, moved = list(words), 0
    for _ in range(rng.choice((1, 1, 2, 3))):
        at, kind = rng.randrange(len(words)), rng.random()
        if kind < 0.35 and at + 1 < len(words):
            words[at], words[at + 1] = words[at + 1], words[at]
            moved += 1
        elif kind < 0.6 and len(words) > 3:
            del words[at]
        elif kind < 0.75:
            words.insert(at, words[at])
        else:
            words[at] = MISTAKES.get(words[at], words[at])
    return words, moved


def steps(words: list[str]) -> list[tuple[str, str]]:
    """Each word with the one before it, from the start to the end of the sentence."""
    return list(zip(["<s>", *words], [*words, "</s>"], strict=True))


def write_nbest(folder: Path, pieces: list[Piece], rng: random.Random) -> None:
    """``nbest.txt``: lists of 60 sentences in the format of Moses; ``nbest.references`` and ``nbest.french`` beside."""
    pairs = Counter(pair for piece in pieces for pair in steps(piece.english))
    starts = Counter(a for a, _ in pairs.elements())
    lines, sources, references = [], [], []
    for number in range(60):
        piece = sentence(rng)
        outputs = {" ".join(piece.english): 0}
        while len(outputs) < 8:
            words, moved = spoiled(piece.english, rng)
            outputs.setdefault(" ".join(words), moved)
        scored = []
        for text, moved in outputs.items():
            words = text.split()
            chances = ((pairs[pair] + 0.05) / (starts[pair[0]] + 5) for pair in steps(words))
            lm = sum(map(math.log, chances)) + rng.gauss(0, 1.5)
            overlap = sum((Counter(words) & Counter(piece.english)).values())
            tm = 1.5 * overlap - 2.0 * len(words) + rng.gauss(0, 2.0)
            distance = 0.0 - moved - rng.choice((0, 0, 1))
            score = 0.1 * lm + 0.7 * tm + 0.2 * distance + 0.9 * len(words)
            features = f"lm: {lm:.2f} tm: {tm:.2f} d: {distance:.0f} w: {-len(words)}"
            scored.append((score, f"{number} ||| {text} ||| {features} ||| {score:.2f}"))
        lines += [line for _, line in sorted(scored, key=lambda pair: -pair[0])]
        sources.append(" ".join(piece.french))
        references.append(" ".join(piece.english))
    for name, rows in {"nbest.txt": lines, "nbest.french": sources, "nbest.references": references}.items():
        (folder / name).write_text("\n".join(rows) + "\n", encoding="utf-8")


def write(folder: Path) -> None:
    """The bitext and the n-best lists."""
    rng = random.Random(5)
    write_nbest(folder, write_bitext(folder, rng), rng)
