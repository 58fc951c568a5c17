"""
Decoding a chain of your own scores
===================================

The weather of ten days, from how many ice creams were eaten. The scores are log-probabilities of a model that someone
has written down; nothing is learned. :func:`~maxmargin.inference.chain_argmax` finds the best sequence,
:func:`~maxmargin.inference.chain_marginals` how sure each day is, and :func:`~maxmargin.inference.chain_k_best` the
runners-up.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin.inference import chain_argmax, chain_k_best, chain_marginals

states, eaten = ["cold", "hot"], [1, 1, 2, 3, 3, 1, 3, 2, 1, 1]
emission = np.array([[0.7, 0.2, 0.1], [0.15, 0.35, 0.5]])  # of one, two and three ice creams
transition = np.log([[0.8, 0.2], [0.3, 0.7]])
unary = np.log(emission[:, np.array(eaten) - 1].T)

best, score = chain_argmax(unary, transition)
_, marginals, _ = chain_marginals(unary, transition)
alone = unary.argmax(axis=1)

figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
days = np.arange(1, 11)
ax.bar(days, marginals[:, 1], color="0.85", label="probability of a hot day")
ax.plot(days, alone, "x", color="tab:blue", markersize=9, label="each day alone")
ax.plot(days, best, "o", color="tab:red", fillstyle="none", markersize=12, label="best sequence")
ax.set_xticks(days, [f"{day}\n{n}" for day, n in zip(days, eaten, strict=True)])
ax.set_yticks([0, 1], states)
ax.set(xlabel="day, and ice creams", ylim=(-0.15, 1.3))
ax.legend(ncols=3, loc="upper center")

# %%
# The three best sequences and their log-probabilities:

for labels, value in zip(*chain_k_best(unary, transition, 3), strict=True):
    print(f"{value:.2f}", " ".join(states[k] for k in labels))
