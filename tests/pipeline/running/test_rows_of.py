"""Rows from a graph: kept or made anew, solvers find the same to the last bit."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.task_spec import Task
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.pipeline.blocks.cut import cut
from mlopt.pipeline.graph.operators import Source
from mlopt.pipeline.running.layers import Layers
from mlopt.pipeline.running.rows_of import rows_of
from mlopt.rows import Rows

_RANDOM = np.random.default_rng(1)
X = _RANDOM.normal(size=(6000, 10)) + 7.0
Y = X @ _RANDOM.normal(size=10)


def rows(data: Any, kept: bool, where: Threads) -> Rows:
    blocks = cut(data, where)
    op = Source("X", blocks.token, lazy=blocks.lazy)
    layers = Layers({op.token: blocks})
    keys = layers.rows(op)
    return rows_of(layers.graph().to_dict(), keys, where, kept=kept)


MODELS = [
    PCA(3, svd_solver="covariance_eigh"),
    TruncatedSVD(3, random_state=0),
    KMeans(4, random_state=0),
    Ridge(),
    LogisticRegression(),
]


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_kept_rows_and_rows_made_anew_give_the_same_bits(model: Any) -> None:
    lazy = da.from_array(X, chunks=(1000, 10))
    labels = np.median(Y) < Y if isinstance(model, LogisticRegression) else Y
    y = None if isinstance(model, PCA | TruncatedSVD | KMeans) else labels
    found = []
    for budget in (0, "1GiB"):
        steps = [("scale", StandardScaler()), ("model", model)]
        # ways are chosen by times, which differ from run to run
        pipe = mlopt.Pipeline(
            steps, memory_budget=budget, optimize={"without": ["choose_ways"]}
        )
        mlopt.pipeline.environment.environment.clear()
        fitted = pipe.fit(lazy, y)[-1]
        found.append({k: v for k, v in vars(fitted).items() if k.endswith("_")})
    for name, value in found[0].items():
        np.testing.assert_array_equal(value, found[1][name], err_msg=name)


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "anew"])
def test_rows_know_the_names_of_their_columns(kept: bool) -> None:
    where = Threads(1)
    named = rows(pd.DataFrame(X[:500], columns=list("abcdefghij")), kept, where)
    assert named.names == tuple("abcdefghij")
    assert rows(pd.DataFrame(X[:500]), kept, where).names is None
    assert rows(X[:500], kept, where).names is None
    where.close()


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "anew"])
def test_numbers_that_are_not_finite_are_named(kept: bool) -> None:
    where, bad = Threads(1), X.copy()
    bad[4321, 6] = np.nan
    with pytest.raises(InputError, match="column number 6 has NaN"):
        rows(bad, kept, where)
    where.close()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool"])
def test_rows_have_one_type_of_floats(dtype: str) -> None:
    where = Threads(1)
    found = rows(X.astype(dtype), False, where)
    assert found.dtype == ("float32" if dtype == "float32" else "float64")
    np.testing.assert_array_equal(found.collect(), X.astype(dtype))
    where.close()


class InFours(Threads):
    """Would have four blocks a task, as workers would."""

    def group(self, count: int, nbytes: int) -> int:
        return 4


def test_several_blocks_made_anew_share_a_shelf_and_sums_keep_their_bits() -> None:
    # A block without rows has no say, and no place in the tree of sums.
    edges = [0, 700, 700, 1500, 2600, 2601, 4000, 5000, 5500, 6000]
    graph = {
        ("x", i): Task(("x", i), _cut, a, b) for i, (a, b) in enumerate(pairwise(edges))
    }
    found = []
    for where in (Threads(1), InFours(2)):
        made = rows_of(graph, list(graph), where, kept=False).attach(y=Y)
        np.testing.assert_array_equal(made.collect(), X)
        np.testing.assert_array_equal(made.take([5999, 3, 650]), X[[5999, 3, 650]])
        found.append(made.map_reduce(lambda block: block.X.T @ block.extra["y"], np.add))
        sizes = made.sizes
        where.close()
    assert sizes == (4, 4)
    np.testing.assert_array_equal(*found)


def _cut(start: int, stop: int) -> np.ndarray:
    return X[start:stop]


def _turned(number: int) -> pd.DataFrame:
    frame = pd.DataFrame(X[:500], columns=list("abcdefghij"))
    return frame[frame.columns[::-1]] if number else frame


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "anew"])
def test_partitions_in_another_order_of_columns_are_refused(kept: bool) -> None:
    where = Threads(1)
    data = dd.from_map(_turned, [0, 1], meta=_turned(0)[:0])
    with pytest.raises(InputError, match="same columns"):
        rows(data, kept, where)
    where.close()
