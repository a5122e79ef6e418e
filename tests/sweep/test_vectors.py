"""Columns of lists of numbers, as embeddings are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mlopt
from mlopt.errors import InputError, InputWarning
from mlopt.serving.bodies import JSON, frame_of, read_rows
from mlopt.serving.model import load_served
from mlopt.sweep.predict import unreadable_cells
from mlopt.sweep.roles import judge
from mlopt.sweep.tabular import ReadColumns
from mlopt.sweep.vectors import length_of, vectors_of

RANDOM = np.random.default_rng(4)
VECTORS = RANDOM.standard_normal((240, 5))
TABLE = pd.DataFrame({
    "embedding": [*VECTORS],
    "likes": RANDOM.integers(0, 1000, len(VECTORS)),
    "kind": np.where(VECTORS[:, 0] + VECTORS[:, 3] > 0, "plant", "animal"),
})  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "length"),
    [
        ([[1, 2], [3.5, 4], None], 2),
        ([(1, 2), np.array([3, 4])], 2),
        ([[True, None]], 2),
        ([[1, 2], [3]], 0),
        ([[1, "a"], [3, 4]], 0),
        ([[[1, 2]], [[3, 4]]], 0),
        (["[1, 2]", "[3, 4]"], 0),
        ([[], []], 0),
        ([None, None], 0),
    ],
)
def test_lists_of_as_many_numbers_are_vectors(cells: list[object], length: int) -> None:
    column = pd.Series(cells, dtype=object)
    assert length_of(column) == length
    assert (judge(column) == ("vector", length)) == (length > 0)


def test_numbers_are_no_vectors() -> None:
    assert length_of(pd.Series([1.0, 2.0])) == 0


def test_numbers_that_are_masked_are_missing() -> None:
    masked = np.ma.masked_array([1.0, 0.0, 3.0], mask=[False, True, False])
    column = pd.Series([masked, [4, 5, 6]], dtype=object)
    expected = [[1, np.nan, 3], [4, 5, 6]]
    np.testing.assert_array_equal(vectors_of(column, 3), expected)


def test_what_is_no_vector_of_that_length_is_missing() -> None:
    column = pd.Series([[1, 2], [3], None, "x", [np.inf, 4], [None, 5]], dtype=object)
    expected = [[1, 2], *[[np.nan] * 2] * 3, [np.nan, 4], [np.nan, 5]]
    np.testing.assert_array_equal(vectors_of(column, 2), expected)


def test_a_step_that_reads_columns_gives_one_for_each_number() -> None:
    reads = ReadColumns(numbers=["likes"], vectors={"embedding": 5}).fit(TABLE)
    found = reads.transform(TABLE)
    assert list(found) == ["likes", *(f"embedding[{place}]" for place in range(5))]
    assert list(found) == list(reads.get_feature_names_out())
    np.testing.assert_array_equal(found.iloc[:, 1:], VECTORS)
    with pytest.warns(InputWarning, match="no list of 5 numbers in any of 2 rows"):
        reads.transform(TABLE.assign(embedding="x")[:2])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a sweep over a table with a column of vectors."""
    folder: Path = tmp_path_factory.mktemp("vectors")
    path = folder / "table.parquet"
    TABLE.to_parquet(path)
    mlopt.sweep(
        path, target="kind", n_trials=3, families=["linear"], output=folder / "found"
    )
    return folder / "found"


def test_a_sweep_learns_from_vectors(folder: Path) -> None:
    model = mlopt.load(folder / "model.skops")
    assert (model.predict(TABLE) == TABLE["kind"]).mean() > 0.9
    assert "1 vectors" in (folder / "plan.txt").read_text("utf-8")
    arrow = pa.Table.from_pandas(TABLE)
    for other in (arrow, pl.from_arrow(arrow), TABLE.convert_dtypes()):
        assert list(model.predict(other)) == list(model.predict(TABLE))
    short = TABLE.assign(embedding=[[1.0], *TABLE["embedding"][1:]])
    (said,) = unreadable_cells(model, short)
    assert "1 of 240 cells is no list of 5 numbers" in said


def test_a_service_takes_lists(folder: Path) -> None:
    model = load_served(folder / "model.skops")
    column = next(one for one in model.columns if one.name == "embedding")
    assert (column.kind, column.example) == ("vector", [0.0] * 5)
    body = TABLE[["embedding", "likes"]].to_json(orient="records").encode()
    rows = frame_of([read_rows(body, JSON, model)], model)
    assert list(model.estimator.predict(rows)) == list(model.estimator.predict(TABLE))
    with pytest.raises(InputError, match="`embedding` must hold lists of numbers, or null"):
        read_rows(b'[{"likes": 1, "embedding": 3}]', JSON, model)


def test_a_query_predicts_from_vectors() -> None:
    pytest.importorskip("duckdb")
    new = TABLE[["embedding"]].assign(number=range(len(TABLE)))
    found = mlopt.sql(
        "SELECT n.number FROM New n WHERE PREDICT(n.kind, n.embedding) = 'plant' GIVEN Old",
        {"New": new, "Old": TABLE},
        catalogue=False,
        n_trials=2,
        families=["linear"],
    )
    plants = np.flatnonzero(TABLE["kind"] == "plant")
    assert len({*found["number"]} ^ {*plants.tolist()}) < 24


def test_a_query_refuses_lists_of_texts() -> None:
    pytest.importorskip("duckdb")
    table = pd.DataFrame({"words": [["a"], ["b"]] * 20, "kind": ["x", "y"] * 20})
    with pytest.raises(
        InputError, match=r"or a list of numbers to learn from, it is VARCHAR"
    ):
        mlopt.sql(
            "SELECT * FROM T t WHERE PREDICT(t.kind, t.words) = 'x' GIVEN T", {"T": table}
        )
