"""What is uncertain counts for more, what disappoints is left, wide squares stop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from mlopt.cluster import Threads
from mlopt.gd.plans import Task, plan
from mlopt.gd.plans.fitting import Ranker, _too_late
from mlopt.gd.plans.forecast import Passes
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.plans.proof import proof_cost
from mlopt.gd.plans.running import raced
from mlopt.gd.plans.stop import RelativeGap
from mlopt.gd.plans.task import problem_of
from mlopt.gd.sample import draw
from mlopt.gd.sizes import WIDEST
from mlopt.resources import Resources
from mlopt.rows import Rows

Array = NDArray[Any]


def correlated(n: int, d: int) -> tuple[Array, Array]:
    """Columns that share a few factors: hard for any diagonal."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 3 * rng.normal(size=(n, 5)) @ rng.normal(size=(5, d))
    return X, X @ rng.normal(size=d) / np.sqrt(d) + rng.normal(size=n) + 2


def test_the_less_is_known_of_a_plan_the_more_it_counts() -> None:
    X, y = correlated(200, 5)
    problem = problem_of(Task("squared", l2=1e-3), X, y, Threads(1))
    plain = replace(
        BY_NAME["primal-coordinate-descent"],
        foreseen=lambda *_: None,
        usual=lambda *_: None,
    )
    methods = [replace(plain, name=str(doubt), doubt=doubt) for doubt in (20.0, 2.0)]
    ranker = Ranker(problem, Resources(), RelativeGap(1e-6), tuple(methods))
    sure, guess = ranker.ranked(methods)
    assert (sure.name, guess.name) == ("2.0", "20.0")
    assert sure.passes.expected == guess.passes.expected
    assert 2 < guess.predicted_seconds / sure.predicted_seconds < 4
    for one in (sure, guess):
        assert one.interval[0] < one.predicted_seconds < one.interval[1]


def test_a_gap_that_must_be_proven_costs_a_look_at_the_rows() -> None:
    X, y = correlated(2000, 20)
    seconds = {}
    for l2 in (0.0, 1e-3):  # without a penalty there is no proof
        problem = problem_of(Task("squared", l2=l2), X, y, Threads(1))
        ranker = Ranker(problem, Resources(), RelativeGap(1e-6), (BY_NAME["lbfgs"],))
        seconds[l2] = ranker.seconds(BY_NAME["lbfgs"], 10)
    proof = proof_cost(problem.outline.shape, Resources()).seconds(Resources(), 1)
    assert seconds[1e-3] - seconds[0.0] == pytest.approx(proof)


def test_small_factors_are_made_by_the_threads_of_the_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = correlated(500, 20)
    (one,) = plan(Task("squared", l2=1e-3), X, y, methods=["cholesky"]).alternatives
    kept: list[int] = []

    @contextmanager
    def seen() -> Iterator[None]:
        kept.append(1)
        yield

    monkeypatch.setattr("mlopt.gd.plans.running.between_passes", seen)
    one.run()
    assert len(kept) == 1
    monkeypatch.setattr("mlopt.gd.plans.running._SHARED", 20)
    one.run()
    assert len(kept) == 1


class Steady:
    """A training whose gap falls by one factor a pass, which takes a second."""

    def __init__(self, clock: list[float], factor: float, inner: Any) -> None:
        self.clock, self.factor, self.inner, self.passes = clock, factor, inner, 0

    @property
    def gap(self) -> float:
        return float(self.factor**self.passes)

    @property
    def done(self) -> bool:
        return False

    def advance(self, passes: int) -> None:
        self.passes += passes
        self.clock[0] += passes

    def coefficients(self, number: int) -> Any:
        return self.inner.coefficients(number)


@pytest.mark.parametrize(("factor", "plans"), [(0.5, 1), (0.9, 2)])
def test_a_plan_is_left_when_another_ends_before_it(
    factor: float, plans: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 1e-3, ten passes lead to the tolerance by halves, and 66 by tenths."""
    clock = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    X, y = correlated(200, 5)
    names = ["lbfgs", "primal-coordinate-descent"]
    found = plan(Task("squared", l2=1e-3), X, y, methods=names).alternatives
    one, other = sorted(found, key=lambda a: names.index(a.name))

    def begin(*given: Any) -> Any:
        return Steady(clock, factor, one.method.begin(*given))

    far = Passes(5.0, 1.0, 1000.0, "typical")
    slow = replace(
        one, method=replace(one.method, begin=begin), passes=far, predicted_seconds=4.0,
        span=(1.0, 4.0),
    )  # fmt: skip
    race = raced(
        [slow, replace(other, passes=Passes.known(9.0), span=(9.0, 9.0))], max_iter=60
    )
    assert len(race.names) == plans


@pytest.mark.parametrize(("other", "taken"), [(17.0, ["sure"]), (19.0, ["sure", "late"])])
def test_what_ends_at_the_limit_is_fitted_again(
    other: float, taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """100 passes of 8 s, then all 125 of 10 s."""
    X, y = correlated(200, 5)
    one = plan(Task("squared", l2=1e-3), X, y, methods=["lbfgs"]).chosen
    late = replace(one, passes=Passes.known(125.0), predicted_seconds=10.0)
    sure = replace(one, passes=Passes.known(5.0), predicted_seconds=other)
    monkeypatch.setattr(
        type(one), "within", lambda self, most: replace(self, predicted_seconds=8.0)
    )
    gone = _too_late({"sure": sure, "late": late}, 100)
    assert [name for name in ("sure", "late") if name not in gone] == taken


def test_wide_least_squares_are_left_to_conjugate_gradients() -> None:
    X, y = correlated(300, WIDEST)
    found = plan(Task("squared", l2=1e-2), X, y, speculation=False)
    assert "conjugate gradients" in found.refused["lbfgs"]
    narrow = plan(Task("squared", l2=1e-2), X[:, :50], y, speculation=False)
    assert "lbfgs" not in narrow.refused


@pytest.mark.parametrize("wanted", [1e-2, 1e-4, 1e-6])
def test_conjugate_gradients_stop_near_the_gap_that_was_asked_for(wanted: float) -> None:
    X, y = correlated(1500, 400)
    task = Task("squared", l2=1e-3)
    exact = plan(task, X, y, tolerance=1e-10, methods=["svd"]).run().objective
    one, further = (
        plan(task, X, y, tolerance=tol, methods=["sparse_cg"]).run()
        for tol in (wanted, wanted / 100)
    )
    assert one.converged
    assert one.objective <= exact * (1 + 2 * wanted)  # the gap is an estimate
    assert one.n_iter < further.n_iter


def test_a_sample_holds_the_same_rows_dense_and_sparse() -> None:
    X, y = correlated(1000, 7)
    beside = {"targets": y[:, None], "weights": np.arange(1000.0)[:, None]}
    samples = [
        draw(Rows.of(matrix, block_rows=130).attach(**beside), 300)
        for matrix in (X, sparse.csr_array(X))
    ]
    dense, csr = (sample.collect() for sample in samples)
    np.testing.assert_array_equal(dense, csr.toarray())
    weights = np.concatenate(samples[0].map(lambda block: block.extra["weights"]))
    targets = np.concatenate(samples[0].map(lambda block: block.extra["targets"]))
    # Weights count the rows: what lies beside a row came with it.
    np.testing.assert_array_equal(dense, X[weights[:, 0].astype(int)])
    np.testing.assert_array_equal(targets, y[weights[:, 0].astype(int)][:, None])
