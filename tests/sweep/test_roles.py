"""Columns are taken for what a person would take them for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from mlopt.sweep.roles import FEW_LEVELS, judge, read_dates, roles_of

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


def test_every_column_has_one_role_and_every_dropped_one_a_reason() -> None:
    frame = pd.DataFrame(
        {
            "id": range(N),
            "x": RANDOM.normal(size=N),
            "month": RANDOM.integers(1, 13, N),
            "city": RANDOM.choice(list("abc"), N),
            "tail": [f"t{i % (FEW_LEVELS + 5)}" for i in range(N)],
            "secret": RANDOM.normal(size=N),
        }
    )
    roles = roles_of(frame, drop=["secret"])
    assert sorted([*roles.used, *roles.dropped]) == sorted(frame.columns)
    assert roles.few == ("city",)
    assert roles.many == ("tail",)
    assert dict(roles.dropped) == {"id": "it numbers the rows", "secret": "on request"}
    assert any("it numbers the rows" in line for line in roles.describe())


def test_missing_values_do_not_change_what_a_column_is() -> None:
    frame = pd.DataFrame({"x": [1.5, np.nan] * 100, "c": ["a", None, "b", "a"] * 50})
    roles = roles_of(frame)
    assert roles.numbers == ("x",)
    assert dict(roles.categories) == {"c": 2}
