"""What a messy table is taken for is said, by column, row and cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from mlopt.errors import ConfigError, InputError, InputWarning, MissingColumnError
from mlopt.sweep.cells import numbers_of
from mlopt.sweep.config import Config, override
from mlopt.sweep.loading import Source, from_frame
from mlopt.sweep.models import dump_model, load
from mlopt.sweep.predict import predict_file
from mlopt.sweep.prepare import Prepared, prepare
from mlopt.sweep.roles import roles_of
from mlopt.sweep.tabular import read_columns


def table(rows: int = 400) -> pd.DataFrame:
    """Numbers, a category, and a target that follows from them loosely."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"a": random.integers(0, 90, rows), "b": random.normal(size=rows)})
    frame["c"] = random.choice(["x", "y", "z"], rows)
    noise = random.normal(size=rows)
    return frame.assign(y=np.where(frame["a"] / 45 + frame["b"] + noise > 1, "yes", "no"))


def prepared(frame: pd.DataFrame, target: str = "y", **settings: Any) -> Prepared:
    config = override(Config(), target=target, **settings)
    return prepare(config, from_frame(frame, target), None, ["linear"])


def said(frame: pd.DataFrame, target: str = "y", **settings: Any) -> str:
    return "\n".join(prepared(frame, target, **settings).messages)


def test_one_word_among_numbers_is_missing_and_said() -> None:
    frame = table()
    frame["a"] = frame["a"].astype(str)
    frame.loc[16, "a"] = "unknown"
    found = prepared(frame)
    assert found.case.roles is not None
    assert "a" in found.case.roles.numbers
    assert (
        "`a`: 1 of 400 cells is no number and is taken as missing: 'unknown' in row 17"
        in "\n".join(found.messages)
    )
    read = read_columns(found.case.roles).fit(frame).transform(frame)
    assert np.flatnonzero(read["a"].isna()).tolist() == [16]


@pytest.mark.parametrize("infinite", [np.inf, -np.inf])
def test_an_infinite_cell_is_missing_and_said(infinite: float) -> None:
    frame = table()
    frame.loc[16, "b"] = infinite
    found = prepared(frame)
    assert found.case.roles is not None
    assert (
        "`b`: 1 of 400 cells is no finite number and is taken as missing: "
        f"{infinite} in row 17"
    ) in found.messages
    read = read_columns(found.case.roles).fit(frame).transform(frame)
    assert np.flatnonzero(read["b"].isna()).tolist() == [16]
    model = found.families["linear"][0].fit(found.X, found.y)
    assert len(model.predict(frame)) == 400


@pytest.mark.parametrize("kind", [str, object])
def test_true_and_false_beside_a_gap_are_what_they_are_without(kind: Any) -> None:
    frame = table().assign(a=lambda t: t["b"] > 0)
    found = prepared(frame)
    assert found.case.roles is not None
    reads = read_columns(found.case.roles).fit(frame)
    gap = frame.astype({"a": kind})
    gap.loc[16, "a"] = None
    read = reads.transform(gap)["a"].to_numpy()
    assert np.flatnonzero(np.isnan(read)).tolist() == [16]
    expected = np.delete(np.asarray(frame["a"], float), 16)
    np.testing.assert_array_equal(np.delete(read, 16), expected)


def test_what_a_cell_is_does_not_depend_on_the_others() -> None:
    read = numbers_of(pd.Series(["True", "false", "maybe", None, "2.5"]), ".")
    np.testing.assert_array_equal(read, [1.0, 0.0, np.nan, np.nan, 2.5])


@pytest.mark.parametrize(
    ("target", "scoring", "told"),
    [
        ("b", "accuracy", "metric of a continuous target.*Leave it out for 'r2'"),
        ("y", "r2", "metric of a binary target.*Leave it out for 'accuracy'"),
        ("c", "roc_auc", "metric of a multiclass target"),
        ("z", "r2", "metric of a binary target"),
        ("y", "f1", "`no`, `yes`.*take 'f1_macro'"),
        ("y", "average_precision", "and the other as 0.$"),
    ],
)
def test_a_metric_of_another_task_is_refused_at_once(
    target: str, scoring: str, told: str
) -> None:
    data = table().assign(z=lambda t: (t["y"] == "yes").astype(int))
    with pytest.raises(ConfigError, match=told):
        prepared(data, target, scoring=scoring)
    assert prepared(table(), scoring="f1_macro").scoring == "f1_macro"


def test_a_frame_of_dask_is_refused_by_its_name() -> None:
    dd = pytest.importorskip("dask.dataframe")
    found = prepared(table())
    model = found.families["linear"][0].fit(found.X, found.y)
    told = r"frame of pandas, polars or Arrow, got dask\.DataFrame: give"
    with pytest.raises(InputError, match=told):
        model.predict(dd.from_pandas(found.X, npartitions=2))


def test_a_few_grades_with_a_word_stay_a_category() -> None:
    grades = pd.DataFrame({"g": ["1", "2", "3", "none"] * 50})
    assert "g" in roles_of(grades).categories


@pytest.mark.parametrize(
    ("write", "text"),
    [
        (lambda n: f"${1000 + n:,}.00", "$1,0"),
        (lambda n: f"{n}%", "%"),
        (lambda n: f"{n},5", ",5"),
        (lambda n: f"1.{n:03d},25", "1."),
    ],
)
def test_numbers_in_a_notation_are_numbers_in_a_frame(write: Any, text: str) -> None:
    frame = table()
    exact = frame["a"].map(write)
    assert text in exact[0]
    roles = roles_of(frame.assign(a=exact))
    assert "a" in roles.numbers
    values = read_columns(roles).fit(frame).transform(frame.assign(a=exact))["a"]
    assert values.notna().all()
    assert np.corrcoef(values, frame["a"])[0, 1] == pytest.approx(1)


def test_the_notation_of_new_rows_is_that_of_training() -> None:
    roles = roles_of(pd.DataFrame({"a": [f"{n},5" for n in range(40)]}))
    read = read_columns(roles).fit(pd.DataFrame({"a": ["1,5"]}))
    assert read.transform(pd.DataFrame({"a": ["1,500"]}))["a"].tolist() == [1.5]


def test_rows_of_a_column_in_notation_may_have_one_label() -> None:
    frame = table(40).assign(price=lambda t: t["b"].map("${:,.2f}".format))
    assert "`price`: '$" in said(pd.concat([frame, frame]))


@pytest.mark.parametrize("names", [["a", "a", "c", "y"], [1, "1", "c", "y"]])
def test_a_name_of_two_columns_is_refused(names: list[Any]) -> None:
    with pytest.raises(InputError, match=r"names that differ as texts; '(a|1)' is there 2"):
        from_frame(table().set_axis(names, axis=1), "y")


def test_rows_without_a_target_are_said_by_number() -> None:
    frame = table()
    frame.loc[[2, 6, 399], "y"] = None
    assert "3 of 400 rows have no target and are left out: rows 3, 7, 400" in said(frame)


def test_rows_of_a_test_table_without_a_target_are_said() -> None:
    frame, test = table(), table(60)
    test.loc[9, "y"] = None
    found = prepare(
        override(Config(), target="y"), from_frame(frame, "y"), from_frame(test, "y")
    )
    assert any("1 of 60 rows" in text and "row 10" in text for text in found.messages)


@pytest.mark.parametrize(
    "copy",
    [
        lambda y: y,
        lambda y: y.str.upper(),
        lambda y: (y == "yes").astype(int),
        lambda y: (y == "yes").astype(float).where(np.arange(len(y)) % 7 > 0),
    ],
)
def test_a_copy_of_the_target_is_named(copy: Any) -> None:
    frame = table()
    assert "determines the target" not in said(frame)
    found = said(frame.assign(again=copy(frame["y"])))
    assert "`again` determines the target exactly" in found
    assert "`c`" not in found


@pytest.mark.parametrize(
    "copy", [lambda y: y, lambda y: 100 * y, lambda y: 3 - y, lambda y: y.astype(str)]
)
def test_a_copy_of_a_number_is_named(copy: Any) -> None:
    frame = table()
    assert "determines the target" not in said(frame, "b")
    found = said(frame.assign(again=copy(frame["b"])), "b")
    assert "`again` determines the target exactly" in found


def test_an_identifier_does_not_determine_the_target() -> None:
    frame = table()
    random = np.random.default_rng(1)
    names = [f"id{n}" for n in random.permutation(200)] * 2
    assert "determines" not in said(frame.assign(name=names, key=random.normal(size=400)))


def rare(rows: int = 200) -> pd.DataFrame:
    frame = table(rows)
    frame.loc[[0, 1, 2], "y"] = "odd"
    frame.loc[[3, 4], "y"] = "rare"
    return frame


def test_a_rare_class_is_refused_with_the_way_out() -> None:
    with pytest.raises(
        InputError, match=r"'odd': 3, 'rare': 2.*`rare_classes`.*drop.*merge"
    ):
        prepared(rare())


@pytest.mark.parametrize("share", [0.05, 0.95])
def test_a_part_of_fewer_rows_than_classes_is_refused(share: float) -> None:
    frame = table(60).assign(y=np.repeat(list("pqrstu"), 10))
    with pytest.raises(InputError, match=r"`holdout` .* each of the 6 classes"):
        prepared(frame, holdout=share)


def test_rare_classes_can_be_dropped() -> None:
    found = prepared(rare(), rare_classes="drop")
    assert set(found.target.classes) == {"yes", "no"}
    assert len(found.y) + len(found.y_test) == 195
    assert any(
        "rare classes are left out with their 5 rows: 'odd' (3), 'rare' (2)" in text
        for text in found.messages
    )


def test_rare_classes_can_be_merged() -> None:
    frame = rare()
    frame.loc[5:9, "y"] = [f"r{n}" for n in range(5)]
    found = prepared(frame, rare_classes="merge")
    assert set(found.target.classes) == {"yes", "no", "other"}
    assert np.sum(found.y == "other") + np.sum(found.y_test == "other") == 10


def test_rare_numbers_cannot_be_merged() -> None:
    frame = table().assign(y=[5, 5, *[0, 1] * 199])
    with pytest.raises(InputError, match=r"`rare_classes`.*merge.*texts"):
        prepared(frame, rare_classes="merge", task="classification")


def test_classes_of_a_test_table_follow() -> None:
    frame, test = rare(), rare(60)
    for choice, rows in (("drop", 55), ("merge", 60)):
        if choice == "merge":
            frame.loc[5:8, "y"] = "odd2"
            test.loc[5:8, "y"] = "odd2"
        config = override(Config(), target="y", rare_classes=choice)
        found = prepare(config, from_frame(frame, "y"), from_frame(test, "y"), ["linear"])
        assert len(found.y_test) == rows


def test_a_test_table_without_a_column_is_refused_before_the_search() -> None:
    frame, config = table(), override(Config(), target="y", drop=("c",))
    for test in (frame.drop(columns="c"), frame.drop(columns="b")):
        parts = from_frame(frame, "y"), from_frame(test, "y")
        if "b" in test:
            assert prepare(config, *parts, ["linear"]).messages
            continue
        with pytest.raises(MissingColumnError, match="'b' is missing"):
            prepare(config, *parts, ["linear"])
    wide, narrow = (
        Source(name, csr_array(frame[columns].to_numpy()), frame["y"])
        for name, columns in (("data", ["a", "b"]), ("late rows", ["a"]))
    )
    with pytest.raises(InputError, match=r"late rows must have the 2 columns .* has 1"):
        prepare(override(Config(), target="y"), wide, narrow, ["linear"])


def test_a_test_on_the_rows_that_were_searched_on_is_said() -> None:
    config, frame = override(Config(), target="y"), from_frame(table(), "y")
    for test, same in ((frame, True), (from_frame(table(300), "y"), False)):
        found = prepare(config, frame, test, ["linear"])
        assert any("are those to search on" in text for text in found.messages) == same


def test_columns_that_cannot_be_dropped_are_refused() -> None:
    with pytest.raises(ConfigError, match="names 'y', which is the target"):
        prepared(table(), drop=("y",))
    frame = from_frame(table(), "y")
    sparse = Source("rows", csr_array(frame.X[["a", "b"]].to_numpy()), frame.y)
    with pytest.raises(ConfigError, match="`drop` names `a`, and the columns of a sparse"):
        prepare(override(Config(), target="y", drop=("a",)), sparse, None, ["linear"])


def test_a_single_class_is_named_plainly() -> None:
    with pytest.raises(InputError, match="every row has 'no'"):
        prepared(table().assign(y="no"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A linear model of `table`."""
    found = prepared(table())
    path = tmp_path / "model.skops"
    fitted = found.families["linear"][0].fit(found.X, found.y)
    path.write_bytes(dump_model(fitted))
    return path


def test_a_column_that_is_unreadable_in_every_row_is_named(
    model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "new.csv"
    table().assign(a="n/k").to_csv(path, index=False)
    told: list[str] = []
    predict_file(model, str(path), tell=told.append)
    assert any("`a`" in text and "'n/k' in rows 1, 2" in text for text in told)
    with pytest.warns(InputWarning, match=r"`a` is no number in any of 400 rows.*'n/k'"):
        load(model).predict(table().assign(a="n/k"))


def test_a_cell_that_is_unreadable_is_told_and_the_rest_predicted(
    model: Path, tmp_path: Path
) -> None:
    frame = table().astype({"a": str})
    frame.loc[16, "a"] = "n/k"
    frame.to_csv(tmp_path / "new.csv", index=False)
    told: list[str] = []
    predicted = predict_file(model, str(tmp_path / "new.csv"), tell=told.append)
    assert len(predicted) == 400
    assert told == [
        "`a`: 1 of 400 cells is no number and is taken as missing: 'n/k' in row 17"
    ]


def test_a_polars_frame_is_a_table() -> None:
    polars = pytest.importorskip("polars")
    source = from_frame(polars.from_pandas(table()), "y")
    assert list(source.X) == ["a", "b", "c"]


def test_a_frame_of_dask_is_a_table() -> None:
    frame = table()
    source = from_frame(dd.from_pandas(frame, npartitions=3), "y")
    pd.testing.assert_frame_equal(source.X, frame.drop(columns="y"))
    pd.testing.assert_series_equal(source.y, frame["y"])
