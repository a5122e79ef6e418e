"""What samples tell of operators at full size."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import FunctionTransformer
from tests.pipeline.graphs import scaled

from mlopt.caching import Measured
from mlopt.pipeline.operators import Apply, Given, Operator, Source
from mlopt.pipeline.profile import Profile, profile
from mlopt.pipeline.sampling import Sample
from mlopt.pipeline.settling import settle
from mlopt.pipeline.trial import Trial
from mlopt.resources import Resources

X = Source("X", "content")
ROWS, BLOCKS = 40_000, 8


def trials(*sizes: int, columns: int = 4) -> list[Trial]:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(max(sizes), columns))
    return [Trial(Sample({X.token: data[:n]}, ROWS)) for n in sizes]


def function(call: Any, scope: str = "rows") -> Apply:
    model = Given("step", FunctionTransformer(call), call.__name__)
    return Apply("step", model, X, scope=scope)


def profiled(op: Operator, threads: int = 2) -> Profile:
    return profile((op,), trials(512, 1024), BLOCKS, Resources(workers=1, threads=threads))


def test_bytes_grow_with_the_rows() -> None:
    op = scaled("features", X, RBFSampler(n_components=16, random_state=0))
    assert profiled(op).bytes(op) == ROWS * 16 * 8


def test_a_measure_is_the_record_of_caching() -> None:
    op = scaled("features", X)
    measured = profiled(op).measures[op.token].lines.at(ROWS)
    assert isinstance(measured, Measured)
    assert measured.bytes == ROWS * 4 * 8


def _sleeps(X: NDArray[Any]) -> NDArray[Any]:
    time.sleep(2e-5 * len(X))
    return X


def _holds_the_lock(X: NDArray[Any]) -> NDArray[Any]:
    end = time.thread_time() + 2e-5 * len(X)
    while time.thread_time() < end:
        pass
    return X


def test_what_lets_go_of_the_lock_takes_its_share_of_the_threads() -> None:
    op = function(_sleeps)
    assert profiled(op).measures[op.token].crowding < 1.3


def test_what_holds_the_lock_gets_no_faster_by_threads() -> None:
    op = function(_holds_the_lock)
    assert profiled(op).measures[op.token].crowding > 1.3


def test_what_is_short_is_not_tried_on_threads() -> None:
    op = scaled("scale", X)
    assert profiled(op).measures[op.token].crowding == 1.0


def _centred(X: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(X - X.mean(axis=0))


def _doubled(X: NDArray[Any]) -> NDArray[Any]:
    return 2 * X


def _noisy(X: NDArray[Any]) -> NDArray[Any]:
    return X + np.random.default_rng().normal(size=X.shape)


@pytest.mark.parametrize(
    ("call", "scope", "random"),
    [(_doubled, "rows", False), (_centred, "all", False), (_noisy, "all", True)],
)
def test_a_sample_tells_what_a_function_looks_at(
    call: Any, scope: str, random: bool
) -> None:
    (op,) = settle((function(call, "unknown"),), trials(512)[0])
    assert isinstance(op, Apply)
    assert (op.scope, op.random) == (scope, random)
