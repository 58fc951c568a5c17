"""What the documents show also runs on an install without the optional packages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"

WITHOUT = """
import sys, warnings
warnings.simplefilter("ignore")
class NotInstalled:  # None in sys.modules would look like a package to scikit-learn 1.6
    def find_spec(self, name, path=None, target=None):
        if name in ("pandas", "polars", "matplotlib", "networkx", "hmmlearn", "pgmpy", "pyagrum"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NotInstalled())
import numpy as np
rng = np.random.default_rng(0)
y = [[str(k) for k in rng.integers(3, size=4)] for _ in range(15)]
X = [[{"word": label, "bias": 1.0} for label in labels] for labels in y]
"""

USES = """
import doctest
assert doctest.DocTestRunner().run(doctest.DocTestFinder().find(mm.audit, "audit")[0]).failed == 0
tagger = mm.SequenceTagger(loss="ramp").fit(X, y)
assert tagger.history_["gap"][len(tagger.history_["gap"]) - 1] >= 0 and len(tagger.rounds_["objective"]) >= 1
print("done")
"""


@pytest.mark.found("C: without pandas")
def test_the_documents_without_pandas():
    shown = re.findall(r"```python\n(.+?)```", (DOCS / "audit.md").read_text(), re.S)[0]
    program, quiet = WITHOUT + shown + USES, {**os.environ, "MAXMARGIN_QUIET": "1"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=quiet)
    assert run.returncode == 0 and run.stdout.endswith("done\n"), run.stdout + run.stderr
