"""The losses of linear models, each defined once, as scalar functions.

Dense and sparse passes, one model and many, and per-sample SGD all inline these few
lines. ``z`` is a margin ``x @ w + b``; ``y`` is -1 or 1 for the margin losses and the
value to predict for the squared and the Huber loss.
"""

from __future__ import annotations

import math

from numba import njit

SQUARED, LOGISTIC, HINGE, SQUARED_HINGE, HUBER, MULTINOMIAL = range(6)
"""Losses by number: a jitted function passed as an argument, or closed over, is
compiled again in every process; a number is not."""

LOSSES = {
    "squared": SQUARED,
    "logistic": LOGISTIC,
    "hinge": HINGE,
    "squared_hinge": SQUARED_HINGE,
    "huber": HUBER,
    "multinomial": MULTINOMIAL,
}


@njit(cache=True, nogil=True, forceinline=True)
def loss_and_slope(loss, z, y, delta):  # type: ignore[no-untyped-def]
    """Return the loss at margin ``z``, and d loss / dz."""
    if loss == LOGISTIC:
        e = math.exp(-abs(z))
        t = -y * z
        value = max(t, 0.0) + math.log1p(e)
        s = (1.0 if t > 0 else e) / (1.0 + e)
        return value, -y * s
    if loss == HINGE:
        r = 1.0 - y * z
        return (r, -y * 1.0) if r >= 0.0 else (0.0, 0.0)
    if loss == SQUARED_HINGE:
        r = 1.0 - y * z
        return (r * r, -2.0 * y * r) if r > 0.0 else (0.0, 0.0)
    r = z - y
    if loss == HUBER and abs(r) > delta:
        s = delta if r > 0.0 else -delta
        return s * r - 0.5 * delta * delta, s * 1.0
    return 0.5 * r * r, r * 1.0
