"""The same stream on members: each request as if alone, wherever its partitions go."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import cloudpickle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.clusters import eventually, in_thread
from tests.plans import plan_of
from tests.streaming.fates import FATES, going_on, is_idle

from mlopt import Stream
from mlopt.cluster import Header, MeshDask, MeshHere, Service, Threads, local_cluster, mesh
from mlopt.cluster.parcel import arrays_of, pack, parcel_of, unpack
from mlopt.cluster.resident import LOST
from mlopt.errors import (
    DeadlineError,
    InputError,
    MemberLostError,
    StageError,
    StreamClosedError,
    TooLargeError,
)
from mlopt.streaming import phases, places, spread, station
from mlopt.streaming.credits import BARRIER
from mlopt.streaming.phases import border, in_one_place, least_partition, partition_of, unit
from mlopt.streaming.spread import Spread

# Workers cannot import this file: what is in it travels whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

ON_WORKERS = [pytest.mark.cluster, pytest.mark.slow]


def running() -> list[str]:
    """Threads of streams in this process."""
    return [one.name for one in threading.enumerate() if "mlopt-stream" in one.name]


@pytest.fixture(autouse=True)
def nothing_left_over() -> Iterator[None]:
    """Every test must end all threads that it started here."""
    yield
    assert eventually(lambda: not running()), running()


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with local_cluster(2) as one:
        yield one


@pytest.fixture(params=["here", pytest.param("dask", marks=ON_WORKERS)])
def where(request: pytest.FixtureRequest) -> Iterator[Any]:
    """What a stream may be given as its `client`."""
    if request.param == "here":
        with MeshHere(2) as here:
            yield here
    else:
        yield request.getfixturevalue("client")


def poisoned(feed: int) -> int:
    if feed % 10 == 7:
        raise ValueError(f"no {feed}")
    return 2 * feed


def of(stream: Stream, size: int | None, merged: bool) -> Stream:
    stream = stream.map(poisoned)
    if size is not None:
        stream = stream.aggregate(size).map(sum)
    return stream.aggregate().map(sorted, name="merge") if merged else stream.map(abs)


def said(answer: Any) -> Any:
    """An answer, or what it failed of, and why."""
    if not isinstance(answer, BaseException):
        return answer
    return type(answer), str(answer), repr(answer.__cause__), answer.stage  # type: ignore[attr-defined]


def alone(stream: Stream, requests: list[Any]) -> list[Any]:
    """What each request gives that has a stream of this process for itself."""
    return [said(one) for r in requests for one in stream.run([r], errors="give")]


requests = st.lists(st.lists(st.integers(0, 99), max_size=14), min_size=1, max_size=8)


@settings(max_examples=15)
@given(requests, st.sampled_from([None, 1, 3]), st.booleans(), st.integers(1, 3))
def test_requests_on_members_are_what_each_is_alone(
    requests: list[list[int]], size: int | None, merged: bool, times: int
) -> None:
    with MeshHere(2) as here:
        partition = times * (size or 1)
        stream = of(Stream(client=here, partition=partition), size, merged)
        found = [said(one) for one in stream.run(requests, ordered=True, errors="give")]
    if merged:  # of several feeds that are poisoned, another may be the first
        found = [one[:1] if isinstance(one, tuple) else one for one in found]
    expected = alone(of(Stream(), size, merged), requests)
    for one, right in zip(found, expected, strict=True):
        if isinstance(right, tuple):
            assert one[0] is StageError
        else:
            assert one == right


@settings(max_examples=15)
@given(requests, st.integers(1, 3), st.data())
def test_requests_that_end_otherwise_change_nothing_for_the_others(
    requests: list[list[int]], opened: int, data: st.DataObject
) -> None:
    fates = [data.draw(FATES) for _ in requests]
    expected = alone(of(Stream(), 3, False), requests)
    with MeshHere(2) as here, of(Stream(client=here, open=opened), 3, False) as stream:
        for at, wrong, answer in going_on(stream, requests, fates):
            if wrong is not None:
                assert isinstance(wrong, expected[at][0])
            else:
                assert answer.result() == expected[at]


def test_what_a_user_says_of_credits_holds_for_partitions() -> None:
    gate, begun = threading.Event(), [0]

    def source() -> Iterator[int]:
        for feed in range(50):
            begun[0] += 1
            yield feed

    def wait(feed: int) -> int:
        gate.wait(20)
        return feed

    with MeshHere(2) as here:
        stream = Stream(client=here, open=2, feeds=12, partition=3).map(wait)
        with stream.aggregate().map(len) as stream:
            answers = [stream.submit(source) for _ in range(4)]
            assert eventually(lambda: stream.gauges()["stream"]["feeds"] == 4)
            # One more of each is looked at, to know whether it is the last.
            assert begun[0] <= 12 + 2
            gate.set()
            # A barrier needs all feeds of a request: as without workers, they must fit.
            for answer in answers:
                with pytest.raises(TooLargeError, match="must have less than 6 feeds"):
                    answer.result(20)


def test_as_many_are_in_a_stage_of_a_worker_as_the_user_says() -> None:
    inside, most = [0], [0]

    def serial(feed: int) -> int:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.05)
        inside[0] -= 1
        return feed

    with MeshHere(1) as here:
        stream = Stream(client=here, partition=2).map(serial, replicas=1)
        with stream.aggregate().map(len) as stream:
            # Some are one partition, and go through both phases at once.
            answers = [stream.submit(range(n)) for n in (1, 4, 1, 4)]
            assert [answer.result(60) for answer in answers] == [[1], [4], [1], [4]]
    assert most == [1]


def test_partitions_grow_where_moving_them_costs_more_than_their_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(phases, "SPARED", 1e-9)  # however slow this machine is today
    several = [list(range(n, n + 400)) for n in range(6)]
    with MeshHere(2) as here, Stream(client=here).map(abs) as stream:
        assert list(stream.run(several, ordered=True)) == several
        at_work: Any = stream._running
        # All workers should have some of a request, however quick it is.
        assert at_work.partition == 200
    with MeshHere(2) as here, Stream(client=here, feeds=40).map(abs) as stream:
        assert list(stream.run(several, ordered=True)) == several
        bounded: Any = stream._running
        assert bounded.partition == bounded.least
        assert bounded.flow.allowance.feeds * bounded.least <= 40


def made(feed: int) -> dict[str, np.ndarray]:
    return {"x": np.arange(feed, dtype=float), "y": np.full(3, feed)}


def reduced(feeds: list[dict[str, np.ndarray]]) -> tuple[float, int]:
    return float(sum(one["x"].sum() for one in feeds)), sum(len(one["y"]) for one in feeds)


def test_many_requests_on_workers_are_solo_runs_in_this_process(where: Any) -> None:
    def stream(**given: Any) -> Stream:
        begun = Stream(**given).map(made).aggregate(4).map(reduced)
        return begun.aggregate().map(list, name="together")

    several = [list(range(n)) for n in (30, 0, 7, 64, 1, 4, 5, 17, 33, 2)] * 2
    on_workers = stream(client=where)
    found = list(on_workers.run(several, ordered=True))
    assert found == alone(stream(), several)
    plan = on_workers.explain()
    assert plan_of(plan.to_dict()) == plan
    text = plan.explain()
    assert "on 2 workers" in text
    assert "made, reduced" in text
    assert "were sent to workers and back" in text


def test_an_error_on_a_worker_says_what_it_says_here(where: Any) -> None:
    several = [[1], [2, 17, 3], [4], [7]]
    found = Stream(client=where).map(poisoned).run(several, ordered=True, errors="give")
    assert [said(one) for one in found] == alone(Stream().map(poisoned), several)
    (error,) = Stream(client=where).map(poisoned).run([[27]], errors="give")
    assert isinstance(error.__cause__, ValueError)
    assert error.request == [27]


class OddError(Exception):
    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


def odd(feed: int) -> int:
    raise OddError(feed, feed + 1)


def test_an_error_that_cannot_travel_is_told(where: Any) -> None:
    (error,) = Stream(client=where).map(odd).run([[3]], errors="give")
    assert isinstance(error, StageError)
    assert (str(error), error.stage) == ("The stage `odd` failed: 3 and 4", "odd")
    (error,) = Stream(client=where).map(locked).run([[3]], errors="give")
    assert isinstance(error, StageError)
    assert "must be picklable" in str(error)


def locked(feed: int) -> Any:
    return threading.Lock()


def test_results_of_partitions_are_gathered_in_order_here(where: Any) -> None:
    seen: list[tuple[int, int]] = []  # is here: nothing of it travels

    def write(feeds: Any) -> int:
        mine = [(feeds.request[0], feed) for feed in feeds]
        seen.extend(mine)
        return len(mine)

    stream = Stream(client=where, partition=3).map(abs).gather(write)
    several = [list(range(n, n + 20)) for n in (100, 200, 300)] + [[5]]
    assert list(stream.run(several, ordered=True)) == [20, 20, 20, 1]
    for request in several:
        assert [feed for first, feed in seen if first == request[0]] == request


def pid(feed: Any) -> int:
    time.sleep(0.01)
    return os.getpid()


def whole(feeds: list[int]) -> list[int]:
    return [*feeds, os.getpid()]


@pytest.mark.cluster
@pytest.mark.slow
def test_a_request_is_cut_for_workers_that_have_nothing_else_to_do(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow lines are today: much work, and nothing that crosses costs anything.
    monkeypatch.setattr(Spread, "times_of", lambda self, arity: (float(arity), 0.0))
    stream = Stream(client=client, partition=2).map(pid).aggregate().map(whole)
    ((used,),) = stream.run([range(20)])
    assert os.getpid() not in used
    assert len(set(used)) == 2
    with stream:
        list(stream.run([range(20)] * 4))  # until times are known
        busy = list(stream.run([range(20)] * 12))
    assert any(len(set(used)) == 1 for (used,) in busy)
    assert 3 * in_bytes(client, many=12) < in_bytes(client, many=1)


def in_bytes(client: Any, many: int) -> float:
    """Bytes that travel for a request, of ``many`` at once."""
    stream = Stream(client=client, partition=2).map(large)
    with stream.aggregate().map(len) as merged:
        list(merged.run([range(20)] * 4))
        before = merged.gauges()["stream"]["bytes sent"]
        list(merged.run([range(20)] * many))
        return (merged.gauges()["stream"]["bytes sent"] - before) / many


def large(feed: int) -> np.ndarray:
    time.sleep(0.002)
    return np.full(5000, feed, float)


def slow_square(feed: int) -> int:
    time.sleep(0.02)
    return feed * feed


@pytest.mark.cluster
@pytest.mark.slow
def test_a_worker_that_is_killed_loses_no_request() -> None:
    with local_cluster(2) as client:
        stream = Stream(client=client, partition=4).map(slow_square).aggregate().map(sum)
        victim = next(iter(client.run(os.getpid).values()))
        threading.Timer(0.3, os.kill, (victim, signal.SIGKILL)).start()
        found = list(stream.run([range(40)] * 20))
    assert found == [[sum(n * n for n in range(40))]] * 20


def test_members_that_are_lost_and_that_join_late_change_nothing() -> None:
    with MeshHere(2) as here:
        gate = threading.Event()

        def wait(feed: int) -> int:
            gate.wait(20)
            return -feed

        with Stream(client=here, partition=1, open=4).map(wait) as stream:
            answers = [stream.submit(range(6)) for _ in range(5)]
            running: Any = stream._running
            assert eventually(lambda: all(running.places._taken.values()))
            losing, _ = in_thread(partial(here.lose, here.members[0]))
            assert eventually(lambda: len(here.members) == 1)
            late = here.add()
            assert eventually(lambda: running.places._taken.get(late, 0) > 0)
            gate.set()
            losing.join()
            assert [answer.result(20) for answer in answers] == [[-n for n in range(6)]] * 5


def test_feeds_that_lose_every_worker_fail_their_request_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def lost(mesh: Any, member: str, *_: Any) -> Any:
        asked.append(member)
        raise MemberLostError(f"{member} was lost before it answered.")

    monkeypatch.setattr(spread, "through", lost)
    with MeshHere(LOST) as here, Stream(client=here, partition=2).map(abs) as one:
        (error,) = one.run([[1, 2]], errors="give")
        assert isinstance(error, StageError)
        assert "3 workers were lost with the same part" in str(error)
        assert len({*asked}) == len(asked) == LOST


def test_a_member_that_did_not_answer_once_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(places, "REST", 0.05)
    failing = iter([True])

    def busy(mesh: Any, member: str, *rest: Any) -> Any:
        if next(failing, False):
            raise MemberLostError(f"{member} did not answer.")
        return station.through(mesh, member, *rest)

    monkeypatch.setattr(spread, "through", busy)
    with MeshHere(1) as here, Stream(client=here).map(abs) as stream:
        assert stream.submit([-1]).result(10) == [1]
        assert stream.submit([-2]).result(10) == [2]


def test_a_stream_without_members_ends_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "PATIENCE", 0.05)
    with MeshHere(1) as here, Stream(client=here).map(abs) as stream:
        assert stream.submit([1]).result(10) == [1]
        here.lose(here.members[0])
        with pytest.raises(StageError, match="All workers are lost"):
            stream.submit([1]).result(10)
        here.add()
        assert stream.submit([2]).result(10) == [2]


def test_late_and_cancelled_requests_free_what_they_hold_on_members() -> None:
    gate = threading.Event()

    def wait(feed: int) -> int:
        gate.wait(20)
        return feed

    with MeshHere(1) as here, Stream(client=here, open=1).map(wait) as stream:
        late, cancelled = stream.submit([1, 2], deadline=0.05), stream.submit([3])
        fine = stream.submit([4, 5])
        with pytest.raises(DeadlineError):
            late.result(10)
        assert cancelled.cancel()
        gate.set()
        assert fine.result(10) == [4, 5]
        running: Any = stream._running
        assert eventually(lambda: is_idle(running.flow) and not running.flow.dead)


def test_a_closed_stream_lets_go_of_its_members() -> None:
    with MeshHere(2) as here:
        for number in range(3):
            stream = Stream(client=here).map(abs)
            assert stream.submit([-number]).result(10) == [number]
            stream.close()
        with pytest.raises(StreamClosedError):
            stream.submit([1])
        sampled = Stream(client=here).map(abs).explain(range(9))
        assert sampled.choices[1].children[0].predicted
        failing = Stream(client=here).map(lambda feed: time.sleep(0.3), name="slow")
        answer = failing.submit(range(50))
        failing.close(drain=False)
        with pytest.raises(StreamClosedError):
            answer.result(0)
        left = Stream(client=here).map(abs)
        assert left.submit([1]).result(10) == [1]
    left.close()  # although its members are gone


def test_memory_bounds_feeds_on_members_too(where: Any) -> None:
    stream = Stream(client=where, memory="10kB", partition=1).map(len).map(bytes)
    found = list(stream.run([[b"x" * 100], [b"x" * 20_000]], ordered=True, errors="give"))
    assert found[0] == [bytes(100)]
    assert isinstance(found[1], TooLargeError)


def test_aggregates_are_whole_in_each_partition() -> None:
    sizes = (None, 10, None, 2, BARRIER, 3)
    assert (border(sizes), unit(sizes)) == (4, 20)
    assert least_partition(sizes, 4, None) == 20
    assert least_partition((None, 3), 4, None) == 6
    assert least_partition((None,), 4, None) == 4
    assert least_partition(sizes, 4, 40) == 40
    with pytest.raises(InputError, match="whole aggregates: 2 do not divide 3"):
        least_partition(sizes, 4, 30)
    with (
        MeshHere(1) as here,
        pytest.raises(InputError, match="whole aggregates: 3 do not divide 4"),
    ):
        list(Stream(client=here, partition=4).map(abs).aggregate(3).map(sum).run([[1]]))
    with MeshHere(1) as here, pytest.raises(InputError, match="`feeds` must be at least 8"):
        list(Stream(client=here, partition=4, open=2, feeds=5).map(abs).run([[1]]))
    with pytest.raises(InputError, match="`partition` must be 'auto' or at least 1"):
        Stream(partition=0)


@given(st.integers(1, 9), st.integers(1, 6), st.floats(1e-6, 1), st.floats(0, 1e5))
def test_partitions_are_as_large_as_moving_them_asks_for(
    times: int, each: int, work: float, most: float
) -> None:
    least = times * each
    found = partition_of(least, each, work, 1e-3, most)
    assert found % each == 0
    assert least <= found <= max(least, most)
    if found > least:  # no larger than it must be
        assert (found - each) * work * 0.02 <= 1e-3


def test_phases_are_fused_where_workers_have_other_requests() -> None:
    assert in_one_place(1.0, 0.0, members=4, requests=4)
    assert not in_one_place(1.0, 0.1, members=4, requests=1)
    assert in_one_place(0.1, 0.2, members=4, requests=1)  # what crosses takes longer
    assert in_one_place(1.0, 0.0, members=1, requests=1)


def test_one_function_picks_the_mesh() -> None:
    with mesh(Threads(2)) as one, mesh(Threads(2), 3) as three:
        assert isinstance(one, MeshHere)
        assert (len(one.members), len(three.members)) == (1, 3)
        assert mesh(three) is three


@pytest.mark.cluster
@pytest.mark.slow
def test_one_function_picks_the_mesh_of_a_client(client: Any) -> None:
    with mesh(client) as given, mesh() as active:
        assert isinstance(given, MeshDask)
        assert isinstance(active, MeshDask)
        assert set(given.members) == set(active.members)
        given.serve(Cores)
        assert given.ask(given.members[0], "cores")[0].block == 1


class Cores(Service):
    def __init__(self, site: Any) -> None:
        self.cores = site.cores

    def answer(self, operation: str, header: Header, arrays: Any) -> Any:
        return Header(block=self.cores), []


@given(
    st.lists(st.integers(0, 6000), max_size=5), st.lists(st.text(max_size=9), max_size=300)
)
def test_a_parcel_of_any_number_of_arrays_is_three(
    sizes: list[int], texts: list[str]
) -> None:
    several: list[Any] = [np.arange(size) % 2 for size in sizes]
    parcel = pack([*several, np.ones(2), texts])
    arrays = arrays_of(parcel)
    assert len(arrays) == 3
    *found, words = unpack(parcel_of(arrays))
    assert words == texts
    for one, other in zip(found, [*several, np.ones(2)], strict=True):
        np.testing.assert_array_equal(one, other)
