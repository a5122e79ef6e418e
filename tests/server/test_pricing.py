"""Which layout is chosen, by prices, sizes and members alone; and what plans say of it."""

from __future__ import annotations

import math
import pickle
import threading
import time
from dataclasses import replace
from typing import Any, cast

import cloudpickle
import distributed
import numpy as np
import pytest
from dask.sizeof import sizeof
from hypothesis import given
from hypothesis import strategies as st
from tests.plans import plan_of

from mlopt.cluster import MeshHere
from mlopt.errors import ClusterError, InputError
from mlopt.resources import Resources
from mlopt.server import Job, Policy
from mlopt.server.layouts import places
from mlopt.server.layouts.loading import Work
from mlopt.server.layouts.pool import Pool, of_workers
from mlopt.server.layouts.pricing import Load, choose, layouts
from mlopt.server.program import Adds, Program
from mlopt.server.tables import Tables

TWO = Pool(members=2, threads=1, here=1, apart=True)
PARTS = Load(passes=20, strata=8, parts=8, step=0.01, part=1e5)
WHOLE = Load(passes=20, strata=8, parts=1, step=0.05, part=1e5)


def chosen(load: Load, pool: Pool) -> str:
    return choose("auto", "", layouts(load, pool))[0].chosen


def why(load: Load, pool: Pool) -> dict[str, str]:
    return {one.layout: one.why for one in layouts(load, pool)}


@pytest.mark.parametrize(
    ("load", "pool", "layout"),
    [
        (PARTS, TWO, "rotate"),
        (PARTS, Pool(here=1), "threads"),
        (PARTS, replace(TWO, members=0), "threads"),
        (PARTS, replace(TWO, here=2), "threads"),  # as many cores here, and no messages
        (replace(PARTS, step=1e-5), TWO, "threads"),  # ends before members have begun
        (replace(PARTS, passes=1), TWO, "rotate"),
        (replace(PARTS, passes=1, rows=1e9), TWO, "threads"),  # to send rows takes longer
        (replace(PARTS, passes=1, rows=1e9, held=True), TWO, "rotate"),
        (
            replace(PARTS, part=1e9, step=0.2),
            TWO,
            "threads",
        ),  # parts take longer to hand on
        (replace(PARTS, parts=4), replace(TWO, members=16), "threads"),
        (WHOLE, replace(TWO, members=8), "threads"),  # nothing may be summed late
        (replace(WHOLE, mode="async"), replace(TWO, members=8), "servers"),
        (replace(WHOLE, mode="async"), TWO, "threads"),  # one of two is to serve
        (replace(WHOLE, mode="lockstep"), TWO, "rounds"),
        (replace(WHOLE, mode="lockstep", step=1e-4), TWO, "threads"),
    ],
)
def test_what_takes_the_least_of_what_may_be_had(
    load: Load, pool: Pool, layout: str
) -> None:
    assert chosen(load, pool) == layout


def test_what_fits_no_process_is_spread_over_members() -> None:
    small = replace(TWO, memory_here=5e8, memory=6e8)
    large = replace(PARTS, step=1e-6, part=1e8 / 8)
    assert chosen(large, small) == "threads"
    large = replace(large, part=5e8 / 8)
    assert chosen(large, small) == "rotate"
    assert (
        "threads: this process would need 954 MiB, and has 477 MiB"
        in why(large, small)["threads"]
    )
    with pytest.raises(InputError, match=r"No layout can be had: threads: .* rotate: a m"):
        chosen(replace(large, part=1e9), small)


def test_workers_that_others_use_are_not_asked_to_measure() -> None:
    idle = {"nthreads": 2, "memory_limit": 1000, "metrics": {"memory": 300}}
    metrics = {"memory": 100, "task_counts": {"executing": 1, "memory": 5}}
    busy = {"nthreads": 1, "memory_limit": 0, "metrics": metrics}
    found = of_workers({"a": idle, "b": busy}, Pool(here=3))
    assert (found.members, found.threads, found.memory, found.here) == (2, 1, 500.0, 3)
    assert found.busy
    assert found.probed("never asked") is found
    assert not of_workers({"a": idle}, Pool()).busy


def test_workers_that_cannot_be_members_are_done_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(where: Any) -> Any:
        raise ClusterError("no line to them")

    monkeypatch.setattr(places, "mesh", refuse)
    found = layouts(PARTS, TWO)
    choice, chosen, mesh = places.opened("auto", "", found)
    assert (choice.chosen, chosen.apart, mesh) == ("threads", False, None)
    reasons = {one.name: one.reason for one in choice.rejected}
    assert reasons["rotate"] == "workers cannot be members: no line to them"
    with pytest.raises(ClusterError, match="no line to them"):
        places.opened("rotate", "", found)


def test_nothing_is_measured_where_there_is_nothing_to_choose() -> None:
    asked = []

    def pricing(load: Load) -> Any:
        def prices(pool: Pool, measure: bool) -> Any:
            asked.append(measure)
            return layouts(load, pool)

        return prices

    several = Pool(members=2, here=1)
    for load, wanted, measured in (
        (PARTS, "auto", True),
        (replace(PARTS, step=1e-4), "auto", False),  # .1 s: not worth a look
        (replace(PARTS, parts=4), "auto", False),  # threads alone can be had
        (PARTS, "rotate", False),
    ):
        asked.clear()
        places.priced(wanted, several, None, pricing(load))
        assert (True in asked) == measured


def test_steps_are_measured_where_the_number_of_servers_alone_is_chosen() -> None:
    load, pool = replace(PARTS, parts=4, mode="async"), Pool(members=8, memory_here=1.0)
    asked = []

    def prices(pool: Pool, measure: bool) -> Any:
        asked.append(measure)
        return layouts(load if measure else replace(load, step=None), pool)

    choice, chosen = choose("auto", "", places.priced("auto", pool, None, prices))
    assert (choice.chosen, asked) == ("servers", [False, True])
    assert chosen.seconds is not None


@pytest.mark.parametrize(("servers", "place"), [(None, "7 workers, 3 servers"), (4, "6 ")])
def test_a_job_runs_with_the_servers_that_it_explains(
    servers: int | None, place: str
) -> None:
    """Where servers are asked for three tenths of the members, unless their number is."""
    with MeshHere(10) as mesh:
        job = Job(
            waits, np.zeros(4), list(range(14)), layout="servers", servers=servers,
            where=mesh, passes=2,
        )  # fmt: skip
        (before,) = job.explain().choices
        assert before.notes[0].startswith(place)
        assert before.predicted is not None
        job.run()
        assert job.plan_.choices[0].notes == before.notes


def test_reasons_are_named() -> None:
    alone = why(PARTS, Pool())
    assert alone["servers"] == "servers: needs 2 members, has 1"
    assert "steps that do not see each other" in alone["rounds"]
    assert "updates may be late" in why(WHOLE, TWO)["servers"]
    assert (
        "as many parts of the model as strata, 8"
        in why(replace(PARTS, parts=4), TWO)["rotate"]
    )
    assert "strata keep" in why(replace(PARTS, states=8.0), TWO)["rounds"]


def test_what_is_asked_for_is_chosen_and_others_are_shown_with_their_seconds() -> None:
    choice, _ = choose("servers", "steps", layouts(PARTS, TWO))
    assert (choice.step, choice.chosen) == ("layout", "servers")
    seconds = {one.name: one.seconds for one in choice.rejected}
    assert seconds["rotate"] is not None
    assert seconds["rotate"] < seconds["threads"] < choice.predicted  # type: ignore[operator]


def test_seconds_are_those_of_the_steps_where_nothing_else_takes_any() -> None:
    """20 passes of 64 steps of .01 s: in turn, and by two."""
    fast = Resources(network=1e15, python=1e9, task=0.0, round_trip=0.0)
    pool = replace(TWO, resources=fast)
    found = {one.layout: one.seconds for one in layouts(PARTS, pool)}
    assert found["threads"] == pytest.approx(12.8)
    assert found["rotate"] == pytest.approx(6.4, rel=1e-3)
    assert found["rounds"] == pytest.approx(6.4, rel=1e-3)
    assert found["servers"] == pytest.approx(12.8, rel=1e-3)  # one of two works
    four = {one.layout: one.seconds for one in layouts(PARTS, replace(pool, here=4))}
    assert four["threads"] == pytest.approx(3.2)


def test_pulls_of_lockstep_are_priced_as_they_are_done_all_at_once() -> None:
    """C + P + A / s + (w - 1) (P + A) / s: the last of 7 workers waits at 7 servers."""
    fast = Resources(network=1e7, python=1e12, task=0.0, round_trip=0.0)
    pool = replace(TWO, members=14, resources=fast)
    load = replace(WHOLE, strata=56, servers=7, mode="lockstep", blocks=7)
    took = []
    for passes in (20, 21):
        found = {one.layout: one for one in layouts(replace(load, passes=passes), pool)}
        took.append(found["servers"].seconds or math.nan)
    one = 0.05 + 0.01 + 0.01 / 7 + 6 * 0.02 / 7
    assert took[1] - took[0] == pytest.approx(56 / 7 * one, rel=1e-3)


@given(
    passes=st.integers(1, 1000), side=st.integers(2, 16), step=st.floats(1e-5, 1),
    part=st.floats(1, 1e8), rows=st.floats(0, 1e9), members=st.integers(2, 8),
)  # fmt: skip
def test_more_work_takes_longer_and_what_is_chosen_the_least(
    passes: int, side: int, step: float, part: float, rows: float, members: int
) -> None:
    load = Load(passes, side, side, step, rows=rows, part=part)
    pool = replace(TWO, members=members)
    found = layouts(load, pool)
    for more in (replace(load, passes=passes + 1), replace(load, step=2 * step)):
        for one, other in zip(found, layouts(more, pool), strict=True):
            assert math.isclose(one.seconds or 0, other.seconds or 0) or (
                (one.seconds or 0) < (other.seconds or 0)
            )
    choice, best = choose("auto", "", found)
    able = [one.seconds for one in found if not one.why and one.seconds is not None]
    assert choice.predicted == best.seconds == min(able)


def adds_one(block: int, w: np.ndarray) -> np.ndarray:
    return np.ones_like(w)


def test_a_job_explains_itself_before_and_after() -> None:
    job = Job(adds_one, np.zeros(3), [1, 2, 3], passes=4, members=2)
    before = job.explain()
    (choice,) = before.choices
    assert (choice.step, choice.chosen, before.measured) == ("layout", "threads", None)
    assert choice.predicted is not None
    reasons = {one.name: one.reason for one in choice.rejected}
    assert "updates may be late" in reasons["servers"]
    with pytest.raises(AttributeError, match="`plan_` is there once the job has run"):
        _ = job.plan_
    assert (job.run().model == 12).all()  # steps that were timed changed nothing
    (choice,) = job.plan_.choices
    assert choice.chosen == job.layout_ == "threads"
    assert choice.predicted is not None
    assert choice.measured == job.plan_.measured
    assert job.explain() == job.plan_
    assert plan_of(job.plan_.to_dict()) == job.plan_


def test_a_plan_is_of_the_passes_that_were_predicted() -> None:
    """Not of those before, nor of none where a job that has ended is run again."""
    job = Job(waits, np.zeros(3), [1, 2, 3], passes=12, layout="threads")
    job.advance(10)
    job.close()
    result, plan = job.run(), job.plan_
    assert plan.choices[0].operator == "2 passes over 3 blocks"
    assert plan.measured is not None
    assert plan.measured <= result.seconds
    again = job.run()
    assert (again.passes, again.layout, again.model.max()) == (12, "threads", 36)
    assert job.plan_ == job.explain() == plan


def test_a_job_that_may_be_asynchronous_runs_without_members() -> None:
    result = Job(adds_one, np.zeros(2), [1, 2], mode="async").run()
    assert result.layout == "threads"
    np.testing.assert_array_equal(result.model, 2)


def waits(block: int, w: np.ndarray) -> np.ndarray:
    time.sleep(0.004)
    return np.ones_like(w)


def test_each_reconfiguration_is_a_line_of_the_plan() -> None:
    with MeshHere(6) as mesh:
        job = Job(
            waits, np.zeros((40, 8)), list(range(12)), layout="servers", where=mesh,
            servers=5, policy=Policy(interval=0.1, settle=0.2), passes=80,
        )  # fmt: skip
        np.testing.assert_array_equal(job.run().model, 960)
    (choice,) = job.plan_.choices
    first, change, *_ = choice.children
    assert first.step == "servers"
    assert first.chosen.startswith("1 workers")
    assert change.step == "change 1"
    assert first.measured is not None
    assert change.measured is not None
    assert change.predicted is not None
    # An epoch has 12 steps of 4 ms, by one worker, then by five at most; at its edge each
    # may have begun a step before.
    assert first.measured > 11 * 0.004
    assert change.measured > (12 - 5) * 0.004 / 5
    assert change.rejected[0].name == f"stay with {first.chosen}"
    assert "change 1" in job.plan_.explain()


def test_types_that_came_in_a_message_are_those_of_numpy() -> None:
    sent = pickle.loads(pickle.dumps(Tables.of({"w": np.zeros(3, np.float32)})))
    assert sent.tables["w"].empty().dtype is np.dtype(np.float32)


def adds_to_a_part(block: int, part: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.004)
    return {"w": block * np.cos(part["w"])}


@pytest.mark.cluster
@pytest.mark.slow
def test_a_job_rotates_on_workers_where_that_takes_less(shared_workers: str) -> None:
    rows = [[10 * a + b for b in range(4)] for a in range(4)]
    parts = [{"w": np.full(3, float(b))} for b in range(4)]

    def job(**given: Any) -> Job:
        return Job(adds_to_a_part, parts, rows, passes=20, n_jobs=1, **given)

    with distributed.Client(shared_workers):
        auto, alone = job(), job(layout="threads")
        models = [auto.run().model, alone.run().model]
        few = Job(adds_to_a_part, parts, rows, passes=1, n_jobs=1)
        few.run()
    assert (auto.layout_, few.layout_) == ("rotate", "threads")
    for one, other in zip(*models, strict=True):
        np.testing.assert_array_equal(one["w"], other["w"])
    (choice,) = auto.plan_.choices
    assert choice.notes == ("2 workers",)
    seconds = {one.name: one.seconds for one in choice.rejected}
    assert choice.predicted is not None
    assert seconds["threads"] is not None
    assert choice.predicted < seconds["threads"]
    assert choice.measured is not None


class _Asked:
    """An executor that tells what it would send."""

    def submit(self, function: Any, *args: Any) -> Any:
        return cloudpickle.loads(cloudpickle.dumps(function))(*args)

    def result(self, handle: Any) -> Any:
        return handle


def test_sizes_are_asked_for_whatever_this_process_has_registered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock = threading.Lock()  # which cannot be pickled
    monkeypatch.setitem(sizeof._lookup, _Asked, lambda _: int(lock.locked()))
    rows = np.zeros((10, 2))
    program = Program(
        Adds(min, True), [{"w": np.zeros(2)}], [[rows]], executor=cast(Any, _Asked())
    )
    assert Work(program, 1).rows == sizeof(rows)
