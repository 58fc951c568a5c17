"""Binary masks of images and volumes: a pairwise model on a grid whose argmax is a minimum cut.

    w . phi(x, y) = sum_p y_p w_node . x_p  -  sum_{neighbours p, q} (w_edge . e_pq) [y_p != y_q]

with edge features e_pq >= 0. A cut finds the best mask when also w_edge >= 0: train with ``positive`` set for the edge
weights (:meth:`GridLayout.positive`), as :class:`~maxmargin.estimators.image_segmenter.ImageSegmenter` does.

Greig, Porteous, Seheult (1989), Exact maximum a posteriori estimation for binary images.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.door import copy_codes, copy_numbers, first_place, numbers, refuse_not_finite
from maxmargin.inference.min_cut import NEIGHBOURS, directions, workspace_sizes
from maxmargin.models.base import CompiledModel, laid_out, least_positive, offsets_of
from maxmargin.models.labels import check_count
from maxmargin.models.layout_state import StateReader, StorableLayout, facts_of
from maxmargin.parameters import Parameters

__all__ = ["IGNORE", "Grid", "GridBound", "GridLayout"]

IGNORE = 255
Arrays = list[np.ndarray]
Shapes = Sequence[tuple[int, ...]]
COSTS = ("hamming", "balanced", "balanced_image")


@dataclass(frozen=True)
class GridLayout(StorableLayout):
    """Where each weight lives, node features first, and what a wrong pixel costs."""

    neighbours: int
    n_node: int
    n_edge: int
    class_cost: tuple[float, float]
    by_image: bool
    boundary: float
    width: float
    normalize: bool

    @property
    def n_weights(self) -> int:
        return self.n_node + self.n_edge

    def groups(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """``node`` (F,) and ``edge`` (G,) weights."""
        return {"node": w[: self.n_node], "edge": w[self.n_node : self.n_weights]}

    def positive(self) -> np.ndarray:
        """Mask of the weights that must be >= 0: those of the edges."""
        return np.arange(self.n_weights) >= self.n_node

    def output(self, codes: np.ndarray) -> np.ndarray:
        """Mask of a decoded image, flat in C order."""
        return codes.copy()

    def pixel_costs(self, mask: np.ndarray) -> np.ndarray:
        """Cost of a wrong label at each pixel of a true mask; 0 where it is ignored.

        Formula: ``c_p = class_cost[y_p] (1 + boundary exp(-d_p^2 / (2 width^2)))``, with d_p the distance to the
        nearest pixel of the other label, less one; divided by the number of pixels that count when ``normalize``.
        """
        used = mask != IGNORE
        inside = mask == 1
        counts = np.array([np.count_nonzero(used & ~inside), np.count_nonzero(inside)])
        total = int(counts.sum())
        classes = total / (2.0 * np.maximum(counts, 1)) if self.by_image else np.asarray(self.class_cost)
        costs = np.where(used, np.where(inside, classes[1], classes[0]), 0.0)
        if self.boundary and counts.all():
            from scipy.ndimage import distance_transform_edt as distance

            nearest = np.where(inside, distance(mask != 0), distance(mask != 1)) - 1.0
            costs *= 1.0 + self.boundary * np.exp(-0.5 * (nearest / self.width) ** 2)
        return costs / max(total, 1) if self.normalize else costs

    def cost(self, y_true: np.ndarray, y: np.ndarray) -> float:
        """Cost of a mask where another is true."""
        y_true = np.asarray(y_true)
        return float(self.pixel_costs(y_true)[y_true != np.reshape(y, y_true.shape)].sum())

    def to_state(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        return facts_of(self, class_cost=[float(cost) for cost in self.class_cost]), {}

    @classmethod
    def from_state(cls, facts: Mapping[str, object], tensors: Mapping[str, np.ndarray]) -> GridLayout:
        state = StateReader(facts, tensors)
        state.choice("neighbours", [n for kinds in NEIGHBOURS.values() for n in kinds])
        class_cost = state.pair("class_cost", ("of background", "of foreground"))
        return cls(**state.announced(cls, class_cost=class_cost, width=state.number("width", 1e-6)))

    def check_weights(self, w: np.ndarray) -> None:
        """Refuse weights with which a minimum cut does not give the best mask."""
        super().check_weights(w)
        if (self.groups(w)["edge"] < 0).any():
            raise ValueError("some weights of edges are negative; a minimum cut needs them >= 0")


@dataclass(frozen=True, kw_only=True)
class GridBound(CompiledModel):
    """The grid model bound to n images."""

    layout: GridLayout
    shapes: Shapes

    def energy(self, w: np.ndarray, example: int) -> tuple[np.ndarray, np.ndarray]:
        """What label 1 costs more than label 0 at each pixel, (*shape), and the capacities, (directions, *shape)."""
        from maxmargin.models import grid_kernel as gk

        F, G, J = self.layout.n_node, self.layout.n_edge, self.layout.neighbours // 2
        start, n, shape = self.output_at[example], np.diff(self.output_at)[example], self.shapes[example]
        nodes = self.floats[self.meta[gk.AT_NODES] + start * F :][: n * F].reshape(*shape, F)
        edges = self.floats[self.meta[gk.AT_EDGES] + start * J * G :][: n * J * G].reshape(J, *shape, G)
        return -(nodes @ w[:F]), edges @ np.maximum(w[F : F + G], 0.0)

    def holding(self, first: int, last: int) -> tuple[GridBound, int]:
        """The model bound to the images from ``first`` to ``last`` (exclusive), numbered from 0; the 0.

        Scratch sizes stay those of all images.
        """
        from maxmargin.models import grid_kernel as gk

        F, E, starts = self.layout.n_node, self.layout.neighbours // 2 * self.layout.n_edge, self.output_at
        own, n = slice(int(starts[first]), int(starts[last])), int(starts[last] - starts[first])
        nodes, edges, costs = np.split(self.floats, self.meta[[gk.AT_EDGES, gk.AT_COSTS]])
        shapes, labels = self.ints[: 3 * self.n_examples], self.ints[self.meta[gk.AT_LABELS] :]
        kept = {gk.AT_SHAPES: shapes[3 * first : 3 * last], gk.AT_STARTS: starts[first : last + 1] - starts[first]}
        meta = self.meta.copy()
        meta[[gk.AT_NODES, gk.AT_EDGES, gk.AT_COSTS]] = 0, n * F, n * (F + E)
        part = replace(
            self,
            n_examples=last - first,
            ints=laid_out(kept | {gk.AT_LABELS: labels[own]}, meta, np.int32),
            floats=np.concatenate(
                [nodes[own.start * F : own.stop * F], edges[own.start * E : own.stop * E], costs[own]]
            ),
            meta=meta,
            output_at=kept[gk.AT_STARTS],
            shapes=self.shapes[first:last],
            least_cost=self.least_cost[first:last],
        )
        return part, 0

    @property
    def needs_positive(self) -> np.ndarray:
        """The weights of edges: labels that attract each other are one cut."""
        return self.layout.positive()

    def with_truth(self, masks: Sequence[np.ndarray]) -> GridBound:
        """The same images and costs with other true masks of 0 and 1; ignored pixels stay ignored."""
        from maxmargin.models.grid_kernel import AT_LABELS

        flat = np.concatenate([np.ravel(mask) for mask in masks]).astype(np.int32)
        return replace(self, ints=np.concatenate([self.ints[: self.meta[AT_LABELS]], flat]))

    def with_costs(self, back: float, front: float) -> GridBound:
        """The same images with wrong pixels of true background and foreground costing so many times as much."""
        from maxmargin.models import grid_kernel as gk

        floats, at, labels = self.floats.copy(), self.meta[gk.AT_COSTS], self.ints[self.meta[gk.AT_LABELS] :]
        floats[at:] *= np.where(labels[: len(floats) - at] == 1, front, back)
        pair = (self.layout.class_cost[0] * back, self.layout.class_cost[1] * front)
        return replace(self, layout=replace(self.layout, class_cost=pair), floats=floats)

    def with_fixed(self, fixed: Sequence[np.ndarray]) -> GridBound:
        """The same images without a truth, some labels fixed to 0 or 1, -1 elsewhere."""
        from maxmargin.models import grid_kernel as gk

        meta = self.meta.copy()
        meta[[gk.HAS_LABELS, gk.HAS_FIXED]] = False, True
        return replace(self.with_truth(fixed), meta=meta)


def sure_labels(mask: np.ndarray, tolerance: float) -> np.ndarray:
    """A mask of 0 and 1 with -1 for pixels at most ``tolerance`` from the other label, and for those ignored."""
    from scipy.ndimage import distance_transform_edt as distance

    mask = np.asarray(mask)
    known = np.where(mask == IGNORE, -1, mask.astype(np.int32))
    if (mask == 0).any() and (mask == 1).any():
        known[np.where(mask == 1, distance(mask != 0), distance(mask != 1)) <= tolerance] = -1
    return known


@dataclass(repr=False, eq=False)
class Grid(Parameters):
    """A label 0 or 1 for every pixel or voxel.

    Parameters
    ----------
    neighbours : {4, 8, 6, 18, 26}
        4 or 8 for images, the others for volumes.
    cost : {"hamming", "balanced", "balanced_image"} or pair of float
        What wrong pixels cost: 1 each, or so much that both labels together cost the same, over all masks or in each;
        or what a wrong pixel of background and of foreground costs.
    boundary : float
        Pixels next to the true boundary cost ``1 + boundary`` times as much.
    width : float
        How far that reaches, in pixels.
    normalize : bool
        Divide the cost of an image by its number of pixels.
    """

    neighbours: int = 4
    _: KW_ONLY
    cost: str | tuple[float, float] = "hamming"
    boundary: float = 0.0
    width: float = 3.0
    normalize: bool = False

    def bind(
        self,
        X: Iterable[object],
        Y: Iterable[ArrayLike] | None = None,
        *,
        layout: GridLayout | None = None,
        pixel_cost: Iterable[ArrayLike] | None = None,
        fixed: Iterable[ArrayLike] | None = None,
    ) -> GridBound:
        """Pack images (and their masks) for the kernel.

        Parameters
        ----------
        X : list of n mappings
            ``"node"``: array (height, width, F) or (depth, height, width, F). ``"edge"``, optional: array
            (neighbours / 2, height, width, G) >= 0, for each pixel and its neighbour in each of
            :func:`~maxmargin.inference.min_cut.directions`. Sizes may differ.
        Y : list of n masks, optional
            0, 1, or 255 for pixels to be left out: they and their edges count for nothing in training.
        layout : GridLayout of the training data, for further data
        pixel_cost : list of n arrays, optional
            Multiplies the cost of each pixel.
        fixed : list of n masks, optional
            For prediction: 0 and 1 where the label is known, -1 elsewhere.
        """
        nodes, edges = _checked_features(X, self.neighbours)
        shapes = [node.shape[:-1] for node in nodes]
        if Y is not None and fixed is not None:
            raise ValueError("fixed labels are for prediction; leave Y out.")
        masks = None if Y is None else _checked_masks(Y, shapes, (0, 1, IGNORE), "mask")
        known = None if fixed is None else _checked_masks(fixed, shapes, (-1, 0, 1), "fixed mask")
        if layout is None:
            if masks is None:
                raise ValueError("masks are needed to learn the layout of a grid model; pass Y.")
            layout = self._layout(nodes, edges, masks)
        for i, (node, edge) in enumerate(zip(nodes, edges, strict=True)):
            if (node.shape[-1], edge.shape[-1]) != (layout.n_node, layout.n_edge):
                what = f"image {i} has {node.shape[-1]} node and {edge.shape[-1]} edge features"
                raise ValueError(f"{what}; the others, or the training data, have {layout.n_node} and {layout.n_edge}.")
        costs = None if masks is None else [layout.pixel_costs(mask) for mask in masks]
        if costs is not None and pixel_cost is not None:
            costs = [c * given for c, given in zip(costs, _checked_costs(pixel_cost, shapes), strict=True)]
        return _pack(layout, nodes, edges, masks, known, costs)

    def _layout(self, nodes: Arrays, edges: Arrays, masks: Arrays) -> GridLayout:
        costs = (1.0, 1.0) if isinstance(self.cost, str) else tuple(self.cost)
        pair = len(costs) == 2 and all(isinstance(c, (int, float)) and 0 < c < np.inf for c in costs)
        if not pair or (isinstance(self.cost, str) and self.cost not in COSTS):
            raise ValueError(f"cost must be one of {', '.join(COSTS)}, or two positive numbers; got {self.cost!r}.")
        for name, value, least in (("boundary", self.boundary, 0.0), ("width", self.width, 1e-6)):
            if not (np.isfinite(value) and value >= least):
                raise ValueError(f"{name} is {value}; give a finite number >= {least:g}.")
        ones = sum(np.count_nonzero(mask == 1) for mask in masks)
        zeros = sum(np.count_nonzero(mask == 0) for mask in masks)
        if ones == 0:
            raise ValueError("no mask has any foreground (label 1), so there is nothing to learn; check the masks.")
        balanced = self.cost == "balanced"
        both = ((ones + zeros) / (2 * max(zeros, 1)), (ones + zeros) / (2 * ones))
        return GridLayout(
            neighbours=self.neighbours,
            n_node=nodes[0].shape[-1],
            n_edge=edges[0].shape[-1],
            class_cost=both if balanced else (float(costs[0]), float(costs[1])),
            by_image=self.cost == "balanced_image",
            boundary=float(self.boundary),
            width=float(self.width),
            normalize=bool(self.normalize),
        )


def _checked_features(X: Iterable[object], neighbours: int) -> tuple[Arrays, Arrays]:
    """Node features (*shape, F) and edge features (directions, *shape, G) of each image; the copy checks values."""
    J = len(directions(neighbours))
    axes = ("height", "width") if neighbours in NEIGHBOURS[2] else ("depth", "height", "width")
    nodes, edges = [], []
    for i, x in enumerate(X):
        if not isinstance(x, Mapping) or "node" not in x or set(x) - {"node", "edge"}:
            raise ValueError(f"image {i} must be a mapping with the keys 'node' and, if wanted, 'edge'.")
        node = np.asarray(x["node"])
        if node.ndim != len(axes) + 1 or node.size == 0 or node.dtype.kind not in "fiub":
            what = f"the node features of image {i} are {node.dtype} of shape {node.shape}"
            raise ValueError(f"{what}; with {neighbours} neighbours give numbers of shape ({', '.join(axes)}, F).")
        shape = node.shape[:-1]
        edge = np.zeros((J, *shape, 0)) if x.get("edge") is None else np.asarray(x["edge"])
        if edge.shape[:-1] != (J, *shape) or edge.dtype.kind not in "fiub":
            what = f"the edge features of image {i} have shape {edge.shape} and dtype {edge.dtype}"
            raise ValueError(f"{what}; give numbers of shape {(J, *shape, 'G')}.")
        nodes.append(node)
        edges.append(edge)
    if not nodes:
        raise ValueError("there are no images; give at least one.")
    return nodes, edges


def _of_images(arrays: Iterable[ArrayLike], shapes: Shapes, name: str) -> Arrays:
    """Arrays of the shapes of the images, one for each."""
    if not isinstance(arrays, Iterable):
        raise TypeError(f"the {name}s are {arrays!r:.80}; give a list with one for each image.")
    found = list(map(np.asarray, arrays))
    if len(found) != len(shapes):
        raise ValueError(f"there are {len(shapes)} images and {len(found)} {name}s; give one for each image.")
    for i, (array, shape) in enumerate(zip(found, shapes, strict=True)):
        if array.shape != shape:
            raise ValueError(f"the {name} of image {i} has shape {array.shape}; the image has {shape}.")
    return found


def _checked_masks(Y: Iterable[ArrayLike], shapes: Shapes, allowed: tuple[int, int, int], name: str) -> Arrays:
    masks, ends = _of_images(Y, shapes, name), offsets_of([int(np.prod(shape)) for shape in shapes])
    codes = np.empty(ends[-1], np.int32)
    strange = copy_codes(masks, codes, allowed)
    if strange >= 0:
        i = int(np.searchsorted(ends, strange, side="right")) - 1
        label = masks[i].reshape(-1)[strange - ends[i]]
        known, hint = ", ".join(map(str, allowed)), " Use GraphLabeler for more labels." if name == "mask" else ""
        raise ValueError(f"the {name} of image {i} has the label {label}; labels must be among {known}.{hint}")
    return [codes[a:b].reshape(shape) for (a, b), shape in zip(pairwise(ends), shapes, strict=True)]


def _checked_costs(costs: Iterable[ArrayLike], shapes: Shapes) -> Arrays:
    given = _of_images(costs, shapes, "array of pixel costs")
    arrays = [numbers(array, f"the pixel costs of image {i}") for i, array in enumerate(given)]
    for i, array in enumerate(arrays):
        if not (np.isfinite(array).all() and array.min() >= 0):
            raise ValueError(f"the pixel costs of image {i} must be finite numbers >= 0.")
    return arrays


def _copy_features(nodes: Arrays, edges: Arrays, floats: np.ndarray) -> None:
    """Copy all node features, then all edge features, or say what is wrong with them."""
    middle = sum(node.size for node in nodes)
    if copy_numbers(nodes, floats[:middle]) < 0 and copy_numbers(edges, floats[middle:], least=0.0) < 0:
        return
    for i, (node, edge) in enumerate(zip(nodes, edges, strict=True)):
        for name, array in (("node", node), ("edge", edge)):
            refuse_not_finite(array, f"image {i} has NaN or infinite {name} features")
        if (edge < 0).any():
            where = first_place(edge < 0)
            what = f"image {i} has negative edge features, first {edge[where]} at {where}; a cut needs them >= 0"
            raise ValueError(f"{what}. Shift them, or use two features, max(e, 0) and max(-e, 0).")
    raise ValueError("the features of the images changed while they were copied; give arrays that nobody writes to.")


def _pack(
    layout: GridLayout, nodes: Arrays, edges: Arrays, masks: Arrays | None, known: Arrays | None, costs: Arrays | None
) -> GridBound:
    from maxmargin.models import grid_kernel as gk

    shapes = [node.shape[:-1] for node in nodes]
    sizes = np.array([int(np.prod(shape)) for shape in shapes])
    starts = offsets_of(sizes)
    F, G, J, total = layout.n_node, layout.n_edge, layout.neighbours // 2, int(starts[-1])
    check_count(total, "pixels", "there are", "bind the images in parts")
    labels = masks if masks is not None else known
    floats = np.empty(total * (F + J * G) + (0 if costs is None else total))
    _copy_features(nodes, edges, floats)
    for i, (node, edge) in enumerate(zip(nodes, edges, strict=True)):
        here = floats[starts[i] * F : starts[i + 1] * F].reshape(node.shape)
        there = floats[total * F :][starts[i] * J * G : starts[i + 1] * J * G].reshape(edge.shape)
        ignored = np.zeros(shapes[i], bool) if masks is None else masks[i] == IGNORE
        _drop(here, there, ignored, layout.neighbours)
    if costs is not None:
        floats[total * (F + J * G) :] = np.concatenate([c.ravel() for c in costs])
    flat = [np.where(mask == IGNORE, 0, mask).ravel() for mask in labels] if labels is not None else []
    ints = {gk.AT_SHAPES: np.array([(1, *shape)[-3:] for shape in shapes]), gk.AT_STARTS: starts}
    ints[gk.AT_LABELS] = np.concatenate([np.empty(0, np.int32), *flat])
    meta = np.zeros(gk.META_SIZE, np.int64)
    meta[[gk.N_NODE, gk.N_EDGE, gk.NEIGHBOURS]] = F, G, layout.neighbours
    meta[[gk.HAS_LABELS, gk.HAS_FIXED]] = masks is not None, known is not None
    meta[[gk.AT_NODES, gk.AT_EDGES, gk.AT_COSTS]] = 0, total * F, total * (F + J * G)
    scratch = np.array([workspace_sizes(shape, layout.neighbours) for shape in set(shapes)]).max(axis=0)
    return GridBound(
        n_examples=len(nodes),
        layout=layout,
        capabilities=frozenset({"parts"}),  # exact while no edge weight is negative
        plane=gk.grid_plane,
        meta=meta,
        ints=laid_out(ints, meta, np.int32),
        floats=floats,
        room=F + G + 1,  # one more for the extra column of squared slacks
        iwork_size=int(scratch[0]),
        fwork_size=F + 2 * G + (1 + J) * int(sizes.max()) + int(scratch[1]),
        output_at=starts,
        shapes=shapes,
        least_cost=np.array([least_positive(c) for c in costs or ()]),
    )


def _ends(step: np.ndarray, shape: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Where edges in one direction begin and where they end, as two slices of the same size."""
    first = tuple(slice(max(0, -s), n - max(0, s)) for s, n in zip(step, shape, strict=True))
    second = tuple(slice(max(0, s), n - max(0, -s)) for s, n in zip(step, shape, strict=True))
    return first, second


def _drop(nodes: np.ndarray, edges: np.ndarray, ignored: np.ndarray, neighbours: int) -> None:
    """Ignored pixels count for nothing, nor do the edges at either side of them, nor edges that leave the grid."""
    nodes[ignored] = 0.0
    for edge, step in zip(edges, directions(neighbours), strict=True):
        first, second = _ends(step, ignored.shape)
        dropped = np.ones(ignored.shape, bool)
        dropped[first] = ignored[first] | ignored[second]
        edge[dropped] = 0.0
