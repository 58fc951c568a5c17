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
# A sentence pair and its links:

(left, right), links = test[1], aligner.predict(test[1:2])[0]
print([(left[i], right[j]) for i, j in links])
