"""Fisher vectors and components of descriptors, beside loops and scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from mlopt.errors import InputError
from mlopt.pipeline.library.column_pca import ColumnPCA
from mlopt.pipeline.library.descriptors import sample_rows
from mlopt.pipeline.library.fisher import FisherVector, Sizes, costs
from mlopt.pipeline.library.mixture import GaussianMixture
from mlopt.pipeline.library.signal import NormalizeRows, SignedHellinger
from mlopt.resources import Resources
from mlopt.rows import Rows

RNG = np.random.default_rng(0)
X = RNG.normal(1.0, 2.0, (30, 11, 4)) + RNG.integers(0, 3, (30, 11, 1)) * [3, 0, -2, 1]


def density(x: Any, mean: Any, variance: Any) -> float:
    found = 1.0
    for value, m, v in zip(x, mean, variance, strict=True):
        found *= np.exp(-((value - m) ** 2) / (2 * v)) / np.sqrt(2 * np.pi * v)
    return float(found)


def by_hand(descriptors: Any, model: Any) -> list[float]:
    """The Fisher vector of one image, number by number."""
    w, means, variances = model.weights_, model.means_, model.covariances_
    k, (m, d) = len(w), descriptors.shape
    by_mean, by_variance = np.zeros((k, d)), np.zeros((k, d))
    for x in descriptors:
        likely = [w[j] * density(x, means[j], variances[j]) for j in range(k)]
        for j in range(k):
            share = likely[j] / sum(likely)
            for i in range(d):
                apart = (x[i] - means[j, i]) / np.sqrt(variances[j, i])
                by_mean[j, i] += share * apart / np.sqrt(w[j]) / m
                by_variance[j, i] += share * (apart**2 - 1) / np.sqrt(2 * w[j]) / m
    return [*by_mean.ravel(), *by_variance.ravel()]


@pytest.mark.parametrize("solver", ["images", "batch", "auto"])
def test_vectors_are_those_of_the_formulas(solver: str) -> None:
    fisher = FisherVector(3, solver=solver, random_state=0).fit(X)
    found = fisher.transform(X)

    assert found.shape == (30, 2 * 3 * 4)
    theirs = [by_hand(image, fisher.mixture_) for image in X[:8]]
    np.testing.assert_allclose(found[:8], theirs, atol=1e-10)


def test_they_are_the_slopes_of_the_likelihood() -> None:
    """By finite differences: the Fisher matrix is that of the paper's approximation."""
    fisher = FisherVector(3, random_state=0).fit(X)
    model, step = fisher.mixture_, 1e-5
    found = fisher.transform(X[:1]).reshape(2, 3, 4)
    for j, i in ((0, 0), (1, 3), (2, 2)):
        spread, root = np.sqrt(model.covariances_[j, i]), np.sqrt(model.weights_[j])
        slopes = []
        for name, scale in (("means_", spread), ("covariances_", 2 * spread**2)):
            values = getattr(model, name)
            kept, scores = values[j, i], []
            for sign in (1, -1):
                values[j, i] = kept + sign * step * scale
                scores.append(model.score(X[0]))
            values[j, i] = kept
            slopes.append((scores[0] - scores[1]) / (2 * step))
        assert found[0, j, i] == pytest.approx(slopes[0] / root, abs=1e-6)
        assert found[1, j, i] == pytest.approx(slopes[1] / root / np.sqrt(2), abs=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_component_without_weight_has_zeros(dtype: str) -> None:
    twice = np.repeat([[0.0, 1.0], [5.0, -5.0]], 30, axis=0).reshape(6, 10, 2)
    fisher = FisherVector(3, random_state=0).fit(twice.astype(dtype))
    found = fisher.transform(twice.astype(dtype)).reshape(6, 2, 3, 2)

    assert (fisher.mixture_.weights_ == 0).sum() == 1
    assert not found[:, :, fisher.mixture_.weights_ == 0].any()
    assert np.isfinite(found).all()


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 6), st.integers(1, 9), st.integers(1, 5), st.integers(1, 4))
def test_both_ways_agree(n: int, m: int, d: int, k: int) -> None:
    data = np.random.default_rng(n * m).normal(size=(n + 4, m, d))
    alone, together = (
        FisherVector(k, solver=solver, random_state=0, max_iter=5).fit_transform(data)
        for solver in ("images", "batch")
    )
    np.testing.assert_allclose(alone, together, atol=1e-10)
    assert np.isfinite(alone).all()


def test_small_images_go_together_and_large_ones_alone() -> None:
    fisher = FisherVector()

    assert fisher.choose(Sizes(10_000, 9, 32, 16)) == "batch"
    assert fisher.choose(Sizes(100, 5000, 64, 64)) == "images"
    assert FisherVector(solver="batch").choose(Sizes(100, 5000, 64, 64)) == "batch"
    found = costs(Sizes(100, 500, 64, 64), Resources())
    twice = costs(Sizes(200, 500, 64, 64), Resources())
    for name, cost in found.items():
        ratio = twice[name].seconds(Resources()) / cost.seconds(Resources())
        assert ratio == pytest.approx(2.0)


def test_the_mixture_is_that_of_the_sampled_descriptors() -> None:
    fisher = FisherVector(3, n_samples=100, random_state=4).fit(X)
    few = sample_rows(Rows.of(X.reshape(-1, 4)), 100, 4)
    alone = GaussianMixture(3, random_state=4).fit(few)

    assert len(np.unique(few, axis=0)) == 100
    np.testing.assert_array_equal(fisher.mixture_.means_, alone.means_)
    everything = sample_rows(Rows.of(X.reshape(-1, 4)), 330, 4)
    np.testing.assert_array_equal(everything, X.reshape(-1, 4))


def test_improved_vectors_have_length_one() -> None:
    vectors = FisherVector(3, random_state=0).fit_transform(X)
    found = NormalizeRows().fit_transform(SignedHellinger().fit_transform(vectors))
    expected = np.sign(vectors) * np.sqrt(np.abs(vectors))
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)

    np.testing.assert_allclose(found, expected)


def test_components_are_those_of_all_descriptors() -> None:
    ours = ColumnPCA(2, random_state=0).fit(X)
    theirs = PCA(2).fit(X.reshape(-1, 4))
    signs = np.sign((ours.pca_.components_ * theirs.components_).sum(axis=1))

    np.testing.assert_allclose(
        ours.transform(X), theirs.transform(X.reshape(-1, 4)).reshape(30, 11, 2) * signs
    )
    white = ColumnPCA(2, whiten=True, random_state=0).fit_transform(X).reshape(-1, 2)
    np.testing.assert_allclose(np.cov(white.T), np.eye(2), atol=1e-10)


@pytest.mark.parametrize(
    "step", [FisherVector(3, random_state=0), ColumnPCA(2, random_state=0)]
)
def test_float32_stays(step: Any) -> None:
    exact = step.fit(X).transform(X)
    rough = step.transform(X.astype(np.float32))

    assert rough.dtype == np.float32
    assert np.abs(rough - exact).max() < 1e-4
    assert step.fit(X.astype(np.float32)).transform(X.astype(np.float32)).dtype == "f4"


@pytest.mark.parametrize("step", [FisherVector(3), ColumnPCA(2)])
def test_what_are_no_descriptors_is_refused(step: Any) -> None:
    with pytest.raises(NotFittedError):
        step.transform(X)
    step.fit(X)
    with pytest.raises(InputError, match="must hold the descriptors of each image"):
        step.transform(X[0])
    with pytest.raises(ValueError, match="expecting 4 features"):
        step.transform(X[:, :, :3])
    with pytest.raises(ValueError, match="contains NaN"):
        step.transform(np.full((2, 3, 4), np.nan))


def test_parameters_are_checked() -> None:
    with pytest.raises(InputError, match="`solver` must be one of 'auto', 'images'"):
        FisherVector(solver="gemm").fit(X)
    with pytest.raises(InputError, match="`n_samples` must be an integer"):
        FisherVector(n_samples=0).fit(X)
    with pytest.raises(InputError, match="at most the number of rows, 2; got 3"):
        FisherVector(3, n_samples=2).fit(X)
    with pytest.raises(InputError, match="n_components"):
        ColumnPCA(7).fit(X)
