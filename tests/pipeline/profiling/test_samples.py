"""How large the samples are: as large as what is tried on them allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from tests.clocks import Clock

import mlopt
from mlopt.cluster import Threads
from mlopt.pipeline.blocks.cut import cut
from mlopt.pipeline.graph.operators import Apply, Given, Operator, Source
from mlopt.pipeline.profiling.samples import AFFORD, LARGEST, WARM, Samples
from mlopt.pipeline.profiling.sampling import Sample
from mlopt.pipeline.profiling.trial import Trial

ROWS = 400_000


@pytest.fixture
def pool() -> Iterator[Threads]:
    threads = Threads(2)
    yield threads
    threads.close()


def asked(pool: Threads, call: Any, rows: int = ROWS) -> tuple[Samples, Operator]:
    """Samples of as many rows, after an operator's value was asked for."""
    blocks = cut(np.zeros((rows, 2)), pool)
    source = Source("X", blocks.token)
    model = Given("step", FunctionTransformer(call), "content")
    op = Apply("step", model, source)
    samples = Samples({source.token: blocks}, pool)
    samples.example(op)
    return samples, op


def sizes(samples: Samples) -> list[int]:
    return [trial.rows for trial in samples.all]


@pytest.fixture
def a_row_takes(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the seconds that all steps are said to take for a row."""

    def take(seconds: float) -> None:
        monkeypatch.setattr(Trial, "spent", property(lambda self: seconds * self.rows))

    return take


def test_quick_steps_are_tried_on_many_rows(
    pool: Threads, a_row_takes: Callable[[float], None]
) -> None:
    a_row_takes(0.9 * AFFORD[1] / LARGEST)
    samples, _ = asked(pool, np.abs)
    assert sizes(samples)[:2] == [512, 1024]
    assert LARGEST // 2 < sizes(samples)[-1] <= LARGEST


def test_a_third_sample_must_be_affordable(
    pool: Threads, a_row_takes: Callable[[float], None]
) -> None:
    a_row_takes(1.1 * AFFORD[1] / LARGEST)
    samples, _ = asked(pool, np.abs)
    assert sizes(samples) == [512, 1024]


def test_slow_steps_are_tried_on_few_rows(
    pool: Threads, a_row_takes: Callable[[float], None]
) -> None:
    a_row_takes(1.1 * AFFORD[0] / 1024)
    samples, op = asked(pool, np.abs)
    assert sizes(samples) == [256, 512]
    # The first trial is one of those that the profile reads: nothing is computed twice.
    assert op.token in samples.all[-1].values


def test_few_rows_are_the_sample(pool: Threads) -> None:
    samples, _ = asked(pool, np.abs, rows=700)
    assert sizes(samples) == [700]


def test_first_calls_are_not_timed(pool: Threads, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    modules = "mlopt.pipeline.profiling.trial", "mlopt.kernels.compiling"
    clock.install(monkeypatch, *modules)
    seen: list[int] = []

    def loads(X: NDArray[Any]) -> NDArray[Any]:
        if not seen:
            clock.alone(0.5)
        seen.append(len(X))
        return X

    samples, op = asked(pool, loads)
    assert min(seen) == WARM
    assert samples.all[0].seconds[op.token] == pytest.approx(0.0)


def test_what_fails_on_few_rows_is_tried_on_more(pool: Threads) -> None:
    def needs_many(X: NDArray[Any]) -> NDArray[Any]:
        if len(X) < 2000:
            raise ValueError("Step `step`: too few rows")
        return X

    blocks = cut(np.zeros((ROWS, 2)), pool)
    source = Source("X", blocks.token)
    op = Apply("step", Given("step", FunctionTransformer(needs_many), "content"), source)
    samples = Samples({source.token: blocks}, pool)
    assert len(samples.enough_for(lambda: samples.example(op))) >= 2000


def test_errors_that_no_step_raised_are_not_tried_again(pool: Threads) -> None:
    samples, _ = asked(pool, np.abs)
    calls = []

    def wrong() -> None:
        calls.append(1)
        raise KeyError("ours")

    with pytest.raises(KeyError):
        samples.enough_for(wrong)
    assert len(calls) == 1


def test_what_is_drawn_for_columns_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    fit = RBFSampler.fit

    def counted(self: RBFSampler, X: Any, y: Any = None) -> RBFSampler:
        drawn.append(len(X))
        return fit(self, X, y)

    monkeypatch.setattr(RBFSampler, "fit", counted)
    X = np.random.default_rng(0).normal(size=(20_000, 5))
    steps = [("features", RBFSampler(gamma=0.1, random_state=0)), ("fit", mlopt.Ridge())]
    mlopt.Pipeline(steps).explain(X, X[:, 0])
    assert set(drawn) == {WARM}


def test_samples_of_unlike_categories_are_planned_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    larger = []
    monkeypatch.setattr(Samples, "_enlarge", lambda self: larger.append(1))
    rng = np.random.default_rng(0)
    X = rng.zipf(1.3, size=(60_000, 2)).clip(max=400).astype(str).astype(object)
    prepare = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [0, 1]))
    steps = [("prepare", prepare), ("few", SelectKBest(f_classif, k=5))]
    y = (X[:, 0] > "2").astype(int)
    mlopt.Pipeline([*steps, ("fit", mlopt.LogisticRegression())]).explain(X, y)
    assert not larger


@pytest.mark.parametrize("size", [1, 512, 1024, 2999, 3000])
def test_fewer_rows_are_drawn_from_the_first_to_the_last(size: int) -> None:
    rows = np.arange(3000)[:, None]
    part = Sample({"X": rows}, 120_000, np.arange(0, 120_000, 40)).part(size)
    found = part.rows["X"].ravel()
    assert len(found) == size
    edges = np.append(found, 3000)
    assert found[0] == 0
    assert np.ptp(np.diff(edges)) <= 1  # evenly, the end too
    np.testing.assert_array_equal(part.places, 40 * found)
