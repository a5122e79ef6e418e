"""Least squares by a tall-skinny QR and the SVD of its factor: as accurate as it gets.

Every block is reduced to a triangle, triangles are stacked in pairs and reduced again; the
last one has the singular values of the whole matrix. Squaring the matrix, as the normal
equations do, would lose half the digits.

Demmel, Grigori, Hoemmen, Langou, "Communication-optimal parallel and sequential QR and LU
factorizations", SIAM J. Sci. Comput. 34, 2012, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mlopt.gd.panels import Layout, panels
from mlopt.gd.sizes import ROUNDED
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Factor:
    """What least squares needs to know of the rows.

    Attributes
    ----------
    mean : ndarray of shape (d + T,)
        Weighted means of features and targets; zeros without an intercept.
    triangle : ndarray of shape (r, d + T)
        ``triangle.T @ triangle`` is the weighted Gram matrix of the centred ``[X | y]``;
        not a triangle where rows are fewer than columns.
    """

    mean: Array
    triangle: Array


def factor(rows: Rows, outputs: int, intercept: bool) -> Factor:
    """Reduce ``rows`` with "targets" and "weights" beside them to one triangle."""
    layout = Layout.of(rows, outputs, intercept)
    stacked = rows.map_reduce(_reduce_block, stack, layout)
    if not intercept:
        return Factor(layout.shift, stacked)
    # Rows that are fewer than columns were not reduced: only the ones are eliminated.
    last = _reflected(stacked)
    return Factor(layout.shift + last[0, 1:] / last[0, 0], last[1:, 1:])


def _reduce_block(block: Block, layout: Layout) -> Array:
    stacked = np.empty((0, layout.columns))
    for panel in panels(block, layout):
        stacked = stack(stacked, panel)
    return stacked


def stack(above: Array, below: Array) -> Array:
    """Two matrices of m columns as one with the same Gram matrix and at most m rows."""
    both = np.concatenate((above, below))
    return _triangle(both) if len(both) > both.shape[1] else both


def _triangle(matrix: Array) -> Array:
    return np.asarray(np.linalg.qr(matrix, mode="r"))


def _reflected(matrix: Array) -> Array:
    """With the same Gram matrix, and a first column of which all but one value are 0."""
    across = matrix[:, 0].copy()
    across[0] += np.copysign(np.linalg.norm(across), across[0])
    across /= np.linalg.norm(across)
    return np.asarray(matrix - np.outer(2.0 * across, across @ matrix))


@dataclass(frozen=True)
class Solution:
    """Coefficients (d, T), the rank of the centred features, their singular values."""

    coef: Array
    rank: int
    singular: Array


def solve(factor: Factor, alphas: Array, cutoff: float | None = None) -> Solution:
    """Minimise ``||Xw - y||^2 + alpha ||w||^2``; of several minima, the one of least norm.

    Parameters
    ----------
    factor : Factor
    alphas : ndarray of shape (T,)
        Penalty of each target.
    cutoff : float, optional
        Singular values below ``cutoff`` times the largest count as zero. Without it those
        do that are rounding, and not only because columns have unlike units: these then
        get ones in which they are alike.
    """
    outputs = len(alphas)
    features, targets = factor.triangle[:, :-outputs], factor.triangle[:, -outputs:]
    least = ROUNDED if cutoff is None else cutoff
    found = _in_given_units(features, targets, alphas, least)
    # Of fewer rows than columns the penalties would be a matrix too large.
    if cutoff is None and found.rank < features.shape[1] <= len(features):
        alike = _in_units_alike(features, targets, alphas)
        return alike if alike.rank > found.rank else found
    return found


def _in_given_units(
    features: Array, targets: Array, alphas: Array, cutoff: float
) -> Solution:
    if features.size and not alphas.any():
        # Singular values alone, and what their vectors do to targets: a third of the work.
        found = scipy.linalg.lstsq(features, targets, cond=cutoff, check_finite=False)
        coef, _, rank, s = found
        return Solution(coef, int(rank), s)
    U, s, Vt = scipy.linalg.svd(features, full_matrices=False, check_finite=False)
    kept = s > cutoff * s.max(initial=0.0)
    U, s_kept, Vt = U[:, kept], s[kept, None], Vt[kept]
    coef = Vt.T @ ((U.T @ targets) * (s_kept / (s_kept**2 + alphas)))
    return Solution(coef, int(kept.sum()), s)


def _in_units_alike(features: Array, targets: Array, alphas: Array) -> Solution:
    """By columns of length 1, penalties as further rows below them."""
    d, rank, coef = features.shape[1], 0, np.empty((features.shape[1], len(alphas)))
    for alpha in np.unique(alphas):
        same = alphas == alpha
        matrix = np.concatenate((features, np.sqrt(alpha) * np.eye(d)))
        right = np.pad(targets[:, same], ((0, d), (0, 0)))
        unit = np.linalg.norm(matrix, axis=0)
        unit[unit == 0] = 1.0
        found = scipy.linalg.lstsq(matrix / unit, right, cond=ROUNDED, check_finite=False)
        coef[:, same], rank = found[0] / unit[:, None], max(rank, int(found[2]))
    return Solution(coef, rank, scipy.linalg.svdvals(features, check_finite=False))
