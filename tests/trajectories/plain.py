"""The classical methods, written down once more from their papers: a few lines of numpy over enumerated planes.

planes[i] = (A, b) has a row for every output of example i; C (n,) are the weights of the examples. Each generator
yields the weights after every step.
"""

from __future__ import annotations

import numpy as np


def most_violating(planes, i, w):
    """Plane (a, b) of the output that attains the loss of example i."""
    A, b = planes[i]
    y = int(np.argmax(b - A @ w))
    return A[y], b[y]


def best_share(w, l, z, m, positive=None):
    """argmax over 0 <= g <= 1 of  l + g (m - l) - 1/2 |P(w + g (z - w))|^2; P cuts negative parts off."""
    direction, slope = z - w, m - l
    if positive is None:
        square = direction @ direction
        return 0.0 if square == 0 else float(np.clip((slope - w @ direction) / square, 0.0, 1.0))

    def derivative(g):
        v = w + g * direction
        return slope - np.where(positive, np.maximum(v, 0), v) @ direction

    low, high = 0.0, 1.0
    if derivative(1.0) >= 0:
        return 1.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if derivative(middle) > 0 else (low, middle)
    return low


def projected(u, positive):
    return u if positive is None else np.where(positive, np.maximum(u, 0), u)


def frank_wolfe(planes, C, positive=None):
    """Frank, Wolfe 1956: the corner of all most violating planes, then the best point of the segment."""
    u, l = np.zeros(planes[0][0].shape[1]), 0.0
    while True:
        w = projected(u, positive)
        corners = [most_violating(planes, i, w) for i in range(len(planes))]
        z, m = (
            sum(c * a for c, (a, _) in zip(C, corners, strict=True)),
            sum(c * b for c, (_, b) in zip(C, corners, strict=True)),
        )
        g = best_share(u, l, z, m, positive)
        u, l = u + g * (z - u), l + g * (m - l)
        yield projected(u, positive)


def cone_frank_wolfe(planes, C):
    """The same for squared slacks, where the domain is a cone: the best point of the cone of iterate and new ray."""
    n, d = len(planes), planes[0][0].shape[1]
    u, l = np.zeros(d + n), 0.0
    while True:
        z, m = np.zeros(d + n), 0.0
        for i in range(n):
            a, b = most_violating(planes, i, u[:d])
            h = b - a @ u[:d]
            if h - u[d + i] / np.sqrt(C[i]) > -1e-12 * abs(h):  # the ray of this example ascends, or rests
                z += C[i] * h * np.concatenate([a, np.eye(n)[i] / np.sqrt(C[i])])
                m += C[i] * h * b
        points, gains = np.array([u, z]), np.array([l, m])
        options = [np.zeros(2)]
        for support in ([0], [1], [0, 1]):
            q, P = np.zeros(2), points[support]
            q[support] = np.linalg.lstsq(P @ P.T, gains[support], rcond=None)[0]
            options.append(np.maximum(q, 0))
        q = max(options, key=lambda q: gains @ q - 0.5 * np.sum((q @ points) ** 2))
        u, l = q @ points, q @ gains
        yield u[:d]


def block_frank_wolfe(planes, C, order, positive=None):
    """Lacoste-Julien et al. 2013, algorithm 4: ``order`` yields the examples to visit."""
    d = planes[0][0].shape[1]
    u_i, l_i, u = np.zeros((len(planes), d)), np.zeros(len(planes)), np.zeros(d)
    for i in order:
        a, b = most_violating(planes, i, projected(u, positive))
        rest = u - u_i[i]
        z, m = C[i] * a, C[i] * b
        # the whole vector moves from u to rest + z
        g = best_share(u, l_i[i], rest + z, m, positive)
        u_i[i], l_i[i] = u_i[i] + g * (z - u_i[i]), l_i[i] + g * (m - l_i[i])
        u = rest + u_i[i]
        yield projected(u, positive)


def sequential_dual(planes, C, order):
    """Balamurugan et al. 2011: the plane joins the set of its example, whose multipliers are optimised by pairs."""
    d = planes[0][0].shape[1]
    sets = [[(np.zeros(d), 0.0, c)] for c in C]  # (a, b, alpha), the true output first
    w = np.zeros(d)
    for i in order:
        if C[i] == 0:  # nothing to give
            yield w.copy()
            continue
        a, b = most_violating(planes, i, w)
        if b - a @ w > max(bp - ap @ w for ap, bp, _ in sets[i]) + 1e-12 * max(b, *(bp for _, bp, _ in sets[i])):
            sets[i].append((a, b, 0.0))
        A, bs = np.array([p[0] for p in sets[i]]), np.array([p[1] for p in sets[i]])
        alpha = np.array([p[2] for p in sets[i]])
        for _ in range(100_000):
            g = bs - A @ w
            up = int(np.argmax(g))
            down = min(np.flatnonzero(alpha > 0), key=lambda p: g[p])
            if g[up] - g[down] <= 1e-14:
                break
            direction = A[up] - A[down]
            step = min(alpha[down], (g[up] - g[down]) / max(direction @ direction, 1e-300))
            alpha[up] += step
            alpha[down] -= step
            w = w + step * direction
        sets[i] = [p for k, p in enumerate(zip(A, bs, alpha, strict=True)) if k == 0 or alpha[k] > 0]
        yield w.copy()
