"""Public multi-label and hierarchical datasets with their published splits, from ``.npz`` files.

==================  =======================  ========================  ======================================
loader              file in the data folder  train, (valid,) test      features, labels
==================  =======================  ========================  ======================================
load_yeast          yeast/                   1,500, 917                103, 14
load_scene          scene/                   1,211, 1,196              294, 6
load_rcv1           rcv1/                    3,000, 3,000              944 of 47,236 (binary), 100
load_enron          hmc_enron/               988, 660                  1,001 (binary), tree of 56
load_imclef07a      hmc_imclef07a/           10,000, 1,006             80, tree of 96
load_cellcycle      hmc_cellcycle_fun/       1,628, 848, 1,281         77 (NaN: missing), tree of 499
==================  =======================  ========================  ======================================
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from maxmargin.datasets.folder import require
from maxmargin.datasets.label_data import LabelData

__all__ = ["load_cellcycle", "load_enron", "load_imclef07a", "load_rcv1", "load_scene", "load_yeast"]

_ARRAYS = "as an npz file with the arrays X_train, Y_train, X_test, Y_test, label_names, feature_names"
_MULAN = f"github.com/tsoumakas/mulan, data/multi-label (read_arff reads its files), {_ARRAYS}"
_CLUS = (
    f"github.com/EGiunchiglia/C-HMCNN, HMC_data (read_arff reads its files), {_ARRAYS}, and parent (the number of the "
    "parent of each label, -1 for none)"
)
_RCV1 = (
    "github.com/KKimura360/MLC_toolbox, dataset/matfile/rcv1s1.mat, as an npz file with the arrays X_train_packed, "
    "Y_train_packed, X_test_packed, Y_test_packed (bits of rows), n_features, n_labels, label_ids"
)


def load_yeast(split: str = "train") -> LabelData:
    """Functions of yeast genes: 14 labels, 4.24 per example.

    References
    ----------
    Elisseeff, Weston. A kernel method for multi-labelled classification. NIPS 2001.
    """
    return _load("yeast/yeast.npz", split, _MULAN)


def load_scene(split: str = "train") -> LabelData:
    """Pictures of scenes: 6 labels, 1.07 per example.

    References
    ----------
    Boutell, Luo, Shen, Brown. Learning multi-label scene classification. Pattern Recognition 2004.
    """
    return _load("scene/scene.npz", split, _MULAN)


def load_rcv1(split: str = "train") -> LabelData:
    """Reuters news, subset 1: the 944 commonest words (on or off) and 100 of the 101 labels, named by number.

    References
    ----------
    Lewis, Yang, Rose, Li. RCV1: a new benchmark collection for text categorization research. JMLR 2004.
    """
    path = require("rcv1/rcv1subset1_top944.npz", _RCV1)
    packed = _arrays(path, _RCV1, _split(split, ("train", "test")), ("n_features", "n_labels", "label_ids"), "_packed")
    n_features, n_labels = int(packed["n_features"]), int(packed["n_labels"])
    X, Y = (np.unpackbits(packed[name], axis=1) for name in ("X", "Y"))
    features = [f"word{j}" for j in range(n_features)]
    data = LabelData(
        X[:, :n_features].astype(np.float64), Y[:, :n_labels], features, list(map(str, packed["label_ids"].tolist()))
    )
    return _consistent(data, path, _RCV1)


def load_enron(split: str = "train") -> LabelData:
    """Subjects of e-mails of Enron: a tree of 56 labels.

    References
    ----------
    Klimt, Yang. The Enron corpus. ECML 2004. Vens, Struyf, Schietgat, Dzeroski, Blockeel. Decision trees for
    hierarchical multi-label classification. Machine Learning 2008.
    """
    return _load("hmc_enron/enron_corr.npz", split, _CLUS)


def load_imclef07a(split: str = "train") -> LabelData:
    """X-ray pictures by what they show: a tree of 96 labels, one path per example.

    References
    ----------
    Dimitrovski, Kocev, Loskovska, Dzeroski. Hierarchical annotation of medical images. Pattern Recognition 2011.
    """
    return _load("hmc_imclef07a/imclef07a.npz", split, _CLUS)


def load_cellcycle(split: str = "train") -> LabelData:
    """Functions (FunCat) of yeast genes: a tree of 499 labels; the splits are "train", "valid" and "test".

    References
    ----------
    Vens, Struyf, Schietgat, Dzeroski, Blockeel. Decision trees for hierarchical multi-label classification. Machine
    Learning 2008.
    """
    return _load("hmc_cellcycle_fun/cellcycle_fun.npz", split, _CLUS, ("train", "valid", "test"))


def _split(split: str, known: tuple[str, ...]) -> str:
    if split not in known:
        raise ValueError(f"split must be one of {', '.join(map(repr, known))}; got {split!r}.")
    return split


def _load(file: str, split: str, where: str, splits: tuple[str, ...] = ("train", "test")) -> LabelData:
    _split(split, splits)
    path = require(file, where)
    more = ("label_names", "feature_names", *(("parent",) if where == _CLUS else ()))
    arrays = _arrays(path, where, split, more)
    labels: list[str] = arrays["label_names"].tolist()
    hierarchy = None
    if "parent" in arrays:
        parents = arrays["parent"].tolist()
        if len(parents) != len(labels) or not all(-1 <= p < len(labels) for p in parents):
            raise ValueError(f"{path}: 'parent' does not name a label, or -1, for each label. Get it from {where}.")
        hierarchy = [(labels[p], child) for p, child in zip(parents, labels, strict=True) if p >= 0]
    X = arrays["X"].astype(np.float64)
    return _consistent(LabelData(X, arrays["Y"], arrays["feature_names"].tolist(), labels, hierarchy), path, where)


def _arrays(path: Path, where: str, split: str, more: tuple[str, ...], suffix: str = "") -> dict[str, np.ndarray]:
    """X and Y of a split, and arrays by name."""
    stored = {"X": f"X_{split}{suffix}", "Y": f"Y_{split}{suffix}"} | {name: name for name in more}
    with np.load(path, allow_pickle=False) as arrays:
        lost = sorted(set(stored.values()) - set(arrays.files))
        if lost:
            raise ValueError(f"{path} lacks the arrays {lost}: download it again from {where}")
        return {name: arrays[place] for name, place in stored.items()}


def _consistent(data: LabelData, path: Path, where: str) -> LabelData:
    widths = (len(data.feature_names), len(data.label_names))
    if len(data.X) != len(data.Y) or (data.X.shape[1], data.Y.shape[1]) != widths or data.Y.max(initial=0) > 1:
        found = f"X is {data.X.shape}, Y is {data.Y.shape} for {widths[0]} features and {widths[1]} labels"
        raise ValueError(f"{path} is inconsistent: {found}, and Y must be 0 and 1. Get it from {where}.")
    return data
