"""Hidden Markov models to and from other libraries, and from one layout to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from maxmargin.models.hmm import HMMLayout

if TYPE_CHECKING:
    from hmmlearn.hmm import CategoricalHMM

    from maxmargin.estimators.discriminative_hmm import DiscriminativeHMM, Values

    H = TypeVar("H", bound=DiscriminativeHMM)

__all__ = ["aligned", "from_hmmlearn", "to_hmmlearn"]


def to_hmmlearn(estimator: DiscriminativeHMM) -> CategoricalHMM:
    """The renormalised model as a ``CategoricalHMM``; its symbols are codes."""
    try:
        from hmmlearn.hmm import CategoricalHMM
    except ImportError:
        raise ImportError("to_hmmlearn() needs hmmlearn; install maxmargin[interop].") from None
    theta, layout = estimator._normalised(), estimator.layout_
    groups = layout.groups(np.exp(theta))
    model = CategoricalHMM(n_components=len(layout.states))
    model.startprob_, model.transmat_ = groups["initial"].copy(), groups["transition"].copy()
    model.emissionprob_, model.n_features = groups["emission"].copy(), len(layout.symbols)
    return model


def from_hmmlearn(
    cls: type[H], model: CategoricalHMM, classes: Values, symbols: Values, parameters: Mapping[str, object]
) -> H:
    """An estimator of class ``cls`` with the probabilities of a fitted ``CategoricalHMM``."""
    for name in ("startprob_", "transmat_", "emissionprob_"):
        if name not in vars(model):
            raise ValueError(f"the hmmlearn model has no {name}; fit it first.")
    K, V = np.asarray(model.emissionprob_).shape
    own = cls(classes=K if classes is None else classes, symbols=V if symbols is None else symbols)
    own.set_params(**parameters)
    own.model_ = own._model()
    own._take_layout(own.model_.bind([], []).layout)
    own._take_probabilities(own.layout_.join(model.startprob_, model.transmat_, model.emissionprob_))
    return own


def aligned(model: DiscriminativeHMM, layout: HMMLayout) -> np.ndarray:
    """The probabilities of another model in this layout; what it does not know gets none, and so the floor."""
    groups = {name: np.exp(table) for name, table in model.layout_.groups(model.weights_).items()}
    rows = [model.layout_.states.code.get(state, -1) for state in layout.states.classes]
    columns = [model.layout_.symbols.code.get(symbol, -1) for symbol in layout.symbols.classes]
    if all(row < 0 for row in rows):
        raise ValueError("the reference model has none of the states of the training data; check the names.")
    initial = np.append(groups["initial"], 0.0)[rows]
    transition = np.pad(groups["transition"], ((0, 1), (0, 1)))[np.ix_(rows, rows)]
    emission = np.pad(groups["emission"], ((0, 1), (0, 1)))[np.ix_(rows, columns)]
    return layout.join(initial, transition, emission)
