"""Step lengths of many units at once: one trial a pass, each unit for itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SUFFICIENT = 1e-4
"""The share of the predicted decrease that a step must bring (Armijo, 1966)."""


def accepted(value: Floats, trial: Floats, slope: Floats, t: Floats, eps: float) -> NDArray:
    """Which trial steps decrease their objective enough, (U,).

    Parameters
    ----------
    value, trial : ndarray of shape (U,)
        Objective before and after; infinite before a unit's first evaluation.
    slope : ndarray of shape (U,)
        Directional derivative at step 0, negative.
    t : ndarray of shape (U,)
        Step lengths.
    eps : float
        Relative rounding of an objective. Decreases below it cannot be told from
        increases, so steps that promise no more may pass.
    """
    # Before the first evaluation the bound is infinite, whatever the slope.
    bound = value + np.where(np.isfinite(value), SUFFICIENT * t * slope, 0.0)
    level = np.where(np.isfinite(value), np.abs(value), 0.0) * eps
    tiny = -t * slope <= 4 * level
    within = trial <= value + np.where(tiny, 2 * level, 0.0)
    good = (trial <= bound) | (tiny & within)
    return np.asarray(good & np.isfinite(trial))


def shortened(value: Floats, trial: Floats, slope: Floats, t: Floats) -> Floats:
    """The minimiser of the parabola through what is known, within [0.1 t, 0.5 t]."""
    above = trial - value - t * slope
    with np.errstate(invalid="ignore", divide="ignore"):
        best = -0.5 * slope * t / above  # in units of t
    best = np.where(np.isfinite(best) & (above > 0), best, 0.1)
    return t * np.clip(best, 0.1, 0.5)
