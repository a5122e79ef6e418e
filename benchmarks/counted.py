"""Transformers that note their fits in a file, so that worker processes count too."""

from __future__ import annotations

import os
from pathlib import Path

from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

COUNTS = "MLOPT_COUNTS"
"""Environment variable with the path of the file: a line a fit, its name and rows."""


def note(name, X):
    """One line; appended at once, so that no two fits write over each other."""
    if path := os.environ.get(COUNTS):
        with Path(path).open("a") as file:
            file.write(f"{name} {X.shape[0]}\n")


class CountedScaler(StandardScaler):
    """StandardScaler that counts its fits."""

    def fit(self, X, y=None, sample_weight=None):
        note("scale", X)
        return super().fit(X, y, sample_weight)


class CountedPCA(PCA):
    """PCA that counts its fits."""

    def fit(self, X, y=None):
        note("pca", X)
        return super().fit(X, y)

    def fit_transform(self, X, y=None):
        note("pca", X)
        return super().fit_transform(X, y)
