"""Rows of workers come to this process where that takes less, and a plan says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import dask
import pytest

from mlopt.gd.plans import place
from mlopt.gd.plans.fitting import prices
from mlopt.gd.plans.methods import BY_NAME, METHODS
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.place import places, ways
from mlopt.gd.plans.stop import RelativeGap
from mlopt.gd.pricing import Shape
from mlopt.resources import Resources
from mlopt.resources.descriptor import GIB

REMOTE = Resources(
    workers=4, memory=16 * GIB, network=2e8, round_trip=5e-3, task=1e-3, cluster=True
)
IN_ONE_PIECE = [method.name for method in METHODS if method.in_one_piece]


@pytest.fixture(autouse=True)
def where_it_pays() -> Iterator[None]:
    with dask.config.set({"mlopt.plan": "where it pays"}):
        yield


def outline(n: int, d: int = 20) -> Outline:
    shape = Shape(n=n, d=d, columns=1, nonzero=n * d, itemsize=8, sparse=False, blocks=8)
    return Outline("logistic", shape, l2=1e-3, stop=RelativeGap(1e-6))


def brings(name: str, n: int) -> bool:
    able, _ = ways(BY_NAME[name], places(outline(n), REMOTE, comes=True))
    best, _ = min(able, key=lambda way: way[1](10).seconds(REMOTE))
    return best.brings


def test_few_rows_come_and_many_stay() -> None:
    assert brings("lbfgs", 3000)
    assert not brings("lbfgs", 3_000_000)


def test_they_stay_where_somebody_else_has_chosen_their_place() -> None:
    able, _ = ways(BY_NAME["lbfgs"], places(outline(3000), REMOTE))
    assert [where.brings for where, _ in able] == [False]
    cost = prices(("lbfgs",), outline(3000), REMOTE, 10)["lbfgs"]
    assert not isinstance(cost, str)
    assert cost.round_trips > 10


def test_they_come_once_however_many_passes_there_are() -> None:
    given = outline(3000)
    there, here = places(given, REMOTE, comes=True)
    price = here.price(BY_NAME["lbfgs"])
    assert callable(price)
    few, many = price(5), price(50)
    assert few.network == many.network == given.shape.nbytes
    assert few.round_trips == many.round_trips == 1
    asks = there.price(BY_NAME["lbfgs"])
    assert callable(asks)
    assert asks(50).round_trips - asks(5).round_trips == pytest.approx(45)


def test_what_is_planned_in_any_case_stays() -> None:
    with dask.config.set({"mlopt.plan": "always"}):
        assert not brings("lbfgs", 3000)
        assert brings("dual-logistic", 3000)


def test_rows_of_this_process_are_where_they_are() -> None:
    (only,) = places(outline(3000), Resources())
    assert not only.brings


def test_one_worker_is_asked_as_several_are() -> None:
    one = replace(REMOTE, workers=1)
    assert one.remote
    assert not one.one_process.remote
    with dask.config.set({"mlopt.plan": "always"}):
        cost = prices(("lbfgs",), outline(3000), one, 10)["lbfgs"]
    assert not isinstance(cost, str)
    assert cost.round_trips > 10


@pytest.mark.parametrize("name", IN_ONE_PIECE)
def test_too_many_bytes_do_not_come(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "memory_limit", lambda: 1000)
    given = replace(outline(3000), loss="squared_hinge")
    found, why = ways(BY_NAME[name], places(given, REMOTE, comes=True))
    assert not found
    assert f"{given.shape.nbytes} bytes" in why
    assert "is 500" in why


def test_a_copy_that_is_much_for_a_worker_does_not_come() -> None:
    small = replace(REMOTE, memory=4 * outline(3000).shape.nbytes)
    with_room = ways(BY_NAME["lbfgs"], places(outline(3000), REMOTE, comes=True))[0]
    without = ways(BY_NAME["lbfgs"], places(outline(3000), small, comes=True))[0]
    assert len(with_room) == 2
    assert all(not where.brings for where, _ in without)
