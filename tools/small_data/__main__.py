"""Write all small datasets into the package: ``python -m tools.small_data [folder]``."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.small_data import garden, leaves, recipes, sentences, translations

PACKAGE = Path(__file__).parents[2] / "src" / "maxmargin" / "datasets" / "data"


def main(folder: Path = PACKAGE) -> None:
    """Write every file; the same files each time."""
    folder.mkdir(parents=True, exist_ok=True)
    for writer in (sentences, recipes, leaves, garden, translations):
        writer.write(folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
