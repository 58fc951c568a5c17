"""Segmenters that begin at a calibrated classifier: log-odds, the centre, costs, colours taught by strokes, tuning."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from maxmargin.estimators.calibrated_start import Start, calibrated_starts, clearly_best, held_out_choice
from maxmargin.estimators.image_segmenter import ImageSegmenter
from maxmargin.estimators.segmentation_tuning import best_score, held_out_scores
from maxmargin.features import pixel_classifier
from maxmargin.features.images import ImageFeatures
from maxmargin.features.own_colours import place_of_foreground, places_of_foreground
from maxmargin.features.stroke_colours import StrokeColours
from maxmargin.features.textures import orientations, ridges
from maxmargin.inference.min_cut import directions
from maxmargin.metrics.segmentation import mean_iou
from maxmargin.models.grid import Grid
from maxmargin.reports.summary import summary
from maxmargin.solvers.engine import DualEngine

PLAIN = {"position": False, "texture": False, "orientation": False, "ridge": False, "mixture": 0, "own": False}


def blocks(n, seed=0, shape=(16, 20), noise=0.3):
    rng = np.random.default_rng(seed)
    masks = []
    for _ in range(n):
        mask = np.zeros(shape, int)
        top, left = rng.integers(1, 7), rng.integers(1, 9)
        mask[top : top + 8, left : left + 9] = 1
        masks.append(mask)
    return [0.3 + 0.3 * mask + rng.normal(scale=noise, size=shape) for mask in masks], masks


def test_log_odds_agree_with_a_peer(monkeypatch):
    monkeypatch.setattr(pixel_classifier, "_RIDGES", (0.005,))
    monkeypatch.setattr(pixel_classifier, "_STEPS", 500)
    rng = np.random.default_rng(0)
    features = [np.concatenate([rng.normal(size=(20, 30, 2)), np.ones((20, 30, 1))], axis=-1) for _ in range(2)]
    masks = [(x[..., 0] * x[..., 1] + rng.logistic(size=(20, 30)) > 0.5).astype(int) for x in features]
    table, _ = pixel_classifier.cross_fitted(features, masks, 2, 10_000, rng)
    x = np.clip(np.concatenate([f.reshape(-1, 3) for f in features]), -3, 3)
    i, j = np.triu_indices(3)
    peer = LogisticRegression(C=1.0 / (0.005 * len(x)), fit_intercept=False, tol=1e-8, max_iter=1000)
    peer.fit(x[:, i] * x[:, j], np.concatenate([m.ravel() for m in masks]))
    np.testing.assert_allclose(table[i, j], peer.coef_[0], atol=2e-3)
    odds = pixel_classifier.log_odds(features[0], table)
    np.testing.assert_allclose(odds.ravel(), peer.decision_function(x[:600, i] * x[:600, j]), atol=1e-2)


@pytest.mark.found("E: unary costs are calibrated")
@pytest.mark.parametrize("context", [False, True])
def test_log_odds_are_calibrated_on_new_images(context):
    images, masks = blocks(112)
    features = ImageFeatures(**PLAIN, context=context)
    features.fit(images[:12], masks[:12], directions(4))
    made = features.transform(images[12:])
    odds = np.concatenate([(x["node"] @ features.log_odds_weights()).ravel() for x in made])
    truth = np.concatenate([mask.ravel() for mask in masks[12:]])
    for low, high in ((-3.0, -2.0), (-2.0, -1.0), (-1.0, 0.0), (0.0, 1.0)):
        here = (odds >= low) & (odds < high)
        assert abs(truth[here].mean() - (1.0 / (1.0 + np.exp(-odds[here]))).mean()) < 0.06


def test_no_feature_of_a_training_image_knows_its_mask():
    """Wrong masks change the features of other images only: their own log-odds and places come from the rest."""
    _, masks = blocks(6)
    whole, others = places_of_foreground(masks, 2)
    np.testing.assert_allclose(others[2], place_of_foreground(masks[:2] + masks[3:], 2))
    np.testing.assert_allclose(whole, place_of_foreground(masks, 2))
    features = ImageFeatures(**{**PLAIN, "own": True, "position": True})
    (noise, *_) = features.fit_transform(
        [np.random.default_rng(s).normal(size=(16, 20)) for s in range(6)], masks, directions(4)
    )
    odds = noise["node"] @ features.log_odds_weights()
    assert abs(np.corrcoef(odds.ravel(), masks[0].ravel())[0, 1]) < 0.95


def test_the_centre_is_what_small_weights_of_the_losses_stay_near():
    """An independent minimiser of ``1/2 |w - c|^2 + C sum loss`` over four masks of a tiny image by enumeration."""
    rng = np.random.default_rng(1)
    node, edge = rng.normal(size=(1, 3, 2)), rng.random((2, 1, 3, 1))
    mask, centre, C = np.array([[1, 0, 1]]), np.array([0.5, -0.2, 0.3]), 0.7
    every = np.array(np.meshgrid(*[[0, 1]] * 3)).reshape(3, -1).T

    def phi(y):
        cut = sum(edge[0, 0, p, 0] * (y[p] != y[p + 1]) for p in range(2))
        return np.append(y @ node[0], -cut)

    def objective(w):
        losses = [np.sum(y != mask[0]) - w @ (phi(mask[0]) - phi(y)) for y in every]
        return 0.5 * np.sum((w - centre) ** 2) + C * max(losses) / 3

    starts = [centre, np.zeros(3), *rng.normal(size=(5, 3))]
    bounds = [(None, None), (None, None), (0, None)]
    options = {"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-9, "fatol": 1e-12}
    best = min((minimize(objective, np.maximum(s, [-9, -9, 0]), method="Nelder-Mead", bounds=bounds, options=options)
                for s in starts), key=lambda found: found.fun)  # fmt: skip
    fitted = ImageSegmenter(C=C, centre=centre, tol=1e-8).fit([{"node": node, "edge": edge}], [mask])
    assert fitted.certificate_.primal == pytest.approx(best.fun, abs=1e-5)
    np.testing.assert_allclose(fitted.weights_, best.x, atol=2e-3)
    still = ImageSegmenter(C=0.0, centre=centre).fit([{"node": node, "edge": edge}], [mask])
    np.testing.assert_allclose(still.weights_, centre)


@pytest.mark.found("E: default C is fragile")
def test_any_C_gives_about_the_same():
    images, masks = blocks(16)
    features = ImageFeatures(mixture=0)
    fits = [ImageSegmenter(C=C, features=features).fit(images[:8], masks[:8]) for C in (0.001, 0.1, 10.0)]
    scores = [fit.score(images[8:], masks[8:]) for fit in fits]
    assert max(scores) - min(scores) < 0.06 and min(scores) > 0.7


def tiny(n=6, seed=0):
    """Images of feature arrays: log-odds that are too low by 1, a constant, and two edge features."""
    rng = np.random.default_rng(seed)
    _, masks = blocks(n, seed, (12, 14))
    odds = [2.0 * mask - 2.0 + rng.normal(scale=1.5, size=mask.shape) for mask in masks]
    edges = [np.stack([np.ones((2, 12, 14)), rng.random((2, 12, 14))], axis=-1) for _ in masks]
    nodes = [np.dstack([odd, np.ones(odd.shape)]) for odd in odds]
    return [{"node": node, "edge": edge} for node, edge in zip(nodes, edges, strict=True)], masks


def test_the_centre_is_no_worse_than_any_single_smoothness():
    """All points of the coarse grid, and the threshold, by brute force; a given ratio is kept."""
    X, masks = tiny()
    bound, log_odds = Grid(4).bind(X, masks), np.array([1.0, 0.0])

    def score(w):
        return mean_iou([mask.ravel() for mask in masks], bound.argmax(np.asarray(w)).outputs)

    weights = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)
    grid = [score([1.0, 0.0, *(weight * np.eye(2)[k])]) for k in range(2) for weight in weights]
    (smooth, even), (centre, ratio) = calibrated_starts(bound, masks, log_odds)
    _, (kept, same) = calibrated_starts(bound, masks, log_odds, 1.0)
    assert score(smooth) >= max(grid) - 2e-4 and even == 1.0 and np.count_nonzero(smooth[2:]) == 1
    others = calibrated_starts(bound, [*masks[:3], *[1 - mask for mask in masks[3:]]], log_odds, among=np.arange(3))
    np.testing.assert_array_equal(others.smooth.weights, calibrated_starts(bound, masks[:3], log_odds)[0].weights)
    assert score(centre) >= score(kept) >= max(grid) - 1e-12 and ratio > 1.2
    assert same == 1.0 and kept[1] == 0.0 and centre[1] == pytest.approx(0.3 * np.log(ratio))
    assert (centre[2:] >= 0).all() and centre[0] == pytest.approx(0.3)


@pytest.mark.found("E: default C is fragile")
def test_the_start_is_left_only_for_a_gain_on_held_out_images():
    X, masks = tiny()
    bound, calls, taught = Grid(4).bind(X, masks), [], []
    good, bad, worst = (np.array([1.0, constant, 0.5, 0.0]) for constant in (1.0, -1.0, -9.0))
    rising = {1.0: -0.5, 10.0: 0.0, 100.0: 1.0}

    def choice(train, starts=(good, bad), masks=masks):
        def found(images):
            taught.append(images)
            return [Start(weights, 1.0) for weights in starts]

        return held_out_choice(found, train, bound, masks, 0)

    def train(start, C, inside):
        calls.append(inside)
        return np.array([1.0, rising[C], 0.5, 0.0]) if C else start.weights

    assert choice(train, (worst, bad)) == (1, 100.0)
    assert choice(lambda start, C, inside: good) == (0, 0.0)
    assert choice(lambda start, C, inside: start.weights, (bad, good)) == (1, 0.0)
    assert choice(lambda start, C, inside: bad if C else start.weights, (bad, good)) == (1, 0.0)
    tried = []
    choice(lambda start, C, inside: tried.append(C) or (good if C == 1.0 else bad), (bad,))
    assert tried == [0.0] * 3 + [1.0] * 3 + [10.0] * 3  # 100 would be further on the way down
    held_out = ~np.unique(calls, axis=0)
    assert (held_out.sum(axis=0) == 1).all() and (held_out.sum(axis=1) == 2).all()  # each of the six once, in thirds
    for inside, images in zip([calls[0], calls[1], calls[2]], taught[:3], strict=True):
        np.testing.assert_array_equal(np.flatnonzero(inside), images)  # a start has not seen the images it is judged by
    assert choice(train, masks=masks[:1]) == (-1, 0.1)


def test_the_first_is_outdone_only_clearly():
    first = np.array([0.5, 0.6, 0.7, 0.8])
    lucky = first + np.array([0.30, -0.11, -0.11, -0.07])  # a gain of 0.0025, standard error 0.1
    steady = first + np.array([0.01, 0.02, 0.01, 0.02])
    assert clearly_best(np.array([first, lucky])) == 0
    assert clearly_best(np.array([first, lucky, steady])) == 2
    assert clearly_best(np.array([first, first - 0.1])) == 0


@pytest.mark.found("E: default C is fragile")
@pytest.mark.filterwarnings("ignore:Stopped at max_passes")
def test_the_default_C_by_case(tmp_path):
    X, masks = tiny()
    plain = ImageSegmenter().fit(X, masks)
    assert plain.C is None and plain.C_ == 1.0
    np.testing.assert_array_equal(plain.weights_, ImageSegmenter(C=1.0).fit(X, masks).weights_)
    centred = ImageSegmenter(centre=[1.0, 1.0, 0.5, 0.0]).fit(X, masks)
    assert centred.C_ in (0.0, 1.0, 10.0, 100.0)
    np.testing.assert_array_equal(centred.centre_, [1.0, 1.0, 0.5, 0.0])
    given = ImageSegmenter(centre=[1.0, 1.0, 0.5, 0.0], C=centred.C_).fit(X, masks)
    np.testing.assert_array_equal(centred.weights_, given.weights_)
    assert ImageSegmenter(centre=[1.0, 1.0, 0.5, 0.0], per_pixel=False, max_passes=3).fit(X, masks).C_ == 1.0
    loaded = ImageSegmenter.load(centred.save(tmp_path / "m.mm"))
    assert loaded.C is None and loaded.C_ == centred.C_ and f"C = {centred.C_:.4g} on" in summary(loaded)


def test_strokes_tell_colours_apart():
    """Two colours at random places: the sign of the log ratio is the colour of the stroke, away from it too."""
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=(20, 30))
    picture = np.where(kind[..., None], [0.8, 0.2, 0.3], [0.2, 0.5, 0.3]) + rng.normal(scale=0.03, size=(20, 30, 3))
    scribble = np.where(np.arange(600).reshape(20, 30) < 90, kind, -1)
    colours = StrokeColours(picture, directions(4))
    ratio = colours.log_ratio(np.maximum(scribble, 0), scribble)
    assert ((ratio > 0) == kind).mean() > 0.9  # though all that is not stroked counts as background
    across = kind[:, :-1] != kind[:, 1:]
    assert colours.capacities[0][:, :-1][across].max() < colours.capacities[0][:, :-1][~across].min()
    assert np.isfinite(colours.log_ratio(np.zeros((20, 30)), np.full((20, 30), -1))).all()


def test_what_a_centre_needs():
    images, masks = blocks(2)
    node = [{"node": image[..., None]} for image in images]
    for options, X, message in [
        ({"centre": "smooth"}, node, 'centre="smooth" needs features made of images'),
        ({"centre": "calibrated"}, node, 'centre="calibrated" needs features made of images'),
        ({"centre": "calibrated", "loss": "ramp"}, images, "a convex loss"),
        ({"centre": "middle"}, images, 'centre must be "auto"'),
        ({"centre": np.zeros(9)}, node, "weights of shape"),
        ({"cost": (1.0, -1.0)}, node, "two positive numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            ImageSegmenter(features=None if X is node else ImageFeatures(**PLAIN), **options).fit(X, masks)


@pytest.mark.found("E: thin structures")
def test_a_thin_foreground_survives():
    """A dark line of two pixels under noise is found, and no worse than by the classifier alone."""
    rng = np.random.default_rng(0)
    images, masks = [], []
    for k in range(10):
        mask = np.zeros((24, 30), int)
        mask[6 + k : 8 + k] = 1
        mask[:, 4 + 2 * k : 6 + 2 * k] = 1
        masks.append(mask)
        images.append(0.6 - 0.35 * mask + rng.normal(scale=0.15, size=mask.shape))
    segmenter = ImageSegmenter(features=ImageFeatures(mixture=0), cost="auto").fit(images[:6], masks[:6])
    made = segmenter.features_.transform(images[6:])
    alone = [(x["node"] @ segmenter.features_.log_odds_weights() > 0).astype(int) for x in made]
    assert segmenter.score(images[6:], masks[6:]) >= mean_iou(masks[6:], alone) - 0.01


def test_a_pair_of_costs_counts_wrong_pixels_by_their_label():
    images, masks = blocks(4)
    dear = ImageSegmenter(features=ImageFeatures(mixture=0), cost=(1.0, 20.0), C=0.01).fit(images, masks)
    cheap = ImageSegmenter(features=ImageFeatures(mixture=0), cost=(20.0, 1.0), C=0.01).fit(images, masks)
    assert sum(m.sum() for m in dear.predict(images)) > sum(m.sum() for m in masks) > 0
    assert sum(m.sum() for m in cheap.predict(images)) < sum(m.sum() for m in masks)
    assert dear.layout_.cost(masks[0], 1 - masks[0]) == (masks[0] == 0).sum() + 20 * (masks[0] == 1).sum()


@pytest.mark.found("E: scribbles only clamp pixels")
def test_strokes_teach_the_colours_of_a_foreign_picture():
    """A model of bright blocks meets a picture in which the object is the dark part."""
    images, masks = blocks(6, noise=0.15)
    segmenter = ImageSegmenter(features=ImageFeatures(mixture=0)).fit(images, masks)
    rng = np.random.default_rng(5)
    mask = np.zeros((16, 20), int)
    mask[3:13, 2:12] = 1
    picture = 0.7 - 0.4 * mask + rng.normal(scale=0.05, size=mask.shape)
    strokes = np.full(mask.shape, -1)
    strokes[7, 3:11], strokes[2:14, 16] = 1, 0
    fixed = segmenter.predict([picture], [strokes], learn_colours=False)
    taught = segmenter.predict([picture], [strokes])
    assert mean_iou([mask], taught) > mean_iou([mask], fixed) + 0.2 and mean_iou([mask], taught) > 0.75
    assert (taught[0][strokes >= 0] == strokes[strokes >= 0]).all()
    session = segmenter.interactive(picture)
    session.update(strokes)
    np.testing.assert_array_equal(session.learn_colours(), taught[0])
    more = np.full(mask.shape, -1)

    more[3:13, 2:12] = 1
    assert mean_iou([mask], [session.update(more)]) >= mean_iou([mask], taught)  # later strokes keep the colours
    without = ImageSegmenter().fit([{"node": picture[..., None]}], [mask]).interactive({"node": picture[..., None]})
    with pytest.raises(ValueError, match="no colours to learn"):
        without.learn_colours()


def test_held_out_scores_are_those_of_fits_on_the_other_images():
    images, masks = blocks(6)
    plain = ImageSegmenter(features=ImageFeatures(**PLAIN), random_state=3)
    found = held_out_scores(plain, images, masks, C=(0.01, 1.0), folds=2)
    tried = [(one.centre, one.C, one.tolerance) for one in found]
    assert tried == [(centre, C, 0.0) for centre in ("smooth", "calibrated") for C in (0.01, 1.0)]
    part = np.random.default_rng(3).permutation(6) % 2
    expected = []
    plain.set_params(centre="calibrated")
    for fold in range(2):
        inside, outside = np.flatnonzero(part != fold), np.flatnonzero(part == fold)
        plain.set_params(C=1.0).fit([images[i] for i in inside], [masks[i] for i in inside])
        expected += [mean_iou([masks[i]], plain.predict([images[i]])) for i in outside]
    np.testing.assert_allclose(found[3].scores, expected, atol=0.02)
    best = best_score(found)
    assert best.mean >= found[0].mean and best in found
    with pytest.raises(ValueError, match="folds is 7 with 6 images"):
        held_out_scores(plain, images, masks, folds=7)


@pytest.mark.found("C: ImageSegmenter.score(X, masks * 255)")
def test_black_and_white_masks_in_arrays():
    images, masks = blocks(4, noise=0.12)
    features = ImageFeatures(**PLAIN)
    plain = ImageSegmenter(features=features).fit(images, masks)
    white = ImageSegmenter(features=features).fit(images, [255 * mask for mask in masks])
    np.testing.assert_array_equal(plain.weights_, white.weights_)
    assert plain.score(images, [255 * mask for mask in masks]) == plain.score(images, masks) > 0.1


@pytest.mark.found("C: ImageSegmenter.predict(single_image)")
def test_one_image_is_not_a_list_of_rows():
    images, masks = blocks(3)
    segmenter = ImageSegmenter(features=ImageFeatures(**PLAIN)).fit(np.stack(images), np.stack(masks))
    assert len(segmenter.predict(np.stack(images))) == 3
    colour = ImageSegmenter(features=ImageFeatures(**PLAIN)).fit([np.dstack([i] * 3) for i in images], masks)
    for call in (
        lambda: segmenter.predict(images[0]),
        lambda: segmenter.score(images[0], masks[0]),
        lambda: segmenter.fit(images[0], masks[0]),
        lambda: colour.predict(np.dstack([images[0]] * 3)),
    ):
        with pytest.raises(ValueError, match="X is one image; give a list of images"):
            call()


def test_ridges_are_eigenvalues():
    image = np.random.default_rng(0).normal(size=(9, 8, 1))
    second = {way: 4.0 * ndimage.gaussian_filter(image[..., 0], 2.0, order=way) for way in ((2, 0), (1, 1), (0, 2))}
    hessian = np.stack([second[2, 0], second[1, 1], second[1, 1], second[0, 2]], axis=-1).reshape(9, 8, 2, 2)
    np.testing.assert_allclose(ridges(image, scales=(2.0,)), np.linalg.eigvalsh(hessian)[..., ::-1], atol=1e-14)


def test_lines_and_directions():
    rows = np.zeros((21, 21, 1))
    rows[10] = -1.0
    found = ridges(rows, scales=(1.0,))
    assert found[10, 10, 0] > 0.2 and abs(found[10, 10, 1]) < 1e-4  # a dark line bends upwards across
    volume = ridges(np.random.default_rng(0).normal(size=(6, 7, 8, 1)))
    assert volume.shape == (6, 7, 8, 9) and (np.diff(volume.reshape(6, 7, 8, 3, 3), axis=-1) <= 1e-12).all()
    slope = np.arange(21.0)[:, None, None] * np.ones((1, 21, 1)) / 10
    _, across, mixed = np.moveaxis(orientations(slope, scales=(2.0,)), -1, 0)[:, 10, 10]
    assert across == pytest.approx(1.0, abs=0.02) and mixed == pytest.approx(0.0, abs=1e-9)


def test_ctrl_c_ends_the_choice_of_C_and_leaves_the_calibrated_start(monkeypatch):
    rng = np.random.default_rng(0)
    masks = [np.pad(np.ones((6, 6), int), 3 + k % 2)[:12, :12] for k in range(6)]
    images = [mask + rng.normal(scale=0.3, size=mask.shape) for mask in masks]
    calls, step = [], DualEngine.step

    def interrupted(self, state):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return step(self, state)

    monkeypatch.setattr(DualEngine, "step", interrupted)
    segmenter = ImageSegmenter(random_state=0).fit(images, masks)
    assert segmenter.status_.code == "interrupted" and segmenter.C_ == 0.0
    assert segmenter.score(images, masks) > 0.5


def test_the_choice_of_C_takes_at_most_half_of_the_seconds():
    rng = np.random.default_rng(0)
    masks = [np.pad(np.ones((6, 6), int), 3 + k % 2)[:12, :12] for k in range(6)]
    images = [mask + rng.normal(scale=0.3, size=mask.shape) for mask in masks]
    segmenter = ImageSegmenter(random_state=0, max_seconds=1e-6).fit(images, masks)
    assert segmenter.C_ == 0.0
