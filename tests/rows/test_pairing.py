"""Rows of Dask collections meet their own targets, in whatever order they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.rows.source import collected_together, held

DRAW = np.random.default_rng(0)
COLUMNS = ["a", "b", "c"]
FRAME = pd.DataFrame(DRAW.normal(size=(400, 3)), columns=COLUMNS).assign(
    y=lambda d: (d.a > 0).astype(int), k=DRAW.permutation(400), w=lambda d: 1.0 + d.y
)
SETTINGS: Any = {"sampler": "grid", "cv": 2, "random_state": 0, "bandit": None}


def drawn(part: pd.DataFrame) -> pd.DataFrame:
    """In another order each time."""
    return part.sample(frac=1)


def reordered() -> Any:
    return dd.from_pandas(FRAME, npartitions=4).map_partitions(drawn, meta=FRAME.iloc[:0])


def shuffled() -> Any:
    return reordered().shuffle("k", shuffle_method="disk")


def of_estimator(X: Any, y: Any) -> float:
    return mlopt.LogisticRegression().fit(X, y).score(FRAME[COLUMNS], FRAME.y)


def of_plan(X: Any, y: Any) -> float:
    task = mlopt.gd.Task(loss="logistic", l2=1e-3)
    coef = mlopt.gd.plan(task, X, y).run().coef
    return float(((FRAME[COLUMNS].to_numpy() @ coef > 0) == FRAME.y).mean())


def of_search(X: Any, y: Any) -> float:
    space = {"C": [1.0]}
    search = mlopt.ModelSearchCV(LogisticRegression(), space, **SETTINGS)
    return float(search.fit(X, y).best_score_)


def of_trees(X: Any, y: Any) -> float:
    """Of an estimator that is given all rows in this process."""
    from sklearn.tree import DecisionTreeClassifier

    space = {"max_depth": [1]}
    search = mlopt.ModelSearchCV(DecisionTreeClassifier(), space, **SETTINGS)
    return float(search.fit(X, y).best_score_)


def of_pipeline(X: Any, y: Any) -> float:
    pipe = mlopt.make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    return float(pipe.score(FRAME[COLUMNS], FRAME.y))


def of_searched_pipeline(X: Any, y: Any) -> float:
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    space = {"logisticregression__C": [1.0]}
    return float(mlopt.ModelSearchCV(pipe, space, **SETTINGS).fit(X, y).best_score_)


def of_score(X: Any, y: Any) -> float:
    fitted = mlopt.LogisticRegression().fit(FRAME[COLUMNS], FRAME.y)
    return float(fitted.score(X, y))


def of_score_of_pipeline(X: Any, y: Any) -> float:
    pipe = mlopt.make_pipeline(StandardScaler(), LogisticRegression())
    return float(pipe.fit(FRAME[COLUMNS], FRAME.y).score(X, y))


def of_score_of_search(X: Any, y: Any) -> float:
    search = mlopt.ModelSearchCV(LogisticRegression(), {"C": [1.0]}, **SETTINGS)
    return float(search.fit(FRAME[COLUMNS], FRAME.y).score(X, y))


@pytest.mark.parametrize("accuracy", [of_estimator, of_plan, of_search, of_trees])
def test_rows_meet_their_targets_though_each_run_has_another_order(
    accuracy: Callable[[Any, Any], float],
) -> None:
    frame = reordered()
    assert accuracy(frame[COLUMNS], frame["y"]) > 0.9


@pytest.mark.parametrize(
    "accuracy",
    [
        of_estimator,
        of_search,
        of_pipeline,
        of_searched_pipeline,
        of_score,
        of_score_of_pipeline,
        of_score_of_search,
    ],
)
def test_rows_behind_a_shuffle_meet_their_targets(
    accuracy: Callable[[Any, Any], float],
) -> None:
    frame = shuffled()
    assert accuracy(frame[COLUMNS], frame["y"]) > 0.9


def test_weights_come_with_the_rows_of_a_pipeline() -> None:
    frame = shuffled()
    pipe = mlopt.make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8))
    weighted = pipe.fit(
        frame[COLUMNS], frame["y"], logisticregression__sample_weight=frame["w"]
    )
    expected = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8)).fit(
        FRAME[COLUMNS], FRAME.y, logisticregression__sample_weight=FRAME.w
    )
    np.testing.assert_allclose(weighted[-1].coef_, expected[-1].coef_, rtol=1e-3)


def test_several_collections_are_computed_in_one_graph() -> None:
    frame = reordered()
    X, nothing, y = collected_together(frame[COLUMNS], None, frame["y"])
    assert nothing is None
    assert ((X.a > 0) == y).all()
    array = da.from_array(FRAME[COLUMNS].to_numpy(), chunks=(100, -1))
    array = array.map_blocks(np.random.permutation, dtype=float, meta=np.empty((0, 0)))
    X, y, frame = collected_together(array[:, :2], array[:, 0] > 0, frame)
    assert ((X[:, 0] > 0) == y).all()
    assert ((frame.a > 0) == frame.y).all()


def test_rows_whose_order_stays_are_not_held() -> None:
    data = {"X": dd.from_pandas(FRAME, npartitions=4)[COLUMNS], "y": FRAME.y}
    assert held(data)["X"] is data["X"]


@pytest.mark.parametrize("which", ["X", "y"])
@pytest.mark.parametrize(
    "make",
    [
        mlopt.LogisticRegression,
        lambda: mlopt.make_pipeline(StandardScaler(), LogisticRegression()),
        lambda: mlopt.ModelSearchCV(LogisticRegression(), {"C": [1.0]}, **SETTINGS),
    ],
    ids=["estimator", "pipeline", "search"],
)
def test_one_value_of_dask_is_refused_by_name(make: Callable[[], Any], which: str) -> None:
    frame = dd.from_pandas(FRAME, npartitions=4)
    given = {"X": frame[COLUMNS], "y": frame["y"]}
    given[which] = dask.delayed(FRAME.y.to_numpy())
    with pytest.raises(mlopt.errors.InputError, match="got a delayed value: give what"):
        make().fit(**given)
    with pytest.raises(mlopt.errors.InputError, match="got a delayed value"):
        make().fit(FRAME[COLUMNS], FRAME.y).predict(dask.delayed(FRAME[COLUMNS]))
