"""Mixtures of Gaussians, beside scikit-learn's from the same start."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn import mixture
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.pipeline.fits.few import Few
from mlopt.pipeline.fits.models.descriptors import Mixture
from mlopt.pipeline.library.mixture import GaussianMixture
from mlopt.pipeline.profiling.shapes import stats_of
from mlopt.rows import Rows

RNG = np.random.default_rng(0)
CENTRES = RNG.normal(size=(4, 5)) * 3
X = CENTRES[RNG.integers(4, size=1500)] + RNG.normal(size=(1500, 5)) * [1, 2, 0.3, 1, 1]
START = X[:4]
FREE: dict[str, Any] = {"min_variance": 0.0, "least_variance": 0.0}


def by_scikit_learn(X: Any, start: Any, tol: float, max_iter: int) -> Any:
    """From the rows that are nearest to the first means."""
    nearest = np.square(X[:, None] - start).sum(axis=2).argmin(axis=1)
    groups = [X[nearest == number] for number in range(len(start))]
    theirs = mixture.GaussianMixture(
        len(start),
        covariance_type="diag",
        tol=tol,
        max_iter=max_iter,
        reg_covar=0.0,
        weights_init=[len(group) / len(X) for group in groups],
        means_init=[group.mean(axis=0) for group in groups],
        precisions_init=[1 / group.var(axis=0) for group in groups],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return theirs.fit(X)


@parametrize_with_checks([GaussianMixture(2, random_state=0, max_iter=5)])
def test_a_mixture_passes_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize(("tol", "max_iter"), [(0.0, 1), (0.0, 7), (1e-4, 200)])
def test_each_iteration_is_that_of_scikit_learn(tol: float, max_iter: int) -> None:
    ours = GaussianMixture(4, means_init=START, tol=tol, max_iter=max_iter, **FREE).fit(X)
    theirs = by_scikit_learn(X, START, tol, max_iter)

    assert (ours.n_iter_, ours.converged_) == (theirs.n_iter_, theirs.converged_)
    for name in ("weights_", "means_", "covariances_", "lower_bound_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X) == pytest.approx(theirs.score(X))


@pytest.mark.parametrize("block_rows", [1, 100, 1499])
def test_blocks_change_nothing(block_rows: int) -> None:
    few = X[:300] if block_rows == 1 else X
    model = GaussianMixture(4, random_state=1, max_iter=10)
    whole = clone(model).fit_rows(Rows.of(few, executor=Threads(2), block_rows=len(few)))
    cut = clone(model).fit_rows(Rows.of(few, executor=Threads(2), block_rows=block_rows))

    assert whole.n_iter_ == cut.n_iter_
    np.testing.assert_allclose(whole.means_, cut.means_, rtol=1e-9)
    np.testing.assert_allclose(whole.covariances_, cut.covariances_, rtol=1e-9)


def test_the_likelihood_never_falls() -> None:
    bounds = [
        GaussianMixture(6, random_state=0, tol=0.0, max_iter=n).fit(X).lower_bound_
        for n in range(1, 12)
    ]
    assert (np.diff(bounds) > -1e-12).all()


def test_a_mixture_far_from_zero_is_the_same() -> None:
    near = GaussianMixture(4, means_init=START, **FREE).fit(X)
    far = GaussianMixture(4, means_init=START + 1e6, **FREE).fit(X + 1e6)

    np.testing.assert_allclose(far.means_ - 1e6, near.means_, atol=1e-6)
    np.testing.assert_allclose(far.covariances_, near.covariances_, rtol=1e-6)
    np.testing.assert_allclose(far.transform(X + 1e6), near.transform(X), atol=1e-6)


def test_variances_have_a_floor() -> None:
    spread = np.concatenate([RNG.normal(size=(50, 2)) * [10, 1], np.full((50, 2), 3.0)])
    start = np.array([[-5.0, 0.0], [3.0, 3.0]])
    model = GaussianMixture(2, means_init=start, min_variance=0.05).fit(spread)
    assert (model.covariances_ >= 0.05 * spread.var(axis=0) * (1 - 1e-12)).all()
    assert model.covariances_[1] == pytest.approx(0.05 * spread.var(axis=0))

    constant = np.column_stack([spread[:, 0], np.zeros(100)])
    model = GaussianMixture(2, random_state=0, least_variance=1e-3).fit(constant)
    assert model.covariances_[:, 1] == pytest.approx(1e-3)
    assert np.isfinite(model.score_samples(constant)).all()


def test_a_component_without_rows_stays() -> None:
    start = np.vstack([START, np.full(5, 1e5)])
    model = GaussianMixture(5, means_init=start, max_iter=5).fit(X)

    assert model.weights_[4] == 0.0
    np.testing.assert_allclose(model.means_[4], 1e5)
    assert np.isfinite(model.transform(X)).all()
    assert not model.transform(X)[:, 4].any()


def test_rows_far_from_every_component_have_shares_all_the_same() -> None:
    model = GaussianMixture(4, means_init=START).fit(X)
    far = model.transform(np.full((1, 5), 1e4))

    assert far.sum() == pytest.approx(1.0)
    assert np.isfinite(model.score_samples(np.full((1, 5), 1e4))).all()


def test_descriptors_are_rows_in_groups() -> None:
    grouped = X.reshape(150, 10, 5)
    rows, descriptors = (
        GaussianMixture(4, random_state=0).fit(data) for data in (X, grouped)
    )

    np.testing.assert_array_equal(rows.means_, descriptors.means_)
    shares = descriptors.transform(grouped)
    assert shares.shape == (150, 10, 4)
    np.testing.assert_array_equal(shares.reshape(-1, 4), rows.transform(X))
    assert descriptors.predict(grouped).shape == (150, 10)
    assert rows.get_feature_names_out()[0] == "gaussianmixture0"


def test_float32_rows_have_float32_shares() -> None:
    exact = GaussianMixture(4, means_init=START).fit(X)
    rough = GaussianMixture(4, means_init=START).fit(X.astype(np.float32))

    assert exact.transform(X).dtype == np.float64
    assert rough.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(rough.means_, exact.means_, atol=1e-4)
    shares = rough.transform(X.astype(np.float32))
    np.testing.assert_allclose(shares, exact.transform(X), atol=1e-3)


def test_a_seed_gives_the_same_and_finds_the_groups() -> None:
    first, again = (GaussianMixture(4, random_state=5).fit(X) for _ in range(2))

    np.testing.assert_array_equal(first.means_, again.means_)
    assert first.converged_
    likely = [np.square(first.means_ - centre).sum(axis=1).min() for centre in CENTRES]
    assert max(likely) < 0.2


def test_what_it_cannot_learn_from_is_refused() -> None:
    with pytest.raises(InputError, match="at most the number of rows, 3; got 4"):
        GaussianMixture(4).fit(X[:3])
    with pytest.raises(InputError, match=r"`means_init` must have shape \(4, 5\)"):
        GaussianMixture(4, means_init=START[:3]).fit(X)
    with pytest.raises(InputError, match="`min_variance` must be a finite number"):
        GaussianMixture(4, min_variance=-1.0).fit(X)
    with pytest.raises(InputError, match="`n_components` must be an integer"):
        GaussianMixture(0).fit(X)
    with pytest.raises(ValueError, match="contains NaN"):
        GaussianMixture(4).fit(np.where(X > 5, np.nan, X))
    with pytest.raises(ValueError, match="expecting 5 features"):
        GaussianMixture(4).fit(X).transform(X[:, :3])
    with pytest.raises(ValueError, match="expecting 5 features"):
        GaussianMixture(4).fit(X).transform(np.zeros((2, 5, 4)))
    with pytest.raises(NotFittedError):
        GaussianMixture(4).transform(X)


def test_more_components_than_a_sample_has_rows() -> None:
    X = np.random.default_rng(0).normal(size=(6000, 3))
    mixture = GaussianMixture(600, random_state=0, max_iter=2)
    few, way = Few(X[:512], None), Mixture()
    stats = stats_of(X, 6000, 4)
    assert way.speculate(mixture, few, stats) is None
    found = way.speculate(GaussianMixture(3, random_state=0), few, stats)
    assert found is not None
    assert found[0] > 1
