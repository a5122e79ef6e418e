"""Least squares with fewer rows than columns: solved by rows, equal to scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
from scipy import sparse
from sklearn import linear_model

from mlopt.errors import InputError
from mlopt.gd.least_squares import Ridge
from mlopt.gd.plans.fitting import prices
from mlopt.gd.plans.outline import Outline
from mlopt.gd.pricing import Shape
from mlopt.resources import Resources


def problem(n: int = 60, d: int = 700, outputs: int = 1) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3) + 5.0 * (np.arange(d) < 3)
    y = X @ rng.normal(size=(d, outputs)) + 4.0
    return X, y[:, 0] if outputs == 1 else y, rng.integers(0, 3, n).astype(float)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("outputs", [1, 3])
def test_it_finds_what_scikit_learn_finds(
    layout: Any, fit_intercept: bool, outputs: int
) -> None:
    X, y, weights = problem(outputs=outputs)
    alpha = 2.0 if outputs == 1 else [2.0, 50.0, 2.0]
    theirs = linear_model.Ridge(alpha, fit_intercept=fit_intercept, solver="svd")
    theirs.fit(X, y, weights)
    ours = Ridge(alpha, fit_intercept=fit_intercept, solver="dual_cholesky")
    ours.fit(layout(X), y, weights)
    assert ours.solver_ == "dual_cholesky"
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-7, atol=1e-9)


def test_far_from_zero_no_digits_are_lost() -> None:
    X, y, _ = problem()
    theirs = linear_model.Ridge(1.0, solver="svd").fit(X, y)
    ours = Ridge(1.0, solver="dual_cholesky").fit(X + 1e6, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


def test_where_the_penalty_is_lost_in_rounding_a_qr_takes_over() -> None:
    X, y, _ = problem()
    X[1] = X[0]
    fitted = Ridge(1e-14, solver="dual_cholesky", fit_intercept=False).fit(X, y)
    assert fitted.solver_ == "svd"
    assert any("QR" in note for note in fitted.plan_.choices[0].notes)


def test_it_is_chosen_for_wide_rows_and_refused_for_tall_ones() -> None:
    X, y, _ = problem(200, 6000)
    assert Ridge().fit(X, y).solver_ == "dual_cholesky"
    with pytest.raises(InputError, match="more equations"):
        Ridge(solver="dual_cholesky").fit(X.T, np.arange(6000.0))
    with pytest.raises(InputError, match="positive penalty"):
        Ridge(0.0, solver="dual_cholesky").fit(X, y)


def test_rows_that_do_not_fit_are_refused_by_their_bytes() -> None:
    shape = Shape(
        n=100_000, d=200_000, columns=1, nonzero=2 * 10**10, itemsize=8, sparse=False,
        blocks=4,
    )  # fmt: skip
    outline = Outline("squared", shape, l2=1e-5)
    why = prices(["dual_cholesky"], outline, Resources(memory=8 << 30))["dual_cholesky"]
    assert "GiB for all rows" in str(why)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_many_penalties_share_one_eigendecomposition_of_the_rows(
    layout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, weights = problem(outputs=12)
    alpha = np.logspace(-2, 5, 12)
    calls: list[Any] = []
    eigh = scipy.linalg.eigh

    def counted(*args: Any, **how: Any) -> Any:
        calls.append(args)
        return eigh(*args, **how)

    monkeypatch.setattr(scipy.linalg, "eigh", counted)
    ours = Ridge(alpha, solver="dual_cholesky").fit(layout(X), y, weights)

    assert [len(gram) for (gram,) in calls] == [len(X)]
    theirs = linear_model.Ridge(alpha, solver="svd").fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-7)
