"""The lowest versions that pyproject.toml declares, as a constraints file for pip.

Usage::

    python tools/lowest.py > constraints.txt

Every requirement ``name>=version`` of the package and of its extras becomes ``name==version``, so the file cannot fall
behind what is declared. A requirement without a lower bound is an error: nobody could have tried it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from itertools import chain
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
BOUND = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*>=\s*(?P<version>[0-9][0-9.]*)")


def lowest(pyproject: Path = PYPROJECT) -> dict[str, str]:
    """Lowest version by name; a package that is required twice must have the same bound in both places."""
    project = tomllib.loads(pyproject.read_text())["project"]
    versions: dict[str, str] = {}
    for requirement in chain(project["dependencies"], *project["optional-dependencies"].values()):
        found = BOUND.match(requirement)
        if found is None:
            raise SystemExit(f"{requirement!r} has no lower bound; add the lowest version that passes the tests")
        name, version = found["name"], found["version"]
        if versions.setdefault(name, version) != version:
            raise SystemExit(f"{name} is required from {versions[name]} and from {version}; choose one")
    return versions


if __name__ == "__main__":
    sys.stdout.writelines(f"{name}=={version}\n" for name, version in sorted(lowest().items()))
