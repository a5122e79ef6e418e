"""A preconditioner from a randomized Nystrom sketch, for systems too wide to factor.

The sketch finds the ``r`` largest eigenvalues of the Gram matrix and their directions, in
one pass of two thin products. What is left for conjugate gradients has a condition number
of about ``(eigenvalue r + alpha) / alpha`` at most.

Frangella, Tropp, Udell, "Randomized Nystrom preconditioning", SIAM J. Matrix Anal. Appl.
44, 2023, algorithm 2.1 and equation (1.3).

Shapes: ``d`` features, ``T`` targets, rank ``r``.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack

from mlopt.errors import InputError
from mlopt.gd.column_sums import ColumnSums
from mlopt.gd.gram_inverse import within_float32
from mlopt.gd.panels import Layout, panels
from mlopt.gd.sample import SEED
from mlopt.gd.sizes import LOST
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NystromInverse:
    """``U (least + alpha) / (values + alpha) U' + (I - U U')``.

    Attributes
    ----------
    values : ndarray of shape (r,)
        Approximate eigenvalues of the Gram matrix, largest first.
    vectors : ndarray of shape (d, r)
    alphas : ndarray of shape (T,)
    """

    values: Array
    vectors: Array
    alphas: Array

    def __call__(self, residual: Array, targets: NDArray[np.intp]) -> Array:
        """The inverse applied to the residuals (d, A) of the targets (A,) named."""
        alphas, values = self.alphas[targets], self.values[:, None]
        within = self.vectors.T @ residual
        shrunk = within * ((values[-1] + alphas) / (values + alphas) - 1.0)
        # Of the scale of the inverse itself: errors are estimated with it.
        return np.asarray((residual + self.vectors @ shrunk) / (values[-1] + alphas))


def sketch(rows: Rows, rank: int, sums: ColumnSums, alphas: Array) -> NystromInverse:
    """Sketch the centred, weighted Gram matrix of ``rows`` in float32.

    Parameters
    ----------
    rows : Rows
        With "weights" beside them.
    rank : int
        At most d.
    sums : ColumnSums
        Of the rows.
    alphas : ndarray of shape (T,)
        All positive.
    """
    within_float32(sums)
    rng = np.random.default_rng(SEED)
    test = np.linalg.qr(rng.standard_normal((rows.d, rank)))[0].astype(np.float32)
    image = rows.map_reduce(_block_sketch, operator.add, sums.mean[: rows.d], test)
    values, vectors = _eigenpairs(np.asarray(image, np.float64), test.astype(np.float64))
    return NystromInverse(values, vectors, alphas)


def _block_sketch(block: Block, mean: Array, test: NDArray[Any]) -> NDArray[Any]:
    """``(X - mean)' S (X - mean) test``, of shape (d, r)."""
    if sp.issparse(block.X):
        return _sparse_sketch(block, mean, test)
    bare = Block(block.X, {**block.extra, "targets": np.empty((block.rows, 0))})
    total = np.zeros_like(test)
    for panel in panels(bare, Layout(mean, intercept=False), np.float32):
        total += panel.T @ (panel @ test)
    return total


def _sparse_sketch(block: Block, mean: Array, test: NDArray[Any]) -> NDArray[Any]:
    X, centre = block.X.astype(np.float32), mean.astype(np.float32)
    scaled = (X @ test - centre @ test) * block.extra["weights"].astype(np.float32)
    return np.asarray(X.T @ scaled - np.outer(centre, scaled.sum(axis=0)))


def _eigenpairs(image: Array, test: Array) -> tuple[Array, Array]:
    """Of the Nystrom approximation ``image (test' image)^-1 image'``, largest first."""
    lower, image, shift = _lifted(image, test)
    factor = scipy.linalg.solve_triangular(lower, image.T, lower=True)
    squares, right = scipy.linalg.eigh(factor @ factor.T)
    kept = squares > LOST * squares[-1]
    squares, right = squares[kept][::-1], right[:, kept][:, ::-1]
    return np.maximum(squares - shift, 0.0), factor.T @ (right / np.sqrt(squares))


def _lifted(image: Array, test: Array) -> tuple[Array, Array, float]:
    """A Cholesky factor of the core, lifted until it has one, and the image to match."""
    size = float(np.linalg.norm(image)) or 1.0
    shift = size * float(np.finfo(np.float32).eps)
    while shift <= size:
        lifted = image + shift * test
        core = test.T @ lifted
        lower, failed = lapack.dpotrf((core + core.T) / 2, lower=1, clean=1)
        if not failed:
            return lower, lifted, shift
        shift *= 10.0
    raise InputError("The sketch of X is not finite in float32: scale the columns of X.")
