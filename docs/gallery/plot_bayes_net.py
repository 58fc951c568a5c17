"""
A Bayesian network that predicts
================================

Naive Bayes counts evidence twice: here three of the symptoms come from the same test, and together they outvote a
better one. :class:`~maxmargin.DiscriminativeBayesNet` moves the tables of the network away from the counts only as far
as needed to make the right diagnosis the most probable one. They stay probabilities, and missing values are summed out.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import DiscriminativeBayesNet

rng = np.random.default_rng(0)


def patients(n):
    """Columns: whether they are ill, one good symptom, and a weak one that is written down three times."""
    ill = rng.random(n) < 0.5
    good, weak = np.where(rng.random(n) < 0.8, ill, ~ill), np.where(rng.random(n) < 0.65, ill, ~ill)
    copies = {f"test {k}": np.where(rng.random(n) < 0.97, weak, ~weak) for k in range(3)}
    columns = {"ill": ill, "fever": good, **copies}
    return {name: np.where(column, "yes", "no").tolist() for name, column in columns.items()}


train, test = patients(200), patients(2000)
truth = np.array(test["ill"])
weights = [0.0, 0.003, 0.01, 0.03, 0.1, 0.3]
nets = [DiscriminativeBayesNet(structure="naive", reference="smoothed", C=C).fit(train, target="ill") for C in weights]
right = [100 * np.mean(net.predict(test) == truth) for net in nets]

figure, ax = plt.subplots(layout="constrained")
ax.plot(range(len(weights)), right, marker="o")
ax.set_xticks(range(len(weights)), ["0\n(counts)", *map(str, weights[1:])])
ax.set(xlabel="C", ylabel="% of diagnoses right", title="2,000 test patients")

# %%
# Without the tests, the probabilities follow from fever alone:

some = {"fever": ["yes", "no"]} | {f"test {k}": [None, None] for k in range(3)}
print(nets[-1].classes_, nets[-1].predict_proba(some).round(2).tolist())
