"""Any input cut into blocks of rows."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mlopt.cluster import Memory, Threads
from mlopt.errors import InputError
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.blocks.cut import Blocks, ask, cut

X = np.random.default_rng(0).normal(size=(9000, 12))


def together(blocks: Blocks, where: Threads) -> Any:
    handles = where.run_graph(dict(blocks.tasks), list(blocks.keys))
    return tables.stack([where.result(handle) for handle in handles])


@pytest.fixture
def where() -> Any:
    threads = Threads(1)
    yield threads
    threads.close()


@pytest.mark.parametrize(
    "data",
    [X, sp.csr_array(X), pd.DataFrame(X), [str(i) for i in range(9000)]],
    ids=["array", "sparse", "frame", "documents"],
)
def test_blocks_put_together_are_the_data(data: Any, where: Threads) -> None:
    blocks = cut(data, where)
    assert blocks.lengths is not None
    assert sum(blocks.lengths) == 9000
    assert blocks.count == len(blocks.lengths) > 1
    found = together(blocks, where)
    same = found.toarray() if sp.issparse(found) else np.asarray(found)
    np.testing.assert_array_equal(same, X if sp.issparse(data) else np.asarray(data))


def test_chunks_of_columns_are_joined_and_chunks_of_rows_stay(where: Threads) -> None:
    blocks = cut(da.from_array(X, chunks=(2000, 5)), where)
    assert blocks.lazy
    assert blocks.lengths == (2000, 2000, 2000, 2000, 1000)
    np.testing.assert_array_equal(together(blocks, where), X)


def test_partitions_of_a_frame_are_counted_by_nobody(where: Threads) -> None:
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(12)])
    blocks = cut(dd.from_pandas(frame, npartitions=3), where)
    assert blocks.lengths is None
    assert blocks.count == 3
    np.testing.assert_array_equal(together(blocks, where), X)


def test_no_rows_and_other_lengths_are_errors(where: Threads) -> None:
    with pytest.raises(InputError, match="at least one row"):
        cut(X[:0], where)
    with pytest.raises(InputError, match="same number of rows, got 7 and 9000"):
        cut(X, where, name="y", lengths=[3, 4])


def test_blocks_that_no_worker_can_hold_are_refused_with_their_bytes(
    where: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    where.memory = 600 << 20
    worker = Memory(600 << 20, 330_000_000, 1)
    monkeypatch.setattr(where, "memories", lambda load: [worker])
    lazy = da.zeros((100_000, 100), chunks=(50_000, 100))
    cut(lazy, where)
    with pytest.raises(InputError, match=r"\(160000000 bytes\).*rechunk"):
        cut(da.zeros((400_000, 100), chunks=(200_000, 100)), where)


def test_data_in_memory_are_given_away_block_by_block_when_they_are_read(
    where: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []

    def put(value: Any, put: Any = where.put) -> Any:
        if isinstance(value, np.ndarray):
            given.append(len(value))
        return put(value)

    monkeypatch.setattr(where, "put", put)
    blocks = cut(X, where, lengths=[4000, 5000])
    assert given == []
    assert ask(blocks, where, "count", tables.count_rows, {1: ()}) == [5000]
    assert given == [5000]
    graph = blocks.graph(range(2))
    assert given == [5000, 4000]
    assert blocks.given not in graph
    assert blocks.tasks[blocks.given].result() is X
