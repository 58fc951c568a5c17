"""English sentences from a small grammar, with parts of speech and named entities.

Many words are ambiguous on purpose: *plans*, *walks* and *fish* are nouns and verbs, *can* is a noun and an auxiliary,
*Paris*, *Florence* and *Jordan* are people and places. Only the words around them tell.
"""

from __future__ import annotations

import random
from pathlib import Path

Token = tuple[str, str, str]  # word, part of speech, entity

FIRST = "Anna Paul Maria Florence Paris Jordan Tom Lena Ruth Omar Ingrid Georgia Hugo Nina".split()
LAST = "Miller Berger Okafor Lindqvist Woods Fisher Moreau Tanaka Rivers Silva".split()
PLACES = ["Lisbon", "Oslo", "Paris", "Florence", "Jordan", "Georgia", "New Haven", "Port Louis", "Vienna", "Cape Town"]
COMPANIES = ["Rivers & Woods", "Miller Tools", "Nordlight", "Blue Harbour", "Tanaka Steel"]

PEOPLE = "teacher gardener cook painter doctor farmer guard driver baker neighbour".split()
PLURAL_PEOPLE = "teachers gardeners cooks painters children farmers guards drivers bakers neighbours".split()
THINGS = "book plan walk fish light can watch train paint park drink boat letter house garden table bridge".split()
PLURAL_THINGS = "books plans walks lights cans watches trains paints parks drinks boats letters houses".split()
ADJECTIVES = "old small green light quiet heavy new late open blue warm careful".split()
DETERMINERS = "the a this her his every".split()
PREPOSITIONS = "in near behind with under after for".split()
ADVERBS = "often slowly never still carefully rarely".split()
AUXILIARIES = "can will must may should".split()
BASE = "book plan walk fish light watch train paint park drink open clean find cook leave guard".split()
THIRD = "books plans walks fishes lights watches trains paints parks drinks opens cleans finds cooks guards".split()
PAST = "saw left found opened cleaned painted watched drank carried sold".split()
STATES = "is was seems stays".split()


def sentence(rng: random.Random) -> list[Token]:
    """One sentence."""
    subject, plural = _subject(rng)
    kind = rng.random()
    if kind < 0.3:
        verb = [_token(rng, BASE if plural else THIRD, "VERB"), *_object(rng)]
    elif kind < 0.55:
        verb = [_token(rng, AUXILIARIES, "AUX")]
        verb += [("not", "PART", "O")] if rng.random() < 0.3 else []
        verb += [_token(rng, BASE, "VERB"), *_object(rng)]
    elif kind < 0.85:
        verb = [_token(rng, PAST, "VERB"), *_object(rng)]
    else:
        state = ("are", "AUX", "O") if plural else _token(rng, STATES, "AUX")
        verb = [state, _token(rng, ADJECTIVES, "ADJ")]
    if rng.random() < 0.25:
        verb = [_token(rng, ADVERBS, "ADV"), *verb]
    words = [*subject, *verb]
    if rng.random() < 0.5:
        words = [*words, *_place(rng)]
    elif rng.random() < 0.3:
        words = [*_place(rng), (",", "PUNCT", "O"), *words]
    first, *rest = [_an(token, after) for token, after in zip(words, [*words[1:], words[-1]], strict=True)]
    capital = (first[0][0].upper() + first[0][1:], *first[1:])
    return [capital, *rest, (".", "PUNCT", "O")]


def _an(token: Token, after: Token) -> Token:
    return ("an", *token[1:]) if token[0] == "a" and after[0][0] in "aeiou" else token


def _token(rng: random.Random, words: list[str], tag: str) -> Token:
    return rng.choice(words), tag, "O"


def _entity(name: str, kind: str) -> list[Token]:
    words = name.split()
    return [(word, "PUNCT" if word == "&" else "PROPN", f"{'I' if i else 'B'}-{kind}") for i, word in enumerate(words)]


def _person(rng: random.Random) -> list[Token]:
    name = rng.choice(FIRST) if rng.random() < 0.5 else f"{rng.choice(FIRST)} {rng.choice(LAST)}"
    return _entity(name, "PER")


def _subject(rng: random.Random) -> tuple[list[Token], bool]:
    kind = rng.random()
    if kind < 0.3:
        return _person(rng), False
    if kind < 0.4:
        return _entity(rng.choice(COMPANIES), "ORG"), False
    if kind < 0.5:
        return [(rng.choice(("she", "he")), "PRON", "O")], False
    plural = rng.random() < 0.5
    noun = _token(rng, PLURAL_PEOPLE if plural else PEOPLE, "NOUN")
    return [_determiner(rng, plural), *_adjective(rng), noun], plural


def _object(rng: random.Random) -> list[Token]:
    kind = rng.random()
    if kind < 0.15:
        return _person(rng)
    if kind < 0.25:
        return [(rng.choice(("it", "them", "her")), "PRON", "O")]
    plural = rng.random() < 0.35
    noun = _token(rng, PLURAL_THINGS if plural else THINGS, "NOUN")
    return [_determiner(rng, plural), *_adjective(rng), noun]


def _determiner(rng: random.Random, plural: bool) -> Token:
    return _token(rng, ["the", "her", "his", "some"] if plural else DETERMINERS, "DET")


def _adjective(rng: random.Random) -> list[Token]:
    return [_token(rng, ADJECTIVES, "ADJ")] if rng.random() < 0.35 else []


def _place(rng: random.Random) -> list[Token]:
    if rng.random() < 0.5:
        return [(rng.choice(("in", "near")), "ADP", "O"), *_entity(rng.choice(PLACES), "LOC")]
    return [_token(rng, PREPOSITIONS, "ADP"), _determiner(rng, False), *_adjective(rng), _token(rng, THINGS, "NOUN")]


def write(folder: Path) -> None:
    """``sentences.txt``: word, part of speech and entity of each token, a blank line after each sentence."""
    rng = random.Random(1)
    found = [sentence(rng) for _ in range(400)]
    text = "\n".join("".join(f"{' '.join(token)}\n" for token in tokens) for tokens in found) + "\n"
    (folder / "sentences.txt").write_text(text, encoding="utf-8")
