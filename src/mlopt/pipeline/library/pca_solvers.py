"""The ways of finding principal components, behind one signature.

Shapes: ``X`` is (n, d); ``k`` components, at most ``r = min(n, d)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.utils.extmath import svd_flip

from mlopt.gd import normal_equations, tsqr
from mlopt.pipeline.library.moments import column_moments, join
from mlopt.pipeline.library.pca_leading import leading, leading_exact
from mlopt.pipeline.library.pca_plan import Shape, is_tall
from mlopt.rows import Rows

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """Rows, what is wanted of them, and the randomness of the randomized solver."""

    rows: Rows
    shape: Shape
    random: np.random.RandomState


@dataclass(frozen=True)
class Spectrum:
    """The leading part of the SVD of the centred rows.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    singular : ndarray of shape (k,)
        Largest first.
    components : ndarray of shape (k, d)
        In each, the entry of largest magnitude is positive.
    total : float
        Sum of the squares of all singular values, found or not.
    notes : tuple of str
    """

    mean: Array
    singular: Array
    components: Array
    total: float
    notes: tuple[str, ...] = ()


def by_full_svd(task: Task) -> Spectrum:
    """The SVD of all rows, in this process."""
    X = task.rows.collect()
    mean = X.mean(axis=0, dtype=np.float64)
    np.subtract(X, mean, out=X, casting="same_kind")
    _, s, Vt = scipy.linalg.svd(
        X, full_matrices=False, overwrite_a=True, check_finite=False
    )
    return _spectrum(task, mean, s, Vt, float(np.square(s, dtype=np.float64).sum()))


def by_covariance(task: Task) -> Spectrum:
    """One pass for the Gram matrix of the centred rows, then its eigenvectors.

    Where these are rounding, and scikit-learn would not take them, rows are read again.
    """
    found = normal_equations.moments(_plain(task.rows), 0, True)
    d, k = task.rows.d, task.shape.components
    values, vectors = scipy.linalg.eigh(
        found.gram, subset_by_index=(d - k, d - 1), check_finite=False
    )
    squares = np.maximum(values[::-1], 0.0)
    total = max(float(found.gram.trace()), 0.0)
    notes: tuple[str, ...] = ()
    if lost := _lost(squares, d):
        why = f"{lost} of the variances are below the rounding error of a covariance matrix"
        if not is_tall(task.rows.n, d):
            return replace(by_tsqr(task), notes=(f"{why}, so rows were read again",))
        notes = (f'{why}; svd_solver="tsqr" resolves them',)
    return _spectrum(task, found.mean, np.sqrt(squares), vectors.T[::-1], total, notes)


def _lost(squares: Array, d: int) -> int:
    noise = d * np.finfo(np.float64).eps * squares.max(initial=0.0)
    return int((squares <= noise).sum())


def by_tsqr(task: Task) -> Spectrum:
    """A tall-skinny QR of the centred rows, then the SVD of its triangle."""
    found = tsqr.factor(_plain(task.rows), 0, True)
    # Centring takes one row away; where n <= d it would be the last component.
    missing = max(0, task.shape.rank - len(found.triangle))
    triangle = np.pad(found.triangle, ((0, missing), (0, 0)))
    _, s, Vt = scipy.linalg.svd(triangle, full_matrices=False, check_finite=False)
    return _spectrum(task, found.mean, s, Vt, float(np.square(s).sum()))


def by_randomized(task: Task) -> Spectrum:
    """A random sketch and power iterations: one pass each."""
    _, mean, squares = task.rows.map_reduce(column_moments, join)
    s, Vt = leading(task.rows, mean, task.shape.sketch, task.shape.iterations, task.random)
    return _spectrum(task, mean, s, Vt, float(squares.sum()))


def by_arpack(task: Task) -> Spectrum:
    """Lanczos: one pass for each product with a vector, until nothing changes."""
    k, d = task.shape.components, task.rows.d
    _, mean, squares = task.rows.map_reduce(column_moments, join)
    if not squares.any():  # ARPACK does not start where nothing varies
        return _spectrum(task, mean, np.zeros(k), np.eye(k, d), 0.0)
    s, Vt, passes = leading_exact(task.rows, mean, k, task.random)
    notes = (f"{passes} passes",)
    return _spectrum(task, mean, s, Vt, float(squares.sum()), notes)


def _plain(rows: Rows) -> Rows:
    """With the weights and targets that least squares expects: all one, and none."""
    none, ones = np.empty((rows.n, 0), rows.dtype), np.ones((rows.n, 1), rows.dtype)
    return rows.attach(targets=none, weights=ones)


def _spectrum(
    task: Task,
    mean: Array,
    singular: Array,
    Vt: Array,
    total: float,
    notes: tuple[str, ...] = (),
) -> Spectrum:
    k = task.shape.components
    _, components = svd_flip(None, np.array(Vt[:k]), u_based_decision=False)
    return Spectrum(mean, singular[:k], components, total, notes)


SOLVERS: dict[str, Callable[[Task], Spectrum]] = {
    "full-svd": by_full_svd,
    "covariance-eigh": by_covariance,
    "tsqr": by_tsqr,
    "randomized": by_randomized,
    "arpack": by_arpack,
}
