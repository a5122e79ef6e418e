"""Dual coordinate descent for logistic regression: arrays in, arrays out.

Yu, Huang, Lin, "Dual coordinate descent methods for logistic regression and maximum
entropy models", Machine Learning 85, 2011. With the intercept ``b`` given, the primal is

    min_w  1/2 ||w||^2 + sum_i cost_i log(1 + exp(-m_i)),  m_i = y_i (w.x_i + b)

where the last entry of ``w`` belongs to a constant feature of value ``bias``. Its dual has
one variable a row, ``0 <= alpha_i <= cost_i``, and ``w = sum_i alpha_i y_i x_i``. All
others fixed, ``alpha_i`` is best where

    alpha_i = cost_i / (1 + exp(m_i)),  m_i = m_i' + ||x_i||^2 (alpha_i - alpha_i')

of which the margin ``m_i`` is the one unknown: its equation only grows with it, has no
logarithm of what is nearly 0, and Newton's method solves it in a few steps, from the margin
at which the variable would be best as it is. Between that and ``m_i'`` lies the solution.

Shapes: ``n`` rows, ``d`` columns; rows as in `mlopt.kernels.one_row`. ``w`` is
``(d + 1,)``; ``sign``, ``costs``, ``norms`` (squared, without the constant feature),
``alpha`` and ``margins`` are ``(n,)``, all float64 whatever the dtype of ``X``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, read_only
from mlopt.kernels.one_row import AHEAD, Rows, add, dot, fetch, layout, shuffle
from mlopt.kernels.simd import prefetch

Array = NDArray[Any]

_NEAR = 1e-6
"""Newton's steps are over where one is shorter, relative to the margin: it squares errors,
so that the next one would change the last digits."""
FAR = 700.0
"""A margin of which the exponential still is a number."""
_STEPS = 60
"""At most: as many halvings leave nothing of a bracket."""


@inlined
def _share(m: float) -> float:
    """Of its cost, the variable that is best at a margin."""
    return 1.0 / (1.0 + math.exp(min(m, FAR)))


@inlined
def _solved(margin: float, old: float, norm: float, cost: float, alpha: float) -> float:
    """The margin at which a row's variable is best, from ``margin`` and ``old``.

    Newton's steps; halvings of the bracket where these would leave it, or are not half as
    long as the last but one: between two sides of a bend they may go back and forth.
    """
    low, high = min(margin, old), max(margin, old)
    m, before, last = old, 4.0 * (high - low), 4.0 * (high - low)
    for _ in range(_STEPS):
        share = _share(m)
        left = m - margin - norm * (cost * share - alpha)
        if left > 0.0:
            high = min(high, m)
        else:
            low = max(low, m)
        to = m - left / (1.0 + norm * cost * share * (1.0 - share))
        newton = low <= to <= high and abs(to - m) <= 0.5 * before
        if not newton:
            to = 0.5 * (low + high)
        before, last, m = last, abs(to - m), to
        near = _NEAR * (1.0 + abs(m))
        if last <= near and (newton or high - low <= near):
            break
    return m


@kernel
def _epoch(
    rows: Rows,
    norms: Array,
    sign: Array,
    costs: Array,
    bias: float,
    intercept: float,
    alpha: Array,
    margins: Array,
    w: Array,
    order: Array,
    random: Array,
) -> float:
    n, d, most = order.shape[0], w.shape[0] - 1, 0.0
    shuffle(order, n, random)
    for position in range(n):
        i, later = order[position], order[min(position + AHEAD, n - 1)]
        fetch(rows, later)
        prefetch(norms, later)
        prefetch(sign, later)
        prefetch(costs, later)
        prefetch(alpha, later)
        prefetch(margins, later)
        cost = costs[i]
        if cost <= 0.0:  # its loss is free
            continue
        z = dot(rows, i, w) + bias * w[d] + intercept
        margin, norm = sign[i] * z, norms[i] + bias * bias
        most = max(most, abs(margin - margins[i]) / (1.0 + abs(margin)))
        m = _solved(margin, margins[i], norm, cost, alpha[i])
        best = cost * _share(m)
        step = sign[i] * (best - alpha[i])
        alpha[i], margins[i] = best, m
        if step != 0.0:
            add(rows, i, step, w)
            w[d] += step * bias
    return most


def dual_logistic_epoch(
    X: Any,
    norms: Array,
    sign: Array,
    costs: Array,
    *,
    bias: float,
    intercept: float,
    alpha: Array,
    margins: Array,
    w: Array,
    order: Array,
    random: Array,
) -> float:
    """Each variable in turn at its best, in random order.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, d)
    norms, sign, costs : ndarray of shape (n,)
    bias : float
    intercept : float
    alpha, margins : ndarray of shape (n,)
        Variables, and the margins at which they would be best; changed in place.
    w : ndarray of shape (d + 1,)
        What the variables add up to; changed in place.
    order : ndarray of shape (n,), int64
        Of the rows; shuffled in place.
    random : ndarray of shape (1,), int64
        See `mlopt.kernels.one_row.seeded`.

    Returns
    -------
    float
        How far a margin was from where its variable was best, at most, relative to it.
    """
    given = layout(X), *map(read_only, (norms, sign, costs)), float(bias), float(intercept)
    return float(_epoch(*given, alpha, margins, w, order, random))


def variables(sign: Array, costs: Array, norms: Array, intercept: float) -> Array:
    """To begin with, (n,): the best of rows that meet no other one, and no more than that
    of zero weights."""
    with np.errstate(divide="ignore", over="ignore"):
        alone = np.where(norms > 0, 1.0 / norms, np.inf)
        return np.minimum(costs / (1.0 + np.exp(sign * intercept)), alone)
