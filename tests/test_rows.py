"""Rows: blocks that depend on the data alone, sums that stay, clear refusals."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.rows import Block, Rows, block
from mlopt.rows.block import block_count, boundaries
from mlopt.rows.source import shelf_sizes

ONE = Threads(1)
SEED = np.random.default_rng(0)
X = SEED.normal(size=(9_000, 12))
S = sp.random_array((9_000, 12), density=0.2, format="csr", rng=SEED)


def gram(block: Block) -> Any:
    return block.X.T @ block.X


def spread(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if sp.issparse(values) else values)


class Shelves(Threads):
    """Threads that keep neighbouring blocks together, as a cluster does."""

    def __init__(self, size: int) -> None:
        super().__init__(2)
        self.size = size

    def group(self, count: int, nbytes: int) -> int:
        del count, nbytes
        return self.size


@pytest.mark.parametrize("data", [X, X.astype("f4"), S, S.astype("f4")])
def test_sums_do_not_depend_on_threads_or_shelves(data: Any) -> None:
    expected = Rows.of(data, executor=ONE).map_reduce(gram, np.add)
    for where in (Threads(2), Threads(5), Shelves(2), Shelves(4), Shelves(64)):
        found = Rows.of(data, executor=where).map_reduce(gram, np.add)
        assert np.array_equal(spread(found), spread(expected))
        assert found.dtype == data.dtype


@given(st.integers(1, 10**9), st.integers(0, 10**13))
def test_block_counts_are_powers_of_two_and_bounded(n: int, nbytes: int) -> None:
    count = block_count(n, nbytes)
    assert count & (count - 1) == 0
    assert 1 <= count <= n
    if count > 64:
        assert nbytes / count > 128 * 2**20 or count == n
    assert nbytes / count <= 256 * 2**20 or count * 2 > n
    assert count >= 2 or n < 4096 or nbytes < 2


@pytest.mark.parametrize(
    ("n", "columns", "count"),
    [(5000, 10, 1), (20_000, 8, 2), (40_000, 20, 4), (150_000, 8, 8), (20_000, 100, 8)],
)
def test_a_block_is_worth_handing_over(
    monkeypatch: pytest.MonkeyPatch, n: int, columns: int, count: int
) -> None:
    monkeypatch.setattr(block, "_LEAST", block.MEGABYTE)
    assert block_count(n, 8 * n * columns) == count


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_blocks_cover_all_rows_and_are_even(n: int, block_rows: int) -> None:
    lengths = np.diff(boundaries(n, 8 * n, block_rows))
    assert lengths.sum() == n
    assert 0 < lengths.max() <= block_rows
    assert lengths.max() - lengths.min() <= 1
    assert sum(shelf_sizes(len(lengths), 4)) == len(lengths)


def test_blocks_of_an_array_are_views_of_it() -> None:
    rows = Rows.of(X, executor=ONE)
    assert len(rows.lengths) > 1
    assert all(rows.map(lambda block: np.shares_memory(block.X, X)))
    shared = Rows.of(S, executor=ONE).map(
        lambda block: np.shares_memory(block.X.data, S.data)
    )
    assert all(shared)


def test_blocks_know_their_place() -> None:
    rows = Rows.of(X, executor=Shelves(2))
    places = rows.map(lambda block: (block.index, block.rows))
    assert places == [(index, length) for index, length in enumerate(rows.lengths)]
    assert np.array_equal(
        rows.first(lambda block, factor: block.X[0] * factor, 2), 2 * X[0]
    )


def test_attached_arrays_are_beside_their_rows() -> None:
    rows = Rows.of(X, executor=Shelves(2)).attach(y=X[:, 3]).attach(weights=X[:, :2])

    def differs(block: Block) -> float:
        y, weights = block.extra["y"], block.extra["weights"]
        return float(abs(block.X[:, 3] - y).max() + abs(block.X[:, :2] - weights).max())

    assert rows.map(differs) == [0.0] * len(rows.lengths)
    assert all(rows.map(lambda block: block.extra["y"].flags.c_contiguous))


def test_attached_arrays_must_have_the_length_of_X() -> None:
    rows = Rows.of(X, executor=ONE)
    with pytest.raises(InputError, match="`y` must have one entry for each of the 9000"):
        rows.attach(y=np.zeros(8_999))
    with pytest.raises(InputError, match="`y`"):
        rows.attach(y=3.0)


def test_a_fold_equals_a_loop_over_the_rows() -> None:
    def visit(block: Block, state: float, rate: float) -> float:
        for value in block.X[:, 0]:
            state += rate * (value - state)
        return state

    expected = [0.0, 5.0]
    for value in X[:, 0]:
        expected = [state + 0.1 * (value - state) for state in expected]
    for where in (ONE, Shelves(4)):
        assert Rows.of(X, executor=where).fold(visit, [0.0, 5.0], 0.1) == expected


@pytest.mark.parametrize("data", [X, S])
def test_rows_in_another_order_are_numbered_as_they_are_visited(data: Any) -> None:
    for where in (ONE, Shelves(2)):
        rows = Rows.of(data, executor=where, block_rows=700).attach(number=np.arange(9_000))
        turned = rows.in_order(range(len(rows.shelves))[::-1])
        numbers = np.concatenate(turned.map(lambda block: block.extra["number"]))
        whole = spread(data)[numbers]
        assert np.array_equal(spread(turned.collect()), whole)
        for chosen in (np.arange(9_000), np.array([0, 8_999, 1, 4_000, 4_000])):
            assert np.array_equal(spread(turned.take(chosen)), whole[chosen])
        firsts = [np.array([0])] * len(turned.lengths)
        assert np.array_equal(spread(turned.pick(firsts)), whole[list(turned.starts)])


@pytest.mark.parametrize("data", [X, X.astype("f4"), S])
def test_collect_and_take_return_the_rows_asked_for(data: Any) -> None:
    rows = Rows.of(data, executor=Shelves(2))
    assert np.array_equal(spread(rows.collect()), spread(data))
    for chosen in ([8_999, 0, 17, 17, 4_500], np.arange(9_000)[::-7], []):
        taken = rows.take(chosen)
        index = np.asarray(chosen, dtype=int)
        assert np.array_equal(spread(taken), spread(data)[index])
        assert taken.dtype == data.dtype
        assert sp.issparse(taken) == sp.issparse(data)
    for outside in ([9_000], [-1]):
        with pytest.raises(InputError, match="indices"):
            rows.take(outside)


def test_too_much_to_collect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlopt.rows.rows.memory_limit", lambda: 1000)
    with pytest.raises(InputError, match="map_reduce"):
        Rows.of(X, executor=ONE).collect()


TABLE = pd.DataFrame({"a": np.arange(5.0), "b": np.arange(5), "c": np.arange(5) % 2 == 0})
VALUES = TABLE.to_numpy(dtype=float)


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (VALUES, "f8"),
        (np.asfortranarray(VALUES), "f8"),
        (np.repeat(VALUES, 2, axis=1)[:, ::2], "f8"),
        (VALUES.astype("f4"), "f4"),
        (VALUES.astype("f2"), "f8"),
        (VALUES.astype(np.longdouble), "f8"),
        (VALUES.astype(">f8"), "f8"),
        (VALUES.astype("i4"), "f8"),
        (VALUES.astype("u1"), "f8"),
        (VALUES.tolist(), "f8"),
        (sp.coo_matrix(VALUES), "f8"),
        (sp.csc_array(VALUES.astype("f4")), "f4"),
        (sp.csr_matrix(VALUES.astype("i8")), "f8"),
        (TABLE, "f8"),
        (TABLE.astype("f4"), "f4"),
        (TABLE.convert_dtypes(), "f8"),
        (TABLE.convert_dtypes(dtype_backend="pyarrow"), "f8"),
        (pl.from_pandas(TABLE), "f8"),
        (TABLE.astype("f4").assign(c=TABLE["c"]), "f4"),
        (TABLE.astype("Float32"), "f8"),
        (TABLE.astype(object), "f8"),
        (TABLE.assign(b=TABLE["b"].astype("category")), "f8"),
        (TABLE.assign(a=TABLE["a"].astype(pd.SparseDtype("f8", 0.0))), "f8"),
        (pl.from_pandas(TABLE.astype("f4")), "f8"),
        (pa.Table.from_pandas(TABLE), "f8"),
        (pa.table({"a": VALUES[:, 0].astype("f2")}), "f8"),
    ],
)
def test_every_kind_of_input_gives_the_same_floats(data: Any, dtype: str) -> None:
    rows = Rows.of(data, executor=ONE)
    found = spread(rows.collect())
    assert found.dtype == rows.dtype == np.dtype(dtype)
    assert found.dtype.isnative
    assert np.array_equal(found, VALUES[:, : rows.d])
    assert rows.sparse == sp.issparse(data)
    assert (rows.n, rows.names is not None) == (5, hasattr(data, "columns"))
    assert all(rows.map(lambda b: rows.sparse or b.X.flags.c_contiguous))
    wanted = Rows.of(data, executor=ONE, dtype="float32")
    assert wanted.collect().dtype == np.float32


def test_names_are_kept_as_text() -> None:
    assert Rows.of(TABLE, executor=ONE).names == ("a", "b", "c")
    assert Rows.of(pd.DataFrame(VALUES), executor=ONE).names == ("0", "1", "2")
    assert Rows.of(X, executor=ONE).names is None


def test_csr_out_of_order_is_put_in_order_in_a_copy() -> None:
    data, columns, pointers = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 0]), [0, 3]
    mixed = sp.csr_array((data, columns, pointers), shape=(1, 3))
    assert np.array_equal(spread(Rows.of(mixed, executor=ONE).collect()), [[5, 0, 1]])
    assert np.array_equal(columns, [2, 0, 0])


def test_nonzero_counts_what_is_stored() -> None:
    assert Rows.of(S, executor=ONE).nonzero == S.nnz
    assert Rows.of(X, executor=ONE).nonzero == X.size
    assert Rows.of(X, executor=ONE).nbytes == X.nbytes


MISSING: list[Any] = [
    pd.array([1, None, 2], dtype="Int64"),
    pd.array([True, None, False], dtype="boolean"),
    pd.array([1.0, None, 2.0], dtype="double[pyarrow]"),
    [1.0, np.nan, 2.0],
    np.array([1, np.inf, 0], dtype="f4"),
]


@pytest.mark.parametrize("column", MISSING)
def test_missing_and_infinite_values_are_refused_by_name(column: Any) -> None:
    table = pd.DataFrame({"fine": [1, 2, 3], "holes": column})
    with pytest.raises(InputError, match=r"`holes` has (NaN|inf) in block 0 .*rows 0 to 2"):
        Rows.of(table, executor=ONE)
    with pytest.raises(InputError, match="number 1 has"):
        Rows.of(table.to_numpy(dtype=float, na_value=np.nan), executor=ONE)


@given(st.integers(0, 8_999), st.integers(0, 11), st.sampled_from([np.nan, -np.inf]))
def test_one_bad_value_anywhere_is_found(row: int, column: int, value: float) -> None:
    for data in (X.copy(), sp.csr_array(X), X.astype("f4")):
        data[row, column] = value
        rows = Rows.of(X, executor=ONE)
        block = int(np.searchsorted(rows.starts, row, side="right")) - 1
        with pytest.raises(InputError, match=f"number {column} has .* in block {block} "):
            Rows.of(data, executor=ONE)


def test_values_whose_sum_overflows_are_no_error() -> None:
    assert Rows.of(np.full((3, 2), 1e308), executor=ONE).n == 3


REFUSED: list[tuple[Any, str]] = [
    (np.ones(3), "2-D"),
    (np.float64(3), "2-D"),
    (np.ones((3, 2, 1)), "2-D"),
    (np.ones((0, 2)), "at least one row"),
    (np.ones((2, 0)), "at least one row"),
    (pd.DataFrame({"a": []}), "at least one row"),
    (pd.DataFrame(index=[1, 2]), "at least one row"),
    (sp.csr_array((0, 3)), "at least one row"),
    (pd.Series([1.0]), "2-D"),
    (np.ones((2, 2)) + 1j, "complex"),
    (np.array([[1, "a"]], dtype=object), "objects"),
    ([["a"]], "text"),
    (np.array([["2020-01-01"]], dtype="M8[D]"), "dates"),
    (np.ma.masked_array(np.ones((2, 2)), mask=True), "filled"),
    (pd.DataFrame({"ok": [1], "t": ["a"], "o": [object()]}), r"`t` \(String\), `o`"),
    (pd.DataFrame({"k": pd.Categorical(["a"])}), "OneHotEncoder"),
    (pl.DataFrame({"when": [datetime.date(2020, 1, 1)]}), "`when`"),
    (pd.DataFrame([[1, 2]], columns=["a", "a"]), "must differ.*'a'"),
    (pd.DataFrame([[1, 2]], columns=[1, "1"]), "must differ.*`1`"),
]


@pytest.mark.parametrize(("data", "message"), REFUSED)
def test_what_is_no_matrix_of_numbers_is_refused_with_advice(
    data: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Rows.of(data, executor=ONE)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(InputError, match="block_rows"):
        Rows.of(X, executor=ONE, block_rows=0)
    with pytest.raises(InputError, match="float32 or float64"):
        Rows.of(X, executor=ONE, dtype="i4")


def test_a_block_says_how_large_it_is() -> None:
    block = Block(X[:100], {"y": X[:100, 0]})
    assert block.__sizeof__() >= X[:100].nbytes + 800


@pytest.mark.parametrize("data", [X, X.astype("f4"), S])
def test_rows_held_already_are_cut_as_rows_from_memory(data: Any) -> None:
    where = Shelves(4)
    held = Rows.held(where.put(data), executor=where)
    fresh = Rows.of(data, executor=where)

    assert (held.lengths, held.sizes, held.nonzero) == (
        fresh.lengths,
        fresh.sizes,
        fresh.nonzero,
    )
    assert np.array_equal(spread(held.collect()), spread(data))
    starts = held.map(lambda block: (block.index, block.rows))
    assert starts == fresh.map(lambda block: (block.index, block.rows))
