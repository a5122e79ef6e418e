"""Experiments run every implementation, and all of an operator solve one problem."""

from __future__ import annotations

import pytest

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.least_squares import Ridge
from mlopt.pipeline.calibration import components, convolution, linear
from mlopt.pipeline.calibration.cases import Case
from mlopt.pipeline.calibration.running import measure
from mlopt.pipeline.calibration.table import DESIGNS
from mlopt.resources import Calibration, Factors, Resources

ANYTHING = 1e9
"""Seconds that nothing is predicted to take."""


@pytest.mark.slow
@pytest.mark.parametrize("operator", DESIGNS)
def test_every_implementation_is_measured(operator: str) -> None:
    names: dict[str, None] = {}
    for case in DESIGNS[operator](Resources(), tiny=True):
        assert case.operator == operator
        assert case.choose(Resources()) in case.options
        for one in case.measure(Resources(), ANYTHING, repeat=1):
            assert one.seconds > 0
            assert one.cost.seconds(Resources()) > 0
            names[one.implementation] = None

    assert set(names) == set(case.options)


def test_costs_are_counted_without_a_calibration() -> None:
    factors = Factors(2.0, 2.0, 2.0, 2.0)
    names = [
        f"{op}/{w}" for op, w in (("Ridge", "svd"), ("PCA", "tsqr"), ("Convolver", "fft"))
    ]
    calibrated = Resources(
        calibration=Calibration(tuple((name, factors) for name in names))
    )

    for design in DESIGNS.values():
        for plain, other in zip(
            design(Resources(), tiny=True), design(calibrated, tiny=True), strict=True
        ):
            assert plain.options == other.options


def case_of(options: dict[str, Cost | str], ran: list[str]) -> Case:
    def solve(name: str) -> None:
        ran.append(name)

    return Case("Ridge", "none", options, solve, lambda machine: "svd")


def test_what_cannot_be_used_or_takes_too_long_is_not_run() -> None:
    options: dict[str, Cost | str] = {
        "svd": Cost(fixed=0.1),
        "block": Cost(fixed=10.0),
        "cholesky": "no room",
    }
    ran: list[str] = []
    found = list(case_of(options, ran).measure(Resources(), limit=1.0, repeat=3))

    assert ran == ["svd", "svd", "svd"]
    assert [one.implementation for one in found] == ["svd"]


def test_a_solver_that_iterates_is_charged_for_its_own_steps() -> None:
    X, y = linear.problem(300, 40, 1)
    case = linear.case(Ridge(tol=1e-3), X, y, Resources())
    few, many = (
        linear.case(Ridge(tol=tol), X, y, Resources()).solve("sparse_cg")
        for tol in (1e-1, 1e-12)
    )

    assert isinstance(few, Cost)
    assert isinstance(many, Cost)
    assert many.memory > few.memory
    assert case.solve("cholesky") == case.options["cholesky"]


def test_problems_are_the_same_at_every_call() -> None:
    for make in (
        lambda: linear.problem(50, 5, 2),
        lambda: linear.problem(50, 20, 1, 0.1),
        lambda: (components.problem(30, 4),) * 2,
        lambda: convolution.problem(1, 8, 2, 3, 3),
    ):
        for first, again in zip(make(), make(), strict=True):
            assert abs(first - again).sum() == 0


def test_an_operator_without_experiments_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"no experiments with \['Lasso'\]"):
        measure(Resources(), "Lasso")
