"""Sizes and roundings that algorithms share."""

from __future__ import annotations

CACHE = 1 << 20
"""Bytes near one core: what is used twice is cut to a part of it, or a few."""
PIECE = CACHE // 8
"""Values of rows, in float64, that are made and used while they are in cache."""
ROUNDINGS = 8
"""Of an objective: it is a mean, so that errors of its terms do not add up."""
ROUNDED = 1e-12
"""Relative: four digits above float64's rounding, which sums of many values lose."""
LOST = 1e-10
"""Relative: directions, errors and steps below it are not to be trusted."""
HALF = 1e-8
"""Half of float64's digits, which squares keep."""
WIDEST = 2048
"""Beyond so many columns a Hessian is not worth its memory and its factors."""
SUFFICIENT = 1e-4
"""The share of the predicted decrease that a step must bring (Armijo, 1966)."""
