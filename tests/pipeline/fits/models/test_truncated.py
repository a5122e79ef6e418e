"""`TruncatedSVD` on blocks of rows, beside scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from tests.pipeline.fits.same import learnt

from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.pipeline.fits.base import ManyPasses
from mlopt.pipeline.fits.registry import ways_of
from mlopt.rows import Rows
from mlopt.stats import Stats

_RANDOM = np.random.default_rng(3)


def matrix(n: int, d: int, layout: str, dtype: str = "float64") -> Any:
    low = _RANDOM.normal(size=(n, 8)) * 0.6 ** np.arange(8) @ _RANDOM.normal(size=(8, d))
    X = low + 0.01 * _RANDOM.normal(size=(n, d)) + 0.3
    if layout == "sparse":
        return sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0).astype(dtype))
    return X.astype(dtype)


def ways(estimator: Any, n: int = 400, d: int = 30) -> list[ManyPasses]:
    found = [way for way in ways_of(estimator) if not way.refuses(estimator, Stats(n, d))]
    return [way for way in found if isinstance(way, ManyPasses)]


def ours(estimator: Any, X: Any) -> Any:
    (way,) = ways(estimator, *X.shape)
    where = Threads(2)
    fitted = way.fit(estimator, Rows.of(X, executor=where, block_rows=90), None, None)
    where.close()
    return fitted


@pytest.mark.parametrize("algorithm", ["randomized", "arpack"])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("shape", [(400, 30), (60, 150)], ids=["tall", "wide"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_truncated_svd_is_that_of_scikit_learn(
    algorithm: str, layout: str, shape: tuple[int, int], dtype: str
) -> None:
    X = matrix(*shape, layout, dtype)
    estimator = TruncatedSVD(4, algorithm=algorithm, n_iter=12, random_state=5)
    found, wanted = ours(estimator, X), clone(estimator).fit(X)
    rtol = 1e-6 if dtype == "float64" else 2e-3
    for name, value in learnt(wanted).items():
        mine = getattr(found, name)
        assert np.asarray(mine).dtype == np.asarray(value).dtype, name
        scale = float(np.abs(value).max())
        np.testing.assert_allclose(mine, value, rtol=rtol, atol=rtol * scale, err_msg=name)
    np.testing.assert_allclose(found.transform(X), wanted.transform(X), atol=20 * rtol)


def test_wide_rows_are_sketched_with_scikit_learns_own_numbers() -> None:
    X = _RANDOM.normal(size=(50, 200))
    estimator = TruncatedSVD(3, n_iter=1, n_oversamples=2, random_state=0)
    found, wanted = ours(estimator, X), clone(estimator).fit(X)
    np.testing.assert_allclose(found.components_, wanted.components_, atol=1e-8)


def test_tall_rows_are_approximated_no_worse_than_by_scikit_learn() -> None:
    X = _RANDOM.normal(size=(500, 60))
    estimator = TruncatedSVD(5, n_iter=2, random_state=0)
    exact = np.linalg.svd(X)[1][:5]
    found, wanted = ours(estimator, X), clone(estimator).fit(X)
    ours_off, theirs_off = exact - found.singular_values_, exact - wanted.singular_values_
    assert (ours_off <= theirs_off + 1e-9).all()


@pytest.mark.parametrize("algorithm", ["randomized", "arpack"])
def test_only_the_algorithm_that_is_asked_for_runs(algorithm: str) -> None:
    (way,) = ways(TruncatedSVD(4, algorithm=algorithm))
    assert way.name == algorithm


def test_more_components_than_columns_are_an_error() -> None:
    X = matrix(400, 30, "dense")
    with pytest.raises(InputError, match="at most the 30 features"):
        ours(TruncatedSVD(31), X)


def test_shares_of_no_variance_are_no_numbers() -> None:
    estimator = TruncatedSVD(1, random_state=0)
    for X in (np.zeros((400, 2)), np.full((400, 2), 3.5)):
        with pytest.warns(RuntimeWarning, match=r"divide"):
            wanted = clone(estimator).fit(X).explained_variance_ratio_
        with pytest.warns(RuntimeWarning, match=r"divide"):
            found = ours(estimator, X).explained_variance_ratio_
        assert not np.isfinite(wanted).any()
        assert not np.isfinite(found).any()
