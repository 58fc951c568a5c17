"""Argmax, k-best, best-by-cost and marginals of score tables: arrays in, arrays out.

The kernel modules compile (or load from disk) when they are imported, so nothing is imported here.
"""
