"""Experiments with the methods of the table: what a pass of each takes, whatever they need.

A method begins and goes on for some passes or a part of a second, and is charged for the
passes that it took: how many it takes to a tolerance is another question, which samples
and experience answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlopt.cluster import executor
from mlopt.costs import Cost
from mlopt.gd.plans.fitting import Ranker, unfit
from mlopt.gd.plans.method import OPERATOR, Price
from mlopt.gd.plans.methods import METHODS
from mlopt.gd.plans.stop import RelativeGap
from mlopt.gd.plans.task import Problem, Task, problem_of
from mlopt.pipeline.calibration import linear
from mlopt.pipeline.calibration.cases import Case
from mlopt.prices import price
from mlopt.resources import Calibration, Resources

_STOP = RelativeGap(1e-6)
_PASSES = {"passes": 40, "iterations": 500}
"""Of a run at most: what comes before the first one still shows."""
_SECONDS = price("calibration.run")
_CLASSES = 5
_MEASURED = tuple(method for method in METHODS if method.operator == OPERATOR)


@dataclass(frozen=True)
class _Sizes:
    loss: str
    n: int
    d: int
    density: float = 1.0
    intercept: bool = True
    l1: float = 0.0


_DESIGN = (
    _Sizes("logistic", 2_000, 20),
    _Sizes("logistic", 30_000, 30),
    _Sizes("logistic", 5_000, 400),
    _Sizes("logistic", 600, 3_000),
    _Sizes("logistic", 20_000, 5_000, 0.005),
    _Sizes("logistic", 10_000, 60, intercept=False),
    _Sizes("logistic", 3_000, 20_000, 0.005, intercept=False),
    _Sizes("squared_hinge", 20_000, 60, intercept=False),
    _Sizes("squared_hinge", 20_000, 2_000, 0.01, intercept=False),
    _Sizes("hinge", 5_000, 100, intercept=False),
    _Sizes("hinge", 20_000, 40),
    _Sizes("hinge", 4_000, 600),
    _Sizes("multinomial", 10_000, 40),
    _Sizes("squared", 40_000, 100),
    _Sizes("squared", 5_000, 300, l1=0.05),
    _Sizes("squared", 10_000, 5_000, 0.005, l1=0.02),
    _Sizes("logistic", 5_000, 100, l1=0.01),
)
_TINY = (
    _Sizes("logistic", 400, 5, intercept=False),
    _Sizes("logistic", 30, 60),
    _Sizes("hinge", 200, 5, intercept=False),
    _Sizes("hinge", 200, 5),
    _Sizes("squared", 100, 8, l1=0.05),
)


def cases(resources: Resources, *, tiny: bool = False) -> Iterator[Case]:
    """One problem after the other; data are made when they are asked for."""
    for sizes in _TINY if tiny else _DESIGN:
        yield case(sizes, resources)


def problem(sizes: _Sizes) -> Problem:
    """Rows and targets of `mlopt.pipeline.calibration.linear`, for any loss."""
    X, numbers = linear.problem(sizes.n, sizes.d, 1, sizes.density)
    y: Any = numbers
    if sizes.loss == "multinomial":
        y = np.searchsorted(np.quantile(y, np.arange(1, _CLASSES) / _CLASSES), y)
    elif sizes.loss != "squared":
        y = (y > np.median(y)).astype(np.int64)
    task = Task(sizes.loss, l2=1e-3, l1=sizes.l1, fit_intercept=sizes.intercept)
    return problem_of(task, X, y, executor(n_jobs=1))


def case(sizes: _Sizes, resources: Resources) -> Case:
    """A problem of all methods that can solve it."""
    one = problem(sizes)
    outline = replace(one.outline, stop=_STOP)
    plain = replace(resources, calibration=Calibration(), experience=None)
    options: dict[str, Cost | str] = {}
    prices: dict[str, Price] = {}
    for method in _MEASURED:
        found = unfit(method, outline.loss, outline.sharp, _STOP) or method.price(
            outline, plain
        )
        if isinstance(found, str):
            options[method.name] = found
        else:
            prices[method.name] = found
            options[method.name] = found(_PASSES[method.unit])
    by_name = {method.name: method for method in _MEASURED}

    def solve(name: str) -> Cost | None:
        method = by_name[name]
        end, most = time.perf_counter() + _SECONDS, _PASSES[method.unit]
        training = method.begin(one, _STOP, most, None)
        while not training.done and training.passes < most and time.perf_counter() < end:
            training.advance(1)
        return prices[name](max(training.passes, 1))

    def choose(machine: Resources) -> str:
        able = tuple(by_name[name] for name in prices)
        return Ranker(one, machine, _STOP, able).ranked(able)[0].name

    kind = "dense" if sizes.density == 1 else "sparse"
    label = f"{sizes.loss}{', L1' * (sizes.l1 > 0)}, {sizes.n} x {sizes.d}, {kind}"
    return Case(OPERATOR, label, options, solve, choose)
