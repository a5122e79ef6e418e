"""The algebra of work, the roofline, and lines through sampled sizes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from mlopt.costs import STRENGTH, WORK, Cost, Fit
from mlopt.errors import InputError
from mlopt.resources import Resources

amounts = st.integers(0, 10**9).map(float)
sources = st.sampled_from(sorted(STRENGTH))
leaves = st.builds(Cost, **dict.fromkeys(WORK, amounts), source=sources)
costs = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] | p[1]),
        st.tuples(st.integers(0, 9), inner).map(lambda p: p[0] * p[1]),
    ),
    max_leaves=6,
)
rates = st.floats(1e6, 1e12)
machines = st.builds(
    Resources,
    threads=st.integers(1, 64),
    gemm_f64=rates,
    gemm_f32=rates,
    bandwidth=rates,
    bandwidth_all=rates,
    disk=rates,
    network=rates,
    task=st.floats(0, 1),
    round_trip=st.floats(0, 1),
)
UNIT = Resources(
    gemm_f64=1,
    gemm_f32=2,
    bandwidth=1,
    bandwidth_all=1,
    disk=4,
    network=5,
    python=8,
    task=6,
    round_trip=7,
)


def close(a: float, b: float) -> bool:
    return a == pytest.approx(b, rel=1e-9, abs=1e-12)


@given(costs, costs, costs)
def test_sequence_and_overlap_are_associative(a: Cost, b: Cost, c: Cost) -> None:
    assert (a + b) + c == a + (b + c)
    assert (a | b) | c == a | (b | c)


@given(costs)
def test_no_work_is_the_identity(a: Cost) -> None:
    if not a.empty:
        assert a + Cost() == Cost() + a == a | Cost() == Cost() | a == a
        assert 1 * a == a
    assert 0 * a == Cost()


@given(costs, costs, st.integers(0, 1000), machines, st.integers(1, 64))
def test_a_loop_distributes_over_sequence_and_overlap(
    a: Cost, b: Cost, n: int, machine: Resources, threads: int
) -> None:
    for whole, parts in ((n * (a + b), n * a + n * b), (n * (a | b), n * a | n * b)):
        assert close(whole.seconds(machine, threads), parts.seconds(machine, threads))


@given(costs, costs, machines)
def test_sequence_adds_times_and_overlap_takes_the_longer(
    a: Cost, b: Cost, machine: Resources
) -> None:
    times = a.seconds(machine), b.seconds(machine)
    assert close((a + b).seconds(machine), sum(times))
    assert close((a | b).seconds(machine), max(times))


@given(costs, costs, machines)
def test_overlap_never_takes_longer_than_sequence(
    a: Cost, b: Cost, machine: Resources
) -> None:
    assert (a | b).seconds(machine) <= (a + b).seconds(machine) * (1 + 1e-12)


@given(leaves, machines, st.sampled_from(WORK), st.integers(1, 10**9), st.integers(1, 64))
def test_more_work_never_takes_less_time(
    cost: Cost, machine: Resources, name: str, more: int, threads: int
) -> None:
    larger = dataclasses.replace(cost, **{name: getattr(cost, name) + more})
    assert larger.seconds(machine, threads) >= cost.seconds(machine, threads)


@given(costs, machines, st.integers(1, 63))
def test_more_threads_never_take_longer(
    cost: Cost, machine: Resources, threads: int
) -> None:
    assert cost.seconds(machine, threads + 1) <= cost.seconds(machine, threads) * (
        1 + 1e-12
    )


@given(costs, costs)
def test_the_numbers_of_a_combination_are_the_sums_over_its_parts(a: Cost, b: Cost) -> None:
    for both in (a + b, a | b):
        for name in WORK:
            assert close(getattr(both, name), getattr(a, name) + getattr(b, name))


@given(leaves, leaves)
def test_a_combination_is_as_weak_as_its_weakest_part(a: Cost, b: Cost) -> None:
    if not a.empty and not b.empty:
        weakest = min(a.source, b.source, key=STRENGTH.__getitem__)
        assert (a + b).source == (a | b).source == (3 * (a + b)).source == weakest


def test_inside_a_leaf_arithmetic_and_memory_overlap() -> None:
    assert Cost(flops=3, memory=10).seconds(UNIT) == 10
    assert Cost(flops=30, memory=10).seconds(UNIT) == 30
    assert (Cost(flops=3) + Cost(memory=10)).seconds(UNIT) == 13


def test_every_component_has_its_rate() -> None:
    by_name = {
        name: dataclasses.replace(Cost(), **{name: 20.0}).seconds(UNIT)  # type: ignore[arg-type]
        for name in WORK
    }
    assert by_name == {
        "flops": 20, "flops32": 10, "memory": 20, "disk": 5, "network": 4,
        "tasks": 120, "round_trips": 140, "python": 2.5, "fixed": 20,
    }  # fmt: skip


def test_memory_traffic_stops_scaling_when_the_bus_is_full() -> None:
    machine = dataclasses.replace(UNIT, bandwidth_all=2.5)
    assert Cost(memory=10).seconds(machine, threads=2) == 5
    assert Cost(memory=10).seconds(machine, threads=8) == 4
    assert Cost(flops=16).seconds(machine, threads=8) == 2


def test_85_partitions_on_20_slots_are_5_waves() -> None:
    """ML4all, section 7: the worked example of its cost model."""
    assert Cost(fixed=1).waves(85, 20) == Cost(fixed=5)
    assert Cost(fixed=1).waves(80, 20) == Cost(fixed=4)
    assert Cost(fixed=1).waves(0, 20) == Cost()


def test_costs_can_be_summed() -> None:
    assert sum([Cost(flops=1), Cost(flops=2)], Cost()).seconds(UNIT) == 3
    assert sum([Cost(flops=1), Cost(flops=2)]).seconds(UNIT) == 3  # type: ignore[union-attr]


@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_negative_work_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="`memory` of a Cost must be at least 0"):
        Cost(memory=value)
    with pytest.raises(InputError, match="repeats at least 0 times"):
        value * Cost(flops=1)


def test_an_unknown_source_and_no_slots_are_refused() -> None:
    with pytest.raises(InputError, match="`source` must be one of"):
        Cost(source="guessed")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="`slots` must be at least 1"):
        Cost(flops=1).waves(3, 0)


sizes = st.lists(st.integers(1, 10**6), min_size=2, max_size=8, unique=True)


@given(sizes, st.floats(0, 1e3), st.floats(0, 1e3))
def test_a_line_is_recovered(sizes: list[int], a: float, b: float) -> None:
    fit = Fit.of(sizes, [a * n + b for n in sizes])
    for n in (*sizes, 10**7):
        assert fit.at(n) == pytest.approx(a * n + b, rel=1e-6, abs=1e-6)


@given(sizes, st.data())
def test_the_line_is_the_best_that_is_not_negative(
    sizes: list[int], data: st.DataObject
) -> None:
    values = data.draw(
        st.lists(st.floats(0, 1e3), min_size=len(sizes), max_size=len(sizes)),
        label="values",
    )
    fit = Fit.of(sizes, values)
    assert fit.a >= 0
    assert fit.b >= 0
    scaled = np.array(sizes) / max(sizes)
    _, norm = nnls(np.column_stack([scaled, np.ones(len(sizes))]), np.array(values))
    residuals = np.array(values) - [fit.at(n) for n in sizes]
    assert np.linalg.norm(residuals) <= norm * (1 + 1e-6) + 1e-6


def test_a_falling_line_is_clamped_to_its_mean_and_a_late_one_to_the_origin() -> None:
    assert (Fit.of([1, 3], [4, 2]).a, Fit.of([1, 3], [4, 2]).b) == (0, 3)
    late = Fit.of([1, 2], [0, 10])
    assert (late.a, late.b) == (4, 0)


def test_one_size_grows_in_proportion() -> None:
    assert Fit.of([512], [2.0]).at(1024) == 4.0


@pytest.mark.parametrize(
    ("sizes", "values"),
    [([], []), ([1], [1, 2]), ([0], [1]), ([1], [-1]), ([1], [float("inf")])],
)
def test_samples_that_cannot_be_fitted_are_refused(
    sizes: list[float], values: list[float]
) -> None:
    with pytest.raises(InputError, match="`sizes`"):
        Fit.of(sizes, values)
