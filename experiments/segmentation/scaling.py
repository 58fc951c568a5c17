"""How the cost of a pass grows with image size: seconds = a * pixels^p at fixed weights, for one family of energies.

The images show the same scene of a few discs under noise, from 64 x 64 to 512 x 512 pixels. The weights are fixed, for
two node features (the noisy image and a constant) and two edge features (a constant and a contrast). A pass finds the
most violating mask of every image: features to capacities, one cut, features to plane. Times are processor seconds, the
best of several passes::

    python experiments/segmentation/scaling.py     # writes outputs/grid_scaling.png
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from maxmargin.features.contrast import contrast_edges
from maxmargin.inference.min_cut import directions
from maxmargin.models.grid import Grid
from maxmargin.oracles.oracle import ModelOracle

SIDES = (64, 91, 128, 181, 256, 362, 512)
WEIGHTS = np.array([2.0, -1.0, 0.5, 1.0])


def scene(side: int, seed: int, noise: float = 0.7) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Features and true mask of six discs under noise, at a given resolution."""
    rng = np.random.default_rng(seed)
    centres, radii = rng.random((6, 2)), 0.05 + 0.15 * rng.random(6)
    rows, columns = np.meshgrid(*2 * [(np.arange(side) + 0.5) / side], indexing="ij")
    discs = [(rows - r) ** 2 + (columns - c) ** 2 < radius**2 for (r, c), radius in zip(centres, radii, strict=True)]
    mask = np.any(discs, axis=0).astype(np.int32)
    image = (mask + noise * rng.standard_normal(mask.shape))[..., None]
    node = np.concatenate([image, np.ones_like(image)], axis=-1)
    return {"node": node, "edge": contrast_edges(image, directions(4), [0.5])}, mask


def pass_seconds(side: int, images: int, repeats: int) -> float:
    """Best processor seconds of one pass over the images."""
    X, Y = zip(*[scene(side, seed) for seed in range(images)], strict=True)
    oracle = ModelOracle(Grid(4).bind(X, Y))
    best = np.inf
    for _ in range(repeats):
        begin = time.thread_time()
        oracle.planes(WEIGHTS, np.arange(images))
        best = min(best, time.thread_time() - begin)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of a pass against the number of pixels.")
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("outputs/grid_scaling.png"))
    args = parser.parse_args()

    pass_seconds(16, 1, 1)  # load the kernels
    pixels = np.array(SIDES) ** 2
    seconds = np.array([pass_seconds(side, args.images, args.repeats) / args.images for side in SIDES])
    power, shift = np.polyfit(np.log(pixels), np.log(seconds), 1)
    for side, spent in zip(SIDES, seconds, strict=True):
        print(f"{side:4d} x {side:<4d} {1e3 * spent:8.2f} ms per image, {1e9 * spent / side**2:6.1f} ns per pixel")
    print(f"seconds grow as pixels^{power:.2f}")

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5, 4))
    axis.loglog(pixels, 1e3 * seconds, "o", label="measured")
    axis.loglog(pixels, 1e3 * np.exp(shift) * pixels**power, label=f"pixels^{power:.2f}")
    axis.set_xlabel("pixels")
    axis.set_ylabel("ms per image and pass")
    axis.legend()
    figure.tight_layout()
    args.output.parent.mkdir(exist_ok=True)
    figure.savefig(args.output, dpi=110)
    print(f"picture in {args.output}")


if __name__ == "__main__":
    main()
