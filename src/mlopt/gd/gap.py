"""How far an objective may still be above its minimum.

The quasi-Newton estimate of ``f - f*`` is ``1/2 g' H g``, half the slope along the
direction it proposes. It is right when ``H`` is close to the inverse Hessian, and too small
when ``H`` has not yet seen the flat directions. Three things are held against it:

* a step that brought ``r > 1`` times what was estimated before shows that ``H`` was too
  small by that factor;
* if estimates shrink by ``q`` a step, or two steps, the decreases form a geometric series,
  of which ``q / (1 - q)`` times the last one is still to come;
* and the same with the ratio of the last two steps' decrease to that of the two before.

Where the objective is strongly convex, ``||g||^2 / (2 l2)`` bounds the gap for certain, and
the smaller of the two counts. Only the bound does where a gap is to be claimed: flat
directions that ``H`` never sees leave estimates ten times too small for many steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
VALUES = 4
"""Steps back at which objectives are looked at, and what was estimated then: two falls are
compared with two."""
SPARE = 20
"""Passes for a bound to fall once objectives no longer tell steps apart: steps then still
halve gradients now and then, and six digits of them are twenty halvings."""
_SLOWEST = 0.95
"""Share of a gap that a step may leave; what is slower is a plateau, not a trend."""


def safeguarded(
    value: Floats, estimate: Floats, values: Floats, estimates: Floats
) -> Floats:
    """The estimate, raised by what the last steps revealed, (U,).

    Parameters
    ----------
    value, estimate : ndarray of shape (U,)
        The objective and ``1/2 g' H g`` now.
    values, estimates : ndarray of shape (4, U)
        Objectives, and their estimates, before the last accepted step, before the one
        before, and so on; NaN where there were not as many.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        fell = values - value
        revealed = estimate * np.clip(fell[0] / estimates[0], 1.0, 1e3)
        raised = [
            estimate,
            revealed,
            _still_to_come(fell[0], estimate / estimates[0], _SLOWEST),
            _still_to_come(fell[1], estimate / estimates[1], _SLOWEST**2),
            _still_to_come(fell[1], fell[1] / (fell[3] - fell[1]), _SLOWEST**2),
        ]
    return np.asarray(np.fmax.reduce(raised), np.float64)


def _still_to_come(fell: Floats, ratio: Floats, largest: float) -> Floats:
    """What follows in a geometric series of which ``fell`` was the last term."""
    q = np.clip(ratio, 0.0, largest)
    return np.asarray(fell * q / (1.0 - q), np.float64)


def curved(fell: Floats | float, estimate: Floats | float) -> Any:
    """Whether a step brought what a parabola was estimated to, and not twice that, as where
    a loss is a line; not where nobody knows."""
    return fell <= 1.5 * estimate


def strong_convexity_bound(
    squared_norm: Floats | float, curvature: Floats | float
) -> Floats:
    """``||g||^2 / (2 mu)`` (Polyak-Lojasiewicz), infinite where ``mu`` is 0."""
    curvature = np.asarray(curvature)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = squared_norm / (2 * curvature)
    return np.where(curvature > 0, bound, np.inf)
