"""A search over a pipeline on Dask rows: read where they are, the same as in process."""

from __future__ import annotations

import re
import sys
import time
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.array as da
import dask.bag as bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

import mlopt
from mlopt.cluster import Member, Threads, executor
from mlopt.cluster.connect import connect
from mlopt.errors import InputError
from mlopt.pipeline.by_split import Streamed
from mlopt.pipeline.planning import making
from mlopt.pipeline.rules.choose_ways import choose_ways
from mlopt.rows import Block

# Workers cannot import this file: its functions travel whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

N, BLOCKS, READS = 1200, 6, 24
NUMBERS = [f"x{i}" for i in range(5)]


def table() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(3.0, 2.0, (N, 5)), columns=NUMBERS)
    X["kind"], X["place"] = rng.choice(list("abc"), N), rng.integers(0, 4, N)
    margin = X.x0 - X.x1 + 2.0 * (X.kind == "b") + rng.normal(0, 2.0, N)
    return X, (margin > 0).astype(int)


def columns() -> ColumnTransformer:
    return ColumnTransformer([
        ("numbers", StandardScaler(), NUMBERS),
        ("words", OneHotEncoder(), ["kind", "place"]),
    ])  # fmt: skip


def search(estimator: Any, **settings: Any) -> mlopt.ModelSearchCV:
    last = estimator.steps[-1][1]
    space = {"alpha": [0.1, 9.0]} if hasattr(last, "alpha") else {"C": [0.01, 0.3, 10.0]}
    given: dict[str, Any] = {
        "n_trials": 3,
        "sampler": "grid",
        "bandit": None,
        "cv": 3,
    } | settings
    return mlopt.ModelSearchCV(estimator, space, **given)


def logistic() -> LogisticRegression:
    return LogisticRegression(C=1.0, tol=1e-9, max_iter=1000)


@pytest.fixture
def stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may ask for all rows."""

    def collect(self: Streamed) -> None:
        raise AssertionError("the rows were gathered")

    monkeypatch.setattr(Streamed, "collect", collect)


def same(one: mlopt.ModelSearchCV, other: mlopt.ModelSearchCV, atol: float = 1e-5) -> None:
    scores = [s.cv_results_["mean_test_score"] for s in (one, other)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-7)
    assert one.best_params_ == other.best_params_
    weights = [s.best_estimator_[-1].coef_ for s in (one, other)]
    assert weights[0] == pytest.approx(weights[1], abs=atol)


@pytest.mark.usefixtures("stays")
def test_a_dask_frame_behind_columns_is_searched_as_in_process() -> None:
    X, y = table()
    estimator = make_pipeline(columns(), logistic())
    lazy = dd.from_pandas(X, npartitions=BLOCKS), dd.from_pandas(y, npartitions=BLOCKS)
    there, here = search(estimator).fit(*lazy), search(estimator).fit(X, y)
    same(there, here)
    assert (there.predict(X) == here.predict(X)).all()
    names = [s.best_estimator_[:-1].get_feature_names_out() for s in (there, here)]
    assert list(names[0]) == list(names[1])
    assert list(there.feature_names_in_) == list(X.columns)
    assert any("block by block" in note for note in there.plan_.notes)


@pytest.mark.usefixtures("stays")
@pytest.mark.parametrize("budget", ["auto", 0])
def test_a_dask_array_behind_a_scaler_is_searched_as_in_process(budget: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(2.0, 3.0, (N, 4))
    y = X @ rng.normal(size=4) + rng.normal(size=N)
    estimator = make_pipeline(StandardScaler(), Ridge())
    lazy = da.from_array(X, chunks=(N // BLOCKS, 2)), da.from_array(y, chunks=N // BLOCKS)
    with dask.config.set({"mlopt.memory-budget": budget}):
        there = search(estimator).fit(*lazy)
    same(there, search(estimator).fit(X, y))


def slowly(part: pd.DataFrame) -> pd.DataFrame:
    time.sleep(0.05)
    return part


def test_rows_that_take_long_to_make_are_made_as_often_as_models_read_them() -> None:
    X, y = table()
    lazy = dd.from_pandas(X, npartitions=BLOCKS).map_partitions(slowly, meta=X)
    targets, found = dd.from_pandas(y, npartitions=BLOCKS), []
    for model in (Ridge(), logistic()):
        with dask.config.set({"mlopt.memory-budget": 0}):
            plan = search(make_pipeline(columns(), model)).explain(lazy, targets)
        (final,) = (c for c in plan.choices if c.step == "final fit")
        assert plan.predicted is not None
        assert final.predicted is not None
        assert final.predicted > BLOCKS * 0.05
        found.append(plan.predicted)
    assert 2.0 * found[0] < found[1]


REPEATED = [(np.r_[0:700, 0:50, 30], np.r_[700:N]), (np.r_[500:N], np.r_[0:500])]


@pytest.mark.usefixtures("stays")
@pytest.mark.parametrize(
    "cv", [KFold(BLOCKS), ShuffleSplit(2, test_size=0.3, random_state=0), REPEATED]
)
def test_splits_are_those_of_scikit_learn_whatever_blocks_they_leave_out(cv: Any) -> None:
    X, y = table()
    estimator = make_pipeline(columns(), logistic())
    lazy = dd.from_pandas(X, npartitions=BLOCKS)
    same(search(estimator, cv=cv).fit(lazy, y), search(estimator, cv=cv).fit(X, y))


@pytest.mark.usefixtures("stays")
@pytest.mark.parametrize("step", [SelectKBest(f_classif, k=3), PCA(3)])
def test_steps_that_read_y_or_read_rows_again_stream_too(step: Any) -> None:
    X, y = table()
    X = X[NUMBERS].to_numpy()
    estimator = Pipeline([("scale", StandardScaler()), ("step", step), ("fit", logistic())])
    lazy = da.from_array(X, chunks=(N // BLOCKS, -1))
    there = search(estimator, cv=KFold(3)).fit(lazy, y)
    same(there, search(estimator, cv=KFold(3)).fit(X, y))


def test_an_undeclared_step_is_gathered_and_the_plan_says_so() -> None:
    X, y = table()
    odd = FunctionTransformer(lambda rows: rows - rows.mean())
    estimator = make_pipeline(odd, logistic())
    lazy = da.from_array(X[NUMBERS].to_numpy(), chunks=(N // BLOCKS, -1))
    there = search(estimator).fit(lazy, y)
    same(there, search(estimator).fit(X[NUMBERS].to_numpy(), y))
    (told,) = [note for note in there.plan_.notes if "gathered" in note]
    assert "functiontransformer" in told
    assert "47 KiB" in told


def test_an_l1_penalty_gathers_rows_behind_preprocessing_and_the_plan_says_so() -> None:
    X, _ = table()
    y = 2.0 * X.x0 + X.x1
    estimator = make_pipeline(columns(), Lasso())
    there = search(estimator).fit(dd.from_pandas(X, npartitions=BLOCKS), y)
    same(there, search(estimator).fit(X, y))
    assert any("gathered" in note and "L1" in note for note in there.plan_.notes)


def test_what_must_be_gathered_and_does_not_fit_is_refused_by_its_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = table()
    monkeypatch.setattr("mlopt.pipeline.by_split.memory_limit", lambda: 50_000)
    lazy = da.from_array(X[NUMBERS].to_numpy(), chunks=(N // BLOCKS, -1))
    odd = FunctionTransformer(lambda rows: rows - rows.mean())
    with pytest.raises(InputError, match=r"functiontransformer.*mlopt.register"):
        search(make_pipeline(odd, logistic())).fit(lazy, y)
    # What streams needs no such room.
    assert search(make_pipeline(StandardScaler(), logistic())).fit(lazy, y).best_score_ > 0


class Thirds(KFold):
    """A splitter of one's own."""


def _own_scorer(model: Any, rows: Any, labels: Any) -> float:
    return float(np.mean(model.predict(rows) == labels))


TREE = make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0))
GATHERS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "scorer": (make_pipeline(StandardScaler(), logistic()), {"scoring": _own_scorer},
               "`scoring` is a function"),
    "scorer, one model": (logistic(), {"scoring": _own_scorer}, "`scoring` is a function"),
    "tree": (TREE, {}, "DecisionTreeClassifier is no linear model"),
    "tree of ours": (mlopt.Pipeline(TREE.steps), {},
                     "DecisionTreeClassifier is no linear model"),
    "families": ({"a": (make_pipeline(StandardScaler(), logistic()), {}), "b": (TREE, {})},
                 {}, "DecisionTreeClassifier of family `b`"),
    "splitter": (make_pipeline(StandardScaler(), logistic()), {"cv": Thirds(3)},
                 "Thirds, given as `cv`, may read the rows"),
    "predictions": (make_pipeline(StandardScaler(), logistic()),
                    {"return_predictions": True}, "`return_predictions`"),
}  # fmt: skip


@pytest.mark.parametrize("case", GATHERS)
def test_the_plan_says_why_rows_are_gathered_and_how_many_or_refuses_them(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table()
    estimator, settings, why = GATHERS[case]
    given: dict[str, Any] = {"n_trials": 2, "cv": 3, "bandit": None} | settings
    one = mlopt.ModelSearchCV(estimator, None, **given)
    lazy = da.from_array(X[NUMBERS].to_numpy(), chunks=(N // BLOCKS, -1))
    for plan in (one.explain(lazy, y), one.fit(lazy, y).plan_):
        (told,) = [note for note in plan.notes if "gathered" in note]
        assert "47 KiB" in told
        assert why in told
    monkeypatch.setattr("mlopt.pipeline.by_split.memory_limit", lambda: 50_000)
    for method in (one.explain, one.fit):
        with pytest.raises(InputError, match=f"47 KiB.*{re.escape(why)}") as error:
            method(lazy, y)
        assert "declare" not in str(error.value)


def test_a_dask_frame_for_other_models_is_gathered_and_the_plan_says_so() -> None:
    X, y = table()
    estimator = make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0))
    given: dict[str, Any] = {"n_trials": 2, "sampler": "grid", "cv": 3, "bandit": None}
    space = {"max_depth": [2, 3]}
    lazy = dd.from_pandas(X[NUMBERS], npartitions=BLOCKS)
    there = mlopt.ModelSearchCV(estimator, space, **given).fit(lazy, y)
    here = mlopt.ModelSearchCV(estimator, space, **given).fit(X[NUMBERS], y)
    assert list(there.cv_results_["mean_test_score"]) == list(
        here.cv_results_["mean_test_score"]
    )
    assert any("gathered" in note for note in there.plan_.notes)


def test_a_pipeline_of_ours_is_searched_by_its_own_ways(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = table()
    X = pd.concat([X] * 5, ignore_index=True)  # more than one block
    y = pd.concat([y] * 5, ignore_index=True)
    steps = make_pipeline(columns(), logistic()).steps
    plain = search(Pipeline(steps)).fit(X, y)
    used: list[int] = []
    fit = StandardScaler.fit

    def watched(self: StandardScaler, X: Any, *others: Any) -> StandardScaler:
        used.append(len(X))
        return fit(self, X, *others)

    monkeypatch.setattr(StandardScaler, "fit", watched)
    ours = search(mlopt.Pipeline(steps)).fit(X, y)
    same(ours, plain)
    assert type(ours.best_estimator_) is mlopt.Pipeline
    # scikit-learn's own fit saw samples only: statistics of blocks were merged.
    assert max(used, default=0) < 4000


@pytest.mark.parametrize(("given", "kept"), [
    ({}, True),
    ({"memory_budget": 0}, False),
    ({"memory_budget": "1KiB"}, False),
    ({"optimize": {"without": ["keep_results"]}}, False),
    ({"optimize": False}, False),
])  # fmt: skip
def test_a_search_keeps_what_the_settings_of_its_pipeline_allow(
    given: dict[str, Any], kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table()
    lazy = da.from_array(X[NUMBERS].to_numpy(), chunks=(N // BLOCKS, -1))
    asked: list[tuple[bool, int]] = []
    rows, chosen = Streamed._behind, []
    choose = choose_ways

    def behind(self: Streamed, sinks: Any, kept: bool) -> Any:
        asked.append((kept, len(sinks)))
        return rows(self, sinks, kept)

    def chosen_ways(*of: Any) -> Any:
        chosen.append(of)
        return choose(*of)

    monkeypatch.setattr(Streamed, "_behind", behind)
    monkeypatch.setattr(making, choose.__name__, chosen_ways)
    steps = StandardScaler(), PCA(3), logistic()
    found = search(mlopt.make_pipeline(*steps, **given)).fit(lazy, y)
    assert asked == [(kept, 3), (kept, 1)]
    assert bool(chosen) == (given.get("optimize") is not False)
    same(found, search(make_pipeline(*steps)).fit(X[NUMBERS].to_numpy(), y))


@pytest.mark.parametrize("given", [
    {"memory_budget": "nonsense"}, {"optimize": {"without": ["zzz"]}}, {"optimize": 3},
])  # fmt: skip
def test_settings_that_a_pipeline_refuses_are_refused_by_a_search(
    given: dict[str, Any],
) -> None:
    X, y = table()
    own = mlopt.make_pipeline(StandardScaler(), logistic(), **given)
    with pytest.raises(InputError) as error:
        own.fit(X[NUMBERS], y)
    for method in (search(own).explain, search(own).fit):
        with pytest.raises(InputError, match=re.escape(str(error.value))):
            method(X[NUMBERS], y)


def test_a_scan_that_raises_says_what_it_gathers_and_why() -> None:
    X, y = table()
    X.loc[N - 1, "kind"] = "seen by one split alone"
    estimator = make_pipeline(columns(), logistic())
    lazy = dd.from_pandas(X, npartitions=BLOCKS)
    given: dict[str, Any] = {"cv": KFold(3), "error_score": -1.0}
    with pytest.warns(UserWarning, match="(?s)Scoring failed.*unknown categories"):
        there = search(estimator, **given).fit(lazy, y)
    with pytest.warns(UserWarning, match="(?s)Scoring failed.*unknown categories"):
        here = search(estimator, **given).fit(X, y)
    names = [f"split{split}_test_score" for split in range(3)]
    for name in names:
        assert there.cv_results_[name] == pytest.approx(here.cv_results_[name])
    assert any("gathered" in n and "unknown" in n for n in there.plan_.notes)


def test_steps_of_a_pipeline_of_ours_go_its_ways_before_any_model() -> None:
    X, y = table()
    X, y = pd.concat([X] * 5, ignore_index=True), pd.concat([y] * 5, ignore_index=True)
    steps = make_pipeline(columns(), DecisionTreeClassifier(max_depth=3)).steps
    given: dict[str, Any] = {"n_trials": 2, "sampler": "grid", "cv": 3, "bandit": None}
    space = {"max_depth": [2, 3]}
    scores = []
    for kind in (Pipeline, mlopt.Pipeline):
        found = mlopt.ModelSearchCV(kind(steps), space, **given).fit(X, y)
        scores.append(found.cv_results_["mean_test_score"])
        assert type(found.best_estimator_) is kind
    assert scores[0] == pytest.approx(scores[1], abs=1e-9)


def test_steps_of_a_pipeline_of_ours_get_their_fit_parameters() -> None:
    weight = np.arange(N) % 2.0
    X = np.random.default_rng(0).normal(size=(N, 2))
    X[weight == 0, 0] *= 1000.0
    y = (X[:, 0] > 0).astype(int)
    steps = [("scale", StandardScaler()), ("near", KNeighborsClassifier())]
    scores = []
    for kind in (Pipeline, mlopt.Pipeline):
        found = mlopt.ModelSearchCV(
            kind(steps), {"near__n_neighbors": [5]}, sampler="grid", n_trials=1, cv=3
        ).fit(X, y, scale__sample_weight=weight)
        scores.append(found.best_score_)
    assert scores[0] == scores[1]


@pytest.mark.cluster
def test_on_workers_splits_share_what_they_read_and_get_the_same(
    shared_workers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlopt.pipeline.running.rows_of._EACH", 1)  # so that tasks are few
    steps = make_pipeline(columns(), logistic()).steps[:-1]
    splits = [train for train, _ in KFold(3).split(np.empty(N))]
    with connect(shared_workers) as client:
        where = executor(client)
        X = dd.from_map(read, range(READS), folder=str(tmp_path), meta=table()[0].iloc[:0])
        data = Streamed(X, None, where)

        def reads() -> int:
            return len(list(tmp_path.iterdir()))

        chain = data.chain("steps", steps)
        begin = reads()
        rows = data.rows(chain, splits, kept=False)
        # To fit the steps, to look at all blocks; and at the first for each split.
        assert reads() == begin + 2 * READS + 3
        assert len(rows[0].shelves) < len(rows[0].lengths) == READS
        begin = reads()
        apart = [one.map_reduce(gram, np.add) for one in rows]
        assert reads() == begin + 3 * READS
        members = [one.executor for one in rows if isinstance(one.executor, Member)]
        jobs = {
            member: partial(one.map_reduce, gram, np.add)
            for member, one in zip(members, rows, strict=True)
        }
        found = members[0].together.run(jobs)
        assert reads() == begin + 4 * READS
    np.testing.assert_array_equal(found, apart)
    assert not np.array_equal(found[0], found[1])


@pytest.mark.cluster
@pytest.mark.usefixtures("stays")
def test_on_workers_a_search_that_keeps_no_rows_is_that_in_process(
    shared_workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlopt.pipeline.running.rows_of._EACH", 1)
    X, y = table()
    estimator = make_pipeline(columns(), LogisticRegression(tol=1e-4))
    lazy = dd.from_pandas(X, npartitions=BLOCKS), dd.from_pandas(y, npartitions=BLOCKS)
    with connect(shared_workers), dask.config.set({"mlopt.memory-budget": 0}):
        there = search(estimator, cv=2).fit(*lazy)
    same(there, search(estimator, cv=2).fit(X, y), atol=1e-3)


def test_parts_that_read_the_same_columns_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=300), "b": rng.integers(0, 4, 300)})
    y = 3 * X["a"].to_numpy() + X["b"].to_numpy() ** 2 + rng.normal(size=300)
    for first, second, name in (
        (StandardScaler(), MinMaxScaler(), "a"),
        (OneHotEncoder(), OrdinalEncoder(), "b"),
    ):
        columns = ColumnTransformer([("one", first, [name]), ("two", second, [name])])
        pipe = make_pipeline(columns, Ridge())
        search = mlopt.ModelSearchCV(
            mlopt.optimize(pipe), {"ridge__alpha": [1.0]}, sampler="grid", bandit=None,
            n_trials=None, random_state=None, cv=3,
        ).fit(X, y)  # fmt: skip
        np.testing.assert_allclose(search.predict(X), pipe.fit(X, y).predict(X), rtol=1e-6)
        np.testing.assert_allclose(
            search.best_estimator_[-1].coef_, pipe[-1].coef_, rtol=1e-6
        )


@pytest.mark.parametrize("lazy", [False, True])
def test_documents_are_counted_once_for_all_splits(lazy: bool) -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(50)]
    documents = [" ".join(rng.choice(words, size=8)) for _ in range(120)]
    y = rng.normal(size=120)
    pipe = make_pipeline(TfidfVectorizer(min_df=2), Ridge(tol=1e-10))
    grid = {"ridge__alpha": [0.1, 1.0, 10.0]}
    given = bag.from_sequence(documents, npartitions=5) if lazy else documents
    search = mlopt.ModelSearchCV(
        mlopt.optimize(pipe), grid, sampler="grid", bandit=None, n_trials=None, cv=3
    ).fit(given, y)  # fmt: skip
    theirs = GridSearchCV(pipe, grid, cv=3).fit(documents, y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"],
        theirs.cv_results_["mean_test_score"],
        atol=1e-6,
    )
    np.testing.assert_allclose(
        search.predict(documents), theirs.predict(documents), atol=1e-6
    )


def read(number: int, folder: str) -> pd.DataFrame:
    """Some rows of the table, and a note that they were read."""
    (Path(folder) / f"{number}-{uuid.uuid4().hex}").touch()
    return table()[0].iloc[number * N // READS : (number + 1) * N // READS]


def gram(block: Block) -> np.ndarray:
    product: np.ndarray = block.X.T @ block.X
    return product


def test_samples_of_candidates_do_not_pile_up() -> None:
    X = np.random.default_rng(0).normal(size=(4000, 6))
    data, held = Streamed(X, None, Threads(1)), []
    for shift in range(8):
        steps = make_pipeline(StandardScaler(), MinMaxScaler((shift, shift + 1))).steps
        chain = data.chain(f"{shift}", steps)
        held.append(len(data._samples.large.values))
        assert data._samples.large.value(chain.sink).min() == pytest.approx(shift)
    assert len(set(held[1:])) == 1
    first, *_, last = (data.chain(f"{shift}", steps) for shift in range(8))
    assert data.example(first).min() == pytest.approx(0.0)
    assert data.example(last).shape[1] == 6
