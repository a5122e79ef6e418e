"""Preconditioners from an approximate Gram matrix: that of a sample, or one in float32.

A sample of ``m`` rows has a Gram matrix whose directions are off by about ``sqrt(d / m)``,
however ill-conditioned the features are: conjugate gradients gain that factor in each step.
Rounding to float32 is off by 6e-8 of the largest eigenvalue, for half the memory traffic
and half the time of each product.

Avron, Maymounkov, Toledo, "Blendenpik", SIAM J. Sci. Comput. 32, 2010, section 3;
Carson, Higham, "Accelerating the solution of linear systems by iterative refinement in
three precisions", SIAM J. Sci. Comput. 40, 2018.

Shapes: ``d`` features, ``T`` targets.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from mlopt.errors import InputError
from mlopt.gd.column_sums import ColumnSums
from mlopt.gd.curvature import MAX_GROUPS
from mlopt.gd.panels import Layout, panel_gram
from mlopt.gd.preconditioner import merged
from mlopt.gd.sample import draw
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]

_UNSEEN = 0.25
"""A column with less than this share of its squares in the sample counts as unseen."""


@dataclass(frozen=True)
class GramInverse:
    """Cholesky factors of ``G + alpha I``, scaled to a unit diagonal.

    Attributes
    ----------
    factors : tuple of ndarray of shape (d, d)
        Lower triangles in column-major order, one for each distinct penalty.
    scales : tuple of ndarray of shape (d,)
        Square roots of the diagonals.
    which : ndarray of shape (T,)
        The factor of each target.
    """

    factors: tuple[NDArray[Any], ...]
    scales: tuple[Array, ...]
    which: NDArray[np.intp]

    def __call__(self, residual: Array, targets: NDArray[np.intp]) -> Array:
        """The inverse applied to the residuals (d, A) of the targets (A,) named."""
        out, which = np.empty_like(residual), self.which[targets]
        for number in np.unique(which):
            own, factor = which == number, self.factors[number]
            scale = self.scales[number][:, None]
            # In float32 a residual of 1e-30 and its square would be lost: scale that too.
            right = residual[:, own] / scale
            size = np.abs(right).max(axis=0, initial=1e-300)
            right = np.asfortranarray(right / size, factor.dtype)
            solve = lapack.spotrs if factor.dtype == np.float32 else lapack.dpotrs
            out[:, own] = solve(factor, right, lower=1, overwrite_b=1)[0] * size / scale
        return out


def of_sample(rows: Rows, size: int, sums: ColumnSums, alphas: Array) -> GramInverse:
    """From the Gram matrix of ``size`` rows, scaled up to the weight of all.

    Parameters
    ----------
    rows : Rows
        With "targets" and "weights" beside them.
    size : int
    sums : ColumnSums
        Of all rows.
    alphas : ndarray of shape (T,)
    """
    sample = draw(rows, size)
    gram = _centred_gram(sample, sums.mean, np.float64)
    weight = sample.map_reduce(_weight, operator.add)
    gram *= sums.weight / weight if weight > 0 else 0.0
    diagonal = np.einsum("ii->i", gram)
    # A rare column may be missing from the sample: its own scale is known all the same.
    unseen = diagonal < _UNSEEN * sums.squares
    diagonal[unseen] = sums.squares[unseen]
    return factorise(gram, merged(alphas, MAX_GROUPS))


def of_float32(rows: Rows, sums: ColumnSums, alphas: Array) -> GramInverse:
    """From the Gram matrix of all rows in float32; as `of_sample`."""
    gram = _centred_gram(rows, sums.mean, np.float32)
    return factorise(gram, merged(alphas, MAX_GROUPS))


def _centred_gram(rows: Rows, mean: Array, dtype: Any) -> NDArray[Any]:
    """Weighted Gram matrix (d, d) of the features less ``mean``."""
    return panel_gram(rows, Layout(mean[: rows.d], intercept=False), dtype)


def factorise(gram: NDArray[Any], alphas: Array) -> GramInverse:
    """One factor of ``gram`` (d, d) for each distinct penalty among ``alphas`` (T,)."""
    distinct, which = np.unique(alphas, return_inverse=True)
    made = [_factor(gram, alpha) for alpha in distinct]
    factors, scales = tuple(one[0] for one in made), tuple(one[1] for one in made)
    return GramInverse(factors, scales, which.ravel())


def _factor(gram: NDArray[Any], alpha: float) -> tuple[NDArray[Any], Array]:
    """The lower factor of ``gram + alpha I`` over its diagonal, and the root of that."""
    scale = np.sqrt(gram.diagonal().astype(np.float64) + alpha)
    scale[scale <= 0] = 1.0
    inverse = (1.0 / scale).astype(gram.dtype)
    cholesky = lapack.spotrf if gram.dtype == np.float32 else lapack.dpotrf
    lift = 4.0 * float(np.finfo(gram.dtype).eps)
    while lift < 1.0:
        scaled = np.multiply(gram, inverse, order="C")
        scaled *= inverse[:, None]
        np.einsum("ii->i", scaled)[:] = 1.0 + lift
        # The transpose of a symmetric matrix is itself, in the order that LAPACK wants.
        factor, failed = cholesky(scaled.T, lower=1, overwrite_a=1, clean=0)
        if not failed:
            return factor, scale
        lift *= 10.0
    raise InputError("The Gram matrix of X is not finite: scale the columns of X.")


def _weight(block: Block) -> float:
    return float(block.extra["weights"].sum(dtype=np.float64))
