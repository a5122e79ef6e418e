"""Kinds of runs whose results the stale-state judge compares."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from tests.judges.worlds import World

import mlopt
from mlopt.sweep.run import sweep

Result = dict[str, Any]

_CODE = {
    "code of a class", "code of a helper", "a global", "a class attribute",
    "a default argument", "a closure",
}  # fmt: skip
_DATA = {"one value of X", "one value of X in place", "one value of y"}


def _steps(world: World) -> list[tuple[str, Any]]:
    module = world.module
    forest = RandomForestRegressor(4, max_depth=3, random_state=world.seed)
    return [
        ("shift", module.Shift()),
        ("helped", FunctionTransformer(module.scale)),
        ("power", FunctionTransformer(module.closure(world.power))),
        ("scale", StandardScaler()),
        ("chosen", SelectFromModel(forest, threshold="median")),
        ("last", Ridge(world.alpha)),
    ]


def _fitted(world: World, X: Any, y: Any) -> Result:
    pipe = mlopt.Pipeline(_steps(world))
    pipe.fit(X, y, last__sample_weight=world.weight, shift__extra=world.extra)
    return {
        "shift": pipe["shift"].mean_,
        "scale": np.stack([pipe["scale"].mean_, pipe["scale"].scale_]),
        "forest": pipe["chosen"].estimator_.feature_importances_,
        "ridge": pipe["last"].coef_,
        "predicted": np.asarray(pipe.predict(world.X)),
    }


def pipeline(world: World) -> Result:
    """A pipeline on an array."""
    return _fitted(world, world.X, world.y)


def pipeline_on_dask(world: World) -> Result:
    """A pipeline on Dask arrays."""
    X, y = (
        da.from_array(rows, chunks=(25, *rows.shape[1:])) for rows in (world.X, world.y)
    )
    pipe = mlopt.Pipeline(_steps(world)).fit(X, y)
    return {
        "shift": pipe["shift"].mean_,
        "scale": np.stack([pipe["scale"].mean_, pipe["scale"].scale_]),
        "forest": pipe["chosen"].estimator_.feature_importances_,
        "ridge": pipe["last"].coef_,
    }


def pipeline_on_disk(world: World) -> Result:
    """A pipeline, with models and rows kept on disk."""
    with dask.config.set({"mlopt.disk": str(world.folder / "kept")}):
        return pipeline(world)


def _found(search: Any, X: Any) -> Result:
    table = search.cv_results_
    folds = [table[f"split{i}_test_score"] for i in range(search.n_splits_)]
    return {
        "scores": np.array(folds, dtype=float),
        "params": repr([dict(params) for params in table["params"]]),
        "best": repr(search.best_params_),
        "predicted": search.best_estimator_.predict(X),
    }


def _searched(world: World, estimator: Any, space: Any, **settings: Any) -> Result:
    weights = settings.pop("weights", {"sample_weight": world.weight})
    search = mlopt.ModelSearchCV(
        estimator,
        space,
        bandit=None,
        random_state=world.seed,
        n_jobs=1,
        **{"n_trials": 3, "sampler": "random", "cv": GroupKFold(world.splits)} | settings,
    )
    search.fit(world.X, world.y, groups=world.groups, **weights)
    return _found(search, world.X)


def _stored(world: World) -> dict[str, Any]:
    return {"storage": f"sqlite:///{world.folder}/study.db", "study_name": "one"}


def search_batched(world: World, **stored: Any) -> Result:
    """A search whose models train in a batch."""
    space = {"alpha": [0.1, 1.0, 10.0, 100.0, 3.0, world.alpha]}
    return _searched(world, Ridge(), space, scoring=world.scoring, **stored)


def search_of_pipelines(world: World, **stored: Any) -> Result:
    """A search over a pipeline with steps of the user's."""
    pipe = mlopt.make_pipeline(*(one for _, one in _steps(world)))
    space = {"ridge__alpha": [0.1, 1.0, 10.0]}
    return _searched(
        world,
        pipe,
        space,
        scoring=world.module.score,
        cv=world.module.Folds(world.splits),
        sampler="grid",
        weights={"shift__extra": world.extra, "ridge__sample_weight": world.weight},
        **stored,
    )


def search_stored(world: World) -> Result:
    """`search_batched` with a storage."""
    return search_batched(world, **_stored(world))


def search_of_pipelines_stored(world: World) -> Result:
    """`search_of_pipelines` with a storage."""
    return search_of_pipelines(world, **_stored(world))


def _written(world: World) -> str:
    path = world.folder / "rows.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["y", "a", "b", "c"])
        rows.writerows(np.column_stack([world.y, world.X]).tolist())
    return str(path)


def swept(world: World) -> Result:
    """A sweep over a file, into a folder."""
    result = sweep(
        _written(world),
        target="y",
        n_trials=3,
        timeout=120.0,
        families=["linear"],
        sampler="random",
        seed=world.seed,
        output=world.folder / "out",
    )
    return {
        "best": result.best_score,
        "test": result.test_score,
        "predicted": np.asarray(result.model.predict(_frame(world))),
    }


def _frame(world: World) -> Any:
    import pandas as pd

    return pd.DataFrame(world.X, columns=["a", "b", "c"])


def queried(world: World) -> Result:
    """A query whose model is persisted and applied."""
    path, model = _written(world), world.folder / "model.txt"
    fitted = mlopt.run(f"Q1 = RUN regression ON '{path}':1, '{path}':2-4 USING STEP {0.1}")
    text = f"PERSIST Q1 ON '{model}'; r = PREDICT ON '{path}':2-4 WITH '{model}';"
    return {"coef": fitted.coef, "predicted": np.asarray(mlopt.run(text))}


RUNS: dict[str, tuple[Callable[[World], Result], set[str]]] = {
    "pipeline": (
        pipeline,
        _CODE | _DATA
        | {"one weight", "a fit parameter", "an estimator's parameter", "a seed"},
    ),
    "pipeline on dask": (
        pipeline_on_dask,
        _CODE | _DATA | {"an estimator's parameter", "a seed"},
    ),
    "pipeline with a disk": (
        pipeline_on_disk,
        _CODE | _DATA
        | {"one weight", "a fit parameter", "an estimator's parameter", "a seed"},
    ),
    "search": (
        search_batched,
        _DATA | {"one weight", "one group", "an estimator's parameter", "a seed"}
        | {"a scorer", "a splitter's parameter"},
    ),
    "search of pipelines": (
        search_of_pipelines,
        _CODE | _DATA
        | {"one weight", "a fit parameter", "a seed"}
        | {"code of a scorer", "code of a splitter", "a splitter's parameter"},
    ),
    "sweep": (swept, _DATA | {"a seed"}),
    "query": (queried, _DATA),
}  # fmt: skip
RUNS["stored search"] = (search_stored, RUNS["search"][1])
RUNS["stored search of pipelines"] = (
    search_of_pipelines_stored,
    RUNS["search of pipelines"][1],
)
"""What each run does, and what it depends on."""

MAY_REFUSE = {"stored search", "stored search of pipelines", "sweep"}
"""Runs on a storage, which may refuse by name what is not the same search."""


ALONE = {
    "pipeline with a disk": "pipeline",
    "stored search": "search",
    "stored search of pipelines": "search of pipelines",
}
"""Runs whose result, made alone, is that of another kind: nothing is stored yet."""
