"""One small Ray cluster for all tests of this folder."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest


@pytest.fixture(scope="session")
def cluster():
    """A local cluster of two processors; tests that need it are skipped where Ray is missing."""
    ray = pytest.importorskip("ray")
    place = tempfile.mkdtemp(prefix="ray")
    quiet = {"log_to_driver": False, "logging_level": "error", "include_dashboard": False}
    # actors import what tests define
    os.environ["PYTHONPATH"] = os.pathsep.join([*(p for p in (os.environ.get("PYTHONPATH"),) if p), "src", "tests"])
    ray.init(address="local", num_cpus=2, object_store_memory=100 << 20, _temp_dir=place, **quiet)
    yield ray
    ray.shutdown()
    shutil.rmtree(place, ignore_errors=True)
