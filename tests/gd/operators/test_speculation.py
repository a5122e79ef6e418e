"""Speculation on a sample: the right order of magnitude, and of the algorithms."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.clocks import Clock
from tests.gd.operators.cases import problem, source, write_csv

from mlopt.errors import InputError
from mlopt.gd.operators import (
    CsvSource,
    Gradient,
    MatrixSource,
    Settings,
    UserGradient,
    plan_row,
)
from mlopt.gd.operators.running import Run
from mlopt.gd.operators.speculation import Excess, drawn, speculate
from mlopt.gd.operators.steps import InverseRoot

SETTINGS = Settings(Gradient("logistic", l2=0.01), InverseRoot(1.0), batch=50)
NAMES = ("bgd/eager", "mgd/eager/random-partition", "sgd/eager/random-partition")


def reached(name: str, rows: MatrixSource, eps: float) -> float:
    """In how many iterations over all rows the excess falls to ``eps``."""
    algorithm = replace(
        plan_row(name).build(SETTINGS), loop=lambda delta: True, max_iter=5000
    )
    excess, run = Excess.of(algorithm, rows), algorithm.start(rows, seed=1)
    while excess(run) > eps:
        run.advance(1)
        assert not run.done
    return run.passes


@pytest.mark.slow
def test_estimates_have_the_order_of_magnitude_and_the_order_of_the_algorithms() -> None:
    X, y = problem(8000, 8)
    rows = source(X, y)
    real, found = {}, {}
    for name in NAMES:
        algorithm = plan_row(name).build(SETTINGS)
        speculation = speculate(algorithm, drawn(algorithm, rows), seconds=5)
        estimate = speculation.iterations(0.015)
        real[name], found[name] = reached(name, rows, 0.015), estimate.iterations
        assert 1 / 4 < estimate.iterations / real[name] < 4
        assert estimate.low <= estimate.iterations <= estimate.high
    bgd, mgd, sgd = NAMES
    for one, other in ((bgd, sgd), (mgd, sgd)):
        assert real[one] < real[other]
        assert found[one] < found[other]
    # These two are a tie: neither may look much better than the other.
    assert 1 / 2 < found[bgd] / found[mgd] < 2


def test_with_fidelity_the_papers_measure_and_curve_are_used() -> None:
    X, y = problem(3000, 5)
    algorithm = plan_row("bgd/eager").build(replace(SETTINGS, fidelity=True))
    sample = drawn(algorithm, source(X, y))
    found = speculate(algorithm, sample, fidelity=True)
    assert found.pairs[-1][0] <= 0.05 < found.pairs[-2][0]
    assert [i for _, i in found.pairs] == list(range(1, len(found.pairs) + 1))
    estimate = found.iterations(0.02)
    assert estimate.curve is not None
    assert estimate.curve.name == "inverse"
    long = algorithm.run(source(X, y))
    first = next(r.iteration for r in long.history if r.delta <= 0.02)
    assert 1 / 10 < estimate.iterations / first < 10


def test_samples_are_the_same_for_all_algorithms_and_read_little(tmp_path: Path) -> None:
    X, y = problem(20_000, 4)
    text = CsvSource(write_csv(tmp_path / "a.csv", X, y))
    one, two = (drawn(plan_row(name).build(SETTINGS), text, 300) for name in NAMES[:2])
    np.testing.assert_array_equal(one.y, two.y)
    assert one.n == 300
    assert text.counts.bytes_read < 0.5 * text.size
    rows = {tuple(row) for row in X.tolist()}
    assert all(tuple(row) in rows for row in one.rows.collect().tolist())


def test_the_time_budget_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    clock.install(monkeypatch, "mlopt.gd.operators.speculation")

    def measure(run: Run) -> float:
        clock.alone(0.01)
        return 1.0

    X, y = problem(1000, 5)
    algorithm = plan_row("sgd/eager/random-partition").build(SETTINGS)
    sample = drawn(algorithm, source(X, y))
    found = speculate(algorithm, sample, seconds=0.05, max_iter=10**6, measure=measure)
    assert found.seconds == pytest.approx(0.05, abs=0.011)


def test_the_excess_needs_an_objective_and_something_to_train() -> None:
    X, y = problem(100, 3)
    blind = plan_row("bgd/eager").build(Settings(UserGradient(lambda x, y, w: w)))
    with pytest.raises(InputError, match="objective_of"):
        speculate(blind, drawn(blind, source(X, y)))
    idle = plan_row("bgd/eager").build(Settings(Gradient("squared")))
    with pytest.raises(InputError, match="nothing to train"):
        speculate(idle, drawn(idle, source(X, np.zeros(100))))
