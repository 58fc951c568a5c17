"""A callback that ends a run in the middle and keeps its checkpoint."""

from __future__ import annotations

import pytest

from maxmargin.callbacks.base import Callback


class StopAfter(Callback):
    """End a run at a certificate, by its number; ``arrays`` is the checkpoint of that moment."""

    def __init__(self, certificates):
        self.left, self.arrays = certificates, None

    def on_certificate(self, run):
        self.left -= 1
        if self.left == 0:
            self.arrays = run.to_arrays()
            return "stop"
        return None


def spoilt_checkpoint(fit, certificates, name, change):
    """The checkpoint of a fit that ends after so many certificates, one array of its state changed."""
    stop = StopAfter(certificates)
    with pytest.warns(match="callback"):
        fit(callbacks=[stop])
    return stop.arrays | {f"state/{name}": change(stop.arrays[f"state/{name}"])}
