"""Plans in order: what is predicted cheapest is not among the slow ones."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from tests.gd.operators.cases import problem, source, write_csv, write_libsvm

from mlopt.errors import InputError
from mlopt.gd.iterations import Estimate
from mlopt.gd.operators import (
    PLANS,
    CsvSource,
    Gradient,
    LibsvmSource,
    Settings,
    drawn,
    medium_of,
    plan_row,
    ranked,
    speculate,
    stats_of,
)
from mlopt.gd.operators.costs import Medium
from mlopt.resources import Resources
from mlopt.stats import Stats


def given(T: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(T, T if low is None else low, T if high is None else high, None, 0.0)


SAME = {name: given(1000) for name in ("bgd", "mgd", "sgd")}


def test_with_iterations_given_a_decision_takes_less_than_a_tenth_of_a_second() -> None:
    settings, took = Settings(), []
    for _ in range(5):  # caches may be cold
        begin = time.thread_time()
        found = ranked(SAME, settings, Stats(10**6, 20), Medium(10**9, 10**7), Resources())
        took.append(time.thread_time() - begin)
    assert min(took) < 0.1
    assert len(found) == 11
    assert [p.seconds for p in found] == sorted(p.seconds for p in found)
    # The paper fixes 1000 iterations, and SGD is chosen for every data set.
    assert found[0].row.algorithm == "sgd"
    assert found[0].row.lazy


def test_iterations_decide_between_algorithms() -> None:
    iterations = {"bgd": given(10), "sgd": given(10**7)}
    stats, medium = Stats(10**5, 20), Medium(2 * 10**7, 10**6)
    found = ranked(iterations, Settings(), stats, medium, Resources())
    assert found[0].row.name == "bgd/eager"
    assert {priced.row.algorithm for priced in found} == {"bgd", "sgd"}
    with pytest.raises(InputError, match="`iterations` must have one of"):
        ranked({"newton": given(3)}, Settings(), stats, medium, Resources())


def test_an_interval_of_iterations_is_one_of_seconds() -> None:
    iterations = {"bgd": given(100, 50, 400)}
    stats, medium = Stats(10**5, 20), Medium(2 * 10**7, 10**6)
    (found,) = ranked(iterations, Settings(), stats, medium, Resources())
    assert found.low < found.seconds < found.high


def test_sources_are_described_without_reading_them(tmp_path: Path) -> None:
    X, y = problem(3000, 4)
    X[X < 0] = 0
    text = CsvSource(write_csv(tmp_path / "a.csv", X, y), partition_bytes=9000)
    before = text.counts.bytes_read
    stats, medium = stats_of(text), medium_of(text)
    assert text.counts.bytes_read == before
    assert stats.rows == pytest.approx(3000, rel=0.05)
    assert stats.density == pytest.approx(0.5, abs=0.1)
    assert medium.nbytes == text.size
    sparse = stats_of(LibsvmSource(write_libsvm(tmp_path / "b.txt", X, y), columns=4))
    assert sparse.sparse
    assert stats_of(source(sp.csr_array(X), y)).density == pytest.approx(np.mean(X > 0))
    assert medium_of(source(X, y)).memory


@pytest.mark.slow
def test_the_choice_is_far_from_the_worst_of_what_was_run(tmp_path: Path) -> None:
    X, y = problem(20_000, 6)
    path = write_csv(tmp_path / "a.csv", X, y)
    settings = Settings(Gradient(l2=0.01), batch=100)
    iterations = {}
    for name in ("bgd/eager", "mgd/eager/random-partition", "sgd/eager/random-partition"):
        algorithm = plan_row(name).build(settings)
        found = speculate(algorithm, drawn(algorithm, CsvSource(path)), seconds=3)
        iterations[algorithm.name.split("/")[0]] = found.iterations(0.03)
    text = CsvSource(path)
    order = ranked(iterations, settings, stats_of(text), medium_of(text), Resources())
    took = {}
    for row in PLANS:
        T = max(1, round(iterations[row.algorithm].iterations))
        fixed = Settings(settings.compute, batch=100, max_iter=T, tolerance=0)
        took[row.name] = row.build(fixed).run(CsvSource(path)).seconds
    chosen = order[0].row.name
    # To avoid the worst plans is the goal (ML4all, section 8); clocks are noisy.
    assert took[chosen] < 0.5 * max(took.values())
    assert order[-1].row.name != min(took, key=took.__getitem__)
