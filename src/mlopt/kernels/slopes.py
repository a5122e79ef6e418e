"""From margins to losses, slopes and scores, for a block of rows that is in cache.

Margins lie as ``Z (B, R)``: the rows of a column follow each other, so every loop runs
over the ``R`` rows, however few columns share a loss, and the classes of a model are
lines of a small matrix. ``y``, ``c`` and ``v`` are the targets, the training weights and
the scoring weights of the block's rows, each (R,).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import allocating, inlined, kernel, part, stay_apart
from mlopt.kernels.elementary import exp, log, log1p
from mlopt.kernels.losses import (
    HINGE,
    HUBER,
    LOGISTIC,
    MULTINOMIAL,
    SQUARED,
    SQUARED_HINGE,
    logistic_of_one_weight,
    loss_and_slope,
)
from mlopt.kernels.simd import (
    lane_count,
    like,
    load,
    load_like,
    magnitude,
    muladd,
    splat,
    splat_wide,
    store,
    total,
)

Array = NDArray[Any]
Inputs = tuple[Array, ...]
"""What `add_slopes` takes after ``Z``, of all rows of a pass."""


@part
def _added_up(a: Array, n: int) -> Any:
    """Return the sum of the first ``n`` numbers of ``a``."""
    L = lane_count(a.itemsize)
    whole = n - n % (4 * L)
    s0 = s1 = s2 = s3 = splat(like(a[0], 0.0))
    for i in range(0, whole, 4 * L):
        s0, s1 = s0 + load(a, i), s1 + load(a, i + L)
        s2, s3 = s2 + load(a, i + 2 * L), s3 + load(a, i + 3 * L)
    added = total((s0 + s1) + (s2 + s3))
    for i in range(whole, n):
        added += a[i]
    return added


@inlined
def _slope_loop(
    loss: int, z: Array, b: Any, y: Array, c: Array, delta: Any, e: Array
) -> Any:
    """Replace margins by weighted slopes; return the sums of losses and of slopes."""
    shift, step = splat_wide(b), 2 * lane_count(z.itemsize)
    whole, wide = y.shape[0] - y.shape[0] % step, splat_wide(delta)
    losses = rises = like(shift, 0.0)
    for i in range(0, whole, step):
        m, weight = load_like(shift, z, i) + shift, load_like(shift, c, i)
        target, power = load_like(shift, y, i), load_like(shift, e, i)
        value, slope = loss_and_slope(loss, m, target, power, wide)
        losses, slope = muladd(weight, value, losses), weight * slope
        store(z, i, slope)
        rises = rises + slope
    lost, risen = total(losses), total(rises)
    for i in range(whole, y.shape[0]):
        value, slope = loss_and_slope(loss, z[i] + b, y[i], e[i], delta)
        z[i] = c[i] * slope
        lost, risen = lost + c[i] * value, risen + z[i]
    return lost, risen


@part
def _exponentials(z: Array, b: Any, e: Array) -> None:
    stay_apart()
    shift, step = splat_wide(b), 2 * lane_count(z.itemsize)
    whole = e.shape[0] - e.shape[0] % step
    for i in range(0, whole, step):
        store(e, i, exp(-magnitude(load_like(shift, z, i) + shift)))
    for i in range(whole, e.shape[0]):
        e[i] = exp(-abs(z[i] + b))


@part
def _logistic(z: Array, b: Any, y: Array, c: Array, e: Array) -> Any:
    stay_apart()
    return _slope_loop(LOGISTIC, z, b, y, c, b, e)


@part
def _logistic_of_one_weight(
    z: Array, b: Any, y: Array, c: Array, weight: Any, e: Array
) -> Any:
    """As `_logistic`, for whole registers of rows whose weights are ``weight`` or 0."""
    stay_apart()
    shift = splat_wide(b)
    linear = rises = product = like(shift, 0.0)
    for i in range(0, y.shape[0], 2 * lane_count(z.itemsize)):
        m, share = load_like(shift, z, i) + shift, load_like(shift, c, i)
        target, power = load_like(shift, y, i), load_like(shift, e, i)
        value, slope, product = logistic_of_one_weight(m, target, power, share, product)
        linear, slope = muladd(share, value, linear), share * slope
        store(z, i, slope)
        rises = rises + slope
    return with_logarithms(linear, product, weight), total(rises)


@inlined
def with_logarithms(linear: Any, product: Any, weight: Any) -> Any:
    """The sum of logistic losses from what `logistic_of_one_weight` gave of each."""
    return total(muladd(splat_wide(weight), log1p(product), linear))


@inlined
def _column(
    loss: int, z: Array, b: Any, y: Array, c: Array, weight: Any, delta: Any, e: Array
) -> Any:
    # The number as a constant: loops without branches instead of one with them.
    if loss == LOGISTIC:
        _exponentials(z, b, e)
        if weight == like(weight, 0.0):
            return _logistic(z, b, y, c, e)
        whole = y.shape[0] - y.shape[0] % (2 * lane_count(z.itemsize))
        value, rise = _logistic_of_one_weight(z, b, y[:whole], c, weight, e)
        if whole == y.shape[0]:
            return value, rise
        more, further = _logistic(z[whole:], b, y[whole:], c[whole:], e[whole:])
        return value + more, rise + further
    if loss == HINGE:
        return _slope_loop(HINGE, z, b, y, c, delta, e)
    if loss == SQUARED_HINGE:
        return _slope_loop(SQUARED_HINGE, z, b, y, c, delta, e)
    if loss == HUBER:
        return _slope_loop(HUBER, z, b, y, c, delta, e)
    return _slope_loop(SQUARED, z, b, y, c, delta, e)


@part
def _largest(z: Array, b: Any, k: int, top: Array, best: Array) -> None:
    """Add ``b`` to class ``k``; update each row's largest margin and its class."""
    code = like(b, k)
    for i in range(top.shape[0]):
        z[i] += b
        better = k == 0 or z[i] > top[i]
        top[i] = z[i] if better else top[i]
        best[i] = code if better else best[i]


@part
def _power(z: Array, code: Any, y: Array, top: Array, norm: Array, own: Array) -> None:
    """Replace margins by powers of e and add them to ``norm``; each row's margin in its own
    class goes to ``own``, below the row's largest."""
    stay_apart()
    for i in range(y.shape[0]):
        z[i] -= top[i]
        own[i] = z[i] if y[i] == code else own[i]
    for i in range(y.shape[0]):
        z[i] = exp(z[i])
        norm[i] += z[i]


@part
def _log_norms(norm: Array, c: Array, own: Array) -> Any:
    """Return sum c (log(norm) - own), and replace the norms by c / norm."""
    stay_apart()
    for i in range(norm.shape[0]):
        own[i] = c[i] * (log(norm[i]) - own[i])
    for i in range(norm.shape[0]):
        norm[i] = c[i] / norm[i]
    return _added_up(own, norm.shape[0])


@part
def _softmax_slope(z: Array, code: Any, y: Array, c: Array, norm: Array) -> Any:
    zero = like(code, 0.0)
    for i in range(y.shape[0]):
        z[i] = muladd(norm[i], z[i], -c[i] if y[i] == code else zero)
    return _added_up(z, y.shape[0])


@inlined
def _softmax(
    Z: Array, k: int, K: int, y: Array, c: Array, top: Array, norm: Array, own: Array,
    sums: Array,
) -> None:  # fmt: skip
    for i in range(norm.shape[0]):
        norm[i] = own[i] = like(norm[0], 0.0)
    for j in range(K):
        _power(Z[k + j], like(norm[0], j), y, top, norm, own)
    sums[0, k] += _log_norms(norm, c, own)
    for j in range(K):
        sums[1, k + j] += _softmax_slope(Z[k + j], like(norm[0], j), y, c, norm)


@part
def _error(z: Array, b: Any, y: Array, v: Array, work: Array) -> Any:
    for i in range(y.shape[0]):
        r = z[i] + b - y[i]
        work[i] = v[i] * r * r
    return _added_up(work, y.shape[0])


@part
def _right_signs(z: Array, b: Any, y: Array, v: Array, work: Array) -> Any:
    zero = like(b, 0.0)
    for i in range(y.shape[0]):
        work[i] = v[i] if (z[i] + b > zero) == (y[i] > zero) else zero
    return _added_up(work, y.shape[0])


@part
def _right_classes(best: Array, y: Array, v: Array) -> Any:
    """Return the weight of the rows that are in their ``best`` class, which is lost."""
    zero = like(v[0], 0.0)
    for i in range(y.shape[0]):
        best[i] = v[i] if best[i] == y[i] else zero
    return _added_up(best, y.shape[0])


@part
def _signs(y: Array, code: Any, out: Array) -> None:
    one = like(code, 1.0)
    for i in range(y.shape[0]):
        out[i] = one if y[i] == code else -one


@allocating
def _lines(A: Array) -> Array:
    """The columns of a few rows as lines of a small matrix."""
    T = np.empty((A.shape[1], A.shape[0]), A.dtype)
    for k in range(A.shape[1]):
        for i in range(A.shape[0]):
            T[k, i] = A[i, k]
    return T


@part
def _any(a: Array) -> bool:
    count = 0
    for i in range(a.shape[0]):
        count += 1 if a[i] != 0 else 0
    return count > 0


@part
def one_weight(c: Array) -> Any:
    """Return the one weight of all rows with a nonzero weight; 0 for several, or none."""
    first = zero = like(c[0], 0.0)
    for i in range(c.shape[0]):
        if c[i] != zero:
            first = c[i]
            break
    others = 0
    for i in range(c.shape[0]):
        others += 1 if c[i] != zero and c[i] != first else 0
    return first if others == 0 else zero


@inlined
def _score(loss: int, K: int, z: Array, b: Any, y: Array, v: Array, work: Array) -> Any:
    if K > 1:
        return _right_classes(work, y, v)
    if loss in (SQUARED, HUBER):
        return _error(z, b, y, v, work)
    return _right_signs(z, b, y, v, work)


@kernel
def add_slopes(
    Z: Array,
    b: Array,
    targets: Array,
    weights: Array,
    score_weights: Array,
    segments: Array,
    deltas: Array,
    sums: Array,
    scores: Array,
) -> Array:
    """Replace margins by weighted slopes, and add up losses, slopes and scores.

    Parameters
    ----------
    Z : ndarray of shape (B, R or more)
        ``W' X'`` for the block's R rows, without intercepts; slopes afterwards. ``R`` is
        between 1 and 1000: see `mlopt.kernels.losses.logistic_of_one_weight`.
    b, targets, weights, score_weights, segments, deltas
        As for `mlopt.kernels.linear.linear_pass`, for the block's rows; without scoring
        ``score_weights`` is (R, 0).
    sums : float64 ndarray of shape (2, B)
        Losses and slopes to add to.
    scores : float64 ndarray of shape (M,)
        Scores to add to.

    Returns
    -------
    ndarray of bool, shape (number of segments,)
        Whether the segment's rows have weight; the lines of others stay margins.
    """
    Y, C, V = _lines(targets), _lines(weights), _lines(score_weights)
    R = targets.shape[0]
    top, work, own = np.empty(R, Z.dtype), np.empty(R, Z.dtype), np.empty(R, Z.dtype)
    trained = np.empty(segments.shape[0], np.bool_)
    model = 0
    for s in range(segments.shape[0]):
        start, stop, loss = segments[s, 0], segments[s, 1], segments[s, 2]
        weight, K = segments[s, 4], segments[s, 5]
        y, c, delta = Y[segments[s, 3]], C[weight], deltas[s]
        scored = V.shape[0] > 0 and _any(V[weight])
        trained[s] = _any(c)
        one = one_weight(c) if loss == LOGISTIC else like(c[0], 0.0)
        for k in range(start, stop, K):
            if K > 1:
                for j in range(K):
                    _largest(Z[k + j], b[k + j], j, top, work)
            if scored:
                scores[model] += _score(loss, K, Z[k], b[k], y, V[weight], work)
            model += 1
            if not trained[s]:
                continue
            if loss == MULTINOMIAL:
                _softmax(Z, k, K, y, c, top, work, own, sums)
                continue
            for j in range(k, k + K):
                # `_largest` has added the intercepts of a model with several columns.
                shift = b[j] if K == 1 else like(b[j], 0.0)
                if K > 1:
                    _signs(y, like(b[j], j - k), top)
                target = y if K == 1 else top
                total, rise = _column(loss, Z[j], shift, target, c, one, delta, work)
                sums[0, j] += total
                sums[1, j] += rise
    return trained


@allocating
def of_rows(inputs: Inputs, start: int, stop: int) -> Inputs:
    """The inputs of a block of rows."""
    b, targets, weights, score_weights, segments, deltas, sums, scores = inputs
    y, c, v = targets[start:stop], weights[start:stop], score_weights[start:stop]
    return b, y, c, v, segments, deltas, sums, scores


@part
def clear_untrained(Z: Array, R: int, segments: Array, trained: Array) -> None:
    """Put slopes of 0 where `add_slopes` trained nothing and left margins."""
    for s in range(segments.shape[0]):
        if not trained[s]:
            for k in range(segments[s, 0], segments[s, 1]):
                for i in range(R):
                    Z[k, i] = like(Z[k, i], 0.0)
