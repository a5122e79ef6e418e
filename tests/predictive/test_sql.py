"""`mlopt.sql`: predictions are a column as any other, of a model that is planned once."""

from __future__ import annotations

import os
import signal
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest

import mlopt
from mlopt.errors import ConfigError, InputError, MissingColumnError, UnsupportedError
from mlopt.plan import Plan
from mlopt.predictive import planner

PLANTS = """
    SELECT p.image, p.likes FROM Pictures p
    WHERE PREDICT(p.tag, p.light, p.tone) = 'Plant' GIVEN Labelled AND p.likes > 500
"""


def never(*args: Any, **given: Any) -> None:
    raise AssertionError("A model was searched for.")


@pytest.fixture
def tables(photos: pd.DataFrame, labelled: pd.DataFrame) -> dict[str, Any]:
    return {"Pictures": photos, "Labelled": labelled}


def test_rows_are_those_that_the_model_of_a_sweep_names(
    tables: dict[str, Any], quick: dict[str, Any]
) -> None:
    found = mlopt.sql(PLANTS, tables, **quick)
    settings = {k: v for k, v in quick.items() if k != "catalogue"}
    photos = tables["Pictures"]
    model = mlopt.sweep(tables["Labelled"].dropna(subset="tag"), target="tag", **settings)
    named = model.predict(photos[["light", "tone"]]) == "Plant"
    wanted = photos.loc[named & (photos["likes"] > 500), ["image", "likes"]]
    pd.testing.assert_frame_equal(found, wanted.reset_index(drop=True), check_dtype=False)
    assert 0 < len(found) < (photos["likes"] > 500).sum()
    # Rows that another condition leaves out are not predicted.
    assert f"{(photos['likes'] > 500).sum():,} rows, in DuckDB" in found.attrs["plan"]


def test_predictions_are_selected_grouped_and_sorted(
    tables: dict[str, Any], quick: dict[str, Any]
) -> None:
    found = mlopt.sql(
        "SELECT PREDICT(tag, light, tone) GIVEN Labelled AS kind, count(*) AS n, "
        "avg(likes) FROM Pictures GROUP BY kind HAVING kind <> 'none' ORDER BY kind DESC",
        tables,
        **quick,
    )
    assert found["kind"].tolist() == ["Ört", "Plant"]
    assert found["n"].sum() == len(tables["Pictures"])
    unnamed = mlopt.sql(
        "SELECT PREDICT(tag, light) GIVEN Labelled FROM Pictures", tables, **quick
    )
    assert list(unnamed) == ["tag"]
    assert len(unnamed) == len(tables["Pictures"])


def test_predictors_are_all_other_columns_and_names_know_no_case(
    tables: dict[str, Any], quick: dict[str, Any]
) -> None:
    named = mlopt.sql(
        "SELECT PREDICT(tag, light, tone) GIVEN Labelled FROM Pictures", tables, **quick
    )
    every = mlopt.sql(
        "SELECT predict(P.TAG) given labelled FROM pictures p", tables, **quick
    )
    pd.testing.assert_frame_equal(named, every)


def test_a_model_is_planned_once_whatever_its_rows_are_called(
    tables: dict[str, Any], quick: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = mlopt.sql(PLANTS, tables, **quick)
    with monkeypatch.context() as patch:
        patch.setattr(planner, "sweep", never)
        again = mlopt.sql(PLANTS, tables, **quick)
        renamed = {"Pictures": tables["Pictures"], "Other": tables["Labelled"]}
        other = mlopt.sql(PLANTS.replace("Labelled", "Other"), renamed, **quick)
        twice = PLANTS.replace(" AND p.likes", " AND PREDICT(p.tag, p.light, p.tone) "
                               "GIVEN Labelled IS NOT NULL AND p.likes")  # fmt: skip
        same = mlopt.sql(twice, tables, **quick)
        changed = tables["Labelled"].assign(light=tables["Labelled"]["light"] + 1)
        for one in (again, other, same):
            pd.testing.assert_frame_equal(first, one)
            assert "of the catalogue" in one.attrs["plan"]
        with pytest.raises(AssertionError, match="searched"):
            mlopt.sql(PLANTS, {**tables, "Labelled": changed}, **quick)
        with pytest.raises(AssertionError, match="searched"):
            mlopt.sql(PLANTS, tables, **{**quick, "n_trials": 3})
        with pytest.raises(AssertionError, match="searched"):
            mlopt.sql(PLANTS, tables, **{**quick, "catalogue": False})


def test_nothing_is_kept_without_a_catalogue(
    tables: dict[str, Any],
    quick: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("MLOPT_CATALOGUE", raising=False)
    mlopt.sql(PLANTS, tables, **{**quick, "catalogue": False})
    assert list(tmp_path.iterdir()) == []


def test_explain_says_what_would_be_done_and_trains_nothing(
    tables: dict[str, Any], quick: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(planner, "sweep", never)
        plan = mlopt.sql(f"explain {PLANTS}", tables, **quick)
    assert isinstance(plan, Plan)
    assert plan.predicted is not None
    assert plan.predicted > 0
    assert "sweep" in plan.explain()
    mlopt.sql(PLANTS, tables, **quick)
    known = mlopt.sql(f"EXPLAIN {PLANTS}", tables, **quick)
    assert known.predicted == 0
    assert "of the catalogue" in known.explain()


def test_numbers_are_predicted_as_numbers(quick: dict[str, Any]) -> None:
    x = np.linspace(-1, 1, 200)
    known = pd.DataFrame({"x": x, "y": 3 * x + 1})
    asked = pd.DataFrame({"x": [0.0, 0.5]})
    query = "SELECT PREDICT(y) GIVEN known + 1 AS above FROM asked"
    found = mlopt.sql(query, **quick)  # variables of this function
    assert found["above"].dtype == float
    np.testing.assert_allclose(found["above"], [2.0, 3.5], atol=0.1)
    assert asked.shape == (2, 1)
    assert known.shape == (200, 2)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False], "bool"),
        ([3, 7], "int64"),
        (["a", "b"], None),
        (pd.Categorical(["a", "b"]), "category"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), "datetime64[us]"),
    ],
)
def test_classes_have_the_type_of_the_target(
    values: Any, kind: str | None, quick: dict[str, Any]
) -> None:
    ones = np.tile([0, 1], 60)
    known = pd.DataFrame({"x": ones + 0.1, "y": pd.Series(values).iloc[ones].to_numpy()})
    if kind == "category":
        known["y"] = known["y"].astype("category")
    found = mlopt.sql(
        "SELECT PREDICT(y) GIVEN known AS y FROM (SELECT 0.1 AS x UNION ALL SELECT 1.1) "
        "ORDER BY x",
        {"known": known},
        **quick,
    )
    assert found["y"].tolist() == list(values)
    assert kind in (None, str(found["y"].dtype))


def test_values_between_and_beyond_those_of_training_are_predicted(
    quick: dict[str, Any],
) -> None:
    days = pd.date_range("2020-01-01", periods=200).date
    known = pd.DataFrame({"x": np.arange(200, dtype=np.uint8) % 50, "day": days})
    known["y"] = 10.0 * known["x"] + np.arange(200)
    new = known.head(3).assign(x=[0.0, 2.5, 300.0], day=pd.Timestamp("2020-01-01"))
    noon = new.assign(day=pd.Timestamp("2020-01-01 12:00"))
    line = "SELECT PREDICT(y) GIVEN known AS y FROM new ORDER BY x"
    found = mlopt.sql(line, {"known": known, "new": new}, **quick)["y"]
    np.testing.assert_allclose(found, [0, 25, 3000], rtol=0.05, atol=5)
    later = mlopt.sql(line, {"known": known, "new": noon}, **quick)["y"]
    assert (later > found).all()


def test_no_digit_of_an_answer_is_lost() -> None:
    large = 2**53 + 1
    rows = pd.DataFrame({"k": [large, 1], "d": [Decimal("123456789012345678.25"), None]})
    sums = "sum(k) OVER () AS s, 2 * sum(k) OVER () AS s"
    query = f"SELECT *, {sums}, 1.5 AS f, NULL::UUID AS u FROM rows"
    found = mlopt.sql(query, {"rows": rows})
    assert [*found] == ["k", "d", "s", "s_1", "f", "u"]
    assert found["s"].tolist() == [large + 1] * 2
    assert found["s"].dtype == np.int64
    assert found["d"][0] == Decimal("123456789012345678.25")
    assert found["f"].tolist() == [1.5, 1.5]
    bits = "SELECT [1.5] AS d, '101'::BIT AS b"
    few, more = mlopt.sql(bits), mlopt.sql(f"{bits}, 1::HUGEINT AS one")
    assert (more["b"][0], more["one"][0]) == (few["b"][0], 1)


def test_categories_of_other_rows_are_those_of_their_rows(quick: dict[str, Any]) -> None:
    tones = ["warm", "cold"] * 60
    known = pd.DataFrame({"tone": pd.Categorical(tones), "y": [1, 0] * 60})
    asked = pd.DataFrame({"tone": pd.Categorical(["cold", "never seen", None, "warm"])})
    query = "SELECT PREDICT(y) GIVEN known AS y FROM asked"
    found = mlopt.sql(query, {"known": known, "asked": asked}, **quick)
    assert found["y"].tolist()[::3] == [0, 1]


def test_tables_are_frames_of_all_kinds_and_files(
    tables: dict[str, Any],
    quick: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted = mlopt.sql(PLANTS, tables, **quick)
    photos, labelled = tables["Pictures"], tables["Labelled"]
    labelled.to_csv(tmp_path / "Labelled.csv", index=False)
    photos.to_parquet(tmp_path / "it's.parquet")
    monkeypatch.chdir(tmp_path)
    Labelled = "a text is no table"  # noqa: F841
    for pictures in (
        pl.from_pandas(photos),
        pl.from_pandas(photos).to_arrow(),
        dd.from_pandas(photos, npartitions=3),
        "it's.parquet",
        tmp_path / "it's.parquet",
    ):
        found = mlopt.sql(PLANTS, {"Pictures": pictures}, **quick)
        pd.testing.assert_frame_equal(found, wanted, check_dtype=False)
    query = PLANTS.replace("Labelled", "'Labelled.csv'").replace(
        "Pictures", "'it''s.parquet'"
    )
    pd.testing.assert_frame_equal(mlopt.sql(query, **quick), wanted, check_dtype=False)


def test_what_is_given_may_be_predicted_itself(quick: dict[str, Any]) -> None:
    ones = np.tile([0, 1], 60)
    known = pd.DataFrame({"x": ones + 0.1, "y": ones})
    query = (
        "SELECT PREDICT(z, x) GIVEN (SELECT x, PREDICT(y, x) GIVEN known + 5 AS z "
        "FROM known) AS z FROM (SELECT 1.1 AS x)"
    )
    found = mlopt.sql(query, {"known": known}, **quick)
    assert found["z"].tolist() == [6]
    with pytest.raises(UnsupportedError, match="explain that one alone"):
        mlopt.sql(f"EXPLAIN {query}", {"known": known}, **quick)


def test_plain_sql_is_plain_sql() -> None:
    assert mlopt.sql("SELECT 1 + 1 AS two", catalogue=False)["two"].tolist() == [2]


@pytest.mark.parametrize(
    ("query", "error", "said"),
    [
        ("PREDICT(tga) GIVEN Labelled FROM Pictures", MissingColumnError, "`tag`"),
        ("PREDICT(tag, x) GIVEN Labelled FROM Pictures", MissingColumnError, "`x`"),
        ("PREDICT(tag, tag) GIVEN Labelled FROM Pictures", InputError, "beside"),
        ("PREDICT(tag, tone, tone) GIVEN Labelled FROM Pictures", InputError, "once"),
        ("PREDICT(tag) GIVEN Labeled FROM Pictures", InputError, "`Labelled`"),
        ("PREDICT(tag) GIVEN Labelled FROM Picture", InputError, "`Pictures`"),
        ("PREDICT(p.tag, q.tone) GIVEN Labelled FROM Pictures p", InputError, '"q"'),
        ("PREDICT(tag) GIVEN (SELECT tag, 1 AS one FROM Labelled) FROM Pictures",
         InputError, '"one" not found'),
        ("PREDICT(tag) GIVEN (FROM Labelled WHERE tag IS NULL) FROM Pictures",
         InputError, "there is none"),
        ("SELECT nothing FROM Pictures", InputError, '"nothing" not found'),
        ("SELECT 1; SELECT 2", InputError, "one SELECT"),
        ("", InputError, "one SELECT"),
        ("CREATE TABLE x AS SELECT 1", InputError, "got CREATE"),
        ("COPY Pictures TO 'x.csv'", InputError, "got COPY"),
        ("SELEC 1", InputError, "syntax error"),
        (7, InputError, "text of a SELECT"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_a_model_is_searched_for(
    query: Any,
    error: type[Exception],
    said: str,
    tables: dict[str, Any],
    quick: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planner, "sweep", never)
    if str(query).startswith("PREDICT"):
        query = f"SELECT {query}"
    with pytest.raises(error, match=said):
        mlopt.sql(query, tables, **quick)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"target": "tag"}, "leave out `target`"),
        ({"path": "x.csv"}, "leave out `path`"),
        ({"timeut": 3}, "Did you mean `timeout`"),
        ({"scheduler": "tcp://127.0.0.1:1"}, "takes a `client`"),
        ({"tables": {"Pictures": 3}}, "must be a data frame"),
    ],
)
def test_settings_are_those_of_a_sweep(given: dict[str, Any], said: str) -> None:
    with pytest.raises((ConfigError, InputError), match=said):
        mlopt.sql("SELECT 1", catalogue=False, **given)


def test_values_that_cannot_be_read_as_in_training_are_named(quick: dict[str, Any]) -> None:
    known = pd.DataFrame({"x": np.tile([0.1, 1.1], 60), "y": [0, 1] * 60})
    asked = pd.DataFrame({"x": ["much"]})
    with pytest.raises(InputError, match="'much' to DOUBLE"):
        mlopt.sql(
            "SELECT PREDICT(y) GIVEN known FROM asked",
            {"known": known, "asked": asked},
            **quick,
        )


def test_a_name_of_with_is_no_other_table(
    tables: dict[str, Any], quick: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "sweep", never)
    some = "WITH labelled AS (FROM Labelled WHERE light > 0) SELECT"
    with pytest.raises(InputError, match="`labelled` is a name of WITH"):
        mlopt.sql(f"{some} PREDICT(tag) GIVEN Labelled FROM Pictures", tables, **quick)
    with pytest.raises(InputError, match="`labelled` is a name of WITH"):
        mlopt.sql(
            f"{some} PREDICT(tag) GIVEN (FROM labelled) FROM Pictures", tables, **quick
        )
    with pytest.raises(AssertionError, match="searched"):
        mlopt.sql(
            "SELECT PREDICT(tag) GIVEN (WITH known AS (FROM Labelled) FROM known) "
            "FROM Pictures",
            tables,
            **quick,
        )


@pytest.mark.parametrize(
    "value",
    [
        "['a', 'b']",
        "[[1, 2]]",
        "{'a': 1}",
        "'a'::BLOB",
        "'101'::BIT",
        "to_hours(1)",
        "MAP {1: 2}",
    ],
)
def test_what_no_model_learns_from_is_refused_by_name(
    value: str, tables: dict[str, Any], quick: dict[str, Any]
) -> None:
    given = f"(SELECT tag, tone, {value} AS odd FROM Labelled)"
    for columns in ("tag, odd", "tag", "odd, tone"):
        with pytest.raises(InputError, match="`odd` must be a number"):
            mlopt.sql(
                f"SELECT PREDICT({columns}) GIVEN {given} FROM Pictures", tables, **quick
            )


def test_a_model_is_found_whatever_the_order_of_its_rows(
    tables: dict[str, Any], quick: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = mlopt.sql(PLANTS, tables, **quick)
    monkeypatch.setattr(planner, "sweep", never)
    others = {**tables, "Labelled": tables["Labelled"].iloc[::-1]}
    pd.testing.assert_frame_equal(mlopt.sql(PLANTS, others, **quick), first)


def test_columns_of_one_name_are_numbered(
    tables: dict[str, Any], quick: dict[str, Any]
) -> None:
    predicted = "PREDICT(tag, light) GIVEN Labelled"
    found = mlopt.sql(
        f"SELECT {predicted}, *, upper({predicted}) FROM Labelled", tables, **quick
    )
    assert list(found) == ["tag_1", "light", "tone", "tag", "tag_2"]
    assert found["tag_1"].str.upper().equals(found["tag_2"])


@pytest.mark.parametrize("query", [
    "SELECT count(*) FROM range(60000) a(i), range(1000000) b(j) WHERE i * j % 7 = 3",
    "SELECT count(*) FROM (SELECT PREDICT(tag, light) GIVEN Labelled AS tag FROM "
    "(SELECT random() AS light FROM range(100000000))) WHERE tag = 'none'",
], ids=["joined", "predicted"])  # fmt: skip
def test_an_interrupted_query_ends_as_python_does(
    query: str, tables: dict[str, Any], quick: dict[str, Any]
) -> None:
    mlopt.sql("SELECT PREDICT(tag, light) GIVEN Labelled FROM Pictures", tables, **quick)
    # What a shell runs in its background ignores it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    seconds = 1.0  # both take minutes
    # Python loses what comes while a weak reference is called: whoever waits presses again.
    timers = [
        threading.Timer(at * seconds, os.kill, (os.getpid(), signal.SIGINT))
        for at in (1, 15)
    ]
    for timer in timers:
        timer.start()
    started = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            mlopt.sql(query, tables, **quick)
    finally:
        for timer in timers:
            timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert time.perf_counter() - started < 30 * seconds


def test_a_list_of_files_is_read(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("a,b\n1,2\n")
    other = pd.DataFrame({"a": [1, 2], "c": [5, 6]})
    files = f"read_csv(['{path}', '{path}'])"
    found = mlopt.sql(
        f"WITH w AS (FROM Other) FROM {files} JOIN w USING (a)", {"Other": other}
    )
    assert found.to_numpy().tolist() == [[1, 2, 5]] * 2


def test_merged_classes_need_not_be_of_the_type(quick: dict[str, Any]) -> None:
    x = np.r_[np.zeros(30), np.ones(30), np.full(3, 2.0), np.full(3, 3.0)]
    tags = np.array(["a"] * 30 + ["b"] * 30 + ["c"] * 3 + ["d"] * 3)
    known = pd.DataFrame({"x": x, "tag": pd.Categorical(tags)})
    found = mlopt.sql(
        "SELECT PREDICT(tag, x) GIVEN known AS tag FROM known",
        {"known": known},
        rare_classes="merge",
        **(quick | {"cv": 5}),
    )
    assert {*found["tag"]} <= {"a", "b", "other"}
    assert len(found) == 66


@pytest.mark.parametrize(
    ("setting", "why"), [("weight", "has no such setting"), ("target", "query says it")]
)
def test_settings_that_are_not_for_queries_are_refused(setting: str, why: str) -> None:
    known = pd.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]})
    given: dict[str, Any] = {setting: "x"}
    with pytest.raises(ConfigError, match=why):
        mlopt.sql("SELECT PREDICT(y) GIVEN known FROM known", {"known": known}, **given)
