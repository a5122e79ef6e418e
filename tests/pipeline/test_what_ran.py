"""What a plan says was fitted and applied is what a recorder saw, here and on workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from tests.recording import Recording, recording

import mlopt
from mlopt.cluster.connect import connect
from mlopt.pipeline.environment import environment
from mlopt.pipeline.running.execute import Execution
from mlopt.plan import Plan

N = 6000
_RANDOM = np.random.default_rng(7)
X = _RANDOM.normal(size=(N, 6)) * np.arange(1, 7)
Y = (X[:, 5] > X[:, 0]).astype(int)
FRAME = pd.DataFrame({
    "size": X[:, 0], "weight": X[:, 5],
    "colour": _RANDOM.choice(["red", "green", "blue"], N),
})  # fmt: skip
WORDS = np.array(["data", "query", "plan", "graph", "join", "scan", "cost", "rows"])
TEXTS = [" ".join(WORDS[row]) for row in _RANDOM.integers(0, 8, size=(N, 5))]


def plain(rows: Any) -> Any:
    """Nobody says that it goes row by row."""
    return rows + 1.0


def linear() -> list[tuple[str, Any]]:
    return [("scale", StandardScaler()), ("pca", PCA(3)), ("clf", LogisticRegression())]


def shared() -> list[tuple[str, Any]]:
    left = make_pipeline(StandardScaler(), PolynomialFeatures(2))
    right = make_pipeline(StandardScaler(), Normalizer())
    return [("both", FeatureUnion([("left", left), ("right", right)])), ("last", Ridge())]


def mixed() -> list[tuple[str, Any]]:
    prepare = make_column_transformer(
        (StandardScaler(), ["size", "weight"]), (OneHotEncoder(), ["colour"])
    )
    return [("prepare", prepare), ("clf", LogisticRegression())]


def text() -> list[tuple[str, Any]]:
    return [("count", CountVectorizer()), ("tfidf", TfidfTransformer()), ("clf", Ridge())]


def undeclared() -> list[tuple[str, Any]]:
    return [
        ("scale", MinMaxScaler()),
        ("plain", FunctionTransformer(plain)),
        ("clf", Ridge()),
    ]


def rows_of_dask() -> tuple[Any, Any]:
    return da.from_array(X, chunks=(1500, 6)), da.from_array(Y, chunks=1500)


CASES: dict[str, tuple[Callable[[], list[tuple[str, Any]]], Callable[[], Any]]] = {
    "linear": (linear, lambda: (X, Y)),
    "linear, on dask": (linear, rows_of_dask),
    "shared": (shared, rows_of_dask),
    "mixed": (mixed, lambda: (FRAME, Y)),
    "mixed, on dask": (mixed, lambda: (dd.from_pandas(FRAME, npartitions=4), Y)),
    "text": (text, lambda: (TEXTS, Y)),
    "undeclared": (undeclared, rows_of_dask),
}
KINDS = [StandardScaler(), MinMaxScaler(), PCA(), LogisticRegression(), Ridge(),
         PolynomialFeatures(), Normalizer(), OneHotEncoder(), CountVectorizer(),
         TfidfTransformer(), FunctionTransformer()]  # fmt: skip


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Recording]:
    """What was recorded of runs: neither of samples before, nor of a few rows after."""
    yield from _recorded(monkeypatch, tmp_path, None)


@pytest.fixture
def ran_on_workers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shared_workers: str
) -> Iterator[Recording]:
    with connect(shared_workers) as client:
        yield from _recorded(monkeypatch, tmp_path, client)


@pytest.fixture
def all_of_it(tmp_path: Path) -> Iterator[Recording]:
    with recording(tmp_path / "all", KINDS) as found:
        yield found


@pytest.fixture
def all_on_workers(tmp_path: Path, shared_workers: str) -> Iterator[Recording]:
    with (
        connect(shared_workers) as client,
        recording(tmp_path / "a", KINDS, client) as found,
    ):
        yield found


def _recorded(
    monkeypatch: pytest.MonkeyPatch, folder: Path, client: Any
) -> Iterator[Recording]:
    environment.clear()
    watching = Execution.watching
    with recording(folder / "all", KINDS, client) as found:
        kept = Recording(folder / "kept")

        @contextmanager
        def only_this(self: Execution) -> Iterator[None]:
            found.clear()
            with watching(self):
                yield
            with kept.path.open("a") as file:
                file.write(found.path.read_text())

        monkeypatch.setattr(Execution, "watching", only_this)
        yield kept


def said(plan: Plan, what: str) -> Counter[tuple[str, str]]:
    """Fits, and rows given to models, by class, as the plan has them."""
    found: Counter[tuple[str, str]] = Counter()
    for _, choice in plan.walk():
        counts, kind = getattr(choice, what), choice.operator.split("(")[0]
        kind = "Counter" if kind.startswith("count terms") else kind
        found["fit", kind] += round(counts.get("fit", 0))
        if "side by side" not in choice.operator:
            found["apply", kind] += round(counts.get("apply", 0) * N)
    return +found


def seen(ran: Recording) -> Counter[tuple[str, str]]:
    calls, rows = ran.calls(), ran.rows()
    return Counter({one: calls[one] if one[0] == "fit" else rows[one] for one in calls})


def _check(case: str, budget: Any, ran: Recording) -> None:
    steps, data = CASES[case]
    foreseen = mlopt.Pipeline(steps(), memory_budget=budget).explain(*data())
    ran.clear()
    model = mlopt.Pipeline(steps(), memory_budget=budget).fit(*data())
    assert seen(ran) == said(model.plan_, "ran"), model.plan_.explain()
    fits = {one: count for one, count in said(foreseen, "runs").items() if one[0] == "fit"}
    assert fits == {one: count for one, count in seen(ran).items() if one[0] == "fit"}


@pytest.mark.parametrize("case", CASES)
def test_a_fit_does_what_its_plan_says(case: str, ran: Recording) -> None:
    _check(case, "auto", ran)


@pytest.mark.parametrize("case", ["linear", "linear, on dask", "shared", "mixed", "text"])
def test_a_fit_that_keeps_nothing_does_what_its_plan_says(
    case: str, ran: Recording
) -> None:
    _check(case, 0, ran)


def test_a_density_near_the_threshold_is_counted_as_rows_are_joined(
    ran: Recording,
) -> None:
    model = mlopt.Pipeline(mixed()).fit(FRAME, Y)
    seen_once = {one: rows for one, rows in ran.rows().items() if one[0] == "apply"}
    assert set(seen_once.values()) == {N}, model.plan_.explain()
    assert model.steps[0][1].sparse_output_ is False  # 3 of 5 entries are stored


PREDICTED = ["linear", "linear, on dask", "shared", "mixed", "text"]


def _check_predictions(case: str, ran: Recording) -> None:
    steps, data = CASES[case]
    X, y = data()
    model = mlopt.Pipeline(steps()).fit(X, y)
    plan = model.explain(X, method="predict")
    ran.clear()
    found = model.predict(X)
    if hasattr(found, "compute"):
        ran.clear()  # a few rows have told what comes out
        found.compute()
    assert seen(ran) == said(plan, "runs"), plan.explain()


@pytest.mark.parametrize("case", PREDICTED)
def test_predictions_do_what_their_plan_says(case: str, all_of_it: Recording) -> None:
    _check_predictions(case, all_of_it)


@pytest.mark.cluster
@pytest.mark.parametrize("case", PREDICTED)
def test_predictions_on_workers_do_what_their_plan_says(
    case: str, all_on_workers: Recording
) -> None:
    _check_predictions(case, all_on_workers)


def test_steps_planning_and_what_is_beside_them_are_all_of_a_fit() -> None:
    plan = mlopt.Pipeline(linear()).fit(*rows_of_dask()).plan_
    (beside,) = (note for note in plan.notes if note.startswith("beside the steps"))
    assert "3 graphs" in beside
    assert "predicted" in beside
    assert "measured" in beside
    assert sum(c.measured or 0.0 for c in plan.choices) <= (plan.measured or 0.0)
    assert sum(c.predicted or 0.0 for c in plan.choices) < (plan.predicted or 0.0)


@pytest.mark.cluster
@pytest.mark.parametrize("case", CASES)
def test_workers_do_what_the_plan_says(case: str, ran_on_workers: Recording) -> None:
    _check(case, "auto", ran_on_workers)


@pytest.mark.cluster
def test_workers_do_what_the_plan_says_where_nothing_is_kept(
    ran_on_workers: Recording,
) -> None:
    _check("linear, on dask", 0, ran_on_workers)
