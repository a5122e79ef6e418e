"""Requests through a stream: each as if alone, in bounded memory, and nothing left over."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.clusters import eventually
from tests.streaming.fates import FATES, going_on

from mlopt import Stream
from mlopt.errors import (
    DeadlineError,
    InputError,
    StageError,
    StreamClosedError,
    TooLargeError,
)
from mlopt.events import Event, GateWaited, RequestDone
from mlopt.streaming import running


def poisoned(feed: int) -> int:
    if feed % 10 == 7:
        raise ValueError(f"no {feed}")
    return 2 * feed


requests = st.lists(st.lists(st.integers(0, 99), max_size=8), min_size=1, max_size=8)


@settings(max_examples=25)
@given(requests, st.integers(1, 4), st.sampled_from([None, 1, 3]), st.data())
def test_many_requests_at_once_are_what_each_is_alone(
    requests: list[list[int]], opened: int, size: int | None, data: st.DataObject
) -> None:
    def alone(feeds: list[int]) -> Any:
        if any(feed % 10 == 7 for feed in feeds):
            return "failed"
        doubled = [2 * feed for feed in feeds]
        step = size or max(1, len(feeds))
        return [sum(doubled[at : at + step]) for at in range(0, len(feeds), step)]

    fates = [data.draw(FATES) for _ in requests]
    stream = Stream(open=opened).map(poisoned, replicas=3).aggregate(size).map(sum)
    with stream:
        for at, wrong, answer in going_on(stream, requests, fates):
            if wrong is not None:
                assert alone(requests[at]) == "failed"
                assert str(wrong).startswith("The stage `poisoned` failed: no ")
            else:
                assert answer.result() == alone(requests[at])


def test_what_waits_is_requests_and_not_their_feeds() -> None:
    made, gate = [0], threading.Event()

    def request(number: int) -> Iterator[int]:
        for feed in range(50):
            made[0] += 1
            yield number + feed

    def wait(feed: int) -> int:
        gate.wait(10)
        return feed

    with Stream(open=3, feeds=9).map(wait, replicas=2) as stream:
        answers = [stream.submit(lambda n=n: request(n)) for n in range(40)]
        assert eventually(lambda: stream.gauges()["stream"]["feeds"] == 9)
        assert made[0] <= 9
        gauges = stream.gauges()
        assert gauges["stream"]["open"] == 3
        assert gauges["stream"]["waiting"] == 37
        gate.set()
        assert answers[7].result(30) == list(range(7, 57))
        [answer.result(30) for answer in answers]
        gauges = stream.gauges()
        assert gauges["stream"]["peak"] <= 9
        assert gauges["wait"]["rounds"] == 40 * 50


def test_the_answers_of_a_run_come_in_order_if_that_is_asked_for() -> None:
    def wait(feed: float) -> float:
        time.sleep(feed)
        return feed

    stream = Stream(open=3).map(wait, replicas=3)
    several = [[0.3], [0.0], [0.0]]
    assert next(iter(stream.run(several))) == [0.0]
    assert list(stream.run(several, ordered=True)) == several


def test_threads_may_submit_and_run_at_once() -> None:
    stream = Stream().map(abs)
    runs = [iter(stream.run([[n], [n + 1]], ordered=True)) for n in (1, 5)]
    assert [next(run) for run in runs] == [[1], [5]]
    assert [list(run) for run in runs] == [
        [[2]],
        [[6]],
    ]  # the first to end leaves the other
    answers: list[Any] = []

    def ask(number: int) -> None:
        answers.append(stream.submit([number]))

    crowd = [threading.Thread(target=ask, args=[number]) for number in range(20)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    stream.close()
    assert sorted(answer.result(0)[0] for answer in answers) == list(range(20))


def test_any_number_of_requests_is_asked_for_as_they_can_be_opened() -> None:
    asked = [0]

    def endless() -> Iterator[list[int]]:
        while True:
            asked[0] += 1
            yield [asked[0]]

    answers = Stream(open=2).map(abs).run(endless(), ordered=True)
    assert [next(answers) for _ in range(20)] == [[n] for n in range(1, 21)]
    assert asked[0] <= 24
    answers.close()  # type: ignore[attr-defined]


def test_a_request_that_fails_fails_alone_and_says_where() -> None:
    stream = Stream().map(poisoned)
    found = stream.run([[1], [2, 17, 3], [4], 3 * [7]], ordered=True)
    assert [next(found), next(found)] == [[2], [8]]
    with pytest.raises(ExceptionGroup) as caught:
        list(found)
    assert [str(error) for error in caught.value.exceptions] == [
        "The stage `poisoned` failed: no 17",
        "The stage `poisoned` failed: no 7",
    ]
    given = list(stream.run([[7], [1]], ordered=True, errors="give"))
    assert isinstance(given[0], StageError)
    assert isinstance(given[0].__cause__, ValueError)
    assert given[1] == [2]


def test_a_source_that_breaks_fails_its_request_by_name() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise OSError("the disk is gone")

    def stops() -> Iterator[int]:
        raise StopIteration

    (stopped,) = Stream().map(abs).run([stops], errors="give")
    assert "it raised StopIteration" in str(stopped)
    found = list(Stream().map(abs).run([broken, [5]], ordered=True, errors="give"))
    assert str(found[0]) == "The stage `requests` failed: the disk is gone"
    assert found[1] == [5]


def test_results_are_gathered_in_order_as_they_come() -> None:
    seen: list[tuple[Any, int]] = []

    def write(feeds: Any) -> int:
        seen.extend((feeds.request, feed) for feed in feeds)
        return len(seen)

    def jitter(feed: int) -> int:
        time.sleep(0.001 * (feed % 3))
        return feed

    stream = Stream(open=2, feeds=6).map(jitter, replicas=3).gather(write)
    several = [range(30), range(0), range(10, 25)]
    assert len(list(stream.run(several))) == 3
    for request in several:
        assert [feed for one, feed in seen if one is request] == list(request)


def test_gathering_may_end_early_or_fail() -> None:
    def first(feeds: Any) -> int:
        for feed in feeds:
            if feed < 0:
                raise ValueError("below 0")
            return int(feed)
        return -1

    stream = Stream(open=1, feeds=2).map(abs, name="keep").gather(first)
    answers = list(stream.run([range(5, 50), [], range(9)], ordered=True))
    assert answers == [5, -1, 0]
    stream = Stream(open=1).map(lambda feed: -feed, name="turn").gather(first)
    (error,) = stream.run([range(1, 5)], errors="give")
    assert str(error) == "The stage `first` failed: below 0"


def test_a_gathering_function_hears_of_what_went_wrong() -> None:
    heard: list[BaseException] = []

    def write(feeds: Any) -> None:
        try:
            list(feeds)
        except BaseException as error:
            heard.append(error)
            raise

    (error,) = Stream().map(poisoned).gather(write).run([[1, 2, 7]], errors="give")
    assert eventually(lambda: bool(heard))
    assert isinstance(error, StageError)
    assert error.stage == "poisoned"
    assert heard[0] is error


def test_late_and_cancelled_requests_free_what_they_hold() -> None:
    gate = threading.Event()

    def wait(feed: int) -> int:
        gate.wait(20)
        return feed

    with Stream(open=1).map(wait) as stream:
        late = stream.submit([1, 2], deadline=0.05)
        cancelled = stream.submit([3])
        fine = stream.submit([4, 5])
        with pytest.raises(DeadlineError, match=r"within 0\.05 s"):
            late.result(10)
        assert cancelled.cancel()
        assert cancelled.cancelled()
        with pytest.raises(CancelledError):
            cancelled.result()
        # The stage still has a feed of the late request: its credit is not free.
        assert stream.gauges()["stream"]["open"] == 1
        gate.set()
        assert fine.result(10) == [4, 5]
        assert not fine.cancel()


def test_a_stream_that_is_closed_answers_what_it_took_or_fails_it() -> None:
    stream = Stream(open=1).map(abs)
    answers = [stream.submit([n]) for n in range(20)]
    stream.close()
    assert [answer.result(0) for answer in answers] == [[n] for n in range(20)]
    with pytest.raises(StreamClosedError):
        stream.submit([1])
    gate = threading.Event()
    stream = Stream(open=1).map(lambda feed: gate.wait(20), name="wait")
    answers = [stream.submit([n]) for n in range(3)]
    threading.Timer(0.2, gate.set).start()
    stream.close(drain=False)
    for answer in answers:
        with pytest.raises(StreamClosedError, match="closed before"):
            answer.result(0)


def test_draining_has_a_time_limit() -> None:
    gate = threading.Event()
    stream = Stream().map(lambda feed: gate.wait(20), name="wait")
    answer = stream.submit([1])
    threading.Timer(0.5, gate.set).start()
    with pytest.raises(DeadlineError, match="1 requests were not answered"):
        stream.close(timeout=0.01)
    with pytest.raises(StreamClosedError):
        answer.result(0)


@pytest.mark.parametrize("within", ["run", "with"])
def test_ctrl_c_is_heard_though_a_stage_does_not_come_back(
    within: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "PATIENCE", 0.05)
    began, gate = threading.Event(), threading.Event()

    def stuck(feed: int) -> bool:
        began.set()
        return gate.wait(20)

    def asks() -> Iterator[list[int]]:
        yield [1]
        began.wait(20)
        raise KeyboardInterrupt

    def interrupted(stream: Stream) -> None:
        if within == "run":
            list(stream.run(asks()))
        with stream:
            for request in asks():
                stream.submit(request)

    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            interrupted(Stream(threads=1).map(stuck, name="stuck"))
    finally:
        gate.set()
    assert "The stages stuck did not come back" in caught.value.__notes__[0]


def test_events_say_how_long_gates_and_requests_waited() -> None:
    heard: list[Event] = []

    def hear(event: Event) -> None:
        heard.append(event)
        raise RuntimeError("nobody should mind")

    def wait(feed: float) -> float:
        time.sleep(feed)
        return feed

    stream = Stream(open=1, observer=hear).map(wait, name="wait").map(abs, replicas=1)
    list(stream.run([[0.3], [0.0]]))
    done = [event for event in heard if isinstance(event, RequestDone)]
    assert [event.request for event in done] == [1, 2]
    assert done[0].ran >= 0.3
    assert done[1].waited >= 0.25
    waits = [event for event in heard if isinstance(event, GateWaited)]
    assert [event.gate for event in waits] == ["abs"]
    assert waits[0].seconds >= 0.25


def test_memory_bounds_feeds_and_refuses_what_cannot_fit() -> None:
    stream = Stream(memory="10kB").map(len)
    found = stream.run([[b"x" * 100], [b"x" * 20_000], [b"x"]], ordered=True, errors="give")
    first, second, third = found
    assert (first, third) == ([100], [1])
    assert isinstance(second, TooLargeError)
    assert "has 20 KiB" in str(second)
    whole = Stream(open=2, feeds=20).map(abs).aggregate().map(sum)
    fits, too_long = whole.run([range(9), range(10)], ordered=True, errors="give")
    assert fits == [36]
    assert isinstance(too_long, TooLargeError)
    assert "less than 10 feeds" in str(too_long)


def test_memory_bounds_what_stages_make_of_feeds() -> None:
    grown = Stream(memory="10kB").map(lambda feed: feed * 1000).map(len)
    found = list(grown.run([[b"x" * 100]] * 50, ordered=True, errors="give"))
    assert found[0] == [100_000]  # nobody knew
    assert isinstance(found[-1], TooLargeError)
    assert "give it more memory" in str(found[-1])


def test_a_request_may_be_longer_than_those_before_it_if_the_memory_is_enough() -> None:
    with Stream(memory="1GiB").map(abs).aggregate().map(len) as stream:
        answers = [stream.submit(range(size)).result(30) for size in (10, 1000)]
    assert answers == [[10], [1000]]


def test_no_more_feeds_are_under_way_than_the_user_says() -> None:
    stream = Stream(feeds=4).map(lambda feed: time.sleep(0.005), name="wait")
    with stream:
        for answer in [stream.submit([n]) for n in range(100)]:
            answer.result(30)
        assert stream.gauges()["stream"]["peak"] <= 4


def test_an_observer_may_cancel_other_requests() -> None:
    waiting: list[Any] = []

    def hear(event: Event) -> None:
        if isinstance(event, RequestDone) and event.reason and waiting:
            waiting.pop().cancel()

    at_work, began = threading.Event(), threading.Event()

    def work(feed: int) -> int:
        at_work.set()
        began.wait(10)
        return poisoned(feed)

    with Stream(observer=hear).map(work, replicas=1) as stream:
        bad = stream.submit([7])
        assert at_work.wait(10)  # feeds of two requests may come in any order
        waiting.append(stream.submit([2]))
        begun = waiting[0]
        began.set()
        assert isinstance(bad.exception(10), StageError)
        assert stream.submit([3]).result(10) == [6]
        assert begun.cancelled()


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_stream_that_answers_what_is_left() -> None:
    done = [0]

    def work(feed: int) -> None:
        done[0] += 1
        time.sleep(0.02)

    stream = Stream(threads=1).map(work, replicas=1)
    answers = [stream.submit([n]) for n in range(1000)]
    running: Any = stream._running

    def interrupt() -> None:
        eventually(lambda: running._closing)
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        stream.close()
    assert isinstance(answers[-1].exception(0), StreamClosedError)
    assert done[0] < 1000


def test_a_stream_goes_on_with_the_threads_that_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Refused(threading.Thread):
        def start(self) -> None:
            if self.name == "mlopt-stream wait":
                raise RuntimeError("can't start new thread")
            super().start()

    def wait(feed: int) -> int:
        time.sleep(0.005)
        return feed

    with Stream().map(wait) as stream:
        monkeypatch.setattr(threading, "Thread", Refused)
        assert stream.submit(range(40)).result(10) == [*range(40)]


ANY: Any = Stream
"""To be called as no type checker would allow."""


def stuttering(feed: int) -> Iterator[int]:
    yield feed


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Stream(open=0), "`open` must be 'auto' or at least 1, got 0"),
        (lambda: Stream(feeds=-1), "`feeds` must be"),
        (lambda: Stream(memory="much"), "`memory` must be bytes"),
        (lambda: ANY().map(3), "something to call"),
        (lambda: Stream().map(abs, replicas=0), "`replicas` of the stage `abs`"),
        (lambda: Stream().map(stuttering), "`stuttering` must return one feed for each"),
        (lambda: Stream().aggregate(0), "at least 1, got 0"),
        (lambda: Stream().aggregate(2).aggregate(2), "given twice"),
        (lambda: Stream().gather(list).map(abs), "last thing"),
        (lambda: Stream().map(abs, name="a").map(abs, name="a"), "different names"),
        (lambda: Stream().run([[1]]), "must end with a stage"),
        (lambda: Stream().map(abs).aggregate(2).run([[1]]), "must end with a stage"),
        (lambda: Stream().map(abs).submit("abc"), "put a single feed into a list"),
        (lambda: Stream().map(abs).submit([1], deadline=0), "more than 0 seconds"),
        (lambda: ANY().map(abs).submit([1], deadline="2s"), "more than 0 seconds"),
        (lambda: Stream().map(abs).run([[1]], deadline=-1), "more than 0 seconds, got -1"),
        (lambda: Stream(open=True), "`open` must be 'auto' or at least 1, got True"),
        (lambda: Stream().map(abs, replicas=True), "`replicas` of the stage `abs`"),
        (lambda: Stream().aggregate(True), "at least 1, got True"),
        (lambda: ANY().map(abs).run([[1]], errors="hide"), "'raise' or 'give'"),
        (
            lambda: list(Stream(open=4, feeds=5).map(abs).aggregate(3).map(sum).run([[1]])),
            r"need 12 credits for feeds, got 5: let fewer be open \(`open=`\), give more",
        ),
    ],
)
def test_what_cannot_work_is_named(make: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()


def test_numbers_of_numpy_are_numbers() -> None:
    two: Any = np.int64(2)
    late: Any = np.float32(30)
    stream = Stream(open=two, feeds=two * 4).map(abs, replicas=two).aggregate(two).map(sum)
    assert list(stream.run([[1, -2, 3]], deadline=late)) == [[3, 3]]


@pytest.mark.parametrize("endless", [float("inf"), 1e12])
def test_deadlines_are_kept_beside_one_that_never_comes(endless: float) -> None:
    gate = threading.Event()
    with Stream().map(lambda feed: gate.wait(20), name="wait") as stream:
        fine = stream.submit([1], deadline=endless)
        with pytest.raises(DeadlineError, match=r"within 0\.05 s"):
            stream.submit([2], deadline=0.05).result(10)
        gate.set()
        assert fine.result(10) == [True]


def test_a_stage_that_would_give_several_feeds_is_named() -> None:
    stream = Stream().map(lambda feed: (n for n in range(feed)), name="several")
    (error,) = stream.run([[3]], errors="give")
    assert "`several` must return one feed for each, but gave a generator" in str(error)


def test_stages_of_one_name_are_told_apart() -> None:
    stream = Stream().map(abs).map(abs).map(abs)
    assert [choice.step for choice in stream.explain().choices] == ["abs", "abs 2", "abs 3"]
