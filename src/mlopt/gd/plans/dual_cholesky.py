"""Least squares by the system of the rows, where they are fewer than columns.

    coef = X' (X X' + alpha I)^-1 y      for centred X and y, rows scaled by sqrt(weight)

Saunders, Gammerman, Vovk, "Ridge regression learning algorithm in dual variables", ICML
1998, equation (8).

Shapes: ``X`` (n, d), targets (n, T), coefficients (d, T).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.costs import Cost
from mlopt.gd.normal_equations import Moments, factor_cost
from mlopt.gd.passes import beside
from mlopt.gd.plans.closed import least_squares, penalised
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.squares import Fit, Squares
from mlopt.gd.plans.svd import instead
from mlopt.gd.plans.task import Problem
from mlopt.gd.pricing import Shape, scan, sparse_gram_operations
from mlopt.gd.ridge_path import solve_path
from mlopt.gd.row_products import PANELS, SUMS, beyond
from mlopt.gd.sizes import CACHE, LOST
from mlopt.kernels.linear import sparse_gram
from mlopt.kernels.one_row import squared_norms
from mlopt.resources import Resources
from mlopt.rows import Rows

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Dual:
    """Coefficients (d, T), means of features and targets (d + T,), and a bound on the
    relative error of the dual variables from rounding."""

    coef: Array
    mean: Array
    error: float


def solve_dual(rows: Rows, alphas: Array, intercept: bool, accuracy: float) -> Dual:
    """Gather the rows, and solve for a variable each.

    Parameters
    ----------
    rows : Rows
        With "targets" (n, T) and "weights" (n, 1) beside them.
    alphas : ndarray of shape (T,)
        All positive.
    intercept : bool
    accuracy : float
        Relative error of dual variables that is acceptable.
    """
    X, extra, n, outputs = rows.collect(), beside(rows), rows.n, len(alphas)
    targets, weights = (extra[k].astype(np.float64) for k in ("targets", "weights"))
    mean, center = np.zeros(rows.d), np.zeros(outputs)
    if intercept:
        share = weights[:, 0] / weights.sum()
        mean, center = np.asarray(share @ X, np.float64), share @ targets
    root = np.sqrt(weights)
    gram = np.zeros((n + outputs, n + outputs))
    apply = _Sparse(X, mean, root) if rows.sparse else Dense(X, mean, root)
    if rows.sparse and _loses(X, mean, weights[:, 0]):
        apply = Dense(X.tocsc(), mean, root)
    gram[:n, :n] = apply.gram()
    gram[:n, n:] = root * (targets - center)
    if intercept:
        # Centring takes a direction away that targets do not have either. With it, no
        # digits are lost to a penalty that is small beside the products.
        gram[:n, :n] += gram.trace() / n * (root * root.T) / float(np.sum(root**2))
    found = solve_path(Moments(mean, gram, outputs), alphas, accuracy)
    return Dual(apply.transposed(found.coef), np.r_[mean, center], found.error)


@dataclass(frozen=True, eq=False)
class Dense:
    """Rows less ``along`` times ``mean``, times ``root`` (n, 1) if any; some of their
    columns in float64 at a time.

    ``along`` is a number, or one for each row, (n, 1); X an ndarray, or of CSC.
    """

    X: Any
    mean: Array
    root: Array | None = None
    along: Any = 1.0

    def gram(self) -> Array:
        """Products of rows with each other, (n, n)."""
        n = self.X.shape[0]
        total = np.zeros((n, n))
        for columns in self._panels():
            part = self._part(columns)
            total += part @ part.T
        return total

    def transposed(self, dual: Array) -> Array:
        """Sums of the rows, weighted by ``dual`` (n, T)."""
        return np.concatenate([self._part(one).T @ dual for one in self._panels()])

    def _panels(self) -> list[slice]:
        n, d = self.X.shape
        step = max(64, CACHE // n)  # few calls of a product
        return [slice(a, min(a + step, d)) for a in range(0, d, step)]

    def _part(self, columns: slice) -> Array:
        part = self.X[:, columns]
        part = part.toarray() if sp.issparse(part) else part
        less = np.multiply(self.along, self.mean[columns])
        found: Array = np.subtract(part, less, out=less if less.ndim == 2 else None)
        return found if self.root is None else np.multiply(found, self.root, out=found)


@dataclass(frozen=True, eq=False)
class _Sparse:
    """The same without a dense copy: centres are taken off the products."""

    X: Any
    mean: Array
    root: Array

    def gram(self) -> Array:
        along = self.X @ self.mean
        total = row_products(self.X) - along[:, None] - along + self.mean @ self.mean
        return np.asarray(total * (self.root * self.root.T))

    def transposed(self, dual: Array) -> Array:
        scaled = self.root * dual
        return np.asarray(self.X.T @ scaled - np.outer(self.mean, scaled.sum(axis=0)))


def _loses(X: Any, mean: Array, weights: Array) -> bool:
    """Whether rows (n, d) are so far from zero that their products have not the digits."""
    squares = float(weights @ squared_norms(X).astype(np.float64))
    left = squares - float(weights.sum() * (mean @ mean))
    return bool(np.finfo(np.float64).eps * squares > LOST * left)


def row_products(X: Any) -> Array:
    """Products of rows (n, d) with each other, (n, n), in float64."""
    if sp.issparse(X):
        return sparse_gram(X.T.tocsr(), np.ones(X.shape[1]))
    if X.dtype == np.float64:
        return np.asarray(X @ X.T)
    return Dense(X, np.zeros(X.shape[1])).gram()


def by_rows(squares: Squares) -> Fit:
    """Gathered in one process; by a QR where the system loses too many digits."""
    found = solve_dual(squares.rows, squares.alphas, squares.intercept, squares.accuracy)
    if found.error > squares.accuracy:
        return instead(squares, f"they may be off by {found.error:.0e}")
    return Fit(found.coef, found.mean, "dual_cholesky")


def why_not(outline: Outline, resources: Resources) -> str | None:
    """Why a problem is not one for the products of its rows with each other, or None."""
    return penalised(outline) or too_many(outline.shape, resources)


def too_many(shape: Shape, resources: Resources) -> str | None:
    """Why there are too many rows for products of all of them, if there are."""
    if shape.n > shape.d:
        return f"has more equations, {shape.n}, than there are columns, {shape.d}"
    needed = 4 * 8.0 * shape.n**2 + 2.0 * shape.nonzero * shape.itemsize
    return beyond(needed, resources, "all rows")


def _cost(outline: Outline, resources: Resources, passes: float) -> Cost | str:
    del passes
    return why_not(outline, resources) or with_products(outline.shape, resources)


def with_products(shape: Shape, resources: Resources) -> Cost:
    """Of products of all rows with each other, a factor, and a combination of rows."""
    n, remote = shape.n, resources.remote
    products = float(n) ** 2 * shape.d
    if shape.sparse:
        products = sparse_gram_operations(shape.d, shape.nonzero / shape.d)
    last = Cost(flops=4.0 * shape.nonzero * shape.columns)
    gathered = Cost(network=float(shape.nonzero * shape.itemsize) if remote else 0.0)
    reading = scan(shape, resources, 0.0, times=PANELS)
    sums = Cost(memory=SUMS * 8.0 * n**2)
    made = replace(reading, flops=products)
    return made + sums + factor_cost(n) + last + gathered


def _small(problem: Problem) -> bool:
    """As of the normal equations, the other way round."""
    rows, models = problem.rows, problem.models
    return not rows.sparse and rows.n < rows.d and all(model.l2 > 0 for model in models)


DUAL_CHOLESKY = least_squares("dual_cholesky", _cost, by_rows, small=_small, least=1)
