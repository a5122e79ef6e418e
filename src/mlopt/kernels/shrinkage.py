"""Coordinate descent on a quadratic model with an elastic net, over chosen columns.

Minimises ``g'd + 1/2 sum_i h_i (x_i'd)^2 + l1 ||w + d||_1 + l2/2 ||w + d||^2`` over ``d``,
along one column at a time; each step is exact, and soft-thresholded:
``w_j <- S(w_j - g_j / H_j, l1 / H_j)`` (Friedman, Hastie, Tibshirani, "Regularization paths
for generalized linear models via coordinate descent", J. Stat. Softw. 33, 2010). For the
squared loss the model is the objective; for others it is that of a Newton step.

An intercept is eliminated, not visited: columns count as if their weighted means had been
taken off, which changes no value of a sparse column.

Shapes: ``n`` rows, ``d`` columns. The matrix is given transposed, rows as in
`mlopt.kernels.one_row`. ``slopes, h`` are (n,); ``w, H, mean`` are (d,).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, read_only
from mlopt.kernels.one_row import Rows, add, dot, layout

Array = NDArray[Any]


@inlined
def _add_weighted(rows: Rows, j: int, step: float, h: Array, slopes: Array) -> None:
    """Add ``step h`` times column ``j``; ``h`` has one value where all are the same."""
    X, data, indices, indptr = rows
    if h.shape[0] == 1:
        add(rows, j, step * h[0], slopes)
    elif X.shape[0] > 0:
        for i in range(X.shape[1]):
            slopes[i] += step * h[i] * X[j, i]
    else:
        for k in range(indptr[j], indptr[j + 1]):
            row = np.uint64(indices[k])
            slopes[row] += step * h[row] * data[k]


@inlined
def _shrunk(old: float, g: float, H: float, l1: float, positive: bool) -> float:
    """Where the objective is least along one column."""
    target, most = old - g / H, l1 / H
    if target > most:
        return target - most
    if target < -most and not positive:
        return target + most
    return 0.0


@kernel
def _sweep(
    rows: Rows, order: Array, h: Array, weight: float, mean: Array, H: Array, l1: float,
    l2: float, positive: bool, slopes: Array, shift: Array, w: Array,
) -> float:  # fmt: skip
    worst = 0.0
    for position in range(order.shape[0]):
        j = order[position]
        if H[j] <= 0.0:
            continue
        old, curvature = w[j], H[j] + l2
        # Slopes of a column less its mean, where ``shift`` is what all rows moved by.
        g = dot(rows, j, slopes) + l2 * old
        g += shift[0] * weight * mean[j]
        new = _shrunk(old, g, curvature, l1, positive)
        if new != old:
            w[j] = new
            _add_weighted(rows, j, new - old, h, slopes)
            shift[0] -= (new - old) * mean[j]
            worst = max(worst, abs(new - old) * curvature)
    return worst


@inlined
def _step_gram(
    Q: Array, j: int, l1: float, l2: float, positive: bool, g: Array, w: Array
) -> float:
    """How far one weight is from its optimum."""
    if Q[j, j] <= 0.0:
        return 0.0
    old, H = w[j], Q[j, j] + l2
    step: float = _shrunk(old, g[j] + l2 * old, H, l1, positive) - old
    return step


@inlined
def _visit_gram(
    Q: Array, j: int, l1: float, l2: float, positive: bool, g: Array, w: Array
) -> float:
    """Move one weight to its optimum; by how much."""
    step: float = _step_gram(Q, j, l1, l2, positive, g, w)
    if step != 0.0:
        w[j] += step
        for i in range(w.shape[0]):
            g[i] += step * Q[j, i]
    return step


@kernel
def _sweep_gram(
    Q: Array, l1: float, l2: float, positive: bool, g: Array, w: Array
) -> float:
    worst = 0.0
    for j in range(w.shape[0]):
        step = _visit_gram(Q, j, l1, l2, positive, g, w)
        worst = max(worst, abs(step) * (Q[j, j] + l2))
    return worst


@inlined
def _is_minimum(
    Q: Array, l1: float, l2: float, positive: bool, g: Array, w: Array, gap: float,
    still: float,
) -> bool:  # fmt: skip
    worst = longest = largest = norm = 0.0
    for j in range(w.shape[0]):
        step = abs(_step_gram(Q, j, l1, l2, positive, g, w))
        worst, longest = max(worst, step * (Q[j, j] + l2)), max(longest, step)
        largest, norm = max(largest, abs(w[j])), norm + abs(w[j])
    return worst * norm <= gap and (longest == 0.0 or longest <= still * largest)


@kernel
def _descend_gram(
    Q: Array, l1: float, l2: float, positive: bool, g: Array, w: Array, gap: float,
    still: float, most: int,
) -> int:  # fmt: skip
    visits, whole = 0, True
    for _ in range(most):
        longest = largest = 0.0
        for j in range(w.shape[0]):
            if whole or w[j] != 0.0:
                step = abs(_visit_gram(Q, j, l1, l2, positive, g, w))
                longest, largest = max(longest, step), max(largest, abs(w[j]))
                visits += 1
        whole = longest == 0.0 or longest <= still * largest
        if whole and _is_minimum(Q, l1, l2, positive, g, w, gap, still):
            break
    return visits


@inlined
def _sums(x: Array, h: Array) -> Any:
    """``sum_i h_i x_i`` and ``sum_i h_i x_i^2``, two sums of each: see `dot`."""
    a = b = c = e = 0.0
    whole = x.shape[0] - x.shape[0] % 2
    for i in range(0, whole, 2):
        p, q = h[i] * x[i], h[i + 1] * x[i + 1]
        a += p
        b += q
        c += p * x[i]
        e += q * x[i + 1]
    for i in range(whole, x.shape[0]):
        a += h[i] * x[i]
        c += h[i] * x[i] * x[i]
    return a + b, c + e


@kernel
def _moments(rows: Rows, order: Array, h: Array, sums: Array, squares: Array) -> None:
    X, data, indices, indptr = rows
    for position in range(order.shape[0]):
        j = order[position]
        if X.shape[0] > 0:
            sums[j], squares[j] = _sums(X[j], h)
        else:
            a = b = 0.0
            for k in range(indptr[j], indptr[j + 1]):
                weighted = h[np.uint64(indices[k])] * data[k]
                a += weighted
                b += weighted * data[k]
            sums[j], squares[j] = a, b


def column_moments(
    columns: Any, order: NDArray[np.int64], h: Array
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``sum_i h_i x_ij`` and ``sum_i h_i x_ij^2`` of the columns named, elsewhere 0.

    Parameters
    ----------
    columns : ndarray or CSR array of shape (d, n)
        The transpose of the matrix.
    order : ndarray of int64
        Column numbers.
    h : ndarray of shape (n,), float64

    Returns
    -------
    sums, squares : ndarray of shape (d,)
    """
    sums, squares = np.zeros((2, columns.shape[0]))
    _moments(layout(columns), read_only(order), read_only(h), sums, squares)
    return sums, squares


def shrink(
    columns: Any,
    order: NDArray[np.int64],
    *,
    h: Array,
    weight: float,
    mean: Array,
    H: Array,
    l1: float,
    l2: float,
    positive: bool,
    slopes: Array,
    shift: Array,
    w: Array,
) -> float:
    """Visit columns once, in the given order; ``slopes, shift, w`` change in place.

    Parameters
    ----------
    columns : ndarray or CSR array of shape (d, n)
        The transpose of the matrix.
    order : ndarray of int64
        Column numbers.
    h : ndarray of shape (n,) or (1,), float64
        Curvatures of the losses; one where all are the same.
    weight : float
        The sum of the curvatures of all rows.
    mean : ndarray of shape (d,), float64
        Means of the columns with weights ``h``; zeros without an intercept.
    H : ndarray of shape (d,), float64
        Curvatures along the columns less their means, without the penalty.
    l1, l2 : float
    positive : bool
        Whether no weight may be negative.
    slopes : ndarray of shape (n,), float64
        Slopes of the model, without what ``shift`` adds: those of row i are
        ``slopes[i] + shift[0] h_i``.
    shift : ndarray of shape (1,), float64
        What the intercept moved by, eliminated.
    w : ndarray of shape (d,), float64

    Returns
    -------
    float
        How far a column's gradient was from its optimum, at most.
    """
    found = _sweep(
        layout(columns), read_only(order), read_only(h), float(weight), read_only(mean),
        read_only(H), float(l1), float(l2), bool(positive),
        slopes, shift, w,
    )  # fmt: skip
    return float(found)


def shrink_gram(
    Q: Array, *, l1: float, l2: float, positive: bool, g: Array, w: Array
) -> float:
    """As `shrink`, by the Gram matrix of the columns; ``g, w`` change in place.

    A visit costs k where the weight moves and next to nothing where it does not.

    Parameters
    ----------
    Q : ndarray of shape (k, k), float64
        Second derivatives of the model, without the penalty; 0 on the diagonal for columns
        that are left out.
    l1, l2 : float
    positive : bool
    g : ndarray of shape (k,), float64
        Slopes of the model along the columns, without the penalty.
    w : ndarray of shape (k,), float64

    Returns
    -------
    float
        How far a column's gradient was from its optimum, at most.
    """
    return float(_sweep_gram(read_only(Q), float(l1), float(l2), bool(positive), g, w))


def descend_gram(
    Q: Array, *, l1: float, l2: float, positive: bool, g: Array, w: Array,
    gap: float, still: float, most: int,
) -> int:  # fmt: skip
    """Sweeps as `shrink_gram`, over all columns and then over those that have a weight.

    Parameters
    ----------
    Q, l1, l2, positive, g, w
        See `shrink_gram`.
    gap : float
        Done when no gradient is farther from its optimum than so much, divided by the sum
        of the weights' sizes,
    still : float
        and no weight is, than so many times the largest.
    most : int
        Sweeps, at most.

    Returns
    -------
    int
        Columns that were visited.
    """
    found = _descend_gram(
        read_only(Q), float(l1), float(l2), bool(positive), g, w, float(gap),
        float(still), int(most),
    )  # fmt: skip
    return int(found)
