"""A plan that runs keeps its rows within real bytes, and lets go of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dask
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mlopt
from mlopt.cluster.connect import connect
from mlopt.errors import InputError
from mlopt.pipeline.environment import environment
from mlopt.pipeline.running import execute
from mlopt.pipeline.running.execute import Execution

N = 12_000
FEATURES = 32
LARGE = N * FEATURES * 8
"""Bytes of the random features."""
SAME = {"without": ["choose_ways"]}
"""Ways are chosen by time, and differ in the last digits."""
CALLS: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_made_before() -> None:
    environment.clear()
    CALLS.clear()


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Execution]:
    """The runs of the test."""
    found: list[Execution] = []
    begin = Execution.__post_init__

    def remembered(self: Execution) -> None:
        begin(self)
        found.append(self)

    monkeypatch.setattr(Execution, "__post_init__", remembered)
    return found


def data() -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 5))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def _counted(X: NDArray[Any]) -> NDArray[Any]:
    CALLS.append(len(X))
    return X * 2.0


mlopt.register(_counted, row_wise=True)


def steps() -> list[tuple[str, Any]]:
    return [
        ("double", FunctionTransformer(_counted)),
        ("scale", StandardScaler()),
        ("features", RBFSampler(n_components=FEATURES, random_state=0)),
        ("classify", LogisticRegression()),
    ]


def fitted(budget: Any = "auto", keep: str = "best") -> Any:
    with dask.config.set({"mlopt.keep": keep}):
        return mlopt.Pipeline(steps(), memory_budget=budget, optimize=SAME).fit(*data())


def probabilities(model: Any) -> NDArray[Any]:
    return np.asarray(model.predict_proba(data()[0]))


@pytest.mark.slow
@pytest.mark.parametrize("keep", ["best", "lru", "aggressive", "nothing", "estimators"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 3.0])
def test_results_do_not_depend_on_what_is_kept(keep: str, share: float) -> None:
    found = fitted(int(share * LARGE), keep)
    environment.clear()
    np.testing.assert_array_equal(probabilities(found), probabilities(fitted()))


@pytest.mark.slow
@pytest.mark.parametrize("keep", ["best", "lru"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.5])
def test_kept_rows_never_take_more_than_the_budget(
    keep: str, share: float, runs: list[Execution]
) -> None:
    fitted(int(share * LARGE), keep)
    assert runs[-1].shelf.statistics.peak <= share * LARGE


def test_nothing_is_held_after_the_last_reader(runs: list[Execution]) -> None:
    fitted()
    assert runs[-1].shelf.statistics.peak > 0
    assert runs[-1].shelf.statistics.bytes == 0


def test_predicted_bytes_are_those_held(runs: list[Execution]) -> None:
    plan = fitted(2 * LARGE).plan_
    assert plan.memory == pytest.approx(runs[-1].shelf.statistics.peak, rel=0.05)


def test_blocks_are_kept_in_part_where_there_is_no_room_for_all(
    runs: list[Execution],
) -> None:
    plan = fitted(LARGE * 6 // 10).plan_
    notes = [note for choice in plan.choices for note in choice.notes]
    assert any("% of output" in note for note in notes)
    assert 0 < runs[-1].shelf.statistics.peak <= LARGE * 6 // 10


def test_when_rows_are_larger_than_predicted_some_are_made_again(
    monkeypatch: pytest.MonkeyPatch, runs: list[Execution]
) -> None:
    expected = probabilities(fitted())
    environment.clear()
    begin = Execution.__post_init__

    def with_less(self: Execution) -> None:
        self.draft = replace(self.draft, budget=LARGE / 2)
        begin(self)

    monkeypatch.setattr(Execution, "__post_init__", with_less)
    found = fitted()
    counts = runs[-1].shelf.statistics
    assert counts.evictions + counts.refused > 0
    assert counts.peak <= LARGE / 2
    assert "without room" in found.plan_.notes[-1]
    np.testing.assert_array_equal(probabilities(found), expected)


def test_a_kept_step_is_computed_once_and_others_in_every_pass() -> None:
    fitted(4 * LARGE, "lru")
    once = _on_all_rows()
    environment.clear()
    CALLS.clear()
    fitted(0)
    assert once < _on_all_rows() / 2


def _on_all_rows() -> int:
    """Rows that the first step was given, without those of samples."""
    sample = 512 + 1024 + 1024
    return sum(rows for rows in CALLS if rows > sample // 5 and rows not in (512, 1024))


def _random(X: NDArray[Any]) -> NDArray[Any]:
    return X + np.random.default_rng().normal(size=X.shape)


def random_pipeline(budget: Any) -> mlopt.Pipeline:
    noisy = ("noise", FunctionTransformer(_random))
    return mlopt.Pipeline([noisy, *steps()[1:]], memory_budget=budget)


def test_random_rows_are_made_once() -> None:
    model = random_pipeline("auto").fit(*data())
    assert (model.plan_.memory or 0) >= N * 5 * 8


def test_random_rows_that_do_not_fit_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"`noise`.*second time.*`memory_budget`"):
        random_pipeline(N * 5).fit(*data())


def test_a_budget_below_a_block_is_refused_and_none_is_not() -> None:
    with pytest.raises(InputError, match=r"`memory_budget` must be 0, .* or hold a block"):
        fitted(100)
    assert fitted(0).plan_.memory == 0


def test_a_wrong_way_of_keeping_is_refused() -> None:
    with pytest.raises(InputError, match=r"`mlopt.keep` .*must be one of .*'lru'"):
        fitted(keep="everything")


def test_a_failing_step_leaves_nothing_held(
    monkeypatch: pytest.MonkeyPatch, runs: list[Execution]
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("on purpose")

    monkeypatch.setattr(execute, "rows_of", fails)
    with pytest.raises(RuntimeError, match="on purpose"):
        fitted()
    assert runs[-1].shelf.statistics.bytes == 0


@pytest.mark.cluster
@pytest.mark.slow
def test_on_workers_kept_rows_are_released_and_results_the_same(
    runs: list[Execution], shared_workers: str
) -> None:
    expected = probabilities(fitted())
    with connect(shared_workers) as client:
        for share in (0.0, 0.5, 3.0):
            environment.clear()
            found = fitted(int(share * LARGE))
            np.testing.assert_allclose(probabilities(found), expected, rtol=1e-6)
            assert runs[-1].shelf.statistics.peak <= share * LARGE
            assert runs[-1].shelf.statistics.bytes == 0
        del found
        runs.clear()
        for _ in range(50):
            held = sum(
                client.run(lambda dask_worker: dask_worker.data.fast.total_weight).values()
            )
            if held < LARGE / 4:
                break
        assert held < LARGE / 4
