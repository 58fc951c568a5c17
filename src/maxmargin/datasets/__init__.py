"""Small datasets that ship with the package, loaders of public ones, and generators with known answers.

Names load when they are first used.
"""

from maxmargin.lazy import lazy

_NAMES = {
    "arff": "read_arff",
    "bitext": "Alignments load_hansards read_bitext read_links write_links",
    "columns": "ColumnTable iter_conllu iter_sentences read_column_table read_columns",
    "conll2000": "load_conll2000",
    "digit_words": "DigitWords make_digit_words",
    "folder": "data_home require",
    "label_benchmarks": "load_cellcycle load_enron load_imclef07a load_rcv1 load_scene load_yeast",
    "label_csv": "read_label_csv",
    "label_data": "LabelData",
    "lattice": "Lattice",
    "lattice_files": "NBestLists read_nbest read_plf",
    "libsvm": "read_libsvm",
    "links": "Links",
    "ocr_letters": "OcrLetters load_ocr_letters",
    "small": "load_bitext load_garden load_houses load_leaves load_nbest load_recipes load_sentences",
    "synthetic": "Chains Multiclass make_chains make_multiclass",
}

__all__, __getattr__, __dir__ = lazy(__name__, _NAMES)
