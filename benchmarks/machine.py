"""One line that describes the machine on which numbers were measured.

When run as a program, this file prints the line::

    python benchmarks/machine.py
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import maxmargin

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


def processor() -> str:
    """Name of the processor, as far as the system reports it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def last_line_of(command: list[str], environment: dict[str, str] | None = None) -> Any:
    """Run a program of measurements in a process of its own; returns its last line, which is JSON."""
    done = subprocess.run([sys.executable, *command], stdout=subprocess.PIPE, text=True, check=False, env=environment)
    if done.returncode:
        sys.exit("a measuring process failed; its message is above.")
    return json.loads(done.stdout.splitlines()[-1])


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib and say where it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"picture: {path}")


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Others:
    """Cores that other processes keep busy while a block runs: ``with Others() as others: ...; others.cores``.

    A ratio of times means nothing when other processes take a core during the measurement. ``cores`` is NaN where the
    system does not report it (it needs ``/proc/stat``). It is exact to about 0.01 / seconds, so measure for at least
    half a second.
    """

    def __enter__(self) -> Others:
        self.cores = float("nan")
        self._begin = (time.perf_counter(), time.process_time(), _busy_seconds())
        return self

    def __exit__(self, *_: object) -> None:
        wall, own, busy = (
            end - begin
            for end, begin in zip((time.perf_counter(), time.process_time(), _busy_seconds()), self._begin, strict=True)
        )
        self.cores = max(0.0, (busy - own) / wall) if busy == busy else busy


def _busy_seconds() -> float:
    """Processor seconds of all processes since the start of the system; NaN when unknown."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    except OSError:
        return float("nan")
    user, nice, system, _, _, interrupts, soft_interrupts, stolen = map(int, fields[:8])
    return (user + nice + system + interrupts + soft_interrupts + stolen) / os.sysconf("SC_CLK_TCK")


def machine_line(threads: int | str = 1) -> str:
    """Processor, cores, system, versions, the number of threads of a benchmark, and the present load of the machine."""
    versions = [f"maxmargin {maxmargin.__version__}"]
    for name in PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"{name} missing")
    python = f"{platform.python_implementation()} {platform.python_version()}"
    own = f"{cores()} core" if cores() == 1 else f"{cores()} cores"
    parts = [
        f"{processor()}, {own}",
        platform.system(),
        python,
        *versions,
        f"threads {threads}",
    ]
    if hasattr(os, "getloadavg"):
        parts.append(f"load {os.getloadavg()[0]:.1f}")
    return "machine: " + "; ".join(parts)


if __name__ == "__main__":
    print(machine_line())
