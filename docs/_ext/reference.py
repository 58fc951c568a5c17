"""Pages of the reference, written from ``__all__`` of every public package before the build: nothing can be missing."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

PACKAGES = {  # name: heading and first sentence
    "maxmargin": ("Estimators and all names of the package", "What `import maxmargin` offers."),
    "maxmargin.estimators": ("More about estimators", "Paths of C, strokes, tables of weights."),
    "maxmargin.datasets": ("Datasets", "Data that ship, loaders of public data, generators and readers of files."),
    "maxmargin.features": ("Features", "From words, columns, dicts and images to arrays."),
    "maxmargin.costs": ("Costs", "What a wrong output costs."),
    "maxmargin.inference": ("Inference", "Argmax, k best, marginals and minimum cuts of your own arrays."),
    "maxmargin.models": ("Models", "Output structures."),
    "maxmargin.oracles": ("Oracles", "From weights to planes."),
    "maxmargin.formulations": ("Formulations", "Objectives and regularisers."),
    "maxmargin.solvers": ("Solvers", "From planes to weights."),
    "maxmargin.execution": ("Execution", "Where oracles run."),
    "maxmargin.metrics": ("Metrics", "Scores of predictions, counted by the conventions of the field."),
    "maxmargin.callbacks": ("Callbacks", "What happens at every certificate."),
    "maxmargin.reports": ("Reports", "Texts and plots about fits."),
    "maxmargin.persistence": ("Files", "Model files and networks."),
    "maxmargin.testing": ("Testing", "Checks of models of your own."),
    "maxmargin.contracts": ("Contracts", "Protocols of all parts, for parts of your own."),
    "maxmargin.compat.sklearn_crfsuite": ("Compatibility", "The names of sklearn-crfsuite."),
}
SKIPPED = {"__version__", "metrics", "scorers"}


def write_pages(app: Sphinx, config: Config) -> None:
    """One page per package, with a table of its names and a page for each of them."""
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    seen: set[int] = set()
    for package, (heading, about) in PACKAGES.items():
        module = import_module(package)
        names = [name for name in sorted(module.__all__, key=str.lower) if name not in SKIPPED]
        own = [name for name in names if id(vars(module).get(name, getattr(module, name))) not in seen]
        seen |= {id(getattr(module, name)) for name in own}
        kinds = {"Classes": inspect.isclass, "Functions": inspect.isroutine}
        lines = [heading, "=" * len(heading), "", f"``{package}``. {about}", ""]
        for title, is_kind in kinds.items():
            some = [name for name in own if is_kind(getattr(module, name))]
            if some:
                lines += [title, "-" * len(title), "", f".. currentmodule:: {package}", "", ".. autosummary::"]
                lines += ["   :toctree: names", "   :nosignatures:", "", *(f"   {name}" for name in some), ""]
        elsewhere = [name for name in names if name not in own]
        if elsewhere:
            lines += [
                "Also here, described under another package: " + ", ".join(f"``{n}``" for n in elsewhere) + ".",
                "",
            ]
        path = folder / f"{package.removeprefix('maxmargin.')}.rst"
        text = "\n".join(lines)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def skip_foreign(app: Sphinx, what: str, name: str, thing: object, skip: bool, options: object) -> bool | None:
    """Leave out members that come from elsewhere, such as scikit-learn: their texts refer to other sites."""
    module = getattr(thing, "__module__", None) or getattr(getattr(thing, "fget", None), "__module__", None)
    return True if module and not module.startswith("maxmargin") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for documents."""
    app.connect("config-inited", write_pages)
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
