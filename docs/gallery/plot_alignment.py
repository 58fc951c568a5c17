"""
Word alignment from few examples
================================

:class:`~maxmargin.Aligner` learns links between words from a few linked sentence pairs. Pairs without links
(``bitext``) teach which words go together.
"""

import matplotlib.pyplot as plt

from maxmargin import Aligner
from maxmargin.datasets import load_bitext
from maxmargin.metrics import alignment_error_rate

text = load_bitext()
test, truth = text.data[30:], text.target[30:]
sizes = [3, 5, 10, 20, 30]
rates = {"linked pairs alone": [], "and 240 pairs without links": []}
for size in sizes:
    for name, bitext in zip(rates, (None, text.bitext), strict=True):
        aligner = Aligner().fit(text.data[:size], text.target[:size], bitext=bitext)
        rates[name].append(100 * alignment_error_rate(truth, aligner.predict(test)))

figure, ax = plt.subplots(layout="constrained")
for name, values in rates.items():
    ax.plot(sizes, values, marker="o", label=name)
ax.set(xlabel="linked pairs", ylabel="alignment error rate, %", title="30 test pairs", ylim=(0, None))
ax.legend()

# %%
# A sentence pair, the links that were found, and those that a person has drawn:

(left, right), links = test[1], aligner.predict(test[1:2])[0]
print([(left[i], right[j]) for i, j in links])
figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.scatter([j for _, j in links], [i for i, _ in links], s=420, marker="s", color="tab:green", label="found")
sure = sorted(truth[1].sure)
ax.scatter([j for _, j in sure], [i for i, _ in sure], s=60, color="black", label="drawn by a person")
ax.set_xticks(range(len(right)), right, rotation=45)
ax.set_yticks(range(len(left)), left)
ax.set(xlim=(-0.7, len(right) - 0.3), ylim=(len(left) - 0.3, -0.7))
figure.legend(loc="outside upper center", ncols=2, markerscale=0.5)
