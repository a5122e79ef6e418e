"""Random features: a linear model on them is close to a kernel machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mlopt.cluster import Threads, executor
from mlopt.errors import InputError
from mlopt.gd.estimator_base import FLOATS, apply, dtype_of, see_columns
from mlopt.parameters import check_choice, check_count, check_positive
from mlopt.pipeline.library.framing import framed_lazily
from mlopt.pipeline.library.moments import join
from mlopt.prices import price
from mlopt.rows import Block, Rows
from mlopt.rows.source import is_dask

Array = NDArray[Any]
Spectrum = Callable[[Any, float, tuple[int, ...]], Array]
"""From a generator of random numbers, gamma and a shape to weights."""

_TILE = 512
"""Rows and columns of one matrix product. With the shape of a product its rounding may
change, so the grid of tiles is the same whichever columns are asked for."""
_COSINE = price("features.cosine")
_DRAWN = 1 << 20
"""Random numbers drawn in float64 at a time."""


@framed_lazily
class RandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Random Fourier features ``sqrt(2 / D) * cos(X W + b)``.

    Inner products of the features approximate a kernel: ``z(x).z(y)`` is ``k(x, y)`` up to
    an error of about ``1 / sqrt(D)``.

    Parameters
    ----------
    n_components : int or float, default=100
        The number of features D; a float is a multiple of the columns of X.
    kernel : {"gaussian", "cauchy"}, default="gaussian"
        The distribution of W. "gaussian" gives the kernel ``exp(-gamma ||x - y||_2^2)``,
        "cauchy" gives the Laplacian kernel ``exp(-gamma ||x - y||_1)``.
    gamma : "scale" or float, default="scale"
        "scale" is ``1 / (d * var)`` for "gaussian" and ``1 / (d * sqrt(var))`` for
        "cauchy", with the variance of all entries of X.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    gamma_ : float
    random_weights_ : ndarray of shape (d, D)
    random_offset_ : ndarray of shape (D,)
        Both in float32 if X was, else in float64.
    n_features_out_ : int
        The number of features D.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Rahimi and Recht, "Random features for large-scale kernel machines", NIPS 2007.
    KeystoneML's `CosineRandomFeatures`, with the scale that makes it a kernel.
    """

    def __init__(
        self,
        n_components: int | float = 100,
        *,
        kernel: str = "gaussian",
        gamma: str | float = "scale",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RandomFeatures:
        """Draw the weights; reads the values of X only for ``gamma="scale"``.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask collection or Rows, (n, d)
        y : ignored

        Returns
        -------
        self
        """
        check_choice("kernel", self.kernel, tuple(_SPECTRA))
        if isinstance(X, Rows):
            self.n_features_in_ = X.d
        elif is_dask(X):
            see_columns(self, X)
        else:
            X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS)
        d, random = self.n_features_in_, check_random_state(self.random_state)
        self.gamma_ = self._gamma(X)
        shape, dtype = (d, _count(self.n_components, d)), dtype_of(X)
        self.random_weights_ = _draw(
            _SPECTRA[self.kernel], random, self.gamma_, shape, dtype
        )
        offset = random.uniform(0.0, 2.0 * np.pi, shape[1])
        self.random_offset_ = offset.astype(dtype)
        return self

    def transform(self, X: Any) -> Any:
        """Map rows to their random features.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)

        Returns
        -------
        ndarray or lazy dask array of shape (n, D)
            In float32 if X is, else in float64.
        """
        check_is_fitted(self)
        function = self.columns(0, self.n_features_out_)
        return apply(self, X, function)

    def columns(self, start: int, stop: int) -> CosineColumns:
        """What makes features ``start`` to ``stop``, and no others, of rows.

        Parameters
        ----------
        start, stop : int
            ``0 <= start < stop <= D``.

        Returns
        -------
        CosineColumns
            A function of rows (n, d), dense or CSR: for the same rows its values are those
            columns of `transform`, to the last bit.

        Raises
        ------
        InputError
            When there are no such columns.
        """
        check_is_fitted(self)
        D = self.n_features_out_
        if not 0 <= start < stop <= D:
            raise InputError(
                f"`start` and `stop` must name some of the features 0 ... {D - 1}, got "
                f"{start} and {stop}."
            )
        first, last = start // _TILE * _TILE, min(-(-stop // _TILE) * _TILE, D)
        return CosineColumns(
            self.random_weights_[:, first:last],
            self.random_offset_[first:last],
            math.sqrt(2.0 / D),
            slice(start - first, stop - first),
        )

    def count(self, columns: int) -> int:
        """How many features rows of so many columns have."""
        return _count(self.n_components, columns)

    def flops_per_value(self, stored: float) -> float:
        """Operations of a matrix product that take as long as one feature of one row.

        Parameters
        ----------
        stored : float
            Values stored of a row of X: d if dense.
        """
        return 2.0 * stored + _COSINE

    @property
    def n_features_out_(self) -> int:
        """How many features there are: D."""
        return int(self.random_weights_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_features_out_

    def _gamma(self, X: Any) -> float:
        if not (isinstance(self.gamma, str) and self.gamma == "scale"):
            return check_positive("gamma", self.gamma)
        variance = _variance(X)
        if variance == 0.0:  # as in scikit-learn: a constant X has no scale
            return 1.0
        spread = variance if self.kernel == "gaussian" else math.sqrt(variance)
        return float(1.0 / (self.n_features_in_ * spread))


@dataclass(frozen=True)
class CosineColumns:
    """``scale * cos(X W + b)`` for some columns of W.

    Attributes
    ----------
    weights : ndarray of shape (d, m)
        The columns of W in all tiles that are needed.
    offset : ndarray of shape (m,)
    scale : float
    kept : slice
        Which of the m columns are wanted.
    """

    weights: Array
    offset: Array
    scale: float
    kept: slice

    def __call__(self, X: Any) -> Array:
        """The features of dense or CSR rows, in float32 if these are."""
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        out = np.empty((X.shape[0], self.kept.stop - self.kept.start), dtype)
        panels = [slice(start, start + _TILE) for start in range(0, len(out), _TILE)]
        with closing(Threads()) as where:
            where.map(lambda rows: self._fill(X[rows], out[rows]), panels)
        return out

    def _fill(self, X: Any, out: Array) -> None:
        """The features of a panel of rows."""
        for first in range(0, self.weights.shape[1], _TILE):
            tile = slice(first, min(first + _TILE, self.weights.shape[1]))
            weights = self.weights[:, tile].astype(out.dtype, copy=False)
            a, b = max(self.kept.start, first), min(self.kept.stop, tile.stop)
            panel = np.asarray(X @ weights)[:, a - first : b - first]
            panel += self.offset[a:b].astype(out.dtype, copy=False)
            np.cos(panel, out=panel)
            into = out[:, a - self.kept.start : b - self.kept.start]
            np.multiply(panel, out.dtype.type(self.scale), out=into)


def _draw(
    spectrum: Spectrum, random: Any, gamma: float, shape: tuple[int, int], dtype: Any
) -> Array:
    """Weights (d, D), a few rows at a time: the numbers are those of one large draw."""
    weights, step = np.empty(shape, dtype), max(1, _DRAWN // shape[1])
    for start in range(0, len(weights), step):
        part = weights[start : start + step]
        part[...] = spectrum(random, gamma, part.shape)
    return weights


def _gaussian(random: Any, gamma: float, shape: tuple[int, ...]) -> Array:
    return np.asarray(math.sqrt(2.0 * gamma) * random.standard_normal(shape))


def _cauchy(random: Any, gamma: float, shape: tuple[int, ...]) -> Array:
    return np.asarray(gamma * random.standard_cauchy(shape))


_SPECTRA: dict[str, Spectrum] = {
    "gaussian": _gaussian,
    "cauchy": _cauchy,
}


def _count(n_components: int | float, d: int) -> int:
    if isinstance(n_components, Integral):
        return check_count("n_components", n_components)
    return max(1, round(check_positive("n_components", n_components) * d))


def _variance(X: Any) -> float:
    """Of all entries, in one pass over blocks."""
    with closing(executor(rows=(X,))) as where:
        rows = Rows.of(X, executor=where)
        count, _, squares = rows.map_reduce(_block_moments, join)
        return float(squares / count)


def _block_moments(block: Block) -> tuple[float, float, float]:
    """Count, mean, and sum of squares about the mean."""
    values = block.X.data if sp.issparse(block.X) else block.X
    count = float(np.prod(block.X.shape))
    mean = float(values.sum(dtype=np.float64)) / count
    squares = float(np.square(values - mean, dtype=np.float64).sum())
    return count, mean, squares + (count - values.size) * mean**2
