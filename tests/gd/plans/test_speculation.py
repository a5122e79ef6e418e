"""Passes seen on samples lead to those on all rows."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import mlopt.gd.plans.samples as sizes
from mlopt.cluster import executor as executor_for
from mlopt.gd.plans import Task, plan, ranking, speculation
from mlopt.gd.plans.forecast import Passes, typical
from mlopt.gd.plans.methods import METHODS
from mlopt.gd.plans.samples import Samples
from mlopt.gd.plans.speculation import _led, _Run, speculate
from mlopt.gd.plans.stop import RelativeGap
from mlopt.gd.plans.task import Problem, problem_of

Array = NDArray[Any]
BY_NAME = {method.name: method for method in METHODS}
GUESS = Passes(100.0, 10.0, 1000.0, "typical")


def rare(n: int) -> tuple[Array, Array]:
    """Columns of unlike scale, and some that few rows have."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 12)) * np.logspace(-0.5, 0.5, 12)
    X[:, :4] = (rng.random((n, 4)) < [0.5, 0.1, 0.02, 0.01]) * 3.0
    p = 1 / (1 + np.exp(-(X @ rng.normal(size=12))))
    return X, (rng.random(n) < p).astype(int)


@cache
def problem(n: int = 40_000) -> Problem:
    X, y = rare(n)
    return problem_of(Task("logistic", l2=1e-4), X, y, executor_for(None, 2))


@pytest.mark.slow
@pytest.mark.parametrize("name", [
    "primal-coordinate-descent", "bgd/eager", "barzilai-borwein/eager",
    "line-search/eager",
])  # fmt: skip
def test_samples_tell_the_passes_over_all_rows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module(typical.__module__), "expected_of", nothing_like_it)
    method, samples = BY_NAME[name], Samples(problem(), 1e-3)
    found = speculate(method, samples, 10_000, 1e-3, 30.0)
    training = method.begin(problem(), RelativeGap(1e-3), 10**6, None)
    training.advance(10**6)
    assert found.source == "sampled"
    assert 0.5 <= found.expected / training.passes <= 2


def nothing_like_it(method: str, outline: Any, stop: Any) -> None:
    """Of passes to expect."""


class Counted:
    """A training that converges after so many passes."""

    def __init__(self, needed: int) -> None:
        self.needed, self.passes = needed, 0

    def advance(self, passes: int) -> None:
        self.passes += passes

    @property
    def gap(self) -> float:
        return 1.0 / (1 + self.passes)

    @property
    def converged(self) -> bool:
        return self.passes >= self.needed

    @property
    def done(self) -> bool:
        return self.converged


def sampled(needed: Any, most: int) -> tuple[list[int], Passes]:
    """Rows of the samples for a method that takes so many passes, and the result."""
    asked: list[int] = []

    def begin(on: Problem, stop: Any, passes: int, start: Any) -> Any:
        del stop, passes, start
        asked.append(on.rows.n)
        return Counted(round(needed(on.rows.n)))

    samples = Samples(problem(), 1e-3)
    samples.most = most
    method = replace(BY_NAME["bgd/eager"], begin=begin)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(speculation, "_BELIEVED", 1.0)
        return asked, speculate(method, samples, 2000, 1e-3, 60.0)


def test_samples_grow_until_twice_the_rows_make_no_difference() -> None:
    asked, found = sampled(lambda rows: 50, most=16_000)
    assert asked == [1000, 2000]
    assert found.expected == pytest.approx(50)

    asked, found = sampled(lambda rows: 50 + 1e5 / rows, most=16_000)
    assert asked == [1000, 2000, 4000, 8000]
    assert found.expected == pytest.approx(50 + 1e5 / 40_000, rel=0.1)

    asked, _ = sampled(lambda rows: 4e5 / rows, most=4000)
    assert asked == [1000, 2000, 4000]


@pytest.mark.parametrize("counts", [2, 3, 5])
def test_what_samples_differ_by_fades_with_their_rows(counts: int) -> None:
    n, seen = 100_000, [1000 * 2**k for k in range(counts)]
    exact = [(rows, 80 * np.exp(500 / rows)) for rows in seen]
    passes: Any = exact
    assert _led(passes, n, 1.0).expected == pytest.approx(80 * np.exp(500 / n))
    # Where less is believed, less of the trend is followed.
    half, none = (_led(passes, n, believed).expected for believed in (0.5, 0.0))
    assert 80 < half < none < exact[0][1]


def test_a_curve_is_followed_through_gaps_above_the_noise() -> None:
    seen = [(max(1.0 / i, 0.02 * i**-0.1), i) for i in range(1, 400)]
    run, guess = _Run(False, 400, 1.0, seen), replace(GUESS, high=1e15)
    clear, all_ = (run.led_on(1e-3, noise, guess).expected for noise in (0.02, 0.0))
    assert clear == pytest.approx(1000, rel=0.05)
    assert all_ > 5000


def test_gaps_that_hardly_fall_tell_that_passes_are_many() -> None:
    flat = _Run(False, 99, 1.0, [(0.5 - 1e-5 * i, i) for i in range(1, 100)])
    found = flat.led_on(1e-3, 0.0, GUESS)
    assert (found.expected, found.source) == (GUESS.high, "worst case")
    few = _Run(False, 3, 1.0, flat.seen[:3])
    assert few.led_on(1e-3, 0.0, GUESS) == GUESS


def test_sizes_of_samples_follow_columns_rows_and_tolerance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = Samples(problem(), 1e-2)
    assert (samples.least, samples.usual, samples.most) == (2000, 10_000, 10_000)
    assert Samples(problem(), 1e-3).most == 20_000
    assert samples.noise(40_000) == 0
    assert samples.noise(1000) > 2 * samples.noise(2000) > 0

    assert samples.within(10_000) == 10_000
    assert samples.within(9999) == 5000
    assert samples.within(2400) is None  # 2500 would be too many, and 1250 too few
    assert samples.of(5000) is samples.of(5000)
    assert samples.of(5000).rows.n == 5000

    monkeypatch.setattr(sizes, "_BYTES", 3000 * 12 * 8)
    tight = Samples(problem(), 1e-3)
    assert (tight.least, tight.usual, tight.most) == (2000, 3000, 3000)


def test_time_is_shared_among_methods_that_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, float] = {}

    def noted(method: Any, samples: Any, size: int, tolerance: float, share: float) -> Any:
        asked[method.name] = share
        return GUESS

    monkeypatch.setattr(ranking, "speculate", noted)
    X, y = rare(20_000)
    task = Task("logistic", l2=1e-4)
    names = [
        "lbfgs",
        "newton-cg",
        "line-search/eager",
        "bgd/eager",
        "mgd/eager/bernoulli",
        "mgd/eager/random-partition",
    ]
    guessed = plan(task, X, y, methods=names, speculation=False).alternatives
    foreseen = {a.name for a in guessed if a.passes.source == "foreseen"}
    plan(task, X, y, methods=names, speculation=9.0)
    # What is foreseen needs no sample, and one speculates for both that are alike.
    assert "lbfgs" in foreseen
    assert not foreseen & asked.keys()
    assert len(asked) == len({*names} - foreseen) - 1
    first, *others = asked.values()
    assert 0.8 < first * len(asked) / 9.0 <= 1.0
    assert all(share > first for share in others)
