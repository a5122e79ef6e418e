"""Factors of costs: stored, loaded, and applied where implementations are chosen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.least_squares_fit import SOLVERS
from mlopt.gd.plans.fitting import prices
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.stop import CoefficientError
from mlopt.gd.pricing import Shape
from mlopt.pipeline.library import pca_plan
from mlopt.pipeline.library.choosing import choose
from mlopt.pipeline.library.image import Convolver
from mlopt.pipeline.library.image.convolution_plan import Sizes
from mlopt.plan import Choice
from mlopt.resources import Calibration, Factors, Resources, cache, probe

FOUND = Calibration(
    (
        ("PCA/tsqr", Factors(flops=0.5, memory=2.0)),
        ("Ridge/svd", Factors(flops=1.25, fixed=3.0)),
    )
)
KEY = {"host": "here", "processor": "one", "threads": "2", "numpy": "2.0"}
SLOW = Factors(*[30.0] * 5)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setattr(cache, "directory", lambda: tmp_path / "cache")
    monkeypatch.setattr(probe, "_known", {})
    return tmp_path / "cache"


def test_what_was_stored_is_loaded() -> None:
    assert cache.load_calibration(KEY) == Calibration()
    assert cache.store_calibration(KEY, FOUND)
    assert cache.load_calibration(KEY) == FOUND
    assert Calibration.from_dict(FOUND.to_dict()) == FOUND


def test_factors_hold_for_any_number_of_threads_of_the_same_machine() -> None:
    cache.store_calibration(KEY, FOUND)

    assert cache.load_calibration({**KEY, "threads": "64"}) == FOUND
    assert cache.load_calibration({**KEY, "host": "elsewhere"}) == Calibration()
    assert cache.load_calibration({**KEY, "processor": "another"}) == Calibration()


def test_factors_of_other_formulas_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store_calibration(KEY, FOUND)
    monkeypatch.setattr(cache, "FORMULAS", "other")

    assert cache.load_calibration(KEY) == Calibration()


@pytest.mark.parametrize(
    "factors", [{"Ridge/svd": {"flops": -1.0}}, {"Ridge/svd": {"hops": 1.0}}, [], None]
)
def test_a_damaged_file_is_no_calibration(folder: Path, factors: Any) -> None:
    cache.store_calibration(KEY, FOUND)
    (file,) = folder.iterdir()
    file.write_text(json.dumps({"formulas": cache.FORMULAS, "factors": factors}))

    assert cache.load_calibration(KEY) == Calibration()


def test_a_probe_finds_the_calibration_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probe, "measure", lambda threads: {"gemm_f64": 4e10})
    assert Resources.remembered().gemm_f64 == Resources().gemm_f64
    assert probe.keep_calibration(FOUND)
    later = Calibration((("Ridge/svd", Factors(flops=2.0)),))
    assert probe.keep_calibration(later)

    assert Resources.probe().calibration == FOUND.updated(later)
    assert Resources.remembered() == Resources.probe()
    assert Resources.remembered().gemm_f64 == 4e10
    assert "calibration" not in Resources.probe().to_dict()


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), float("inf")])
def test_factors_are_positive(wrong: float) -> None:
    with pytest.raises(InputError, match="must be finite and positive, got memory"):
        Factors(memory=wrong)


def test_factors_scale_every_part_and_leave_what_is_the_machines() -> None:
    cost = (Cost(flops=2e10, memory=1e9) | Cost(fixed=0.5, python=0.1)) + Cost(
        network=1e9, tasks=3
    )
    scaled = cost.scaled(Factors(2.0, 3.0, 4.0, 5.0, 20.0))

    assert scaled.parts[0].parts[0] == Cost(flops=4e10, memory=4e9)
    assert scaled.parts[0].parts[1] == Cost(fixed=2.5, python=2.0)
    assert scaled.parts[1] == cost.parts[1]
    assert cost.scaled(Factors()) is cost


def slowed(operator: str, name: str) -> Resources:
    """A machine on which one implementation is far slower than counted."""
    entries = ((f"{operator}/{name}", SLOW),)
    return replace(Resources(), calibration=Calibration(entries))


def test_least_squares_are_solved_by_what_the_calibration_says() -> None:
    shape = Shape(
        n=100_000, d=50, columns=1, nonzero=5_000_000, itemsize=8, sparse=False, blocks=16
    )
    outline = Outline("squared", shape, l2=1e-5, stop=CoefficientError(1e-8, 1e-4))

    def choice(machine: Resources, wanted: str = "auto") -> Choice:
        return choose("Ridge", wanted, prices(SOLVERS, outline, machine), machine)

    def chosen(machine: Resources) -> str:
        return choice(machine).chosen

    assert chosen(Resources()) == "cholesky"
    assert chosen(slowed("Ridge", "cholesky")) != "cholesky"
    assert chosen(slowed("PCA", "cholesky")) == "cholesky"
    asked = choice(slowed("Ridge", "cholesky"), "cholesky")
    counted = prices(["cholesky"], outline, Resources())["cholesky"]
    assert isinstance(counted, Cost)
    assert asked.predicted == pytest.approx(30.0 * counted.seconds(Resources()))


def test_components_are_found_by_what_the_calibration_says() -> None:
    rows = Shape(
        n=100_000, d=64, columns=0, nonzero=6_400_000, itemsize=8, sparse=False, blocks=16
    )
    shape = pca_plan.Shape(rows, 8, needs_all=False, oversamples=10, iterations=7)

    def chosen(machine: Resources) -> str:
        return pca_plan.choose_solver("PCA", "auto", shape, machine).chosen

    assert chosen(Resources()) == "covariance-eigh"
    assert chosen(slowed("PCA", "covariance-eigh")) != "covariance-eigh"


def test_images_are_convolved_by_what_the_calibration_says() -> None:
    sizes, convolver = Sizes(1, 256, 256, 3, 50, 3, separable=True), Convolver([[[0.0]]])

    assert convolver.choose(sizes, Resources()) == "matrix"
    assert convolver.choose(sizes, slowed("Convolver", "matrix")) == "separable"
    assert convolver.choose(sizes, slowed("Convolver", "fft")) == "matrix"
