"""Figure 5.1 of Mancev 2015: hinge and ramp on CoNLL-2000 with outliers among the training sentences.

    MAXMARGIN_DATA=... make experiment-ramp-outliers       # published strengths; half an hour of processor time
    python experiments/ramp/figure_5_1.py                  # tuned ones, too, and Pegasos without projection; two hours
    python experiments/ramp/figure_5_1.py --quick          # a minute

An outlier is a sentence with every token relabelled uniformly at random; 0, 5, 10, 15 and 20 % of the sentences are
outliers. For each seed, all methods see the same labels, so differences are paired over seeds; intervals are Student's,
at 95 %.

* ``hinge``: 30 passes (auto: 20, including certificates).
* ``ramp``: begins at zero weights, so its first round is the hinge: 4 rounds of 10 passes, as published for SDM.
* ``early``: first linearised at the average of one pass, before wrong labels are memorised: 4 rounds of 5 passes
  (Pegasos: 10).

"tuned" chooses the strength (half, once or twice the published one) by token accuracy on a fifth of the training
sentences, whose labels are as noisy as the others. Hinge and early are tuned separately; ramp uses the strength of
hinge, and auto uses those of SDM, whose problem it solves. Writes ``ramp_outliers.png``.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from common import TABLE_5_1, Corpus, Setting, chunking, fit, interval, parser, picture, scores, with_outliers

SHARES = (0.0, 0.05, 0.1, 0.15, 0.2)
VARIANTS = ("hinge", "ramp", "early")
FACTORS = (0.5, 1.0, 2.0)
TUNING_SEED = 1000
CLOSE = 0.1  # points by which the ramp may differ from the hinge without outliers


def published(method: str, variant: str) -> Setting:
    """The setting of a method at the published strength."""
    strength = TABLE_5_1["chunking"]["SDM" if method == "auto" else method, "hinge"].strength
    if variant == "hinge":
        return Setting(method, "hinge", strength, 20 if method == "auto" else 30)
    if variant == "ramp":
        return Setting(method, "ramp", strength, 10, 4)
    return Setting(method, "ramp", strength, 10 if method.startswith("Pegasos") else 5, 4, early=True)


@dataclass
class Experiment:
    """Fits on corrupted labels, each run once.

    Attributes
    ----------
    made : dict
        (setting, share) -> token accuracy and span F1 of each seed (seeds, 2).
    held : dict
        (setting, share) -> token accuracy on held-out sentences.
    """

    corpus: Corpus
    seeds: int
    made: dict[tuple[Setting, float], np.ndarray] = field(default_factory=dict)
    held: dict[tuple[Setting, float], float] = field(default_factory=dict)
    seconds: float = 0.0

    def measure(self, setting: Setting, share: float) -> np.ndarray:
        """Scores on the test half after fits on labels with outliers, one row per seed."""
        if (setting, share) not in self.made:
            rows = []
            for seed in range(self.seeds):
                noisy = self.corpus.with_labels(with_outliers(self.corpus.y, share, seed))
                fitted = fit(setting, noisy, seed=seed)
                self.seconds += fitted.seconds
                rows.append(scores(fitted.tagger, noisy))
            self.made[setting, share] = np.array(rows)
        return self.made[setting, share]

    def tune(self, method: str, variant: str, share: float) -> Setting:
        """The setting with the best strength by token accuracy on held-out sentences, which also have outliers."""
        setting = published("SDM" if method == "auto" else method, "hinge" if variant == "ramp" else variant)
        noisy = with_outliers(self.corpus.y, share, TUNING_SEED)
        fold = self.corpus.with_labels(noisy).fold(0, 5)
        settings = [replace(setting, strength=factor * setting.strength) for factor in FACTORS]
        for tried in settings:
            if (tried, share) not in self.held:
                fitted = fit(tried, fold, seed=TUNING_SEED)
                self.seconds += fitted.seconds
                self.held[tried, share] = scores(fitted.tagger, fold)[0]
        best = max(settings, key=lambda tried: self.held[tried, share])
        return replace(published(method, variant), strength=best.strength)


def table(experiment: Experiment, methods: list[str], shares: list[float], tuned: bool) -> dict[Any, np.ndarray]:
    """Print a row for each method and share; returns the scores by (method, variant, share)."""
    print(f"\n{'tuned' if tuned else 'published'} strength: token accuracy (span F1), gain in accuracy over the hinge")
    found: dict[Any, np.ndarray] = {}
    for method in methods:
        for share in shares:
            before, text = experiment.seconds, ""
            for variant in VARIANTS:
                if method == "auto" and variant == "ramp":
                    continue  # its first round alone is a complete hinge fit
                setting = experiment.tune(method, variant, share) if tuned else published(method, variant)
                found[method, variant, share] = rows = experiment.measure(setting, share)
                accuracy, f1 = rows.mean(axis=0)
                text += f"   {variant} {accuracy:.2f} ({f1:.2f})"
                if variant != "hinge":
                    mean, half = interval(rows[:, 0] - found[method, "hinge", share][:, 0])
                    text += f" {mean:+.2f} +- {half:.2f}"
                if tuned:
                    text += f" at {setting.strength:g}"
            print(f"{method:11}{100 * share:3.0f} %{text}   [{experiment.seconds - before:.0f} s]", flush=True)
    return found


def verdict(found: dict[Any, np.ndarray], methods: list[str], shares: list[float]) -> None:
    """Say in words where the ramp is above the hinge."""
    for method in methods:
        for variant in VARIANTS[1:]:
            if (method, variant, shares[0]) not in found:
                continue
            words = []
            for share in shares:
                gain = found[method, variant, share][:, 0] - found[method, "hinge", share][:, 0]
                mean, half = interval(gain)
                if share == 0:
                    words.append(f"without outliers {'' if abs(mean) <= CLOSE else 'not '}within {CLOSE} ({mean:+.2f})")
                else:
                    place = "above" if mean > half else "below" if mean < -half else "not apart from"
                    words.append(f"{100 * share:.0f} % {place} ({mean:+.2f} +- {half:.2f})")
            print(f"{method}, {variant} against hinge: {'; '.join(words)}")


def draw(results: dict[str, dict[Any, np.ndarray]], methods: list[str], shares: list[float], folder: Any) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (4.2 * len(methods), 3.2 * len(results))
    figure, panels = plt.subplots(
        len(results), len(methods), figsize=size, squeeze=False, sharex=True, sharey=True, layout="constrained"
    )
    for (name, found), row in zip(results.items(), panels, strict=True):
        for method, panel in zip(methods, row, strict=True):
            for variant in VARIANTS:
                rows = [found[method, variant, s][:, 0] for s in shares if (method, variant, s) in found]
                if rows:
                    spread = [interval(r)[1] if len(r) > 1 else 0.0 for r in rows]
                    mean = [r.mean() for r in rows]
                    panel.errorbar([100 * s for s in shares], mean, spread, marker="o", capsize=3, label=variant)
            panel.set_title(f"{method}, {name} strength")
            panel.grid(alpha=0.3)
        row[0].set_ylabel("test accuracy (%)")
    for panel in panels[-1]:
        panel.set_xlabel("outliers (% of the sentences)")
    panels[0, 0].legend()
    picture(figure, folder / "ramp_outliers.png")


def main(arguments: list[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, help="default: 5")
    options.add_argument("--shares", type=float, nargs="+", help="shares of outliers; default: 0 0.05 0.1 0.15 0.2")
    options.add_argument("--methods", nargs="+", choices=("SDM", "Pegasos", "Pegasos-WP", "auto"))
    options.add_argument("--tune", action=argparse.BooleanOptionalAction, help="also use tuned strengths; default: yes")
    chosen = options.parse_args(arguments)
    quick = chosen.quick
    sentences = 500 if quick and chosen.sentences is None else chosen.sentences
    methods = chosen.methods or (["SDM", "Pegasos-WP"] if quick else ["SDM", "auto", "Pegasos-WP"])
    shares = chosen.shares or ([0.0, 0.2] if quick else list(SHARES))
    corpus = chunking(sentences)
    experiment = Experiment(corpus, chosen.seeds or (2 if quick else 5))
    print(f"{len(corpus)} + {len(corpus.y_test)} sentences, {len(corpus.labels)} labels, {experiment.seeds} seeds")
    results = {}
    for name in ("published", "tuned") if (not quick if chosen.tune is None else chosen.tune) else ("published",):
        results[name] = table(experiment, methods, shares, name == "tuned")
        verdict(results[name], methods, shares)
    draw(results, methods, shares, chosen.outputs)


if __name__ == "__main__":
    main()
