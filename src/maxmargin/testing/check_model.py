"""Check that a model keeps its contract."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from maxmargin.models.base import BoundModel
from maxmargin.models.user import PythonModel, UserModel
from maxmargin.testing.python_checks import Outputs, check_python
from maxmargin.testing.report import Report

__all__ = ["check_model"]


@runtime_checkable
class Model(Protocol):
    """A compiled model."""

    def bind(self, X: Any, Y: Any = None) -> BoundModel: ...


def check_model(
    model: UserModel | Model,
    X: object,
    Y: object,
    n_trials: int = 20,
    random_state: int | np.random.Generator | None = 0,
    outputs: Outputs | None = None,
    raise_on_error: bool = True,
) -> Report:
    """Try a model at random weights on a few examples, and list everything that is wrong.

    A user's model (four functions, see :mod:`maxmargin.models.user`) is checked for

    * joint features: of length ``n_weights``, finite, the same at each call and for any weights;
    * costs: finite, not negative, 0 for an output with itself, between all outputs that occur;
    * argmax: never below the true output nor below any output seen at other weights or cost weights, nor, when
      ``outputs`` is given, below any output at all; valid outputs; the same answer at each call; with
      ``cost_weight=0`` no influence of ``y_true``;
    * slack_argmax and constrained_argmax, if defined: never below any output seen (within the angle);
    * side effects: inputs, outputs and weights are neither changed nor kept; the model can be pickled (a warning).

    A compiled model (:class:`~maxmargin.models.chain.Chain`, :class:`~maxmargin.models.multiclass.Multiclass`) is
    checked through its kernel: planes, costs and bounds agree with each other, and with enumeration where an example
    has at most 4096 outputs.

    Parameters
    ----------
    model : object
    X, Y : examples
        A few small ones suffice.
    n_trials : int
        Number of random weight vectors.
    random_state : int, Generator or None
    outputs : callable, optional
        ``outputs(x)`` yields all outputs of a tiny input.
    raise_on_error : bool
        Raise a :class:`ModelError` listing all problems; otherwise only return the report.

    Returns
    -------
    Report
        ``ok``, ``problems``, ``warnings`` and ``capabilities``; print it.
    """
    if n_trials < 1:
        raise ValueError(f"n_trials is {n_trials}; give at least 1.")
    rng = np.random.default_rng(random_state)
    if isinstance(model, PythonModel):
        model = model.model
    if isinstance(model, Model):
        from maxmargin.testing.compiled_checks import check_compiled

        report = check_compiled(model, X, Y, n_trials, rng)
    else:
        report = check_python(model, X, Y, n_trials, rng, outputs)
    if raise_on_error:
        report.raise_problems()
    return report
