"""What linear regressors share: prediction, for one target or several, here or on Dask."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mlopt.gd.estimator_base import apply


class LinearRegressor(BaseEstimator):
    """Predicts from ``coef_`` of shape (d,) or (T, d) and ``intercept_``."""

    coef_: NDArray[Any]
    intercept_: Any

    def predict(self, X: Any) -> Any:
        """Predict the targets.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)

        Returns
        -------
        ndarray or lazy dask array of shape (n,) or (n, T)
        """
        check_is_fitted(self)
        columns = len(self.coef_) if self.coef_.ndim == 2 else None
        function = partial(_predict, coef=self.coef_, intercept=self.intercept_)
        return apply(self, X, function, columns, self.coef_.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = False
        return tags


def _predict(X: Any, coef: NDArray[Any], intercept: Any) -> NDArray[Any]:
    return np.asarray(X @ coef.T + intercept)
