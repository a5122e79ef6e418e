"""The plan space of ML4all as methods: one for each row of `mlopt.gd.operators.references`.

Steps are as long as the curvature of the loss allows: constant where every iteration sees
all rows, and divided by the square root of the iteration where it sees samples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from mlopt.costs import Cost
from mlopt.gd.curvature import STEEPEST
from mlopt.gd.operators.costs import BLOCK, CALL, LOSS, Medium, priced
from mlopt.gd.operators.references import PlanRow, Settings
from mlopt.gd.operators.stopping import AverageDelta, always
from mlopt.gd.operators.updates import Constant, InverseRoot, Step
from mlopt.gd.plans.descent import Descent, looks
from mlopt.gd.plans.method import Method, Price, Solver, Start
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import RelativeGap
from mlopt.gd.plans.task import Problem
from mlopt.gd.plans.watch import watchable
from mlopt.gd.pricing import Shape, gradient_pass
from mlopt.gd.sample import SEED, draw
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats

SMOOTH = frozenset({"logistic", "squared", "squared_hinge", "huber"})
_LOSSES = SMOOTH | {"hinge", "user"}
_ITERATIONS = {name: price(f"descent.iterations.{name}") for name in ("bgd", "mgd", "sgd")}
_FEWER = price("descent.iterations.other")
_DOUBT = price("descent.doubt")
_ADAM = 0.1
"""Length of Adam's first step, in units of weights: columns are of size 1 as a rule."""
_SAMPLE = 1024
"""Rows that tell how long a step may be."""


@cache
def _usual() -> Settings:
    return Settings()


def descent(row: PlanRow) -> Method:
    """The method of a row of the plan space."""
    return Method(
        row.name, _LOSSES, lambda shape: _expected(row), partial(_price, row),
        partial(_begin, row), doubt=_DOUBT, algorithm=_algorithm(row),
        unit="iterations", waves=True, least=partial(_least, row),
    )  # fmt: skip


def _algorithm(row: PlanRow) -> str:
    """Iterations are the same wherever rows come from."""
    return row.algorithm if row.sampling is None else f"{row.algorithm} on samples"


def _expected(row: PlanRow) -> float:
    if row.sampling is not None:
        return _ITERATIONS.get(row.algorithm, _ITERATIONS["mgd"])
    return _ITERATIONS.get(row.algorithm, _FEWER)


def _least(row: PlanRow, outline: Outline, resources: Resources) -> float:
    """The calls of its operators, and reading the rows of an iteration."""
    shape, size = outline.shape, row.rows(_usual(), outline.shape.n)
    slots = resources.slots if row.sampling is None else 1
    blocks = -(-shape.blocks // slots) if row.sampling is None else 0
    each = Cost(
        memory=2 * shape.nbytes * size / shape.n / slots,
        python=4 * CALL + BLOCK * blocks,
        fixed=LOSS * size / slots,
    )
    return _expected(row) / _DOUBT * each.seconds(resources)


def _price(row: PlanRow, outline: Outline, resources: Resources) -> Price | str:
    if not outline.even:
        return "its operators know no row weights"
    if row.algorithm == "line-search" and outline.blind:
        return "a line search needs the `objective` of the gradient"
    stats, medium = _place(outline.shape, resources.slots)
    once, each = priced(row, _usual(), stats, medium, resources)
    look = Cost()
    if outline.loss in SMOOTH and watchable(outline.l2, outline.shape.d):
        look = gradient_pass(outline.shape, resources) * (1 / resources.threads)
    return lambda iterations: once + iterations * each + looks(iterations) * look


def _place(shape: Shape, slots: int) -> tuple[Stats, Medium]:
    nbytes = max(1, shape.nbytes)
    share = -(-nbytes // shape.blocks)
    medium = Medium(nbytes, share, seek=0.0, memory=True, readers=slots)
    stats = Stats(
        shape.n, shape.d, density=shape.nonzero / max(1, shape.n * shape.d),
        dtype="float32" if shape.itemsize == 4 else "float64", partitions=shape.blocks,
        sparse=shape.sparse,
    )  # fmt: skip
    return stats, medium


def _begin(
    row: PlanRow, problem: Problem, stop: RelativeGap, max_passes: int, start: Start
) -> Solver:
    del start
    sampled = row.rows(_usual(), problem.rows.n)
    settings = Settings(
        compute=problem.task.compute, step=_step(row, problem, sampled),
        tolerance=stop.tolerance, max_iter=max_passes,
    )  # fmt: skip
    watched = _watched(problem)
    algorithm = row.build(settings)
    if watched:
        algorithm = replace(algorithm, converge=_unknown, loop=always)
    elif problem.task.blind and row.sampling is not None:
        algorithm = replace(algorithm, converge=AverageDelta())
    return Descent(problem, algorithm, stop.tolerance, watched=watched)


def _watched(problem: Problem) -> bool:
    smooth = problem.task.loss_name in SMOOTH
    return smooth and watchable(problem.task.l2, problem.rows.d)


def _unknown(weights: Any) -> float:
    del weights
    return float("inf")


def _step(row: PlanRow, problem: Problem, sampled: int) -> Step:
    if row.algorithm == "adam":
        return InverseRoot(_ADAM)
    steepest = STEEPEST.get(problem.task.loss_name, 1.0)
    eigenvalue = batch_eigenvalue(problem.rows, sampled)
    safe = 1.0 / (steepest * eigenvalue + problem.task.l2)
    rule: Callable[[float], Step] = Constant if row.sampling is None else InverseRoot
    if problem.task.loss_name == "hinge":
        rule = InverseRoot  # constant steps never settle where there is a kink
    return rule(float(np.clip(safe, 1e-12, 1e12)))


def batch_eigenvalue(rows: Rows, batch_rows: int) -> float:
    """Largest eigenvalue of ``X'X / n`` (with intercept) that a batch may show.

    Of the mean matrix by power iteration on a sample, and the trace's share that single
    rows can add to it.
    """
    sample = draw(rows, min(_SAMPLE, rows.n))
    X = sample.collect()
    squares = np.asarray((X.multiply(X) if rows.sparse else X * X).sum(axis=1)) + 1.0
    random = np.random.default_rng(SEED)
    v, b, top = random.standard_normal(rows.d), 1.0, 1.0
    for _ in range(20):
        norm = float(np.sqrt(v @ v + b * b))
        v, b = v / norm, b / norm
        z = X @ v + b
        v, b = X.T @ z / sample.n, float(z.mean())
        top = float(np.sqrt(v @ v + b * b))
    return 1.1 * top + float(squares.max()) / batch_rows
