"""How many iterations to a tolerance: curves through an observed sequence of errors.

Shapes: errors ``eps`` (k,) and the iterations ``i`` (k,) in which they were seen.

========== ================= ==================================
name       error after i     iterations to an error
========== ================= ==================================
inverse    a / i             a / eps
linear     c rho^i           log(eps / c) / log(rho)
power      a i^-p            (a / eps)^(1 / p)
========== ================= ==================================

Kaoudi et al., "A Cost-based Optimizer for Gradient Descent Optimization" (ML4all, SIGMOD
2017), section 5, fits the first one. That is what `estimate` does with ``fidelity``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError

Floats = NDArray[np.float64]
Pairs = Sequence[tuple[float, float]]
"""Errors with the iterations in which they were seen: ``(eps_i, i)``."""

FEWEST = 6
"""Pairs from which curves can be compared on a last third."""
_MOST = 1e12
"""More iterations than this are not told apart."""
_WIDTH = 2.0
"""Half an interval, in standard deviations of log error."""


@dataclass(frozen=True)
class Curve:
    """A curve of one family.

    Attributes
    ----------
    name : str
        "inverse", "linear" or "power".
    scale : float
        a, or c.
    rate : float
        rho, or p; 1 for "inverse".
    """

    name: str
    scale: float
    rate: float = 1.0

    def log_error(self, i: Floats) -> Floats:
        """The logarithm of the error after ``i`` iterations."""
        if self.name == "linear":
            return np.asarray(math.log(self.scale) + i * math.log(self.rate))
        return np.asarray(math.log(self.scale) - self.rate * np.log(i))

    def iterations(self, eps: float) -> float:
        """Iterations until the error falls to ``eps``, from 1 to 1e12."""
        if self.name == "linear":
            found = math.log(eps / self.scale) / math.log(self.rate)
        else:
            exponent = math.log(self.scale / eps) / self.rate
            found = math.exp(min(exponent, math.log(_MOST)))
        return min(max(found, 1.0), _MOST)


@dataclass(frozen=True)
class Estimate:
    """A prediction of iterations.

    Attributes
    ----------
    iterations : float
    low, high : float
        An interval: two standard deviations of what the curve left unexplained, wider the
        further the tolerance is beyond what was seen.
    curve : Curve or None
        None where the tolerance was reached in the speculation itself.
    error : float
        Root mean square error of log error on the last third of the pairs; NaN if there
        were too few pairs.
    """

    iterations: float
    low: float
    high: float
    curve: Curve | None
    error: float


def usable(pairs: Pairs) -> tuple[Floats, Floats]:
    """Errors and iterations of the pairs that are finite and positive.

    Raises
    ------
    InputError
        When there is none.
    """
    table = np.array([(eps, i) for eps, i in pairs], np.float64).reshape(-1, 2)
    kept = np.isfinite(table).all(axis=1) & (table > 0).all(axis=1)
    if not kept.any():
        raise InputError(
            "No error of the speculation is finite and positive: give it more time, or "
            "more rows."
        )
    return table[kept, 0], table[kept, 1]


def fit_inverse(eps: Floats, i: Floats) -> Curve:
    """Least squares of ``i = a / eps``: ``a = sum(i / eps) / sum(1 / eps^2)``."""
    # Errors relative to the smallest one: their squares then cannot overflow.
    least = float(eps.min())
    inverse = least / eps
    return Curve("inverse", least * float((i * inverse).sum() / (inverse**2).sum()))


def fit_linear(eps: Floats, i: Floats) -> Curve | None:
    """Least squares of ``log eps = log c + i log rho``; None unless it falls."""
    line = _line(i, np.log(eps))
    if line is None or not (line[1] < 0 and abs(line[0]) < 700 and math.exp(line[1]) < 1):
        return None
    return Curve("linear", math.exp(line[0]), max(math.exp(line[1]), 1e-300))


def fit_power(eps: Floats, i: Floats) -> Curve | None:
    """Least squares of ``log eps = log a - p log i``; None unless it falls."""
    line = _line(np.log(i), np.log(eps))
    if line is None or not (line[1] < -1e-9 and abs(line[0]) < 700):
        return None
    return Curve("power", math.exp(line[0]), -line[1])


FAMILIES: dict[str, Callable[[Floats, Floats], Curve | None]] = {
    "inverse": fit_inverse,
    "linear": fit_linear,
    "power": fit_power,
}


def _line(x: Floats, y: Floats) -> tuple[float, float] | None:
    """Intercept and slope."""
    spread = float(((x - x.mean()) ** 2).sum())
    if len(x) < 2 or spread <= 0:
        return None
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread
    return float(y.mean()) - slope * float(x.mean()), slope


def estimate(pairs: Pairs, tolerance: float, *, fidelity: bool = False) -> Estimate:
    """Iterations until the error falls to ``tolerance``.

    A run ends at the first error below its tolerance. So the curves go through the smallest
    error so far; each is fitted to the first two thirds of it, and the one that predicts
    the last third best is fitted again, to the last two thirds: what is far from the
    start says most of what follows.

    Parameters
    ----------
    pairs : sequence of (error, iteration)
        Any that are not finite and positive are left out.
    tolerance : float
    fidelity : bool, default=False
        ML4all's rule: ``a / eps`` through all pairs as they are, and nothing else.

    Raises
    ------
    InputError
        When no pair can be used, or the tolerance is not positive.
    """
    if not tolerance > 0:
        raise InputError(f"`tolerance` must be positive, got {tolerance!r}.")
    eps, i = usable(pairs)
    if fidelity:
        curve = fit_inverse(eps, i)
        spread = _error(curve, eps, i)
        return _with_interval(curve, tolerance, spread, eps, i)
    if (reached := np.flatnonzero(eps <= tolerance)).size:
        first = float(i[reached[0]])
        return Estimate(first, first, first, None, math.nan)
    eps, i = _falling(eps, i)
    if len(eps) < FEWEST:
        curve = fit_inverse(eps, i)
        found = curve.iterations(tolerance)
        # Too little was seen for an interval: an order of magnitude either way.
        return Estimate(found, max(1.0, found / 10), 10 * found, curve, math.nan)
    curve, error = _best(eps, i)
    return _with_interval(curve, tolerance, error, eps, i)


def _falling(eps: Floats, i: Floats) -> tuple[Floats, Floats]:
    """The pairs that are smaller than all before, and the last one as the smallest."""
    best = np.minimum.accumulate(eps)
    kept = np.append(True, eps[1:] < best[:-1])
    kept[-1] = True
    return best[kept], i[kept]


def _best(eps: Floats, i: Floats) -> tuple[Curve, float]:
    third = len(eps) // 3
    errors = {}
    for name, fit in FAMILIES.items():
        curve = fit(eps[:-third], i[:-third])
        if curve is not None:
            errors[name] = _error(curve, eps[-third:], i[-third:])
    for name in sorted(errors, key=errors.__getitem__):
        curve = FAMILIES[name](eps[third:], i[third:])
        if curve is not None:
            return curve, errors[name]
    return fit_inverse(eps, i), math.inf


def _error(curve: Curve, eps: Floats, i: Floats) -> float:
    return float(np.sqrt(np.mean((np.log(eps) - curve.log_error(i)) ** 2)))


def _with_interval(
    curve: Curve, tolerance: float, error: float, eps: Floats, i: Floats
) -> Estimate:
    seen = max(math.log(float(eps.max() / eps.min())), 0.1)
    beyond = max(0.0, math.log(float(eps.min()) / tolerance)) / seen
    width = min(_WIDTH * error * (1 + beyond), 50.0)
    found = curve.iterations(tolerance)
    low, high = (curve.iterations(tolerance * math.exp(s * width)) for s in (1, -1))
    return Estimate(found, min(low, found), max(high, found), curve, error)
