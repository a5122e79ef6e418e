"""Operators that arrange rows, columns and labels, and learn next to nothing."""

from mlopt.pipeline.library.util.columns import VectorCombiner, VectorSplitter
from mlopt.pipeline.library.util.identity import (
    Cacher,
    Densify,
    FloatToDouble,
    Identity,
    MatrixVectorizer,
    Sparsify,
)
from mlopt.pipeline.library.util.labels import ClassLabelIndicators, MaxClassifier, TopK
from mlopt.pipeline.library.util.shuffling import Shuffler

__all__ = [
    "Cacher",
    "ClassLabelIndicators",
    "Densify",
    "FloatToDouble",
    "Identity",
    "MatrixVectorizer",
    "MaxClassifier",
    "Shuffler",
    "Sparsify",
    "TopK",
    "VectorCombiner",
    "VectorSplitter",
]
