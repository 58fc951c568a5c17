"""Compiled minimum cut of grids: pixels or voxels to padded nodes and back.

A grid of shape (depth, height, width), depth 1 when flat, gets one padding column a row, one padding row a slice and
padding around the whole, so that every neighbour of a pixel is a node and none needs a test. Arcs to padding have no
room. The float workspace holds the residuals, ``neighbours`` for each node, then the excesses, then the grain.
"""

from __future__ import annotations

import numpy as np

from maxmargin.inference.min_cut_kernel import OFFSETS, STATE_SIZE, forest_of, grain_for, grid_flow, wanted
from maxmargin.kernel import kernel

# Half of the neighbours: (depth, row, column). 4 and 8 neighbours are the first 2 and 4 of the flat ones, 6, 18 and 26
# the first 3, 9 and 13 of the others. All point to later nodes, as ``sweep`` expects.
FLAT = np.array([(0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, -1)])
_FACES = [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
_EDGES = [(0, 1, 1), (0, 1, -1), (1, 0, 1), (1, 0, -1), (1, 1, 0), (1, -1, 0)]
_CORNERS = [(1, 1, 1), (1, 1, -1), (1, -1, 1), (1, -1, -1)]
SOLID = np.array([*_FACES, *_EDGES, *_CORNERS])


@kernel("UniTuple(int64, 4)(int64, int64, int64, int64)", fast=False)
def grid_layout(depth, height, width, neighbours):
    """Strides of slices and rows, the node of the first pixel, and the number of nodes."""
    row = width + 1
    layer = (height + 1) * row
    first = row + 1 + (layer if neighbours > 8 or neighbours == 6 else 0)
    return layer, row, first, 2 * first + (depth - 1) * layer + (height - 1) * row + width


@kernel("int64(int64, int64, int64, int64, float64[::1], float64[::1], int32[::1], float64[::1])", fast=False)
def grid_load(depth, height, width, neighbours, excess, capacities, work, fwork):
    """Fill the workspaces. Returns the place of the first capacity that is negative, infinite or NaN, or -1."""
    layer, row, first, n = grid_layout(depth, height, width, neighbours)
    steps = FLAT if neighbours == 4 or neighbours == 8 else SOLID
    fwork[: n * (neighbours + 1)] = 0.0
    residual, into = fwork[: n * neighbours], fwork[n * neighbours :]
    offsets = work[OFFSETS:STATE_SIZE]
    for j in range(neighbours // 2):
        offset = steps[j, 0] * layer + steps[j, 1] * row + steps[j, 2]
        offsets[2 * j], offsets[2 * j + 1] = offset, -offset
    n_pixels = depth * height * width
    largest = 0.0
    for z in range(depth):
        for y in range(height):
            p = first + z * layer + y * row
            pixel = (z * height + y) * width
            for x in range(width):
                into[p + x] = excess[pixel + x]
            for j in range(neighbours // 2):
                down, aside = y + steps[j, 1], steps[j, 2]
                if z + steps[j, 0] == depth or down < 0 or down == height:
                    continue
                for x in range(max(0, -aside), width - max(0, aside)):
                    c = capacities[j * n_pixels + pixel + x]
                    residual[(p + x) * neighbours + 2 * j] = c
                    residual[(p + x + offsets[2 * j]) * neighbours + 2 * j + 1] = c
                    if not 0.0 <= c <= largest:
                        if not 0.0 <= c < np.inf:
                            return j * n_pixels + pixel + x
                        largest = c
    fwork[n * (neighbours + 1)] = grain_for(largest)
    return np.int64(-1)


@kernel("void(int64, int64, int64, int64, int32[::1], float64[::1])", fast=False)
def grid_solve(depth, height, width, neighbours, work, fwork):
    """The flow from the start, after ``grid_load``."""
    n = grid_layout(depth, height, width, neighbours)[3]
    m, offsets = n * neighbours, work[OFFSETS:STATE_SIZE]
    grid_flow(n, neighbours, None, offsets, None, work, fwork[:m], fwork[m : m + n], fwork[m + n], True)


@kernel("float64(int64, int64, int64, int64, int32[::1], int32[::1], float64[::1])", fast=False)
def grid_labels(depth, height, width, neighbours, labels, work, fwork):
    """Write the labels of the pixels after a flow and return the energy, without the costs of label 0."""
    layer, row, first, n = grid_layout(depth, height, width, neighbours)
    distance = forest_of(n, work)[0]
    for z in range(depth):
        for y in range(height):
            p, pixel = first + z * layer + y * row, (z * height + y) * width
            into, out = labels[pixel : pixel + width], distance[p : p + width]
            for x in range(width):
                into[x] = out[x] > 0
    return wanted(fwork[n * neighbours : n * neighbours + n])


@kernel(
    "float64(int64, int64, int64, int64, float64[::1], float64[::1], int32[::1], int32[::1], float64[::1])", fast=False
)
def cut_grid(depth, height, width, neighbours, excess, capacities, labels, work, fwork):
    """Minimum cut of one grid in scratch that the caller owns; allocates nothing.

    Formula: writes the y of least ``E(y) = sum_p excess_p y_p + sum_{pairs} capacities_pq [y_p != y_q]`` and returns
    E(y); with unary costs, ``excess = unary[:, 1] - unary[:, 0]`` and ``unary[:, 0].sum()`` is missing from E. Of
    several such y it is the one with the fewest ones. Exact for whole numbers, otherwise up to rounding. NaN when a
    capacity is negative, infinite or NaN, and then ``labels`` are not written.

    Depth is 1 for 4 and 8 neighbours. ``excess`` (n,) is finite, pixels in C order; ``capacities``
    (neighbours / 2 * n,) has that of pixel p and its neighbour in direction j (rows of FLAT or SOLID) at ``j * n + p``,
    not read where that neighbour is outside the grid. ``work`` (int32, zeros, and handed back so) and ``fwork`` are
    scratch of at least ``min_cut.workspace_sizes(shape, neighbours)``.
    """
    if grid_load(depth, height, width, neighbours, excess, capacities, work, fwork) >= 0:
        work[:STATE_SIZE] = 0
        return np.nan
    grid_solve(depth, height, width, neighbours, work, fwork)
    energy = grid_labels(depth, height, width, neighbours, labels, work, fwork)
    n = grid_layout(depth, height, width, neighbours)[3]
    work[: STATE_SIZE + 2 * n] = 0  # the lists behind are empty
    return energy
