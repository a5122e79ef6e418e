"""Linear discriminants from merged scatter: scikit-learn's, however the rows are cut."""

from __future__ import annotations

import warnings
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from tests.pipeline.fits.cases import Data
from tests.pipeline.fits.same import learnt, merged, parts

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.fits.models.discriminant import MergedScatter
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.profiling.shapes import stats_of
from mlopt.stats import Stats

N, D, K = 90, 5, 4
RNG = np.random.default_rng(3)
Y = np.array(["ash", "elm", "fir", "oak"])[RNG.integers(0, K, N)]
X = (
    RNG.normal(size=(N, D)) @ RNG.normal(size=(D, D))
    + RNG.normal(size=(K, D))[np.unique(Y, return_inverse=True)[1]]
)
WAY = MergedScatter()
PRIORS = [0.1, 0.2, 0.3, 0.4]
ESTIMATORS = [
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(n_components=2),
    LinearDiscriminantAnalysis(priors=PRIORS),
    LinearDiscriminantAnalysis(store_covariance=True),
    LinearDiscriminantAnalysis(solver="eigen"),
    LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.3),
    LinearDiscriminantAnalysis(solver="lsqr"),
    LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1),
]
every = pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)


def fitted(estimator: Any, X: Any, y: Any, cuts: Any = (7, 30, 31, 64)) -> Any:
    """By merging blocks between the cuts."""
    found = merged(WAY, parts(WAY, estimator, Data(X, y), cuts))
    return WAY.finish(estimator, found)


def assert_same(ours: Any, theirs: Any, X: Any, rtol: float = 1e-8) -> None:
    """Attributes and predictions; the columns of `scalings_` have no sign of their own."""
    mine, wanted = learnt(ours), learnt(theirs)
    assert mine.keys() == wanted.keys()
    for name, value in wanted.items():
        found = mine[name]
        if name == "scalings_":
            # beyond these, any directions will do
            count = len(theirs.classes_) - 1
            found, value = np.abs(found[:, :count]), np.abs(value[:, :count])
        if np.asarray(value).dtype.kind == "f":
            scale = np.abs(value).max(initial=0.0)
            np.testing.assert_allclose(found, value, rtol, rtol * scale, err_msg=name)
        else:
            np.testing.assert_array_equal(found, value, err_msg=name)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    probability = theirs.predict_proba(X)
    np.testing.assert_allclose(ours.predict_proba(X), probability, atol=100 * rtol)
    if theirs.solver != "lsqr":
        image, expected = np.abs(ours.transform(X)), np.abs(theirs.transform(X))
        np.testing.assert_allclose(image, expected, atol=100 * rtol * expected.max())


@every
@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(0, N), max_size=5))
def test_any_blocks_give_what_scikit_learn_fits(estimator: Any, cuts: list[int]) -> None:
    assert_same(fitted(estimator, X, Y, cuts), clone(estimator).fit(X, Y), X)


@pytest.mark.parametrize("solver", ["svd", "eigen", "lsqr"])
def test_two_classes_have_one_plane(solver: str) -> None:
    y, estimator = Y == "oak", LinearDiscriminantAnalysis(solver=solver)
    ours = fitted(estimator, X, y)
    assert ours.coef_.shape == (1, D)
    assert_same(ours, clone(estimator).fit(X, y), X)


@every
@pytest.mark.parametrize("many", [False, True])
def test_of_float32_rows_attributes_are_of_scikit_learns_types(
    estimator: Any, many: bool
) -> None:
    y = Y if many or estimator.priors or estimator.n_components else Y == "oak"
    rows = X.astype(np.float32)
    ours, theirs = fitted(estimator, rows, y), clone(estimator).fit(rows, y)
    types = {name: np.asarray(value).dtype for name, value in learnt(theirs).items()}
    assert {name: np.asarray(value).dtype for name, value in learnt(ours).items()} == types
    assert ours.predict_proba(rows).dtype == theirs.predict_proba(rows).dtype


def test_data_far_from_zero_lose_no_digits() -> None:
    far = X + 1e6
    ours = fitted(LinearDiscriminantAnalysis(), far, Y)
    theirs = LinearDiscriminantAnalysis().fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)


def test_dependent_columns_have_the_same_rank() -> None:
    twice = np.column_stack((X, X[:, 0] + X[:, 1], np.full(N, 3.0)))
    ours = fitted(LinearDiscriminantAnalysis(), twice, Y)
    theirs = LinearDiscriminantAnalysis().fit(twice, Y)
    np.testing.assert_allclose(
        ours.decision_function(twice), theirs.decision_function(twice), atol=1e-6
    )


def test_float32_stays_float32() -> None:
    ours = fitted(LinearDiscriminantAnalysis(), X.astype(np.float32), Y)
    assert ours.coef_.dtype == ours.scalings_.dtype == np.float32
    theirs = LinearDiscriminantAnalysis().fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-3)


def test_names_of_columns_are_kept() -> None:
    frame = pd.DataFrame(X, columns=list("abcde"))
    ours = fitted(LinearDiscriminantAnalysis(), frame, Y)
    assert list(ours.feature_names_in_) == list("abcde")
    assert ours.n_features_in_ == D


@pytest.mark.parametrize(
    ("estimator", "why"),
    [
        (LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"), "from the rows"),
        (LinearDiscriminantAnalysis(shrinkage=0.5), "another solver"),
        (LinearDiscriminantAnalysis(solver="eigen", priors=PRIORS), "priors"),
        (LinearDiscriminantAnalysis(solver="qr"), "no solver 'qr'"),
    ],
)
def test_what_needs_the_rows_is_left_to_scikit_learn(estimator: Any, why: str) -> None:
    assert why in WAY.refuses(estimator, Stats(N, D))


@every
def test_none_of_these_is_refused(estimator: Any) -> None:
    assert WAY.refuses(estimator, Stats(N, D)) == ""
    assert any(isinstance(way, MergedScatter) for way in ways_of(estimator))


def test_as_many_classes_as_rows_say_what_is_wrong() -> None:
    with pytest.raises(InputError, match="more than that of classes, got 4 of both"):
        fitted(LinearDiscriminantAnalysis(), X[:4], np.arange(4), cuts=(2,))


def test_parameters_are_checked_by_scikit_learn() -> None:
    with pytest.raises(ValueError, match="n_components cannot be larger"):
        fitted(LinearDiscriminantAnalysis(n_components=9), X, Y)


def test_a_pipeline_of_dask_blocks_predicts_the_same() -> None:
    da = pytest.importorskip("dask.array")
    lazy = da.from_array(X, chunks=(40, D))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = mlopt.make_pipeline(LinearDiscriminantAnalysis()).fit(lazy, Y)
    theirs = LinearDiscriminantAnalysis().fit(X, Y)
    np.testing.assert_array_equal(np.asarray(ours.predict(lazy)), theirs.predict(X))


@pytest.mark.parametrize("cuts", [(), (7, 30, 31, 64)], ids=["whole", "blocks"])
def test_a_constant_column_has_no_part_in_it(cuts: Any) -> None:
    model, rows = LinearDiscriminantAnalysis(), np.column_stack([X, np.full(N, 2.5 / 3.5)])
    found = fitted(model, rows, Y, cuts)
    assert (found.coef_[:, -1] == 0.0).all()
    without = fitted(model, X, Y, cuts)
    np.testing.assert_allclose(found.coef_[:, :-1], without.coef_, rtol=1e-9)
    np.testing.assert_allclose(found.intercept_, without.intercept_, rtol=1e-9)


def test_a_tolerance_that_sums_of_squares_do_not_resolve_is_left_to_all_rows() -> None:
    (way,) = ways_of(LinearDiscriminantAnalysis(tol=1e-10))
    stats = stats_of(np.zeros((9, 3)), 9, 1)
    assert "`tol`=1e-10" in way.refuses(LinearDiscriminantAnalysis(tol=1e-10), stats)
    assert not way.refuses(LinearDiscriminantAnalysis(), stats)
    loose = LinearDiscriminantAnalysis(solver="eigen", tol=1e-10)  # it asks nothing of tol
    assert not way.refuses(loose, stats)
