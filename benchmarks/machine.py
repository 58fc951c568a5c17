"""One line about where numbers were measured.

As a program it prints that line::

    python benchmarks/machine.py
"""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("maxmargin", "numpy", "scipy", "numba", "scikit-learn")


def processor() -> str:
    """Name of the processor, as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine_line(threads: int | str = 1) -> str:
    """Processor, cores, system, versions, how many threads a benchmark uses, and how busy the machine is already."""
    versions = []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"{name} missing")
    python = f"{platform.python_implementation()} {platform.python_version()}"
    parts = [f"{processor()}, {cores()} cores", platform.system(), python, *versions, f"threads {threads}"]
    if hasattr(os, "getloadavg"):
        parts.append(f"load {os.getloadavg()[0]:.1f}")
    return "machine: " + "; ".join(parts)


if __name__ == "__main__":
    print(machine_line())
