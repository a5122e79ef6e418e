"""The first guess of the inverse Hessians of many columns.

Cholesky factors of the shared Hessians plus each penalty where ``d`` is moderate, and
otherwise diagonals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import Executor
from mlopt.gd.columns import Indices, Layout
from mlopt.gd.curvature import Hessians
from mlopt.gd.joint_hessian import Factor, solve_each
from mlopt.gd.passes import Floats
from mlopt.locking import cached_property


class Preconditioner(ABC):
    """Approximate inverse Hessians, one for each column: symmetric, positive definite."""

    rescaled: bool
    """Whether the newest curvature pair should set its overall scale."""

    @abstractmethod
    def __call__(self, gradient: Floats) -> Floats:
        """``H g`` of every column, (d + 1, B), in a new array."""

    @abstractmethod
    def take(self, columns: Indices) -> Preconditioner:
        """That of some columns."""


@dataclass(frozen=True)
class Diagonal(Preconditioner):
    """``g / (moments * mean curvature + l2)``.

    Attributes
    ----------
    squares : ndarray of shape (d + 1,)
        Mean squares of the columns of X, and 1 for the intercept.
    mean : ndarray of shape (B,)
        Mean curvature of each column.
    l2, intercept_l2 : ndarray of shape (B,)
    """

    squares: Floats
    mean: Floats
    l2: Floats
    intercept_l2: Floats
    rescaled = True

    def __call__(self, gradient: Floats) -> Floats:
        """``H g`` of every column."""
        return (gradient / self._curvatures).astype(gradient.dtype)

    @cached_property
    def _curvatures(self) -> NDArray[np.float64]:
        below = np.multiply.outer(self.squares, self.mean).astype(np.float64)
        below[:-1] += self.l2
        below[-1] += self.intercept_l2
        # A column of zeros without penalty has no gradient either.
        return np.asarray(np.maximum(below, 1e-12 * below.max(axis=0), out=below))

    def take(self, columns: Indices) -> Diagonal:
        """That of some columns."""
        c = columns
        return Diagonal(self.squares, self.mean[c], self.l2[c], self.intercept_l2[c])


@dataclass(frozen=True)
class Factors(Preconditioner):
    """Factors of Hessian plus penalty, each for a few columns.

    Attributes
    ----------
    factors : tuple of Factor
    which : ndarray of shape (B,)
        The factor of each column.
    kinds : ndarray of shape (B, 4)
        What each column's factor was made of; see `kinds_of`.
    """

    factors: tuple[Factor, ...]
    which: Indices
    kinds: NDArray[np.float64]
    rescaled = False

    def __call__(self, gradient: Floats) -> Floats:
        """``H g`` of every column."""
        return solve_each(self.factors, self.which, gradient)

    def take(self, columns: Indices) -> Factors:
        """Those of some columns."""
        return Factors(self.factors, self.which[columns], self.kinds[columns])


def factorise(
    hessians: Hessians, kinds: NDArray[np.float64], executor: Executor
) -> Factors:
    """Cholesky factors for all columns, one for each distinct row of ``kinds``.

    Parameters
    ----------
    hessians : Hessians
    kinds : ndarray of shape (B, 4)
        See `kinds_of`.
    executor : Executor
        Where factors are made, in parallel.
    """
    distinct, which = np.unique(kinds, axis=0, return_inverse=True)
    tasks = [(hessians.matrices[int(kind[0])], kind) for kind in distinct]
    factors = tuple(executor.map(_factor, tasks))
    return Factors(factors, which.ravel().astype(np.int64), kinds)


def kinds_of(group: Indices, plan: Layout, limit: int) -> NDArray[np.float64]:
    """Group, penalties and whether there is an intercept, for every column, (B, 4).

    At most ``limit`` penalties a group: neighbours then share their geometric mean.
    """
    l2 = np.empty_like(plan.l2)
    for g in range(int(group.max()) + 1):
        own = group == g
        l2[own] = merged(plan.l2[own], limit)
    ties = np.divide(plan.intercept_l2, plan.l2, out=np.zeros_like(l2), where=plan.l2 > 0)
    below = np.where(plan.l2 > 0, l2 * ties, plan.intercept_l2)
    return np.stack([group, l2, below, plan.with_intercept], axis=1)


def merged(l2: NDArray[np.float64], limit: int) -> NDArray[np.float64]:
    """The penalties, neighbours replaced by their geometric mean until few are left."""
    distinct, inverse = np.unique(l2, return_inverse=True)
    if len(distinct) <= limit:
        return l2
    logs = np.log(np.maximum(distinct, 1e-300))
    bins = np.minimum((np.arange(len(logs)) * limit) // len(logs), limit - 1)
    means = np.bincount(bins, logs) / np.bincount(bins)
    return np.asarray(np.exp(means)[bins][inverse])


def _factor(task: tuple[Floats, NDArray[np.float64]]) -> Factor:
    hessian, (_, l2, intercept_l2, with_intercept) = task
    added = np.append(np.full(len(hessian) - 1, l2), intercept_l2)
    if not with_intercept:
        hessian = hessian.copy()
        hessian[-1, :-1] = hessian[:-1, -1] = 0.0
    return Factor.of(hessian, added)
