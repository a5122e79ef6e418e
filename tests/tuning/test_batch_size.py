"""What a shared scan costs, and how many models should share it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.pricing import gradient_pass, shape_of_stats
from mlopt.plan import Plan
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.stats import Stats
from mlopt.tuning.batch_size import (
    TOLERANCE,
    choose_batch_size,
    coarse_rates,
    models_in_words,
)

MACHINE = Resources(gemm_f64=1e11, gemm_f32=2e11, bandwidth=1.57e10, bandwidth_all=3.1e10)
TALL = Stats(1_000_000, 50, partitions=32)

shapes = st.builds(
    Stats,
    rows=st.integers(100, 10**7),
    columns=st.integers(1, 20_000),
    density=st.floats(0.001, 1),
    dtype=st.sampled_from(["float32", "float64"]),
    partitions=st.integers(1, 64),
    sparse=st.booleans(),
)


def pass_cost(stats: Stats, columns: int) -> Cost:
    return gradient_pass(shape_of_stats(stats, columns), Resources())


speeds = st.floats(1e9, 1e12)
machines = st.builds(Resources, gemm_f64=speeds, gemm_f32=speeds, bandwidth=speeds)


def test_a_pass_of_one_model_is_bound_by_memory() -> None:
    """400 MB at 15.7 GB/s, as much slower as they are read; arithmetic takes less."""
    cost, reading = pass_cost(TALL, 1), price("pass.read") * 400e6 / 1.57e10
    assert cost.memory == price("pass.read") * TALL.bytes
    assert cost.flops / MACHINE.gemm_f64 < reading
    calls = dataclasses.replace(cost, flops=0.0, memory=0.0).seconds(MACHINE)
    assert cost.seconds(MACHINE) - calls == pytest.approx(reading)


@given(shapes, st.integers(1, 4096), machines)
def test_more_models_never_make_a_pass_cheaper_except_past_the_fused_kernel(
    stats: Stats, columns: int, machine: Resources
) -> None:
    if columns > 1:
        less = pass_cost(stats, columns).seconds(machine)
        assert pass_cost(stats, columns + 1).seconds(machine) >= less


@given(shapes, st.integers(2, 4096))
def test_work_grows_at_most_in_proportion_to_the_models(stats: Stats, columns: int) -> None:
    one, two = pass_cost(stats, columns), pass_cost(stats, 2 * columns)
    assert two.flops + two.flops32 <= 2 * (one.flops + one.flops32)


@given(shapes, st.integers(1, 512))
def test_arithmetic_is_counted_in_its_own_precision(stats: Stats, columns: int) -> None:
    cost = pass_cost(stats, columns)
    assert (cost.flops32 > 0) == (stats.dtype == "float32")
    assert (cost.flops > 0) == (stats.dtype == "float64")
    least = 4 * columns * (stats.nonzeros if stats.sparse else stats.rows * stats.columns)
    assert cost.flops + cost.flops32 >= least


def test_single_precision_halves_the_traffic() -> None:
    assert (
        pass_cost(dataclasses.replace(TALL, dtype="float32", bytes=-1), 8).memory
        == pass_cost(TALL, 8).memory / 2
    )


def test_dense_batches_reach_the_rate_of_products() -> None:
    """At 32 columns or more at least half of the rate of a square product is used."""
    for columns in (32, 64, 128):
        wide = Stats(1_000_000, 2000, partitions=32)
        ideal = 4 * wide.rows * wide.columns * columns / MACHINE.gemm_f64
        assert pass_cost(wide, columns).seconds(MACHINE) < 2 * ideal


def test_sharing_a_scan_pays_on_dense_data() -> None:
    """TuPAQ, section 3.3.1; 4 to 15 times faster per model at B = 64."""
    one = pass_cost(TALL, 1).seconds(MACHINE)
    per_model = pass_cost(TALL, 64).seconds(MACHINE) / 64
    assert 4 < one / per_model < 15


@given(shapes, machines, st.integers(1, 10))
def test_the_fewest_models_within_a_tenth_of_the_best_are_chosen(
    stats: Stats, machine: Resources, each: int
) -> None:
    size, choice = choose_batch_size(stats, machine, columns_per_model=each)
    coarse = coarse_rates(machine)
    too_many = {one.name for one in choice.rejected if one.reason}  # for the memory
    sizes = [s for s in map(pow2, range(10)) if models_in_words(s) not in too_many]
    took = {s: pass_cost(stats, s * each).seconds(coarse) / s for s in sizes}
    limit = (1 + TOLERANCE) * min(took.values())
    assert took[size] <= limit
    assert all(took[s] > limit for s in took if s < size)
    assert len(choice.rejected) == 9


def pow2(k: int) -> int:
    return 1 << k


@given(shapes, machines, st.integers(1, 256), st.integers(1, 64))
def test_threads_workers_and_overheads_do_not_change_the_choice(
    stats: Stats, machine: Resources, threads: int, workers: int
) -> None:
    other = dataclasses.replace(
        machine,
        threads=threads,
        workers=workers,
        memory=workers * machine.memory,  # each has as much
        bandwidth_all=1e13,
        task=0.5,
        round_trip=1.0,
    )
    assert choose_batch_size(stats, other)[0] == choose_batch_size(stats, machine)[0]


@given(shapes, st.floats(0.9, 1.1), st.floats(0.9, 1.1))
def test_a_noisy_probe_does_not_change_the_choice(stats: Stats, a: float, b: float) -> None:
    quiet = Resources(gemm_f64=2.0**35, gemm_f32=2.0**36, bandwidth=2.0**34)
    noisy = dataclasses.replace(
        quiet, gemm_f64=a * 2.0**35, gemm_f32=a * 2.0**36, bandwidth=b * 2.0**34
    )
    assert choose_batch_size(stats, noisy)[0] == choose_batch_size(stats, quiet)[0]


@given(shapes, st.integers(1, 600))
def test_a_batch_has_no_more_models_than_there_are(stats: Stats, n_models: int) -> None:
    size, _ = choose_batch_size(stats, MACHINE, columns_per_model=5, n_models=n_models)
    assert 1 <= size <= n_models


def test_a_batch_has_no_more_models_than_there_is_room_for() -> None:
    wide = Stats(1000, 4000, density=0.01, sparse=True)
    small = dataclasses.replace(MACHINE, memory=10**9)
    given: dict[str, Any] = {"columns_per_model": 50, "n_models": 64, "at_once": 64}
    assert choose_batch_size(wide, MACHINE, **given)[0] > 16
    size, choice = choose_batch_size(wide, small, **given)
    assert size == 16
    reasons = {one.name: one.reason for one in choice.rejected}
    assert "GiB for weights in training" in reasons["32 models"]
    assert not reasons["8 models"]
    least = dataclasses.replace(MACHINE, memory=10**6)
    assert choose_batch_size(wide, least, **given)[0] == 1


def test_tiny_data_shares_one_scan_to_pay_its_overhead_once() -> None:
    """TuPAQ, section 3.3.2: 200 ms a task over ten models are 20 ms a model."""
    digits = Stats(1797, 64)
    assert choose_batch_size(digits, MACHINE)[0] >= 128


def test_the_decision_can_be_read() -> None:
    size, choice = choose_batch_size(TALL, MACHINE, columns_per_model=5)
    text = Plan("search", (choice,)).explain(verbose=True)
    assert f"{size} models a scan" in text
    assert "rejected: " in text
    assert "512 models" in text
    assert "per model and pass" in text


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="`columns_per_model` and `n_models`"):
        choose_batch_size(TALL, MACHINE, n_models=0)


def test_models_that_train_at_once_share_a_scan_whatever_comes_back_early() -> None:
    given: dict[str, Any] = {"columns_per_model": 5, "n_models": 64}
    early, _ = choose_batch_size(TALL, MACHINE, **given)
    assert early < choose_batch_size(TALL, MACHINE, at_once=64, **given)[0] == 64
    assert choose_batch_size(TALL, MACHINE, at_once=2, **given)[0] == early
