"""`KMeans` on blocks of rows, beside scikit-learn's."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from tests.pipeline.fits.same import learnt

from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.pipeline.fits.models import clusters
from mlopt.pipeline.fits.registry import ways_of
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats

N, D, K = 900, 6, 5
_RANDOM = np.random.default_rng(11)
_MIDDLES = 4.0 * _RANDOM.normal(size=(K, D)) + 100.0
DENSE = _MIDDLES[_RANDOM.integers(0, K, N)] + 2.0 * _RANDOM.normal(size=(N, D))
SPARSE = sp.csr_array(np.where(_RANDOM.random((N, D)) < 0.5, 0.0, DENSE - 100.0))
WEIGHTS = _RANDOM.integers(0, 4, N).astype(float)
INIT = DENSE[_RANDOM.choice(N, K, replace=False)]


def ours(estimator: Any, X: Any, weight: Any = None, block_rows: int = 200) -> Any:
    (way,) = ways_of(estimator)
    where = Threads(2)
    rows = Rows.of(X, executor=where, block_rows=block_rows)
    fitted = way.fit(estimator, rows, None, weight)  # type: ignore[attr-defined]
    where.close()
    return fitted


def assert_same(found: Any, wanted: Any, rtol: float = 1e-7) -> None:
    assert type(found) is type(wanted)
    for name, value in learnt(wanted).items():
        mine = getattr(found, name)
        assert np.asarray(mine).dtype == np.asarray(value).dtype, name
        np.testing.assert_allclose(mine, value, rtol=rtol, atol=rtol, err_msg=name)


ESTIMATORS = [
    KMeans(K, init=INIT),
    KMeans(K, init=INIT, max_iter=3),
    KMeans(K, init=INIT, tol=0.0, algorithm="elkan"),
    KMeans(K, random_state=0),
    KMeans(K, random_state=3, n_init=4),
    KMeans(K, init="random", random_state=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["plain", "weighted"])
def test_the_same_start_ends_where_scikit_learn_does(estimator: Any, weight: Any) -> None:
    wanted = clone(estimator).fit(DENSE, sample_weight=weight)
    assert_same(ours(estimator, DENSE, weight), wanted)


@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["plain", "weighted"])
def test_sparse_rows_are_clustered_as_by_scikit_learn(weight: Any) -> None:
    estimator = KMeans(K, init=SPARSE[:K].toarray(), tol=0.0)
    wanted = clone(estimator).fit(SPARSE, sample_weight=weight)
    assert_same(ours(estimator, SPARSE, weight), wanted)


def test_float32_rows_give_float32_centres() -> None:
    X = (DENSE - 100.0).astype(np.float32)
    estimator = KMeans(K, init=X[:K], tol=0.0)
    found, wanted = ours(estimator, X), clone(estimator).fit(X)
    assert found.cluster_centers_.dtype == np.float32
    np.testing.assert_allclose(found.cluster_centers_, wanted.cluster_centers_, atol=1e-3)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_empty_clusters_get_the_rows_farthest_away(layout: Any) -> None:
    X = np.concatenate((DENSE[:300] - 100.0, [[60.0] * D, [-90.0] * D]))
    init = np.concatenate((X[:3], [[1e3] * D, [2e3] * D]))
    estimator = KMeans(K, init=init)
    found, wanted = ours(estimator, layout(X)), clone(estimator).fit(layout(X))
    np.testing.assert_allclose(found.inertia_, wanted.inertia_)
    np.testing.assert_allclose(
        sorted(found.cluster_centers_.tolist()), sorted(wanted.cluster_centers_.tolist())
    )


def test_many_rows_are_started_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "SAMPLE", 300)
    found = ours(KMeans(K, n_init=5, random_state=0), DENSE)
    wanted = KMeans(K, n_init=5, random_state=0).fit(DENSE)
    assert found.inertia_ <= 1.02 * wanted.inertia_


def test_labels_are_what_predict_says() -> None:
    found = pickle.loads(pickle.dumps(ours(KMeans(K, random_state=0), DENSE)))
    np.testing.assert_array_equal(found.predict(DENSE), found.labels_)
    assert found.n_features_in_ == D


def test_fewer_distinct_rows_than_clusters_are_warned_of() -> None:
    X = np.repeat(DENSE[:3], 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        ours(KMeans(K, init=X[:K]), X, block_rows=4)


def test_fewer_rows_than_clusters_are_an_error() -> None:
    with pytest.raises(InputError, match="at most the number of rows, 3"):
        ours(KMeans(K), DENSE[:3])


def test_a_start_made_by_a_function_and_batches_are_left_to_scikit_learn() -> None:
    (way,) = ways_of(KMeans())
    made = KMeans(K, init=lambda X, k, random_state: X[:k])
    assert "function" in way.refuses(made, Stats(N, D))
    assert not ways_of(MiniBatchKMeans())
    cost = way.cost(KMeans(), Stats(N, D), Resources())
    assert cost is not None
    assert cost.seconds(Resources()) > 0


def test_rows_far_from_zero_are_started_as_by_scikit_learn() -> None:
    far = DENSE / 20 + 1e7  # whose squares leave no digits to distances
    found = ours(KMeans(K, random_state=3), far)
    theirs = KMeans(K, random_state=3).fit(far)
    np.testing.assert_array_equal(found.labels_, theirs.labels_)
    np.testing.assert_allclose(found.cluster_centers_, theirs.cluster_centers_)
