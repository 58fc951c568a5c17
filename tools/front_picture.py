"""The picture of the README, from fits on data that ship; written to docs/_static/front.png."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from maxmargin import Aligner, ImageSegmenter, SequenceTagger
from maxmargin.datasets import load_bitext, load_leaves, load_sentences
from maxmargin.reports import AlignmentDisplay, GapDisplay

OUTPUT = Path(__file__).resolve().parents[1] / "docs" / "_static" / "front.png"
GREEN, RED = "#2e8b57", "#c0392b"
SENTENCES = (349, 397, 325)  # each with a word that has another tag elsewhere


def main() -> None:
    """Fit three models and draw what they found."""
    plt.rcParams["font.size"] = 11
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.3), layout="constrained", width_ratios=[2.3, 1, 1.15, 1.15])
    sentences = load_sentences()
    tagger = SequenceTagger(C=0.1).fit(sentences.data[:300], sentences.target[:300])
    for row, example in enumerate(SENTENCES):
        words, true = sentences.data[example], sentences.target[example]
        (tags,) = tagger.predict([words])
        for k, (word, tag, right) in enumerate(zip(words, tags, true, strict=True)):
            box = {"boxstyle": "round,pad=0.3", "facecolor": GREEN if tag == right else RED, "edgecolor": "none"}
            axes[0].text(k, -row, word, ha="center", va="bottom")
            axes[0].text(k, -row - 0.12, tag, ha="center", va="top", fontsize=8, color="white", bbox=box)
    axes[0].set(xlim=(-0.6, 7.4), ylim=(-2.6, 0.5), title="tags of words")
    axes[0].axis("off")

    leaves = load_leaves()
    segmenter = ImageSegmenter(C=1.0).fit(leaves.data[:14], leaves.target[:14])
    picture = leaves.data[16]
    axes[1].imshow(picture)
    axes[1].contour(segmenter.predict([picture])[0], levels=[0.5], colors="white", linewidths=2.5)
    axes[1].set(title="masks of pictures", xticks=[], yticks=[])

    text = load_bitext()
    aligner = Aligner().fit(text.data[:40], text.target[:40], bitext=text.bitext)
    AlignmentDisplay.from_estimator(aligner, text.data[43], text.target[43], ax=axes[2])
    axes[2].set_title("links between words")

    GapDisplay.from_estimator(tagger, names=["tagger"], ax=axes[3])
    axes[3].set_title("a certificate for each fit")
    figure.savefig(OUTPUT, dpi=110)
    print(f"{OUTPUT.name}: {OUTPUT.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
