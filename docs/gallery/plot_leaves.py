"""
Masks of pictures
=================

:class:`~maxmargin.ImageSegmenter` learns what the foreground looks like and how strongly neighbouring pixels hold
together. Weights of edges stay >= 0, so that every mask is one minimum cut, which is exact.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from maxmargin import ImageSegmenter
from maxmargin.datasets import load_leaves
from maxmargin.metrics import mean_iou

leaves = load_leaves()
segmenter = ImageSegmenter(C=10.0).fit(leaves.data[:14], leaves.target[:14])
images, masks = leaves.data[15:19], leaves.target[15:19]
found = segmenter.predict(images)
print(f"intersection over union {mean_iou(masks, found):.3f}, {segmenter.certificate_}")

# %%
# The last mask spills over to the left. A user says so with a stroke over the background, which takes a fraction of the
# time of a first mask: only what changes is cut again.

session = segmenter.interactive(images[3])
stroke = np.full(masks[3].shape, -1)  # -1: not touched; 0 and 1: known labels
stroke[11:15, 8] = 0
corrected = session.update(stroke)
wrong = [int((mask != masks[3]).sum()) for mask in (found[3], corrected)]
print(f"wrong pixels {wrong[0]}, with the stroke {wrong[1]}")

colours = ListedColormap(["#f1f5f1", "#1b6b3a", "#d1462f"])  # background, leaf, wrong
columns = zip([*images, images[3]], [*masks, masks[3]], [*found, corrected], strict=True)
figure, axes = plt.subplots(2, 5, figsize=(10, 4.3), layout="constrained")
for (above, below), (image, true, mask) in zip(axes.T, columns, strict=True):
    above.imshow(image)
    below.imshow(np.where(mask == true, mask, 2), cmap=colours, vmin=0, vmax=2)
    above.axis("off")
    below.axis("off")
axes[0, 4].plot([8, 8], [10.5, 14.5], color="white", linewidth=4)
axes[0, 4].set_title("with a stroke")
axes[1, 0].set_title("found; red pixels are wrong", fontsize=9)
