"""Descriptors of images, (n_images, m, d): the same number of each image, as rows.

Estimators of descriptors learn from all of them as rows of one matrix, whichever image
they are of, or from a sample of these rows.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from mlopt.errors import InputError
from mlopt.parameters import check_count
from mlopt.rows import Rows

Array = NDArray[Any]
FLOATS = (np.float64, np.float32)


class _OfDescriptors(TransformerMixin, BaseEstimator):
    """A transformer that learns from the descriptors of all images as rows."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from descriptors (n, m, d), or from rows (n, d).

        Raises
        ------
        InputError
            When there are too few rows, or a parameter is out of range.
        """
        del y
        return self.fit_rows(Rows.of(as_rows(self, X, reset=True)[0]))

    @abstractmethod
    def fit_rows(self, rows: Rows) -> Self:
        """`fit`, on blocks of rows (n m, d) that are finite."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def as_rows(estimator: Any, X: Any, *, reset: bool) -> tuple[Array, tuple[int, ...]]:
    """Descriptors as one matrix (n * m, d), and the shape (n, m) that its rows came in.

    Parameters
    ----------
    estimator : BaseEstimator
        Learns how many columns there are if ``reset``, and else checks them.
    X : array-like of shape (n, d) or (n, m, d)

    Raises
    ------
    ValueError
        When X is not finite, has no rows, or has other columns than before.
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    shape = tuple(X.shape)
    if len(shape) != 3:
        rows = validate_data(estimator, X, dtype=FLOATS, reset=reset)
        return rows, (len(rows),)
    flat = np.asarray(X).reshape(-1, shape[2])
    return validate_data(estimator, flat, dtype=FLOATS, reset=reset), shape[:2]


def as_descriptors(estimator: Any, X: Any, *, reset: bool) -> Array:
    """Descriptors of images, (n, m, d), checked as by `as_rows`.

    Raises
    ------
    InputError
        When X has another number of axes.
    """
    rows, shape = as_rows(estimator, _three(X), reset=reset)
    return np.reshape(rows, (*shape, rows.shape[1]))


def _three(X: Any) -> Any:
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 3:
        raise InputError(
            "X must hold the descriptors of each image, shape (n_images, m, d), got "
            f"{tuple(X.shape)}. `SIFT`, `LCS` and `Daisy` give them."
        )
    return X


def sample_rows(rows: Rows, most: Any, random_state: Any) -> Array:
    """So many rows at random and without repeats, in their order; all if there are fewer.

    Which ones depends on the number of rows and the seed alone, not on the blocks.

    Parameters
    ----------
    rows : Rows
    most : int
        The parameter ``n_samples``.
    random_state : int, RandomState or None
    """
    most = check_count("n_samples", most)
    if rows.sparse:
        raise InputError("Descriptors must be dense: convert them with `toarray()`.")
    return np.asarray(rows.take(some_of(rows.n, most, check_random_state(random_state))))


def some_of(n: int, most: int, random: np.random.RandomState) -> NDArray[np.intp]:
    """Numbers of so many of ``n`` rows, drawn without repeats, in order; or all."""
    if n <= most:
        return np.arange(n)
    return np.sort(random.choice(n, most, replace=False))
