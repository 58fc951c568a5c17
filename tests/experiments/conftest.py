"""Scripts of the experiments as modules."""

import importlib
import sys
from pathlib import Path

import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.fixture(scope="module")
def experiment():
    """``experiment(folder, name)`` imports a script; afterwards it and the scripts it imports are forgotten."""

    def load(folder, name):
        patch.syspath_prepend(EXPERIMENTS / folder)
        return importlib.import_module(name)

    with pytest.MonkeyPatch.context() as patch:
        yield load
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(EXPERIMENTS)):
            del sys.modules[name]


def script(folder, name):
    """The fixture of one script."""
    return pytest.fixture(scope="module")(lambda experiment: experiment(folder, name))


adaptation, chunking = script("generative", "adaptation"), script("generative", "chunking_hmm")
ring, snakes = script("generative", "ring"), script("segmentation", "snakes")
