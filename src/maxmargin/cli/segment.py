"""``maxmargin segment train``, ``maxmargin segment tune`` and ``maxmargin segment predict``."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maxmargin.cli import options as o
from maxmargin.cli.errors import fail, guarded
from maxmargin.cli.outputs import check_model_output, check_output, refuse_inputs, save_model
from maxmargin.cli.progress import progress_bar

if TYPE_CHECKING:
    import numpy as np

    from maxmargin.estimators.image_segmenter import ImageSegmenter

__all__ = ["segment"]

_ABOUT_SCRIBBLES = (
    "Folder of known pixels, one picture named like each image (or none): white is foreground, black background, grey "
    "or transparent unknown. Volumes: labels 0 and 1, 255 unknown."
)
_ABOUT_COST = (
    "auto, hamming, balanced, balanced_image, or two numbers (1,4): what wrong background and foreground costs."
)
SUFFIXES = tuple(".png .jpg .jpeg .bmp .gif .tif .tiff .ppm .pgm .webp .npy .nii .nii.gz".split())

segment = typer.Typer(name="segment", no_args_is_help=True, help="Foreground and background of images and volumes.")


@segment.command(no_args_is_help=True)
@guarded
@o.grouped
def train(
    images: Annotated[str, typer.Argument(help="Folder of images or volumes.")],
    masks: Annotated[str, typer.Argument(help="Folder of masks with the same names; suffixes may differ.")],
    output: Annotated[str, typer.Option("--output", "-o", help="Model file to write.")] = "segmenter.mm",
    neighbours: Annotated[int, typer.Option(help="4 or 8 for images; 6, 18 or 26 for volumes.")] = 4,
    cost_weight: Annotated[
        float | None,
        typer.Option(
            "-C", min=0.0, help="Weight of the losses; default: the best of 0, 1, 10, 100 by held-out images."
        ),
    ] = None,
    cost: Annotated[str, typer.Option(help=_ABOUT_COST)] = "auto",
    tolerance: Annotated[float, typer.Option(help="How many pixels the boundaries of masks may be off.")] = 0.0,
    fit: o.FitOptions = o.FitOptions(tol=1e-2),
    debug: o.Debug = False,
) -> None:
    """Learn a segmenter from a folder of images and a folder of masks.

    Masks have labels 0 and 1, with 255 for pixels to ignore; or they are black and white, with a white foreground.

    Examples:

      maxmargin segment train rgb/ mask/ -o horses.mm

      maxmargin segment train volumes/ labels/ --neighbours 6 -o hippocampus.mm
    """
    from maxmargin.estimators.image_segmenter import ImageSegmenter

    paths, truth = _pairs(images, masks)
    check_model_output(output, map(str, [*paths, *truth]))
    segmenter = ImageSegmenter(neighbours=neighbours, C=cost_weight, cost=_cost(cost), tolerance=tolerance)
    segmenter.set_params(**fit.parameters(), verbose=int(sys.stderr.isatty()))
    _fit_and_save(segmenter, paths, truth, output)


@segment.command(no_args_is_help=True)
@guarded
def tune(
    images: Annotated[str, typer.Argument(help="Folder of images or volumes.")],
    masks: Annotated[str, typer.Argument(help="Folder of masks with the same names; suffixes may differ.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Model file to train on all images with the best values.")
    ] = None,
    C_min: Annotated[float, typer.Option("--C-min", help="Smallest C but 0, which is always tried.")] = 0.1,
    C_max: Annotated[float, typer.Option("--C-max", help="Largest C.")] = 100.0,
    steps: Annotated[int, typer.Option(min=1, help="Number of values of C, in equal ratios.")] = 4,
    tolerance: Annotated[
        list[float], typer.Option(help="How many pixels the boundaries of masks may be off; may be repeated.")
    ] = [0.0],  # noqa: B006 (typer reads it)
    folds: o.Folds = 3,
    neighbours: Annotated[int, typer.Option(help="4 or 8 for images; 6, 18 or 26 for volumes.")] = 4,
    cost: Annotated[str, typer.Option(help=_ABOUT_COST)] = "auto",
    tol: o.Tol = 1e-2,
    n_jobs: o.Jobs = None,
    seed: o.Seed = 0,
    debug: o.Debug = False,
) -> None:
    """Choose where training begins, C, and the tolerance if several are given, by held-out images.

    Training begins at a classifier with one smoothness weight ("smooth"), or also with a threshold and several edge
    weights ("calibrated"); C = 0 stays there. Scores are means of intersection over union; +- is the standard error
    over the images. The first row is kept unless the best outdoes it by half the standard error of the difference.

    Examples:

      maxmargin segment tune rgb/ mask/ --tolerance 0 --tolerance 3 -o horses.mm
    """
    import numpy as np

    from maxmargin.cli.tables import show_table
    from maxmargin.estimators.image_segmenter import ImageSegmenter
    from maxmargin.estimators.segmentation_tuning import best_score, held_out_scores

    if not 0 < C_min <= C_max:
        raise typer.BadParameter(f"need 0 < C-min <= C-max, got {C_min:g} and {C_max:g}.", param_hint="--C-min")
    paths, truth = _pairs(images, masks)
    if output is not None:
        check_model_output(output, map(str, [*paths, *truth]))
    values = [0.0, *np.geomspace(C_min, C_max, steps if C_max > C_min else 1).tolist()]
    segmenter = ImageSegmenter(neighbours=neighbours, cost=_cost(cost), tol=tol, n_jobs=n_jobs, random_state=seed)
    fits = 2 * folds * len(values) * len(tolerance)  # from two starts
    with progress_bar(fits, "fits") as advance:
        scores = held_out_scores(
            segmenter, paths, truth, C=values, tolerance=tolerance, folds=folds, after_fit=partial(advance, 1)
        )
    best = best_score(scores)
    rows = []
    for one in scores:
        score, chosen = f"{100 * one.mean:.2f} +- {100 * one.error:.2f}", "*" * (one is best)
        rows.append([str(one.centre), f"{one.C:.4g}", f"{one.tolerance:g}", score, chosen])
    titles = ["start", "C", "tolerance", "IoU", "chosen"]
    show_table(f"{folds}-fold cross-validation, {len(paths)} images", titles, rows)
    if best.C in (values[1], values[-1]) and len(values) > 2:
        side = "--C-min smaller" if best.C == values[1] else "--C-max larger"
        typer.echo(f"maxmargin: the best C lies at the edge of those tried; try again with {side}.", err=True)
    if output is not None:
        segmenter.set_params(C=best.C, tolerance=best.tolerance, centre=best.centre)
        _fit_and_save(segmenter, paths, truth, output)


@segment.command(no_args_is_help=True)
@guarded
def predict(
    model: o.ModelFile,
    images: Annotated[str, typer.Argument(help="An image, a volume, or a folder of them.")],
    output: Annotated[str, typer.Option("--output", "-o", help="Folder for the masks.")] = "masks",
    scribbles: Annotated[str | None, typer.Option(help=_ABOUT_SCRIBBLES)] = None,
    learn_colours: Annotated[
        bool, typer.Option(help="Let the scribbles teach the colours of their image, not only fix pixels.")
    ] = True,
    overlay: Annotated[
        bool,
        typer.Option("--overlay", help="Also write each image (one slice of a volume) with its background dimmed."),
    ] = False,
    debug: o.Debug = False,
) -> None:
    """Write a mask for every image: a black and white PNG file; for a volume NIfTI, or .npy if the volume is .npy.

    Examples:

      maxmargin segment predict horses.mm rgb/ -o found/ --overlay

      maxmargin segment predict horses.mm rgb/17.png --scribbles corrections/17.png -o found/
    """
    from maxmargin.estimators.image_segmenter import ImageSegmenter
    from maxmargin.features.image_files import read_image
    from maxmargin.inference.min_cut import NEIGHBOURS

    if not output.strip():
        raise ValueError("the name of the output is empty; name a folder with -o.")
    segmenter, paths = ImageSegmenter.load(model), list(_by_name(images).values())
    known = {} if scribbles is None else _by_name(scribbles)
    strange = sorted(known.keys() - {_stem(path) for path in paths})
    if strange:
        raise ValueError(f"{known[strange[0]]} has no image in {images}; give each scribble the name of its image.")
    folder, volumes = Path(output), segmenter.layout_.neighbours not in NEIGHBOURS[2]
    places = [_mask_place(folder, path, volumes) for path in paths]
    overlays = [folder / f"{_stem(path)}_overlay.png" for path in paths if overlay]
    folder.mkdir(parents=True, exist_ok=True)
    refuse_inputs(map(str, [*places, *overlays]), map(str, [model, *paths, *known.values()]))
    check_output(str(places[0]), [])
    with progress_bar(len(paths), "masks") as advance:
        for i, (path, place) in enumerate(zip(paths, places, strict=True)):
            image = read_image(path)
            try:
                own = known.get(_stem(path))
                (mask,) = segmenter.predict([image], None if own is None else [own], learn_colours=learn_colours)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error
            if volumes:
                _write_volume(place, mask, path)
                fullest = int(mask.sum(axis=(1, 2)).argmax())  # show the slice with the most foreground
                image, mask = image[fullest], mask[fullest]
            else:
                _write(place, 255 * mask)
            if overlay:
                _write(overlays[i], _dimmed(image, mask))
            advance(1)
    typer.echo(f"{len(paths)} masks in {folder}", err=True)


def _fit_and_save(segmenter: ImageSegmenter, paths: list[Path], truth: list[Path], output: str) -> None:
    segmenter.fit(paths, truth)
    written, problem = save_model(segmenter, output)
    typer.echo(f"{len(paths)} images, {segmenter.status_}", err=True)
    typer.echo(f"C = {segmenter.C_:g}; {segmenter.certificate_}; model in {written}", err=True)
    if problem:
        fail(problem)


def _pairs(images: str, masks: str) -> tuple[list[Path], list[Path]]:
    """The image files of a folder and the mask of each."""
    paths, by_name = _files(images), _by_name(masks)
    missing = [path for path in paths if _stem(path) not in by_name]
    if missing:
        raise ValueError(f"{missing[0]} has no mask in {masks}; give each mask the name of its image.")
    return paths, [by_name[_stem(path)] for path in paths]


def _cost(cost: str) -> str | tuple[float, float]:
    """A named cost, or the costs of wrong background and foreground."""
    if "," not in cost:
        return cost
    try:
        back, front = map(float, cost.split(","))
    except ValueError:
        raise ValueError(f"--cost is {cost!r}; give a name or two numbers with a comma between, such as 1,4.") from None
    return back, front


def _files(place: str) -> list[Path]:
    """The image files of a folder, sorted by name, or the one file."""
    path = Path(place)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ValueError(f"{place}: no such file or folder.")
    found = sorted(entry for entry in path.iterdir() if entry.name.lower().endswith(SUFFIXES))
    if not found:
        raise ValueError(f"{place} holds no images; known suffixes are {', '.join(SUFFIXES)}.")
    return found


def _by_name(place: str) -> dict[str, Path]:
    """Files by their names without suffixes."""
    found: dict[str, Path] = {}
    for path in _files(place):
        if _stem(path) in found:
            raise ValueError(f"{found[_stem(path)]} and {path} have the same name; keep one of them.")
        found[_stem(path)] = path
    return found


def _stem(path: Path) -> str:
    return path.name[: -len(".nii.gz")] if path.name.lower().endswith(".nii.gz") else path.stem


def _dimmed(image: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The image with its background at a third of its brightness."""
    import numpy as np

    channels = image.reshape(*mask.shape, -1)
    colour = channels if channels.shape[-1] == 3 else np.repeat(channels[..., :1], 3, axis=-1)
    largest = 255.0 if colour.dtype == np.uint8 else max(float(colour.max()), 1.0)
    return (255 * (colour / largest) * np.where(mask, 1.0, 1 / 3)[..., None]).clip(0, 255).astype(np.uint8)


def _mask_place(folder: Path, source: Path, volume: bool) -> Path:
    """Where the mask of an image goes: a picture, and for a volume NIfTI or .npy as the volume is."""
    nifti = source.name.lower().endswith((".nii", ".nii.gz"))
    return folder / f"{_stem(source)}{'.png' if not volume else '.nii.gz' if nifti else '.npy'}"


def _write_volume(place: Path, mask: np.ndarray, source: Path) -> None:
    """Write a mask in the format of its place, NIfTI with the affine of its volume."""
    import numpy as np

    from maxmargin.persistence.whole_file import whole_file

    with whole_file(place) as file:
        if place.suffix == ".npy":
            np.save(file, mask)
            return
        import gzip

        import nibabel

        volume = nibabel.Nifti1Image.from_filename(source)
        file.write(gzip.compress(nibabel.Nifti1Image(mask, volume.affine).to_bytes()))


def _write(place: Path, pixels: np.ndarray) -> None:
    from PIL import Image

    from maxmargin.persistence.whole_file import whole_file

    with whole_file(place) as file:
        Image.fromarray(pixels).save(file, "png")
