"""A job that is interrupted inside a step: its model has the steps that it says."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.clusters import eventually
from tests.server.test_jobs import ALL, KINDS

from mlopt.errors import InputError, TaskError
from mlopt.server import Job

BLOCKS, PASSES = 6, 50


def press_ctrl_c() -> None:
    """Returns when the main thread has heard of it: the step that does it is under way."""
    heard = threading.Event()
    signalled.append(heard)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    heard.wait(10)


signalled: list[threading.Event] = []


@pytest.fixture(autouse=True)
def hears_of_signals() -> Iterator[None]:
    def handler(*_: object) -> None:
        signalled.pop().set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    yield
    signal.signal(signal.SIGINT, before)


def raise_it() -> None:
    raise KeyboardInterrupt


class Counts:
    """A step that adds one, and does something at its step ``at``."""

    def __init__(self, at: int, what: Callable[[], None]) -> None:
        self.numbers, self.at, self.what = itertools.count(1), at, what

    def __call__(self, block: Any, model: np.ndarray) -> np.ndarray:
        number = next(self.numbers)
        if number == self.at:
            self.what()
        elif self.at < number:
            time.sleep(0.005)  # others are not at their end before anybody has heard of it
        return np.ones_like(model)


def job_of(step: Any, **given: Any) -> Job:
    return Job(step, np.zeros(2), list(range(BLOCKS)), passes=PASSES, members=3, **given)


@pytest.mark.parametrize("what", [press_ctrl_c, raise_it])
@pytest.mark.parametrize("at", [1, 100])
@pytest.mark.parametrize(("layout", "mode"), KINDS)
def test_the_model_has_the_passes_that_an_interrupted_job_counts(
    layout: Any, mode: Any, at: int, what: Any
) -> None:
    before = set(threading.enumerate())
    job = job_of(Counts(at, what), layout=layout, mode=mode)
    # What a step raises in a thread is an error of that call.
    errors = [KeyboardInterrupt] if what is press_ctrl_c else [KeyboardInterrupt, TaskError]
    with pytest.raises((*errors,)):
        job.run()
    np.testing.assert_array_equal(job.model, sum(job.steps))
    if what is press_ctrl_c:
        np.testing.assert_array_equal(job.model, BLOCKS * job.passes)
        assert at < BLOCKS or job.passes * BLOCKS >= at - BLOCKS  # little is lost
    assert job.passes < PASSES
    left = {one for one in set(threading.enumerate()) - before if not _is_kept(one)}
    assert eventually(lambda: not any(one.is_alive() for one in left), 5)
    np.testing.assert_array_equal(job.run().model, BLOCKS * PASSES)


def _is_kept(thread: threading.Thread) -> bool:
    """Whether it is one of a pool that the process keeps."""
    return not thread.name.startswith(("mlopt-here", "mlopt-store", "mlopt-rotate"))


def test_strata_that_are_far_ahead_are_not_waited_for_and_their_steps_are_known() -> None:
    """Of two strata one stands still: the other's steps are in the model, and counted."""
    fast, stop = itertools.count(1), threading.Event()

    def step(block: int, model: np.ndarray) -> np.ndarray:
        if block == 0:
            stop.wait(20)
        elif next(fast) == 40:
            press_ctrl_c()
        return np.ones_like(model)

    job = Job(step, np.zeros(2), [0, 1], layout="servers", passes=PASSES, members=3)
    with pytest.raises(KeyboardInterrupt):
        job.run()
    assert job.passes == 0
    assert job.steps[0] == 0
    assert job.steps[1] >= 39
    np.testing.assert_array_equal(job.model, sum(job.steps))
    other = Job(step, np.zeros(2), [0, 1], layout="servers", passes=PASSES, members=3)
    other.restore(job.state())
    assert other.steps == job.steps
    stop.set()
    other.advance(2)
    assert other.steps == (2, job.steps[1])  # it had no more
    other.restore(other.state())
    np.testing.assert_array_equal(job.run().model, 2 * PASSES)
    np.testing.assert_array_equal(other.run().model, 2 * PASSES)


@pytest.mark.parametrize("layout", ALL)
def test_the_model_of_a_job_that_failed_has_the_passes_that_it_counts(layout: Any) -> None:
    def fails() -> None:
        raise InputError("enough")

    job = job_of(Counts(100, fails), layout=layout)
    with pytest.raises(InputError, match="enough"):
        job.run()
    np.testing.assert_array_equal(job.model, sum(job.steps))
    np.testing.assert_array_equal(job.run().model, BLOCKS * PASSES)


@pytest.mark.parametrize("layout", ALL)
def test_a_model_in_parts_is_of_whole_passes_too(layout: Any) -> None:
    count = itertools.count(1)

    def step(block: Any, part: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if next(count) == 50:
            press_ctrl_c()
        return {"w": np.ones_like(part["w"])}

    parts = [{"w": np.zeros(3)} for _ in range(4)]
    rows = [[0] * 4 for _ in range(3)]
    job = Job(step, parts, rows, layout=layout, passes=PASSES, members=3)
    with pytest.raises(KeyboardInterrupt):
        job.run()
    assert [part["w"].tolist() for part in job.model] == [[3 * job.passes] * 3] * 4
    assert [part["w"].tolist() for part in job.run().model] == [[3 * PASSES] * 3] * 4


@pytest.mark.parametrize("layout", ["threads", "rotate"])
def test_little_is_lost_when_a_step_fails(layout: Any) -> None:
    """A model of which a copy takes no time has one of not long ago."""

    def fails() -> None:
        raise InputError("enough")

    counts = Counts(200, fails)

    def step(block: Any, model: np.ndarray) -> np.ndarray:
        time.sleep(0.003)
        return counts(block, model)

    job = job_of(step, layout=layout)
    with pytest.raises(InputError, match="enough"):
        job.run()
    assert job.passes * BLOCKS >= 100
    np.testing.assert_array_equal(job.model, BLOCKS * job.passes)
