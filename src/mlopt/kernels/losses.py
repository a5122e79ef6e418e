"""The losses of linear models, each defined once, for a number or for lanes.

Dense and sparse passes, one model and many, and per-sample SGD all inline these few
lines. ``z`` is a margin ``x @ w + b``; ``y`` is -1 or 1 for the margin losses and the
value to predict for the squared and the Huber loss.

========== ============= ================================================================
number     name          loss
========== ============= ================================================================
0          squared       (z - y)^2 / 2
1          logistic      log(1 + exp(-y z))
2          hinge         max(0, 1 - y z)
3          squared_hinge max(0, 1 - y z)^2
4          huber         r^2 / 2 for r = \\|z - y\\| <= delta, else delta r - delta^2 / 2
5          multinomial   log(sum_k exp(z_k)) - z_y, over the columns k of one model
========== ============= ================================================================
"""

from __future__ import annotations

from typing import Any

from mlopt.kernels.compiled import inlined
from mlopt.kernels.elementary import twice_atanh
from mlopt.kernels.simd import like, muladd, select

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


@inlined
def logistic(z: Any, y: Any, e: Any) -> Any:
    """Return loss and slope, given ``e = exp(-|z|)``."""
    one, zero = like(z, 1.0), like(z, 0.0)
    t = -y * z
    # One division for both sigmoid(t) = 1 / (1 + e) or e / (1 + e) and e / (2 + e).
    above = one + e
    beyond = above + one
    shared = one / (above * beyond)
    q = shared * beyond
    value = select(t < zero, zero, t) + twice_atanh(e * shared * above)
    return value, -y * select(t < zero, e * q, q)


@inlined
def logistic_of_one_weight(z: Any, y: Any, e: Any, c: Any, product: Any) -> Any:
    """Return a part of the loss, the slope, and a product that stands for the other part.

    The loss is the first part plus ``log(1 + e)``, ``e = exp(-|z|)``. For rows whose
    weights ``c`` are one number or 0 the logarithms add up to that of a product, which is
    taken once, by `mlopt.kernels.elementary.log1p`: ``product`` is that of all ``1 + e``,
    less 1, right relative to small numbers too. It at most doubles each time, so in
    float32 it must be used up after 127 times.
    """
    zero, one = like(z, 0.0), like(z, 1.0)
    t = -y * z
    slope = -y * (select(t < zero, e, one) / (one + e))
    e = select(c == zero, zero, e)
    return select(t < zero, zero, t), slope, muladd(product, one + e, e)


@inlined
def loss_and_slope(loss: int, z: Any, y: Any, e: Any, delta: Any) -> Any:
    """Return the loss at margin ``z``, and d loss / dz; if ``z`` is nan, so is the loss.

    Parameters
    ----------
    loss : int
        Any but `MULTINOMIAL`; a constant at the call leaves one branch.
    z, y, e, delta : floats of one dtype, or lanes of them
        ``e`` is ``exp(-|z|)``, used by `LOGISTIC` only. Over many rows it is computed in a
        loop of its own: with the slopes it would be a chain of operations so long that a
        processor has no room to overlap one row with the next.
    """
    zero = like(z, 0.0)
    if loss == LOGISTIC:
        return logistic(z, y, e)
    if loss == HINGE:
        r = like(z, 1.0) - y * z
        return select(r < zero, zero, r), select(r < zero, zero, -y)
    if loss == SQUARED_HINGE:
        r = like(z, 1.0) - y * z
        r = select(r < zero, zero, r)
        return r * r, -(y + y) * r
    half = like(z, 0.5)
    r = z - y
    if loss == HUBER:
        s = select(r > delta, delta, select(r < -delta, -delta, r))
        return s * (r - half * s), s
    return half * r * r, r
