"""Matrix factorization by stochastic gradient descent: a step for each rating of a shelf.

A shelf holds ratings of one stratum of users and one block of items, as numbers within
these. Factors are rows of ``width`` float32, filled up with zeros to whole lanes, which
stay zero. The error of a rating and its steps are::

    e = r - mean - b_u - c_i - p_u q_i
    b_u += rate (e - penalty b_u)          p_u += rate (e q_i - penalty p_u)
    c_i += rate (e - penalty c_i)          q_i += rate (e p_u - penalty q_i)

with the factors of before on the right. Non-negative factors are cut off at zero after each
step. Source: Koren, Bell, Volinsky, "Matrix factorization techniques for recommender
systems", Computer 42, 2009; shelves: Gemulla et al., "Large-scale matrix factorization with
distributed stochastic gradient descent", KDD 2011.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, read_only
from mlopt.kernels.simd import (
    lane_count,
    like,
    load,
    muladd,
    prefetch,
    select,
    splat,
    store,
    total,
)

Array = NDArray[Any]

LANES = lane_count(np.dtype(np.float32).itemsize)
"""Factors of a row come in multiples of this."""
_AHEAD = 8
"""Ratings: so far ahead of its turn a row of factors is asked for."""


@inlined
def _product(P: Array, p: int, Q: Array, q: int, width: int) -> Any:
    a = b = splat(like(P[0, 0], 0.0))
    even = width - width % (2 * LANES)
    for j in range(0, even, 2 * LANES):
        a = muladd(load(P, p + j), load(Q, q + j), a)
        b = muladd(load(P, p + j + LANES), load(Q, q + j + LANES), b)
    if even < width:
        a = muladd(load(P, p + even), load(Q, q + even), a)
    return total(a + b)


@inlined
def _move(
    P: Array, p: int, Q: Array, q: int, width: int, step: Any, keep: Any, cut: bool
) -> None:
    """Both rows: what is kept of each, and ``step`` times the other."""
    zero = splat(like(P[0, 0], 0.0))
    for j in range(0, width, LANES):
        x, y = load(P, p + j), load(Q, q + j)
        new_x, new_y = muladd(step, y, keep * x), muladd(step, x, keep * y)
        if cut:
            new_x = select(new_x > zero, new_x, zero)
            new_y = select(new_y > zero, new_y, zero)
        store(P, p + j, new_x)
        store(Q, q + j, new_y)


@inlined
def _steps(
    users: Array, items: Array, ratings: Array, P: Array, Q: Array, b: Array, c: Array,
    width: int, mean: Any, rate: Any, penalty: Any, biased: bool, cut: bool,
) -> float:  # fmt: skip
    n = ratings.shape[0]
    kept = like(rate, 1.0) - rate * penalty
    keep, loss = splat(kept), 0.0
    for j in range(n):
        later = min(j + _AHEAD, n - 1)
        prefetch(P, users[later] * width)
        prefetch(Q, items[later] * width)
        u, i = np.uint64(users[j]), np.uint64(items[j])
        p, q = users[j] * width, items[j] * width
        e = ratings[j] - _product(P, p, Q, q, width)
        if biased:
            old_b, old_c = b[u], c[i]
            e -= mean + old_b + old_c
            b[u] = kept * old_b + rate * e
            c[i] = kept * old_c + rate * e
        loss += e * e
        _move(P, p, Q, q, width, splat(rate * e), keep, cut)
    return loss


@kernel
def _visit(
    users: Array, items: Array, ratings: Array, P: Array, Q: Array, b: Array, c: Array,
    mean: Any, rate: Any, penalty: Any, biased: bool, cut: bool,
) -> Any:  # fmt: skip
    width = P.shape[1]
    if width == 2 * LANES and not cut:  # the usual number: nothing is decided in its loop
        return _steps(
            users, items, ratings, P, Q, b, c, 2 * LANES, mean, rate, penalty, biased, False
        )
    return _steps(
        users, items, ratings, P, Q, b, c, width, mean, rate, penalty, biased, cut
    )


def visit(
    shelf: tuple[Array, Array, Array],
    factors: tuple[Array, Array],
    biases: tuple[Array, Array],
    *,
    mean: float,
    rate: float,
    penalty: float,
    biased: bool,
    nonnegative: bool,
) -> float:
    """A step for each rating of a shelf, in their order.

    Parameters
    ----------
    shelf : int32 (n,), int32 (n,), float32 (n,)
        Users, items and ratings. No user or item may lie outside the factors.
    factors : float32 (users, width), float32 (items, width)
        C-contiguous, ``width`` a multiple of `LANES`; changed in place.
    biases : float32 (users,), float32 (items,)
        Changed in place; not looked at unless ``biased``.
    mean, rate, penalty : float
    biased, nonnegative : bool

    Returns
    -------
    float
        The sum of the squared errors, each before its own step.
    """
    single = np.float32
    return float(
        _visit(
            *map(read_only, shelf), *factors, *biases, single(mean), single(rate),
            single(penalty), biased, nonnegative,
        )
    )  # fmt: skip
