"""Steps of the judges' own: what users write, and what no library knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted


class Centre(TransformerMixin, BaseEstimator):
    """A transformer with a state, known to nobody."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def fit(self, X: Any, y: Any = None) -> Centre:
        self.mean_ = np.asarray(X, dtype=float).mean(axis=0)
        self.n_features_in_ = self.mean_.size
        return self

    def transform(self, X: Any) -> Any:
        check_is_fitted(self)
        return (np.asarray(X, dtype=float) - self.mean_) * self.factor


class AllRows(TransformerMixin, BaseEstimator):
    """Without a state, and yet each row depends on all that come with it."""

    def fit(self, X: Any, y: Any = None) -> AllRows:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def transform(self, X: Any) -> Any:
        X = np.asarray(X, dtype=float)
        return X / (1.0 + np.abs(X).max(axis=0))


class Jitter(TransformerMixin, BaseEstimator):
    """Draws at every fit, without a parameter that says so."""

    def fit(self, X: Any, y: Any = None) -> Jitter:
        self.shift_ = np.random.default_rng().normal(size=np.shape(X)[1])
        return self

    def transform(self, X: Any) -> Any:
        return np.asarray(X, dtype=float) + self.shift_


class GlobalJitter(TransformerMixin, BaseEstimator):
    """Draws from NumPy's global state."""

    def fit(self, X: Any, y: Any = None) -> GlobalJitter:
        self.shift_ = np.random.normal(size=np.shape(X)[1])  # noqa: NPY002
        return self

    def transform(self, X: Any) -> Any:
        return np.asarray(X, dtype=float) + self.shift_


class Told(TransformerMixin, BaseEstimator):
    """Its state is set after `__init__`, by a method that `get_params` knows nothing of."""

    def told(self, factor: float) -> Told:
        self._factor = factor
        return self

    def fit(self, X: Any, y: Any = None) -> Told:
        self.top_ = np.asarray(X, dtype=float).max(axis=0) * self._factor
        return self

    def transform(self, X: Any) -> Any:
        return np.asarray(X, dtype=float) + self.top_

    def __sklearn_clone__(self) -> Told:
        return Told().told(self._factor)


class Twice(TransformerMixin, BaseEstimator):
    """`fit_transform` is not `fit` and then `transform`, as in a target encoder."""

    def fit(self, X: Any, y: Any = None) -> Twice:
        self.mean_ = np.asarray(X, dtype=float).mean(axis=0)
        return self

    def transform(self, X: Any) -> Any:
        return np.asarray(X, dtype=float) - self.mean_

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        return 2.0 * self.fit(X, y).transform(X)


def scaled_by(factor: float) -> Any:
    """An instance of a class that is made anew for each factor, always under one name."""

    class Scaled(TransformerMixin, BaseEstimator):
        def fit(self, X: Any, y: Any = None) -> Any:
            self.low_ = np.asarray(X, dtype=float).min(axis=0) * factor
            return self

        def transform(self, X: Any) -> Any:
            return np.asarray(X, dtype=float) * factor - self.low_

    return Scaled()


def fill_mean(d: Any) -> Any:
    return pd.DataFrame(d).fillna(pd.DataFrame(d).mean())


def fill_forward(d: Any) -> Any:
    return pd.DataFrame(d).ffill().fillna(0.0)


def ranks(d: Any) -> Any:
    return pd.DataFrame(d).rank()


def by_maximum(d: Any) -> Any:
    values = np.asarray(d, dtype=float)
    return values / np.nanmax(np.abs(values), axis=0)


def running_sum(d: Any) -> Any:
    return np.cumsum(np.nan_to_num(np.asarray(d, dtype=float)), axis=0)


def codes(d: Any) -> Any:
    frame = pd.DataFrame(d)
    return frame.apply(lambda column: column.astype("category").cat.codes).astype(float)


def dummies(d: Any) -> Any:
    return pd.get_dummies(pd.DataFrame(d).astype(object)).astype(float)


def signed_root(d: Any) -> Any:
    """Row by row, in truth."""
    values = np.asarray(d, dtype=float)
    return np.sign(values) * np.sqrt(np.abs(values))
