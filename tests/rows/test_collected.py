"""A Dask collection in this process, without a worker that holds all of it."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client

from mlopt.cluster.threads import driving
from mlopt.rows.source import collected

X = np.arange(24.0).reshape(8, 3)
FRAME = pd.DataFrame({"a": range(8), "kind": pd.Categorical(list("abcaabbc"))})


def equal(one: Any, other: Any) -> bool:
    if sp.issparse(one):
        return bool(abs(one - other).max() == 0) and type(one) is type(other)
    return bool(one.equals(other) if hasattr(one, "equals") else np.array_equal(one, other))


@pytest.mark.parametrize(
    "data",
    [
        dd.from_pandas(FRAME, npartitions=4),
        dd.from_pandas(FRAME, npartitions=4)["a"],
        da.from_array(X, chunks=(3, 2)),
        da.from_array(X, chunks=(2, 3)).map_blocks(sp.csr_array, dtype=float),
    ],
    ids=["frame", "series", "array", "sparse"],
)
def test_chunks_are_put_together_by_no_task(data: Any) -> None:
    asked = []

    def get(graph: Any, keys: Any, **settings: Any) -> Any:
        found = dask.get(graph, keys, **settings)
        asked.append(len(found) if isinstance(found, list | tuple) else 1)
        return found

    expected = data.compute(scheduler="sync")
    with dask.config.set(scheduler=get):
        assert equal(collected(data), expected)
    assert asked == [int(np.prod(getattr(data, "numblocks", data.npartitions)))]


def test_other_data_are_given_back() -> None:
    assert collected(X) is X


@pytest.mark.cluster
def test_a_driver_gathers_on_its_own_client_whatever_another_task_has_set(
    shared_workers: str,
) -> None:
    data = da.from_array(X, chunks=(3, 2))
    with (
        Client(shared_workers, set_as_default=False) as client,
        driving(client),
        dask.config.set(scheduler="dask.distributed"),  # with no client that is active
    ):
        assert equal(collected(data), X)
