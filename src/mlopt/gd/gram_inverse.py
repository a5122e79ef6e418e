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

from mlopt.errors import InputError
from mlopt.gd.column_sums import ColumnSums
from mlopt.gd.curvature import MAX_GROUPS, weight_sums
from mlopt.gd.joint_hessian import Factor, solve_each
from mlopt.gd.panels import Layout, panel_gram
from mlopt.gd.preconditioner import merged
from mlopt.gd.sample import draw
from mlopt.rows import Rows

Array = NDArray[np.float64]

UNSEEN = 0.25
"""A column with less than this share of its squares in the sample counts as unseen."""


@dataclass(frozen=True)
class GramInverse:
    """Factors of ``G + alpha I``.

    Attributes
    ----------
    factors : tuple of Factor
        One for each distinct penalty.
    which : ndarray of shape (T,)
        The factor of each target.
    """

    factors: tuple[Factor, ...]
    which: NDArray[np.intp]

    def __call__(self, residual: Array, targets: NDArray[np.intp]) -> Array:
        """The inverse applied to the residuals (d, A) of the targets (A,) named."""
        return solve_each(self.factors, self.which[targets], residual)


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
    weight = float(sample.map_reduce(weight_sums, operator.add)[0])
    gram *= sums.weight / weight if weight > 0 else 0.0
    diagonal = np.einsum("ii->i", gram)
    # A rare column may be missing from the sample: its own scale is known all the same.
    unseen = diagonal < UNSEEN * sums.squares
    diagonal[unseen] = sums.squares[unseen]
    return factorise(gram, merged(alphas, MAX_GROUPS))


def of_float32(rows: Rows, sums: ColumnSums, alphas: Array) -> GramInverse:
    """From the Gram matrix of all rows in float32; as `of_sample`."""
    within_float32(sums)
    gram = _centred_gram(rows, sums.mean, np.float32)
    return factorise(gram, merged(alphas, MAX_GROUPS))


def within_float32(sums: ColumnSums) -> None:
    """Refuse rows of which products with each other may overflow float32."""
    if sums.squares.sum() > np.finfo(np.float32).max:
        raise InputError("The Gram matrix of X overflows float32: scale the columns of X.")


def _centred_gram(rows: Rows, mean: Array, dtype: Any) -> NDArray[Any]:
    """Weighted Gram matrix (d, d) of the features less ``mean``."""
    return panel_gram(rows, Layout(mean[: rows.d], intercept=False), dtype)


def factorise(gram: NDArray[Any], alphas: Array) -> GramInverse:
    """One factor of ``gram`` (d, d) for each distinct penalty among ``alphas`` (T,)."""
    distinct, which = np.unique(alphas, return_inverse=True)
    # However many columns: a penalty makes up for their roundings.
    factors = tuple(Factor.of(gram, alpha, roundings=4) for alpha in distinct)
    return GramInverse(factors, which.ravel())
