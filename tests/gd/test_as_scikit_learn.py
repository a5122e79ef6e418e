"""What mlopt has no solver for is fitted by scikit-learn's, and the plan says so."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import decomposition, linear_model, svm
from sklearn.utils._testing import ignore_warnings

import mlopt
from mlopt.errors import InputError

Array = NDArray[Any]

CASES: list[tuple[type, type, dict[str, Any]]] = [
    (
        mlopt.LogisticRegression,
        linear_model.LogisticRegression,
        {"l1_ratio": 1.0, "solver": "saga", "C": 0.1, "random_state": 0},
    ),
    (
        mlopt.LogisticRegression,
        linear_model.LogisticRegression,
        {"penalty": "l1", "solver": "saga", "random_state": 0},
    ),
    (
        mlopt.LogisticRegression,
        linear_model.LogisticRegression,
        {"solver": "liblinear", "dual": True, "random_state": 0},
    ),
    (mlopt.LogisticRegression, linear_model.LogisticRegression, {"solver": "newton-cg"}),
    (mlopt.LinearSVC, svm.LinearSVC, {"multi_class": "crammer_singer", "random_state": 0}),
    (mlopt.Ridge, linear_model.Ridge, {"positive": True, "alpha": 0.0}),
    (mlopt.Ridge, linear_model.Ridge, {"solver": "lsqr"}),
    (mlopt.LinearRegression, linear_model.LinearRegression, {"positive": True}),
    (mlopt.PCA, decomposition.PCA, {"n_components": "mle"}),
    (mlopt.PCA, decomposition.PCA, {"n_components": 0}),
]
NAMES = [f"{ours.__name__}-{'-'.join(given)}" for ours, _, given in CASES]


def data() -> tuple[Array, Array]:
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4)) * [3.0, 1.0, 1.0, 0.5]
    return X, (X[:, 0] - X[:, 1] + random.normal(size=60) > 0).astype(int)


@pytest.mark.parametrize(("ours", "theirs", "given"), CASES, ids=NAMES)
@ignore_warnings
def test_it_is_scikit_learns_fit_and_the_plan_says_why(
    ours: type, theirs: type, given: dict[str, Any]
) -> None:
    X, y = data()
    model, reference = ours(**given).fit(X, y), theirs(**given).fit(X, y)
    for name, value in vars(reference).items():
        if name.endswith("_"):
            np.testing.assert_equal(getattr(model, name), value)
    assert model.plan_.choices[0].chosen == "scikit-learn"
    assert next(iter(given)) in model.plan_.choices[0].notes[0]
    planned = ours(**given).explain(X, y)
    assert planned.choices[0].notes == model.plan_.choices[0].notes


@pytest.mark.parametrize(("ours", "given"), [(one, given) for one, _, given in CASES])
def test_a_dask_collection_is_not_loaded_for_it(ours: type, given: dict[str, Any]) -> None:
    X, y = data()
    with pytest.raises(InputError, match="X must be in memory for scikit-learn's own"):
        ours(**given).fit(da.from_array(X, chunks=(20, 4)), y)


@ignore_warnings
def test_nothing_of_an_earlier_fit_is_left() -> None:
    X, y = data()
    model = mlopt.Ridge(solver="sparse_cg").fit(X, y)
    model.set_params(solver="lsqr").fit(X[:, :2], y)
    assert model.coef_.shape == (2,)
    assert model.n_features_in_ == 2
    model = mlopt.LogisticRegression(l1_ratio=1.0, solver="saga", warm_start=True)
    first = model.set_params(max_iter=1).fit(X, y).coef_.copy()
    assert not np.array_equal(model.fit(X, y).coef_, first)


@pytest.mark.parametrize("fitted", [mlopt.LogisticRegression(), mlopt.LinearSVC()])
def test_coefficients_can_be_sparsified(fitted: Any) -> None:
    X, y = data()
    expected = fitted.fit(X, y).decision_function(X)
    found = fitted.sparsify().decision_function(X)
    np.testing.assert_allclose(found, expected)


def test_principal_components_know_their_covariance_and_likelihood() -> None:
    X, _ = data()
    ours, theirs = mlopt.PCA(2).fit(X), decomposition.PCA(2).fit(X)
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance())
    assert ours.score(X) == pytest.approx(theirs.score(X))
