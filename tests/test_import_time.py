"""`import maxmargin` is quick and pulls in none of the heavy packages."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = {"sklearn", "numba", "pandas", "matplotlib"}
PROGRAM = """
import json, sys, time
begin = time.perf_counter()
import maxmargin
seconds = time.perf_counter() - begin
print(json.dumps({"seconds": seconds, "modules": sorted({name.partition(".")[0] for name in sys.modules})}))
"""


def run_import() -> dict:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_import_is_quick_and_light():
    runs = [run_import() for _ in range(3)]
    assert min(run["seconds"] for run in runs) < 0.5
    assert not HEAVY & set(runs[0]["modules"])
