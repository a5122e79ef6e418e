"""Summaries for quantiles: small data exactly, large data within the bound."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from sklearn.preprocessing import KBinsDiscretizer
from tests.pipeline.fits.cases import Data
from tests.pipeline.fits.same import merged, parts

from mlopt.pipeline.fits.base import OnePass
from mlopt.pipeline.fits.numbers import quantiles
from mlopt.pipeline.fits.numbers.quantiles import Sketch
from mlopt.pipeline.fits.registry import ways_of

Array = NDArray[Any]


def shuffled(n: int, seed: int = 0) -> Array:
    """Two columns of the ranks 0 to n - 1, one of them in order."""
    return np.stack((np.random.default_rng(seed).permutation(n), np.arange(n)), axis=1)


def summary(X: Array, block: int, size: int) -> Sketch:
    found = Sketch.of(X[:block], size)
    for start in range(block, len(X), block):
        found = found.merged(Sketch.of(X[start : start + block], size), size)
    return found


def worst_rank_error(sketch: Sketch, n: int) -> float:
    values, weights = sketch.points()
    errors = []
    for column in values.T:
        order = np.argsort(column, kind="stable")
        ranks = np.searchsorted(column[order], np.arange(n), side="right")
        below = np.concatenate(([0.0], np.cumsum(weights[order])))[ranks]
        errors.append(np.abs(below - np.arange(1, n + 1)).max())
    return float(max(errors))


@settings(max_examples=30)
@given(st.integers(1, 3000), st.integers(1, 500), st.sampled_from([8, 16, 64]))
def test_ranks_are_within_the_bound(n: int, block: int, size: int) -> None:
    found = summary(shuffled(n, seed=n), block, size)
    assert found.points()[1].sum() == n
    assert all(len(level) < size for level in found.levels)
    share = n / size
    bound = share * (1 + np.log2(share)) if share >= 1 else 0.0
    assert worst_rank_error(found, n) <= bound


def test_fewer_rows_than_a_level_are_all_kept() -> None:
    X = shuffled(60)
    found = summary(X, 7, 64)
    assert found.exact
    np.testing.assert_array_equal(found.points()[0], X)


def test_the_same_blocks_give_the_same_summary() -> None:
    first, second = (summary(shuffled(2000), 130, 64) for _ in range(2))
    np.testing.assert_array_equal(first.points()[0], second.points()[0])


@pytest.mark.parametrize("method", ["averaged_inverted_cdf", "inverted_cdf", "linear"])
def test_bins_of_many_rows_hold_nearly_equal_counts(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantiles, "SIZE", 256)
    n = 20_000
    given = KBinsDiscretizer(5, encode="ordinal", quantile_method=method, subsample=None)
    data = Data(shuffled(n).astype(float))
    (way,) = ways_of(KBinsDiscretizer())
    assert isinstance(way, OnePass)
    ours = way.finish(given, merged(way, parts(way, given, data, range(900, n, 900))))
    assert repr(ours.get_params()) == repr(given.get_params())
    bound = n / 256 * (1 + np.log2(n / 256))
    for edges in ours.bin_edges_:
        assert edges[0] == 0
        assert edges[-1] == n - 1
        np.testing.assert_allclose(edges, np.linspace(0, n - 1, 6), atol=bound + 2)
