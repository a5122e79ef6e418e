"""Ways that need one layout get it, and what is computed stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
from tests.pipeline.graphs import DATA

import mlopt
from mlopt.costs import Fit
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.graph.operators import Convert, Learn
from mlopt.pipeline.planning.optimizer import is_same
from mlopt.pipeline.profiling.profile import Measure
from mlopt.pipeline.profiling.profile import Profile as Costs
from mlopt.pipeline.rules.base import Context, Draft
from mlopt.pipeline.rules.convert_layouts import convert_layouts
from mlopt.pipeline.rules.fuse_rows import fuse_rows
from mlopt.resources import Resources
from mlopt.stats import Stats

NOTHING = Fit(0.0, 0.0)


def learn(estimator: Any) -> Learn:
    ways = ways_of(estimator)
    return Learn("last", estimator, DATA, way=ways[0])


def converted(op: Learn, *, sparse: bool) -> Draft:
    stats = Stats(100, 3, sparse=sparse, density=0.1 if sparse else 1.0)
    costs = Costs(100, 1, 1, Resources(workers=1, threads=1))
    costs.measures[DATA.token] = Measure(NOTHING, NOTHING, stats)
    return convert_layouts(Draft((op,)), Context(costs, 0))


def test_a_way_that_needs_dense_rows_gets_them() -> None:
    op = learn(LinearDiscriminantAnalysis())
    draft = converted(op, sparse=True)
    (last,) = draft.sinks
    assert isinstance(last, Learn)
    assert isinstance(last.x, Convert)
    assert last.x.layout == "dense"
    assert is_same(Draft((op,)), draft)
    fused = fuse_rows(draft, Context(None, 0))
    assert is_same(draft, fused)


@pytest.mark.parametrize(
    ("estimator", "sparse"), [(LinearDiscriminantAnalysis(), False), (Ridge(), True)]
)
def test_nothing_is_converted_that_suits(estimator: Any, sparse: bool) -> None:
    op = learn(estimator)
    assert converted(op, sparse=sparse).sinks == (op,)


def test_sparse_rows_before_a_discriminant_are_fitted_as_dense_ones() -> None:
    rng = np.random.default_rng(0)
    X = sp.random_array((3000, 8), density=0.3, rng=rng, format="csr")
    y = (X[:, [0]].toarray().ravel() > 0.1).astype(int)
    steps = StandardScaler(with_mean=False), LinearDiscriminantAnalysis()
    found = mlopt.make_pipeline(*steps).fit(X, y)
    dense = mlopt.make_pipeline(*steps).fit(X.toarray(), y)
    np.testing.assert_allclose(found[-1].coef_, dense[-1].coef_, rtol=1e-6)
