"""What more neighbours cost: processor time and memory per edge, of images and of volumes with as many voxels.

Images of 128 x 128 pixels and volumes of 32 x 16 x 32 voxels show balls under noise. For each number of neighbours a
process of its own passes over twelve of them (features to capacities, one cut, features to plane; best of five) and
fits ``ImageSegmenter(C=1)`` to four. How long a cut takes depends on its costs, and those that a fit learns differ
between images and volumes; so the passes share them: a score of 2 or -2 for the true label, of which the cost of the
margin takes 1, under normal noise of a deviation of 2, and edges whose capacities add up to 6 around each voxel. In a
second pass the score is 1, so that the cost leaves nothing but noise: a random-field Ising model, whose cuts take any
algorithm longest near the critical ratio of noise to capacity, which only volumes have (2.27 for 6 neighbours, here
2). So PyMaxflow, where it is installed, cuts the same energies (the cuts alone): what it pays, the problem costs.
Memory is the largest that the process ever had in the fit, less what it had with the kernels loaded.

Middleton (2002), Critical slowing down in polynomial-time algorithms. Middleton, Fisher (2002), Three-dimensional
random-field Ising magnet: interfaces, scaling, and the nature of states::

    python experiments/segmentation/neighbours.py            # 4, 8, 6, 18 and 26 neighbours
    python experiments/segmentation/neighbours.py --only 18
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from maxmargin.estimators.image_segmenter import ImageSegmenter
from maxmargin.inference.min_cut import NEIGHBOURS, directions
from maxmargin.models.grid import Grid
from maxmargin.oracles.oracle import ModelOracle

KINDS = (4, 8, 6, 18, 26)
SHAPES = {2: (128, 128), 3: (32, 16, 32)}
MEASURED = ("pass", "noise", "peer", "fit", "memory")
NOISE, CAPACITY = 2.0, 6.0  # of the costs that all passes share
DRAWS, TRIES = 3, 5  # of the noise of each scene; of each pass, of which the best counts


def scenes(shape: tuple[int, ...], count: int, noise: float = 0.7) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Balls under noise, and their masks."""
    rng, images, masks = np.random.default_rng(0), [], []
    places = np.stack(np.meshgrid(*[(np.arange(n) + 0.5) / max(shape) for n in shape], indexing="ij"), axis=-1)
    for _ in range(count):
        centres, radii = rng.random((6, len(shape))) * shape / max(shape), 0.05 + 0.15 * rng.random(6)
        balls = [((places - c) ** 2).sum(axis=-1) < r**2 for c, r in zip(centres, radii, strict=True)]
        masks.append(np.any(balls, axis=0).astype(np.uint8))
        images.append(masks[-1] + noise * rng.standard_normal(shape))
    return images, masks


def edges_of(shape: tuple[int, ...], neighbours: int) -> int:
    """Pairs of neighbours in a grid."""
    return sum(int(np.prod(np.array(shape) - np.abs(step))) for step in directions(neighbours))


def seconds_of(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def peer_seconds(excess: np.ndarray, capacities: np.ndarray, steps: np.ndarray) -> float:
    """Of PyMaxflow, for one cut, without building its graph; NaN where it is not installed."""
    try:
        import maxflow
    except ImportError:
        return float("nan")
    graph = maxflow.GraphFloat()
    nodes = graph.add_grid_nodes(excess.shape)
    for capacity, step in zip(capacities, steps, strict=True):
        ways = np.zeros((3,) * excess.ndim)
        ways[tuple(1 + step)] = 1
        graph.add_grid_edges(nodes, weights=capacity, structure=ways, symmetric=True)
    graph.add_grid_tedges(nodes, np.maximum(excess, 0.0), np.maximum(-excess, 0.0))
    return seconds_of(graph.maxflow)


def measured(neighbours: int, count: int = 4) -> dict[str, float]:
    """Processor seconds and memory (MB) of one number of neighbours."""
    warnings.filterwarnings("ignore", message="Stopped")
    flat = neighbours in NEIGHBOURS[2]
    ImageSegmenter(neighbours=neighbours).fit(*scenes((9, 9) if flat else (6, 6, 6), 2))  # loads the kernels
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    shape = SHAPES[2 if flat else 3]
    images, masks = scenes(shape, count)
    begin = time.process_time()
    ImageSegmenter(neighbours=neighbours, C=1.0).fit(images, masks)
    fit = time.process_time() - begin
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024
    steps = directions(neighbours)
    lengths = np.sqrt((steps**2).sum(axis=1))
    edge = np.ones((len(steps), *shape, 1)) / lengths.reshape(-1, *[1] * (len(shape) + 1))
    weights = np.array([1.0, CAPACITY / (2.0 / lengths).sum()])
    rng, passes, scene_masks = np.random.default_rng(0), {}, DRAWS * masks
    for name, score in (("pass", 2.0), ("noise", 1.0)):
        noise = [NOISE * rng.standard_normal(shape) for _ in scene_masks]
        nodes = [score * (2.0 * mask - 1.0) + some for mask, some in zip(scene_masks, noise, strict=True)]
        X = [{"node": node[..., None], "edge": edge} for node in nodes]
        one_pass = partial(ModelOracle(Grid(neighbours).bind(X, scene_masks)).planes, weights, np.arange(len(X)))
        passes[name] = min(seconds_of(one_pass) for _ in range(TRIES)) / DRAWS
    capacities = weights[1] * edge[..., 0]
    peers = [[peer_seconds(some, capacities, steps) for some in noise] for _ in range(TRIES)]
    passes["peer"] = float(np.min(peers, axis=0).sum()) / DRAWS
    edges = count * edges_of(shape, neighbours)
    return {"edges": edges, **passes, "fit": fit, "memory": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description="What more neighbours cost.")
    parser.add_argument("--only", type=int, choices=KINDS, help="print the measurements of one kind as JSON")
    args = parser.parse_args()
    if args.only:
        print(json.dumps(measured(args.only)))
        return
    print(
        "neighbours    edges  pass, noise, peer ms  fit s  memory MB   per edge, of 4: pass  noise  peer  fit  memory"
    )
    first: dict[str, float] = {}
    for neighbours in KINDS:
        command = [sys.executable, str(Path(__file__)), "--only", str(neighbours)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        first = first or found
        share = [found[what] / found["edges"] * first["edges"] / first[what] for what in MEASURED]
        times = " ".join(f"{1e3 * found[name]:7.1f}" for name in ("pass", "noise", "peer"))
        print(
            f"{neighbours:10d} {found['edges']:8.0f} {times} {found['fit']:7.2f} {found['memory']:11.0f} {'':15s}"
            + " ".join(f"{ratio:6.2f}" for ratio in share),
            flush=True,
        )


if __name__ == "__main__":
    main()
