"""A twin refuses where parameters ask for another problem, and only there."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.svm import LinearSVC

from mlopt.pipeline.fits.registry import ways_of
from mlopt.stats import Stats
from mlopt.tuning.crews.linear_task import linear_form

DENSE = Stats(2000, 40, partitions=4)
SPARSE = Stats(2000, 40, density=0.05, sparse=True, partitions=4)


def reasons(estimator: Any, stats: Stats = DENSE) -> dict[str, str]:
    """Why each way refuses; "" where it does not."""
    return {way.name: way.refuses(estimator, stats) for way in ways_of(estimator)}


OTHER_PROBLEMS = [
    (LogisticRegression(penalty="l1", solver="saga"), "not L2"),
    (LogisticRegression(penalty="elasticnet", l1_ratio=0.5, solver="saga"), "not L2"),
    (LogisticRegression(l1_ratio=0.5, solver="saga"), "not L2"),
    (LogisticRegression(solver="liblinear"), "penalises the intercept"),
    (LogisticRegression(warm_start=True), "starts where it was"),
    (LogisticRegression(dual=True), "dual=True"),
    (LogisticRegression(dual=True, solver="saga"), "dual=True"),
    (LinearSVC(loss="hinge", dual=True), "smooth"),
    (LinearSVC(penalty="l1", dual=False), "smooth"),
    (LinearSVC(multi_class="crammer_singer"), "against the rest"),
    (Ridge(positive=True), "must be positive"),
    (RidgeClassifier(positive=True), "must be positive"),
    (LinearRegression(positive=True), "must be positive"),
    (Ridge(solver="lbfgs"), "positive coefficients only"),
    (Ridge(solver="lsqr", max_iter=1), "`max_iter` may end it"),
    (PCA("mle"), "guessed"),
]


@pytest.mark.parametrize(("estimator", "why"), OTHER_PROBLEMS, ids=str)
def test_another_problem_is_refused_by_every_way(estimator: Any, why: str) -> None:
    assert all(why in reason for reason in reasons(estimator).values())
    if not isinstance(estimator, PCA | LinearRegression | RidgeClassifier):
        task = linear_form(estimator)
        # Searches have L1 penalties and positive weights, pipelines have not.
        assert isinstance(task, str) or task.l1_ratio or task.positive


@pytest.mark.parametrize("solver", ["svd", "cholesky", "saga"])
def test_a_solver_that_takes_no_sparse_rows_is_left_to_say_so(solver: str) -> None:
    assert all(
        "sparse" in reason for reason in reasons(Ridge(solver=solver), SPARSE).values()
    )


@pytest.mark.parametrize("wanted", [None, 0.9, 40, 0], ids=str)
def test_components_beyond_those_of_lanczos_are_left_to_scikit_learn(
    wanted: Any,
) -> None:
    assert "" not in reasons(PCA(wanted), SPARSE).values()


def test_a_limit_counts_where_the_solver_goes_step_by_step() -> None:
    assert "" in reasons(Ridge(max_iter=1)).values()
    assert "" in reasons(Ridge(max_iter=1, solver="svd")).values()
    assert "" not in reasons(Ridge(max_iter=1), SPARSE).values()


SAME_PROBLEMS = [
    LogisticRegression(),
    LogisticRegression(penalty=None),
    LogisticRegression(penalty="l2", l1_ratio=0.5),
    LogisticRegression(solver="saga", random_state=0),
    LogisticRegression(solver="newton-cg", intercept_scaling=7.0),
    LinearSVC(),
    LinearSVC(dual=True, intercept_scaling=9.0),
    Ridge(solver="sag", random_state=1),
    Ridge(alpha=[1.0, 2.0]),
    RidgeClassifier(class_weight="balanced"),
    LinearRegression(fit_intercept=False),
    PCA(3),
]


@pytest.mark.parametrize("estimator", SAME_PROBLEMS, ids=str)
@pytest.mark.parametrize("stats", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_the_same_problem_is_solved_by_some_way(estimator: Any, stats: Stats) -> None:
    assert "" in reasons(estimator, stats).values()


@pytest.mark.parametrize("wanted", [None, 0.9, 40], ids=str)
def test_all_components_of_dense_rows_are_found_by_some_way(wanted: Any) -> None:
    assert "" in reasons(PCA(wanted)).values()


ASKED_FOR = {
    "full": {"full-svd", "tsqr"},
    "covariance_eigh": {"covariance-eigh"},
    "arpack": {"arpack"},
    "randomized": {"randomized"},
}


@pytest.mark.parametrize("solver", ASKED_FOR)
def test_a_solver_that_was_asked_for_by_name_is_the_one_that_runs(solver: str) -> None:
    found = reasons(PCA(3, svd_solver=solver))
    assert {name for name, reason in found.items() if not reason} == ASKED_FOR[solver]


def test_without_a_penalty_solvers_that_need_one_refuse() -> None:
    refusing = {name for name, why in reasons(Ridge(alpha=0.0)).items() if "penalty" in why}
    assert refusing == {"sketched_cg", "mixed_cholesky", "dual_cholesky"}


def test_a_solver_without_rank_is_left_to_sparse_least_squares() -> None:
    assert "rank" in reasons(LinearRegression())["sparse_cg"]
    assert reasons(LinearRegression(), SPARSE)["sparse_cg"] == ""


def test_nobody_approximates_where_scikit_learn_would_not() -> None:
    assert reasons(PCA(3))["randomized"] == "approximate"
    wide = Stats(2000, 3000, partitions=4)
    assert reasons(PCA(3), wide)["randomized"] == ""


@pytest.mark.parametrize(
    ("dual", "columns", "refused"),
    [
        ("auto", 40, True), ("auto", 5000, False), (True, 40, False), (False, 5000, True),
    ],
)  # fmt: skip
def test_the_dual_is_descended_where_liblinear_would(
    dual: Any, columns: int, refused: bool
) -> None:
    found = reasons(LinearSVC(dual=dual), Stats(2000, columns))
    assert bool(found["dual-coordinate-descent"]) == refused
