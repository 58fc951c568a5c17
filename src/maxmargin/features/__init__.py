"""Features of text, dicts, images and regions; names load when they are first used."""

from maxmargin.lazy import lazy

_NAMES = {
    "extractor": "TextFeatures",
    "dicts": "DictFeatures",
    "images": "ImageFeatures",
    "sequences": "Sequences",
    "tokens": "Tokens",
    "template": "Template",
    "definition": "Transform",
    "window": "CharNGrams Ends Gazetteer Join Lower Prefix Shape Suffix Window",
    "alignment": "AlignmentFeatures",
    "regions": "region_graph region_labels region_sizes superpixels",
    "image_files": "read_image read_images read_masks read_scribbles",
    "choose": "default_words extractor_for",
}

__all__, __getattr__, __dir__ = lazy(__name__, _NAMES)
