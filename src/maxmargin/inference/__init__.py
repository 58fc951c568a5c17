"""Argmax, k-best, best-by-cost and marginals of score tables: arrays in, arrays out.

Checked functions for arrays of your own, of which each says what is wrong with its input:

========================  =============================================================================================
:func:`grid_cut`          best mask of an image or volume with costs of labels and of neighbours that differ
:class:`GridCut`          the same again and again while costs change, each time from the last cut
:func:`graph_cut`         the same for any graph of two labels
:func:`submodular_terms`  costs of pairs of labels as costs and capacities for :func:`graph_cut`
:func:`directions`        which neighbour each capacity of a grid leads to
:func:`graph_argmax`      best labels, any number, of any graph, with an upper bound: exact where that is cheap
:func:`best_matching`     best links between two sides, each node with as many as its prices allow
:func:`k_best_matchings`  the k best sets of such links
:func:`chain_argmax`      best labelling of a chain
:func:`chain_k_best`      the k best labellings
:func:`chain_by_cost`     the best labelling of each cost
:func:`chain_marginals`   log-partition, and probabilities of labels and of pairs
:func:`best_path`         best path of a lattice
:func:`k_best_paths`      the k best paths, or the best path of each of the k best distinct outputs
:class:`JunctionTree`     exact argmax and marginals of tables over discrete variables
========================  =============================================================================================

Searches for the largest product of cost and violation, each with an upper bound, ask an argmax of yours:
:func:`bisecting_search`, :func:`binary_search`, :func:`golden_search`, :func:`sarawagi_gupta_search`,
:func:`relaxed_search` for convex sets, and :func:`angular_search`, which needs an argmax within an angle, such as
:class:`ConstrainedOracle` has by HiGHS (with :func:`in_closed_angles`); see :mod:`maxmargin.inference.slack_search`.
Recursions over directed acyclic graphs with scores of nodes are in :mod:`maxmargin.inference.recursion`.

The kernel modules compile (or load from disk) when they are imported; these functions import them when called.
"""

from maxmargin.lazy import lazy

_NAMES = {
    "constrained_oracle": "ConstrainedOracle",
    "graph": "GraphAnswer graph_argmax",
    "junction_tree": "JunctionTree",
    "matching": "Matched best_matching k_best_matchings",
    "min_cut": "GridCut directions graph_cut grid_cut submodular_terms",
    "paths": "Path best_path k_best_paths",
    "recursion": "chain_argmax chain_by_cost chain_k_best chain_marginals",
    "slack_search": "Reply SearchResult Stop Wedge angular_search binary_search bisecting_search golden_search "
    "in_closed_angles relaxed_search sarawagi_gupta_search",
}

__all__, __getattr__, __dir__ = lazy(__name__, _NAMES)
