"""Passes over the rows as a number: whole ones, or exact parts of one."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

Passes = int | Fraction
"""Passes over the rows; where a part of one counts, it is exact, so that looks compare."""
FINEST = 1000
"""A pass that is given as a decimal number has no more parts than this."""


def exact(passes: float | Fraction) -> Passes:
    """A whole number as it is; anything else as the fraction meant: 1/3 for .333333."""
    part = Fraction(passes)
    if not isinstance(passes, Fraction):
        part = part.limit_denominator(FINEST)
    return int(part) if part.denominator == 1 else part


def plain(passes: Passes) -> int | float:
    """A number that tables and files can hold."""
    return int(passes) if passes == int(passes) else float(passes)


def stretch(order: NDArray[Any], begin: Passes, end: Passes) -> NDArray[Any]:
    """The rows of a pass in its ``order``, from one share of it on to another.

    Neighbouring stretches make the whole, and the first one has a row.
    """
    n = len(order)
    return order[math.ceil(begin * n) : math.ceil(end * n)]


def passes_text(passes: float | Fraction) -> str:
    """Passes for people: ``12,345``, or ``0.111`` where they are a part of one."""
    return f"{int(passes):,}" if passes == int(passes) else f"{float(passes):,.3g}"
