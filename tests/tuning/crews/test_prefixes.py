"""Preprocessing is fitted once a split, kept while it is needed, and let go of."""

from __future__ import annotations

from collections import Counter
from typing import Any

import dask
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mlopt
from mlopt.cluster import Threads
from mlopt.tuning.crews import scan
from mlopt.tuning.crews.chain import Parts, cut
from mlopt.tuning.crews.prefixes import InTurns, Prefixes, cut_rows
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.scoring import metrics_of
from mlopt.tuning.crews.spaces import AS_THEY_ARE
from mlopt.tuning.crews.splits import make_splits

Fits = Counter[tuple[str, int]]
X, y = make_classification(300, 8, n_informative=5, random_state=0)
FINALS: dict[str, tuple[Any, str, list[Any]]] = {
    "batched": (LogisticRegression(max_iter=1000), "C", [0.01, 0.1, 1.0, 10.0]),
    "one by one": (DecisionTreeClassifier(random_state=0), "max_depth", [1, 2, 3, 4]),
}


def search(estimator: Any, space: dict[str, Any], **settings: Any) -> mlopt.ModelSearchCV:
    given = {"sampler": "grid", "n_trials": None, "bandit": None, "n_jobs": 2} | settings
    return mlopt.ModelSearchCV(estimator, space, **given)


def folds(fits: Fits) -> dict[str, int]:
    """Fits on training rows: the refit sees all rows, the forecast fewer than half."""
    found: Counter[str] = Counter()
    for (name, rows), count in fits.items():
        found[name] += count * (len(X) / 2 <= rows < len(X))
    return dict(found)


@pytest.mark.parametrize("final", FINALS)
@pytest.mark.parametrize("settings", [{}, {"sampler": "random", "n_trials": 12}])
def test_every_step_is_fitted_once_for_each_split_and_setting(
    final: str, settings: dict[str, Any], fits: Fits, counting: Any
) -> None:
    model, name, values = FINALS[final]
    steps = [
        ("scale", counting(StandardScaler(), "scale")),
        ("pca", counting(PCA(), "pca")),
        ("model", model),
    ]
    space = {"pca__step__n_components": [2, 3, 4], f"model__{name}": values}
    search(Pipeline(steps), space, cv=5, **settings).fit(X, y)

    assert folds(fits) == {"scale": 5, "pca": 15}
    assert fits["scale", len(X)] == fits["pca", len(X)] == 1


@pytest.mark.parametrize("final", FINALS)
def test_a_sampler_that_learns_finds_the_first_steps_still_there(
    final: str, fits: Fits, counting: Any
) -> None:
    model, name, values = FINALS[final]
    pipeline = Pipeline([("scale", counting(StandardScaler(), "scale")), ("model", model)])
    space = {f"model__{name}": values}
    search(
        pipeline, space, sampler="tpe", n_trials=4, batch_size=1, bandit="hyperband", cv=3
    ).fit(X, y)

    assert folds(fits) == {"scale": 3}


def test_families_share_what_is_equal(fits: Fits, counting: Any) -> None:
    def family(final: str) -> tuple[Any, dict[str, Any]]:
        model, name, values = FINALS[final]
        scale = counting(StandardScaler(), "scale")
        return Pipeline([("s", scale), ("model", model)]), {f"model__{name}": values}

    both = {name: family(name) for name in FINALS}
    mlopt.ModelSearchCV(both, sampler="random", n_trials=8, bandit=None, cv=3).fit(X, y)

    assert folds(fits) == {"scale": 3}


@pytest.mark.parametrize("seed", [0, None])
def test_a_random_step_is_shared_only_with_a_seed(
    seed: int | None, fits: Fits, counting: Any
) -> None:
    pca = counting(PCA(3, svd_solver="randomized"), "pca")
    pipeline = Pipeline([("pca", pca), ("model", LogisticRegression())])
    search(pipeline, {"model__C": [0.1, 1.0]}, cv=2, random_state=seed).fit(X, y)

    assert folds(fits) == {"pca": 2 if seed == 0 else 4}


NESTED = Pipeline([("scale", StandardScaler()), ("pca", PCA(4, random_state=0))])
COLUMNS = make_column_transformer((StandardScaler(), [0, 1, 2]), (MinMaxScaler(), [3, 4]))
PIPELINES: dict[str, tuple[Any, dict[str, Any]]] = {
    "nested": (NESTED, {"pre__pca__n_components": [2, 4]}),
    "columns": (COLUMNS, {}),
    "union": (make_union(StandardScaler(), PCA(2, random_state=0)), {}),
    "passthrough": ("passthrough", {}),
    "searched step": (StandardScaler(), {"pre": [StandardScaler(), "passthrough"]}),
    "supervised": (SelectKBest(), {"pre__k": [2, 5]}),
    "sparse": (OneHotEncoder(handle_unknown="ignore"), {}),
    "pandas": (StandardScaler().set_output(transform="pandas"), {}),
}


@pytest.mark.parametrize("final", FINALS)
@pytest.mark.parametrize("name", PIPELINES)
def test_scores_are_those_of_scikit_learn(name: str, final: str) -> None:
    pre, space = PIPELINES[name]
    model, parameter, values = FINALS[final]
    pipeline = Pipeline([("pre", pre), ("model", model)])
    grid = space | {f"model__{parameter}": values}
    rows = np.round(X) if name == "sparse" else X
    peer = GridSearchCV(pipeline, grid, cv=3).fit(rows, y)
    found = search(pipeline, grid, cv=3).fit(rows, y)

    theirs = {repr(p): s for p, s in _means(peer)}
    ours = {
        repr({k: p[k] for k in peer.cv_results_["params"][0]}): s for p, s in _means(found)
    }
    assert ours.keys() == theirs.keys()
    for key, score in ours.items():
        assert score == pytest.approx(theirs[key], abs=0.011)
    np.testing.assert_allclose(
        accuracy_score(y, found.predict(rows)),
        accuracy_score(y, peer.predict(rows)),
        atol=0.02,
    )


def _means(fitted: Any) -> Any:
    results = fitted.cv_results_
    return zip(results["params"], results["mean_test_score"], strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("final", FINALS)
def test_scores_are_the_same_whatever_the_threads_and_the_budget(
    final: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, name, values = FINALS[final]
    pipeline = make_pipeline(StandardScaler(), PCA(), model)
    last = type(model).__name__.lower()
    space = {"pca__n_components": [2, 3], f"{last}__{name}": values}
    one = search(pipeline, space, cv=3, n_jobs=1).fit(X, y)
    two = search(pipeline, space, cv=3, n_jobs=2).fit(X, y)
    monkeypatch.setattr("mlopt.tuning.crews.prefixes.VIEW_MEMORY", 0.0)
    poor = search(pipeline, space, cv=3, n_jobs=2).fit(X, y)

    for other in (two, poor):
        np.testing.assert_array_equal(
            one.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"]
        )


@pytest.mark.parametrize("final", FINALS)
def test_data_frames_reach_the_steps_as_frames(final: str) -> None:
    model, name, values = FINALS[final]
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])])
    columns = make_column_transformer((StandardScaler(), ["c0", "c3"]))
    pipeline = Pipeline([("pre", columns), ("model", model)])
    found = search(pipeline, {f"model__{name}": values}, cv=3).fit(frame, y)

    assert found.predict(frame).shape == y.shape


@pytest.mark.parametrize("final", FINALS)
def test_fit_parameters_reach_their_step(final: str, fits: Fits, counting: Any) -> None:
    model, name, values = FINALS[final]
    weights = np.linspace(0.0, 2.0, len(y))
    scale = counting(StandardScaler(), "scale")
    pipeline = Pipeline([("scale", scale), ("model", model)])
    found = search(pipeline, {f"model__{name}": values}, cv=3)
    found.fit(X, y, scale__sample_weight=weights)

    assert folds(fits) == {"scale": 3}
    np.testing.assert_allclose(
        found.best_estimator_["scale"].step_.mean_, np.average(X, axis=0, weights=weights)
    )


def make(memory: int) -> Prefixes:
    model = LogisticRegression()
    splits = make_splits(3, X, y, n=len(y), classifier=True)
    metrics = metrics_of(None, model, True)
    return Prefixes(Problem(X, y, splits, metrics, True, Threads(2)), memory)


def chain(k: int) -> Parts:
    return cut(
        make_pipeline(StandardScaler(), PCA(k, random_state=0), LogisticRegression())
    )


def read(prefixes: Prefixes, parts: Parts) -> None:
    executor = prefixes.problem.executor
    for split in range(3):
        executor.result(prefixes.rows(parts, split))
    for handle in prefixes.unsettled:
        prefixes.settle(handle)


def test_rows_are_let_go_of_when_the_last_reader_is_done() -> None:
    prefixes = make(1 << 30)
    two, three = chain(2), chain(3)
    for reader, parts in enumerate((two, two, three)):
        prefixes.expect(reader, parts, batched=False)
    prefixes.retain({0, 1, 2}, more=False)
    read(prefixes, two)
    scaled = {(two.tokens[1], split) for split in range(3)}
    assert scaled <= set(prefixes.places), "the third still needs it"
    read(prefixes, three)
    assert not scaled & set(prefixes.places), "all that is made of it is there"
    prefixes.leave(0)
    assert (two.key, 0) in prefixes.places
    prefixes.leave(1)
    assert {token for token, _ in prefixes.places} == {three.key}
    prefixes.leave(2)
    assert not prefixes.places
    assert prefixes.nbytes == 0


def test_rows_stay_while_trials_may_come() -> None:
    prefixes = make(1 << 30)
    prefixes.expect(0, chain(2), batched=False)
    read(prefixes, chain(2))
    prefixes.retain(set(), more=True)
    assert len(prefixes.places) == 6
    prefixes.retain(set(), more=False)
    assert not prefixes.places


def test_the_budget_takes_the_later_steps_first() -> None:
    scaled = 3 * X.nbytes
    prefixes = make(scaled + 3 * len(X) * 2 * 8)
    read(prefixes, chain(2))
    assert len(prefixes.places) == 6
    read(prefixes, chain(1))

    assert prefixes.nbytes <= prefixes.memory
    kept = Counter(token for token, _ in prefixes.places)
    assert kept[chain(2).tokens[1]] == 3, "the scaled rows serve every other setting"


def test_views_and_single_splits_see_the_same_rows() -> None:
    prefixes = make(1 << 30)
    view = prefixes.views(chain(2))[1]
    split = prefixes.problem.splits[1]
    train, test = prefixes.problem.executor.result(prefixes.rows(chain(2), 1))

    np.testing.assert_array_equal(view.rows.collect(), np.concatenate([train, test]))
    np.testing.assert_array_equal(view.order, np.concatenate([split.train, split.test]))


def test_views_replace_what_they_are_made_of() -> None:
    prefixes = make(1 << 30)
    prefixes.expect(0, chain(2), batched=True)
    prefixes.views(chain(2))
    assert prefixes.holds(chain(2).key)
    assert not {(chain(2).key, split) for split in range(3)} & set(prefixes.places)


def test_halves_go_as_soon_as_they_are_views(monkeypatch: pytest.MonkeyPatch) -> None:
    prefixes = make(1 << 30)
    prefixes.problem.executor.threads = 1
    there, stacked = [], prefixes._stacked

    def noted(*given: Any) -> Any:
        found = stacked(*given)
        there.append([split for token, split in prefixes.places if token == chain(2).key])
        return found

    monkeypatch.setattr(prefixes, "_stacked", noted)
    prefixes.expect(0, chain(2), batched=True)
    assert len(prefixes.views(chain(2))) == 3
    assert there == [[], [], []]


def test_views_take_turns_where_there_is_no_room_for_all() -> None:
    rich, poor = make(1 << 30), make(2 * len(X) * 2 * 8)
    views, turns = (prefixes.views(chain(2)) for prefixes in (rich, poor))
    assert not isinstance(views, InTurns)
    assert isinstance(turns, InTurns)
    assert not poor.holds(chain(2).key)
    for one, other in zip(views, turns, strict=True):
        np.testing.assert_array_equal(one.rows.collect(), other.rows.collect())
        assert one.splits == other.splits
    assert poor.nbytes <= poor.memory


@pytest.mark.parametrize("bandit", [None, "action-elimination", "successive-halving"])
def test_scans_of_views_in_turns_find_what_others_do_and_say_so(
    bandit: str | None, fits: Fits, counting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In lockstep: what trains model by model is through at the first look.
    monkeypatch.setattr(scan, "space_of", lambda *given: AS_THEY_ARE)
    scale = counting(StandardScaler(), "scale")
    pipeline = Pipeline([("scale", scale), ("model", LogisticRegression(max_iter=1000))])
    space = {"model__C": np.logspace(-4, 4, 8).tolist()}
    rich = search(pipeline, space, cv=3, bandit=bandit).fit(X, y)
    assert folds(fits) == {"scale": 3}
    fits.clear()
    with dask.config.set({"mlopt.resources.memory": 8 * X.nbytes}):
        poor = search(pipeline, space, cv=3, bandit=bandit).fit(X, y)
    looks = 2 if bandit == "successive-halving" else 1
    # Once a look, and those again whose views told that there is no room.
    assert 3 * looks <= folds(fits)["scale"]
    assert bandit is not None or folds(fits)["scale"] <= 3 + 1
    for name in ("params", "mean_test_score", "state", "passes"):
        np.testing.assert_array_equal(rich.cv_results_[name], poor.cv_results_[name])
    assert "splits take turns" in str(poor.plan_.choices[0].notes)
    assert "splits take turns" not in str(rich.plan_.choices[0].notes)


def test_sparse_rows_are_counted() -> None:
    prefixes = make(1 << 30)
    hot = cut(make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()))
    read(prefixes, hot)
    train, _ = prefixes.problem.executor.result(prefixes.rows(hot, 0))

    assert sparse.issparse(train)
    assert prefixes.nbytes > 3 * len(X) * 8


def test_no_preprocessing_is_the_cut_itself() -> None:
    prefixes = make(1 << 30)
    parts = cut(LogisticRegression())
    train, _ = prefixes.problem.executor.result(prefixes.rows(parts, 0))

    np.testing.assert_array_equal(train, cut_rows(X, prefixes.problem.splits[0])[0])
