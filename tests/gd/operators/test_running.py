"""Runs: three phases, users' operators, errors that name them, checkpoints, limits."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.gd.operators.cases import problem, source, write_csv

from mlopt.cluster import Threads
from mlopt.errors import InputError, TaskError
from mlopt.gd.operators import (
    MORE_PLANS,
    PLANS,
    Algorithm,
    Batch,
    Context,
    CsvSource,
    Gradient,
    MatrixSource,
    Settings,
    UserGradient,
    per_unit,
    plan_row,
    references,
)
from mlopt.gd.operators.interfaces import Units
from mlopt.gd.operators.updates import Constant
from mlopt.rows import Rows
from mlopt.training import Training

X, Y = problem(120, 3)


@pytest.mark.parametrize("name", [row.name for row in (*PLANS, *MORE_PLANS)] + ["svrg"])
def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(name: str) -> None:
    settings = Settings(Gradient(l2=0.1), max_iter=60, tolerance=0, batch=7, every=9)
    algorithm = (
        references.svrg(settings) if name == "svrg" else plan_row(name).build(settings)
    )
    whole = algorithm.start(source(X, Y, 30), seed=4)
    assert isinstance(whole, Training)
    whole.advance(60)
    part = algorithm.start(source(X, Y, 30), seed=4)
    part.advance(23)
    saved = pickle.loads(pickle.dumps(part.state()))
    part.advance(5)  # what happens after the checkpoint is of no account
    other = algorithm.start(source(X, Y, 30), seed=4)
    other.restore(saved)
    assert other.passes == 23
    other.advance(37)
    np.testing.assert_array_equal(other.context["weights"], whole.context["weights"])
    assert [r.delta for r in other.history] == [r.delta for r in whole.history]
    assert (other.message, other.done) == (whole.message, True)


def test_a_text_run_resumes_in_the_middle_of_a_partition(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", X, Y)
    algorithm = plan_row("mgd/lazy/shuffled-partition").build(
        Settings(max_iter=30, tolerance=0, batch=5)
    )
    whole = algorithm.run(CsvSource(path, partition_bytes=1500), seed=1)
    part = algorithm.start(CsvSource(path, partition_bytes=1500), seed=1)
    part.advance(8)
    other = algorithm.start(CsvSource(path, partition_bytes=1500), seed=1)
    other.restore(part.state())
    other.advance(100)
    np.testing.assert_array_equal(other.result().weights, whole.weights)


def test_a_checkpoint_of_other_weights_is_refused() -> None:
    state = Algorithm().start(source(X, Y)).state()
    with pytest.raises(InputError, match="belongs to another run"):
        Algorithm().start(source(X[:, :2], Y)).restore(state)


def test_results_do_not_depend_on_threads() -> None:
    algorithm = references.bgd(Settings(max_iter=20, tolerance=0))
    one = algorithm.run(MatrixSource(Rows.of(X, executor=Threads(1), block_rows=10), Y))
    two = algorithm.run(MatrixSource(Rows.of(X, executor=Threads(2), block_rows=10), Y))
    np.testing.assert_array_equal(one.weights, two.weights)


def test_history_records_every_iteration() -> None:
    result = Algorithm(max_iter=5).run(source(X, Y), objective_every=2)
    assert [r.iteration for r in result.history] == [1, 2, 3, 4, 5]
    assert [np.isnan(r.objective) for r in result.history] == [True, False] * 2 + [True]
    assert result.history[3].objective < result.history[1].objective
    times = [r.seconds for r in result.history]
    assert times == sorted(times)
    assert result.seconds >= times[-1] > 0
    assert "all 5 iterations" in result.message


def test_a_time_limit_stops_a_run() -> None:
    endless = Algorithm(loop=lambda delta: True, max_iter=10**9)
    result = endless.run(source(X, Y), time_limit=0.05 + 1e-9)
    assert result.message == "stopped: the time limit of 50 ms is reached"
    assert not result.converged


def test_quality_rises() -> None:
    run = Algorithm().start(source(X, Y))
    before = run.quality()
    assert before == pytest.approx(-np.log(2))
    run.advance(10)
    assert run.quality() > before


def test_all_seven_operators_can_be_plain_functions(tmp_path: Path) -> None:
    seen: list[str] = []

    def transform(lines: Units) -> tuple[np.ndarray, np.ndarray]:
        assert isinstance(lines, list)
        table = np.array([[float(f) for f in line.split(b",")] for line in lines])
        return table[:, 1:], table[:, 0]

    def stage(rows: Batch | None, context: Context) -> None:
        assert rows is None
        context["weights"] = np.zeros(3)

    def sample(n: int) -> np.ndarray:
        return np.arange(0, n, 2)

    def compute(batch: Batch, context: Context) -> Any:
        return (batch.X @ context["weights"] - batch.y) @ batch.X, len(batch)

    def update(total: tuple[np.ndarray, int], context: Context) -> np.ndarray:
        seen.append("update")
        return np.asarray(context["weights"] - 0.3 * total[0] / total[1])

    def converge(weights: np.ndarray, context: Context) -> float:
        return float(np.abs(weights - context["previous"]).max())

    def loop(delta: float) -> bool:
        return delta > 1e-9

    path = write_csv(tmp_path / "a.csv", X, Y)
    mine = Algorithm(transform, stage, sample, compute, update, converge, loop, lazy=True)
    result = mine.run(CsvSource(path))
    expected = np.linalg.lstsq(X[::2], Y[::2], rcond=None)[0]
    np.testing.assert_allclose(result.weights, expected, atol=1e-7)
    assert result.converged
    assert len(seen) == result.n_iter


def test_listing_1_transforms_one_line(tmp_path: Path) -> None:
    def listing(line: bytes) -> list[float]:
        return [float(part) for part in line.strip().split(b",")]

    path = write_csv(tmp_path / "a.csv", X, Y)
    settings = Settings(max_iter=20)
    mine = references.bgd(Settings(max_iter=20, transform=per_unit(listing)))
    np.testing.assert_array_equal(
        mine.run(CsvSource(path)).weights,
        references.bgd(settings).run(CsvSource(path)).weights,
    )


def test_a_transform_that_needs_statistics_is_lazy_by_a_stage_that_sees_all(
    tmp_path: Path,
) -> None:
    path = write_csv(tmp_path / "a.csv", X, Y)
    text = CsvSource(path)

    def stage(rows: Batch | None, context: Context) -> None:
        assert rows is not None
        assert len(rows) == len(X)
        context["mean"], context["scale"] = rows.X.mean(axis=0), rows.X.std(axis=0)
        context["weights"] = np.zeros(3)

    def transform(units: Units, context: Context) -> Batch:
        batch = text.parse(units)
        return Batch((batch.X - context["mean"]) / context["scale"], batch.y)

    sampler = plan_row("sgd/lazy/shuffled-partition").build(Settings()).sample
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    common: dict[str, Any] = {"sample": sampler, "max_iter": 50, "converge": lambda w: 1.0}
    lazy = Algorithm(transform, stage, stage_rows=None, lazy=True, **common)
    eager = Algorithm(**common)
    found = lazy.run(text, seed=1).weights
    np.testing.assert_allclose(found, eager.run(source(scaled, Y), seed=1).weights)


def test_stage_may_see_a_sample_of_the_rows() -> None:
    sizes: list[int] = []

    def stage(rows: Batch | None, context: Context) -> None:
        assert rows is not None
        sizes.append(len(rows))
        context["weights"] = rows.X.mean(axis=0)

    Algorithm(stage=stage, stage_rows=17).start(source(X, Y))
    assert sizes == [17]


def test_k_means_is_seven_operators_too() -> None:
    centres = np.array([[0.0, 5.0], [5.0, 0.0], [-5.0, -5.0]])
    random = np.random.default_rng(0)
    points = np.repeat(centres, 50, axis=0) + random.standard_normal((150, 2))

    def stage(rows: Batch | None, context: Context) -> None:
        context["weights"] = points[[0, 60, 120]]

    def compute(batch: Batch, context: Context) -> Any:
        distance = ((batch.X[:, None] - context["weights"]) ** 2).sum(axis=2)
        own = np.eye(3)[distance.argmin(axis=1)]
        return own.T @ batch.X, own.sum(axis=0)

    means = Algorithm(
        stage=stage,
        compute=compute,
        update=lambda total: total[0] / total[1][:, None],
        converge=lambda weights, context: np.linalg.norm(weights - context["previous"]),
        loop=lambda delta: delta > 0,
    ).run(source(points, np.zeros(150), 40))
    assert means.converged
    np.testing.assert_allclose(means.weights, centres, atol=0.5)


def test_a_compute_may_bring_its_own_aggregate() -> None:
    class Largest:
        def __call__(self, batch: Batch, context: Context) -> Any:
            return batch.X.max(axis=0)

        def aggregate(self, a: Any, b: Any) -> Any:
            return np.maximum(a, b)

    found = Algorithm(compute=Largest(), update=lambda total: total, converge=lambda w: 0.0)
    np.testing.assert_array_equal(found.run(source(X, Y, 10)).weights, X.max(axis=0))


def test_a_users_gradient_reaches_what_the_built_in_one_reaches() -> None:
    mine = UserGradient(lambda x, y, w: (-1 / (1 + np.exp(y * (w @ x)))) * y * x, l2=0.1)
    theirs = Gradient("logistic", l2=0.1)
    one, two = (
        references.barzilai_borwein(Settings(g, Constant(0.5), tolerance=1e-8)).run(
            source(X, Y)
        )
        for g in (mine, theirs)
    )
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-6)
    with pytest.raises(InputError, match="objective_of"):
        references.bgd(Settings(mine)).start(source(X, Y)).objective()


def changed(name: str, operator: Any) -> Algorithm:
    options: dict[str, Any] = {name: operator}
    return Algorithm(**options)


def fails(value: Any) -> Any:
    raise KeyError("mine")


@pytest.mark.parametrize(
    "name", ["transform", "stage", "sample", "compute", "update", "converge", "loop"]
)
def test_an_operator_that_raises_is_named(name: str) -> None:
    with pytest.raises(TaskError, match=f"operator `{name}` raised KeyError.*mine"):
        changed(name, fails).run(source(X, Y, 10))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("transform", (X[:5], Y[:5])),
        ("transform", "text"),
        ("sample", np.array([0.5])),
        ("sample", np.array([], int)),
        ("sample", np.array([500])),
        ("compute", np.zeros(7)),
        ("update", np.zeros(7)),
        ("update", "text"),
        ("converge", np.zeros(2)),
        ("converge", float("nan")),
        ("converge", None),
        ("loop", 0.5),
    ],
)
def test_an_operator_that_returns_the_wrong_thing_is_named(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"The operator `{name}` must return"):
        changed(name, lambda given: value).run(source(X, Y))


def test_what_is_no_operator_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="must be callable"):
        Algorithm(update=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="`stage` must set `weights`"):
        Algorithm(stage=lambda rows: None).start(source(X, Y))
    with pytest.raises(InputError, match="The context has no `speed`"):
        Algorithm(update=lambda total, context: context["speed"]).run(source(X, Y))
