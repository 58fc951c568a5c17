"""A Bayesian network of a garden, and observations drawn from it."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

STATES = {
    "season": ["spring", "summer", "autumn", "winter"],
    "rain": ["no", "yes"],
    "sun": ["weak", "strong"],
    "sprinkler": ["off", "on"],
    "soil": ["dry", "moist", "wet"],
    "pests": ["no", "yes"],
    "plant": ["healthy", "thirsty", "rotten", "eaten"],
}
PARENTS: dict[str, list[str]] = {
    "season": [],
    "rain": ["season"],
    "sun": ["season", "rain"],
    "sprinkler": ["rain"],
    "soil": ["rain", "sun", "sprinkler"],
    "pests": ["season"],
    "plant": ["soil", "pests"],
}


def distribution(name: str, given: dict[str, str]) -> list[float]:
    """Probabilities of the states of a variable, given those of its parents."""
    if name == "season":
        return [0.25] * 4
    if name == "rain":
        p = {"spring": 0.4, "summer": 0.2, "autumn": 0.5, "winter": 0.6}[given["season"]]
        return [1 - p, p]
    if name == "sun":
        p = {"spring": 0.5, "summer": 0.8, "autumn": 0.4, "winter": 0.2}[given["season"]]
        p = p / 2 if given["rain"] == "yes" else p
        return [1 - p, p]
    if name == "sprinkler":
        return [0.9, 0.1] if given["rain"] == "yes" else [0.5, 0.5]
    if name == "soil":
        water = (given["rain"] == "yes") + (given["sprinkler"] == "on")
        if given["sun"] == "strong":
            return [[0.9, 0.09, 0.01], [0.3, 0.6, 0.1], [0.05, 0.55, 0.4]][water]
        return [[0.6, 0.35, 0.05], [0.1, 0.6, 0.3], [0.02, 0.28, 0.7]][water]
    if name == "pests":
        p = {"spring": 0.3, "summer": 0.4, "autumn": 0.15, "winter": 0.02}[given["season"]]
        return [1 - p, p]
    free = {"dry": [0.25, 0.7, 0.02], "moist": [0.9, 0.05, 0.05], "wet": [0.4, 0.02, 0.58]}[given["soil"]]
    if given["pests"] == "yes":
        return [round(0.4 * p, 4) for p in free] + [round(1 - 0.4 * sum(free), 4)]
    return [*free, round(1 - sum(free), 4)]


def bif() -> str:
    """The network in the BIF format."""
    lines = ["network garden {", "}"]
    for name, states in STATES.items():
        lines += [f"variable {name} {{", f"  type discrete [ {len(states)} ] {{ {', '.join(states)} }};", "}"]
    for name, parents in PARENTS.items():
        lines.append(f"probability ( {name}{' | ' + ', '.join(parents) if parents else ''} ) {{")
        for values in product(*(STATES[parent] for parent in parents)):
            row = ", ".join(f"{p:.4f}" for p in distribution(name, dict(zip(parents, values, strict=True))))
            lines.append(f"  {'(' + ', '.join(values) + ')' if parents else 'table'} {row};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def write(folder: Path) -> None:
    """``garden.bif``, and ``garden.csv``: 400 observations; one value in ten is missing, never the plant."""
    rng = random.Random(4)
    lines = [",".join(STATES)]
    for _ in range(400):
        row: dict[str, str] = {}
        for name in STATES:
            given = {parent: row[parent] for parent in PARENTS[name]}
            row[name] = rng.choices(STATES[name], distribution(name, given))[0]
        shown = {name: value for name, value in row.items() if name == "plant" or rng.random() > 0.1}
        lines.append(",".join(shown.get(name, "") for name in STATES))
    (folder / "garden.bif").write_text(bif(), encoding="utf-8")
    (folder / "garden.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
