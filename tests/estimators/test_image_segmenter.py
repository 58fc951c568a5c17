"""Segmentation of small synthetic pictures: what is learned, scribbles, files, and bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from maxmargin.estimators.image_segmenter import ImageSegmenter
from maxmargin.features.contrast import contrast_edges
from maxmargin.features.images import ImageFeatures, positions
from maxmargin.features.mixtures import Mixture, quick_mixture
from maxmargin.features.own_colours import colour_range, own_colours, place_of_foreground
from maxmargin.inference.min_cut import directions, grid_cut


def pictures(n=6, shape=(14, 18), noise=0.35, seed=0, channels=3):
    """Noisy blocks of another colour, of different sizes."""
    rng = np.random.default_rng(seed)
    images, masks = [], []
    for i in range(n):
        size = (*shape[:-1], shape[-1] + i % 3)
        mask = np.zeros(size, int)
        corner = [rng.integers(1, s // 3 + 1) for s in size]
        mask[tuple(slice(c, c + s // 2) for c, s in zip(corner, size, strict=True))] = 1
        image = 0.3 + 0.4 * mask[..., None] + rng.normal(scale=noise, size=(*size, channels))
        images.append(image)
        masks.append(mask)
    return images, masks


@pytest.fixture(scope="module")
def fitted():
    images, masks = pictures()
    return ImageSegmenter(features=ImageFeatures(mixture=2)).fit(images, masks)


def test_learned_edges_help(fitted):
    images, masks = pictures()
    fresh, truth = pictures(seed=1)
    alone = ImageSegmenter(features=ImageFeatures(mixture=2, edges=False)).fit(images, masks)
    assert fitted.certificate_.certified and fitted.certificate_.relative_gap <= 1e-2
    assert (fitted.edge_coef_ >= 0).all() and fitted.edge_coef_.max() > 0 and alone.edge_coef_.size == 0
    assert fitted.score(fresh, truth) > alone.score(fresh, truth) + 0.02
    assert [mask.shape for mask in fitted.predict(fresh)] == [mask.shape for mask in truth]


def test_prediction_is_the_cut_of_the_features(fitted):
    fresh, _ = pictures(2, seed=2)
    scribbles = [np.full(image.shape[:2], -1) for image in fresh]
    scribbles[0][2:4, 2:9] = 1
    scribbles[0][10, :] = 0
    for known in (None, scribbles):
        for i, x in enumerate(fitted.features_.transform(fresh)):
            one = -(x["node"].astype(float) @ fitted.node_coef_)
            unary = np.stack([np.zeros_like(one), one], axis=-1)
            if known is not None:
                unary[known[i] == 1, 0] = unary[known[i] == 0, 1] = np.inf
            labels, _ = grid_cut(unary, x["edge"].astype(float) @ fitted.edge_coef_, 4)
            np.testing.assert_array_equal(fitted.predict(fresh, scribbles=known, learn_colours=False)[i], labels)


@pytest.mark.parametrize(
    "loss, cost", [("squared_hinge", "balanced"), ("ramp", "hamming"), ("hinge", "balanced_image")]
)
def test_losses_and_costs(loss, cost):
    images, masks = pictures(4)
    options = {"loss": loss, "cost": cost, "boundary": 1.0, "neighbours": 8, "C": 1.0}
    segmenter = ImageSegmenter(features=ImageFeatures(mixture=0), **options)
    assert segmenter.fit(images, masks).score(images, masks) > 0.7


def test_tolerance_forgives_boundaries_that_are_off():
    # masks shifted by one pixel: with a tolerance the learned masks follow the edges of the image, not the shift
    images, masks = pictures(6, noise=0.15)
    off = [np.roll(mask, 1 - 2 * (i % 2), axis=1) for i, mask in enumerate(masks)]
    options = {"features": ImageFeatures(mixture=0, contrast=(4.0,)), "C": 10.0}
    strict = ImageSegmenter(**options).fit(images, off)
    loose = ImageSegmenter(tolerance=1.5, **options).fit(images, off)
    assert loose.certificate_.certified and loose.certificate_.relative_gap <= 1e-2
    assert loose.certificate_.primal < 0.8 * strict.certificate_.primal  # the truth is easier to reach
    assert loose.edge_coef_.sum() > strict.edge_coef_.sum() and loose.score(images, masks) > 0.98
    again = ImageSegmenter(tolerance=1.5, start=loose, refits=1, **options)
    assert clone(again).start is loose
    again.fit(images, off)
    assert again.oracle_calls_ < loose.oracle_calls_  # no first fit of its own


@pytest.mark.parametrize(
    "options, message",
    [
        ({"tolerance": -1.0}, "tolerance is -1.0"),
        ({"tolerance": 2.0, "refits": 1.5}, "refits must be a whole number"),
        ({"tolerance": 2.0, "warm_start": True}, "warm_start needs the same truth"),
        ({"tolerance": 2.0, "start": np.zeros(3)}, "start model has weights of shape"),
        ({"features": ImageFeatures(contrasts=("wide",))}, "contrasts must be among pixels, image, local"),
        ({"features": ImageFeatures(contrast={"sharp": 2.0})}, "contrast must be an array of real numbers"),
    ],
    ids=["negative", "refits", "warm", "start", "contrasts", "contrast"],
)
def test_bad_options(options, message):
    images, masks = pictures(2)
    with pytest.raises(ValueError, match=message):
        ImageSegmenter(**options).fit(images, masks)


def test_volumes():
    images, masks = pictures(3, shape=(6, 8, 9), noise=0.2, channels=1)
    volumes = [image[..., 0] for image in images]
    segmenter = ImageSegmenter(features=ImageFeatures(mixture=1), neighbours=6).fit(volumes[:2], masks[:2])
    assert segmenter.score(volumes[2:], masks[2:]) > 0.8


def test_normalized_losses_do_not_depend_on_how_often_an_image_is_tiled():
    # two copies side by side without edges have twice the loss, hence the same normalised loss
    rng = np.random.default_rng(0)
    node, mask = rng.normal(size=(4, 5, 3)), rng.integers(0, 2, (4, 5))
    once = ImageSegmenter(tol=1e-8).fit([{"node": node}], [mask])
    twice = ImageSegmenter(tol=1e-8).fit([{"node": np.tile(node, (1, 2, 1))}], [np.tile(mask, (1, 2))])
    np.testing.assert_allclose(once.weights_, twice.weights_, atol=1e-5)


def test_files(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    images, masks = pictures(3, noise=0.1)
    bytes_ = [(np.clip(image, 0, 1) * 255).astype(np.uint8) for image in images]
    paths, mask_paths = [], []
    for i, (image, mask) in enumerate(zip(bytes_, masks, strict=True)):
        paths.append(tmp_path / f"{i}.png")
        mask_paths.append(str(tmp_path / f"mask{i}.png"))
        image_module.fromarray(image).save(paths[-1])
        image_module.fromarray((255 * mask).astype(np.uint8)).save(mask_paths[-1])  # white is the foreground
    from_files = ImageSegmenter(features=ImageFeatures(mixture=1)).fit(paths, mask_paths)
    from_arrays = ImageSegmenter(features=ImageFeatures(mixture=1)).fit(bytes_, masks)
    np.testing.assert_array_equal(from_files.weights_, from_arrays.weights_)
    assert from_files.score(paths, mask_paths) == from_arrays.score(bytes_, masks)
    (tmp_path / "broken.png").write_bytes(b"not an image")
    with pytest.raises(ValueError, match=r"image 1: .*broken.png.*cannot be read"):
        from_files.predict([paths[0], tmp_path / "broken.png"])
    with pytest.raises(FileNotFoundError, match=r"image 0: .*missing.png"):
        from_files.predict([tmp_path / "missing.png"])


def test_nifti_files(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    images, masks = pictures(3, shape=(6, 8, 9), noise=0.2, channels=1)
    volumes = [(100 * image[..., 0]).astype(np.int16) for image in images]
    paths, mask_paths = [], []
    for i, (volume, mask) in enumerate(zip(volumes, masks, strict=True)):
        paths.append(tmp_path / f"{i}.nii.gz")
        mask_paths.append(tmp_path / f"mask{i}.nii")
        nibabel.save(nibabel.Nifti1Image(volume, np.eye(4)), paths[-1])
        nibabel.save(nibabel.Nifti1Image(mask.astype(np.uint8), np.eye(4)), mask_paths[-1])
    options = {"features": ImageFeatures(mixture=1), "neighbours": 6}
    from_files = ImageSegmenter(**options).fit(paths, mask_paths)
    from_arrays = ImageSegmenter(**options).fit(volumes, masks)
    np.testing.assert_array_equal(from_files.weights_, from_arrays.weights_)


def test_edge_features_by_hand():
    image = np.array([[0.0, 1.0], [3.0, 1.0]])[..., None]
    edges = contrast_edges(image, directions(8), [0.5])
    assert edges.shape == (4, 2, 2, 2)
    assert edges[0, 0, 0].tolist() == [1.0, np.exp(-0.5)]  # to the right: 0 and 1
    assert edges[1, 0, 0, 1] == np.exp(-4.5)  # down: 0 and 3
    np.testing.assert_allclose(edges[3, 0, 1], np.array([1.0, np.exp(-2.0)]) / np.sqrt(2))  # down and left: 1 and 3
    relative = contrast_edges(image, directions(4), [[1.0], [1.0]], ["pixels", "image"])
    squares = np.array([[[1.0, 0.0], [4.0, 0.0]], [[9.0, 0.0], [0.0, 0.0]]])  # steps to the right, steps down
    np.testing.assert_allclose(relative[..., 1], np.exp(-squares))
    np.testing.assert_allclose(relative[..., 2], np.exp(-squares / squares.mean()), rtol=1e-6)
    assert positions((3, 5))[0, 4].tolist() == [-1.0, 1.0, 1.0, -1.0, 1.0]


@pytest.mark.parametrize("channels", [1, 3, 5])
def test_own_colours_find_an_object_whose_colour_nobody_has_seen(channels):
    rng = np.random.default_rng(0)
    mask = np.zeros((24, 30), int)
    mask[6:18, 8:22] = 1
    place = place_of_foreground([mask, np.roll(mask, 3, axis=1), np.roll(mask, -3, axis=0)], 2)
    assert place.shape == (24, 24) and place[12, 12] > 0.8 and place[0, 0] < 0.1
    colour = rng.random((2, channels))
    picture = colour[mask] + rng.normal(scale=0.01, size=(24, 30, channels))
    found = own_colours(picture, place, colour_range([picture]))
    inside, outside = found[mask == 1], found[mask == 0]
    assert inside[:, 1].min() > 1.0 and outside[:, 1].max() < -1.0  # the log ratio tells them apart
    np.testing.assert_allclose(found[..., 2].min(), np.log(0.02 / 0.98), atol=1e-6)  # no place is surer


def test_features_are_standardised():
    images, masks = pictures(4)
    made = ImageFeatures(mixture=2).fit_transform(images, masks, directions(4))
    flat = np.concatenate([x["node"].reshape(-1, x["node"].shape[-1]) for x in made])
    np.testing.assert_allclose(flat[:, :-1].mean(axis=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(flat[:, :-1].std(axis=0), 1.0, atol=1e-3)
    assert (flat[:, -1] == 1).all() and all((x["edge"] >= 0).all() for x in made)


@pytest.mark.parametrize(
    "spoil, message",
    [
        (lambda X, Y: Y.__setitem__(1, Y[1][:-1]), "mask of image 1 has shape"),
        (lambda X, Y: Y[2].__setitem__((0, 0), 2), "mask of image 2 has the label 2.*GraphLabeler"),
        (lambda X, Y: X[1].__setitem__((3, 4, 0), np.nan), r"image 1 has NaN or infinite pixels, first at \(3, 4, 0\)"),
        (lambda X, Y: [y.fill(0) for y in Y], "no mask has any foreground"),
        (lambda X, Y: Y.pop(), "3 images and 2 masks"),
        (lambda X, Y: (X.clear(), Y.clear()), "there are no images"),
        (lambda X, Y: X.__setitem__(2, X[2][..., :1]), "image 2 has 1 channels"),
        (lambda X, Y: X.__setitem__(0, np.ones(4)), "mask of image 0 has shape"),
    ],
    ids=["size", "labels", "nan", "empty", "count", "none", "channels", "flat"],
)
def test_bad_input(spoil, message):
    X, Y = pictures(3)
    spoil(X, Y)
    with pytest.raises(ValueError, match=message):
        ImageSegmenter(features=ImageFeatures(mixture=1)).fit(X, Y)


def test_saved_and_loaded(fitted, tmp_path):
    fresh, truth = pictures(2, seed=3)
    path = fitted.save(tmp_path / "model.mm")
    loaded = ImageSegmenter.load(path)
    for ours, theirs in zip(fitted.predict(fresh), loaded.predict(fresh), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert loaded.certificate_ == fitted.certificate_ and loaded.score(fresh, truth) == fitted.score(fresh, truth)
    assert loaded.features.get_params() == fitted.features.get_params() and loaded.tol == fitted.tol
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"model\.mm"):
        ImageSegmenter.load(path)


def test_mixture_densities_agree_with_a_peer():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(200, 3)), rng.normal(size=(100, 3)) @ rng.normal(size=(3, 3)) + 2])
    peer = GaussianMixture(3, random_state=0).fit(x)
    ours = Mixture(peer.weights_, peer.means_, peer.precisions_cholesky_)
    np.testing.assert_allclose(ours.log_density(x), peer.score_samples(x), rtol=1e-10)
    fresh = 0.5 * x[::2] + rng.normal(size=(150, 3))
    warm = {"weights_init": ours.weights, "means_init": ours.means, "precisions_init": peer.precisions_}
    again = GaussianMixture(3, reg_covar=1e-4, tol=0.0, max_iter=3, **warm)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        again.fit(fresh)
    improved = ours.improved(fresh, 3)
    np.testing.assert_allclose(improved.log_density(x), again.score_samples(x), rtol=1e-8)
    np.testing.assert_allclose(improved.factors, again.precisions_cholesky_, atol=1e-8)
    few = GaussianMixture(4, reg_covar=1e-4, tol=0.0, max_iter=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        few.fit(x)
    np.testing.assert_allclose(quick_mixture(x, 4, 5).log_density(x), few.score_samples(x), rtol=1e-8)
    assert np.isfinite(quick_mixture(np.ones((1, 3)), 4, 5).log_density(x)).all()
    assert np.isfinite(quick_mixture(np.ones((100, 3)), 4, 5).log_density(x)).all()


def test_bad_scribbles(fitted):
    fresh, _ = pictures(1)
    with pytest.raises(ValueError, match="the label 7"):
        fitted.predict(fresh, scribbles=[np.full(fresh[0].shape[:2], 7)])
    for given in (True, np.float64(1), "strokes.png"):
        with pytest.raises(TypeError, match="scribbles must be a list of arrays or paths"):
            fitted.predict(fresh, scribbles=given)


@pytest.mark.parametrize("scale", [1e-5, 1e4])
def test_the_scale_of_the_cost_is_that_of_the_weights(scale):
    # with cost and C both scaled, the optimum is scaled; scaling the cost alone is the same as dividing C
    images, masks = pictures(4, channels=1)
    X = ImageFeatures(mixture=0).fit_transform(images, masks, directions(4))
    plain = ImageSegmenter(C=2.0, tol=1e-7).fit(X, masks)
    scaled = ImageSegmenter(C=2.0 * scale, tol=1e-7).fit(X, masks, pixel_cost=[np.full(m.shape, scale) for m in masks])
    np.testing.assert_allclose(scaled.weights_ / scale, plain.weights_, rtol=1e-3, atol=1e-4)


def bytes_of(images):
    return [np.clip(255 * image, 0, 255).astype(np.uint8) for image in images]


def test_whole_numbers_mean_the_same_in_any_type():
    images, masks = pictures()
    images = bytes_of(images)
    plain = ImageFeatures(mixture=1)
    expected = ImageSegmenter(features=plain).fit(images, masks)
    for kind in (np.int16, np.uint16, np.int32, np.int64):
        other = ImageSegmenter(features=plain).fit([image.astype(kind) for image in images], masks)
        assert np.allclose(other.weights_, expected.weights_)
    fresh = bytes_of(pictures(2, seed=3)[0])
    for again in ([image.astype(int) for image in fresh], [image / 255.0 for image in fresh]):
        for ours, theirs in zip(expected.predict(fresh), expected.predict(again), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ValueError, match=r"image 0 has values up to 255, the training images up to 1 .*scale all"):
        expected.predict([image.astype(float) for image in fresh])


def test_a_name_that_no_system_allows(fitted):
    with pytest.raises(FileNotFoundError, match="image 0: there is no image file 'xxx"):
        fitted.predict(["x" * 10_000])


def test_a_path_is_no_list_of_letters(fitted):
    for call in (lambda: fitted.predict("a.png"), lambda: ImageSegmenter().fit("a.png", ["b.png"])):
        with pytest.raises(TypeError, match=r"X is the path 'a.png'; give a list of images or paths"):
            call()


def test_volumes_need_other_neighbours():
    images, masks = pictures(2, shape=(4, 5, 6))
    with pytest.raises(ValueError, match=r"the mask of image 0 has shape .*For volumes set neighbours=6, 18 or 26"):
        ImageSegmenter(features=ImageFeatures(mixture=1)).fit(images, masks)


def test_where_a_ramp_begins_is_said_by_the_ramp():
    mask = np.array([[0, 0, 1], [0, 1, 1]])
    with pytest.raises(
        ValueError, match=r"start must be a fitted ImageSegmenter or an array, got 'hinge'; where a ramp"
    ):
        ImageSegmenter(start="hinge").fit([mask], [mask])
