"""`LogisticRegression` solves scikit-learn's problem."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn import linear_model
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import StandardScaler

from mlopt.errors import InputError
from mlopt.gd.logistic import LogisticRegression

Array = NDArray[Any]
LAYOUTS = [np.asarray, sparse.csr_array, sparse.csc_matrix]


def problem(classes: int = 2, n: int = 400, d: int = 6) -> tuple[Array, Array, Array]:
    X, y = make_classification(
        n, d, n_informative=4, n_redundant=0, n_classes=classes, random_state=0
    )
    keep = (y > 0) | (np.arange(n) % 2 == 0)  # classes of different size
    X, y, n = X[keep], y[keep], int(keep.sum())
    rng = np.random.default_rng(0)
    X = (X + rng.normal(size=d)) * (rng.random((n, d)) < 0.7)
    return X, np.array(["one", "two", "three", "four"])[y], rng.random(n) + 0.1


def reference(**params: Any) -> Any:
    return linear_model.LogisticRegression(
        solver="newton-cholesky", tol=1e-12, max_iter=1000, **params
    )


def same(ours: Any, theirs: Any, rtol: float = 1e-6) -> None:
    scale = np.abs(theirs.coef_).max()
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(
        ours.intercept_, theirs.intercept_, rtol=rtol, atol=rtol * scale
    )
    assert ours.classes_.tolist() == theirs.classes_.tolist()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("solver", ["lbfgs", "newton-cholesky"])
def test_agrees_with_scikit_learn(
    solver: str, classes: int, layout: Any, fit_intercept: bool
) -> None:
    X, y, weights = problem(classes)
    settings: dict[str, Any] = {"solver": solver, "fit_intercept": fit_intercept}
    ours = LogisticRegression(C=0.3, tol=1e-9, max_iter=500, **settings)
    ours.fit(layout(X), y, sample_weight=weights)
    theirs = reference(C=0.3, fit_intercept=fit_intercept).fit(X, y, sample_weight=weights)
    same(ours, theirs)
    np.testing.assert_array_equal(ours.predict(layout(X)), theirs.predict(X))
    for method in ("decision_function", "predict_proba", "predict_log_proba"):
        found, expected = getattr(ours, method)(layout(X)), getattr(theirs, method)(X)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("class_weight", ["balanced", {"one": 3.0, "two": 0.5}])
@pytest.mark.parametrize("classes", [2, 3])
def test_class_weights_mean_what_they_mean_there(classes: int, class_weight: Any) -> None:
    X, y, weights = problem(classes)
    params = {"class_weight": class_weight}
    ours = LogisticRegression(tol=1e-9, max_iter=500, **params)
    ours.fit(X, y, sample_weight=weights)
    same(ours, reference(**params).fit(X, y, sample_weight=weights))


def test_no_penalty_is_an_infinite_c() -> None:
    X, y, _ = problem()
    ours = LogisticRegression(C=np.inf, tol=1e-10).fit(X, y)
    same(ours, reference(C=1e12).fit(X, y), rtol=1e-5)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"penalty": "l2", "l1_ratio": 0.0}, {}),
        ({"penalty": "l1", "l1_ratio": 1.0}, {"l1_ratio": 1.0}),
        ({"penalty": "l1"}, {"l1_ratio": 1.0}),
        ({"penalty": "elasticnet", "l1_ratio": 0.4}, {"l1_ratio": 0.4}),
        ({"penalty": None}, {"C": np.inf}),
        ({"penalty": "deprecated", "C": np.inf, "l1_ratio": 1.0}, {"C": np.inf}),
    ],
)
def test_penalties_in_older_words_are_fitted_alike(
    older: dict[str, Any], newer: dict[str, Any]
) -> None:
    X, y, _ = problem(3)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = LogisticRegression(tol=1e-6, **older).fit(X, y)
    expected = LogisticRegression(tol=1e-6, **newer).fit(X, y)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert "scikit-learn" not in found.plan_.choices[0].chosen
    deprecated = older["penalty"] != "deprecated"
    assert [w.category for w in told][:1] == [FutureWarning] * deprecated
    inconsistent = older == {"penalty": "l1"}  # the share is 0
    assert [w.category for w in told][1:] == [UserWarning] * inconsistent


def test_solvers_that_know_no_l1_penalty_are_refused_with_those_that_do() -> None:
    X, y, _ = problem()
    for solver in ("lbfgs", "dual-newton"):
        with pytest.raises(
            InputError, match=r"'l2' or None penalties, .* leave `solver`='auto'"
        ):
            LogisticRegression(l1_ratio=0.5, solver=solver).fit(X, y)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", ["lbfgs", "newton-cholesky"])
def test_float32_stays_float32(solver: str, layout: Any, classes: int) -> None:
    X, y, _ = problem(classes)
    single = LogisticRegression(solver=solver).fit(layout(X.astype(np.float32)), y)
    assert single.coef_.dtype == single.intercept_.dtype == np.float32
    assert single.predict_proba(layout(X.astype(np.float32))).dtype == np.float32
    double = LogisticRegression(tol=1e-9, max_iter=500).fit(X, y)
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=0.02, atol=0.02)


def test_a_weight_of_two_is_the_row_twice_and_of_zero_is_no_row() -> None:
    X, y, _ = problem(3, n=60)
    counts = np.arange(len(y)) % 3
    weighted = LogisticRegression(tol=1e-10, max_iter=500).fit(X, y, sample_weight=counts)
    repeated = LogisticRegression(tol=1e-10, max_iter=500).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-8)


def test_softmax_has_no_part_that_all_classes_share() -> None:
    X, y, _ = problem(4)
    model = LogisticRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-12)
    assert model.intercept_.sum() == pytest.approx(0.0, abs=1e-12)


def test_classes_that_a_plane_tells_apart_take_about_as_many_passes_as_scipy() -> None:
    X, y = load_digits(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    theirs = linear_model.LogisticRegression(max_iter=300).fit(X, y)
    ours = LogisticRegression(solver="lbfgs", max_iter=300).fit(X, y)
    assert ours.n_iter_[0] <= 1.5 * theirs.n_iter_[0]


def test_a_sample_of_the_rows_does_not_move_the_solution() -> None:
    X, y = make_classification(20_000, 10, random_state=1)
    same(LogisticRegression(tol=1e-9).fit(X, y), reference().fit(X, y))


def test_a_warm_start_has_less_to_do() -> None:
    X, y, _ = problem()
    model = LogisticRegression(tol=1e-8, warm_start=True).fit(X, y)
    cold = model.n_iter_[0]
    assert model.fit(X, y).n_iter_[0] < cold
    model.fit(X[:, :3], y)  # another shape: a cold start, not an error
    assert model.coef_.shape == (1, 3)


def test_stopping_early_warns_and_keeps_the_result() -> None:
    X, y, _ = problem()
    model = LogisticRegression(max_iter=2, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="increase `max_iter`"):
        model.fit(X, y)
    assert model.n_iter_.tolist() == [2]
    assert model.score(X, y) > 0.6


def test_the_plan_weighs_other_methods_for_two_classes_than_for_many() -> None:
    X, y, _ = problem(4, n=6000)
    many = LogisticRegression().fit(X, y).plan_.choices[0]
    assert {many.chosen, many.rejected[0].name} == {"lbfgs", "newton-cholesky"}
    assert many.rejected[0].seconds > many.predicted
    X, y, _ = problem(2, n=20_000)
    two = LogisticRegression().fit(X, y).plan_.choices[0]
    assert two.chosen in ("lbfgs", "newton-cg")
    reasons = {one.name: one.reason for one in two.rejected}
    assert "same Hessian" in reasons["newton-cholesky"]


def test_a_hessian_beyond_memory_is_refused_with_its_size() -> None:
    y = np.arange(60) % 30
    X = sparse.csr_array(sparse.eye_array(60, 9999))
    with pytest.raises(ValueError, match="matrices of 300000 x 300000"):
        LogisticRegression(solver="newton-cholesky").fit(X, y)


def test_the_plan_has_predicted_and_measured_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    X, y, _ = problem(n=20_000)
    model = LogisticRegression(verbose=1).fit(X, y)
    assert model.plan_.choices[0].chosen in ("lbfgs", "newton-cg")
    assert model.plan_.predicted > 0
    assert model.plan_.measured > 0
    captured = capsys.readouterr()
    assert "took" in captured.err
    assert captured.out == ""


def test_predicting_before_fitting_says_so() -> None:
    with pytest.raises(NotFittedError):
        LogisticRegression().predict_proba([[1.0]])


def test_a_fitted_model_survives_pickling() -> None:
    X, y, _ = problem(3)
    model = LogisticRegression().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_keep_their_names(frame: Any) -> None:
    X, y, _ = problem(d=5)
    columns = dict(zip("abcde", X.T, strict=True))
    model = LogisticRegression(tol=1e-9).fit(frame(columns), y)
    assert model.feature_names_in_.tolist() == list("abcde")
    same(model, LogisticRegression(tol=1e-9).fit(X, y))


@pytest.mark.parametrize("classes", [2, 3])
def test_dask_in_dask_out(classes: int) -> None:
    da = pytest.importorskip("dask.array")
    X, y, weights = problem(classes)
    lazy = da.from_array(X, chunks=(150, 4))
    model = LogisticRegression(tol=1e-9, max_iter=500)
    model.fit(lazy, da.from_array(y, chunks=100), sample_weight=weights)
    plain = LogisticRegression(tol=1e-9, max_iter=500).fit(X, y, sample_weight=weights)
    same(model, plain)
    for method in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        found = getattr(model, method)(lazy)
        assert isinstance(found, da.Array)
        expected = getattr(model, method)(X)
        assert found.shape == expected.shape
        computed = found.compute()
        assert computed.dtype == expected.dtype
        if computed.dtype.kind == "f":
            np.testing.assert_allclose(computed, expected, rtol=1e-12)
        else:
            np.testing.assert_array_equal(computed, expected)


def test_dask_dataframes_of_unknown_length_work_too() -> None:
    dd = pytest.importorskip("dask.dataframe")
    X, y, _ = problem(d=5)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(label=y)
    lazy = dd.from_pandas(frame, npartitions=3)
    lazy = lazy[lazy["a"] > -1.0]
    here = frame[frame["a"] > -1.0]
    names = list("abcde")
    model = LogisticRegression(tol=1e-9).fit(lazy[names], lazy["label"])
    same(model, LogisticRegression(tol=1e-9).fit(here[names], here["label"]))
    found = model.predict(lazy[names]).compute()
    np.testing.assert_array_equal(found, model.predict(here[names]))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0.0}, "The 'C' parameter of LogisticRegression must be .*Got 0.0"),
        ({"l1_ratio": 0.5, "solver": "lbfgs"}, "supports only 'l2' or None penalties"),
        ({"solver": "magic"}, "The 'solver' parameter of LogisticRegression must be"),
        ({"tol": -1.0}, "The 'tol' parameter of LogisticRegression must be"),
        ({"max_iter": -1}, "The 'max_iter' parameter of LogisticRegression must be"),
        ({"n_jobs": 0}, "`n_jobs` must not be 0"),
    ],
)
def test_wrong_parameters_say_what_to_do(params: Any, message: str) -> None:
    X, y, _ = problem()
    with pytest.raises(ValueError, match=message):
        LogisticRegression(**params).fit(X, y)


def test_one_class_is_refused_whether_given_or_left_by_the_weights() -> None:
    X, y, _ = problem()
    with pytest.raises(ValueError, match=r"at least two classes .* \['one'\]"):
        LogisticRegression().fit(X, np.full(len(X), "one"))
    with pytest.raises(ValueError, match="at least two classes"):
        LogisticRegression().fit(X, y, sample_weight=(y == "one").astype(float))


def test_what_is_not_finite_is_refused() -> None:
    X, y, _ = problem()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LogisticRegression().fit(X, y)
