"""Loaders of public datasets, and generators with known answers."""

from maxmargin.datasets.columns import ColumnTable, iter_conllu, iter_sentences, read_column_table, read_columns
from maxmargin.datasets.conll2000 import load_conll2000
from maxmargin.datasets.digit_words import DigitWords, make_digit_words
from maxmargin.datasets.folder import data_home, require
from maxmargin.datasets.ocr_letters import OcrLetters, load_ocr_letters
from maxmargin.datasets.synthetic import Chains, Multiclass, make_chains, make_multiclass

__all__ = [
    "Chains", "ColumnTable", "DigitWords", "Multiclass", "OcrLetters", "data_home", "iter_conllu", "iter_sentences",
    "load_conll2000", "load_ocr_letters", "make_chains", "make_digit_words", "make_multiclass", "read_column_table",
    "read_columns", "require",
]  # fmt: skip
