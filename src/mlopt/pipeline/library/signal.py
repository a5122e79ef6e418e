"""Operators on signals and features: rows of numbers, (n, d)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mlopt.parameters import check_count
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.library.descriptors import some_of

Array = NDArray[Any]
_FLOATS = (np.float64, np.float32)


class _EachRow(TransformerMixin, BaseEstimator):
    """A function of rows that learns no more than how many columns there are."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Look at the number of columns."""
        del y
        validate_data(self, X, dtype=_FLOATS)
        return self

    def transform(self, X: Any) -> Array:
        """Rows in the dtype of X, float32 or float64."""
        check_is_fitted(self, "n_features_in_")
        return self._rows(validate_data(self, X, dtype=_FLOATS, reset=False))

    @abstractmethod
    def _rows(self, X: Array) -> Array:
        """What comes out for rows (n, d)."""


class PaddedFFT(ClassNamePrefixFeaturesOutMixin, _EachRow):
    """Real parts of the discrete Fourier transform, padded to a power of two.

    d columns become p / 2, with p the least power of two that is not below d (KeystoneML).
    """

    def _rows(self, X: Array) -> Array:
        found = scipy.fft.rfft(X, n=2 * self._n_features_out, axis=1)
        real: Array = np.ascontiguousarray(found.real[:, : self._n_features_out])
        return real

    @property
    def _n_features_out(self) -> int:
        return 1 << max(1, int(self.n_features_in_ - 1).bit_length()) >> 1


class RandomSign(OneToOneFeatureMixin, _EachRow):
    """Each column times +1 or -1, drawn once.

    Parameters
    ----------
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    signs_ : ndarray of shape (d,)
    """

    def __init__(self, random_state: Any = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RandomSign:
        """Draw the signs."""
        super().fit(X, y)
        random = check_random_state(self.random_state)
        self.signs_ = random.choice([-1.0, 1.0], size=self.n_features_in_)
        return self

    def _rows(self, X: Array) -> Array:
        signed: Array = X * self.signs_.astype(X.dtype)
        return signed


class LinearRectifier(OneToOneFeatureMixin, _EachRow):
    """``max(least, x - alpha)``.

    Parameters
    ----------
    least, alpha : float, default=0.0
    """

    def __init__(self, least: float = 0.0, alpha: float = 0.0) -> None:
        self.least = least
        self.alpha = alpha

    def _rows(self, X: Array) -> Array:
        above: Array = np.maximum(X - X.dtype.type(self.alpha), X.dtype.type(self.least))
        return above


class NormalizeRows(OneToOneFeatureMixin, _EachRow):
    """Rows of Euclidean length 1; rows shorter than ``least`` are divided by that.

    Parameters
    ----------
    least : float, default=2.2e-16
    """

    def __init__(self, least: float = 2.2e-16) -> None:
        self.least = least

    def _rows(self, X: Array) -> Array:
        lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
        return np.asarray(X / np.maximum(lengths, self.least)[:, None], X.dtype)


class SignedHellinger(OneToOneFeatureMixin, _EachRow):
    """``sign(x) sqrt(|x|)``: makes large counts matter less."""

    def _rows(self, X: Array) -> Array:
        return np.asarray(np.sign(X) * np.sqrt(np.abs(X)))


class ColumnSampler:
    """Some rows of X at random: a sample to learn from.

    (KeystoneML stores descriptors as columns; here they are rows.)

    Parameters
    ----------
    n_rows : int
    random_state : int, RandomState or None, default=None
    """

    def __init__(self, n_rows: int, random_state: Any = None) -> None:
        self.n_rows = n_rows
        self.random_state = random_state

    def sample(self, X: Any) -> Any:
        """``n_rows`` rows without repeats, in their order; all if there are not as many."""
        most = check_count("n_rows", self.n_rows)
        random = check_random_state(self.random_state)
        X = np.asarray(X) if isinstance(X, list | tuple) else X
        return tables.take_rows(X, some_of(tables.count_rows(X), most, random))
