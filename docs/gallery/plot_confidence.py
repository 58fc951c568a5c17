"""
How sure is a prediction?
=========================

Large-margin scores are no probabilities. ``predict_margin`` says how far the best output is ahead of the runner-up, and
after ``fit_temperature`` on held-out sentences, ``predict_marginals`` gives calibrated probabilities of labels.
Sequences sorted by their margins, on the right: the surest are right most often.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SequenceTagger
from maxmargin.datasets import make_chains

data = make_chains(900, n_labels=4, n_features=6, distance=2.2, random_state=0)
X, y, X_held, y_held, X_test, y_test = (
    part[a:b] for a, b in ((0, 150), (150, 300), (300, 900)) for part in (data.X, data.y)
)
tagger = SequenceTagger(C=0.1).fit(X, y)


def reliability(tables):
    """Probability of the best label, and how often it is right, in ten bins."""
    p, right = (
        np.concatenate(parts)
        for parts in zip(
            *((t.max(1), t.argmax(1) == labels) for t, labels in zip(tables, y_test, strict=True)), strict=True
        )
    )
    bins = np.minimum((10 * p).astype(int), 9)
    used = [k for k in range(10) if np.sum(bins == k) > 20]
    return [p[bins == k].mean() for k in used], [right[bins == k].mean() for k in used]


figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
left.plot([0.3, 1], [0.3, 1], color="0.6")
left.plot(*reliability(tagger.predict_marginals(X_test)), marker="o", label="scores as they are")
tagger.fit_temperature(X_held, y_held)
left.plot(*reliability(tagger.predict_marginals(X_test)), marker="o", label=f"temperature {tagger.temperature_:.2f}")
left.set(xlabel="probability of a label", ylabel="share that is right", title="Calibration")
left.legend()

margins = tagger.predict_margin(X_test)
all_right = np.array(
    [list(found) == list(labels) for found, labels in zip(tagger.predict(X_test), y_test, strict=True)]
)
order = np.argsort(-margins)
share = np.arange(1, len(order) + 1) / len(order)
right.plot(100 * share, 100 * np.cumsum(all_right[order]) / np.arange(1, len(order) + 1))
right.set(xlabel="% of sequences kept, surest first", ylabel="% of them all right", title="Margins")
