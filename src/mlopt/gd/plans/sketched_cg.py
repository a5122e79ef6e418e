"""Conjugate gradients preconditioned by a sample's Gram matrix, or by a random sketch."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from mlopt.costs import Cost
from mlopt.gd import gram_inverse, nystrom
from mlopt.gd.column_sums import ColumnSums
from mlopt.gd.plans.closed import least_squares, penalised
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.refined import refine, steps_cost
from mlopt.gd.plans.squares import Fit, Iteration, Squares, asked, rank_seen
from mlopt.gd.plans.stop import CoefficientError
from mlopt.gd.preconditioned_plan import sample_rows, sample_steps, samples, sketch_rank
from mlopt.gd.pricing import Shape, scan, solving
from mlopt.gd.sizes import ROUNDED
from mlopt.gd.spectrum import Spectrum
from mlopt.prices import count, price
from mlopt.resources import Resources

_PATIENCE = count("sketched_cg.patience")
_DRAW = price("sketched_cg.draw")
_SKETCH_DIGIT = price("sketched_cg.digit")
_SKETCH_STEPS = count("sketched_cg.steps")
_SPARSE_SKETCH = price("sketched_cg.sparse")


def begin(squares: Squares) -> Fit | Iteration:
    """A sample or a sketch, before the first step."""
    n, d = squares.rows.n, squares.rows.d
    sums = ColumnSums.of(squares.rows, squares.intercept)
    accuracy, name = squares.accuracy, "sketched_cg"
    if samples(n, d):
        size = sample_rows(n, d, accuracy, squares.gap)
        sampled = partial(gram_inverse.of_sample, squares.rows, size, sums, squares.alphas)
        return refine(squares, name, sums, sampled, _PATIENCE, accuracy / 10)
    rank = _rank(squares, sums.weight)
    sketched = partial(nystrom.sketch, squares.rows, rank, sums, squares.alphas)
    # Outside the sketch it is the inverse up to a factor only.
    return refine(squares, name, sums, sketched, 2 * _PATIENCE, accuracy / 100)


def _rank(squares: Squares, weight: float) -> int:
    """Of a sketch: as the spectrum asks for, where some rows tell it."""
    if squares.rank is None and (seen := Spectrum.of(squares.rows)):
        return seen.rank(float(squares.alphas.min()) / weight)
    return squares.rank or sketch_rank(squares.rows.n, squares.rows.d)


def _steps(outline: Outline, stop: CoefficientError) -> float:
    n, d, accuracy = outline.shape.n, outline.shape.d, stop.accuracy
    if samples(n, d):
        return sample_steps(sample_rows(n, d, accuracy), d, accuracy)
    return math.ceil(_SKETCH_DIGIT * math.log10(100.0 / accuracy))


def _foreseen(outline: Outline, tolerance: float) -> float:
    l2, seen = outline.l2, outline.spectrum
    if seen is not None:
        return float(seen.steps(l2, tolerance / seen.looseness(l2), seen.rank(l2)))
    n, d = outline.shape.n, outline.shape.d
    if not samples(n, d):
        return float(_SKETCH_STEPS)
    size = sample_rows(n, d, ROUNDED, tolerance)
    return float(sample_steps(size, d, ROUNDED, tolerance))


def _cost(outline: Outline, resources: Resources, passes: float) -> Cost | str:
    shape = outline.shape
    if why := penalised(outline):
        return why
    own = _sample if samples(shape.n, shape.d) else _sketch
    return own(outline, resources, passes) + steps_cost(shape, resources, passes)


def _sample(outline: Outline, resources: Resources, steps: float) -> Cost:
    shape = outline.shape
    d, size = shape.d, sample_rows(shape.n, shape.d, *asked(outline.stop))
    values, remote = float(size * d), resources.remote
    draw = Cost(flops=_DRAW * values, network=values * shape.itemsize if remote else 0.0)
    factor = Cost(flops=values * d + 2.0 * d**3 / 3)
    return draw + factor + steps * solving(d)


def _sketch(outline: Outline, resources: Resources, steps: float) -> Cost:
    shape: Shape = outline.shape
    d, rank = shape.d, rank_seen(outline) or sketch_rank(shape.n, shape.d)
    price = _SPARSE_SKETCH if shape.sparse else 1.0
    products = price / resources.workers * 4.0 * shape.nonzero * rank
    sketch = replace(scan(shape, resources, 4.0 * d * rank, times=4), flops32=products)
    eigen = Cost(flops=6.0 * d * rank**2 + 20.0 * rank**3)
    return sketch + eigen + Cost(memory=16.0 * steps * d * rank)


SKETCHED_CG = least_squares(
    "sketched_cg", _cost, begin, _steps, least=8, foreseen=_foreseen,
    free=1,
)  # fmt: skip
