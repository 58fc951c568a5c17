"""
Planes: how a solver closes in on the optimum
=============================================

One weight, three examples with three outputs each. The loss of an example is the highest of its planes (here: lines),
so the objective is convex and piecewise quadratic. Asking for the highest plane at the present weight gives a new
plane; all planes so far bound the objective from below. The lowest point of that bound is the next weight, and its
value is never above the optimum: with the objective at the best weight it makes a certificate.
"""

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(4)
lead = rng.normal(1.0, 0.9, size=(3, 3))  # psi: by how much a weight of 1 puts the right output ahead of each other one
cost = np.array([[1.0, 2.0, 3.0]] * 3)
w = np.linspace(-0.5, 2.5, 2001)
losses = np.maximum(0.0, (cost[..., None] - lead[..., None] * w).max(axis=1))  # (examples, weights)
objective = 0.5 * w**2 + losses.sum(axis=0)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for plane in cost[0][:, None] - lead[0][:, None] * w:
    left.plot(w, plane, color="0.7")
left.plot(w, losses[0], linewidth=2.5)
left.set(title="A loss is the highest of its planes", xlabel="w", ylim=(-1, 5))

right.plot(w, objective, linewidth=2.5, label="objective")
bound = 0.5 * w**2  # the true outputs have the plane 0
now = 0.0
total = np.zeros_like(w)
for n_planes in range(1, 6):
    worst = np.argmax(cost - lead * now, axis=1)
    a, b = lead[np.arange(3), worst], cost[np.arange(3), worst]
    violated = b - a * now > 0
    total = np.maximum(total, b[violated].sum() - a[violated].sum() * w)
    bound = 0.5 * w**2 + total
    now = w[np.argmin(bound)]
    right.plot(w, bound, color=plt.cm.autumn(n_planes / 7), linewidth=1)
    primal = objective[np.argmin(np.abs(w - now))]
    print(f"{n_planes} planes: w = {now:.3f}, the optimum is in [{bound.min():.3f}, {primal:.3f}]")
right.set(title="Bounds of one to five planes", xlabel="w", ylim=(0, 1.6 * objective.min() + 2))
right.legend()
