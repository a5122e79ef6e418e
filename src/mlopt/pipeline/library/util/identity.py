"""The same rows, pinned, in another layout or type, or flat."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin

from mlopt.errors import InputError


class _AsGiven(TransformerMixin, BaseEstimator):
    """A transformer of rows of any type that learns nothing."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn nothing."""
        del X, y
        return self

    @abstractmethod
    def transform(self, X: Any) -> Any:
        """One row for each row of X."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        tags.input_tags.sparse = True
        return tags


class Identity(_AsGiven):
    """The rows as they are: arrays, frames, documents, images."""

    def transform(self, X: Any) -> Any:
        """X itself."""
        return X


class Cacher(Identity):
    """The rows as they are, kept in memory from their first use to their last.

    A planned pipeline chooses by itself what to keep; a `Cacher` overrides it for the rows
    that it is given, whatever the rules say (KeystoneML's `Cacher`). They count in
    ``memory_budget``. In a scikit-learn pipeline it does nothing.

    Raises
    ------
    InputError
        From the pipeline's ``fit``, when the rows take more than ``memory_budget``.
    """


class Densify(_AsGiven):
    """A dense array of sparse rows. Pipelines put one where a way of fitting needs it."""

    def transform(self, X: Any) -> Any:
        """An ndarray (n, d)."""
        return X.toarray() if sp.issparse(X) else np.asarray(X)


class Sparsify(_AsGiven):
    """CSR rows of dense ones, zeros left out."""

    def transform(self, X: Any) -> Any:
        """A csr_array (n, d)."""
        return sp.csr_array(X if sp.issparse(X) else np.asarray(X))


class FloatToDouble(_AsGiven):
    """Numbers in double precision, dense or sparse."""

    def transform(self, X: Any) -> Any:
        """The same shape in float64."""
        kept = X if sp.issparse(X) else np.asarray(X)
        return kept.astype(np.float64, copy=False)


class MatrixVectorizer(_AsGiven):
    """A matrix, or an array of any number of axes, a row: each flattened to one vector."""

    def transform(self, X: Any) -> Any:
        """Shape (n, product of the other axes), the last axis running fastest.

        Raises
        ------
        InputError
            When there are no other axes.
        """
        rows = np.asarray(X)
        if rows.ndim < 2:
            raise InputError(
                f"X must have an axis beside that of its rows, got shape {rows.shape}."
            )
        return rows.reshape(len(rows), int(np.prod(rows.shape[1:])))
