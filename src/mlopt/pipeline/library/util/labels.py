"""Labels as numbers for a regression, and its scores as labels again.

Shapes: n rows, K classes; labels (n,), indicators and scores (n, K).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mlopt.errors import InputError
from mlopt.parameters import check_count

Array = NDArray[Any]


class ClassLabelIndicators(TransformerMixin, BaseEstimator):
    """+1 in the columns of a row's classes, -1 in the others: targets of least squares.

    Rows have one class each, or several: then y is a list of lists. With ``classes`` given,
    blocks of y may be transformed one by one.

    Parameters
    ----------
    classes : array-like of shape (K,), optional
        In the order of the columns; those in y, sorted, by default.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    """

    def __init__(self, classes: Any = None) -> None:
        self.classes = classes

    def fit(self, X: Any, y: Any = None) -> ClassLabelIndicators:
        """Find the classes in X, which are labels (n,) or a list of lists of labels."""
        del y
        _, labels = _flat(X)
        self.classes_ = np.unique(labels) if self.classes is None else _plain(self.classes)
        if len(np.unique(self.classes_)) != len(self.classes_):
            raise InputError(f"`classes` must differ, got {self.classes_.tolist()}.")
        return self

    def transform(self, X: Any) -> Array:
        """Indicators (n, K), float64.

        Raises
        ------
        InputError
            When a label is no class.
        """
        check_is_fitted(self)
        rows, labels = _flat(X)
        order = np.argsort(self.classes_)
        known = self.classes_[order]
        at = np.minimum(np.searchsorted(known, labels), len(known) - 1)
        strange = known[at] != labels
        if strange.any():
            raise InputError(
                f"Labels must be among {self.classes_.tolist()}, got "
                f"{np.unique(labels[strange]).tolist()}."
            )
        out = np.full((len(X), len(known)), -1.0)
        out[rows, order[at]] = 1.0
        return out

    def inverse_transform(self, X: Any) -> Array:
        """The class of the largest score of each row, (n,)."""
        check_is_fitted(self)
        return MaxClassifier(self.classes_).transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


class _OfScores(TransformerMixin, BaseEstimator):
    """A function of each row of scores; usable without `fit`."""

    classes: Any

    def fit(self, X: Any, y: Any = None) -> Any:
        """Look at the number of columns."""
        del y
        self._named(validate_data(self, X))
        return self

    def transform(self, X: Any) -> Array:
        """Labels; numbers of columns where no ``classes`` are given."""
        scores = validate_data(self, X, reset=False)
        return self._named(scores)[self._columns(scores)]

    @abstractmethod
    def _columns(self, scores: Array) -> Array:
        """Numbers of columns, a row for each row of scores."""

    def _named(self, scores: Array) -> Array:
        if self.classes is None:
            return np.arange(scores.shape[1])
        names = _plain(self.classes)
        if len(names) != scores.shape[1]:
            raise InputError(
                f"X must have a column of scores for each of {len(names)} `classes`, got "
                f"{scores.shape[1]}."
            )
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = []
        return tags


class MaxClassifier(_OfScores):
    """The class of the largest score, (n,); of equal ones the first.

    Parameters
    ----------
    classes : array-like of shape (K,), optional
        Names of the columns; their numbers by default.
    """

    def __init__(self, classes: Any = None) -> None:
        self.classes = classes

    def _columns(self, scores: Array) -> Array:
        return np.asarray(scores.argmax(axis=1))


class TopK(_OfScores):
    """The classes of the k largest scores, (n, k), the largest first.

    Parameters
    ----------
    k : int, default=5
        At most K.
    classes : array-like of shape (K,), optional
        Names of the columns; their numbers by default.
    """

    def __init__(self, k: int = 5, classes: Any = None) -> None:
        self.k = k
        self.classes = classes

    def _columns(self, scores: Array) -> Array:
        columns = scores.shape[1]
        if check_count("k", self.k) > columns:
            raise InputError(f"`k` must lie in 1 ... {columns}, got {self.k}.")
        # Not by negatives, which unsigned numbers have not; of equal ones the first.
        ascending = np.argsort(scores[:, ::-1], axis=1, kind="stable")
        return np.asarray(columns - 1 - ascending[:, ::-1][:, : self.k])


def _flat(y: Any) -> tuple[Array, Array]:
    """Every label with the number of its row."""
    if len(y) and all(isinstance(of, list | tuple | set | frozenset) for of in y):
        counts = [len(of) for of in y]
        return np.repeat(np.arange(len(y)), counts), _plain([one for of in y for one in of])
    labels = _plain(y)
    return np.arange(len(labels)), labels


def _plain(labels: Iterable[Any]) -> Array:
    found = np.asarray(labels)
    if found.ndim != 1:
        raise InputError(f"Labels must have shape (n,), got {found.shape}.")
    return found
