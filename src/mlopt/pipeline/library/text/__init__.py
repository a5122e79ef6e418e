"""Operators on documents, from text to sparse features."""

from mlopt.pipeline.library.text.features import (
    AllSparseFeatures,
    CommonSparseFeatures,
    HashingTF,
    TermFrequency,
    WordFrequencyEncoder,
)
from mlopt.pipeline.library.text.language_model import StupidBackoff
from mlopt.pipeline.library.text.words import LowerCase, NGrams, Tokenizer, Trim

__all__ = [
    "AllSparseFeatures",
    "CommonSparseFeatures",
    "HashingTF",
    "LowerCase",
    "NGrams",
    "StupidBackoff",
    "TermFrequency",
    "Tokenizer",
    "Trim",
    "WordFrequencyEncoder",
]
