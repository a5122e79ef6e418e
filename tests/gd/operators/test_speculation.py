"""The paper's speculation on a sample: its measure, its curve, its budget of time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.clocks import Clock
from tests.gd.operators.cases import problem, source, write_csv

from mlopt.gd.operators import CsvSource, Gradient, Settings, plan_row
from mlopt.gd.operators.speculation import drawn, speculate
from mlopt.gd.operators.updates import InverseRoot

SETTINGS = Settings(Gradient("logistic", l2=0.01), InverseRoot(1.0), batch=50)


def test_the_papers_measure_and_curve_have_the_order_of_magnitude() -> None:
    X, y = problem(3000, 5)
    algorithm = plan_row("bgd/eager").build(replace(SETTINGS, fidelity=True))
    found = speculate(algorithm, drawn(algorithm, source(X, y)))
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
    names = ("bgd/eager", "mgd/eager/random-partition")
    one, two = (drawn(plan_row(name).build(SETTINGS), text, 300) for name in names)
    np.testing.assert_array_equal(one.y, two.y)
    assert one.n == 300
    assert text.counts.bytes_read < 0.5 * text.size
    rows = {tuple(row) for row in X.tolist()}
    assert all(tuple(row) in rows for row in one.rows.collect().tolist())


def test_the_time_budget_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    clock.install(monkeypatch, "mlopt.gd.operators.speculation")

    def never(weights: np.ndarray) -> float:
        del weights
        clock.alone(0.01)
        return 1.0

    X, y = problem(1000, 5)
    algorithm = plan_row("sgd/eager/random-partition").build(SETTINGS)
    algorithm = replace(algorithm, converge=never)
    sample = drawn(algorithm, source(X, y))
    found = speculate(algorithm, sample, seconds=0.05, max_iter=10**6)
    assert found.seconds == pytest.approx(0.05, abs=0.011)
