"""A fork of a process whose other threads are at work has none of them, nor their locks."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from tests.judges.stale import in_a_fork
from threadpoolctl import threadpool_info

import mlopt
from mlopt import limits
from mlopt.cluster import processes, workers
from mlopt.gd.plans import forecast
from mlopt.kernels import compiling
from mlopt.locking import cached_property
from mlopt.pipeline import environment
from mlopt.pipeline.fits.text import vocabulary
from mlopt.pipeline.tasks import timing
from mlopt.resources import experience, probe
from mlopt.tuning.storage import memory

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")

LOCKS = (
    compiling._lock, environment.environment._lock, experience._lock,
    forecast._lock, limits._blas.lock, limits.LOOKING, memory._adding, probe._lock,
    processes._left._changing, timing._lock, vocabulary._building, workers._changing,
)  # fmt: skip


@contextmanager
def another_thread(enter: Callable[[ExitStack], object]) -> Iterator[None]:
    """While open, a thread is within what ``enter`` has entered."""
    there, over = threading.Event(), threading.Event()

    def hold() -> None:
        with ExitStack() as stack:
            enter(stack)
            there.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    there.wait()
    try:
        yield
    finally:
        over.set()
        thread.join()


def soon(work: Callable[[], Any]) -> Callable[[], Any]:
    """The same, that ends its process where it takes too long."""

    def timed() -> Any:
        signal.alarm(10)
        return work()

    return timed


def found() -> list[float]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    families = {
        "linear": (LogisticRegression(), {"C": [0.1, 1.0]}),
        "tree": (DecisionTreeClassifier(), {"max_depth": [1, 2]}),
    }
    search = mlopt.ModelSearchCV(families, sampler="random", n_trials=4, cv=2)
    scores: list[float] = search.fit(X, y).cv_results_["mean_test_score"].tolist()
    return scores


def test_what_other_threads_have_locked_is_open_in_a_fork() -> None:
    before = found()
    with another_thread(lambda stack: [stack.enter_context(lock) for lock in LOCKS]):
        assert in_a_fork(soon(found)) == before


def test_a_limit_on_blas_of_other_threads_ends_with_a_fork() -> None:
    def blas() -> list[int]:
        return [
            one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"
        ]

    free = blas()
    with another_thread(lambda stack: stack.enter_context(limits.single_threaded())):
        assert {*blas()} == {1}
        assert in_a_fork(soon(blas)) == free


class Slow:
    def __init__(self, wait: Callable[[], object]) -> None:
        self.wait, self.calls = wait, 0

    @cached_property
    def value(self) -> int:
        self.wait()
        self.calls += 1
        return self.calls


def test_a_property_of_one_object_is_computed_while_that_of_another_is() -> None:
    there, over = threading.Event(), threading.Event()

    def meet() -> None:
        there.set()
        over.wait(10)

    one, other = Slow(meet), Slow(over.set)
    thread = threading.Thread(target=lambda: one.value)
    thread.start()
    there.wait()
    assert in_a_fork(soon(lambda: other.value)) == 1
    assert other.value == other.value == 1
    thread.join()
    assert one.value == 1
