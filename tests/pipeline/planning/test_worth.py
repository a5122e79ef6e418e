"""What planning cannot make shorter runs as scikit-learn runs it; all else is planned."""

from __future__ import annotations

import threading
import time
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn.pipeline
from scipy import sparse
from sklearn.cluster import Birch, KMeans
from sklearn.compose import make_column_transformer
from sklearn.decomposition import NMF, TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import RFE, SelectKBest, chi2
from sklearn.impute import KNNImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_info, threadpool_limits

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.planning.worth import worth
from mlopt.prices import price
from mlopt.resources import Resources

N = 20_000
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame({
    "size": RNG.normal(size=N), "age": RNG.integers(0, 90, N),
    "colour": RNG.choice(["red", "green", "blue"], N),
    "town": RNG.choice([f"town {number}" for number in range(40)], N),
})  # fmt: skip
Y = (FRAME["size"] + (FRAME["colour"] == "red") > 0.5).to_numpy().astype(int)


@pytest.fixture(autouse=True)
def _where_it_pays() -> Any:
    with dask.config.set({"mlopt.plan": "where it pays"}):
        yield


def table() -> list[tuple[str, Any]]:
    columns = make_column_transformer(
        (StandardScaler(), ["size", "age"]), (OneHotEncoder(), ["colour", "town"])
    )
    return [("columns", columns), ("classify", LogisticRegression())]


def test_a_small_fit_of_light_steps_is_scikit_learns_own() -> None:
    ours = mlopt.Pipeline(table()).fit(FRAME, Y)
    theirs = sklearn.pipeline.Pipeline(table()).fit(FRAME, Y)
    assert "not planned" in str(ours.plan_)
    assert {choice.chosen for choice in ours.plan_.choices} <= {
        "scikit-learn", "block by block",
    }  # fmt: skip
    np.testing.assert_array_equal(ours[-1].coef_, theirs[-1].coef_)
    assert ours[0].sparse_output_ == theirs[0].sparse_output_
    names = theirs[:-1].get_feature_names_out()
    assert list(ours[:-1].get_feature_names_out()) == list(names)
    check_is_fitted(ours)


@pytest.mark.parametrize(
    "steps",
    [
        lambda: [("scale", StandardScaler()), ("near", KNeighborsClassifier())],
        lambda: [("boost", HistGradientBoostingClassifier(max_iter=3))],
        lambda: [("all", sklearn.pipeline.make_pipeline(StandardScaler(), SVC(C=0.1)))],
    ],
)
def test_a_last_step_that_has_one_way_does_not_ask_for_a_plan(steps: Any) -> None:
    X, y = RNG.normal(size=(5000, 6)), np.arange(5000) % 2
    ours = mlopt.Pipeline(steps()).fit(X, y)
    assert "not planned" in str(ours.plan_)
    assert ours.plan_.predicted is None
    theirs = sklearn.pipeline.Pipeline(steps()).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X[:50]), theirs.predict(X[:50]))
    # Who asks beforehand is told what it takes.
    assert (mlopt.Pipeline(steps()).explain(X, y).predicted or 0.0) > 0
    with dask.config.set({"mlopt.plan": "always"}):
        planned = mlopt.Pipeline(steps()).fit(X, y)
    assert (planned.plan_.predicted or 0.0) > 0


def test_a_last_step_of_one_pass_goes_through_its_values_once() -> None:
    X = np.broadcast_to(RNG.normal(size=20), (10_000_000, 20))
    steps = [("classify", GaussianNB())]
    found = [worth(steps, X[:n], np.arange(n) % 2, {}, Resources()) for n in (10**5, 10**7)]
    assert [one.planned for one in found if one] == [False, True]


def test_iterations_of_k_means_are_part_of_what_is_foreseen() -> None:
    X = np.broadcast_to(RNG.normal(size=50), (100_000, 50))
    found = worth([("near", KMeans(8))], X, None, {}, Resources())
    assert found is not None
    assert not found.planned  # ours takes no less
    assert (found.plainly or 0.0) > price("fit.brief")


def test_many_rows_are_planned_where_singular_values_take_long() -> None:
    X, y = np.broadcast_to(RNG.normal(size=500), (20_000, 500)), RNG.normal(size=20_000)
    machine = Resources(python=2.6, gemm_f64=6e10, bandwidth=2e10)
    found = worth([("linear", LinearRegression())], X, y, {}, machine)
    assert found is not None
    assert found.planned


def test_columns_that_nobody_knows_ask_for_a_plan_where_one_could_save() -> None:
    X, y = RNG.normal(size=(5000, 6)), np.arange(5000) % 2
    before = [("near", KBinsDiscretizer()), ("means", Birch())]
    assert (
        worth([*before, ("logistic", LogisticRegression())], X, y, {}, Resources()) is None
    )
    found = worth([*before, ("tree", DecisionTreeClassifier())], X, y, {}, Resources())
    assert found is not None
    assert not found.planned


@pytest.mark.parametrize("rows", [500, N])
def test_one_chunk_of_a_dask_frame_gives_the_same(rows: int) -> None:
    frame = dd.from_pandas(FRAME[:rows], npartitions=1)
    ours = mlopt.Pipeline(table()).fit(frame, Y[:rows])
    theirs = sklearn.pipeline.Pipeline(table()).fit(FRAME[:rows], Y[:rows])
    same = ours.predict(FRAME[:rows]) == theirs.predict(FRAME[:rows])
    assert same.mean() > 0.999


def test_its_rows_go_through_each_step_once() -> None:
    plan = mlopt.Pipeline(table()).fit(FRAME, Y).plan_
    for _, choice in plan.walk():
        assert choice.ran in ({"fit": 1.0}, {"apply": 1.0}, {"fit": 1.0, "apply": 1.0})


def deep(seed: int | None) -> list[tuple[str, Any]]:
    return [table()[0], ("few", TruncatedSVD(3, random_state=seed)), table()[1]]


@pytest.mark.parametrize(("seed", "graphs"), [(0, 1), (None, 4)])
def test_a_small_fit_is_one_graph_where_no_step_draws_in_turn(
    seed: int | None, graphs: int
) -> None:
    X, y = FRAME[:900], Y[:900]
    np.random.seed(3)  # noqa: NPY002
    ours = mlopt.Pipeline(deep(seed)).fit(X, y)
    assert f"{graphs} graphs sent" in " ".join(ours.plan_.notes)
    np.random.seed(3)  # noqa: NPY002
    theirs = sklearn.pipeline.Pipeline(deep(seed)).fit(X, y)
    np.testing.assert_array_equal(ours[-1].coef_, theirs[-1].coef_)


def test_its_rows_come_out_of_the_same_graph() -> None:
    ours = mlopt.Pipeline(deep(0)[:2])
    found = ours.fit_transform(FRAME[:900])
    assert "1 graphs sent" in " ".join(ours.plan_.notes)
    theirs = sklearn.pipeline.Pipeline(deep(0)[:2]).fit_transform(FRAME[:900])
    np.testing.assert_array_equal(found, theirs)


@pytest.mark.parametrize("steps", [
    [("squares", PolynomialFeatures()), ("ridge", Ridge())],
    [("own", FunctionTransformer(lambda rows: rows)), ("classify", LogisticRegression())],
])  # fmt: skip
def test_what_is_not_known_to_be_light_is_planned(steps: Any) -> None:
    X = FRAME[["size", "age"]].to_numpy()[:6000]
    assert "not planned" not in str(mlopt.Pipeline(steps).fit(X, Y[:6000]).plan_)


@pytest.mark.parametrize("steps", [
    [("tf-idf", TfidfTransformer()), ("best", SelectKBest(chi2, k=20)),
     ("classify", LogisticRegression(max_iter=1000))],
    [("project", GaussianRandomProjection(20, random_state=0)),
     ("classify", LinearSVC(loss="hinge", C=0.01, random_state=0))],
    [("fourier", RBFSampler(n_components=30, random_state=0)), ("ridge", Ridge())],
])  # fmt: skip
def test_counted_and_projected_rows_need_no_plan_where_they_are_few(steps: Any) -> None:
    counts = sparse.random(5000, 200, 0.05, "csr", random_state=0)
    y = np.asarray(counts[:, :20].sum(axis=1)).ravel() > 0.5
    fitted = mlopt.Pipeline(steps).fit(counts, y)
    assert "not planned" in str(fitted.plan_)
    theirs = sklearn.pipeline.Pipeline(steps).fit(counts, y)
    np.testing.assert_array_equal(fitted[-1].coef_, theirs[-1].coef_)
    found = [
        worth(steps, sparse.vstack([counts] * k), np.tile(y, k), {}, Resources())
        for k in (1, 400)
    ]
    light = [one.planning / one.saved for one in found if one is not None]
    assert light[0] > 1 > light[1]


def scaled() -> list[tuple[str, Any]]:
    return [("scale", StandardScaler()), ("classify", LogisticRegression())]


@pytest.mark.parametrize("rows", [10_000, 1_000_000])
def test_what_solvers_save_must_be_worth_the_planning(rows: int) -> None:
    X = np.broadcast_to(RNG.normal(size=100), (rows, 100))
    found = worth(scaled(), X, np.arange(rows) % 2, {}, Resources(threads=2))
    assert found is not None
    assert found.planned == (rows > 100_000)
    assert found.plainly is not None
    assert found.saved < found.plainly


@pytest.mark.parametrize("rows", [10_000, 60_000])
def test_a_fit_of_liblinear_is_priced_by_what_it_goes_through(rows: int) -> None:
    X = np.broadcast_to(RNG.normal(size=100), (rows, 100))
    steps = [("scale", StandardScaler()), ("classify", LinearSVC())]
    found = worth(steps, X, np.arange(rows) % 2, {}, Resources(threads=2))
    assert found is not None
    assert found.plainly is not None
    assert 2e-6 < found.plainly / rows < 3.2e-5  # measured: 8 microseconds
    assert found.planned == (rows > 50_000)


def test_what_nobody_planned_is_run_as_by_whoever_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its libraries have the threads that they have in scikit-learn's own loop."""
    seen, fit = [], LogisticRegression.fit

    def watched(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        seen.append((threading.current_thread(), threadpool_info()))
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(LogisticRegression, "fit", watched)
    X = RNG.normal(size=(500, 3))
    steps = [("scale", StandardScaler()), ("fit", LogisticRegression(solver="newton-cg"))]
    with threadpool_limits(2):
        here = threading.current_thread(), threadpool_info()
        mlopt.Pipeline(steps).fit(X, (X[:, 0] > 0).astype(int))
    assert seen == [here]


@pytest.mark.parametrize(("limit", "threads"), [(1e9, 1), (0.0, 2)])
def test_blas_has_one_thread_for_what_is_over_before_two_pay(
    limit: float, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known what such a fit takes; OpenMP, by which trees grow, has all of them."""
    seen, fit = [], Ridge.fit

    def watched(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        seen.extend(threadpool_info())
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(Ridge, "fit", watched)
    monkeypatch.setattr("mlopt.pipeline.planning.making.BRIEF", limit)
    X = RNG.normal(size=(5000, 3))
    with threadpool_limits(2):
        steps = [("scale", StandardScaler()), ("fit", Ridge())]
        plan = mlopt.Pipeline(steps).fit(X, X[:, 0]).plan_
        after = {one["num_threads"] for one in threadpool_info()}
    assert "not planned" in str(plan)
    found = {
        kind: {one["num_threads"] for one in seen if one["user_api"] == kind}
        for kind in ("blas", "openmp")
    }
    assert found["blas"] == {threads}
    assert found["openmp"] <= {2}
    assert after == {2}


@pytest.mark.parametrize(
    ("rows", "solver", "threads"),
    [
        ("sparse", "lbfgs", 1),
        ("sparse", "newton-cg", 1),
        ("sparse", "newton-cholesky", 2),
        ("dense", "lbfgs", 1),
        ("dense", "newton-cg", 2),
        ("dense", "newton-cholesky", 2),
    ],
)
def test_blas_has_one_thread_where_rows_meet_few_columns_alone(
    rows: str, solver: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others would wait for little work, or none, and take a core each meanwhile."""
    seen: list[Any] = []
    fit = LogisticRegression.fit

    def watched(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        seen.extend(one for one in threadpool_info() if one["user_api"] == "blas")
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(LogisticRegression, "fit", watched)
    monkeypatch.setattr("mlopt.pipeline.planning.making.BRIEF", 0.0)
    encoder = OneHotEncoder(sparse_output=rows == "sparse")
    steps = [("encode", encoder), ("classify", LogisticRegression(solver=solver))]
    with threadpool_limits(2):
        plan = mlopt.Pipeline(steps).fit(FRAME[["colour", "town"]], Y).plan_
        after = {one["num_threads"] for one in threadpool_info()}
    assert "not planned" in str(plan)
    assert {one["num_threads"] for one in seen} == {threads}
    assert after == {2}


def test_seconds_of_what_nobody_planned_are_those_of_one_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        time.sleep(0.1)
        return self.partial_fit(X, y, sample_weight)

    monkeypatch.setattr(StandardScaler, "fit", slow)
    X = RNG.normal(size=(500, 3))
    plan = mlopt.Pipeline(scaled()).fit(X, (X[:, 0] > 0).astype(int)).plan_
    assert (plan.choices[0].measured or 0.0) >= 0.1


def test_rows_that_may_not_be_held_are_planned() -> None:
    small = mlopt.Pipeline(table(), memory_budget="1MB").fit(FRAME, Y)
    assert "not planned" not in str(small.plan_)


def test_what_is_asked_for_must_be_known() -> None:
    with (
        dask.config.set({"mlopt.plan": "never"}),
        pytest.raises(InputError, match=r"mlopt\.plan.*always.*never"),
    ):
        mlopt.Pipeline(table()).fit(FRAME, Y)


def test_before_the_fit_a_plan_says_that_it_will_not_be_planned() -> None:
    plan = mlopt.Pipeline(table()).explain(FRAME, Y)
    assert "not planned" in str(plan)
    assert plan.predicted is not None
    assert {choice.chosen for choice in plan.choices} <= {"scikit-learn", "block by block"}


def test_predictions_of_few_values_are_scikit_learns_own() -> None:
    ours = mlopt.Pipeline(table()).fit(FRAME, Y)
    rows = FRAME[:5000]
    assert "few" in str(ours.explain(rows, method="predict"))
    theirs = sklearn.pipeline.Pipeline(table()).fit(FRAME, Y)
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))
    with dask.config.set({"mlopt.plan": "always"}):
        assert "few" not in str(ours.explain(rows, method="predict"))
        np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))


@pytest.mark.parametrize(
    "step",
    [
        PowerTransformer(),
        NMF(3, random_state=0, max_iter=2000),
        KNNImputer(),
        RFE(LinearRegression(), n_features_to_select=2),
    ],
    ids=["same", "some", "filled", "fewer"],
)
def test_a_step_that_has_one_way_leaves_nothing_to_plan(step: Any) -> None:
    X = np.random.default_rng(0).uniform(1.0, 2.0, (3000, 5))
    for last, y in ((LinearRegression(), X[:, 0]), (GaussianNB(), X[:, 0] > 1.5)):
        plan = mlopt.make_pipeline(step, last).fit(X, y).plan_
        assert "not planned: planning takes" in str(plan)
        assert plan.predicted is None  # nobody knows what the step takes
