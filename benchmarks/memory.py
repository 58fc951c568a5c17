"""A corpus five times larger than memory: training from a pack that is mapped, under a limit that the system imposes.

Writes a corpus of artificial sentences in parts, and trains on it in a process of its own whose memory the system
limits (RLIMIT_DATA: the heap and all private maps, the interpreter with its libraries included; files that are mapped
and shared do not count, since the system may drop their pages at any time). The pack is as large as what ``fit`` would
keep in memory. Then the same fit without ``memory_map``, which must fail under the same limit::

    python benchmarks/memory.py                  # 300 MB, a pack of 1.5 GB; the interpreter alone takes 215 MB
    python benchmarks/memory.py --limit 1000
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from machine import machine_line

LABELS, WORDS, LENGTH, PART = 6, 3000, 25, 1600  # sentences of a part
BYTES = 162  # of the pack for a token with the features below, roughly
MB = 2**20
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # BLAS sets tens of megabytes aside for each


def write_part(path: Path, seed: int, sentences: int = PART) -> int:
    """Sentences of a hidden Markov model, most of whose words leave no doubt about their label; bytes of the text."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(LABELS, 0.3), LABELS)
    tags = np.empty((sentences, LENGTH), np.int64)
    tags[:, 0] = rng.integers(0, LABELS, sentences)
    for t in range(1, LENGTH):
        tags[:, t] = (table[tags[:, t - 1]].cumsum(1) < rng.random((sentences, 1))).sum(1).clip(0, LABELS - 1)
    own = np.minimum(rng.zipf(1.3, tags.shape), WORDS // LABELS) - 1
    words = np.where(rng.random(tags.shape) < 0.9, own * LABELS + tags, rng.integers(0, WORDS, tags.shape))
    names = np.array([f"{'aeiou'[w % 5]}{w:x}{'stnrl'[w % LABELS % 5]}" for w in range(WORDS)], object)
    lines = names[words] + np.array([f" {k}\n" for k in range(LABELS)], object)[tags]
    text = "\n".join("".join(line) for line in lines.tolist()) + "\n"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write(text)
    return len(text)


def train(folder: str, pattern: str) -> None:
    """The fit itself, in the limited process."""
    import maxmargin as mm
    from maxmargin.features import Lower, Prefix, Shape, Suffix, TextFeatures, Window

    windows = [Window(0, (-3, -2, -1, 0, 1, 2, 3), bigrams=(-1, 0)), Window(0, (-2, -1, 0, 1, 2), of=Lower())]
    windows.append(Window(0, (-2, -1, 0, 1, 2), of=Shape()))
    windows += [Window(0, (-1, 0, 1), of=kind(n)) for kind in (Prefix, Suffix) for n in (1, 2, 3)]
    tagger = mm.SequenceTagger(
        C=1e-5, features=TextFeatures(windows, hashing=1 << 15), tol=0.01, max_passes=100,
        solver=mm.Pegasos(shards=4, certificate_every=2.0),
    )  # fmt: skip
    begin = time.perf_counter()
    tagger.fit_files(pattern, memory_map=folder or None)
    seconds = tagger.seconds_
    print(f"{tagger.status_.sentence} Certificate: {tagger.certificate_}.")
    print(
        f"{time.perf_counter() - begin:.0f} s in all, of which training {seconds['oracle'] + seconds['solver']:.0f} s"
    )


def limited(limit: int, arguments: list[str]) -> tuple[int, dict[str, int]]:
    """Run :func:`train` under a limit in bytes; its exit code, and the most memory that it had, in MB."""

    def impose() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    command = [sys.executable, __file__, "--train", *arguments]
    most = {"VmData": 0, "RssAnon": 0, "RssFile": 0}
    with tempfile.TemporaryFile("w+") as errors:
        environment = os.environ | ONE_THREAD
        process = subprocess.Popen(command, preexec_fn=impose, stderr=errors, env=environment)
        while process.poll() is None:
            time.sleep(0.1)
            try:
                status = Path(f"/proc/{process.pid}/status").read_text()
            except OSError:
                continue
            for name in most:
                found = re.search(rf"{name}:\s+(\d+)", status)
                most[name] = max(most[name], int(found[1]) // 1024 if found else 0)
        errors.seek(0)
        last = errors.read().strip().rpartition("\n")[2]
    if process.returncode:
        print(f"it ended with code {process.returncode}: {last[:160]}")
    return process.returncode, most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=300, help="megabytes")
    parser.add_argument("--times", type=float, default=5.0, help="how many times larger the pack is")
    parser.add_argument("--train", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train(*options.train)
        return
    print(machine_line())
    limit = options.limit * MB
    with tempfile.TemporaryDirectory() as folder:
        parts, begin = int(np.ceil(options.times * limit / (BYTES * PART * LENGTH))), time.perf_counter()
        text = sum(write_part(Path(folder) / f"part-{k:04}.gz", k) for k in range(parts))
        tokens = parts * PART * LENGTH
        print(f"{parts} parts, {tokens} tokens, {text / MB:.0f} MB of text in {time.perf_counter() - begin:.0f} s")
        packed, pattern = Path(folder) / "packed", f"{folder}/part-*.gz"
        subprocess.run(
            [sys.executable, __file__, "--train", f"{folder}/warm", f"{folder}/part-0000.gz"], check=True
        )  # kernels
        code, most = limited(limit, [str(packed), pattern])
        size = sum(file.stat().st_size for file in packed.glob("pack/*"))
        print(f"limit {options.limit} MB; pack {size / MB:.0f} MB, {size / limit:.2f} times the limit")
        print(f"at most {most['VmData']} MB of private memory, {most['RssAnon']} MB of it in use", end="")
        print(f" (and {most['RssFile']} MB of files, which the system may drop)")
        print("without memory_map, under the same limit:", end=" ", flush=True)
        plain, _ = limited(limit, ["", pattern])
        if code or not plain or size < options.times * limit:
            raise SystemExit(
                "NOT SHOWN: the mapped fit must end, the other must not, and the pack must be large enough"
            )


if __name__ == "__main__":
    main()
