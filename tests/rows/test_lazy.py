"""A shelf that makes its block whenever it is read."""

from __future__ import annotations

import pickle
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlopt.cluster import Memory, Threads, pack
from mlopt.rows import Rows
from mlopt.rows.block import Block, Narrow, inspect, narrowed, widened
from mlopt.rows.lazy import LazyShelf
from mlopt.rows.room import at_once
from mlopt.rows.source import Source

X = np.random.default_rng(0).normal(size=(50, 3))
made: list[int] = []


@dataclass(frozen=True)
class Make:
    start: int
    stop: int

    def __call__(self) -> Any:
        made.append(self.start)
        return X[self.start : self.stop]


def lazy_rows(where: Threads) -> Rows:
    edges = [(0, 20), (20, 21), (21, 50)]
    shelves = [LazyShelf((Make(a, b),), i) for i, (a, b) in enumerate(edges)]
    found = tuple(inspect(X[a:b]) for a, b in edges)
    held = tuple(where.put(shelf) for shelf in shelves)
    return Rows.on_shelves(Source(held, (1, 1, 1), found, None), where)


def test_a_lazy_shelf_looks_like_a_tuple_of_blocks() -> None:
    shelf = LazyShelf((Make(0, 20), Make(20, 50)), 4)
    first, block = shelf
    np.testing.assert_array_equal(block.X, X[20:50])
    assert (first.index, block.index, len(shelf)) == (4, 5, 2)
    assert (shelf[0].rows, shelf[-1].rows) == (20, 30)
    assert len(shelf[:1]) == 1
    assert shelf[2:] == ()


def test_a_lazy_shelf_makes_its_block_at_every_read_of_its_features() -> None:
    shelf = LazyShelf((Make(0, 5),), 0, (({"y": np.ones(5)},),))
    made.clear()
    for (block,) in (shelf, shelf):
        assert block.X is block.X
    assert made == [0, 0]
    assert shelf[0].extra["y"].sum() == 5  # looks beside them only
    assert made == [0, 0]


def test_whole_numbers_wait_in_a_byte_and_are_what_they_were() -> None:
    folds, shares = np.array([0.0, 1.0, 2.0], np.float32), np.array([0.5, np.nan])
    narrow = narrowed(folds)
    assert isinstance(narrow, Narrow)
    assert narrow.values.nbytes == 3
    assert widened(narrow).dtype == np.float32
    np.testing.assert_array_equal(widened(narrow), folds)
    assert narrowed(shares) is shares
    assert isinstance(narrowed(np.array([-128.0, 127.0])), Narrow)
    assert not isinstance(narrowed(np.array([0.0, 128.0])), Narrow)
    for beside in ({"y": narrow}, pack({"y": narrow})):
        lazy = LazyShelf((Make(0, 3),)).beside([beside])
        np.testing.assert_array_equal(lazy[0].extra["y"], folds)


def test_folds_and_labels_wait_in_two_bits_beside_lazy_rows() -> None:
    folds = np.random.default_rng(0).integers(0, 2, 100_000).astype(float)
    shelf = LazyShelf((Make(0, 3),)).beside([pack({"weights": narrowed(folds)})])
    assert sys.getsizeof(shelf) < 100_000 / 4
    np.testing.assert_array_equal(shelf[0].extra["weights"], folds)


def test_what_is_beside_lazy_rows_is_made_once_and_stays() -> None:
    first = LazyShelf((Make(0, 5),)).beside([{"y": np.ones(5)}])
    second = first.beside([{"w": np.zeros(5)}])
    assert set(first[0].extra) == {"y"}
    assert set(second[0].extra) == {"y", "w"}
    assert set(pickle.loads(pickle.dumps(second))[0].extra) == {"y", "w"}


def test_lazy_rows_do_all_that_rows_do() -> None:
    where = Threads(2)
    rows, there = lazy_rows(where), Rows.of(X, executor=where, block_rows=17)
    np.testing.assert_array_equal(rows.collect(), there.collect())
    picks = [49, 0, 20, 20, 3]
    np.testing.assert_array_equal(rows.take(picks), there.take(picks))
    both = rows.attach(y=np.arange(50.0)).compute_beside(lambda b: {"z": b.extra["y"] * 2})
    total = both.map_reduce(lambda b: b.extra["z"] @ b.X, np.add)
    np.testing.assert_allclose(total, 2 * np.arange(50.0) @ X)
    counts = rows.fold(lambda block, state: state + block.rows, [0, 100])
    assert counts == [50, 150]
    where.close()


def test_rows_in_doubles_are_the_same_rows_held_or_lazy() -> None:
    where = Threads(2)
    single = X.astype(np.float32)
    shelf = where.put(LazyShelf((single.copy,)))
    lazy = Rows.on_shelves(Source((shelf,), (1,), (inspect(single),), None), where)
    for rows in (lazy, Rows.of(single, executor=where, block_rows=17)):
        double = rows.attach(y=np.arange(50.0)).in_doubles()
        np.testing.assert_array_equal(double.collect(), single.astype(np.float64))
        assert double.dtype == double.collect().dtype == np.float64
        assert rows.collect().dtype == np.float32
        assert double.map_reduce(lambda b: b.extra["y"].sum(), np.add) == 1225.0
    where.close()


def test_no_more_blocks_than_fit_are_worked_on_at_a_time() -> None:
    where, lock = Threads(3), threading.Lock()
    now, most = 0, 0

    def work(block: Block) -> int:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)  # in which others would begin
        with lock:
            now -= 1
        return block.rows

    shelves = [where.put(LazyShelf((Make(i, i + 5),), i, at_once=2)) for i in range(9)]
    found = (inspect(X[:5]),) * 9
    rows = Rows.on_shelves(Source(tuple(shelves), (1,) * 9, found, None), where)
    assert rows.map(work) == [5] * 9
    assert most == 2
    where.close()


def test_workers_with_little_room_hold_few_blocks_at_a_time() -> None:
    # Dask pauses the second at 800 bytes: 310 are left, for one block of 100 and two more.
    workers = [Memory(4000, 500, 4), Memory(1000, 490, 4)]
    assert [at_once(workers, nbytes) for nbytes in (10, 25, 33, 100, 1000)] == [
        None, None, 3, 1, 1,
    ]  # fmt: skip
    assert at_once([], 100) is None
