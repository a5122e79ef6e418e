"""Which way of training a linear classifier is predicted to be the cheapest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mlopt.costs import Cost
from mlopt.gd.plans import lbfgs, methods
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import GradientNorm
from mlopt.gd.pricing import Shape
from mlopt.resources import Resources

HERE = Resources(threads=2)
COVTYPE = Shape(
    n=581_012, d=54, columns=7, nonzero=581_012 * 54, itemsize=8, sparse=False, blocks=64
)
TEXT = Shape(
    n=10_000, d=50_000, columns=1, nonzero=500_000, itemsize=8, sparse=True, blocks=8
)


def price(name: str, shape: Shape, resources: Resources = HERE) -> Any:
    loss = "multinomial" if name == "newton-cholesky" else "squared_hinge"
    stop = GradientNorm(1e-4)  # of estimators; a gap would take looks at all rows
    outline = Outline(loss, shape, l2=1e-3, free_intercept=False, stop=stop)
    return methods.BY_NAME[name].price(outline, resources)


def seconds(
    name: str, shape: Shape, threads: int = 2, passes: float | None = None
) -> float:
    count = methods.BY_NAME[name].passes(shape) if passes is None else passes
    here = replace(HERE, threads=threads)
    cost: Cost = price(name, shape, here)(count)
    return cost.seconds(here, threads)


def test_few_features_and_classes_are_worth_a_joint_hessian() -> None:
    assert seconds("newton-cholesky", COVTYPE) < seconds("lbfgs", COVTYPE)


def test_many_features_and_classes_are_not() -> None:
    mnist = replace(COVTYPE, d=784, columns=10, nonzero=COVTYPE.n * 784)
    assert seconds("newton-cholesky", mnist) > 2 * seconds("lbfgs", mnist)
    reason = price("newton-cholesky", replace(mnist, columns=100))
    assert reason.endswith("GiB for matrices of 78500 x 78500")


def test_dual_steps_gain_from_threads_only_with_several_classes() -> None:
    name = "dual-coordinate-descent"
    one = seconds(name, TEXT)
    assert one == seconds(name, TEXT, threads=1)
    assert seconds(name, replace(TEXT, columns=2)) <= 1.01 * one


@pytest.mark.parametrize("name", ["lbfgs", "dual-coordinate-descent"])
@pytest.mark.parametrize("shape", [COVTYPE, TEXT])
def test_twice_the_rows_never_cost_less(name: str, shape: Shape) -> None:
    twice = replace(shape, n=2 * shape.n, nonzero=2 * shape.nonzero)
    assert seconds(name, twice) > seconds(name, shape)


def test_a_start_on_a_sample_of_a_sample_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(n: int) -> float:
        shape = replace(COVTYPE, n=n, columns=1, nonzero=n * 54)
        return seconds("lbfgs", shape, passes=0.0)

    tall, short, all_rows = start(400_000), start(30_000), start(4000)
    # 27,000 rows are drawn, and 3375 of these; 3750 rows; none.
    monkeypatch.setattr(lbfgs, "_NESTED", (20.0, 2.0))
    assert start(400_000) > tall
    assert (start(30_000), start(4000)) == (short, all_rows)
    monkeypatch.setattr(lbfgs, "_INNERMOST", (20.0, 3.5))
    assert start(400_000) > tall
    assert start(30_000) > short
    assert start(4000) == all_rows
