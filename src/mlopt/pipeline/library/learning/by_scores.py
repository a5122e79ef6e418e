"""What predictions are made of scores: of one target or several, or the class that wins.

Both forms are inherited beside a class that fits to ``_targets`` (n, k), and has
``_scores(X, function)``, a function of the scores of rows.

Shapes: ``n`` rows, ``k`` columns of scores; two classes have one, more have one each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mlopt.gd.estimator_base import Sample, score
from mlopt.gd.linear_model import encode, winners

Array = NDArray[Any]


class _Regresses(MultiOutputMixin, RegressorMixin):
    """Regressors of one target or several: the scores are the predictions."""

    _one: bool
    score = score

    def predict(self: Any, X: Any) -> Any:
        """Predict the targets, some rows at a time.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)

        Returns
        -------
        ndarray or lazy dask array of shape (n,) or (n, k)
        """
        check_is_fitted(self)
        return self._scores(X, np.ravel if self._one else np.asarray)

    def _targets(self, sample: Sample) -> Array:
        self._one = sample.y.ndim == 1
        return sample.y.reshape(sample.rows.n, -1).astype(np.float64)


class _Classifies(ClassifierMixin):
    """Classifiers whose largest score wins."""

    classes_: Array
    score = score
    _of_two: ClassVar[Callable[[Array], Array]] = staticmethod(np.ravel)
    """From the scores of two classes to one number a row."""

    def predict(self: Any, X: Any) -> Any:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)

        Returns
        -------
        ndarray or lazy dask array of shape (n,)
        """
        check_is_fitted(self)
        function = partial(winners, classes=self.classes_)
        return self._scores(X, function)

    def decision_function(self: Any, X: Any) -> Any:
        """The scores of the classes; of two, how much more speaks for the second.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)

        Returns
        -------
        ndarray or lazy dask array of shape (n,) for two classes, else (n, K)
        """
        check_is_fitted(self)
        two = len(self.classes_) == 2
        return self._scores(X, self._of_two if two else np.asarray)

    def _targets(self, sample: Sample) -> Array:
        self.classes_, codes = encode(self, sample.y, sample.weights)
        return signs(codes, len(self.classes_))


def signs(codes: NDArray[np.intp], count: int) -> NDArray[np.float64]:
    """1 where a row is of a class and -1 elsewhere; for two classes those of the second."""
    if count == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(count), 1.0, -1.0)
