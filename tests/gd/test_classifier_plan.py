"""Which way of training a linear classifier is predicted to be the cheapest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlopt.costs import Cost
from mlopt.gd import classifier_plan
from mlopt.gd.classifier_plan import Shape, dual_cost, newton_cost, quasi_newton_cost
from mlopt.resources import Resources

HERE = Resources(threads=2)
COVTYPE = Shape(
    n=581_012, d=54, columns=7, nonzero=581_012 * 54, itemsize=8, sparse=False, blocks=64
)
TEXT = Shape(
    n=10_000, d=50_000, columns=1, nonzero=500_000, itemsize=8, sparse=True, blocks=8
)


def seconds(cost: Cost | str, threads: int = 2) -> float:
    assert isinstance(cost, Cost)
    return cost.seconds(HERE, threads)


def test_few_features_and_classes_are_worth_a_joint_hessian() -> None:
    newton = seconds(newton_cost(COVTYPE, HERE))
    assert newton < seconds(quasi_newton_cost(COVTYPE, HERE))


def test_many_features_and_classes_are_not() -> None:
    reason = newton_cost(replace(COVTYPE, d=784, columns=10), HERE)
    assert reason == "a Hessian of 7850 x 7850 is beyond 2048"


def test_dual_steps_gain_from_threads_only_with_several_classes() -> None:
    one = seconds(dual_cost(TEXT, HERE))
    assert one == seconds(dual_cost(TEXT, replace(HERE, threads=1)), threads=1)
    assert seconds(dual_cost(replace(TEXT, columns=2), HERE)) <= 1.01 * one


def test_twice_the_rows_never_cost_less() -> None:
    for shape in (COVTYPE, TEXT):
        twice = replace(shape, n=2 * shape.n, nonzero=2 * shape.nonzero)
        assert seconds(quasi_newton_cost(twice, HERE)) > seconds(
            quasi_newton_cost(shape, HERE)
        )
        assert seconds(dual_cost(twice, HERE)) > seconds(dual_cost(shape, HERE))


def test_a_start_on_a_sample_of_a_sample_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(n: int) -> float:
        shape = replace(COVTYPE, n=n, columns=1, nonzero=n * 54)
        return seconds(quasi_newton_cost(shape, HERE, passes=0.0))

    tall, short, all_rows = start(400_000), start(30_000), start(4000)
    # 27,000 rows are drawn, and 3375 of these; 3750 rows; none.
    monkeypatch.setattr(classifier_plan, "_NESTED", (20.0, 2.0))
    assert start(400_000) > tall
    assert (start(30_000), start(4000)) == (short, all_rows)
    monkeypatch.setattr(classifier_plan, "_INNERMOST", (20.0, 3.5))
    assert start(400_000) > tall
    assert start(30_000) > short
    assert start(4000) == all_rows
