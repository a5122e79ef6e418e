"""A pass over the same rows has one price, whoever makes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlopt.costs import Cost
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.plans.outline import Outline
from mlopt.gd.pricing import (
    Shape,
    gradient_pass,
    read_alone,
    scan,
    shape_of_stats,
    solving,
)
from mlopt.gd.sizes import WIDEST
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.stats import Stats
from mlopt.tuning.crews.scans import of_pass

HERE = Resources(threads=2)
THERE = Resources(threads=2, workers=4, task=1e-3, round_trip=1e-2)
DENSE = Stats(200_000, 300, partitions=8)
SPARSE = Stats(200_000, 30_000, density=1e-3, sparse=True, partitions=8)
NONE = Cost()


def one_more(name: str, loss: str, shape: Shape, where: Resources) -> float:
    """Seconds that a further pass of a method takes."""
    found = BY_NAME[name].price(Outline(loss, shape, l2=1e-3), where)
    assert not isinstance(found, str)
    return found(8).seconds(where, 2) - found(7).seconds(where, 2)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("where", [HERE, THERE], ids=["here", "workers"])
@pytest.mark.parametrize("stats", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_a_pass_has_one_price(stats: Stats, where: Resources, dtype: str) -> None:
    """Of one column of weights: whatever vectors and calls a method has beside it."""
    shape = shape_of_stats(replace(stats, dtype=dtype, bytes=-1))

    def with_vectors(count: float, beside: Cost = NONE) -> float:
        vectors = Cost(memory=count * 8.0 * (shape.d + 1))
        return (gradient_pass(shape, where) + vectors + beside).seconds(where, 2)

    shared = gradient_pass(shape_of_stats(replace(stats, dtype=dtype), 1), where)
    assert shared.seconds(where, 2) == with_vectors(0)
    assert one_more("sparse_cg", "squared", shape, where) == pytest.approx(with_vectors(10))
    factor = solving(shape.d + 1) if shape.d < WIDEST else Cost()
    calls = Cost(python=price("lbfgs.step"))
    pairs = read_alone(price("lbfgs.vectors") * 8.0 * (shape.d + 1), where)
    steps = with_vectors(0, pairs + factor + calls)
    assert one_more("lbfgs", "logistic", shape, where) == pytest.approx(steps)


def test_a_pass_of_a_scan_has_that_price_where_there_is_no_hessian() -> None:
    shape = shape_of_stats(SPARSE)
    where = Resources()  # of a search
    own, alone = (Cost(python=price(f"{one}.step")) for one in ("batch", "lbfgs"))
    steps = one_more("lbfgs", "logistic", shape, where) + own.seconds(where, 2)
    found = of_pass(shape).seconds(where, 2) + alone.seconds(where, 2)
    assert found == pytest.approx(steps)


@pytest.mark.parametrize("name", ["sketched_cg", "mixed_cholesky"])
def test_preconditioned_passes_are_priced_as_others(name: str) -> None:
    shape = shape_of_stats(DENSE)
    plain = one_more("sparse_cg", "squared", shape, HERE)
    solves = solving(shape.d).seconds(HERE, 2)
    beside = one_more(name, "squared", shape, HERE) - plain
    assert beside == pytest.approx(0.5 * solves, abs=0.51 * solves)


def test_rows_are_read_by_one_definition() -> None:
    """One call, a round trip of all blocks, and the bytes of a worker's share."""
    shape = shape_of_stats(SPARSE)
    read, made = scan(shape, THERE, 8.0 * (shape.d + 1)), gradient_pass(shape, THERE)
    for name in ("network", "tasks", "round_trips", "python"):
        assert getattr(made, name) == getattr(read, name)
    assert read.memory == shape.nbytes / 4
    assert scan(shape, THERE, 0.0, times=3).memory == 3 * read.memory


@pytest.mark.parametrize("where", [HERE, THERE], ids=["here", "workers"])
@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_calls_take_their_time_beside_whatever_they_do(name: str, where: Resources) -> None:
    """Arithmetic and memory traffic overlap; Python, tasks and questions do neither."""
    for stats in (
        Stats(2000, 30),
        DENSE,
        SPARSE,
        Stats(500, 3000, density=0.01, sparse=True),
    ):
        for loss in sorted(BY_NAME[name].losses):
            outline = Outline(loss, shape_of_stats(stats), l2=1e-3)
            found = BY_NAME[name].price(outline, where)
            if isinstance(found, str):
                continue
            cost = found(8)
            slower = replace(
                where, python=where.python / 2, task=2 * where.task,
                round_trip=2 * where.round_trip,
            )  # fmt: skip
            calls = Cost(python=cost.python, tasks=cost.tasks, round_trips=cost.round_trips)
            more = cost.seconds(slower, 2) - cost.seconds(where, 2)
            assert more == pytest.approx(calls.seconds(where), rel=1e-6), (stats, loss)
