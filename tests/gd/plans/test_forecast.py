"""What fits took corrects what is predicted of later ones, and changes nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask.config
import numpy as np
import pytest
from tests.gd.plans.test_choosing import correlated

from mlopt import LogisticRegression
from mlopt.gd import Task, plan
from mlopt.gd.plans import forecast
from mlopt.gd.plans.forecast import Forecast, Passes, Stint
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.running import Alternative
from mlopt.gd.pricing import Shape
from mlopt.resources import Resources, cache
from mlopt.resources import experience as remembering
from mlopt.resources.experience import PASSES, SECONDS, Experience, Seen

DENSE = Outline("logistic", Shape(1000, 10, 1, 10_000, 8, sparse=False, blocks=1))
GUESS = Passes(20.0, 5.0, 80.0, "typical")


def test_passes_have_bounds_however_many_they_are() -> None:
    many = Passes(1e300, 1e299, 1e301, "typical")
    assert many.fewest == pytest.approx(1e298)
    assert many.most == pytest.approx(1e302)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of its own, where fits are remembered."""
    monkeypatch.setattr(cache, "directory", lambda: tmp_path)
    monkeypatch.setattr(remembering, "_waiting", [])
    monkeypatch.setattr(remembering, "_APART", 0.0)
    with dask.config.set({"mlopt.remember": True}):
        yield tmp_path


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Wall and processor time, in seconds, that a test sets."""
    here = SimpleNamespace(wall=0.0, processor=0.0)
    read = SimpleNamespace(
        perf_counter=lambda: here.wall, process_time=lambda: here.processor
    )
    monkeypatch.setattr(forecast, "time", read)
    monkeypatch.setattr(forecast, "compiled", lambda since: 0.0)
    monkeypatch.setattr(forecast, "worked", lambda since: here.wall - since)
    return here


def of(experience: Experience | None, passes: Passes = GUESS) -> Forecast:
    """Ten milliseconds a pass."""
    return Forecast("lbfgs", DENSE, "gap", passes, lambda n: 0.01 * n, experience)


def learnt(*runs: tuple[float, int]) -> Forecast:
    """After runs of so many seconds and passes."""
    known = of(Experience())
    seen = [one for took, passes in runs for one in known.seen(took, passes, ended=True)]
    return of(Experience().after(seen))


def work(clock: SimpleNamespace, seconds: float, busy: float = 1.0) -> Stint:
    stint = Stint(of(Experience()))
    clock.wall += seconds
    clock.processor += busy * seconds
    return stint


def test_nothing_is_corrected_before_anything_ran() -> None:
    for known in (None, Experience()):
        one = of(known)
        assert one.corrected_passes() == GUESS
        low, mean, high = one.corrected_seconds(GUESS)
        assert (low, high) == pytest.approx((0.05, 0.8))
        assert low < mean < high


def test_what_is_known_of_passes_leaves_the_doubt_of_prices() -> None:
    known, guess = of(None), of(Experience())
    low, high = known.interval(0.2, 0.2)
    assert low < 0.2 < high
    assert high / 0.2 == pytest.approx(0.2 / low)
    wider = guess.interval(0.1, 0.4)
    assert wider[0] < min(low, 0.1)
    assert wider[1] > max(high, 0.4)
    often = learnt(*[(0.2, 20)] * 40)
    assert np.ptp(often.interval(0.2, 0.2)) < high - low


def test_fits_that_took_twice_as_long_raise_what_is_predicted() -> None:
    once, often = (learnt(*[(0.4, 20)] * times) for times in (1, 20))
    seconds = [f.corrected_seconds(Passes.known(10.0))[1] for f in (once, often)]
    assert 0.1 < seconds[0] < 0.15  # one fit may be chance
    assert seconds[1] == pytest.approx(0.2, rel=0.1)


def test_a_machine_that_is_slow_is_so_for_methods_that_nobody_tried() -> None:
    known = learnt(*[(0.4, 20)] * 20)
    other = replace(known, method="line-search/eager")
    tried, untried = (f.corrected_seconds(Passes.known(10.0))[1] for f in (known, other))
    assert untried == pytest.approx(tried, rel=0.15)
    assert other.corrected_passes() == GUESS


def test_passes_that_were_fewer_lead_to_fewer_and_to_a_narrower_interval() -> None:
    found = learnt(*[(0.1, 8), (0.1, 12)] * 8).corrected_passes()
    assert found.expected == pytest.approx(10.0, rel=0.15)
    assert found.source == "seen"
    assert found.high / found.low < GUESS.high / GUESS.low / 2
    assert found.low < 8 < 12 < found.high


def test_an_interval_holds_what_differs_from_fit_to_fit() -> None:
    found = learnt(*[(0.1, 2), (0.1, 200)] * 20).corrected_passes()
    assert found.high / found.low > 10


def test_one_fit_on_a_busy_machine_hardly_counts() -> None:
    usual = [(0.2, 20)] * 10
    calm, once = learnt(*usual), learnt(*usual, (100.0, 20))
    known = Passes.known(10.0)
    one, other = (f.corrected_seconds(known)[1] for f in (calm, once))
    assert one <= other < 1.15 * one


def test_what_was_seen_of_one_kind_of_problem_says_nothing_of_another() -> None:
    known = learnt(*[(1.0, 60)] * 9)
    sparse = replace(DENSE, shape=replace(DENSE.shape, sparse=True))
    for other in (
        replace(known, outline=sparse),
        replace(known, method="line-search/eager"),
        replace(known, passes=replace(GUESS, source="sampled")),
        replace(known, stop="gradient"),
    ):
        assert other.corrected_passes() == other.passes


def test_a_run_that_was_left_tells_that_passes_are_many_not_that_they_are_few() -> None:
    one = of(Experience())
    assert [s.what for s in one.seen(1.0, 50, ended=False)] == [SECONDS, SECONDS, PASSES]
    assert [s.what for s in one.seen(1.0, 3, ended=False)] == [SECONDS, SECONDS]
    exact = of(Experience(), Passes.known(1.0))
    assert [s.what for s in exact.seen(1.0, 1, ended=True)] == [SECONDS, SECONDS]


def test_short_runs_that_an_accident_made_longer_make_no_machine_slow() -> None:
    rng = np.random.default_rng(0)
    one = Forecast("lbfgs", DENSE, "gap", GUESS, lambda n: 0.001 * n, Experience())
    # Some take a few milliseconds more than the two that they are worth, others less.
    took = rng.exponential(0.003, 300)
    seen = [s for t in took for s in one.seen(float(t), 2, ended=True)]
    slower = Experience().after(seen).pace("another", "dense")[0]
    assert slower < 2


@pytest.mark.parametrize(
    ("seconds", "busy", "kept"), [(1.0, 1.0, 3), (1.0, 0.4, 0), (0.004, 1.0, 0)]
)
def test_short_runs_and_runs_under_load_are_not_remembered(
    folder: Path, clock: SimpleNamespace, seconds: float, busy: float, kept: int
) -> None:
    work(clock, seconds, busy).end(10, ended=True)
    found = remembering.experience()
    assert found is not None
    assert len(found.entries) == kept


def test_runs_beside_one_another_are_not_remembered(
    folder: Path, clock: SimpleNamespace
) -> None:
    one, other = work(clock, 1.0), work(clock, 1.0)
    one.end(10, ended=True)
    other.end(10, ended=True)
    assert remembering.experience() == Experience()
    alone = work(clock, 1.0)
    alone.end(10, ended=True)
    alone.end(10, ended=True)  # a run ends once
    assert {ratio.count for _, ratio in remembering.experience().entries} == {1}  # type: ignore[union-attr]


def test_a_setting_turns_it_off(folder: Path) -> None:
    seen = [Seen("lbfgs", SECONDS, "dense", 2.0)]
    with dask.config.set({"mlopt.remember": False}):
        remembering.remember(seen)
        assert remembering.experience() is None
        assert Resources.remembered().experience is None
    assert not list(folder.iterdir())


def test_runs_of_plans_and_estimators_are_remembered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembering, "_SHORTEST", 0.0)
    monkeypatch.setattr(forecast, "_BUSY", 0.0)
    monkeypatch.setattr(forecast, "compiled", lambda since: 0.0)
    X, y = correlated(200, 5)
    first = plan(Task("squared", l2=1e-3), X, y, methods=["lbfgs"], speculation=False)
    before = first.run()
    LogisticRegression(solver="lbfgs").fit(X, y > 0)
    found = remembering.experience()
    assert found is not None
    assert {(m, kind) for (m, what, kind), _ in found.entries if what == PASSES} >= {
        ("lbfgs", "squared, dense, gap, foreseen")
    }
    assert any("gradient" in kind for (_, _, kind), _ in found.entries)
    later = plan(Task("squared", l2=1e-3), X, y, methods=["lbfgs"], speculation=False)
    assert later.chosen.predicted_seconds != first.chosen.predicted_seconds
    np.testing.assert_array_equal(later.run().coef, before.coef)


def test_a_run_that_fails_is_not_remembered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = correlated(200, 5)
    chosen = plan(Task("squared", l2=1e-3), X, y, methods=["lbfgs"]).chosen

    def begin(*given: Any) -> Any:
        training = chosen.method.begin(*given)
        monkeypatch.setattr(training, "advance", lambda passes: 1 / 0)
        return training

    failing: Alternative = replace(chosen, method=replace(chosen.method, begin=begin))
    with pytest.raises(ZeroDivisionError):
        failing.run()
    assert not forecast._stints
    assert remembering.experience() == Experience()


def test_the_plan_says_how_it_knows() -> None:
    X, y = correlated(200, 5)
    known = [Seen("lbfgs", PASSES, "squared, dense, gap, foreseen", 0.5)] * 5
    there = Resources(experience=Experience().after(known))
    found = plan(Task("squared", l2=1e-3), X, y, methods=["lbfgs"], speculation=False)
    ranker = replace(found.ranker, resources=there, _ways={})
    (seen,) = ranker.ranked([found.chosen.method])
    assert "by its shape" in found.explain()
    assert (
        "like problems seen on this machine"
        in replace(found, contenders=(seen,), ranker=ranker).explain()
    )


def test_learning_takes_next_to_no_time(folder: Path) -> None:
    seen = [Seen("lbfgs", SECONDS, "dense", 2.0)]
    began = time.process_time()
    for _ in range(20):
        remembering.remember(seen)
        remembering.experience()
    assert time.process_time() - began < 1.0
