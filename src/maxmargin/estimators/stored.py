"""Estimators that come back from model files."""

from __future__ import annotations

import os
from typing import Self

__all__ = ["Stored"]


class Stored:
    """An estimator whose class is among the kinds of :mod:`maxmargin.estimators.saving`, or a subclass of one."""

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = True) -> Self:
        """The fitted estimator in a file of ``save``, ready to predict; ``verify=False`` skips the checksum."""
        from maxmargin.estimators.saving import load_as

        return load_as(cls, path, verify=verify)
