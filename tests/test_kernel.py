"""Compiled kernels: never stale, not compiled twice, no cache no problem, one signature only."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba import types

from maxmargin import kernel_cache
from maxmargin.kernel import compile_seconds, kernel, record
from reference.two_kernels import two_kernels

SOURCE = Path(__file__).parents[1] / "src"

HELPER = """
    from tiny.kernel import kernel

    FACTOR = {factor}

    @kernel("float64(float64)")
    def helper(x):
        return FACTOR * x + {shift}
"""
CALLER = """
    from tiny.helper import helper
    from tiny.kernel import kernel

    @kernel("float64(float64)")
    def caller(x):
        return helper(x) + 1.0
"""
USE = """
    import json, sys
    from tiny.caller import caller
    from tiny.kernel import compile_seconds

    value = caller(2.0)
    hits, misses = (sum(table.values()) for table in (caller.stats.cache_hits, caller.stats.cache_misses))
    print(json.dumps({"value": value, "hits": hits, "misses": misses, "seconds": compile_seconds()}))
"""


@pytest.fixture
def package(tmp_path):
    """A package of two kernel files with its own copy of the decorator."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for name in ("kernel.py", "kernel_cache.py"):
        (folder / name).write_text((SOURCE / "maxmargin" / name).read_text().replace("from maxmargin.", "from tiny."))
    write(folder / "helper.py", HELPER.format(factor=3.0, shift=0.0))
    write(folder / "caller.py", CALLER)
    write(tmp_path / "use.py", USE)
    return folder


def write(path, text):
    path.write_text(textwrap.dedent(text))


def run(script, *arguments, **environment):
    """The last line that a script prints in a process of its own, as JSON."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "MAXMARGIN_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, str(script), *map(str, arguments)],
        env=clean | {"PYTHONDONTWRITEBYTECODE": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer | {"errors": done.stderr} if isinstance(answer, dict) else answer


def test_a_changed_helper_in_another_file_is_never_stale(package, tmp_path):
    use, cache = tmp_path / "use.py", str(tmp_path / "cache")
    first = run(use, MAXMARGIN_KERNEL_CACHE=cache)
    assert (first["value"], first["hits"], first["misses"]) == (7.0, 0, 1)
    again = run(use, MAXMARGIN_KERNEL_CACHE=cache)
    assert (again["value"], again["hits"], again["misses"]) == (7.0, 1, 0)
    for factor, shift, value in ((5.0, 0.0, 11.0), (5.0, 0.25, 11.25), (3.0, 0.0, 7.0)):
        write(package / "helper.py", HELPER.format(factor=factor, shift=shift))  # a constant, the code, and back
        changed = run(use, MAXMARGIN_KERNEL_CACHE=cache)
        assert (changed["value"], changed["misses"]) == (value, 1)
    assert run(use, MAXMARGIN_KERNEL_CACHE=cache)["misses"] == 0


def test_a_change_that_keeps_size_and_time_of_the_file_is_seen(package, tmp_path):
    """File systems with coarse clocks and tools that restore times would fool a stamp of both."""
    use, cache, helper = tmp_path / "use.py", str(tmp_path / "cache"), package / "helper.py"
    assert run(use, MAXMARGIN_KERNEL_CACHE=cache)["value"] == 7.0
    stat = helper.stat()
    write(helper, HELPER.format(factor=4.0, shift=0.0))
    os.utime(helper, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert helper.stat().st_size == stat.st_size
    assert run(use, MAXMARGIN_KERNEL_CACHE=cache)["value"] == 9.0


@pytest.mark.parametrize("source", ["ANSWER = 42\n", HELPER.format(factor=1.0, shift=0.0)], ids=["plain", "kernels"])
def test_files_that_a_kernel_does_not_import_do_not_matter(source, package, tmp_path):
    use, cache = tmp_path / "use.py", str(tmp_path / "cache")
    run(use, MAXMARGIN_KERNEL_CACHE=cache)
    write(package / "other.py", source)
    assert run(use, MAXMARGIN_KERNEL_CACHE=cache)["misses"] == 0


@pytest.mark.parametrize(
    "line",
    [
        "from tiny.rooms import deep",
        "from tiny.rooms.deep import FACTOR",
        "from tiny.rooms import FACTOR",
        "from .rooms.deep import (\n    FACTOR,\n)",
        "from .rooms import deep as other",
        "import tiny.rooms.deep",
        "try:\n    from . import rooms\nexcept ImportError:\n    pass",
    ],
)
def test_every_way_to_import_a_helper_is_seen(line, package, monkeypatch):
    """The far file is two steps away: helper.py imports it, caller.py imports helper.py."""
    monkeypatch.setattr(kernel_cache, "_PACKAGE", package)
    deep = package / "rooms" / "deep.py"
    deep.parent.mkdir()
    write(deep.parent / "__init__.py", "from tiny.rooms.deep import FACTOR")
    digests = set()
    (package / "helper.py").write_text(line + "\n")
    for text in ("FACTOR = 1", "FACTOR = 2"):
        write(deep, text)
        kernel_cache.source_digest.cache_clear()
        kernel_cache._digest_and_imports.cache_clear()
        digests.add(kernel_cache.source_digest(package / "caller.py"))
    assert len(digests) == 2


def test_kernels_outside_the_package_follow_their_own_file_too(package, tmp_path):
    use, cache = tmp_path / "outside.py", str(tmp_path / "cache")
    source = """
        import json
        from tiny.helper import helper
        from tiny.kernel import kernel

        @kernel("float64(float64)")
        def mine(x):
            return helper(x) + {more}

        value = mine(1.0)
        print(json.dumps({{"value": value, "hits": sum(mine.stats.cache_hits.values())}}))
    """
    write(use, source.format(more=1.0))
    assert run(use, MAXMARGIN_KERNEL_CACHE=cache) == {"value": 4.0, "hits": 0, "errors": ""}
    assert run(use, MAXMARGIN_KERNEL_CACHE=cache) == {"value": 4.0, "hits": 1, "errors": ""}
    write(use, source.format(more=2.0))
    assert run(use, MAXMARGIN_KERNEL_CACHE=cache) == {"value": 5.0, "hits": 0, "errors": ""}
    write(package / "helper.py", HELPER.format(factor=7.0, shift=0.0))
    assert run(use, MAXMARGIN_KERNEL_CACHE=cache) == {"value": 9.0, "hits": 0, "errors": ""}


def test_two_copies_of_a_package_do_not_share_code(package, tmp_path):
    """The cache is one folder for all of a user's environments."""
    cache = str(tmp_path / "cache")
    assert run(tmp_path / "use.py", MAXMARGIN_KERNEL_CACHE=cache)["value"] == 7.0
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(package, elsewhere / "tiny")
    shutil.copy(tmp_path / "use.py", elsewhere / "use.py")
    write(elsewhere / "tiny" / "helper.py", HELPER.format(factor=1.0, shift=0.0))
    assert run(elsewhere / "use.py", MAXMARGIN_KERNEL_CACHE=cache)["value"] == 3.0
    back = run(tmp_path / "use.py", MAXMARGIN_KERNEL_CACHE=cache)
    assert (back["value"], back["misses"]) == (7.0, 0)


@pytest.mark.parametrize("place", ["a file in the way", "read-only"])
def test_without_a_writable_folder_kernels_compile_in_memory(place, package, tmp_path):
    folder = tmp_path / "cache"
    if place == "read-only":
        if os.geteuid() == 0:
            pytest.skip("root may write everywhere")
        folder.mkdir(mode=0o500)
    else:
        folder.write_text("not a folder")
    answer = run(tmp_path / "use.py", MAXMARGIN_KERNEL_CACHE=str(folder), PYTHONWARNINGS="always")
    assert answer["value"] == 7.0 and answer["hits"] == 0
    assert answer["errors"].count("RuntimeWarning: compiled kernels cannot be kept") == 1


@pytest.mark.parametrize("damage", ["empty", "cut", "one bit", "garbage", "sealed garbage"])
def test_a_damaged_file_is_compiled_again_and_replaced(damage, monkeypatch, tmp_path):
    monkeypatch.setenv("MAXMARGIN_KERNEL_CACHE", str(tmp_path))

    def make():
        @kernel("int64(int64)")
        def one_more(x):
            return x + 1

        assert one_more(1) == 2
        return one_more

    make()
    (file,) = tmp_path.rglob("*.kernel")
    good = file.read_bytes()
    stamp = make()._cache.stamp
    bad = {
        "empty": b"",
        "cut": good[: len(good) // 2],
        "one bit": good[:-1] + bytes([good[-1] ^ 1]),
        "garbage": b"garbage" * 100,
        "sealed garbage": hashlib.sha256(stamp + b"garbage").digest() + b"garbage",
    }[damage]
    file.write_bytes(bad)
    assert sum(make().stats.cache_misses.values()) == 1
    assert file.read_bytes() != bad
    assert sum(make().stats.cache_hits.values()) == 1
    assert list(tmp_path.rglob("*.*")) == [file]  # nothing is left behind


def test_a_full_disk_costs_one_warning(monkeypatch, tmp_path):
    monkeypatch.setenv("MAXMARGIN_KERNEL_CACHE", str(tmp_path))

    def full(path, content):
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.warns(RuntimeWarning, match="No space left") as caught:
        one_more, one_less = two_kernels()
        assert (one_more(1), one_less(1)) == (2, 0)
    assert len(caught) == 1
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_kernel_called_only_by_kernels_gets_no_file_and_one_called_by_both_works(package, tmp_path):
    cache = tmp_path / "cache"
    run(tmp_path / "use.py", MAXMARGIN_KERNEL_CACHE=str(cache))
    assert [path.name.split("-")[0] for path in cache.rglob("*.kernel")] == ["caller"]
    write(
        tmp_path / "both.py",
        "from tiny.helper import helper\nfrom tiny.caller import caller\n"
        "print([caller(2.0), helper(2.0), caller(3.0)])",
    )
    assert run(tmp_path / "both.py", MAXMARGIN_KERNEL_CACHE=str(cache)) == [7.0, 6.0, 10.0]


def test_kernels_are_pickled_by_name(package, tmp_path):
    write(
        tmp_path / "pickled.py",
        "import pickle\nfrom tiny.caller import caller\nprint(int(pickle.loads(pickle.dumps(caller)) is caller))",
    )
    assert run(tmp_path / "pickled.py", MAXMARGIN_KERNEL_CACHE=str(tmp_path / "cache")) == 1


def test_a_long_compilation_is_announced_once_unless_forbidden(package, tmp_path):
    source = package / "kernel.py"
    source.write_text(source.read_text().replace("NOTICE_AFTER = 2.0", "NOTICE_AFTER = 0.01"))
    quiet = {"MAXMARGIN_QUIET": "1", "MAXMARGIN_KERNEL_CACHE": str(tmp_path / "quiet")}
    assert run(tmp_path / "use.py", **quiet)["errors"] == ""
    cache = str(tmp_path / "cache")
    said = run(tmp_path / "use.py", MAXMARGIN_KERNEL_CACHE=cache)["errors"]
    assert said.count("maxmargin: compiling kernels for the first use") == said.count("\n") == 1
    assert run(tmp_path / "use.py", MAXMARGIN_KERNEL_CACHE=cache)["errors"] == ""  # loaded, not compiled


def test_where_the_cache_lives(monkeypatch, tmp_path):
    for name in ("MAXMARGIN_KERNEL_CACHE", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert kernel_cache.cache_folder() == tmp_path / ".cache" / "maxmargin" / "kernels"
    for name, place in (
        ("XDG_CACHE_HOME", tmp_path / "x" / "maxmargin" / "kernels"),
        ("NUMBA_CACHE_DIR", tmp_path / "x"),
        ("MAXMARGIN_KERNEL_CACHE", tmp_path / "x"),
    ):
        monkeypatch.setenv(name, str(tmp_path / "x"))
        assert kernel_cache.cache_folder() == place


@pytest.fixture(scope="module")
def double():
    @kernel("float64[::1](float64[::1])")
    def double(x):
        return 2.0 * x

    return double


def test_other_types_are_refused_instead_of_compiled_again(double):
    np.testing.assert_array_equal(double(np.arange(3.0)), [0.0, 2.0, 4.0])
    for wrong in (np.arange(3), np.arange(3, dtype=np.float32), np.arange(6.0)[::2], np.zeros((2, 2)), 1.0, [1.0]):
        with pytest.raises(TypeError, match="No matching definition"):
            double(wrong)
    assert len(double.signatures) == 1


class Pair(NamedTuple):
    left: np.ndarray
    right: np.ndarray


def test_borrowed_arrays_in_a_named_tuple_are_used_in_place_and_let_go():
    vector = types.float64[::1]
    form = record(Pair, vector, vector)

    @kernel(types.void(form, types.int64), borrows=True)
    def add_from(pair, begin):
        left, right = pair.left[begin:], pair.right[begin:]
        for p in range(len(left)):
            left[p] += right[p]

    pair = Pair(np.zeros(3), np.arange(3.0))
    held = [sys.getrefcount(array) for array in pair]
    for _ in range(5):
        add_from(pair, 1)
    np.testing.assert_array_equal(pair.left, [0.0, 5.0, 10.0])
    assert held == [sys.getrefcount(array) for array in pair]


def test_compiling_is_timed():
    before = compile_seconds()

    @kernel("int64(int64)")
    def one_more(x):
        return x + 1

    assert one_more(1) == 2
    assert compile_seconds() > before


def test_kernels_run_without_the_interpreter_lock_and_keep_infinities():
    @kernel("float64(float64[::1])")
    def largest(x):
        best = -np.inf
        for value in x:
            if value > best:
                best = value
        return best

    assert largest.targetoptions["nogil"] is True
    assert largest(np.array([-np.inf, -np.inf])) == -np.inf
    assert largest(np.array([-np.inf, 1.0, np.nan])) == 1.0


def test_imports_of_kernel_files_are_read_as_python_reads_them():
    """The stamp reads imports by pattern; the parser of Python must find the same files of the package."""
    package = SOURCE / "maxmargin"
    marked = [path for path in package.rglob("*.py") if "@kernel(" in path.read_text() and path.name != "kernel.py"]
    assert len(marked) > 5
    for path in marked:
        expected = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("maxmargin."):
                place = SOURCE.joinpath(*node.module.split("."))
                inside = {place / f"{alias.name}.py" for alias in node.names} | {place / "__init__.py"}
                expected |= {place.with_suffix(".py")} if place.with_suffix(".py").exists() else inside
            assert not isinstance(node, ast.Import) or "maxmargin" not in ast.unparse(node)
        assert kernel_cache._digest_and_imports(path)[1] == {file for file in expected if file.exists()}
        assert package / "__init__.py" not in expected


TRAIN = """
    import json, sys
    import numpy as np
    import maxmargin as mm
    from maxmargin.kernel import compile_seconds
    from numba.core.dispatcher import Dispatcher

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(T, 2)) for T in (1, 2, 3, 4)]
    Y = [rng.integers(0, 3, len(x)).tolist() for x in X]
    fitted = mm.SequenceTagger().fit(X, Y)
    mm.SequenceTagger(loss="squared_hinge", solver="bcfw", tol=0.1).fit(X, Y)
    mm.SequenceTagger(solver="cutting_plane", n_jobs=2).fit(X, Y)
    mm.MulticlassClassifier().fit(np.vstack(X), np.concatenate(Y))
    fitted.predict_kbest(X, 2), fitted.predict_marginals(X)
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("maxmargin"):
            for thing in vars(module).values():
                if isinstance(thing, Dispatcher):
                    found[id(thing)] = thing
    misses = [d.py_func.__name__ for d in found.values() if sum(d.stats.cache_misses.values())]
    print(json.dumps({"kernels": len(found), "misses": misses, "seconds": compile_seconds(),
                      "weights": fitted.weights_.tolist()}))
"""


def test_a_second_process_trains_without_compiling_anything(tmp_path):
    write(tmp_path / "train.py", TRAIN)
    places = {"PYTHONPATH": str(SOURCE), "HOME": os.environ.get("HOME", str(tmp_path))}
    shared = os.environ.get("MAXMARGIN_KERNEL_CACHE")  # the cache of this test run: usually warm already
    environment = places | ({"MAXMARGIN_KERNEL_CACHE": shared} if shared else {})
    run(tmp_path / "train.py", **environment)
    second = run(tmp_path / "train.py", **environment)
    assert second["kernels"] > 10
    assert second["misses"] == []
    assert second["seconds"] < 5.0
    assert second["weights"] == run(tmp_path / "train.py", **environment)["weights"]


@pytest.mark.slow
def test_a_first_process_compiles_what_it_uses_and_a_second_nothing(tmp_path):
    write(tmp_path / "train.py", TRAIN)
    environment = {"PYTHONPATH": str(SOURCE), "MAXMARGIN_KERNEL_CACHE": str(tmp_path / "cache")}
    first, second = (run(tmp_path / "train.py", **environment) for _ in range(2))
    assert 5 < len(first["misses"]) < first["kernels"]
    assert second["misses"] == [] and second["seconds"] < 0.3 * first["seconds"]
    assert first["weights"] == second["weights"]
