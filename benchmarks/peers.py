"""Train python-crfsuite on given string features and measure it as we measure our own methods.

Wall seconds cover only ``train``: the data is appended first, and that time is reported separately. Predictions are
scored with the metrics of maxmargin. As a program::

    python benchmarks/peers.py averaged-perceptron-10 lbfgs      # CoNLL-2000 chunking
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maxmargin.metrics import span_f1, token_accuracy

# name -> (algorithm of CRFsuite, its options; all others keep CRFsuite's defaults)
PEERS: dict[str, tuple[str, dict[str, Any]]] = {
    "averaged-perceptron-8": ("averaged-perceptron", {"max_iterations": 8}),
    "averaged-perceptron-10": ("averaged-perceptron", {"max_iterations": 10}),
    "averaged-perceptron-50": ("averaged-perceptron", {"max_iterations": 50}),
    "passive-aggressive": ("passive-aggressive", {}),
    "l2sgd": ("l2sgd", {}),
    "lbfgs": ("lbfgs", {}),
}


@dataclass(frozen=True)
class PeerResult:
    """Cost and result of one training run of a peer; ``f1`` and ``accuracy`` are on the test set, from 0 to 1."""

    name: str
    seconds: float
    processor_seconds: float
    append_seconds: float
    tag_seconds: float
    iterations: int
    predictions: list[list[str]]
    f1: float
    accuracy: float

    def __str__(self) -> str:
        return (
            f"{self.name:24} train {self.seconds:8.2f} s ({self.iterations} passes)  append {self.append_seconds:.2f} s"
            f"  tag {self.tag_seconds:5.2f} s  F1 {100 * self.f1:6.2f}  accuracy {100 * self.accuracy:6.2f}"
        )


def _are_spans(y: list[list[str]]) -> bool:
    """Whether labels are those of spans; parts of speech are not."""
    return all(label == "O" or label[1:2] == "-" for labels in y for label in labels)


def train_peer(
    name: str,
    X_train: list[list[list[str]]],
    y_train: list[list[str]],
    X_test: list[list[list[str]]],
    y_test: list[list[str]],
    **options: Any,
) -> PeerResult:
    """Train one of :data:`PEERS` and score it on the test sentences.

    Parameters
    ----------
    name : str
        A key of :data:`PEERS`.
    X_train, X_test : list of sentences, each a list of attribute lists
    y_train, y_test : list of label lists
    **options
        CRFsuite parameters that replace those of the named peer.
    """
    if name not in PEERS:
        raise ValueError(f"unknown peer {name!r}: choose from {', '.join(PEERS)}")
    import pycrfsuite

    algorithm, defaults = PEERS[name]
    trainer = pycrfsuite.Trainer(algorithm=algorithm, params={**defaults, **options}, verbose=False)
    begin = time.perf_counter()
    for attributes, labels in zip(X_train, y_train, strict=True):
        trainer.append(pycrfsuite.ItemSequence(attributes), labels)
    append_seconds = time.perf_counter() - begin

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.crfsuite")
        begin, begin_processor = time.perf_counter(), time.process_time()
        trainer.train(path)
        seconds, processor_seconds = time.perf_counter() - begin, time.process_time() - begin_processor
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        begin = time.perf_counter()
        predictions = [tagger.tag(attributes) for attributes in X_test]
        tag_seconds = time.perf_counter() - begin
        tagger.close()
    return PeerResult(
        name=name,
        seconds=seconds,
        processor_seconds=processor_seconds,
        append_seconds=append_seconds,
        tag_seconds=tag_seconds,
        iterations=len(trainer.logparser.iterations),
        predictions=predictions,
        f1=span_f1(y_test, predictions) if _are_spans(y_test) else float("nan"),
        accuracy=token_accuracy(y_test, predictions),
    )


def main(names: list[str]) -> None:
    from chunking_features import chunk_labels, string_features
    from maxmargin.datasets import load_conll2000

    train, test = load_conll2000("train"), load_conll2000("test")
    X_train, X_test = string_features(train), string_features(test)
    for name in names or ["averaged-perceptron-8", "averaged-perceptron-10"]:
        print(train_peer(name, X_train, chunk_labels(train), X_test, chunk_labels(test)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
