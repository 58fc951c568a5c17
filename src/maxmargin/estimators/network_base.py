"""What an estimator with a Bayesian network gives away: samples, tables, and the network for other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from maxmargin.estimators.bayes_net_parts import draw, table_frames
from maxmargin.estimators.generative_base import GenerativeEstimator
from maxmargin.models.network import Network

__all__ = ["NetworkEstimator"]


class NetworkEstimator(GenerativeEstimator):
    """Base of estimators that have a ``network_``."""

    network_: Network

    def sample(self, n: int, random_state: Any = None) -> Any:
        """``n`` rows drawn from the renormalised model: a pandas frame, or a dict of lists without pandas."""
        codes = draw(*self._renormalised(), n, check_random_state(random_state))
        net = self.network_
        columns = {name: net.states[v].decode(codes[:, v]) for v, name in enumerate(net.names)}
        try:
            import pandas
        except ImportError:
            return columns
        return pandas.DataFrame(columns)

    def tables(self, renormalised: bool = False) -> dict[str, Any]:
        """Conditional probabilities of each variable, by name: a row for each configuration of parents; needs pandas.

        Parameters
        ----------
        renormalised : bool
            Divide every distribution by its sum; otherwise as trained, which may leave mass for values never seen.
        """
        self._check_fitted()
        return table_frames(self.network_, np.exp(self._normalised() if renormalised else self.weights_))

    def to_bif(self, path: Any) -> Any:
        """Write the renormalised network as a BIF file."""
        from maxmargin.estimators.net_exchange import to_bif

        return to_bif(*self._renormalised(), path)

    def to_pgmpy(self) -> Any:
        """The renormalised network as pgmpy's ``DiscreteBayesianNetwork``."""
        from maxmargin.estimators.net_exchange import to_pgmpy

        return to_pgmpy(*self._renormalised())

    def to_pyagrum(self) -> Any:
        """The renormalised network as ``pyagrum.BayesNet``."""
        from maxmargin.estimators.net_exchange import to_pyagrum

        return to_pyagrum(*self._renormalised())

    def to_networkx(self) -> Any:
        """The renormalised network as a ``networkx.DiGraph`` with states and tables at its nodes."""
        from maxmargin.estimators.net_exchange import to_networkx

        return to_networkx(*self._renormalised())

    def _renormalised(self) -> tuple[Network, np.ndarray]:
        theta = self._normalised()
        return self.network_, np.exp(theta)
