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
from sklearn.utils.validation import check_is_fitted

from mlopt.gd.class_codes import encode, winners
from mlopt.gd.estimator_base import apply
from mlopt.gd.explained import Explained

Array = NDArray[Any]


class LinearClassifier(Explained, ClassifierMixin, BaseEstimator):
    """Decides from ``classes_`` (K,), ``coef_`` (planes, d), ``intercept_`` (planes,)."""

    class_weight: Any
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


def decide(X: Any, coef: Array, intercept: Array) -> Array:
    """Margins of shape (n,) for one plane, else (n, K)."""
    # Sparsified coefficients of sparse rows would give sparse margins.
    margins = np.asarray(safe_sparse_dot(X, coef.T, dense_output=True) + intercept)
    return margins[:, 0] if margins.shape[1] == 1 else margins


def _labels(X: Any, coef: Array, intercept: Array, classes: Array) -> Array:
    return winners(decide(X, coef, intercept), classes)
