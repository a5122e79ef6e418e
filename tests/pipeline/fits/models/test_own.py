"""mlopt's own estimators behind other steps: in blocks, with a price, as they fit alone."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.pipeline.fits.models.own import OWN
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.library.learning import (
    BlockLeastSquares,
    BlockLeastSquaresClassifier,
    KernelRidge,
    KernelRidgeClassifier,
    PerClassWeightedLeastSquares,
)
from mlopt.pipeline.library.learning.feature_blocks import OwnColumns
from mlopt.pipeline.rules import choose_ways
from mlopt.pipeline.steps.repeating import repeats
from mlopt.resources import Resources
from mlopt.stats import Stats

N, D = 6000, 6
_RANDOM = np.random.default_rng(3)
X = _RANDOM.normal(size=(N, D)) @ _RANDOM.normal(size=(D, D))
_SCORES = X @ _RANDOM.normal(size=D) + _RANDOM.normal(size=N)
NUMBERS, LABELS = _SCORES, np.where(_SCORES > 0, "yes", "no")

IN_BLOCKS = [
    (mlopt.Ridge(), NUMBERS),
    (mlopt.Ridge(alpha=[2.0], solver="svd"), NUMBERS),
    (mlopt.LinearRegression(), NUMBERS),
    (mlopt.LogisticRegression(tol=1e-6), LABELS),
    (mlopt.LogisticRegression(C=np.inf, solver="lbfgs", tol=1e-6), LABELS),
    (mlopt.LinearSVC(tol=1e-6), LABELS),
    (mlopt.PCA(3), None),
    (mlopt.PCA(3, svd_solver="tsqr"), None),
    (BlockLeastSquares(block_size=4), NUMBERS),
    (BlockLeastSquaresClassifier(block_size=4), LABELS),
    (PerClassWeightedLeastSquares(block_size=4), LABELS),
    (mlopt.Lasso(alpha=0.1), NUMBERS),
    (mlopt.ElasticNet(alpha=0.1), NUMBERS),
    (mlopt.LogisticRegression(l1_ratio=0.5), LABELS),
    (mlopt.LinearSVC(penalty="l1"), LABELS),
    (mlopt.Ridge(positive=True), NUMBERS),
]


def on_dask(values: Any) -> Any:
    if values is None:
        return None
    return da.from_array(values, chunks=(1500, *values.shape[1:]))


def seconds(estimator: Any, stats: Stats) -> float:
    return float(estimator._foreseen(stats, Resources()).seconds(Resources()))


def learnt(model: Any) -> Any:
    return getattr(model, "components_" if hasattr(model, "components_") else "coef_")


@pytest.mark.parametrize(("estimator", "y"), IN_BLOCKS, ids=str)
def test_it_is_fitted_in_blocks_with_a_price_to_what_it_learns_alone(
    estimator: Any, y: Any
) -> None:
    scaled = StandardScaler().fit_transform(X)
    wanted = clone(estimator).fit(scaled, y)
    pipeline = mlopt.make_pipeline(StandardScaler(), estimator)
    pipeline.fit(on_dask(X), on_dask(y))
    choice = pipeline.plan_.choices[-1]
    assert choice.chosen != "scikit-learn"
    assert choice.predicted is not None
    assert choice.predicted > 0
    found = pipeline[-1]
    assert found.get_params() == clone(estimator).get_params()
    np.testing.assert_allclose(
        np.abs(learnt(found)), np.abs(learnt(wanted)), rtol=1e-3, atol=1e-3
    )
    assert found.n_features_in_ == D


def test_the_solver_that_the_plan_names_is_the_one_that_ran() -> None:
    for estimator in (mlopt.Ridge(), mlopt.LinearSVC(), mlopt.PCA(2)):
        pipeline = mlopt.make_pipeline(StandardScaler(), estimator)
        pipeline.fit(on_dask(X), on_dask(LABELS == "yes"))
        chosen = pipeline.plan_.choices[-1].chosen
        assert pipeline[-1].plan_.choices[0].chosen == chosen


def test_a_solver_asked_for_is_the_only_way() -> None:
    stats = Stats(N, D)
    for estimator, names in (
        (mlopt.Ridge(solver="svd"), {"svd"}),
        (mlopt.LogisticRegression(solver="lbfgs"), {"lbfgs"}),
        (mlopt.PCA(2, svd_solver="covariance_eigh"), {"covariance-eigh"}),
        (mlopt.Lasso(), {"working-set"}),
    ):
        ways = [way for way in ways_of(estimator) if not way.refuses(estimator, stats)]
        assert {way.name for way in ways} == names


def test_what_scikit_learn_would_fit_or_what_starts_warm_is_gathered() -> None:
    stats = Stats(N, D)
    for estimator in (
        mlopt.Ridge(solver="sag"),
        mlopt.LinearRegression(positive=True),
        mlopt.LogisticRegression(dual=True),
        mlopt.LogisticRegression(warm_start=True),
        mlopt.Lasso(warm_start=True),
        mlopt.ElasticNet(alpha=0),
        mlopt.PCA("mle"),
    ):
        assert all(way.refuses(estimator, stats) for way in ways_of(estimator))


def test_what_gathers_its_rows_takes_the_memory_of_these() -> None:
    pipeline = mlopt.make_pipeline(StandardScaler(), mlopt.Lasso(alpha=0.1))
    y, options = on_dask(NUMBERS), {"without": "keep_results"}
    with pytest.MonkeyPatch.context() as patch:
        seen: list[Any] = []
        kept = choose_ways.possible

        def watched(op: Any, given: Any, *rest: Any) -> Any:
            seen.extend(given)
            return kept(op, given, *rest)

        patch.setattr(choose_ways, "possible", watched)
        pipeline.set_params(optimize=options).fit(on_dask(X), y)
    (memory,) = {option.memory for option in seen if option.name == "working-set"}
    assert memory == X.nbytes


def test_every_one_of_them_has_a_price() -> None:
    stats = Stats(N, D)
    for way in OWN:
        for kind in way.kinds:
            estimator: Any = kind()
            if not way.refuses(estimator, stats):
                cost = way.cost(estimator, stats, Resources())
                assert cost is not None
                assert cost.seconds(Resources()) > 0


def test_kernels_cost_more_with_more_rows() -> None:
    for kind in (KernelRidge, KernelRidgeClassifier):
        few, many = (seconds(kind(), Stats(n, D)) for n in (1000, 4000))
        assert many > 4 * few


def test_features_to_come_are_counted_where_they_tell() -> None:
    few = BlockLeastSquares(features=mlopt.RandomFeatures(50))
    many = BlockLeastSquares(features=mlopt.RandomFeatures(100.0))
    assert seconds(many, Stats(N, D)) > seconds(few, Stats(N, D))
    silent = type("Silent", (OwnColumns,), {"count": None})(D)
    untold = BlockLeastSquares(features=silent)
    assert untold._foreseen(Stats(N, D), Resources()) is None


def test_own_solvers_that_draw_nothing_are_shared() -> None:
    for estimator in (mlopt.Ridge(), mlopt.LogisticRegression(), mlopt.Lasso()):
        assert repeats(estimator)
    assert repeats(mlopt.LinearSVC(dual=False))
    assert not repeats(mlopt.LinearSVC())
    assert not repeats(mlopt.Ridge(solver="sag"))
