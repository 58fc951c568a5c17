"""Benchmarks import and run: what they measure is for a quiet machine, whether they still work is for every change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reference.process import run_python

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
IMPORT = (
    "import sys, importlib; sys.path.insert(0, sys.argv[1])\nfor name in sys.argv[2:]: importlib.import_module(name)"
)

DATA = Path(os.environ.get("MAXMARGIN_DATA", Path.home() / ".cache" / "maxmargin" / "data"))

TINY = {  # those that need no data
    "lattice": ["--quick", "--output", "lattice.png"],
    "matching": [],
    "workers": "--processes --pictures 4 --size 24 --sentences 60 --repeats 1 --sentences-tol 0.1".split(),
    "workers memory": "--memory 20 --chains 40 --out memory.png".split(),
}
WITH_DATA = {
    "audit": "--sentences 60 --peer none --repeats 1".split(),
    "ramp_end": "--corpus ewt --sentences 40 --tol 0.1 --max-passes 10".split(),
    "shards": "--tasks chunking --examples 40 --repeats 1".split(),
    "shard_combinations": "--sentences 4 --jobs 1 --picture shards.png".split(),
    "slack": "--sentences 40 --tol 0.1".split(),
    "threads": "--sentences 400 --repeats 1 --passes 2".split(),
}


def run_benchmark(name: str, words: list[str], folder: Path) -> None:
    program = FOLDER / f"{name.split()[0]}.py"
    assert run_python(str(program), *words, folder=folder).stdout.strip()


def test_all_benchmarks_import(tmp_path):
    run_python("-c", IMPORT, str(FOLDER), *NAMES, folder=tmp_path)


def test_the_cost_model_of_large_runs(tmp_path):
    said = run_python(str(FOLDER / "scale.py"), "--sentences", "60", folder=tmp_path).stdout
    assert "combining grows with K^2" in said and "nan" not in said


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_benchmarks_run_at_a_tiny_size(name, tmp_path):
    if name.startswith("workers"):
        pytest.importorskip("ray")
    run_benchmark(name, TINY[name], tmp_path)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.skipif(not (DATA / "conll2000").is_dir(), reason="needs CoNLL-2000 in $MAXMARGIN_DATA")
@pytest.mark.parametrize("name", WITH_DATA)
def test_benchmarks_run_on_few_sentences(name, tmp_path):
    if name == "ramp_end" and not (DATA / "ud_english_ewt").is_dir():
        pytest.skip("needs UD English EWT in $MAXMARGIN_DATA")
    run_benchmark(name, WITH_DATA[name], tmp_path)
