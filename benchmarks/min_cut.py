"""Minimum cuts of maxmargin and PyMaxflow (GPL; only a peer, never a dependency), on one thread.

Times are processor seconds of one thread, which other work on the machine disturbs least. Each is the best of several
runs that alternate between the two sides, and covers everything from arrays of costs to labels: construction, flow,
reading the labels. Further tables show the time to cut again after 5 % of the pixels get new costs, in a square block
or scattered, compared with our own cut from the start; how the time of a cut grows with the number of pixels; and the
time of ``InteractiveSegmentation.update`` from a stroke to the mask, compared with ``predict`` with all strokes so
far::

    python benchmarks/min_cut.py             # pip install PyMaxflow for the comparison
    python benchmarks/min_cut.py --strokes   # only the strokes
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from machine import Others, machine_line
from maxmargin.estimators.image_segmenter import ImageSegmenter
from maxmargin.inference.min_cut import GridCut, directions, grid_cut
from maxmargin.kernel import compile_seconds

SHAPES = ((200, 200), (512, 512), (64, 64, 64))
SIDES = (64, 91, 128, 181, 256, 362, 512)
PART = 0.05
STROKED = {(512, 512): (15, 3, 60), (64, 64, 64): (15, 3, 3, 20)}  # strokes, and the sides of each
Energy = tuple[np.ndarray, np.ndarray]


def random_energy(shape: tuple[int, ...], seed: int = 0) -> Energy:
    """Costs from U(0, 1), capacities from U(0, 1/2): no structure, every label depends on its neighbourhood."""
    rng = np.random.default_rng(seed)
    return rng.random((*shape, 2)), 0.5 * rng.random((len(shape), *shape))


def noisy_balls(shape: tuple[int, ...], noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A few balls under Gaussian noise: image and mask."""
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*(np.linspace(0.0, 1.0, n) for n in shape), indexing="ij"), axis=-1)
    truth = np.zeros(shape, bool)
    for _ in range(6):
        centre, radius = rng.random(len(shape)), 0.05 + 0.15 * rng.random()
        truth |= ((grid - centre) ** 2).sum(-1) < radius**2
    return truth + noise * rng.standard_normal(shape), truth


def denoising_energy(shape: tuple[int, ...], noise: float) -> Energy:
    """Noisy balls; squared differences and one capacity for all pairs."""
    image, _ = noisy_balls(shape, noise)
    unary = np.stack([image**2, (image - 1.0) ** 2], axis=-1) / (2.0 * noise**2)
    return unary, np.ones((len(shape), *shape))


ENERGIES: dict[str, Callable[[tuple[int, ...]], Energy]] = {
    "random": random_energy,
    "denoising": lambda shape: denoising_energy(shape, 0.7),
    "denoising, strong noise": lambda shape: denoising_energy(shape, 2.0),
}


def pymaxflow_cut(unary: np.ndarray, capacities: np.ndarray) -> tuple[np.ndarray, float]:
    """The same cut by PyMaxflow: sizes given in advance, one call per direction, one for the terminals."""
    import maxflow

    shape = unary.shape[:-1]
    n = unary.size // 2
    graph = maxflow.GraphFloat(n, n * len(shape))
    nodes = graph.add_grid_nodes(shape)
    for step, capacity in zip(directions(2 * len(shape)), capacities, strict=True):
        structure = np.zeros((3,) * len(shape))
        structure[tuple(1 + step)] = 1.0
        graph.add_grid_edges(nodes, weights=capacity, structure=structure, symmetric=True)
    graph.add_grid_tedges(nodes, unary[..., 1], unary[..., 0])
    value = graph.maxflow()
    return graph.get_grid_segments(nodes), value


def seconds(function: Callable[[], object]) -> float:
    begin = time.thread_time()
    function()
    return time.thread_time() - begin


def changed_costs(unary: np.ndarray, scattered: bool, seed: int) -> np.ndarray:
    """The costs, with those of 5 % of the pixels permuted among themselves."""
    rng = np.random.default_rng(seed)
    shape = unary.shape[:-1]
    where = np.zeros(shape, bool)
    if scattered:
        where[rng.random(shape) < PART] = True
    else:
        sides = [round(n * PART ** (1.0 / len(shape))) for n in shape]
        begins = [int(rng.integers(n - side + 1)) for n, side in zip(shape, sides, strict=True)]
        where[tuple(slice(b, b + side) for b, side in zip(begins, sides, strict=True))] = True
    changed = unary.copy()
    changed[where] = rng.permutation(changed[where])
    return changed


def again_seconds(energy: Energy, scattered: bool, repeats: int) -> float:
    """Best seconds to cut again; the change differs each time, and the cut is checked."""
    unary, capacities = energy
    best = np.inf
    for seed in range(repeats):
        cut = GridCut(unary.shape[:-1])
        cut.solve(unary, capacities)
        other = changed_costs(unary, scattered, seed)
        best = min(best, seconds(lambda cut=cut, other=other: cut.solve(other)))
        if seed == 0:
            value, fresh = cut.solve(other)[1], grid_cut(other, capacities)[1]
            assert abs(value - fresh) <= 1e-9 * abs(fresh), "cutting again and cutting from the start differ"
    return float(best)


def compare(repeats: int, peer: bool) -> None:
    head = f"{'grid':12s} {'energy':24s} {'ours':>9s} {'PyMaxflow':>10s} {'ratio':>6s}"
    print(f"{head}   {'again, block':>18s} {'again, scattered':>19s}")
    for shape in SHAPES:
        for name, make in ENERGIES.items():
            energy = make(shape)
            value = grid_cut(*energy)[1]
            few = 2 if shape == SHAPES[-1] and name == "random" else repeats
            ours, theirs = np.inf, np.inf
            for _ in range(few):
                ours = min(ours, seconds(lambda energy=energy: grid_cut(*energy)))
                if peer:
                    theirs = min(theirs, seconds(lambda energy=energy: pymaxflow_cut(*energy)))
            if peer:
                expected = pymaxflow_cut(*energy)[1]
                assert abs(value - expected) <= 1e-9 * abs(expected), "energies differ"
            again = {scattered: again_seconds(energy, scattered, few) for scattered in (False, True)}
            print(
                f"{'x'.join(map(str, shape)):12s} {name:24s} {1e3 * ours:6.1f} ms "
                + (f"{1e3 * theirs:7.1f} ms {ours / theirs:6.2f}" if peer else f"{'-':>10s} {'-':>6s}")
                + "  "
                + "".join(f" {1e3 * t:8.2f} ms ({ours / t:4.1f}x)" for t in again.values()),
                flush=True,
            )


def growth(repeats: int) -> None:
    """Fit time = a * pixels^b over squares of growing side."""
    for name, make in ENERGIES.items():
        times = []
        for side in SIDES:
            energy = make((side, side))
            times.append(min(seconds(lambda energy=energy: grid_cut(*energy)) for _ in range(repeats)))
        slope = np.polyfit(2.0 * np.log(SIDES), np.log(times), 1)[0]
        nanoseconds = [f"{1e9 * t / side**2:.0f}" for t, side in zip(times, SIDES, strict=True)]
        print(f"{name:24s} exponent {slope:4.2f}; ns per pixel: {', '.join(nanoseconds)}", flush=True)


def strokes() -> None:
    """Median seconds of a stroke of true labels at a random place; every mask is checked."""
    print(f"{'grid':12s} {'predict':>11s} {'cut from the start':>20s} {'update':>11s}   update is faster by")
    for shape, (count, *sides) in STROKED.items():
        rng = np.random.default_rng(1)
        small = [noisy_balls(tuple(n // 4 for n in shape), 1.0, seed) for seed in range(1, 5)]
        segmenter = ImageSegmenter(neighbours=2 * len(shape), tol=0.05)
        segmenter.fit([image for image, _ in small], [mask.astype(int) for _, mask in small])
        image, truth = noisy_balls(shape, 1.0)
        session = segmenter.interactive(image)
        (x,) = segmenter.features_.transform([image])
        excess, capacities = -(x["node"] @ segmenter.node_coef_), x["edge"] @ segmenter.edge_coef_
        times: list[tuple[float, float, float]] = []
        session.update(np.full(shape, -1))  # loads the kernels
        for _ in range(count):
            corner = [int(rng.integers(n - side)) for n, side in zip(shape, sides, strict=True)]
            place = tuple(slice(c, c + side) for c, side in zip(corner, sides, strict=True))
            scribble = np.full(shape, -1)
            scribble[place] = truth[place]
            update = seconds(lambda session=session, scribble=scribble: session.update(scribble))
            known = session.scribble
            unary = np.stack([np.where(known == 1, 1e3, 0.0), np.where(known == 0, 1e3, excess)], axis=-1)
            cold = seconds(lambda unary=unary, capacities=capacities: grid_cut(unary, capacities))
            begin = time.thread_time()
            (mask,) = segmenter.predict([image], scribbles=[known], learn_colours=False)
            times.append((time.thread_time() - begin, cold, update))
            assert np.array_equal(session.mask, mask), "masks differ"
        predict, cold, update = np.median(times, axis=0)
        print(
            f"{'x'.join(map(str, shape)):12s} {1e3 * predict:8.1f} ms {1e3 * cold:17.1f} ms {1e3 * update:8.2f} ms"
            f"   {predict / update:.0f}x, {cold / update:.1f}x",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Minimum cuts of grids by maxmargin and PyMaxflow.")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--strokes", action="store_true", help="only the strokes of an interactive user")
    options = parser.parse_args(arguments)
    print(machine_line())
    if options.strokes:
        strokes()
        return
    try:
        import maxflow  # noqa: F401

        peer = True
    except ImportError:
        peer = False
        print("note: PyMaxflow is missing (pip install PyMaxflow), so there is no comparison")
    grid_cut(*random_energy((8, 8)))
    print(f"kernels {compile_seconds():.1f} s to compile or load, not counted; best of {options.repeats} runs\n")
    with Others() as others:
        compare(options.repeats, peer)
        print(f"\ngrowth with the number of pixels, squares of side {SIDES[0]} to {SIDES[-1]}")
        growth(options.repeats)
        print("\na stroke of an interactive user")
        strokes()
    print(f"\nother processes kept {others.cores:.1f} cores busy meanwhile")


if __name__ == "__main__":
    main()
