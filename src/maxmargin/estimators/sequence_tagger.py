"""Label sequences."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if

from maxmargin.door import weight_vector
from maxmargin.estimators.base import Resume, SampleWeight, Stopwatch
from maxmargin.estimators.bound_files import as_column, bound_files, labels_of_files, sources_of
from maxmargin.estimators.confidence import WithMarginals
from maxmargin.estimators.examples import Predictions, by_sequence, listed
from maxmargin.estimators.explaining import Contribution, WeightRow, coef_table, explain
from maxmargin.estimators.file_parts import BoundFiles, PartReader, Paths
from maxmargin.estimators.label_weights import LabelWeights
from maxmargin.estimators.large_margin import GoodOutputs, LargeMargin, learns_from_streams
from maxmargin.estimators.parameters import parameters
from maxmargin.estimators.saveable import Extractor, Fitted, matrix_cost
from maxmargin.estimators.tagger_report import label_text, tagger_sections
from maxmargin.features.choose import extractor_for
from maxmargin.features.column_files import MAX_UNPACKED
from maxmargin.features.extractor import TextFeatures
from maxmargin.features.sequences import Sequences
from maxmargin.features.sparse_rows import RowFeatures
from maxmargin.features.tokens import Frame, Tokens
from maxmargin.metrics import token_accuracy
from maxmargin.models.base import offsets_of
from maxmargin.models.chain import Chain, ChainBound, ChainLayout
from maxmargin.models.chain_few import best_of_few, few_examples
from maxmargin.models.labels import label_lists
from maxmargin.pages.html import Section

__all__ = ["SequenceTagger"]

SequenceInput = Sequences | Tokens | Iterable[object]
Labellings = Sequence[Sequence[object] | np.ndarray]
Known = Sequence[Sequence[object]] | None
Classes = Sequence[Hashable] | None
Examples = TypeVar("Examples")
MANY = 16  # weights for each number of the data, up to which a look at all weights costs next to nothing


class SequenceFeatures(Extractor, Protocol):
    """Turns sequences of what it knows into features."""

    def fit_transform(self, X: Any, /) -> Sequences: ...
    def transform(self, X: Any, /) -> Sequences: ...
    @property
    def names(self) -> Callable[..., list[str]]: ...
    @property
    def n_features_(self) -> int: ...


@parameters
class SequenceTagger(
    WithMarginals[SequenceInput, list[Hashable]], LabelWeights, LargeMargin[SequenceInput, Labellings]
):
    """A label for every token, learned from examples with a large margin.

    Minimises ``1/2 |w|^2 + C sum_i s_i loss_i(w)`` (or with ``|w|_1``, by ``penalty``) over the weights of a
    first-order chain and stops with a certificate: the final weights are within ``certificate_.gap`` of the best
    possible objective.

    Parameters
    ----------
    features : TextFeatures, DictFeatures or None
        How features are made of text; None takes arrays as they are, dicts of features as
        :class:`~maxmargin.features.dicts.DictFeatures` does, and words with a window of words, affixes and shapes.
    weights : {"all", "observed"}
        A weight for every (feature, label) pair, or only for pairs seen in training (less memory; sparse features).
    ends : bool
        Weights for the first and the last label of a sequence.
    constraints : None, "bio", "iobes", list of forbidden pairs, or boolean matrix
        Which labels may follow each other, in training and prediction.
    classes : sequence, optional
        All labels that may occur; learned from ``y`` when missing.
    ... and the parameters that all estimators share; see maxmargin.estimators.parameters.

    Attributes
    ----------
    classes_ : list
    coef_ : array (n_features, n_classes), or csr_array when ``weights="observed"``
        Emission weights, sparse features first.
    transition_ : array (n_classes, n_classes)
        Row: left label, column: right label.
    temperature_ : float
        After :meth:`fit_temperature` only.
    certificate_, history_, status_, n_iter_, seconds_
        See :class:`~maxmargin.estimators.base.Structured`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SequenceTagger
    >>> X = [np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])]
    >>> y = [["noun", "verb"], ["verb", "verb", "noun"]]
    >>> tagger = SequenceTagger(C=1.0).fit(X, y)
    >>> tagger.predict([np.array([[0.0, 1.0], [1.0, 0.0]])])
    [['verb', 'noun']]
    >>> bool(tagger.certificate_.relative_gap <= 1e-3)
    True
    """

    parts: ClassVar[str] = "tokens"

    features: SequenceFeatures | None = None
    weights: str = "all"
    ends: bool = False
    constraints: str | Sequence[tuple[Hashable, Hashable]] | np.ndarray | None = None
    classes: Classes = None

    def fit(
        self,
        X: SequenceInput,
        y: Labellings | None,
        sample_weight: SampleWeight = None,
        *,
        fixed: Known = None,
        resume: Resume = None,
        references: GoodOutputs | None = None,
        pairing: str = "all",
    ) -> Self:
        """Learn from sequences.

        Parameters
        ----------
        X : list of n sequences, or :class:`~maxmargin.features.sequences.Sequences`
            Each a (length, n_features) array or sparse matrix, or a mapping with ``"sparse"``, ``"dense"`` and
            ``"edge"`` parts; or text: lists of words, of tuples of columns, or of dicts of features; or a frame with
            one row per token, whose columns are features. Or one frame of all tokens with a column ``sentence``.
        y : list of n label sequences; with one frame of all tokens also a column with one label per token
        sample_weight : array (n,), optional
        fixed : list of sequences, optional
            Labels that will be known at prediction time too, None where unknown: no margin is asked against others.
        resume : checkpoint (path or mapping) of an interrupted fit on the same examples, optional
        references : list, optional
            Further good outputs of each example; with ``y=None`` all of them.
        pairing : {"all", "nearest"}
            Which outputs they must outscore; see :class:`~maxmargin.formulations.references.References`.
        """
        begin, formulation = Stopwatch(), None
        if references is not None or y is None or pairing != "all":
            found, formulation = self._references(y, references, pairing)
            y = cast(Labellings, found)
        for name in ("temperature_", "label_column_", "columns_"):  # they belong to an earlier fit
            self.__dict__.pop(name, None)
        bound = self._bind_first(X, y, fixed)
        del X  # packed now, and may be the largest thing there is
        return self._fit_bound(bound, sample_weight, resume, begin, formulation)

    def fit_files(
        self,
        paths: Paths,
        *,
        format: str = "auto",
        separator: str | None = None,
        comment: str | None = None,
        word_column: int | str | None = None,
        label_column: int | str | None = None,
        max_unpacked: float = MAX_UNPACKED,
        memory_map: str | os.PathLike[str] | None = None,
        resume: Resume = None,
    ) -> Self:
        """Learn from column files, each read and packed by a worker of its own (``n_jobs`` processes).

        The result is that of :meth:`fit` on all their sentences, to the last bit, for any number of workers. The
        process that calls this puts the packed files together in its memory, unless ``memory_map`` is given, or the
        files stay with the workers: with ``executor="processes"`` or ``"ray"``, a solver that cuts the sentences into
        several shards (``Sharded(shards=8)``, ``Pegasos(shards=8)``), and ``loss="hinge"``. Then each shard takes its
        sentences from a temporary folder, or reads the files again where it cannot see that.

        Parameters
        ----------
        paths : path, pattern such as ``"part-*.gz"``, or list of these
            Files with one token per line and a blank line after each sentence, or CoNLL-U; ``.gz`` and ``.xz`` are
            unpacked. The files of a pattern come in the order of their names.
        format : {"auto", "columns", "conllu"}
        separator : str, optional
            What divides the columns; any spaces and tabs by default.
        comment : str, optional
            Skip lines that begin with this.
        word_column, label_column : int or str, optional
            A number from 0 (-1 is the last), or a field of CoNLL-U. By default words are in the first column (form) and
            labels in the last (upos).
        max_unpacked : float
            Megabytes at which archives are refused that unpack to over 30 times their size.
        memory_map : path, optional
            A folder to pack the files into; training then maps the pack instead of keeping it in memory, so that it may
            be larger than memory. Workers map it themselves, so all machines must see the folder under this path. The
            next fit on the same files with the same features finds the pack there; it is made anew when a file has
            changed. Weights and planes stay in memory: see ``memory`` of the solvers.
        resume : as in fit
        """
        begin = Stopwatch()
        for name in ("temperature_", "label_column_", "columns_"):  # they belong to an earlier fit
            self.__dict__.pop(name, None)
        if self.features is not None and not isinstance(self.features, TextFeatures):
            raise TypeError(f"files hold text; features must be TextFeatures or None, not {self.features!r:.60}.")
        self.model_ = self._model()
        sources = sources_of(paths, format, separator, comment, max_unpacked)
        common = copy(self.features), as_column(word_column), as_column(label_column)
        readers = [PartReader(n, source, *common) for n, source in enumerate(sources)]
        with ExitStack() as during_fit:
            made = bound_files(self, readers, memory_map, during_fit)
            self._take_over(made)
            return self._fit_bound(made.bound, None, resume, begin)

    def predict_files(
        self,
        paths: Paths,
        *,
        format: str = "auto",
        separator: str | None = None,
        comment: str | None = None,
        max_unpacked: float = MAX_UNPACKED,
    ) -> list[list[list[Hashable]]]:
        """The best labels of each sentence of each file; the files are read and labelled by ``n_jobs`` processes.

        Parameters
        ----------
        paths, format, separator, comment, max_unpacked : as in :meth:`fit_files`
            What is not given is as it was there. ``maxmargin predict`` writes files with the labels in them.
        """
        self._check_fitted()
        if not isinstance(self.features_, TextFeatures):
            raise TypeError("this tagger was not fitted on text; predict takes what it was fitted on.")
        sources = sources_of(paths, format, separator, comment, max_unpacked, vars(self).get("columns_"))
        return labels_of_files(self, sources)

    @available_if(learns_from_streams)
    def partial_fit(
        self, X: SequenceInput, y: Labellings, classes: Classes = None, sample_weight: SampleWeight = None
    ) -> Self:
        """Learn from further sequences, one pass over them, with a solver of the primal family.

        The first call fixes the features and the labels: give all labels as ``classes`` (here or to the constructor).
        Features that come up later cost nothing and teach nothing; hashed ones have no such end. There is no
        certificate, which would need all examples at once.

        Parameters
        ----------
        X, y, sample_weight : as in fit
        classes : sequence, optional
            All labels that may occur; needed in the first call when the first sequences do not have them all.
        """
        first = "stream_" not in self.__dict__
        bound = self._bind_first(X, y, classes=classes) if first else self._bind_held_out(X, y)
        self._learn_more(bound, sample_weight)
        return self

    def _model(self, classes: Classes = None) -> Chain:
        return Chain(
            weights=self.weights,
            ends=self.ends,
            cost=self.cost,
            constraints=self.constraints,
            classes=self.classes if classes is None else classes,
        )

    def _bind_first(self, X: SequenceInput, y: Labellings, fixed: Known = None, classes: Classes = None) -> ChainBound:
        """Choose features and labels; the features are packed then, and not kept besides."""
        X, y = _read_once(X, y)
        self.model_ = self._model(classes)
        self.features_ = copy(self.features if self.features is not None else extractor_for(X))
        if self.features_ is not None:
            X = self.features_.fit_transform(X)
        bound = self.model_.bind(X, y, class_weight=self._label_weights(y), fixed=fixed)
        self.layout_, self.classes_ = bound.layout, bound.layout.labels.classes
        return bound

    def _take_over(self, made: BoundFiles) -> None:
        """Features, labels and columns that were learned from files."""
        self.features_, self.columns_, self.label_column_ = made.features, made.columns, made.label_column
        self.layout_, self.classes_ = made.bound.layout, made.bound.layout.labels.classes

    def _named_weights(self, groups: Mapping[str, np.ndarray]) -> dict[str, list[np.ndarray]]:
        emission = [groups[name] for name in ("sparse", "dense") if name in groups]
        return {name: [block] for name, block in groups.items()} | {"emission": emission}

    @property
    def coef_(self) -> np.ndarray | sp.csr_array:
        parts = self._named_weights(self._groups())["emission"]
        if len(parts) == 1:
            return parts[0]
        return np.vstack([part.toarray() if isinstance(part, sp.csr_array) else part for part in parts])

    @property
    def transition_(self) -> np.ndarray:
        return self._groups()["transition"]

    def predict(self, X: SequenceInput, fixed: Known = None) -> Predictions[list[Hashable]]:
        """The best label sequence of each sequence.

        Parameters
        ----------
        X : as in fit
        fixed : list of sequences, optional
            Labels known beforehand, None where unknown.
        """
        self._check_fitted()
        return Predictions(self._predict_codes(self.weights_, X, fixed))

    def fit_temperature(self, X: SequenceInput, y: Labellings) -> Self:
        """Calibrate the marginals on held-out sequences: sets ``temperature_``, which another ``fit`` forgets.

        Predicted labels stay as they are. See :func:`~maxmargin.estimators.calibration.fit_temperature`.
        """
        from maxmargin.estimators.calibration import fit_temperature

        self._check_fitted()
        self.temperature_ = fit_temperature(self, *_read_once(X, y))
        return self

    def _fitted(self) -> Fitted:
        layout, weights = self.layout_.without_zeros(self.weights_)
        features = self.features_
        if self.penalty == "l1" and isinstance(features, RowFeatures):  # few weights, so few names too
            kept = layout.in_use(weights)
            fewer = features.keeping(kept)
            if fewer is not None:
                features, (layout, weights) = fewer, layout.keeping(weights, kept)
        stand_ins = {"cost": lambda: matrix_cost(self.cost, self.classes_)}
        return Fitted(layout, weights, features=features, stand_ins=stand_ins)

    def _take_fitted(self, fitted: Fitted) -> None:
        layout = cast(ChainLayout, fitted.layout)
        self.layout_, self.weights_ = layout, fitted.weights
        self.features_ = cast(SequenceFeatures | None, fitted.features)
        self.classes_, self.model_ = layout.labels.classes, self._model()

    def coef_table(self, top: int | None = None, label: Hashable = None) -> list[WeightRow]:
        """Weights by name, strongest first: the ``top``, or all, of one ``label``, or of all.

        See :func:`~maxmargin.estimators.explaining.coef_table`.
        """
        return coef_table(self, top, label)

    def explain(
        self, x: object, y: Sequence[Hashable] | None = None, other: Sequence[Hashable] | None = None
    ) -> list[Contribution]:
        """Why the labelling y of a sequence ``x`` scores higher than an ``other``, by default the runner-up.

        See :func:`~maxmargin.estimators.explaining.explain`.
        """
        return explain(self, x, y, other)

    def _labellings(self, y: Labellings, predicted: list) -> tuple[list, list]:
        return label_lists(by_sequence(y, offsets_of([len(found) for found in predicted]))), predicted

    def _strongest_weights(self, top: int) -> list[tuple[str, float]]:
        return [(f"{row['feature']} → {label_text(row['label'])}", row["weight"]) for row in self.coef_table(top)]

    def _example_sections(self, X: object, y: object) -> list[Section]:
        given = _read_once(cast(SequenceInput, X), cast(Labellings, y))
        return [*super()._example_sections(*given), *tagger_sections(self, given[0], label_lists(given[1]))]

    def _bind_held_out(self, X: SequenceInput, y: Labellings | None) -> ChainBound:
        X, y = (listed(X), None) if y is None else _read_once(X, y)
        return self.model_.bind(self._made(X), y, layout=self.layout_)

    def _made(self, X: SequenceInput) -> SequenceInput:
        """Features of text, or what was given when it has features."""
        if isinstance(X, Sequences):
            return X
        if self.features_ is not None:
            return self.features_.transform(X)
        if extractor_for(X) is not None:
            raise TypeError("the tagger was fitted on arrays of numbers; give these, not words or dicts.")
        return X

    def _predict_codes(self, weights: np.ndarray, X: SequenceInput, fixed: Known = None) -> list[list[Hashable]]:
        X, layout = listed(X), self.layout_
        w = weight_vector(weights, layout.n_weights, values=False)
        few = few_examples(layout, self.features_, X) if fixed is None else None
        if few is not None:
            return [layout.output(codes) for codes in best_of_few(layout, few, w)]
        bound = self.model_.bind(self._made(X), layout=layout, fixed=fixed)
        # for few sequences a look at all weights would take longer than the answers, whose scores then have to do
        brief = len(w) > MANY * (len(bound.ints) + len(bound.floats))
        found = bound.argmax(w) if brief else None
        if found is None or not np.isfinite(found.value).all():
            found = bound.argmax(weight_vector(w, layout.n_weights))
        return [layout.output(codes) for codes in found.outputs]

    def _score_predictions(self, y: Labellings, predicted: list, weights: np.ndarray | None = None) -> float:
        labels = by_sequence(y, offsets_of([len(found) for found in predicted]))
        return token_accuracy(label_lists(labels), predicted, weights)


def _read_once(X: SequenceInput, y: Labellings) -> tuple[SequenceInput, Labellings]:
    """Examples that can be read again; with a frame of one row per token, ``y`` may have one label per row."""
    X, y = listed(X), listed(y)
    if not isinstance(X, (list, tuple, Sequences, Tokens)) and isinstance(X, Frame):
        tokens = Tokens.from_frame(X)
        return tokens, by_sequence(y, tokens.offsets)
    if isinstance(X, list) and X and all(isinstance(sentence, (list, tuple)) and not sentence for sentence in X):
        raise ValueError("every sequence is empty; at least one token with a label is needed.")
    return _listed_inside(X), _listed_inside(y)


def _listed_inside(examples: Examples) -> Examples:
    """A list without iterators in it, which could be read only once; else what was given."""
    if not isinstance(examples, list) or not any(isinstance(example, Iterator) for example in examples):
        return examples
    return cast(Examples, [listed(example) for example in examples])
