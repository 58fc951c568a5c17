"""`maxmargin segment`: folders in, a model and masks out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from typer.testing import CliRunner

from maxmargin.cli.main import app
from maxmargin.estimators.image_segmenter import ImageSegmenter

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for name in ("rgb", "mask"):
        (root / name).mkdir()
    for i in range(4):
        mask = np.zeros((12, 15), bool)
        mask[2 + i : 8 + i, 4:11] = True
        picture = np.clip(90 + 80 * mask[..., None] + rng.normal(scale=25, size=(12, 15, 3)), 0, 255)
        Image.fromarray(picture.astype(np.uint8)).save(root / "rgb" / f"{i}.png")
        Image.fromarray(mask).save(root / "mask" / f"{i}.png")
    return root


def run(*arguments):
    return CliRunner().invoke(app, ["segment", *map(str, arguments)], env={"COLUMNS": "100", "TERM": "dumb"})


def test_train_and_predict(folders):
    model, out = folders / "model.mm", folders / "found"
    done = run("train", folders / "rgb", folders / "mask", "-o", model, "--tolerance", 1)
    assert done.exit_code == 0, done.output
    assert "relative gap" in done.output
    done = run("predict", model, folders / "rgb", "-o", out, "--overlay")
    assert done.exit_code == 0, done.output
    assert ImageSegmenter.load(model).tolerance == 1.0
    segmenter, paths = ImageSegmenter.load(model), sorted((folders / "rgb").iterdir())
    for path, mask in zip(paths, segmenter.predict(paths), strict=True):
        np.testing.assert_array_equal(np.asarray(Image.open(out / path.name)), 255 * mask)
        picture, shown = np.asarray(Image.open(path)), np.asarray(Image.open(out / f"{path.stem}_overlay.png"))
        np.testing.assert_array_equal(shown[mask == 1], picture[mask == 1])
        assert (shown[mask == 0] <= picture[mask == 0] / 2).all()


def test_scribbles(folders, tmp_path):
    """White, black and grey strokes are kept; the rest is the best mask with them, by the same call in Python."""
    model = folders / "free.mm"
    assert run("train", folders / "rgb", folders / "mask", "-o", model).exit_code == 0
    strokes = np.full((12, 15), 128, np.uint8)
    strokes[0, :6], strokes[5:7, 6:9] = 255, 0
    (tmp_path / "strokes").mkdir()
    Image.fromarray(strokes).convert("RGB").save(tmp_path / "strokes" / "1.png")
    done = run("predict", model, folders / "rgb", "--scribbles", tmp_path / "strokes", "-o", tmp_path / "found")
    assert done.exit_code == 0, done.output
    segmenter = ImageSegmenter.load(model)
    for path in sorted((folders / "rgb").iterdir()):
        known = np.where(strokes == 255, 1, np.where(strokes == 0, 0, -1)) if path.stem == "1" else None
        (mask,) = segmenter.predict([path], scribbles=None if known is None else [known])
        found = np.asarray(Image.open(tmp_path / "found" / path.name))
        np.testing.assert_array_equal(found, 255 * mask)
        if known is not None:
            np.testing.assert_array_equal(found[known >= 0], 255 * known[known >= 0])
    Image.fromarray(strokes).save(tmp_path / "strokes" / "stray.png")
    done = run("predict", model, folders / "rgb", "--scribbles", tmp_path / "strokes", "-o", tmp_path / "found")
    assert done.exit_code == 1 and "stray.png has no image in" in done.output


def test_scribbles_in_files_of_all_kinds(folders, tmp_path):
    """Transparency, palettes, 16 bits and files of labels mean the same as an array; others are refused."""
    segmenter = ImageSegmenter().fit(sorted((folders / "rgb").iterdir()), sorted((folders / "mask").iterdir()))
    picture = folders / "rgb" / "1.png"
    known = np.full((12, 15), -1)
    known[0, :6], known[5:7, 6:9] = 1, 0
    (expected,) = segmenter.predict([picture], scribbles=[known])
    grey = np.select([known == 1, known == 0], [255, 0], 128).astype(np.uint8)
    clear = np.dstack([np.where(known == 1, 255, 0)] * 3 + [np.where(known >= 0, 255, 0)]).astype(np.uint8)
    labels = np.where(known >= 0, known, 255).astype(np.uint8)
    Image.fromarray(clear, "RGBA").save(tmp_path / "clear.png")
    Image.fromarray(clear, "RGBA").convert("LA").save(tmp_path / "clear_grey.png")
    Image.fromarray(np.dstack([grey] * 3)).convert("P").save(tmp_path / "palette.png")
    Image.fromarray(257 * grey.astype(np.uint16)).save(tmp_path / "deep.png")
    np.save(tmp_path / "small.npy", labels)
    (tmp_path / "small.npy").rename(tmp_path / "CAPITALS.NPY")
    np.save(tmp_path / "signed.npy", known)
    for path in sorted(tmp_path.iterdir()):
        np.testing.assert_array_equal(segmenter.predict([picture], scribbles=[path])[0], expected, path.name)
    Image.fromarray(labels).save(tmp_path / "labels.png")
    Image.fromarray(grey).save(tmp_path / "strokes.jpg")
    for name, message in [("labels.png", "pixels of value 1"), ("strokes.jpg", "save them as PNG")]:
        with pytest.raises(ValueError, match=message):
            segmenter.predict([picture], scribbles=[tmp_path / name])


@pytest.mark.found("E: the command line offers no choice of C")
def test_tune(folders, tmp_path):
    """The table has a row per start, tolerance and C; the model is fitted with the row that is marked."""
    options = ("--C-min", 0.01, "--C-max", 1, "--steps", 2, "--tolerance", 0, "--tolerance", 1, "--folds", 2)
    done = run("tune", folders / "rgb", folders / "mask", *options, "-o", tmp_path / "best.mm")
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.output.splitlines() if "+-" in line]
    expected = product(("smooth", "calibrated"), ("0", "1"), ("0", "0.01", "1"))
    assert [row[:3] for row in rows] == [[start, C, tolerance] for start, tolerance, C in expected]
    (chosen,) = [row for row in rows if row[-1] == "*"]
    model = ImageSegmenter.load(tmp_path / "best.mm")
    assert [model.centre, model.C, model.tolerance] == [chosen[0], float(chosen[1]), float(chosen[2])]
    scores = [float(row[3]) for row in rows]
    assert float(chosen[3]) in (scores[0], max(scores))  # the first is kept unless it is clearly outdone
    assert ("the best C lies at the edge" in done.output) == (chosen[1] != "0")
    done = run("tune", folders / "rgb", folders / "mask", "--cost", "1,x")
    assert done.exit_code == 1 and "two numbers with a comma" in done.output


def test_errors_are_one_line(folders, tmp_path):
    (tmp_path / "other.png").write_bytes(b"no image")
    for arguments, message in [
        (("train", folders / "rgb", tmp_path), "has no mask in"),
        (("train", folders / "nowhere", folders / "mask"), "no such file or folder"),
        (("predict", tmp_path / "other.png", folders / "rgb"), "other.png"),
    ]:
        done = run(*arguments)
        assert done.exit_code == 1 and message in done.output and "Traceback" not in done.output


@pytest.mark.found("D: train x -o x")
def test_no_input_is_overwritten(folders, tmp_path, monkeypatch):
    picture, mask, model = folders / "rgb" / "0.png", folders / "mask" / "0.png", folders / "kept.mm"
    ImageSegmenter().fit(sorted((folders / "rgb").iterdir()), sorted((folders / "mask").iterdir())).save(model)
    before = {path: path.read_bytes() for path in (picture, mask, model)}
    (tmp_path / "0.png").hardlink_to(picture)
    (tmp_path / "0_overlay.png").hardlink_to(model)
    monkeypatch.setattr(ImageSegmenter, "fit", lambda *_: pytest.fail("it trained"))
    for arguments in (
        ("train", folders / "rgb", folders / "mask", "-o", picture),
        ("train", folders / "rgb", folders / "mask", "-o", tmp_path / "0.png"),
        ("tune", folders / "rgb", folders / "mask", "-o", mask),
        ("predict", model, folders / "rgb", "-o", folders / "rgb"),
        ("predict", model, picture, "-o", tmp_path),
        ("predict", model, picture, "--scribbles", mask, "-o", folders / "mask"),
        ("predict", model, folders / "rgb" / "0.png", "--overlay", "-o", tmp_path),
    ):
        done = run(*arguments)
        assert done.exit_code == 1 and "is the input" in done.output and "name another file" in done.output
    assert before == {path: path.read_bytes() for path in before}
    Image.open(picture).save(tmp_path / "0.bmp")
    done = run("predict", model, tmp_path, "-o", tmp_path / "found")
    assert done.exit_code == 1 and "have the same name" in done.output


@pytest.mark.found("D: -o '' or an unwritable place")
@pytest.mark.parametrize("place", ["", "no/m.mm", ".", "-", "/dev/full", "x" * 250])
def test_outputs_are_checked_before_training(folders, tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ImageSegmenter, "fit", lambda *_: pytest.fail("it trained"))
    for command in ("train", "tune"):
        done = run(command, folders / "rgb", folders / "mask", "-o", place)
        assert done.exit_code == 1 and len(done.output.splitlines()) == 1, done.output


def test_volumes_keep_their_format_and_place(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    rng, affine = np.random.default_rng(0), np.diag([2.0, 1.0, 3.0, 1.0])
    for name in ("scans", "masks"):
        (tmp_path / name).mkdir()
    for i in range(3):
        mask = np.zeros((6, 8, 7), np.uint8)
        mask[1 + i : 5, 2:6, 2:5] = 1
        scan = (300 + 400.0 * mask + rng.normal(scale=90, size=mask.shape)).astype(np.int16)
        nibabel.save(nibabel.Nifti1Image(scan, affine), tmp_path / "scans" / f"{i}.nii.gz")
        nibabel.save(nibabel.Nifti1Image(mask, affine), tmp_path / "masks" / f"{i}.nii.gz")
    done = run("train", tmp_path / "scans", tmp_path / "masks", "-o", tmp_path / "m.mm", "--neighbours", 6)
    assert done.exit_code == 0, done.output
    done = run("predict", tmp_path / "m.mm", tmp_path / "scans", "-o", tmp_path / "found", "--overlay")
    assert done.exit_code == 0, done.output
    for i in range(3):
        found = nibabel.load(tmp_path / "found" / f"{i}.nii.gz")
        truth = np.asarray(nibabel.load(tmp_path / "masks" / f"{i}.nii.gz").dataobj)
        assert np.array_equal(found.affine, affine)
        assert (np.asarray(found.dataobj) == truth).mean() > 0.9
        assert np.asarray(Image.open(tmp_path / "found" / f"{i}_overlay.png")).shape == (8, 7, 3)
