"""Least squares of wide rows: what their spectrum says of conjugate gradients."""

from __future__ import annotations

from mlopt.gd.plans.outline import Outline
from mlopt.gd.preconditioned_plan import steps_to


def sketch_rank(outline: Outline) -> int | None:
    """The rank of a sketch for these rows; None where they were not looked at."""
    seen = outline.spectrum
    return None if seen is None else seen.rank(outline.l2)


def steps(outline: Outline, tolerance: float) -> float | None:
    """Of conjugate gradients alone."""
    seen = outline.spectrum
    if seen is None:
        return None
    l2 = outline.l2
    return float(seen.steps(l2, tolerance / seen.looseness(l2)))


def epochs(outline: Outline, tolerance: float) -> float | None:
    """Of methods that take one row or one column at a time: many, on columns so alike."""
    if outline.loss != "squared" or (seen := outline.spectrum) is None:
        return None
    l2 = outline.l2
    return seen.epochs(l2, tolerance / seen.looseness(l2))


def preconditioned_steps(outline: Outline, tolerance: float) -> float:
    """Of conjugate gradients with a sample's Gram matrix, or with a sketch."""
    l2, seen = outline.l2, outline.spectrum
    if seen is None:
        return float(steps_to(outline.shape.n, outline.shape.d, tolerance))
    return float(seen.steps(l2, tolerance / seen.looseness(l2), seen.rank(l2)))
