"""How far an objective may still be above its minimum.

The quasi-Newton estimate of ``f - f*`` is ``1/2 g' H g``, half the slope along the
direction it proposes. It is right when ``H`` is close to the inverse Hessian, and too small
when ``H`` has not yet seen the flat directions. Two things are held against it:

* a step that brought ``r > 1`` times what was estimated before shows that ``H`` was too
  small by that factor;
* if the last two estimates shrank by ``q``, the decreases form a geometric series, of which
  ``q / (1 - q)`` times the last decrease is still to come.

Where the objective is strongly convex, ``||g||^2 / (2 l2)`` bounds the gap for certain, and
the smaller of the two counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def safeguarded(estimate: Floats, before: Floats, decrease: Floats) -> Floats:
    """The estimate, raised by what the last step revealed, (U,).

    Parameters
    ----------
    estimate : ndarray of shape (U,)
        ``1/2 g' H g`` now.
    before : ndarray of shape (U,)
        The same before the last accepted step; NaN when there was none.
    decrease : ndarray of shape (U,)
        What that step brought.
    """
    known = np.isfinite(before) & (before > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        revealed = np.clip(decrease / before, 1.0, 1e3)
        ratio = np.clip(estimate / before, 0.0, 0.9)
    raised = np.maximum(estimate * revealed, decrease * ratio / (1 - ratio))
    return np.where(known, raised, estimate)


def strong_convexity_bound(squared_norm: Floats, curvature: Floats) -> Floats:
    """``||g||^2 / (2 mu)`` (Polyak-Lojasiewicz), infinite where ``mu`` is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = squared_norm / (2 * curvature)
    return np.where(curvature > 0, bound, np.inf)
