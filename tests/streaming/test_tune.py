"""Replicas, credits and fusing follow from measured times; a plan says what they give."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plans import plan_of

from mlopt import Stream
from mlopt.errors import TooLargeError
from mlopt.streaming.credits import BARRIER
from mlopt.streaming.tune import Room, Timed, tune

SOURCE = Timed("requests", 1e-6, 1e-6)


def test_replicas_grow_until_the_cores_are_busy() -> None:
    reading = Timed("read", 0.03, 0.0, replicas=None)  # waits for a disk
    fitting = Timed("predict", 0.01, 0.01, size=1)  # a gate of its own
    chosen = tune([SOURCE, reading, fitting], Room(cores=2), arity=100)
    # Two cores give 200 a second: six must wait for the disk meanwhile, two predict.
    assert chosen.replicas == (1, 6, 2)
    assert chosen.throughput == pytest.approx(2 / 0.01, rel=0.05)


def test_a_serial_stage_limits_the_others() -> None:
    serial = Timed("write", 0.1, 0.0, replicas=1)
    reading = Timed("read", 0.2, 0.0)
    chosen = tune([SOURCE, reading, serial], Room(cores=8), arity=10)
    assert chosen.replicas == (1, 2, 1)
    assert chosen.throughput == pytest.approx(10, rel=0.01)
    assert not any(chosen.fused)


def test_neighbours_are_fused_where_a_handover_is_saved() -> None:
    short = [Timed(name, 1e-4, 1e-4) for name in "abc"]
    chosen = tune([SOURCE, *short], Room(cores=2), arity=50)
    assert chosen.fused == (False, True, True, False)
    assert chosen.replicas[2:] == (0, 0)
    serial = [short[0], Timed("b", 1e-4, 1e-4, replicas=1), Timed("c", 1e-4, 1e-4, size=3)]
    assert not any(tune([SOURCE, *serial], Room(cores=2), arity=50).fused)


def test_two_requests_are_open_where_two_phases_are_balanced() -> None:
    phases = [
        Timed("align", 0.01, 0.0, replicas=1),
        Timed("merge", 0.08, 0.0, replicas=1, size=BARRIER),
    ]
    chosen = tune([SOURCE, *phases], Room(cores=2), arity=8)
    assert chosen.open == 2
    assert chosen.throughput == pytest.approx(100, rel=0.02)
    assert chosen.latency == pytest.approx(0.16, rel=0.05)


seconds = st.floats(1e-5, 1.0)


@given(
    st.lists(st.tuples(seconds, seconds, st.integers(1, 10**6)), min_size=1, max_size=4),
    st.integers(1, 8),
    st.integers(10**7, 10**9),
    st.integers(1, 500),
)
def test_more_memory_never_makes_a_stream_slower_and_bounds_its_feeds(
    times: list[tuple[float, float, int]], cores: int, memory: int, arity: int
) -> None:
    stages = [
        Timed(str(at), wall, min(wall, cpu), size)
        for at, (wall, cpu, size) in enumerate(times)
    ]
    less = tune([SOURCE, *stages], Room(cores, memory), arity)
    more = tune([SOURCE, *stages], Room(cores, 2 * memory), arity)
    assert less.memory <= memory
    assert more.feeds >= less.feeds
    assert more.throughput >= less.throughput


@pytest.mark.parametrize("size", [None, 3, BARRIER])
def test_the_feeds_that_a_user_allows_decide_how_many_requests_are_open(
    size: int | None,
) -> None:
    waiting = [Timed("ask", 0.02, 0.0), Timed("last", 1e-4, 0.0, size=size)]
    chosen = tune([SOURCE, *waiting], Room(cores=2, feeds=8), arity=3)
    least = {None: 1, 3: 3, BARRIER: 4}[size]
    assert (chosen.open, chosen.feeds) == (8 // least, 8)


def test_where_all_feeds_come_together_the_memory_says_how_many_may_wait() -> None:
    stages = [Timed("a", 1e-3, 1e-3, bytes=100), Timed("b", 1e-3, 1e-3, size=BARRIER)]
    chosen = tune([SOURCE, *stages], Room(2, memory=10**6), arity=10)
    assert (chosen.open, chosen.feeds) == (2, 10**4)
    nothing = [SOURCE, Timed("a", 1e-3, 1e-3), stages[1]]
    assert tune(nothing, Room(2, memory=10**6), arity=10).feeds == 10**6


def test_what_must_be_together_must_fit() -> None:
    made = Timed("requests", 1e-6, 1e-6, bytes=1e6)
    with pytest.raises(TooLargeError, match="101 feeds of a request together"):
        tune([made, Timed("a", 1, 1, size=BARRIER)], Room(2, 10**7), arity=100)


def test_a_plan_is_there_before_a_run_and_says_afterwards_what_it_took() -> None:
    def read(feed: int) -> bytes:
        time.sleep(0.004)
        return bytes(1000 * feed)

    stream = Stream(threads=2, memory="1MB").map(read).map(len).aggregate(4).map(sum)
    before = stream.explain()
    assert "nothing is measured yet" in before.explain()
    assert [choice.step for choice in before.choices] == ["read", "len", "sum"]
    sampled = stream.explain(range(20))
    predicted = sampled.choices[1].predicted
    assert predicted is not None
    assert predicted >= 0.004
    text = sampled.explain()
    assert "fused with the stage before" in text
    assert "requests open" in text
    list(stream.run([range(20)] * 10))
    after = stream.explain()
    assert after.measured is not None
    assert "measured:" in after.explain()
    assert plan_of(after.to_dict()) == after


def test_no_more_threads_than_asked_for_are_in_a_stage() -> None:
    inside, most = [0], [0]

    def serial(feed: Any) -> Any:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.0005)
        inside[0] -= 1
        return feed

    def quick(feed: Any) -> Any:
        time.sleep(0.002)
        return feed

    stream = Stream(threads=4).map(quick).map(serial, replicas=1).map(abs)
    assert list(stream.run([range(40)] * 3)) == [list(range(40))] * 3
    assert most == [1]
    assert stream._last is not None
    assert stream._last.tuned is not None
    assert stream._last.tuned.replicas[1] > 1
    assert not [t for t in threading.enumerate() if "mlopt-stream" in t.name]
