"""Factors of costs, recovered from times that were made by known factors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.pipeline.calibration.fitting import RIDGE, Measurement, fit, grouped
from mlopt.resources import Calibration, Factors, Resources

MACHINE = Resources(gemm_f64=1e10, gemm_f32=2e10, bandwidth=1e10, bandwidth_all=1e10)
COSTS = [
    Cost(flops=1e10 * size**2) + Cost(memory=1e10 * size) + Cost(fixed=0.02)
    for size in np.geomspace(0.003, 3.0, 12)
]
factor = st.floats(0.2, 5.0)


def measured(cost: Cost, truth: Factors, noise: float = 1.0) -> Measurement:
    return Measurement("Ridge", "svd", cost, noise * cost.scaled(truth).seconds(MACHINE))


def found(measurements: list[Measurement]) -> Factors:
    return fit(measurements, MACHINE).of("Ridge", "svd")


@settings(deadline=None, max_examples=10)
@given(factor, factor, factor)
def test_known_factors_are_recovered(flops: float, memory: float, fixed: float) -> None:
    truth = Factors(flops=flops, memory=memory, fixed=fixed)
    # Each term is most of some experiment; where it never is, it hardly matters.
    ruled = [Cost(flops=1e11), Cost(memory=1e11), Cost(fixed=10.0)]
    guess = found([measured(cost, truth) for cost in (*COSTS, *ruled, *ruled)])

    for name in ("flops", "memory", "fixed"):
        assert getattr(guess, name) == pytest.approx(getattr(truth, name), rel=0.15)


@settings(deadline=None, max_examples=20)
@given(factor, factor)
def test_within_a_roofline_the_slower_term_is_found(flops: float, memory: float) -> None:
    truth = Factors(flops=flops, memory=memory)
    costs = [Cost(flops=1e10 * a, memory=1e10 * b) for a, b in [(1, 30), (2, 60), (30, 1)]]
    guess = found([measured(cost, truth) for cost in 4 * costs])

    assert guess.flops == pytest.approx(flops, rel=0.05)
    assert guess.memory == pytest.approx(memory, rel=0.05)


def test_one_run_on_a_busy_machine_moves_little() -> None:
    truth = Factors(flops=2.0, memory=0.5, fixed=1.5)
    busy = [
        measured(cost, truth, noise=10.0 if i == 5 else 1.0) for i, cost in enumerate(COSTS)
    ]
    calm = found([measured(cost, truth) for cost in COSTS])

    for cost in COSTS:
        ratio = cost.scaled(found(busy)).seconds(MACHINE) / cost.scaled(calm).seconds(
            MACHINE
        )
        assert 1 / 1.4 < ratio < 1.4


def test_small_and_large_experiments_count_by_their_relative_error() -> None:
    pair = [Cost(flops=1e7), Cost(flops=1e13)]
    times = [4.0, 1.0]  # the small one is four times as slow as counted, the large one not
    rows = [
        Measurement("PCA", "tsqr", cost, took * cost.seconds(MACHINE))
        for cost, took in zip(pair, times, strict=True)
    ]
    guess = fit(rows, MACHINE).of("PCA", "tsqr").flops

    assert guess == pytest.approx(2.0, rel=0.1)


def test_terms_that_no_experiment_has_stay_as_counted() -> None:
    guess = found([measured(Cost(flops=1e9), Factors(flops=3.0))])

    assert guess.flops == pytest.approx(3.0, rel=0.1 + RIDGE)
    assert (guess.flops32, guess.memory, guess.fixed) == (1.0, 1.0, 1.0)


def test_a_calibration_that_is_there_plays_no_part() -> None:
    rows = [measured(cost, Factors(flops=2.0)) for cost in COSTS]
    calibrated = replace(
        MACHINE, calibration=Calibration((("Ridge/svd", Factors(9, 9, 9, 9)),))
    )

    assert fit(rows, calibrated) == fit(rows, MACHINE)


def test_ratios_use_the_calibration_of_the_resources() -> None:
    row = Measurement("Ridge", "svd", Cost(flops=1e10), 2.0)
    calibrated = replace(MACHINE, calibration=Calibration((("Ridge/svd", Factors(2.0)),)))

    assert row.ratio(MACHINE) == pytest.approx(0.5)
    assert row.ratio(calibrated) == pytest.approx(1.0)
    assert list(grouped([row, row])) == ["Ridge/svd"]


def test_no_time_is_no_measurement() -> None:
    with pytest.raises(InputError, match="`seconds` must be positive"):
        Measurement("Ridge", "svd", Cost(flops=1.0), 0.0)
