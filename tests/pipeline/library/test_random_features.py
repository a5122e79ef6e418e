"""Random features approximate their kernels, on every kind of input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from mlopt.gd.least_squares import Ridge
from mlopt.pipeline.library.random_features import RandomFeatures

Array = NDArray[Any]
KERNELS = {"gaussian": rbf_kernel, "cauchy": laplacian_kernel}


def points(n: int = 30, d: int = 4) -> Array:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)


@pytest.mark.parametrize("name", KERNELS)
def test_inner_products_approximate_the_kernel(name: str) -> None:
    X = points()
    model = RandomFeatures(40_000, kernel=name, gamma=0.3, random_state=0)
    Z = model.fit_transform(X)
    # 1 / sqrt(40000) is one standard error.
    np.testing.assert_allclose(Z @ Z.T, KERNELS[name](X, gamma=0.3), atol=0.03)


@pytest.mark.parametrize("name", KERNELS)
def test_scaling_the_data_does_not_change_the_features(name: str) -> None:
    X = points() + 5.0
    ours = RandomFeatures(50, kernel=name, random_state=0).fit(X)
    scaled = RandomFeatures(50, kernel=name, random_state=0).fit(100.0 * X)
    np.testing.assert_allclose(scaled.transform(100.0 * X), ours.transform(X), atol=1e-9)


def test_the_default_gamma_is_that_of_scikit_learns_svc() -> None:
    X = points(5000) + 1000.0
    expected = 1.0 / (X.shape[1] * X.var())
    assert RandomFeatures().fit(X).gamma_ == pytest.approx(expected)
    near = points(5000)
    assert RandomFeatures().fit(sparse.csr_array(near)).gamma_ == pytest.approx(
        1.0 / (near.shape[1] * near.var())
    )


def test_constant_data_have_a_gamma_too() -> None:
    assert RandomFeatures().fit(np.full((5, 2), 3.0)).gamma_ == 1.0


@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csc_matrix, pd.DataFrame])
def test_all_layouts_agree(layout: Any) -> None:
    X = points()
    model = RandomFeatures(20, random_state=0).fit(X)
    other = RandomFeatures(20, random_state=0).fit(layout(X))
    np.testing.assert_allclose(other.transform(layout(X)), model.transform(X), atol=1e-12)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_float32_stays_float32(layout: Any) -> None:
    X = points().astype(np.float32)
    model = RandomFeatures(20, random_state=0).fit(layout(X))
    assert model.random_weights_.dtype == np.float32
    Z = model.transform(layout(X))
    assert Z.dtype == np.float32
    double = RandomFeatures(20, random_state=0).fit(X.astype(float))
    np.testing.assert_allclose(Z, double.transform(X.astype(float)), atol=1e-5)


def test_a_float_counts_in_columns() -> None:
    assert RandomFeatures(2.5).fit(points(d=4)).transform(points(d=4)).shape == (30, 10)
    assert RandomFeatures(1).fit(points(d=4)).transform(points(d=4)).shape == (30, 1)


def test_many_rows_are_done_panel_by_panel() -> None:
    X = points(5000)
    model = RandomFeatures(300, random_state=0).fit(X)
    expected = np.cos(X @ model.random_weights_ + model.random_offset_) * np.sqrt(2 / 300)
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-12)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output_gives_data_frames(library: str) -> None:
    model = RandomFeatures(3).set_output(transform=library).fit(points())
    out = model.transform(points())
    assert isinstance(out, pd.DataFrame if library == "pandas" else pl.DataFrame)
    assert list(out.columns) == [f"randomfeatures{i}" for i in range(3)]


def test_dask_in_dask_out() -> None:
    da = pytest.importorskip("dask.array")
    X = points(200)
    lazy = da.from_array(X, chunks=(70, 2))
    model = RandomFeatures(20, random_state=0).fit(lazy)
    assert model.gamma_ == pytest.approx(RandomFeatures().fit(X).gamma_)
    out = model.transform(lazy)
    assert isinstance(out, da.Array)
    assert out.shape == (200, 20)
    np.testing.assert_allclose(out.compute(), model.transform(X))


def test_a_given_gamma_leaves_dask_data_unread() -> None:
    da = pytest.importorskip("dask.array")

    def fail(block: Array) -> Array:
        raise AssertionError("read")

    lazy = da.zeros((10, 3), chunks=5).map_blocks(
        fail, dtype=np.float32, meta=np.empty((0, 0))
    )
    model = RandomFeatures(4, gamma=1.0).fit(lazy)
    assert model.random_weights_.shape == (3, 4)


def test_a_linear_model_on_them_is_a_kernel_machine() -> None:
    X = points(500, 2)
    y = np.sin(3.0 * X[:, 0]) * X[:, 1]
    Z = RandomFeatures(300, gamma=1.0, random_state=0).fit_transform(X)
    assert Ridge(1e-3).fit(Z, y).score(Z, y) > 0.99


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RandomFeatures(0), "`n_components` must be an integer of at least 1"),
        (RandomFeatures(-0.5), "`n_components` must be a finite number, positive"),
        (RandomFeatures(gamma=0.0), "`gamma` must be a finite number, positive"),
        (RandomFeatures(gamma="auto"), "`gamma` must be a finite number, positive"),
        (RandomFeatures(kernel="rbf"), "`kernel` must be one of 'gaussian', 'cauchy'"),
    ],
)
def test_wrong_parameters_say_what_to_do(model: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit(points())
