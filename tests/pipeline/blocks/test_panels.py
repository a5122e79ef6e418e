"""Large blocks panel by panel: the same results, with less memory on the way."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

import mlopt.pipeline.blocks.panels as panels_module
from mlopt.pipeline.blocks.panels import FEW_IMAGES, Chain, InPanels, panel_edges, panels
from mlopt.pipeline.fits.applying import apply_fitted
from mlopt.pipeline.fits.base import OnePass
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.tasks import fitting

X = np.random.default_rng(0).normal(size=(4000, 20)) + 50.0


def way_of(estimator: Any) -> OnePass:
    (way,) = ways_of(estimator)
    assert isinstance(way, OnePass)
    return way


@pytest.fixture(autouse=True)
def small_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels_module, "PANEL", 1 << 16)


def test_panels_cover_all_rows_once() -> None:
    edges = panel_edges([X])
    assert len(edges) > 5
    assert edges[0] == 0
    assert edges[-1] == len(X)
    y = np.arange(len(X))
    parts = list(panels(X, y, None))
    np.testing.assert_array_equal(np.concatenate([x for x, _, _ in parts]), X)
    np.testing.assert_array_equal(np.concatenate([y for _, y, _ in parts]), y)
    assert all(weight is None for _, _, weight in parts)


@pytest.mark.parametrize(
    "block",
    [X[:100], sp.csr_array(X), X.astype(object), list(X)],
    ids=lambda b: str(type(b)),
)
def test_what_is_small_or_no_plain_array_stays_whole(block: Any) -> None:
    ((whole,),) = panels(block)
    assert whole is block


def test_a_function_of_rows_gives_the_same_panel_by_panel() -> None:
    def function(a: Any, factor: float, b: Any) -> Any:
        assert len(a) < len(X)
        return a * factor + b[:, None]

    found = InPanels(function, (True, False, True))(X, 3.0, X[:, 0])
    np.testing.assert_array_equal(found, X * 3.0 + X[:, :1])


def test_results_that_are_no_arrays_or_differ_in_type_are_made_at_once() -> None:
    sparse = InPanels(sp.csr_array, (True,))(X)
    assert sparse.shape == X.shape

    def whole_if_all_whole(a: Any) -> Any:
        return a.astype(int) if len(a) == len(X) or a[0, 0] == X[0, 0] else a

    found = InPanels(whole_if_all_whole, (True,))(X)
    assert found.dtype.kind == "i"


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), MaxAbsScaler()])
def test_one_pass_fits_learn_the_same_from_panels(scaler: Any) -> None:
    way = way_of(scaler)
    found = way.finish(scaler, fitting.part("s", way, scaler, X, None, None))
    whole = way.finish(scaler, way.part(scaler, X, None, None))
    np.testing.assert_allclose(found.scale_, whole.scale_, rtol=1e-13)
    assert found.n_samples_seen_ == len(X)


def test_a_scaler_needs_memory_for_a_panel_and_not_for_another_block() -> None:
    big = np.ones((40_000, 20))
    way = way_of(StandardScaler())
    fitting.part("s", way, StandardScaler(), big[:2000], None, None)
    tracemalloc.start()
    fitting.part("s", way, StandardScaler(), big, None, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < big.nbytes / 4


SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    StandardScaler(with_mean=False, with_std=False),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_scaled_rows_are_scikit_learns_to_the_last_bit(scaler: Any, dtype: str) -> None:
    rows = X.astype(dtype)
    rows[3, 2] = np.nan
    scaler.fit(X)
    found, wanted = apply_fitted(scaler, rows, "transform"), scaler.transform(rows)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    assert not np.shares_memory(found, rows)


def test_scikit_learn_itself_says_what_is_wrong_with_rows() -> None:
    scaler = StandardScaler().fit(X)
    with pytest.raises(ValueError, match="infinity"):
        apply_fitted(scaler, np.where(X > 50.0, np.inf, X), "transform")
    with pytest.raises(ValueError, match="features"):
        apply_fitted(scaler, X[:, :3], "transform")


class Tenfold(Chain):
    """Ten values of each, and what it was given."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def __call__(self, X: Any) -> Any:
        return self.traced(X)[0]

    def traced(self, X: Any) -> tuple[Any, int]:
        self.rows.append(len(X))
        wide = np.repeat(X, 10, axis=2)
        return wide.sum(axis=(1, 2)), wide.nbytes


def test_images_that_grow_on_the_way_go_a_few_at_a_time() -> None:
    images = np.random.default_rng(0).normal(size=(500, 20, 200))
    function = Tenfold()
    found = InPanels(function, (True,))(images)

    assert np.allclose(found, 10 * images.sum(axis=(1, 2)))
    assert sum(function.rows) == 500
    assert len(function.rows) > 10
    grown = 10 * images[0].nbytes
    assert max(function.rows) <= max(FEW_IMAGES, panels_module.PANEL // grown)
