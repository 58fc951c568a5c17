"""Samples, tables and conversions to other libraries of an estimator with a Bayesian network."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from maxmargin.estimators import net_exchange
from maxmargin.estimators.bayes_net_parts import States, draw, table_frames
from maxmargin.estimators.generative_base import GenerativeEstimator
from maxmargin.models.network import Network
from maxmargin.pages.html import Section, figures
from maxmargin.pages.svg import graph

if TYPE_CHECKING:
    import networkx
    import pandas
    import pyagrum
    from pgmpy.models import DiscreteBayesianNetwork

__all__ = ["NetworkEstimator"]

Target = str | Sequence[str] | None
Hidden = str | Sequence[Sequence[str]] | None
Probabilities = ArrayLike | Mapping[str, ArrayLike]


class NetworkEstimator(GenerativeEstimator[object, Sequence[object]]):
    """Base of estimators that have a ``network_``."""

    family: ClassVar[str] = "networks"
    network_: Network

    def _own_sections(self) -> list[Section]:
        network, c = self.network_, self.reference_
        far = {name: float(part.sum()) for name, part in network.groups(c * (np.log(c) - self.weights_)).items()}
        above = zip(network.names, network.parents, strict=True)
        edges = [(network.names[u], name) for name, parents in above for u in parents]
        drawn = graph(far, edges, "the network, by how far its tables have moved")
        told = "The stronger the colour of a variable, the further training has moved its tables from the reference."
        return [Section("Network", [figures([(drawn, told)])]), *super()._own_sections()]

    def sample(
        self, n: int, random_state: int | np.random.RandomState | None = None
    ) -> pandas.DataFrame | dict[str, list]:
        """``n`` rows drawn from the renormalised model: a pandas frame, or a dict of lists without pandas.

        ``random_state`` is a seed or a generator of numpy, as in scikit-learn.
        """
        p = np.exp(self._normalised())
        codes = draw(self.network_, p, n, check_random_state(random_state))
        net = self.network_
        columns = {name: net.states[v].decode(codes[:, v]) for v, name in enumerate(net.names)}
        try:
            import pandas
        except ImportError:
            return columns
        return pandas.DataFrame(columns)

    def tables(self, renormalised: bool = False) -> dict[str, pandas.DataFrame | pandas.Series]:
        """Conditional probabilities of each variable, by name: a row for each configuration of parents; needs pandas.

        ``renormalised`` divides every distribution by its sum; as trained, they may leave mass for values never seen.
        """
        self._check_fitted()
        return table_frames(self.network_, np.exp(self._normalised() if renormalised else self.weights_))

    def to_bif(self, path: str | os.PathLike[str]) -> Path:
        """Write the network as a BIF file to ``path``; mass that tables leave goes to a last state, ``never_seen_``."""
        return net_exchange.to_bif(*self._as_trained(), path)

    def to_pgmpy(self) -> DiscreteBayesianNetwork:
        """As pgmpy's ``DiscreteBayesianNetwork``; mass that tables leave goes to a last state, ``never_seen_``."""
        return net_exchange.to_pgmpy(*self._as_trained())

    def to_pyagrum(self) -> pyagrum.BayesNet:
        """As ``pyagrum.BayesNet``; mass that tables leave goes to a last state, ``never_seen_``."""
        return net_exchange.to_pyagrum(*self._as_trained())

    def to_networkx(self) -> networkx.DiGraph:
        """As a ``networkx.DiGraph`` with states and tables at its nodes; tables may sum to less than 1."""
        return net_exchange.to_networkx(*self._as_trained())

    @classmethod
    @abstractmethod
    def from_network(
        cls, network: Network, probabilities: Probabilities, target: Target = None, **parameters: Any
    ) -> Self:
        """A network with its probabilities as an estimator that predicts."""

    @classmethod
    def from_bif(
        cls, path: str | os.PathLike[str], target: Target = None, states: States = None, **parameters: Any
    ) -> Self:
        """The network of the BIF file at ``path``; ``states`` (name to sequence) where its values are not to be text.

        ``target`` and ``parameters`` of the estimator are as in :meth:`from_network`.
        """
        return cls.from_network(*net_exchange.from_bif(path, states), target=target, **parameters)

    @classmethod
    def from_pgmpy(
        cls, net: DiscreteBayesianNetwork, target: Target = None, states: States = None, **parameters: Any
    ) -> Self:
        """A pgmpy ``DiscreteBayesianNetwork``, ``net``, with its tables.

        ``target``, ``states`` and ``parameters`` are as in :meth:`from_bif`.
        """
        return cls.from_network(*net_exchange.from_pgmpy(net, states), target=target, **parameters)

    @classmethod
    def from_pyagrum(
        cls, net: pyagrum.BayesNet, target: Target = None, states: States = None, **parameters: Any
    ) -> Self:
        """A ``pyagrum.BayesNet``, ``net``, with its tables.

        ``target``, ``states`` and ``parameters`` are as in :meth:`from_bif`.
        """
        return cls.from_network(*net_exchange.from_pyagrum(net, states), target=target, **parameters)

    @classmethod
    def from_networkx(
        cls, graph: networkx.DiGraph, target: Target = None, states: States = None, **parameters: Any
    ) -> Self:
        """A ``networkx.DiGraph``, ``graph``, with states and tables at its nodes, as :meth:`to_networkx` makes it.

        ``target``, ``states`` and ``parameters`` are as in :meth:`from_bif`.
        """
        return cls.from_network(*net_exchange.from_networkx(graph, states), target=target, **parameters)

    def _as_trained(self) -> tuple[Network, np.ndarray]:
        self._check_fitted()
        return self.network_, np.exp(self.weights_)
