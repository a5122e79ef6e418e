"""Least squares of wide rows: what their spectrum says of conjugate gradients."""

from __future__ import annotations

from mlopt.gd.plans.task import Problem
from mlopt.gd.preconditioned_plan import samples, steps_to
from mlopt.gd.spectrum import Spectrum


def spectrum(problem: Problem) -> Spectrum | None:
    """Of rows too wide for a sample's Gram matrix: a run on one would tell little, too."""
    return None if samples(problem.rows.n, problem.rows.d) else problem.spectrum


def sketch_rank(problem: Problem) -> int | None:
    """The rank of a sketch for these rows; None where they were not looked at."""
    seen = spectrum(problem)
    return None if seen is None else seen.rank(problem.task.l2)


def steps(problem: Problem, tolerance: float) -> float | None:
    """Of conjugate gradients alone."""
    seen = spectrum(problem)
    if seen is None:
        return None
    l2 = problem.task.l2
    return float(seen.steps(l2, tolerance / seen.looseness(l2)))


def epochs(problem: Problem, tolerance: float) -> float | None:
    """Of methods that take one row or one column at a time: many, on columns so alike."""
    if problem.task.loss != "squared" or (seen := spectrum(problem)) is None:
        return None
    l2 = problem.task.l2
    return seen.epochs(l2, tolerance / seen.looseness(l2))


def preconditioned_steps(problem: Problem, tolerance: float) -> float:
    """Of conjugate gradients with a sample's Gram matrix, or with a sketch."""
    l2, seen = problem.task.l2, spectrum(problem)
    if seen is None:
        return float(steps_to(problem.rows.n, problem.rows.d, tolerance))
    return float(seen.steps(l2, tolerance / seen.looseness(l2), seen.rank(l2)))
