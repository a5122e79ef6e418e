"""Passes over the rows as a number: whole ones, or exact parts of one."""

from __future__ import annotations

from fractions import Fraction

Passes = int | Fraction
"""Passes over the rows; where a part of one counts, it is exact, so that looks compare."""
FINEST = 1000
"""A pass has no more parts than this."""


def exact(passes: float | Fraction) -> Passes:
    """A whole number as it is; anything else as the fraction meant: 1/3 for .333333."""
    part = Fraction(passes).limit_denominator(FINEST)
    return int(part) if part.denominator == 1 else part


def passes_text(passes: float | Fraction) -> str:
    """Passes for people: ``12,345``, or ``0.111`` where they are a part of one."""
    return f"{int(passes):,}" if passes == int(passes) else f"{float(passes):,.3g}"
