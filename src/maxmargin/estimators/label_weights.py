"""The parameters of estimators that label parts: what mistakes cost, and how much each true label counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.costs import Cost
from maxmargin.estimators.parameters import parameters

__all__ = ["LabelWeights"]


@parameters
class LabelWeights:
    """Costs and weights of labels.

    Parameters
    ----------
    cost : str, mapping, array, callable or Cost
        "hamming", weights by true label, a (K, K) matrix, or a function of (true label, label).
    class_weight : mapping of label to number, or "balanced", optional
        How much mistakes on parts with that true label count; "balanced" gives every label the same total. The cost of
        a wrong token, or of a missed label of a set, is multiplied; where an example has one label, its weight is, as
        in scikit-learn.
    """

    cost: str | Mapping[Hashable, float] | ArrayLike | Callable[[Hashable, Hashable], float] | Cost = "hamming"
    class_weight: Mapping[Hashable, float] | str | None = None

    def _label_weights(self, parts: Iterable[Iterable[Hashable]]) -> dict[Hashable, float] | None:
        """The weight of each label, checked, from the labels of the parts of each example; missing ones have 1."""
        return self._weights_of_counts(lambda: Counter(label for labels in parts for label in labels))

    def _weights_of_counts(self, count: Callable[[], Counter[Hashable]]) -> dict[Hashable, float] | None:
        """As :meth:`_label_weights`, from how often each label occurs."""
        given = self.class_weight
        if given is None:
            return None
        if isinstance(given, str) and given == "balanced":
            counts = count()
            return {label: counts.total() / (len(counts) * count) for label, count in counts.items()}
        if not isinstance(given, Mapping):
            raise ValueError(f'class_weight must be a mapping of labels to weights or "balanced"; got {given!r}.')
        for label, weight in given.items():
            if not (np.isfinite(weight) and weight >= 0):
                raise ValueError(f"class_weight of {label!r} is {weight}; weights must be finite and not negative.")
        return dict(given)
