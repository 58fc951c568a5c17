"""Words of handwritten digits with a hidden grammar: a real structured task that needs no download."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["DigitWords", "make_digit_words"]

N_DIGITS = 10


@dataclass(frozen=True)
class DigitWords:
    """Handwritten words and their grammar.

    Of each word ``X`` has an array (T_i, 64), a row of pixels (8 x 8, 0..1) per digit, and ``y`` the digits (T_i,),
    int64. ``start`` (10,) is the probability of each digit at the start of a word, ``transition`` (10, 10) that of the
    next digit (column) after each digit (row); most entries are 0.
    """

    X_train: list[np.ndarray]
    y_train: list[np.ndarray]
    X_test: list[np.ndarray]
    y_test: list[np.ndarray]
    start: np.ndarray
    transition: np.ndarray


def make_digit_words(
    n_words: int = 400,
    *,
    n_test_words: int | None = None,
    lengths: tuple[int, int] = (4, 9),
    successors: int = 3,
    noise: float = 0.25,
    blur: float = 0.7,
    random_state: int | np.random.Generator | None = None,
) -> DigitWords:
    """Compose words from the 1,797 digit images of scikit-learn, drawn from a sparse Markov chain.

    Each digit may be followed by only a few others, so a reader who learns the grammar can read images that are
    ambiguous when seen alone. Train words use two thirds of the images, test words the rest: no image is in both.

    Parameters
    ----------
    n_words : int
        Number of train words.
    n_test_words : int or None
        Number of test words; None for half of ``n_words``, at least one.
    lengths : (int, int)
        Shortest and longest word, both included.
    successors : int
        How many digits may follow each digit, 1..10.
    noise : float
        Standard deviation of the noise added to each pixel (scale 0..1, clipped afterwards), 0 for none.
    blur : float
        Standard deviation in pixels of a Gaussian blur before the noise, 0 for none.
    random_state : int, Generator or None
        Random seed.
    """
    low, high = lengths
    n_test_words = max(1, n_words // 2) if n_test_words is None else n_test_words
    if n_words < 1 or n_test_words < 1:
        raise ValueError(f"n_words and n_test_words must be at least 1, got {n_words} and {n_test_words}")
    if not 1 <= low <= high:
        raise ValueError(f"lengths must be (shortest, longest) with 1 <= shortest <= longest, got {lengths}")
    if not 1 <= successors <= N_DIGITS:
        raise ValueError(f"successors must be in 1..{N_DIGITS}, got {successors}")
    if noise < 0 or blur < 0:
        raise ValueError(f"noise and blur must not be negative, got {noise} and {blur}")

    from sklearn.datasets import load_digits

    rng = np.random.default_rng(random_state)
    digits = load_digits()
    start, transition = _grammar(successors, rng)
    order = rng.permutation(len(digits.target))
    cut = 2 * len(order) // 3

    def write(images: np.ndarray, n: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        pools = [images[digits.target[images] == digit] for digit in range(N_DIGITS)]
        spelled = [_spell(int(rng.integers(low, high + 1)), start, transition, rng) for _ in range(n)]
        drawn = [np.array([rng.choice(pools[digit]) for digit in word]) for word in spelled]
        return [_deface(digits.images[word] / 16.0, blur, noise, rng) for word in drawn], spelled

    X_train, y_train = write(order[:cut], n_words)
    X_test, y_test = write(order[cut:], n_test_words)
    return DigitWords(X_train, y_train, X_test, y_test, start, transition)


def _grammar(successors: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random start distribution and sparse transition matrix in which every digit can be reached."""
    transition = np.zeros((N_DIGITS, N_DIGITS))
    ring = rng.permutation(N_DIGITS)  # a cycle through all digits keeps the chain irreducible
    for here, after in zip(ring, np.roll(ring, -1), strict=True):
        others = rng.permutation(np.delete(np.arange(N_DIGITS), after))[: successors - 1]
        transition[here, [after, *others]] = rng.dirichlet(np.full(successors, 2.0))
    return rng.dirichlet(np.full(N_DIGITS, 2.0)), transition


def _spell(length: int, start: np.ndarray, transition: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    word = np.empty(length, dtype=np.int64)
    word[0] = rng.choice(N_DIGITS, p=start)
    for t in range(1, length):
        word[t] = rng.choice(N_DIGITS, p=transition[word[t - 1]])
    return word


def _deface(images: np.ndarray, blur: float, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Blur and noise on (T, 8, 8) images; returns (T, 64) rows in 0..1."""
    if blur:
        from scipy.ndimage import gaussian_filter

        images = gaussian_filter(images, sigma=(0.0, blur, blur))
    if noise:
        images = images + noise * rng.standard_normal(images.shape)
    return np.clip(images, 0.0, 1.0).reshape(len(images), -1)
