"""Mixtures of Gaussians with diagonal covariances, by EM on blocks of rows.

Shapes: X is (n, d); a mixture has weights (k,), means (k, d) and variances (k, d).

The densities of all components are two matrix products,

    -2 log N(x | k) = (x^2) . (1 / s_k) - 2 x . (m_k / s_k) + sum(m_k^2 / s_k) + const_k

and are added up through the largest (log-sum-exp). Rows are taken less the mean of all of
them, so that no digits are lost far from zero. Each iteration is one pass.

Dempster, Laird, Rubin, "Maximum likelihood from incomplete data via the EM algorithm",
1977. Sanchez, Perronnin, Mensink, Verbeek, "Image classification with the Fisher vector",
IJCV 105, 2013, appendix B, for the floor under the variances.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import between_passes
from mlopt.pipeline.library.moments import Summed
from mlopt.pipeline.library.pca_leading import centred_panels
from mlopt.rows import Block, Rows

Array = NDArray[Any]

_FEW = 10 * np.finfo(np.float64).eps
"""Rows of a component up to which it stays where it is."""


@dataclass(frozen=True)
class Mixture:
    """``sum_k weights[k] N(x | means[k], diag(variances[k]))``."""

    weights: Array
    means: Array
    variances: Array

    def moved(self, shift: Array) -> Mixture:
        """The mixture of rows that are ``shift`` (d,) larger."""
        return replace(self, means=self.means + shift)

    def astype(self, dtype: Any) -> Mixture:
        """In another type of numbers."""
        parts = (self.weights, self.means, self.variances)
        return Mixture(*(part.astype(dtype, copy=False) for part in parts))


@dataclass(frozen=True)
class Sums(Summed):
    """What EM needs of rows: added up over blocks.

    Attributes
    ----------
    counts : ndarray of shape (k,)
        Posteriors.
    first, second : ndarray of shape (k, d)
        Rows, and their squares, times posteriors.
    likelihood : float
        Sum of log densities.
    """

    counts: Array
    first: Array
    second: Array
    likelihood: float


@dataclass(frozen=True)
class Outcome:
    """Where EM ended; ``bound`` is the mean log density before the last step."""

    mixture: Mixture
    bound: float
    iterations: int
    converged: bool


def posteriors(X: Array, mixture: Mixture) -> tuple[Array, Array]:
    """The share of each component in each row, (n, k), and log densities, (n,)."""
    inverse = 1.0 / mixture.variances
    scaled = mixture.means * inverse
    constant = np.einsum("kd,kd->k", mixture.means, scaled)
    constant += np.log(mixture.variances).sum(axis=1)
    constant += X.shape[1] * np.log(2 * np.pi)
    with np.errstate(divide="ignore"):  # the logarithm of a weight that is zero
        constant = np.log(mixture.weights) - 0.5 * constant
    logs = X @ scaled.T
    logs -= 0.5 * (np.square(X) @ inverse.T)
    logs += constant.astype(X.dtype)
    largest = logs.max(axis=1, keepdims=True)
    logs -= largest
    shares = np.exp(logs, out=logs)
    totals = shares.sum(axis=1, keepdims=True)
    shares /= totals
    return shares, (largest + np.log(totals))[:, 0]


def fit_mixture(
    rows: Rows, centres: Array, shift: Array, floor: Array, tol: float, max_iter: int
) -> Outcome:
    """Move a mixture to where rows are likely, until that hardly changes.

    Parameters
    ----------
    rows : Rows
        Dense.
    centres : ndarray of shape (k, d)
        Each row belongs to the nearest at first.
    shift : ndarray of shape (d,)
        Taken off rows and centres on the way: the mean of the rows.
    floor : ndarray of shape (d,)
        Under the variances.
    tol : float
        Done when the mean log density changes by less.
    max_iter : int
    """
    k, d = centres.shape
    start = Mixture(np.full(k, 1.0 / k), centres - shift, np.ones((k, d)))
    with between_passes():
        sums = rows.map_reduce(_sums, Sums.__add__, start, shift, True)
        mixture = _maximum(sums, start, floor)
        bound, converged, iterations = -np.inf, False, 0
        while iterations < max_iter and not converged:
            sums = rows.map_reduce(_sums, Sums.__add__, mixture, shift, False)
            mixture = _maximum(sums, mixture, floor)
            before, bound = bound, sums.likelihood / rows.n
            converged = abs(bound - before) < tol
            iterations += 1
    return Outcome(mixture.moved(shift), bound, iterations, converged)


def _sums(block: Block, mixture: Mixture, shift: Array, nearest: bool) -> Sums:
    """Of one block; ``nearest`` gives each row to its likeliest component whole."""
    k, d = mixture.means.shape
    total = Sums(np.zeros(k), np.zeros((k, d)), np.zeros((k, d)), 0.0)
    for panel in centred_panels(block.X, shift):
        X = panel.astype(np.float64, copy=False)
        shares, logs = posteriors(X, mixture)
        if nearest:
            shares = np.eye(k)[shares.argmax(axis=1)]
        second = shares.T @ np.square(X)
        total += Sums(shares.sum(axis=0), shares.T @ X, second, float(logs.sum()))
    return total


def _maximum(sums: Sums, before: Mixture, floor: Array) -> Mixture:
    """The likeliest mixture for these posteriors; empty components stay."""
    full = (sums.counts > _FEW)[:, None]
    counts = np.where(full, sums.counts[:, None], 1.0)
    means = np.where(full, sums.first / counts, before.means)
    spread = sums.second / counts - np.square(means)
    variances = np.maximum(np.where(full, spread, before.variances), floor)
    return Mixture(sums.counts / sums.counts.sum(), means, variances)
