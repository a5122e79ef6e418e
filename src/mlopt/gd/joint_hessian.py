"""The Hessian of one model with all of its classes together, and factors of Hessians.

Classes of a softmax compete: what one gains the others lose. Hessians of single classes do
not see that. With ``p`` the probabilities (n, K), ``x`` a row with a 1 behind it and ``c``
the row weights, the joint Hessian of ``P = K (d + 1)`` rows is

    sum_i c_i (diag(p_i) - p_i p_i') (x) x_i x_i'

where ``(x)`` is the Kronecker product; with one column of weights it is ``sum_i c_i h_i x_i
x_i'`` with the second derivatives h of the losses: ``p_i (1 - p_i)``, and of losses that
have none everywhere a generalised one (Mangasarian, "A finite Newton method for
classification", Optim. Methods Softw. 17, 2002).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.special import expit, softmax

from mlopt.cluster import added
from mlopt.errors import InputError
from mlopt.gd.columns import Model
from mlopt.gd.sizes import PIECE
from mlopt.kernels.linear import add_gram, add_sparse_gram, decision, mirror
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]
Inverse = Callable[[NDArray[Any]], NDArray[Any]]
"""An inverse Hessian, as a function of a gradient (d + 1, K)."""
_INFINITE = "The Gram matrix of X is not finite: scale the columns of X."


def joint_hessian(
    sample: Rows, weights: NDArray[Any], model: Model, lacking: Array
) -> Array:
    """Of the mean loss over ``sample`` plus the penalty, (P, P), class after class.

    Parameters
    ----------
    sample : Rows
        With "weights" (n, S) and "targets" (n, T) beside them.
    weights : ndarray of shape (d + 1, K)
        The last row holds the intercepts.
    model : Model
        "multinomial", "logistic" or "squared_hinge".
    lacking : ndarray of shape (d,)
        Mean squares of the columns of X that the sample does not have: without them, a
        column that it never met would be free to run away.
    """
    total = sample.map_reduce(_block_hessian, added, sample.executor.put((weights, model)))
    if weights.shape[1] == 1:
        mirror(total[:-1])
    hessian = _completed(total[:-1] / total[-1, 0], weights, model, lacking)
    return hessian.reshape(total.shape[1], total.shape[1])


def curved_rows(sample: Rows, weights: NDArray[Any], model: Model) -> int:
    """How many of them have a curvature at one column of weights (d + 1, 1)."""
    place = sample.executor.put((weights, model))
    return int(sample.map_reduce(_block_curved, operator.add, place))


def _completed(mean: Array, weights: NDArray[Any], model: Model, lacking: Array) -> Array:
    rows, K = weights.shape
    hessian = mean.reshape(K, rows, K, rows)
    classes, features = np.arange(K), np.arange(rows - 1)
    own = hessian[classes, -1, classes, -1].copy()  # mean curvature of each class
    for k in classes:
        hessian[k, features, k, features] += model.l2 + own[k] * lacking
    hessian[classes, -1, classes, -1] += model.intercept_l2
    if K > 1:
        # Nothing changes when all intercepts do: the matrix must not be singular for that.
        hessian[:, -1, :, -1] += own.mean() / K
    if not model.fit_intercept:
        hessian[:, -1] = hessian[:, :, :, -1] = 0.0
        hessian[classes, -1, classes, -1] = 1.0
    return hessian


def _block_hessian(block: Block, place: tuple[NDArray[Any], Model]) -> Array:
    """The sum over rows (P, P), and below it a row that starts with their weight.

    Of one column what is up to the diagonal.
    """
    weights, model = place
    rows, K = weights.shape
    if K == 1 and sp.issparse(block.X):
        return _sparse_hessian(block, weights, model)
    total = np.zeros((K * rows + 1, K * rows))
    step = max(64, 2 * PIECE // (K * rows))
    for start in range(0, block.rows, step):
        part = slice(start, start + step)
        X = block.X[part]
        c = block.extra["weights"][part, model.rowset].astype(np.float64)
        Z = decision(X, weights[:-1], weights[-1]).astype(np.float64)
        if K > 1:
            _add_softmax(total[:-1], _with_ones(X), Z, c)
        else:
            h = c * _curvatures(block, part, Z[:, 0], model)
            curved = np.flatnonzero(h)  # no other row adds to it
            rooted = _with_ones(X[curved]) * np.sqrt(h[curved])[:, None]
            add_gram(rooted, total[:-1])
        total[-1, 0] += c.sum()
    return total


def _block_curved(block: Block, place: tuple[NDArray[Any], Model]) -> int:
    weights, model = place
    z = decision(block.X, weights[:-1], weights[-1])[:, 0]
    return int(np.count_nonzero(_curvatures(block, slice(None), z, model)))


def _with_ones(X: Any) -> Array:
    """Dense rows, a one behind each."""
    dense = X.toarray() if sp.issparse(X) else X
    return np.column_stack((dense, np.ones(len(dense))))


def _sparse_hessian(block: Block, weights: NDArray[Any], model: Model) -> Array:
    c = block.extra["weights"][:, model.rowset].astype(np.float64)
    z = decision(block.X, weights[:-1], weights[-1]).astype(np.float64)[:, 0]
    h = c * _curvatures(block, slice(None), z, model)
    d = len(weights) - 1
    total = np.zeros((d + 2, d + 1))
    add_sparse_gram(block.X, h, total[:-1])
    total[d, :d], total[d, d], total[-1, 0] = block.X.T @ h, h.sum(), c.sum()
    return total


def _curvatures(block: Block, part: slice, z: Array, model: Model) -> Array:
    """Second derivatives of the losses at margins (n,)."""
    if model.loss == "logistic":
        return np.asarray(expit(z) * expit(-z))
    y = block.extra["targets"][part, model.target].astype(np.float64)
    return np.where(y * z < 1.0, 2.0, 0.0)  # of the squared hinge


def _add_softmax(total: Array, X: Array, Z: Array, c: Array) -> None:
    p, width = softmax(Z, axis=1), X.shape[1]
    spread = (p * np.sqrt(c)[:, None])[:, :, None] * X[:, None, :]
    flat = spread.reshape(len(X), -1)
    total -= flat.T @ flat
    for k in range(p.shape[1]):
        own = slice(k * width, (k + 1) * width)
        rooted = X * np.sqrt(c * p[:, k])[:, None]
        total[own, own] += rooted.T @ rooted


@dataclass(frozen=True)
class Factor:
    """``L L'`` is a symmetric matrix, its rows and columns divided by ``scale``.

    Attributes
    ----------
    lower : ndarray of shape (m, m)
        L in column-major order, float32 or float64; above the diagonal it means nothing.
    scale : ndarray of shape (m,)
    """

    lower: NDArray[Any]
    scale: Array

    @staticmethod
    def of(matrix: NDArray[Any], added: Any = 0.0, *, roundings: int = 0) -> Factor:
        """Of ``matrix + diag(added)``, scaled to ones on the diagonal.

        These are lifted until there is a factor: at first by so many ``roundings``, by
        default four for each row.

        Raises
        ------
        InputError
            When the matrix is not finite.
        """
        diagonal = matrix.diagonal().astype(np.float64) + added
        scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        if not np.isfinite(diagonal).all():
            raise InputError(_INFINITE)
        inverse = (1.0 / scale).astype(matrix.dtype)
        cholesky = lapack.spotrf if matrix.dtype == np.float32 else lapack.dpotrf
        lift = (roundings or 4 * len(matrix)) * float(np.finfo(matrix.dtype).eps)
        # Where probabilities are all but 1 a matrix is all rounding, off its diagonal as
        # large as on it: lifted by the number of its rows it has a factor.
        while lift < 10.0 * len(matrix):
            scaled = np.multiply(matrix, inverse, order="C")
            scaled *= inverse[:, None]
            np.einsum("ii->i", scaled)[:] = 1.0 + lift
            # The transpose of a symmetric matrix is itself, in the order of LAPACK.
            lower, failed = cholesky(scaled.T, lower=1, overwrite_a=1, clean=0)
            # LAPACK takes NaN for a pivot, which then is in all that follow.
            if not failed and np.isfinite(lower[-1, -1]):
                return Factor(lower, scale)
            lift *= 10.0
        raise InputError(_INFINITE)

    def solve(self, right: NDArray[Any]) -> Array:
        """The inverse of the matrix times ``right`` (m, k), in float64."""
        right, size = right / self.scale[:, None], 1.0
        solve = lapack.dpotrs
        if self.lower.dtype == np.float32:
            # A residual of 1e-30 and its square would be lost: scale that too.
            solve, size = lapack.spotrs, np.abs(right).max(axis=0, initial=1e-300)
        right = np.asfortranarray(right / size, self.lower.dtype)
        solved, _ = solve(self.lower, right, lower=1, overwrite_b=1)
        return np.asarray(solved * size / self.scale[:, None], np.float64)


def solve_each(
    factors: Sequence[Factor], which: NDArray[np.integer[Any]], right: NDArray[Any]
) -> NDArray[Any]:
    """The inverses times ``right`` (m, k): of each column, by the factor ``which`` (k,)."""
    out = np.empty_like(right)
    for number in np.unique(which):
        own = which == number
        out[:, own] = factors[number].solve(right[:, own])
    return out


def inverse_of(hessian: Array) -> Inverse:
    """The inverse of a joint Hessian (P, P)."""
    factor = Factor.of(hessian)

    def inverse(gradient: NDArray[Any]) -> NDArray[Any]:
        solved = factor.solve(gradient.T.reshape(-1, 1))
        shaped = solved.reshape(gradient.T.shape).T
        return np.ascontiguousarray(shaped, gradient.dtype)

    return inverse
