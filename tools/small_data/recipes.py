"""Recipes: which ingredients they take, and which labels a cookbook would print on them.

Labels follow from ingredients by rules, with slips: one label in twenty is forgotten. ``vegan`` implies ``vegetarian``.
"""

from __future__ import annotations

import random
from pathlib import Path

DISHES = {  # what a dish always takes, and what it may take
    "soup": ("onion stock", "carrot leek potato lentils cream chilli ginger coconut chicken beef basil noodles"),
    "curry": ("onion chilli ginger rice", "coconut chicken lentils tofu spinach yoghurt beef carrot fish"),
    "pasta": ("noodles garlic", "tomato cream basil cheese bacon mushrooms spinach fish chilli lentils"),
    "salad": ("oil lemon", "tomato cheese lentils egg tofu carrot spinach fish chicken basil apple honey"),
    "cake": ("flour sugar", "egg butter cream apple chocolate lemon honey oil ginger carrot coconut"),
    "pudding": ("sugar", "rice cream egg chocolate coconut apple honey butter lemon ginger flour"),
    "stew": ("onion potato", "beef chicken bacon carrot lentils tomato mushrooms beer chilli garlic tofu"),
    "pancakes": ("flour", "egg butter honey apple cheese mushrooms bacon sugar oil coconut spinach"),
}
MEAT = {"chicken", "beef", "bacon", "fish"}
ANIMAL = MEAT | {"cream", "yoghurt", "cheese", "egg", "butter", "honey"}
GLUTEN = {"noodles", "flour", "beer"}
SWEET = {"sugar", "honey", "chocolate", "apple"}
LABELS = ["vegetarian", "vegan", "gluten-free", "dessert", "spicy", "main course", "for children"]


def labels(dish: str, ingredients: set[str]) -> set[str]:
    """What the rules say."""
    found = set()
    if not ingredients & MEAT:
        found.add("vegetarian")
    if not ingredients & ANIMAL:
        found.add("vegan")
    if not ingredients & GLUTEN:
        found.add("gluten-free")
    if dish in ("cake", "pudding") or (dish == "pancakes" and ingredients & SWEET):
        found.add("dessert")
    if len(ingredients & {"chilli", "ginger"}) == 2 or (dish in ("stew", "pasta", "soup") and "chilli" in ingredients):
        found.add("spicy")
    if "dessert" not in found and ingredients & (MEAT | {"tofu", "lentils", "cheese"}) and dish != "salad":
        found.add("main course")
    if "spicy" not in found and "beer" not in ingredients and ("dessert" in found or "noodles" in ingredients):
        found.add("for children")
    return found


def write(folder: Path) -> None:
    """``recipes.csv``: 0 and 1 for each ingredient, then for each label; one recipe a line."""
    rng = random.Random(2)
    names = sorted({word for always, may in DISHES.values() for word in f"{always} {may}".split()})
    lines = [",".join([*names, *LABELS])]
    for _ in range(240):
        dish = rng.choice(list(DISHES))
        always, may = (part.split() for part in DISHES[dish])
        ingredients = {*always, *rng.sample(may, rng.choice((2, 3, 3, 4)))}
        found = {label for label in sorted(labels(dish, ingredients)) if rng.random() > 0.05}
        found |= {"vegetarian"} if "vegan" in found else set()
        lines.append(
            ",".join([*(str(int(n in ingredients)) for n in names), *(str(int(name in found)) for name in LABELS)])
        )
    (folder / "recipes.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
