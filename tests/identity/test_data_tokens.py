"""Data are told apart by every value, and by nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from dask.task_spec import TaskRef

from mlopt.identity import identified, token_of

TABLE = {"a": [1.0, None, 3.0], "b": ["x", "y", None], "c": [1, 2, 3]}
OTHER = {"a": [1.0, None, 3.0], "b": ["x", "y", "z"], "c": [1, 2, 3]}

MAKERS: dict[str, Any] = {
    "array": lambda t: np.array(t["c"] + [len(str(t["b"][2]))]),
    "objects": lambda t: np.array(t["b"], dtype=object),
    "structured": lambda t: np.array([(1, str(t["b"][2]))], [("n", "i4"), ("t", "U4")]),
    "pandas": pd.DataFrame,
    "categories": lambda t: pd.Series(t["b"], dtype="category"),
    "nullable": lambda t: pd.Series([1, None, len(str(t["b"][2]))], dtype="Int64"),
    "zoned": lambda t: pd.Series(
        pd.to_datetime(["2020", "2021"]) + pd.Timedelta(len(str(t["b"][2])), "D")
    ).dt.tz_localize("UTC"),
    "index": lambda t: pd.DataFrame({"n": [1, 2, 3]}, index=list(map(str, t["b"]))),
    "arrow": pa.table,
    "polars": pl.DataFrame,
    "csr": lambda t: sp.csr_matrix([[0, 1, 0], [0, 0, len(str(t["b"][2]))]]),
    "list": lambda t: t["b"],
    "long list": lambda t: ["x"] * 100 + [str(t["b"][2])],
    "set": lambda t: {"x", "y", t["b"][2]},
    "dask array": lambda t: da.from_array(np.array(t["b"], dtype=str), chunks=2),
    "dask frame": lambda t: dd.from_pandas(pd.DataFrame(t), npartitions=2),
}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS.keys())
def test_one_value_more_is_another_token_and_a_copy_is_not(maker: Any) -> None:
    token = identified(maker(TABLE))
    assert token is not None
    assert identified(maker(TABLE)) == token
    assert identified(maker(OTHER)) != token


def test_a_view_is_its_copy() -> None:
    X = np.arange(12.0).reshape(3, 4)
    assert token_of(X[:, ::2]) == token_of(X[:, ::2].copy())
    assert token_of(X.T) == token_of(X.T.copy())
    assert token_of(pa.table({"a": [1, 2, 3]})[1:]) == token_of(pa.table({"a": [2, 3]}))


@pytest.mark.slow
def test_a_large_array_is_its_copy_in_any_order() -> None:
    X = np.random.default_rng(0).normal(size=(3_000_000, 3))
    F = np.asfortranarray(X)
    assert token_of(F) == token_of(X)
    F[-1, -1] += 1.0
    assert token_of(F) != token_of(X)


def test_sparse_rows_are_the_same_in_any_order_of_their_columns() -> None:
    parts = ([1.0, 2.0, 3.0], [0, 2, 1], [0, 2, 3])
    mixed = ([2.0, 1.0, 3.0], [2, 0, 1], [0, 2, 3])
    twice = ([2.0, 0.5, 0.5, 3.0], [2, 0, 0, 1], [0, 3, 4])
    token = token_of(sp.csr_matrix(parts, shape=(2, 3)))
    assert token_of(sp.csr_matrix(mixed, shape=(2, 3))) == token
    assert token_of(sp.csr_matrix(twice, shape=(2, 3))) == token


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros(2, "f4"), np.zeros(2, "f8")),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.array(["a-b", "c"], object), np.array(["a", "b-c"], object)),
        (["ab", "c"], ["a", "bc"]),
        ([1], [True]),
        ([1], [1.0]),
        (0.0, -0.0),
        ("1", b"1"),
        ([[1], 2], [[1, 2]]),
        (pd.Series([1], name="a"), pd.Series([1], name="b")),
        (
            pd.date_range("2020-01-01", periods=2, freq="D"),
            pd.DatetimeIndex(["2020-01-01", "2020-01-02"]),
        ),
        (sp.csr_matrix((2, 2)), sp.csc_matrix((2, 2))),
        (np.random.default_rng(0), np.random.default_rng(1)),
        (np.random.RandomState(0), np.random.RandomState(1)),
    ],
)
def test_values_that_look_alike_are_told_apart(one: Any, other: Any) -> None:
    assert identified(one) is not None
    assert identified(one) != identified(other)


def test_what_a_user_notes_on_a_frame_is_part_of_it() -> None:
    frame = pd.DataFrame({"a": [1.0]})
    noted = frame.copy()
    noted.attrs["unit"] = "cm"
    assert identified(frame) != identified(noted)
    assert identified(frame["a"]) != identified(noted["a"])


def test_a_generator_is_another_after_a_draw() -> None:
    rng = np.random.default_rng(0)
    before = token_of(rng)
    assert token_of(np.random.default_rng(0)) == before
    rng.normal()
    assert token_of(rng) != before


def test_a_file_that_changed_is_other_data(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    before = identified(dd.read_csv(path))
    assert before is not None
    assert identified(dd.read_csv(path)) == before
    path.write_text("a,b\n1,2\n3,44\n")
    assert identified(dd.read_csv(path)) != before


@pytest.mark.parametrize("names", [1, 100])
def test_files_that_tasks_name_in_lists_and_by_their_folder_count(
    names: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    files = [Path("folder", f"{number}.txt") for number in range(names)]
    for path in files:
        path.write_text("old")

    def tokens() -> list[str | None]:
        lists = [str(folder)], ["folder"], list(map(str, files)), [str(files[-1].resolve())]
        return [
            identified(db.from_sequence([*names, "no such file"], npartitions=1))
            for names in lists
        ]

    before = tokens()
    assert None not in before
    assert tokens() == before
    files[-1].write_text("newer")  # which leaves the folder's own time as it is
    assert not set(tokens()) & set(before)


def test_what_else_changes_in_the_folder_of_a_run_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def last(text: str) -> str:
        return "".join(text.split(".")[-1].split("/"))

    words = db.from_sequence(["a.b", "", "."], npartitions=1).map(last)
    before = identified(words)
    (tmp_path / "study.db").write_text("trials")
    assert identified(words) == before is not None


def test_columns_of_a_dask_frame_are_not_the_frame() -> None:
    ddf = dd.from_pandas(pd.DataFrame(OTHER), npartitions=2)
    assert token_of(ddf[["a"]]) != token_of(ddf[["c"]])
    assert token_of(ddf) != token_of(ddf.drop(columns="a"))


class Future(TaskRef):
    """As a client's: a key, and what is behind it is elsewhere."""


def test_what_is_behind_a_future_is_not_told_by_its_name() -> None:
    # As `persist` of a client leaves it.
    graph = {("x", number): Future(("x", number)) for number in range(2)}
    held = da.Array(graph, "x", chunks=((2, 2), (3,)), dtype=float)
    assert identified(held) is None
    assert identified(held[:, :2]) is None
    assert identified(dask.optimize(held[:, :2] + 1.0)[0]) is None
    assert identified(Future("x")) is None


def test_tasks_that_were_fused_are_told() -> None:
    def rows(value: float) -> Any:
        array = da.from_array(np.full((4, 3), value), chunks=(2, 3))
        return identified(dask.optimize(array[:, :2] + 1.0)[0])

    assert rows(1.0) is not None
    assert rows(1.0) == rows(1.0) != rows(2.0)


@pytest.mark.parametrize(
    "name", ["{home}/try.csv", "~/try.csv", "{home}/t*y.csv", "~/[t]ry.csv"]
)
def test_a_file_counts_however_a_task_names_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    read = dask.delayed(pd.read_csv)(name.format(home=tmp_path))
    (tmp_path / "try.csv").write_text("a\n1\n")
    before = identified(read)
    assert identified(read) == before is not None
    (tmp_path / "try.csv").write_text("a\n22222\n")
    assert identified(read) != before


def test_the_files_of_folders_in_a_folder_count(tmp_path: Path) -> None:
    part = tmp_path / "year=2024"
    part.mkdir()
    (part / "0.csv").write_text("a")
    read = dask.delayed(len)(str(tmp_path))
    before = identified(read)
    (part / "0.csv").write_text("b" * 9)
    assert identified(read) != before is not None


@pytest.mark.parametrize(
    "far", ["postgresql+psycopg2://h/db", "simplecache::s3://b/x", "s3://b", "git+ssh://h"]
)
def test_what_is_on_another_machine_is_not_identified(far: str) -> None:
    assert identified(dask.delayed(len)(far)) is None


def test_patterns_that_would_walk_everywhere_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert identified(dask.delayed(len)(f"{tmp_path}/**/*.csv")) is None
    assert identified(dask.delayed(len)("/*/*/*")) is not None
    for text in ("is it a question?", "f**k", "**bold** words", "Source:https://x.org"):
        assert identified(dask.delayed(len)(text)) is not None


@pytest.mark.parametrize("count", [3, 200])
@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
def test_rows_that_name_files_count_with_these(
    tmp_path: Path, count: int, kind: Any
) -> None:
    names = [str(tmp_path / f"{number}.txt") for number in range(count)]
    for name in names:
        Path(name).write_text("good film")
    before, again = token_of(kind(names)), token_of(kind(names))
    Path(names[-1]).write_text("poor film!")
    assert before == again
    assert token_of(kind(names)) != before
    Path(names[-1]).unlink()
    assert token_of(kind(names)) != before


def test_rows_that_name_folders_or_nothing_are_texts(tmp_path: Path) -> None:
    some = tmp_path / "some.txt"
    some.write_text("")
    others = [
        str(tmp_path),
        str(tmp_path / "none.txt"),
        "x" * 5000 + "/",
        "a\0./b",
        "*/*.c",
    ]
    for names in (others, [str(some), "a word"]):  # not all are files
        before = token_of(names)
        (tmp_path / f"more{len(names)}.txt").write_text("")
        some.write_text(some.read_text() + "more")
        assert token_of(names) == before


def test_paths_and_texts_of_arrays_name_files_too(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("good")
    for names in ([path], list(np.array([str(path)]))):
        before = token_of(names)
        path.write_text(path.read_text() + "!")
        assert token_of(names) != before
