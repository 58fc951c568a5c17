"""Small colour pictures of leaves on the ground, with their masks.

A leaf is where two discs overlap, in some direction, with a vein. Its colour varies between green and yellow, that of
the ground between brown and grey, and both vary from pixel to pixel so much that single pixels are often misread.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

SIDE, COUNT = 28, 20


def leaf(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A picture (28, 28, 3) and a mask (28, 28), both uint8."""
    row, column = np.mgrid[:SIDE, :SIDE] - rng.uniform(11, 17, size=(2, 1, 1))
    turn = rng.uniform(0, np.pi)
    along, across = (np.cos(turn) * row + np.sin(turn) * column, np.cos(turn) * column - np.sin(turn) * row)
    radius, half = rng.uniform(11, 14), rng.uniform(4.0, 6.0)
    mask = np.hypot(along, np.abs(across) + radius - half) < radius
    green, ground = np.array([0.35, 0.62, 0.2]), np.array([0.45, 0.36, 0.26])
    green = green + rng.uniform(0, 0.25) * np.array([1.0, 0.3, 0.1])
    ground = ground + rng.uniform(-0.08, 0.12)
    picture = np.where(mask[..., None], green, ground)
    picture = np.where((mask & (np.abs(across) < 0.6))[..., None], 0.6 * green + 0.4, picture)
    light = np.kron(rng.normal(0, 0.07, size=(SIDE // 4, SIDE // 4)), np.ones((4, 4)))  # patches of shade
    picture = picture + light[..., None] + rng.normal(0, 0.13, size=picture.shape)
    return (255 * np.clip(picture, 0, 1)).astype(np.uint8), mask.astype(np.uint8)


def write(folder: Path) -> None:
    """``leaves.npz``: ``images`` (20, 28, 28, 3) and ``masks`` (20, 28, 28)."""
    rng = np.random.default_rng(3)
    images, masks = zip(*(leaf(rng) for _ in range(COUNT)), strict=True)
    np.savez_compressed(folder / "leaves.npz", images=np.array(images), masks=np.array(masks))
