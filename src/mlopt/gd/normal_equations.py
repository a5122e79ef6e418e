"""Least squares by the normal equations: one pass for the Gram matrix, then Cholesky.

A Gram matrix is one symmetric product, several times cheaper than a QR. The price is the
condition number squared, so `solve` says how many digits were lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.cluster import added
from mlopt.costs import Cost
from mlopt.gd.panels import Layout, panel_gram
from mlopt.gd.pricing import shape_of
from mlopt.kernels.linear import add_sparse_gram, mirror
from mlopt.locking import cached_property
from mlopt.prices import price
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]

_FACTOR, _READS = price("newton.cholesky"), price("cholesky.reads")


@dataclass(frozen=True)
class Moments:
    """What the normal equations need to know of the rows.

    Attributes
    ----------
    mean : ndarray of shape (d + T,)
        Weighted means of features and targets; zeros without an intercept.
    gram : ndarray of shape (d + T, d + T)
        Weighted Gram matrix of the centred ``[X | y]``.
    targets : int, default=1
        T, where a spectrum is asked for.
    """

    mean: Array
    gram: Array
    targets: int = 1

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues (d,) and vectors (d, d) of the features' part."""
        features = self.gram[: -self.targets, : -self.targets]
        values, vectors = scipy.linalg.eigh(features, check_finite=False, driver="evd")
        return values, vectors

    def of_target(self, number: int) -> Moments:
        """Those of one target."""
        d = len(self.gram) - self.targets
        own = np.r_[:d, d + number]
        return Moments(self.mean, self.gram[np.ix_(own, own)])


def moments(rows: Rows, outputs: int, intercept: bool) -> Moments:
    """One pass over ``rows`` with "targets" and "weights" beside them."""
    sparse = shape_of(rows, outputs).multiplies_sparse
    layout = Layout.of(rows, outputs, intercept, shifted=not sparse)
    if sparse:
        found = mirror(rows.map_reduce(sparse_gram, added, layout))
    else:
        found = panel_gram(rows, layout)
    return centred(found, layout)


def centred(found: Array, layout: Layout) -> Moments:
    """What the Gram matrix (m, m) of panels says, about the means with an intercept."""
    if not layout.intercept:
        return Moments(layout.shift, found)
    offset = found[0, 1:] / found[0, 0]
    return Moments(layout.shift + offset, found[1:, 1:] - np.outer(found[0, 1:], offset))


def sparse_gram(block: Block, layout: Layout) -> Array:
    """What a block of sparse rows adds to the Gram matrix of panels, to its diagonal."""
    weights = block.extra["weights"].astype(np.float64)
    X, first, d = block.X, int(layout.intercept), block.X.shape[1]
    if (shift := layout.shift[:d]).any():
        X = sp.csr_array((X.data - shift[X.indices], X.indices, X.indptr), X.shape)
    targets = block.extra["targets"] - layout.shift[d:]
    others = np.hstack((np.ones((block.rows, first)), targets))
    place = np.r_[0:first, first + d : layout.columns]
    total = np.zeros((layout.columns, layout.columns))
    moved = sp.csr_array((X.data, X.indices + first, X.indptr), (len(weights), first + d))
    add_sparse_gram(moved, weights[:, 0], total)
    cross = X.T @ (weights * others)
    total[first : first + d, :first] = cross[:, :first]
    total[first + d :, first : first + d] = cross[:, first:].T
    total[np.ix_(place, place)] = others.T @ (weights * others)
    return total


@dataclass(frozen=True)
class Solution:
    """Coefficients (d, T), and a bound on their relative error from rounding.

    The error is relative to each column's own scale; infinite when there is no unique
    solution.
    """

    coef: Array
    error: float


def solve(moments: Moments, alphas: Array) -> Solution:
    """Minimise ``||Xw - y||^2 + alpha ||w||^2`` for each target.

    Parameters
    ----------
    moments : Moments
    alphas : ndarray of shape (T,)
        Penalty of each target.
    """
    outputs = len(alphas)
    gram, rhs = moments.gram[:-outputs, :-outputs], moments.gram[:-outputs, -outputs:]
    coef, error = np.zeros_like(rhs), 0.0
    for alpha in np.unique(alphas):
        same = alphas == alpha
        penalised = gram.copy()
        penalised.flat[:: len(gram) + 1] += alpha
        one = _solve_scaled(penalised, rhs[:, same])
        coef[:, same], error = one.coef, max(error, one.error)
    return Solution(coef, error)


def _solve_scaled(gram: Array, rhs: Array) -> Solution:
    """Cholesky after scaling the diagonal to ones: the units of columns cost no digits.

    ``gram`` is scaled where it is.
    """
    scale = np.sqrt(np.maximum(gram.diagonal(), 0.0))  # of rounding, it may be negative
    if not scale.all():
        return Solution(np.zeros_like(rhs), np.inf)
    gram /= np.outer(scale, scale)
    norm = float(np.abs(gram).sum(axis=0).max())
    try:
        lower = scipy.linalg.cho_factor(gram, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return Solution(np.zeros_like(rhs), np.inf)
    reciprocal, _ = scipy.linalg.lapack.dpocon(lower[0], norm, uplo="L")
    coef = scipy.linalg.cho_solve(lower, rhs / scale[:, None], check_finite=False)
    with np.errstate(divide="ignore"):
        error = float(np.finfo(np.float64).eps / np.float64(reciprocal))
    return Solution(coef / scale[:, None], error)


def factor_cost(size: int) -> Cost:
    """A factor of a matrix of so many rows, and its error bound."""
    return Cost(flops=_FACTOR * size**3 / 3) + Cost(memory=_READS * 8.0 * size**2)


def singular_values(moments: Moments, outputs: int) -> Array:
    """Of the centred features, largest first; those below 1e-8 of the largest are noise."""
    gram = moments.gram[:-outputs, :-outputs]
    values = scipy.linalg.eigvalsh(gram, check_finite=False)[::-1]
    return np.asarray(np.sqrt(np.maximum(values, 0.0)))
