"""The interface of sklearn-crfsuite: change the import, keep the script.

>>> import maxmargin.compat.sklearn_crfsuite as sklearn_crfsuite
>>> from maxmargin.compat.sklearn_crfsuite import metrics

Behind it a :class:`~maxmargin.SequenceTagger` learns with a large margin, not by maximum likelihood, so weights and
scores differ from CRFsuite's.
"""

from maxmargin.compat.sklearn_crfsuite import metrics
from maxmargin.compat.sklearn_crfsuite.estimator import CRF

__all__ = ["CRF", "metrics"]
