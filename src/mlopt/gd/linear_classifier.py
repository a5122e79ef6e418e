"""What linear classifiers share: classes and their weights, decisions, predictions.

Shapes: ``n`` rows, ``d`` features, ``K`` classes. Two classes have one plane, more have
one each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mlopt.errors import InputError
from mlopt.gd.estimator_base import apply
from mlopt.gd.explained import Explained
from mlopt.gd.plans.running import Outcome
from mlopt.gd.plans.task import Problem

Array = NDArray[Any]


class LinearClassifier(Explained, ClassifierMixin, BaseEstimator):
    """Decides from ``classes_`` (K,), ``coef_`` (planes, d), ``intercept_`` (planes,)."""

    class_weight: Any
    tol: float
    classes_: Array
    coef_: Array
    intercept_: Array

    def decision_function(self, X: Any) -> Any:
        """Signed distance, up to a factor, from the plane of each class.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)

        Returns
        -------
        ndarray or lazy dask array of shape (n,) for two classes, else (n, K)
        """
        check_is_fitted(self)
        planes = self.coef_.shape[0]
        columns = planes if planes > 1 else None
        return self._apply(decide, X, columns, self.coef_.dtype)

    def predict(self, X: Any) -> Any:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)

        Returns
        -------
        ndarray or lazy dask array of shape (n,)
        """
        check_is_fitted(self)
        function = partial(_labels, classes=self.classes_)
        return self._apply(function, X, None, self.classes_.dtype)

    def _learn(self, given: Problem, outcome: Outcome) -> tuple[str, ...]:
        self.coef_ = np.ascontiguousarray(outcome.coef, given.rows.dtype)
        self.intercept_ = outcome.intercept.astype(given.rows.dtype)
        *left, last = outcome.methods
        then = f" by {' and '.join(left)}, and then {last}" if left else ""
        return (f"took {outcome.passes} passes{then}",)

    def _what_lacks(self, outcome: Outcome, limit: int) -> str:
        return (
            f"{outcome.methods[-1]} failed to converge: {type(self).__name__} did not "
            f"reach `tol`={self.tol} in {outcome.passes} passes. Scale the features, or "
            f"increase `max_iter` ({limit}) or `tol`."
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = False
        return tags

    def _apply(
        self, function: Callable[..., Array], X: Any, columns: int | None, dtype: Any
    ) -> Any:
        rowwise = partial(function, coef=self.coef_, intercept=self.intercept_)
        return apply(self, X, rowwise, columns, dtype)

    def _encode(self, y: Any, weights: NDArray[np.float64]) -> NDArray[np.intp]:
        """Set ``classes_`` and return the code 0 ... K-1 of every row.

        Raises
        ------
        InputError
            Unless two classes at least have rows of positive weight.
        """
        self.classes_, codes = encode(self, y, weights)
        return codes

    def _class_weights(
        self, codes: NDArray[np.intp], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """What ``class_weight`` says of each class, shape (K,)."""
        found = compute_class_weight(
            self.class_weight,
            classes=self.classes_,
            y=self.classes_[codes],
            sample_weight=weights,
        )
        return np.asarray(found, np.float64)


def encode(
    estimator: Any, y: Any, weights: NDArray[np.float64]
) -> tuple[Array, NDArray[np.intp]]:
    """The classes (K,) in order, and the code of each row, (n,).

    Raises
    ------
    InputError
        Unless two classes at least have rows of positive weight; it names ``estimator``.
    """
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    present = np.unique(codes[weights > 0])
    if len(present) < 2:
        raise InputError(
            f"{type(estimator).__name__} needs rows of at least two classes in y, got one "
            f"class of positive weight: {classes[present].tolist()}."
        )
    return classes, np.asarray(codes, np.intp)


def winners(scores: Array, classes: Array) -> Array:
    """The class of the largest score; by the sign of (n,) or (n, 1), those of two."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        return np.asarray(classes[(scores.ravel() > 0).astype(np.intp)])
    return np.asarray(classes[scores.argmax(axis=1)])


def decide(X: Any, coef: Array, intercept: Array) -> Array:
    """Margins of shape (n,) for one plane, else (n, K)."""
    # Sparsified coefficients of sparse rows would give sparse margins.
    margins = np.asarray(safe_sparse_dot(X, coef.T, dense_output=True) + intercept)
    return margins[:, 0] if margins.shape[1] == 1 else margins


def _labels(X: Any, coef: Array, intercept: Array, classes: Array) -> Array:
    return winners(decide(X, coef, intercept), classes)
