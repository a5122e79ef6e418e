"""Rows by columns, with a target and weights, for methods that go from column to column.

Shapes: ``n`` rows, ``d`` columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.errors import InputError
from mlopt.gd.column_sums import FAR
from mlopt.gd.plans.column_products import Products
from mlopt.kernels.one_row import products
from mlopt.kernels.shrinkage import column_moments
from mlopt.locking import cached_property
from mlopt.prices import count

Array = NDArray[np.float64]

_TURNED = count("columns.turned")


@dataclass(frozen=True, eq=False)
class Columns:
    """The rows, by columns.

    Attributes
    ----------
    X : ndarray or CSR array of shape (d, n)
        The transpose of the rows, float32 or float64.
    y : ndarray of shape (n,), float64
        Targets: numbers, or -1 and 1.
    c : ndarray of shape (n,), float64
        Weights of the rows; their sum is 1.
    centre : ndarray of shape (d,), float64
        What was taken off the columns.
    about : float
        What was taken off the target.
    centred : bool
        Whether columns and target are about their means, so that the intercept is known.
    """

    X: Any
    y: Array
    c: Array
    centre: Array
    about: float = 0.0
    centred: bool = False

    def spread(self, intercept: bool) -> float:
        """The weighted mean of ``y^2``, about the mean of y with an intercept."""
        about = float(self.c @ self.y) if intercept else 0.0
        return float(self.c @ (self.y - about) ** 2)

    def times(self, slopes: Array) -> Array:
        """Products of all columns with ``slopes`` (n,), in float64, (d,)."""
        if isinstance(self.X, np.ndarray) and self.X.dtype == slopes.dtype:
            return np.asarray(self.X @ slopes)
        return products(self.X, slopes)

    def facing(self, y: Array, intercept: bool) -> Columns:
        """The same columns with another target, about its mean with an ``intercept``."""
        about = float(self.c @ y) if intercept else 0.0
        other = replace(self, y=y - about if about else y, about=about)
        known = {"moments", "uniform", "products"} & vars(self).keys()
        vars(other).update({name: vars(self)[name] for name in known})
        return other

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """Weighted sums of all columns, and of their squares, (d,) each."""
        return column_moments(self.X, np.arange(self.X.shape[0]), self.c)

    @cached_property
    def products(self) -> Products:
        """Products of columns with each other, weighted; those asked for are kept."""
        return Products(self.X, self.uniform)

    @cached_property
    def uniform(self) -> Array:
        """The weights, (n,); one of them, (1,), where all are the same."""
        return self.c[:1] if (self.c == self.c[0]).all() else self.c

    @staticmethod
    def of(
        X: Any, y: Array, weights: Array, intercept: bool, constant: float = 0.0, *,
        numeric: bool = False,
    ) -> Columns:  # fmt: skip
        """From rows (n, d); dense columns far from zero are centred, for their digits.

        With an intercept a ``numeric`` target is, too. A ``constant`` other than 0 is the
        value of one more column, the last.

        Raises
        ------
        InputError
            When the squares of a column are not finite.
        """
        c, by_columns = weights / weights.sum(), transposed(X, constant)
        centre = np.zeros(by_columns.shape[0])
        whole = Columns(by_columns, y, c, centre).facing(y, numeric and intercept)
        mean, squares = whole.moments
        if not np.isfinite(squares).all():
            raise InputError(
                "Coordinate descent iterations resulted in non-finite parameter values: "
                "the squares of X must be finite. Scale its columns."
            )
        far = mean**2 > FAR * np.maximum(squares - mean**2, 0.0)
        if sp.issparse(X) or not intercept or not far.any():
            return whole
        centre[far] = mean[far].astype(X.dtype)
        return replace(whole, X=whole.X - centre[:, None].astype(X.dtype), centre=centre)


def transposed(X: Any, constant: float = 0.0) -> Any:
    """The columns of X as rows, and one of a constant unless that is 0.

    Returns
    -------
    ndarray or CSR array of shape (d, n) or (d + 1, n)
        C-contiguous.
    """
    n, d = X.shape
    if sp.issparse(X):
        columns = sp.csr_array(X.T.tocsr())
        last = np.full((1, n), constant, X.dtype)
        return sp.csr_array(sp.vstack((columns, last))) if constant else columns
    columns = np.empty((d + bool(constant), n), X.dtype)
    for start in range(0, n, _TURNED):
        rows = slice(start, start + _TURNED)
        columns[:d, rows] = X[rows].T
    columns[d:] = constant
    return columns
