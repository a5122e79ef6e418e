"""Columns are taken for what a person would take them for."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mlopt.sweep.dates import date_format, read_dates
from mlopt.sweep.roles import FEW_LEVELS, judge, roles_of

N = 400
RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (RANDOM.normal(size=N), "number"),
        (RANDOM.integers(0, 1000, N), "number"),
        (RANDOM.integers(0, 2, N), "number"),
        (np.linspace(-30_000, 30_000, N).astype(np.int16), "number"),
        (np.linspace(-2e9, 2e9, N).astype(np.int32), "number"),
        (RANDOM.integers(0, 2, N).astype(bool), "number"),
        (RANDOM.integers(1, 8, N), "code"),
        (RANDOM.choice(["a", "b", "c"], N), "category"),
        (RANDOM.choice(["1.5", "2", "-3e2"], N), "number"),
        (pd.date_range("2020-01-01", periods=N), "date"),
        (pd.date_range("2020-01-01", periods=N).astype(str), "date"),
        (
            pd.date_range("2020-01-01", periods=N, tz="UTC").strftime("%Y-%m-%dT%H:%M:%SZ"),
            "date",
        ),
        (pd.date_range("2020-01-01", periods=N).strftime("%d.%m.%Y"), "date"),
        (pd.date_range("2020-01-01", periods=N).strftime("%B %d, %Y"), "date"),
        (pd.date_range("2020-05-01", periods=31).strftime("%d-%b-%Y %H:%M"), "date"),
        ([f"we saw {i} birds there" for i in range(N)], "text"),
        ([f"WE SAW {i} BIRDS THERE" for i in range(N)], "dropped"),
        ([f"Mr. John Smith {i}, King street" for i in range(N)], "dropped"),
        (["so it is", "not at all so", "as it is"] * N, "category"),
        ([f"we saw {i} birds there" for i in range(20)], "text"),
        ([f"john.smith.no{i}@mail.example.com" for i in range(N)], "dropped"),
        ([f"https://example.com/chairs/red/chair?{i}" for i in range(N)], "dropped"),
        (pd.to_timedelta(RANDOM.integers(1, 99, N), unit="h"), "number"),
        (np.arange(N), "dropped"),
        (np.full(N, 7.0), "dropped"),
        (np.full(N, np.nan), "dropped"),
        ([f"name {i}" for i in range(N)], "dropped"),
        (pd.Categorical(RANDOM.choice(["x", "y"], N)), "category"),
        (pd.Categorical(RANDOM.choice([3, 10, 17], N)), "category"),
        (pd.Categorical(RANDOM.choice([3, 10, 17], N), ordered=True), "number"),
        (pd.array(RANDOM.integers(0, 1000, N), dtype="Int64"), "number"),
        (pd.array([None, 1, 500, 7] * (N // 4), dtype="Int64"), "code"),
    ],
)
def test_a_column_is_judged(values: Any, kind: str) -> None:
    assert judge(pd.Series(values))[0] == kind


def test_a_date_says_only_what_differs() -> None:
    days = pd.Series(pd.date_range("2020-03-01", periods=20).astype(str), name="day")
    roles = roles_of(pd.DataFrame({"day": days}))
    assert roles.parts["day"] == ("days", "day", "day_of_week")


def test_texts_where_dates_were_trained_are_read_each_for_itself() -> None:
    texts = ["2020-03-01T05:00:00", "2020-03-01T05:00:00.500000", "2020-03-02", "?", None]
    together = read_dates(pd.Series(texts), "")
    alone = [read_dates(pd.Series([text]), "").iloc[0] for text in texts]
    assert together.isna().tolist() == [False, False, False, True, True]
    assert together.dropna().tolist() == [*pd.Series(alone).dropna()]


@pytest.mark.parametrize(
    "text",
    [
        "December 16, 2005", "16 Dec 2005", "16-DEC-2005", "16th of december 2005",
        "Dec. 16th, 2005", "2005 Dec 16", "16 Dec 2005 00:00",
    ],
)  # fmt: skip
def test_a_date_with_the_name_of_its_month_is_read(text: str) -> None:
    texts = pd.Series([text] * 3)
    layout = date_format(texts)
    if " of " in text:  # words are no part of a date
        assert layout is None
    else:
        assert layout is not None
        assert {*read_dates(texts, layout)} == {pd.Timestamp("2005-12-16")}


@pytest.mark.parametrize(
    "layout",
    [
        "%d.%m.%Y %H:%M",
        "%m/%d/%Y %H:%M:%S",
        "%d-%m-%Y",
        "%b %d, %Y %H:%M:%S",
        "%m/%d/%Y %I:%M %p",
        "%d-%b-%Y %H:%M:%S.%f",
    ],
)
def test_dates_have_times_in_every_notation(layout: str) -> None:
    dates = pd.Series(pd.date_range("2020-01-01", periods=N, freq="D"))
    texts = dates.dt.strftime(layout)
    found = date_format(texts)
    assert found is not None
    pd.testing.assert_series_equal(read_dates(texts, found), dates, check_dtype=False)


def test_the_format_that_reads_most_is_taken() -> None:
    early = [f"01/{1 + at % 12:02d}/{2010 + at // 12}" for at in range(120)]
    texts = pd.Series([*early, "15/03/2020", "15/06/2020", "15/09/2020", "15/12/2020"])
    assert date_format(texts) == "%d/%m/%Y"
    assert date_format(texts[:9]) == "%m/%d/%Y"


def test_dates_of_a_data_base_are_read_as_the_texts_of_the_training() -> None:
    layout = date_format(pd.Series(["16-Dec-2005", "17-Dec-2005"]))
    assert layout is not None
    dates = pd.Series([date(2005, 12, 16), None], dtype=object)
    found = read_dates(dates, layout)
    assert found[0] == pd.Timestamp("2005-12-16")
    assert pd.isna(found[1])


def test_months_read_the_same_whatever_months_were_seen() -> None:
    layout = date_format(pd.Series(["May 3, 2021", "May 17, 2021"]))
    assert layout is not None
    later = read_dates(pd.Series(["June 3, 2021", "Sept 4, 2021", "maybe", None]), layout)
    assert [*later[:2]] == [pd.Timestamp("2021-06-03"), pd.Timestamp("2021-09-04")]
    assert later[2:].isna().all()


def test_every_column_has_one_role_and_every_dropped_one_a_reason() -> None:
    frame = pd.DataFrame(
        {
            "id": range(N),
            "x": RANDOM.normal(size=N),
            "month": RANDOM.integers(1, 13, N),
            "city": RANDOM.choice(list("abc"), N),
            "tail": [f"t{i % (FEW_LEVELS + 5)}" for i in range(N)],
            "secret": RANDOM.normal(size=N),
            "said": [f"the {i}th of them was here" for i in range(N)],
        }
    )
    roles = roles_of(frame, drop=["secret"])
    assert sorted([*roles.used, *roles.dropped]) == sorted(frame.columns)
    assert roles.texts == ("said",)
    assert roles.few == ("city",)
    assert roles.many == ("tail",)
    assert dict(roles.dropped) == {"id": "it numbers the rows", "secret": "on request"}
    assert any("it numbers the rows" in line for line in roles.describe())


def test_missing_values_do_not_change_what_a_column_is() -> None:
    frame = pd.DataFrame({"x": [1.5, np.nan] * 100, "c": ["a", None, "b", "a"] * 50})
    roles = roles_of(frame)
    assert roles.numbers == ("x",)
    assert dict(roles.categories) == {"c": 2}
