"""Strokes of a user on held-out horses, for ``pictures.py --interactive``."""

from __future__ import annotations

import resource
import time
from collections import defaultdict

import horses
import numpy as np
from scipy import ndimage

from maxmargin.estimators.image_segmenter import ImageSegmenter
from maxmargin.metrics.segmentation import mean_iou

TRAIN, TEST, LONGEST = 24, 24, 20
SEED = 11  # 1 and 101 were looked at while the settings were chosen


def strokes(mask: np.ndarray, rng: np.random.Generator, count: int = 2) -> np.ndarray:
    """True labels along ``count`` straight strokes of three pixels' width for each label, -1 elsewhere."""
    known = np.full(mask.shape, -1)
    for label in (0, 1):
        inside = ndimage.distance_transform_edt(mask == label)
        deep = np.argwhere(inside >= min(4, inside.max()))
        for _ in range(count):
            place, way = deep[rng.integers(len(deep))], rng.normal(size=2)
            way /= np.linalg.norm(way)
            for step in np.arange(0, LONGEST, 0.5):
                at = np.round(place + step * way).astype(int)
                if (at < 0).any() or (at >= mask.shape).any() or inside[tuple(at)] < 2:
                    break
                here = tuple(slice(max(a - 1, 0), a + 2) for a in at)
                known[here] = np.where(mask[here] == label, label, known[here])
    return known


def grab_cut(image: np.ndarray, known: np.ndarray, unknown: int) -> np.ndarray:
    import cv2

    mask = np.full(known.shape, unknown, np.uint8)
    mask[known == 1], mask[known == 0] = cv2.GC_FGD, cv2.GC_BGD
    cv2.setRNGSeed(0)
    models = np.zeros((1, 65)), np.zeros((1, 65))
    cv2.grabCut(np.ascontiguousarray(image[..., ::-1]), mask, None, *models, 5, cv2.GC_INIT_WITH_MASK)
    return mask & 1


def random_walk(image: np.ndarray, known: np.ndarray) -> np.ndarray:
    from skimage.segmentation import random_walker

    return (random_walker(image / 255.0, known + 1, beta=130, mode="cg_j", channel_axis=-1) == 2).astype(np.uint8)


def compare() -> None:
    """Intersection over union and processor milliseconds an image, of all methods with the same strokes."""
    import cv2
    from pictures import nuclei

    images, masks = horses.load()
    order = np.random.default_rng(SEED).permutation(len(images))
    train, test = order[:TRAIN], order[TRAIN : TRAIN + TEST]
    own = ImageSegmenter(neighbours=8, C=0.1).fit([images[i] for i in train], [masks[i] for i in train])
    tiles, tile_masks = nuclei()
    colour = [np.repeat((255 * tile)[..., None], 3, axis=-1).astype(np.uint8) for tile in tiles[::2]]
    foreign = ImageSegmenter(neighbours=8, C=0.1).fit(colour, tile_masks[::2])
    methods = {
        "ours, no strokes": lambda image, known: own.predict([image])[0],
        "ours, strokes fix pixels": lambda image, known: own.predict([image], [known], learn_colours=False)[0],
        "ours, strokes teach colours": lambda image, known: own.predict([image], [known])[0],
        "foreign, strokes fix pixels": lambda image, known: foreign.predict([image], [known], learn_colours=False)[0],
        "foreign, strokes teach colours": lambda image, known: foreign.predict([image], [known])[0],
        "cv2.grabCut, rest background": lambda image, known: grab_cut(image, known, cv2.GC_PR_BGD),
        "cv2.grabCut, rest foreground": lambda image, known: grab_cut(image, known, cv2.GC_PR_FGD),
        "random walker": random_walk,
    }
    found, seconds = defaultdict(list), defaultdict(float)
    for i in test:
        known = strokes(masks[i], np.random.default_rng(int(i)))
        for name, method in methods.items():
            begin = time.process_time()
            found[name].append(method(images[i], known))
            seconds[name] += time.process_time() - begin
    truth = [masks[i] for i in test]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rng = np.random.default_rng(0)
    print(f"{len(test)} held-out horses; {'method':32s} {'IoU':>7s}  95 % over images   ms an image")
    for name, predicted in found.items():
        scores = np.array([mean_iou([a], [b]) for a, b in zip(truth, predicted, strict=True)])
        low, high = np.quantile(rng.choice(scores, (2000, len(scores))).mean(axis=1), [0.025, 0.975])
        print(f"  {name:32s} {scores.mean():.4f}  [{low:.4f}, {high:.4f}]  {1e3 * seconds[name] / len(test):8.1f}")
    print(f"  at most {memory:.0f} MB for the whole run, training included")
