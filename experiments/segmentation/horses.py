"""Weizmann horses: a learned segmenter against its unaries alone, and against one smoothness weight by grid search.

328 images, longest side at most 176 pixels; random splits into 160 for training and 168 for testing. All methods share
the features (colour, place, texture, log ratios of mixtures fitted on the training images) and the cost:

    unary       no edges: every pixel by itself
    smoothness  the unary model and one weight for equal neighbours, by grid search for the best intersection over union
                on the training images: over the weight, and over which of the edge features it is for
    structured  node and edge weights learned together, each argmax one minimum cut
    ramp        the same with the bounded loss, from there on; stopped after 60 passes, far from converged: its gap is
                printed, and is large

Two things are in favour of the grid search: it looks at the measure of the test itself, where the learned models see
wrong pixels, and no regulariser holds its weight down. C, the contrasts and the ramp were chosen with a look at the
test images of seed 0, so splits begin at seed 1; as all splits draw from the same images, that removes the bias only
in part.

Printed: mean intersection over union on the test images, paired differences by split with bootstrap intervals over the
images, the t interval over splits (whose test sets overlap, so it is a little too narrow), and training times.

    python experiments/segmentation/horses.py            # 5 splits; writes outputs/horses.png
    python experiments/segmentation/horses.py --quick    # 1 split of 40 + 40 images
    python experiments/segmentation/horses.py --solvers  # also gap against time and number of cuts
"""

from __future__ import annotations

import argparse
import io
import os
import time
import warnings
import zipfile
from itertools import product
from pathlib import Path

import numpy as np
from PIL import Image
from scipy import stats

import maxmargin as mm
from maxmargin.estimators.base import decode
from maxmargin.estimators.image_segmenter import ImageSegmenter
from maxmargin.features.images import ImageFeatures
from maxmargin.inference.min_cut import directions
from maxmargin.metrics.segmentation import boundary_f, mean_dice, mean_iou, pixel_accuracy
from maxmargin.models.grid import Grid

FIRST_SEED = 1  # seed 0 was looked at while the settings were chosen
METHODS = ("unary", "smoothness", "structured", "ramp")
CONTRAST = (1.0, 4.0, 16.0)  # sharpness of the edge features
KINDS = ("constant", *(f"contrast {sharpness:g}" for sharpness in CONTRAST))
LAMBDAS = (1.0, 3.0, 10.0, 30.0, 100.0)
SOLVERS = {
    "auto": mm.Auto(),
    "one simplex": mm.SimplicialDecomposition("one"),
    "one, limit 10": mm.SimplicialDecomposition("one", limit=10),
    "product": mm.SimplicialDecomposition("product"),
    "product, limit 5": mm.SimplicialDecomposition("product", limit=5),
    "sequential dual": mm.SequentialDual(),
    "bcfw": mm.BCFW(),
}


def load() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Images (height, width, 3) and masks of 0 and 1."""
    folder = Path(os.environ.get("MAXMARGIN_DATA", Path.home() / ".cache/maxmargin/data"))
    path = folder / "weizmann_horses" / "horses.zip"
    if not path.is_file():
        raise SystemExit(f"{path} is missing: a zip of rgb/NAME.jpg and mask/NAME.png (Borenstein & Ullman's horses).")
    with zipfile.ZipFile(path) as archive:

        def read(name: str, mode: str) -> np.ndarray:
            return np.asarray(Image.open(io.BytesIO(archive.read(name))).convert(mode))

        names = sorted(Path(name).stem for name in archive.namelist() if name.startswith("rgb/"))
        images = [read(f"rgb/{name}.jpg", "RGB") for name in names]
        masks = [(read(f"mask/{name}.png", "L") > 127).astype(np.uint8) for name in names]
    return images, masks


def nodes_only(X: list[dict]) -> list[dict]:
    return [{"node": x["node"]} for x in X]


def each_iou(masks: list[np.ndarray], predicted: list[np.ndarray]) -> np.ndarray:
    return np.array([mean_iou([true], [found]) for true, found in zip(masks, predicted, strict=True)])


def masks_at(bound: object, weights: np.ndarray) -> list[np.ndarray]:
    return [code.reshape(shape) for code, shape in zip(decode(bound, weights), bound.shapes, strict=True)]


def smoothed(unary: ImageSegmenter, train: list[dict], masks: list, test: list[dict], neighbours: int) -> tuple:
    """Masks of the test images with the smoothness that is best on the training images, and what that is."""
    model = Grid(neighbours)
    bound = model.bind(train, masks)
    bound = model.bind(train, None, layout=bound.layout)
    best = (-1.0, "", 0.0, np.empty(0))
    for kind, share in zip(KINDS, np.eye(len(KINDS)), strict=True):
        for weight in LAMBDAS:
            weights = np.concatenate([unary.node_coef_, weight * share])
            score = mean_iou(masks, masks_at(bound, weights))
            best = max(best, (score, kind, weight, weights), key=lambda entry: entry[0])
    return masks_at(model.bind(test, None, layout=bound.layout), best[3]), f"{best[2]:g} on {best[1]}"


def one_split(images: list, masks: list, train: np.ndarray, test: np.ndarray, args: argparse.Namespace) -> dict:
    begin = time.perf_counter()
    features = ImageFeatures(contrast=CONTRAST)
    X = features.fit_transform([images[i] for i in train], [masks[i] for i in train], directions(args.neighbours))
    Z = features.transform([images[i] for i in test])
    y, truth = [masks[i] for i in train], [masks[i] for i in test]
    seconds = {"features": time.perf_counter() - begin}
    options = {"neighbours": args.neighbours, "C": args.C, "cost": args.cost, "tol": args.tol}

    unary = ImageSegmenter(**options).fit(nodes_only(X), y)
    seconds["unary"] = unary.seconds_["total"] - unary.seconds_["compile"]
    begin = time.perf_counter()
    smooth, chosen = smoothed(unary, X, y, Z, args.neighbours)
    seconds["smoothness"] = time.perf_counter() - begin
    structured = ImageSegmenter(**options).fit(X, y)
    seconds["structured"] = structured.seconds_["total"] - structured.seconds_["compile"]
    ramp = ImageSegmenter(loss="ramp", start=structured, max_passes=60, **options).fit(X, y)
    seconds["ramp"] = ramp.seconds_["total"] - ramp.seconds_["compile"]
    print(f"  features {seconds['features']:.0f} s; smoothness by grid search: {chosen}")
    for name, fit in (("structured", structured), ("ramp", ramp)):
        edges = np.round(fit.edge_coef_, 2)
        print(
            f"  {name}: {fit.certificate_}, {fit.oracle_calls_} cuts, {seconds[name]:.1f} s, edges {edges}", flush=True
        )
    predicted = {"unary": unary.predict(nodes_only(Z)), "smoothness": smooth}
    predicted |= {"structured": structured.predict(Z), "ramp": ramp.predict(Z)}
    print("  test IoU: " + ", ".join(f"{name} {mean_iou(truth, predicted[name]):.4f}" for name in METHODS), flush=True)
    return {"test": test, "truth": truth, "predicted": predicted, "seconds": seconds, "train": (X, y)}


def report(splits: list[dict]) -> None:
    print(f"\n{'method':12s} {'IoU':>7s} {'Dice':>7s} {'pixels':>7s} {'boundary F':>11s} {'seconds':>8s}")
    for name in METHODS:
        rows = [
            [metric(s["truth"], s["predicted"][name]) for metric in (mean_iou, mean_dice, pixel_accuracy, boundary_f)]
            + [s["seconds"][name]]
            for s in splits
        ]
        iou, dice, pixels, boundary, seconds = np.mean(rows, axis=0)
        print(f"{name:12s} {iou:7.4f} {dice:7.4f} {pixels:7.4f} {boundary:11.4f} {seconds:8.1f}")
    rng = np.random.default_rng(0)
    for name, other in product(METHODS[2:], METHODS[:2]):
        print(f"\nIoU of {name} - {other}, with 95 % intervals")
        means = []
        for k, s in enumerate(splits):
            own, its = (each_iou(s["truth"], s["predicted"][n]) for n in (name, other))
            difference = own - its
            draws = rng.choice(difference, (2000, len(difference))).mean(axis=1)
            low, high = np.quantile(draws, [0.025, 0.975])
            means.append(difference.mean())
            better = np.mean(difference > 0)
            print(f"  split {k}: {means[-1]:+.4f} [{low:+.4f}, {high:+.4f}], better on {better:.0%} of the images")
        if len(means) > 1:
            half = stats.t.ppf(0.975, len(means) - 1) * np.std(means, ddof=1) / np.sqrt(len(means))
            print(f"  mean: {np.mean(means):+.4f} [{np.mean(means) - half:+.4f}, {np.mean(means) + half:+.4f}]")


def compare_solvers(X: list[dict], y: list, args: argparse.Namespace) -> None:
    print(f"\n{'solver':20s} {'cuts':>7s} {'seconds':>8s} {'relative gap':>13s}")
    for name, solver in SOLVERS.items():
        fit = ImageSegmenter(
            neighbours=args.neighbours, C=args.C, cost=args.cost, tol=args.tol, solver=solver, max_seconds=60
        ).fit(X, y)
        work = fit.seconds_["total"] - fit.seconds_["compile"]
        print(f"{name:20s} {fit.oracle_calls_:7d} {work:8.1f} {fit.certificate_.relative_gap:13.5f}", flush=True)


def draw(images: list, split: dict, path: Path) -> None:
    """A page of pictures: image, truth and all methods; spread from the worst to the best image."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    iou = each_iou(split["truth"], split["predicted"]["structured"])
    shown = np.argsort(iou)[np.linspace(0, len(iou) - 1, 8).astype(int)]
    figure, axes = plt.subplots(len(shown), 2 + len(METHODS), figsize=(13, 1.75 * len(shown)))
    for row, i in zip(axes, shown, strict=True):
        image = images[split["test"][i]]
        panels = [("image", image), ("truth", split["truth"][i])] + [(n, split["predicted"][n][i]) for n in METHODS]
        for axis, (name, panel) in zip(row, panels, strict=True):
            axis.axis("off")
            if panel.ndim == 3:
                axis.imshow(panel)
                continue
            axis.imshow((image * (0.25 + 0.75 * panel[..., None])).astype(np.uint8))
            score = "" if name == "truth" else f" {mean_iou([split['truth'][i]], [panel]):.2f}"
            axis.set_title(name + score, fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"\npictures in {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Weizmann horses: structured, unary and grid-searched smoothness.")
    parser.add_argument("--quick", action="store_true", help="one split of 40 + 40 images")
    parser.add_argument("--solvers", action="store_true", help="also compare solvers on the first split")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--neighbours", type=int, default=4, choices=(4, 8))
    parser.add_argument("--cost", default="hamming")
    parser.add_argument("--C", type=float, default=100.0)
    parser.add_argument("--tol", type=float, default=1e-2)
    args = parser.parse_args()
    warnings.filterwarnings("ignore", message="Stopped")

    images, masks = load()
    n_train, n_test = (40, 40) if args.quick else (160, 168)
    splits = []
    for k in range(1 if args.quick else args.splits):
        seed = FIRST_SEED + k
        order = np.random.default_rng(seed).permutation(len(images))
        print(f"split {seed}", flush=True)
        splits.append(one_split(images, masks, order[:n_train], order[n_train : n_train + n_test], args))
        if k > 0:
            del splits[-1]["train"]
    report(splits)
    if args.solvers:
        compare_solvers(*splits[0]["train"], args)
    draw(images, splits[0], Path("outputs/horses.png"))


if __name__ == "__main__":
    main()
